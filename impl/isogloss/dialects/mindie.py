"""MindIE chat completions: the handlers of the document `mindie`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from isogloss_api.mindie import effective, requests, responses
from isogloss_api.runtime import Call, Measured, Reply, Stream

from isogloss.dialects.chat_formats import AnswerForm, answer_form
from isogloss.dialects.fields import openai_sampling, stop_texts
from isogloss.dialects.guides import Guided, response_format
from isogloss.dialects.mindie_answer import Answer, Shown
from isogloss.dialects.mindie_config import MindIEConfig
from isogloss.dialects.mindie_media import MediaReader
from isogloss.dialects.mindie_prompt import ChatPrompt, PromptReader
from isogloss.dialects.mindie_tools import ToolPlan, forced_calls, read_tools
from isogloss.dialects.models import model_list
from isogloss.engine.api import Engine, GenerationRequest, ModelCard, Sampling, Stopping

if TYPE_CHECKING:  # what takes decoders, which not every environment has
    from isogloss.media.loader import MediaLoader

_GUIDE_FAULT = "mindie.guide_invalid"
_INT32 = 2**31


class MindIEHandlers:
    """Handlers of the document `mindie`."""

    def __init__(self, engine: Engine, config: MindIEConfig | None = None, media: MediaLoader | None = None) -> None:
        """Without `media`, requests must have none."""
        self._engine = engine
        self._config = config or MindIEConfig()
        self._reader = PromptReader(engine, self._config, _media_reader(engine, media))
        self._numbers = itertools.count(1)

    async def measure_create_chat_completion(self, body: requests.ChatRequest, /) -> Measured[ChatPrompt]:
        """Apply the model's chat template and tokenize. Raises Fault `mindie.template_…`."""
        return await self._reader.measure(body)

    async def create_chat_completion(
        self, body: requests.ChatRequest, prompt: ChatPrompt, call: Call[effective.ChatRequest], /
    ) -> Reply[responses.ChatCompletion] | Stream[responses.ChatChunk]:
        """Continue the conversation.

        Raises Fault `engine_refused`, `overloaded`, `engine_failure` or `mindie.guide_invalid`.
        """
        eff = call.eff
        shown = Shown(eff["model"], _alternatives(eff), self._config.full_text)
        plan = read_tools(body)
        form = answer_form(self._engine, prompt.tokens, plan.functions)
        request = replace(self._request(prompt.tokens, eff, call.hints), media=prompt.media, marks=form.marks)
        guided = _guided(eff, plan, form)
        if guided is not None:
            request = replace(request, guide=guided.guide)
        answer = Answer(self._engine, request, shown, form, guided)
        return Stream(answer.chunks()) if eff["stream"] else Reply(await answer.whole())

    async def list_models(self) -> Reply[responses.ModelList]:
        """The models this server answers for."""
        return Reply(model_list(served_card(self._engine.card, self._config)))

    def _request(self, prompt: list[int], eff: effective.ChatRequest, hints: Mapping[str, str]) -> GenerationRequest:
        limits = self._config.served(self._engine.card)
        return GenerationRequest(
            request_id=f"endpoint_common_{next(self._numbers)}",
            prompt=prompt,
            stopping=_stopping(eff, limits.answer(eff["max_tokens"], len(prompt))),
            sampling=_sampling(eff),
            n=_count(eff),
            beams=_beams(eff),
            adapter=self._engine.card.adapter(eff["model"]),
            logprobs=_scored_alternatives(eff),
            skip_special_tokens=eff["skip_special_tokens"],
            hints=hints,
        )


def _guided(eff: effective.ChatRequest, plan: ToolPlan, form: AnswerForm) -> Guided | None:
    """What the answer must follow, if anything: the document refuses both at once. Raises Fault."""
    if plan.constrains and form.tools is not None:
        return forced_calls(plan, form, _GUIDE_FAULT)
    asked = response_format(eff["response_format"], _GUIDE_FAULT)
    return None if asked is None else replace(asked, guide=form.guide(asked.guide))


def _media_reader(engine: Engine, loader: MediaLoader | None) -> MediaReader | None:
    if loader is None or engine.processor is None:
        return None
    return MediaReader(engine.processor, loader)


def served_card(card: ModelCard, config: MindIEConfig) -> ModelCard:
    """The model as this dialect serves it."""
    return replace(card, name=config.model_name or card.name, context_length=config.served(card).length)


def _count(eff: effective.ChatRequest) -> int:
    """Sequences to return. Without beams, `best_of` is how many are generated, and all of them are returned."""
    return eff["n"] if eff["use_beam_search"] or eff["best_of"] is None else eff["best_of"]


def _beams(eff: effective.ChatRequest) -> int | None:
    """Beams to search with: `best_of` or `n`, whichever is more."""
    return max(eff["n"], eff["best_of"] or 1) if eff["use_beam_search"] else None


def _alternatives(eff: effective.ChatRequest) -> int | None:
    """Alternatives to show per token; `top_logprobs` alone switches log probabilities on."""
    if eff["top_logprobs"] is not None:
        return eff["top_logprobs"]
    return 0 if eff["logprobs"] else None


def _scored_alternatives(eff: effective.ChatRequest) -> int | None:
    """Alternatives that the engine must report; without any, several sequences are still put in order by scores."""
    shown = _alternatives(eff)
    in_order = _count(eff) > 1 and not eff["stream"]
    return 0 if shown is None and in_order else shown


def _sampling(eff: effective.ChatRequest) -> Sampling:
    return replace(openai_sampling(eff), top_k=max(eff["top_k"], 0), repetition_penalty=eff["repetition_penalty"])


def _stopping(eff: effective.ChatRequest, max_tokens: int) -> Stopping:
    return Stopping(
        max_tokens=max_tokens,
        stop=stop_texts(eff["stop"]),
        stop_token_ids=_token_ids(eff["stop_token_ids"] or ()),
        include_stop=eff["include_stop_str_in_output"],
        ignore_eos=eff["ignore_eos"],
    )


def _token_ids(items: Iterable[object]) -> frozenset[int]:
    """The 32-bit integers among the items; the others are ignored."""
    return frozenset(item for item in items if type(item) is int and -_INT32 <= item < _INT32)
