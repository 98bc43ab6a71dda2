from __future__ import annotations

from collections.abc import Callable

import pytest
from isogloss.engine.api import Guide
from isogloss.engine.guides.trial import compiled, tried_grammar
from isogloss.engine.scripted.vocabulary import guide_vocabulary


@pytest.fixture(scope="session")
def takes() -> Callable[[Guide, str], bool]:
    """Whether a text is one of a guide's, whole."""
    tokenizer = guide_vocabulary().tokenizer()

    def check(guide: Guide, text: str) -> bool:
        matcher = compiled(tokenizer, tried_grammar(tokenizer, guide))
        tokens = list(text.encode())
        if matcher.validate_tokens(tokens) < len(tokens):
            return False
        matcher.consume_tokens(tokens)
        return matcher.is_accepting()

    return check
