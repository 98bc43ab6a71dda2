"""The prompt before its completion: its text, and its tokens with their log probabilities."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from isogloss.dialects.logprobs import Form, Logprobs, of_prompt
from isogloss.dialects.prompts import Prompt
from isogloss.engine.api import Tokenizer, TokenScore

_LONG_PROMPT = 512
"""Tokens from which on taking a prompt apart would keep other requests waiting."""


def echo_text(prompt: Prompt, tokenizer: Tokenizer) -> str:
    """The prompt as the client wrote it; token ids are decoded, special tokens included."""
    if prompt.text is not None:
        return prompt.text
    return tokenizer.decode(prompt.tokens, skip_special_tokens=False)


async def echo_logprobs(
    prompt: Prompt, text: str, scores: Sequence[TokenScore | None], tokenizer: Tokenizer, form: Form
) -> Logprobs:
    """The lists of a prompt of which `text` is shown. Long prompts are taken apart off the event loop."""
    if len(prompt.tokens) < _LONG_PROMPT:
        texts = token_texts(prompt.tokens, text, tokenizer)
    else:
        texts = await asyncio.to_thread(token_texts, prompt.tokens, text, tokenizer)
    return of_prompt(prompt.tokens, texts, scores, form)


def token_texts(tokens: Sequence[int], text: str, tokenizer: Tokenizer) -> list[str]:
    """What each token of a prompt adds to its text; all together they make up the text.

    A special token that the tokenizer put before the text adds nothing. Only where a tokenizer changes the text
    (lower case, Unicode forms) the parts are the tokenizer's and don't join to the text that the client wrote.
    """
    alone = [tokenizer.token_text(token_id) for token_id in tokens]
    if "".join(alone) == text:
        return alone
    decoded = _decoded(tokens, tokenizer)
    found = _found_in(text, decoded)
    return found if "".join(found) == text else decoded


def _decoded(tokens: Sequence[int], tokenizer: Tokenizer) -> list[str]:
    decoder = tokenizer.decoder((), skip_special_tokens=False)
    texts = [decoder.push(token_id) for token_id in tokens]
    texts[-1] += decoder.flush()
    return texts


def _found_in(text: str, parts: Sequence[str]) -> list[str]:
    """Each part that goes on with the text, "" for the others."""
    found = []
    offset = 0
    for part in parts:
        known = part if text.startswith(part, offset) else ""
        found.append(known)
        offset += len(known)
    return found
