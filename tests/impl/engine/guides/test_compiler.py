"""Guides that are wrong, hostile or many."""

from __future__ import annotations

import asyncio
import json
import os
import signal

import pytest
from isogloss.engine.api import EngineFailure, EngineOverloaded, Guide, GuideError
from isogloss.engine.guides.compiler import CompilerLimits, GuideCompiler
from isogloss.engine.scripted.vocabulary import guide_vocabulary

GOOD = Guide("regex", "a+")
EXPLOSIVE = Guide("regex", "(a{1000}){1000}")
CRASHING = Guide("grammar", "start: r0\n" + "\n".join(f'r{i}: "a" r{i + 1}' for i in range(9000)) + '\nr9000: "b"\n')


@pytest.fixture
def compiled(compiler, monkeypatch: pytest.MonkeyPatch) -> list[Guide]:
    """The guides that a worker was asked about."""
    asked: list[Guide] = []
    compile = compiler._compile
    monkeypatch.setattr(compiler, "_compile", lambda guide: (asked.append(guide), compile(guide))[1])
    return asked


def schema(text: object) -> Guide:
    return Guide("json_schema", text if isinstance(text, str) else json.dumps(text))


@pytest.mark.parametrize(
    ("guide", "flaw"),
    [
        (Guide("regex", "("), "invalid"),
        (Guide("regex", r"(a)\1"), "unsupported"),
        (Guide("regex", "(?=a)a"), "unsupported"),
        (Guide("regex", "a\\"), "invalid"),
        (Guide("regex", "\\"), "invalid"),
        (Guide("regex", "foo**"), "invalid"),
        (Guide("regex", "a{2}{3}"), "invalid"),
        (schema({"type": "string", "pattern": "a+*"}), "invalid"),
        (schema({"type": "string", "pattern": "a\\"}), "invalid"),
        (schema({"type": "object", "patternProperties": {"a\\": True}}), "invalid"),
        (schema({"properties": {"a": {"type": "array", "x-guidance": {"item_separator": "Z"}}}}), "unsupported"),
        (Guide("grammar", 'start: %json {"x-guidance": {"lenient": true}}'), "unsupported"),
        (Guide("grammar", '{"grammars": [{"json_schema": {}}]}'), "unsupported"),
        (Guide("json_schema", "{}", whitespace="x"), "invalid"),
        (Guide("json_schema", "{}", whitespace=r"\s*|y"), "invalid"),
        (Guide("regex", "[a&&b]"), "unsatisfiable"),
        (Guide("grammar", "nonsense"), "invalid"),
        (Guide("grammar", "start: x"), "invalid"),
        (Guide("grammar", 'root ::= "a'), "invalid"),
        (Guide("grammar", 'other ::= "a"'), "invalid"),
        (Guide("grammar", "root ::= " + "(" * 5000), "too_complex"),
        (schema({"type": "nonsense"}), "invalid"),
        (schema({"properties": 7}), "invalid"),
        (schema({"pattern": "("}), "invalid"),
        (schema("[1]"), "invalid"),
        (schema("{"), "invalid"),
        (schema('{"minimum": NaN}'), "invalid"),
        (schema('{"items":' * 20_000), "too_complex"),
        (schema({"$schema": "http://169.254.169.254/x"}), "unsupported"),
        (schema({"$ref": "http://169.254.169.254/x"}), "unsupported"),
        (schema({"type": "array", "uniqueItems": True}), "unsupported"),
        (schema({"type": "string", "format": "regex"}), "unsupported"),
        (schema({"type": "string", "minLength": 3, "maxLength": 2}), "unsatisfiable"),
        (schema({"$ref": "#"}), "unsatisfiable"),
        (schema({"x-guidance": {"lenient": True}, "type": "array", "uniqueItems": True}), "unsupported"),
    ],
)
async def test_a_flaw_is_told(compiler, guide: Guide, flaw: str) -> None:
    await compiler.ready(GOOD)  # the worker has started
    with pytest.raises(GuideError) as caught:
        await asyncio.wait_for(compiler.ready(guide), 30)
    assert caught.value.flaw == flaw


async def test_a_flaw_in_the_whitespace_is_told_apart(compiler) -> None:
    with pytest.raises(GuideError) as caught:
        await compiler.ready(Guide("json_object", whitespace="("))
    assert caught.value.whitespace


@pytest.mark.parametrize("guide", [EXPLOSIVE, CRASHING])
async def test_hostile_guides_hurt_nobody(compiler, guide: Guide) -> None:
    hostile = asyncio.create_task(compiler.ready(guide))
    await asyncio.sleep(0.05)
    good = Guide("regex", f"{guide.kind}+")
    assert await asyncio.wait_for(compiler.ready(good), 60)
    with pytest.raises(GuideError, match="too_complex"):
        await asyncio.wait_for(hostile, 60)


async def test_time_is_bounded() -> None:
    compiler = GuideCompiler(guide_vocabulary(), CompilerLimits(seconds=0.0))
    with pytest.raises(GuideError, match="too_complex"):
        await compiler.ready(EXPLOSIVE)
    compiler.close()


async def test_size_is_bounded(compiler) -> None:
    with pytest.raises(GuideError, match="too_complex"):
        await compiler.ready(Guide("regex", "a" * 300_000))
    with pytest.raises(GuideError, match="too_complex"):
        await compiler.ready(Guide("choice", choices=("a" * 70_000,) * 4))


async def test_equal_guides_are_compiled_once(compiler, compiled) -> None:
    same = [Guide("regex", "once+") for _ in range(3)]
    found = await asyncio.gather(*map(compiler.ready, same))
    assert found[0].start is found[1].start is found[2].start
    for _ in range(2):
        with pytest.raises(GuideError):
            await compiler.ready(Guide("regex", "once("))
    assert [guide.text for guide in compiled] == ["once+", "once("]


@pytest.mark.parametrize("limits", [CompilerLimits(cached_text=4, workers=1), CompilerLimits(cached=2, workers=1)])
async def test_old_guides_make_room(limits: CompilerLimits) -> None:
    compiler = GuideCompiler(guide_vocabulary(), limits)
    first = await compiler.ready(Guide("regex", "a{4}"))
    await compiler.ready(Guide("regex", "b{4}"))
    await compiler.ready(Guide("regex", "c{4}"))
    again = await compiler.ready(Guide("regex", "a{4}"))
    assert again.start is not first.start
    compiler.close()


async def test_too_many_guides_are_an_overload() -> None:
    compiler = GuideCompiler(guide_vocabulary(), CompilerLimits(workers=1, waiting_seconds=0.06))
    waiting = [asyncio.create_task(compiler.ready(Guide("regex", f"a{{{n}}}"))) for n in (1, 2)]
    await asyncio.sleep(0)
    with pytest.raises(EngineOverloaded):
        await compiler.ready(Guide("regex", "a{3}"))
    await asyncio.gather(*waiting)
    await compiler.ready(Guide("regex", "a{3}"))
    compiler.close()


async def test_one_caller_less_is_no_loss_for_the_others(compiler) -> None:
    guide = Guide("regex", "shared+")
    leaves, stays = (asyncio.create_task(compiler.ready(guide)) for _ in range(2))
    await asyncio.sleep(0)
    leaves.cancel()
    assert (await stays).text == "shared+"


async def test_a_worker_that_died_is_replaced() -> None:
    compiler = GuideCompiler(guide_vocabulary(), CompilerLimits(workers=1))
    await compiler.ready(GOOD)
    process = compiler._workers[0]._process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert (await compiler.ready(Guide("regex", "b+"))).text == "b+"
    compiler.close()


async def test_closing_ends_who_waits() -> None:
    compiler = GuideCompiler(guide_vocabulary(), CompilerLimits(workers=1))
    waiting = [asyncio.create_task(compiler.ready(Guide("regex", f"a{{{n}}}"))) for n in (1, 2, 3)]
    await asyncio.sleep(0)
    compiler.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(results[-1], EngineFailure)
    with pytest.raises(EngineFailure):
        await compiler.ready(GOOD)
    assert not any(process.alive for process in compiler._workers)


@pytest.mark.parametrize("pattern", ["", " ", r"\s*", "[ ]?", r"[ \n\t]*", r"[\x20\x0A]{0,3}", "(?: |\n)*"])
async def test_patterns_of_blanks_are_taken(compiler, pattern: str) -> None:
    assert await compiler.ready(Guide("json_schema", '{"type": "object"}', whitespace=pattern))


def explosive(number: int) -> Guide:
    return Guide("regex", f"(a{{1000}}){{{1000 + number}}}")


async def test_a_flood_of_explosive_guides_is_shed_and_forgotten_when_its_callers_leave() -> None:
    compiler = GuideCompiler(guide_vocabulary())
    try:
        await compiler.ready(GOOD)
        for number in range(4):  # after these the compiler knows that guides take long
            with pytest.raises(GuideError):
                await compiler.ready(explosive(number))
        flood = [asyncio.create_task(compiler.ready(explosive(number))) for number in range(10, 60)]
        await asyncio.sleep(0.2)
        shed = [task for task in flood if task.done() and isinstance(task.exception(), EngineOverloaded)]
        assert len(shed) > 30
        for task in flood:
            task.cancel()
        await asyncio.gather(*flood, return_exceptions=True)
        # The flood would take more than a minute.
        assert await asyncio.wait_for(compiler.ready(Guide("regex", "z[a-f]{3}")), 30)
    finally:
        compiler.close()


async def test_an_explosive_guide_is_remembered(compiler, compiled) -> None:
    for _ in range(2):
        with pytest.raises(GuideError):
            await compiler.ready(explosive(99))
    assert compiled == [explosive(99)]
