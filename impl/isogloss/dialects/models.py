"""The list of models, the same in every dialect."""

from __future__ import annotations

from isogloss_api.service.responses import ModelList

from isogloss.engine.api import ModelCard


def model_list(card: ModelCard) -> ModelList:
    """The one model that an engine serves."""
    return {
        "object": "list",
        "data": [
            {
                "id": card.name,
                "object": "model",
                "created": card.created,
                "owned_by": card.owner,
                "max_model_len": card.context_length,
            }
        ],
    }
