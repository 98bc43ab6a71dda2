"""The scripted engine."""

from isogloss.engine.scripted.engine import ScriptedEngine
from isogloss.engine.scripted.script import HINT
from isogloss.engine.scripted.source import Limits

__all__ = ["HINT", "Limits", "ScriptedEngine"]
