"""The scripted engine's tokens: 256 bytes, special tokens, common words, and room for scripts.

Ids above them have no text of their own. A script's tokens that are not in the vocabulary get
ids there, which only the tokenizer of that request knows.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import cast

from isogloss.engine.api import EngineRefused
from isogloss.engine.chat.reasoning import ReasoningFormat
from isogloss.engine.guides.vocabulary import Vocabulary
from isogloss.engine.media import MediaKind
from isogloss.engine.scripted.words import WORDS
from isogloss.engine.tokenizer import without_surrogates

BEGIN = 256
END = 257
FIRST_WORD = 258
BEHIND_WORDS = FIRST_WORD + len(WORDS)
PLACEHOLDERS: Mapping[MediaKind, int] = {"image": BEHIND_WORDS, "video": BEHIND_WORDS + 1, "audio": BEHIND_WORDS + 2}
PHRASES = (b"<tool_call>", b"</tool_call>", b'{"name": "', b'", "arguments": ')
FIRST_PHRASE = BEHIND_WORDS + len(PLACEHOLDERS)
"""Phrases keep forced parts of guided texts short, as a real model's longer tokens do. Unguided they never come."""
FIRST_FREE = FIRST_PHRASE + len(PHRASES)
VOCAB_SIZE = 2048

_SPECIAL = {BEGIN: b"<|begin|>", END: b"<|end|>"} | {
    token_id: f"<|{kind}|>".encode() for kind, token_id in PLACEHOLDERS.items()
}
_TEXT = (
    {byte: bytes([byte]) for byte in range(256)}
    | {FIRST_WORD + index: word.encode() for index, word in enumerate(WORDS)}
    | dict(enumerate(PHRASES, FIRST_PHRASE))
)
_IDS = {text: token_id for token_id, text in _TEXT.items()}
_WORD_IDS = {word: FIRST_WORD + index for index, word in enumerate(WORDS)}
_PIECES = re.compile(r" ?[A-Za-z]+|[^A-Za-z ]+| ")


def guide_vocabulary() -> Vocabulary:
    """The tokens as guides see them. What a script adds, they see as its bytes, each a token."""
    tokens = tuple(_SPECIAL.get(i) or _TEXT.get(i, b"") for i in range(VOCAB_SIZE))
    return Vocabulary(VOCAB_SIZE, (END,), tokens=tokens, special=(*_SPECIAL,))


class ByteDecoder:
    """The text of one choice's tokens, byte by byte."""

    __slots__ = ("_bytes", "_utf8")

    def __init__(self, token_bytes: Mapping[int, bytes]) -> None:
        self._bytes = token_bytes
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token_id: int) -> str:
        """The text that is certain after this token; "" while a character is incomplete."""
        return self._utf8.decode(self._bytes.get(token_id, b""))

    def flush(self) -> str:
        """What is left at the end; incomplete bytes become U+FFFD."""
        return self._utf8.decode(b"", final=True)


class _PieceIds(dict[str, Sequence[int]]):
    """Tokens of each piece of text that was ever seen, up to a bound: texts repeat their words."""

    def __missing__(self, piece: str) -> Sequence[int]:
        word = _WORD_IDS.get(piece)
        ids = piece.encode() if word is None else (word,)
        if len(self) < _REMEMBERED_PIECES and len(piece) <= _LONGEST_REMEMBERED:
            self[piece] = ids
        return ids


_REMEMBERED_PIECES = 65_536
_LONGEST_REMEMBERED = 32
_PIECE_IDS = _PieceIds()


class ByteTokenizer:
    """Any text to tokens and back without loss, except lone surrogates, which become U+FFFD.

    `extra` gives tokens of one request their bytes; `reasoning` is how the engine marks thoughts.
    """

    __slots__ = ("_all", "_no_thought", "_plain")

    def __init__(self, extra: Mapping[int, bytes] | None = None, *, reasoning: ReasoningFormat | None = None) -> None:
        self._no_thought = f"{reasoning.start}\n\n{reasoning.end}\n\n" if reasoning else ""
        self._plain = {**_TEXT, **extra} if extra else _TEXT
        self._all = {**self._plain, **_SPECIAL}

    @property
    def vocab_size(self) -> int:
        """Ids run from 0 to this minus 1."""
        return VOCAB_SIZE

    @property
    def eos_token_ids(self) -> frozenset[int]:
        """Ids that end a text."""
        return frozenset((END,))

    @property
    def infill(self) -> None:
        """There are no tokens for fill-in-the-middle."""

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids of a text. Names of special tokens in it are ordinary text.

        An empty text becomes the begin token, if special tokens may be added.
        """
        if not text and add_special_tokens:
            return [BEGIN]
        pieces = _PIECES.findall(without_surrogates(text))
        return [*chain.from_iterable(map(_PIECE_IDS.__getitem__, pieces))]

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        tools: Sequence[Mapping[str, object]] = (),
        arguments: Mapping[str, object] | None = None,
    ) -> list[int]:
        """Token ids of a conversation in a template of its own, which takes any role.

        It knows `enable_thinking`: false ends the thought before it begins, if the engine marks thoughts.
        """
        told = f"<|tools|>\n{json.dumps([*tools], ensure_ascii=False)}\n" if tools else ""
        thinks = (arguments or {}).get("enable_thinking") is not False
        begun = "<|assistant|>\n" if thinks else f"<|assistant|>\n{self._no_thought}"
        pieces = [told, *chain.from_iterable(map(_turn, messages)), begun]
        return [*chain.from_iterable(map(self._piece, pieces))]

    def _piece(self, piece: str | int) -> Sequence[int]:
        return self.encode(piece, add_special_tokens=False) if isinstance(piece, str) else (piece,)

    def decoder(
        self, prompt: Sequence[int], *, skip_special_tokens: bool = True, marks: Collection[str] = ()
    ) -> ByteDecoder:
        """A decoder for text that continues a prompt; bytes need no context. No special token marks anything here."""
        return ByteDecoder(self._plain if skip_special_tokens else self._all)

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text of a whole sequence."""
        known = self._plain if skip_special_tokens else self._all
        return b"".join(known.get(token_id, b"") for token_id in token_ids).decode(errors="replace")

    def token_text(self, token_id: int) -> str:
        """One token decoded alone, special tokens included."""
        return self._all.get(token_id, b"").decode(errors="replace")


def _turn(message: Mapping[str, object]) -> Iterator[str | int]:
    """A line with the role, then the text with its placeholders, then the calls as JSON."""
    yield f"<|{message['role']}|>\n"
    content = message.get("content")
    if content:
        yield from _parts(content) if isinstance(content, list) else [cast("str", content)]
        yield "\n"
    calls = message.get("tool_calls")
    if calls:
        yield f"{json.dumps(calls)}\n"


def _parts(content: list[Mapping[str, str]]) -> Iterator[str | int]:
    for part in content:
        yield part["text"] if part["type"] == "text" else PLACEHOLDERS[cast("MediaKind", part["type"])]


@dataclass(frozen=True, slots=True)
class ScriptTokens:
    """The tokens of a script."""

    ids: tuple[int, ...]
    extra: Mapping[int, bytes] = field(default_factory=dict)
    """The bytes of those that the vocabulary doesn't have."""

    def spelled(self, token: int) -> list[int]:
        """A token in tokens of the vocabulary."""
        text = self.extra.get(token)
        return [token] if text is None else [*text]


def assign_ids(tokens: Sequence[bytes]) -> ScriptTokens:
    """Ids for a script's tokens. Raises EngineRefused if they don't fit into the vocabulary."""
    new = [token for token in dict.fromkeys(tokens) if token not in _IDS]
    if len(new) > VOCAB_SIZE - FIRST_FREE:
        raise EngineRefused(f"a script may have {VOCAB_SIZE - FIRST_FREE} new tokens")
    extra = dict(enumerate(new, VOCAB_SIZE - len(new)))
    known = _IDS | {token: token_id for token_id, token in extra.items()}
    return ScriptTokens(tuple(known[token] for token in tokens), extra)
