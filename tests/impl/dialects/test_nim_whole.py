"""Whole answers: choices, texts, usage, errors."""

from __future__ import annotations

import time

import pytest
from isogloss.engine.api import Delta, EngineFailure, EngineOverloaded, EngineRefused, Finish, Started
from isogloss_spec.faults import Fault


async def test_members_of_the_answer(caller):
    body = await caller.ask()
    assert body["object"] == "text_completion"
    assert body["model"] == "fake"
    assert body["id"].startswith("cmpl-")
    assert abs(body["created"] - time.time()) < 5
    (choice,) = body["choices"]
    assert choice == {
        "index": 0,
        "text": "ok",
        "logprobs": None,
        "finish_reason": "length",
        "stop_reason": None,
        "prompt_logprobs": None,
    }


async def test_ids_are_unique_and_not_the_callers(caller):
    ids = {(await caller.ask())["id"] for _ in range(20)}
    assert len(ids) == 20
    assert not any("client" in found for found in ids)


async def test_choices_are_prompt_major(calling, playing):
    def script(request):
        for choice in reversed(range(request.n)):
            yield Delta(choice, f"{request.prompt[0]}.{choice}", (1,), (), Finish("stop"))

    body = await calling(playing(script)).ask(prompt=[[5], [6]], n=2)
    assert [(choice["index"], choice["text"]) for choice in body["choices"]] == [
        (0, "5.0"),
        (1, "5.1"),
        (2, "6.0"),
        (3, "6.1"),
    ]


async def test_usage_counts_each_prompt_once_and_every_token(calling, playing, spell):
    body = await calling(playing(spell("four", cached=2))).ask(prompt=["abc", "de"], n=3)
    assert body["usage"] == {
        "prompt_tokens": 5,
        "completion_tokens": 24,
        "total_tokens": 29,
        "prompt_tokens_details": {"cached_tokens": 4},
    }


async def test_usage_counts_tokens_without_text(calling, playing):
    def script(_):
        yield Started()
        yield Delta(0, "", (1,))
        yield Delta(0, "é", (2, 3), (), Finish("stop"))

    body = await calling(playing(script)).ask()
    assert body["usage"]["completion_tokens"] == 3
    assert body["choices"][0]["text"] == "é"


@pytest.mark.parametrize(("stop", "wanted"), [("END", "END"), (13, 13), (None, None)])
async def test_stop_reason(calling, playing, stop, wanted):
    engine = playing(lambda _: [Delta(0, "a", (1,), (), Finish("stop", stop))])
    (choice,) = (await calling(engine).ask())["choices"]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", wanted)


@pytest.mark.parametrize("prompt", ["Once", ["Once", "Twice"], [72, 105], [[72, 105], [33]]])
async def test_echo_puts_each_prompt_first(caller, engine, prompt):
    body = await caller.ask(prompt=prompt, echo=True, n=2)
    shown = [engine.tokenizer.decode(request.prompt) for request in engine.requests]
    assert [choice["text"] for choice in body["choices"]] == [text + "ok" for text in shown for _ in range(2)]


async def test_echo_of_token_ids_shows_special_tokens(caller):
    body = await caller.ask(prompt=[256, 72], echo=True)
    assert body["choices"][0]["text"] == "<|begin|>Hok"


@pytest.mark.parametrize("prompt", ["a", ["a", "b"]])
@pytest.mark.parametrize(
    ("error", "fault", "values"),
    [
        (EngineRefused("no"), "engine_refused", {}),
        (EngineOverloaded("full"), "overloaded", {"retry_after": 1}),
        (EngineFailure("broken"), "engine_failure", {}),
    ],
)
async def test_errors_of_the_engine(calling, playing, prompt, error, fault, values):
    engine = playing(lambda _: [Started(), error])
    with pytest.raises(Fault) as caught:
        await calling(engine).ask(prompt=prompt)
    assert (caught.value.name, caught.value.values) == (fault, values)
    assert caught.value.__cause__ is error
    assert len(engine.closed) == len(engine.requests)


async def test_an_engine_that_ends_early_has_failed(calling, playing):
    engine = playing(lambda _: [Started(), Delta(0, "a", (1,))])
    with pytest.raises(Fault) as caught:
        await calling(engine).ask()
    assert caught.value.name == "engine_failure"
