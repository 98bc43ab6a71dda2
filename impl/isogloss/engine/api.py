"""What a handler asks of an engine, and what it gets back. No HTTP here, and no dialect.

EngineError
 ├─ EngineRefused      the request can never be served as it stands
 │   └─ GuideError     its guide cannot be followed
 ├─ EngineOverloaded   not now; a later try may succeed
 ├─ EngineFailure      the engine broke while it worked on the request
 └─ ChatTemplateError  the model's chat template does not take the messages
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from isogloss.engine.infill import Infill
from isogloss.engine.media import MediaInput, MediaProcessor

FinishReason = Literal["stop", "length"]

GuideKind = Literal["json_schema", "json_object", "regex", "choice", "grammar", "composite"]

GuideFlaw = Literal["invalid", "unsupported", "unsatisfiable", "too_complex"]
"""Not of its language; of its language, with a part that is not known here; no text follows it; takes too much work."""

GREEDY_BELOW = 1e-5
"""Temperatures below this choose the most likely token."""


class EngineError(Exception):
    """Base of everything an engine raises on purpose. The text is safe to log, never to send."""


class EngineRefused(EngineError):
    """The request can never be served as it stands."""


class GuideError(EngineRefused):
    """The guide of a request cannot be followed. Says nothing of its text."""

    def __init__(self, flaw: GuideFlaw, *, whitespace: bool = False) -> None:
        super().__init__(f"the guide is {flaw}")
        self.flaw = flaw
        self.whitespace = whitespace
        """Whether the fault lies in the guide's whitespace pattern."""


class EngineOverloaded(EngineError):
    """The engine has no room now."""


class EngineFailure(EngineError):
    """The engine broke while it worked on the request; other requests are unharmed."""


ChatTemplateFlaw = Literal["missing", "broken", "refused", "argument"]


class ChatTemplateError(EngineError):
    """The model has no chat template, or its template does not take these messages or arguments."""

    def __init__(self, flaw: ChatTemplateFlaw, text: str) -> None:
        super().__init__(text)
        self.flaw = flaw
        """No template; one that is no template; one that fails on these messages; an argument that is not taken."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. The defaults switch every control off."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """Keep the k most likely tokens; 0 keeps all."""
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    """With a seed, choice i of a request draws from a generator made of (seed, i) alone."""

    @property
    def greedy(self) -> bool:
        """Whether the most likely token is always chosen."""
        return self.temperature < GREEDY_BELOW


@dataclass(frozen=True, slots=True)
class Stopping:
    """When a choice ends."""

    max_tokens: int
    min_tokens: int = 0
    """No end-of-text token, stop token or stop string takes effect before this many tokens."""
    stop: tuple[str, ...] = ()
    stop_token_ids: frozenset[int] = frozenset()
    include_stop: bool = False
    """Whether the matched stop string (or stop token's text) stays in the text."""
    ignore_eos: bool = False


@dataclass(frozen=True, slots=True)
class Guide:
    """What the whole text of each choice must follow."""

    kind: GuideKind
    text: str = ""
    """The schema, the pattern or the grammar (Lark, or GBNF if it has `::=`); empty for the other kinds.

    Of a `composite`: Lark in which `@part0` stands for the first of `parts`, `@marker0` for the first of `choices`,
    a text that may be a special token, and `@until0` for any text up to and with it. Never a request's own."""
    choices: tuple[str, ...] = ()
    """The texts of a `choice`, or the markers of a `composite`."""
    whitespace: str | None = None
    """For JSON: a pattern for the blanks between its parts; "" for none, None for the engine's own."""
    parts: tuple[Guide, ...] = ()
    """The guides inside a `composite`, none of them composite."""
    yields: bool = False
    """Where the text may end, a token that the guide forbids counts as its end: it is not pushed into what may follow.
    Without, the forbidden tokens' probability goes to all allowed ones alike."""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One prompt and what to make of it."""

    request_id: str
    prompt: Sequence[int]
    """Token ids; never empty, all inside the vocabulary."""
    stopping: Stopping
    sampling: Sampling = Sampling()
    n: int = 1
    """Choices to generate for this prompt."""
    beams: int | None = None
    """Search with so many beams, at least `n`, instead of sampling: the `n` best come at the end, best first, each as
    one delta. Not with stop strings or stop tokens. None samples."""
    guide: Guide | None = None
    """Not with `beams`. A choice ends with `stop` as soon as nothing can follow, whatever `min_tokens` and
    `ignore_eos` say; it may not follow its guide if it ends in another way."""
    logprobs: int | None = None
    """Alternatives to report per generated token; 0 reports the chosen token only, None nothing."""
    prompt_logprobs: int | None = None
    """The same for the tokens of the prompt."""
    adapter: str | None = None
    """One of the card's adapters; None is the model alone."""
    media: MediaInput | None = None
    """What the engine's own processor made of the prompt's media; the prompt is the one that came with it."""
    skip_special_tokens: bool = True
    marks: tuple[str, ...] = ()
    """Special tokens that stay in the text although others are skipped, by their own texts."""
    priority: int = 0
    """Lower starts earlier; equal priorities start in order of arrival."""
    hints: Mapping[str, str] = field(default_factory=dict)
    """Headers `x-isogloss-*` of the call, in lower case. Only the scripted engine reads them."""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One candidate at one position."""

    id: int
    text: str
    """The token decoded alone; U+FFFD stands for a part of a character."""
    logprob: float
    """Natural logarithm under the model's own distribution (no temperature, bias or penalty)."""
    rank: int
    """1 for the most likely token of the vocabulary."""


@dataclass(frozen=True, slots=True)
class TokenScore:
    """The chosen token of one position and its most likely alternatives, most likely first."""

    chosen: TokenLogprob
    top: tuple[TokenLogprob, ...] = ()
    text: str | None = None
    """What the chosen token added to its choice's text, before a stop string cuts it: "" for part of a
    character and for an end-of-text token, the whole character for its last part. None: `chosen.text`."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Measured times of one choice, in seconds."""

    queue: float = 0.0
    """From arrival until the first step that worked on the request."""
    prefill: float = 0.0
    """From that step's start until the first token was sampled."""
    decode: tuple[float, ...] = ()
    """One entry per token after the first: the time since the token before."""
    waits: tuple[float, ...] = ()
    """One entry per token after the first: the part of `decode` that passed before the step that made it began."""
    batch_sizes: tuple[int, ...] = ()
    """One entry per token: how many sequences shared the step that made it."""


@dataclass(frozen=True, slots=True)
class Started:
    """The first event of a request: it has left the queue."""

    cached_tokens: int = 0
    """Prompt tokens whose KV cache was found ready."""


@dataclass(frozen=True, slots=True)
class PromptScores:
    """Scores of the prompt's tokens, one per token, None for the first. At most once, before
    any delta, and only if `prompt_logprobs` was asked for."""

    scores: tuple[TokenScore | None, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """Why and how a choice ended."""

    reason: FinishReason
    stop: int | str | None = None
    """The stop string that matched, or the id of the stop token; None for the end-of-text token
    and for `length`."""
    timing: Timing = Timing()


@dataclass(frozen=True, slots=True)
class Delta:
    """What one step added to one choice."""

    choice: int
    text: str
    """Whole characters only, and never a text that may still become part of a stop string."""
    token_ids: tuple[int, ...]
    """Tokens sampled since the last delta of this choice. Their text may come in a later delta."""
    scores: tuple[TokenScore, ...] = ()
    """One per token id if `logprobs` was asked for."""
    finish: Finish | None = None


Event = Started | PromptScores | Delta


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What an engine serves."""

    name: str
    context_length: int
    vocab_size: int
    layers: int
    hidden_size: int
    created: int
    """Seconds since the epoch when the engine loaded the model."""
    owner: str = "isogloss"
    chat_template: str | None = None
    top_k: int | None = None
    """The model's own setting for requests that say nothing; 0 keeps all tokens, None says nothing either."""
    adapters: tuple[str, ...] = ()
    """Names of adapters, which requests use in place of the model's."""
    tool_format: str | None = None
    """How the model writes calls of functions, by its name in `engine.chat`; None if it calls none."""
    reasoning_format: str | None = None
    """How the model marks what it thinks, by its name in `engine.chat`; None if that is not told apart."""

    def adapter(self, model: str) -> str | None:
        """The adapter that a request for a model of this name wants; None for the model alone."""
        return model if model in self.adapters else None


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """A snapshot for metrics and health."""

    ready: bool
    running: int
    """Requests being worked on."""
    waiting: int
    """Requests accepted and not yet started."""
    kv_cache_usage: float = 0.0
    """Share of KV cache blocks in use, 0 to 1."""
    prompt_tokens: int = 0
    """Prompt tokens taken in since the start."""
    generated_tokens: int = 0
    """Tokens generated since the start."""


class Decoder(Protocol):
    """Turns the tokens of one choice into text, one token at a time."""

    def push(self, token_id: int) -> str:
        """The text that is certain after this token; "" while a character is incomplete."""
        ...

    def flush(self) -> str:
        """What is left at the end; incomplete bytes become U+FFFD."""
        ...


class Tokenizer(Protocol):
    """Text to token ids and back. Safe to call from several threads."""

    @property
    def vocab_size(self) -> int:
        """Ids run from 0 to this minus 1."""
        ...

    @property
    def eos_token_ids(self) -> frozenset[int]:
        """Ids that end a text."""
        ...

    @property
    def infill(self) -> Infill | None:
        """Makes prompts for fill-in-the-middle; None if the model has no tokens for it."""
        ...

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids of a text."""
        ...

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        tools: Sequence[Mapping[str, object]] = (),
        arguments: Mapping[str, object] | None = None,
    ) -> list[int]:
        """Token ids of a conversation in the model's own chat template, up to where the assistant's next turn begins.

        A message has `role` and `content`, and perhaps `tool_calls` and `tool_call_id` as OpenAI writes them; so do
        `tools`, the functions that the model may call. A content is a text, or, where there are media, a list of
        `{"type": "text", "text": …}` and `{"type": "image"}` (or `video`, `audio`), each of which becomes one
        placeholder for the processor. Of `arguments`, those reach the template that it may know. Raises
        ChatTemplateError.
        """
        ...

    def decoder(
        self, prompt: Sequence[int], *, skip_special_tokens: bool = True, marks: Collection[str] = ()
    ) -> Decoder:
        """A decoder for text that continues this prompt; special tokens whose text is in `marks` are never skipped."""
        ...

    def decode(self, token_ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """The text of a whole sequence."""
        ...

    def token_text(self, token_id: int) -> str:
        """One token decoded alone, special tokens included."""
        ...


class Engine(Protocol):
    """The one interface that handlers know. All engines stand behind it."""

    @property
    def card(self) -> ModelCard:
        """What is served."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        ...

    @property
    def processor(self) -> MediaProcessor | None:
        """Takes media into prompts; None if the model takes texts alone."""
        ...

    @property
    def features(self) -> frozenset[str]:
        """Names of the documents' `x-feature` marks that this engine serves."""
        ...

    async def start(self) -> None:
        """Load what is needed; afterwards `status().ready` is true."""
        ...

    async def stop(self) -> None:
        """End running requests with EngineFailure and release everything."""
        ...

    def status(self) -> EngineStatus:
        """A snapshot; cheap, from any thread."""
        ...

    def generate(self, request: GenerationRequest) -> AsyncGenerator[Event, None]:
        """Events of one request. Closing the generator aborts the request and frees its place.

        Raises EngineRefused (GuideError for a guide) or EngineOverloaded at the first event, EngineFailure at any.
        """
        ...
