"""The tokenizers of transformers behind the engine's protocol."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from isogloss.engine.chat.tools.base import ToolFormat
from isogloss.engine.chat_template import ChatTemplate
from isogloss.engine.detokenize import WindowDecoder
from isogloss.engine.infill import EncodeText, Infill, find_infill

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_LONG = 4096
"""Characters of a text that takes long enough to tokenize for others to notice."""

DecodeTokens = Callable[[Sequence[int], bool], str]


class HFTokenizer:
    """A transformers tokenizer. Safe to call from several threads.

    `vocab_size` is the model's and may exceed the tokenizer's; ids between have no text. Decoding
    leaves out transformers' `clean_up_tokenization_spaces`: it rewrites spaces long sent.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        eos_token_ids: Iterable[int],
        vocab_size: int,
        tool_format: ToolFormat | None = None,
    ) -> None:
        """`tool_format` is how functions and calls are written if the chat template knows none."""
        back_end = _fast if tokenizer.is_fast else _slow
        self._encode, self._decode = back_end(tokenizer)
        self._special = {token.content: i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        self._chat = ChatTemplate(tokenizer, tool_format)
        self._eos_token_ids = frozenset(eos_token_ids)
        self._vocab_size = vocab_size
        self._infill = find_infill(tokenizer.get_vocab(), vocab_size, self._encode)
        self._token_texts: dict[int, str] = {}
        self._anchor = self._encode("a", False)[-1:]
        self._anchor_text = self._decode(self._anchor, False)

    @property
    def vocab_size(self) -> int:
        """Ids run from 0 to this minus 1."""
        return self._vocab_size

    @property
    def eos_token_ids(self) -> frozenset[int]:
        """Ids that end a text."""
        return self._eos_token_ids

    @property
    def infill(self) -> Infill | None:
        """Makes prompts for fill-in-the-middle, if the vocabulary has tokens for it."""
        return self._infill

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids of a text; lone surrogates count as U+FFFD."""
        return self._encode(without_surrogates(text), add_special_tokens)

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        tools: Sequence[Mapping[str, object]] = (),
        arguments: Mapping[str, object] | None = None,
    ) -> list[int]:
        """Token ids of a conversation, up to where the assistant's next turn begins. Raises ChatTemplateError.

        The template writes the special tokens it wants, so none are added.
        """
        return self.encode(self._chat.render(messages, arguments or {}, tools), add_special_tokens=False)

    def decoder(
        self, prompt: Sequence[int], *, skip_special_tokens: bool = True, marks: Collection[str] = ()
    ) -> WindowDecoder:
        """A decoder for text that continues this prompt; special tokens whose text is in `marks` are never skipped."""
        kept = {self._special[text] for text in marks if text in self._special}
        if skip_special_tokens and kept:
            return WindowDecoder(
                partial(self._decoded_without, hidden=frozenset(self._special.values()) - kept), prompt
            )
        return WindowDecoder(partial(self._decoded, skip=skip_special_tokens), prompt)

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text of a whole sequence."""
        return self._decode(token_ids, skip_special_tokens)

    def token_text(self, token_id: int) -> str:
        """One token decoded alone, special tokens included.

        It is decoded as the continuation of another word, so that the space that a token begins
        with is kept and the texts of tokens join to the text of all.
        """
        text = self._token_texts.get(token_id)
        if text is None:
            text = self._decode([*self._anchor, token_id], False)
            text = text.removeprefix(self._anchor_text)
            self._token_texts[token_id] = text
        return text

    def _decoded(self, token_ids: Sequence[int], *, skip: bool) -> str:
        return self._decode(token_ids, skip)

    def _decoded_without(self, token_ids: Sequence[int], *, hidden: frozenset[int]) -> str:
        return self._decode([token_id for token_id in token_ids if token_id not in hidden], False)


def without_surrogates(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which no tokenizer can encode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def without_limits(backend_tokenizer: Any) -> Any:
    """A copy of a Rust tokenizer that neither cuts nor pads."""
    rust = copy.deepcopy(backend_tokenizer)
    rust.no_truncation()
    rust.no_padding()
    return rust


def _fast(tokenizer: PreTrainedTokenizerBase) -> tuple[EncodeText, DecodeTokens]:
    """The Rust tokenizer, called directly: transformers sets its truncation and padding at each
    call, which fails when another thread is using it."""
    rust = without_limits(tokenizer.backend_tokenizer)

    def encode(text: str, add_special_tokens: bool) -> list[int]:
        if len(text) < _LONG:
            return cast("list[int]", rust.encode(text, add_special_tokens=add_special_tokens).ids)
        # Only the calls for many texts let other threads work meanwhile, whatever thread they are made in.
        return cast("list[int]", rust.encode_batch_fast([text], add_special_tokens=add_special_tokens)[0].ids)

    def decode(token_ids: Sequence[int], skip: bool) -> str:
        return cast("str", rust.decode(token_ids, skip_special_tokens=skip))

    return encode, decode


def _slow(tokenizer: PreTrainedTokenizerBase) -> tuple[EncodeText, DecodeTokens]:
    """A tokenizer in Python, which promises nothing about threads."""
    lock = threading.Lock()
    size = len(tokenizer)

    def encode(text: str, add_special_tokens: bool) -> list[int]:
        with lock:
            return list(tokenizer.encode(text, add_special_tokens=add_special_tokens))

    def decode(token_ids: Sequence[int], skip: bool) -> str:
        known = [token_id for token_id in token_ids if token_id < size]
        with lock:
            return str(tokenizer.decode(known, skip_special_tokens=skip, clean_up_tokenization_spaces=False))

    return encode, decode
