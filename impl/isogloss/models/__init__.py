"""Names of models, and folders to load them from. Imports neither torch nor transformers."""

from __future__ import annotations

from isogloss.models.cache import default_cache
from isogloss.models.package import add_smollm2
from isogloss.models.resolve import ModelNotFound, ResolvedModel, resolve_model

__all__ = ["ModelNotFound", "ResolvedModel", "add_smollm2", "default_cache", "resolve_model"]
