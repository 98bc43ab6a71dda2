"""`python -m isogloss_conformance`."""

from __future__ import annotations

import sys

from isogloss_conformance.cli import main

sys.exit(main())
