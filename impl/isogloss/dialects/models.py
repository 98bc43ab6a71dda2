"""The list of models, the same in every dialect."""

from __future__ import annotations

from isogloss_api.service.responses import ModelEntry, ModelList

from isogloss.engine.api import ModelCard


def model_list(card: ModelCard) -> ModelList:
    """The model that an engine serves, then its adapters."""
    adapters: list[ModelEntry] = [{**_entry(card, name), "root": card.name} for name in card.adapters]
    return {"object": "list", "data": [_entry(card, card.name), *adapters]}


def _entry(card: ModelCard, name: str) -> ModelEntry:
    return {
        "id": name,
        "object": "model",
        "created": card.created,
        "owned_by": card.owner,
        "max_model_len": card.context_length,
    }
