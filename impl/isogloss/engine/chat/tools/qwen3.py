"""The text models of Qwen3: the Hermes form, behind a thought."""

from __future__ import annotations

from isogloss.engine.chat.tools.hermes import Hermes


class Qwen3(Hermes):
    """Qwen3; its markers are ordinary tokens of its vocabulary."""

    name = "qwen3"
    special_tokens = False
