"""`python -m isogloss`."""

from __future__ import annotations

import sys

from isogloss.cli import main

sys.exit(main())
