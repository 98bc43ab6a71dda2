"""Laws about parts of calls and about thoughts hold for good streams and find each kind of bad one."""

from __future__ import annotations

from typing import Any

import pytest
from isogloss_conformance.streams import call_laws


def part(index: Any, arguments: Any = "", **first: Any) -> dict[str, Any]:
    named = {"name": first.pop("name")} if "name" in first else {}
    return {"index": index, **first, "function": {**named, "arguments": arguments}}


def begin(index: int, name: str = "f", **members: Any) -> dict[str, Any]:
    return part(index, name=name, **{"id": f"c{index}", "type": "function", **members})


def chunk(*parts: dict[str, Any], finish: str | None = None, **delta: Any) -> dict[str, Any]:
    calls = {"tool_calls": list(parts)} if parts else {}
    return {"choices": [{"index": 0, "delta": {"content": "", **delta, **calls}, "finish_reason": finish}]}


def whole(*functions: tuple[str, str], finish: str = "tool_calls", **message: Any) -> dict[str, Any]:
    calls = [{"id": "x", "function": {"name": name, "arguments": arguments}} for name, arguments in functions]
    return {"choices": [{"message": {"content": "", "tool_calls": calls, **message}, "finish_reason": finish}]}


GOOD = [
    chunk(begin(0)),
    chunk(part(0, "{}"), begin(1, "g")),
    chunk(part(1, "[")),
    chunk(part(1, "]"), finish="tool_calls"),
]


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ([part(0, "{}")], "lacks id, type or name"),
        ([begin(0, id="")], "lacks id, type or name"),
        ([begin(0, type=None)], "lacks id, type or name"),
        ([begin(1)], "index 1 after 0"),
        ([begin(0), part(-1, "")], "index -1"),
        ([begin(0), part("0", "")], "index '0'"),
        ([begin(0), part(0, None)], "are None"),
        ([begin(0), part(0, {})], "are {}"),
        ([begin(0), part(0, "", id="c1")], "id of call 0 changes"),
        ([begin(0), part(0, "", name="f")], "name of call 0 comes again"),
        ([begin(0), begin(1, id="c0")], "share 1 ids"),
    ],
)
def test_parts(parts: list[dict[str, Any]], wrong: str) -> None:
    assert wrong in str(call_laws.joined([chunk(one) for one in parts]))
    assert wrong in str(call_laws.equal_calls([chunk(*parts)], whole()))


def test_joined_calls_are_those_of_the_whole() -> None:
    assert call_laws.equal_calls(GOOD, whole(("f", "{}"), ("g", "[]"))) is None
    assert "joined" in str(call_laws.equal_calls(GOOD, whole(("f", "{}"))))
    assert "joined" in str(call_laws.equal_calls(GOOD, whole(("f", "{}"), ("g", "[ ]"))))
    assert "joined" in str(call_laws.equal_calls(GOOD, whole(("f", "{}"), ("g", "[]"), content="a")))
    assert call_laws.equal_calls([chunk()], whole()) == "no call came"


@pytest.mark.parametrize(
    ("finish", "calls", "wanted", "fine"),
    [
        ("tool_calls", True, None, True),
        ("tool_calls", True, "tool_calls", True),
        ("length", True, None, True),
        ("length", False, None, True),
        ("stop", False, None, True),
        ("stop", True, None, False),
        ("tool_calls", False, None, False),
        ("length", True, "tool_calls", False),
        ("tool_calls", True, "length", False),
    ],
)
def test_ends(finish: str, calls: bool, wanted: str | None, fine: bool) -> None:
    functions = [("f", "{}")] if calls else []
    assert (call_laws.ended([whole(*functions, finish=finish)], wanted) is None) is fine
    stream = [chunk(begin(0)) if calls else chunk(), chunk(finish=finish)]
    assert (call_laws.ended(stream, wanted) is None) is fine


def test_thoughts() -> None:
    stream = [chunk(reasoning_content="h"), chunk(reasoning_content="m", content="Y"), chunk(content="es")]
    assert call_laws.equal_thoughts(stream, whole(reasoning_content="hm", content="Yes")) is None
    assert "joined" in str(call_laws.equal_thoughts(stream, whole(reasoning_content="h", content="Yes")))
    assert "joined" in str(call_laws.equal_thoughts(stream, whole(reasoning_content="hm", content="hmYes")))
    late = [chunk(content="Y"), chunk(reasoning_content="hm"), chunk(content="es")]
    assert "follows" in str(call_laws.equal_thoughts(late, whole(reasoning_content="hm", content="Yes")))


def test_what_is_cut_inside_a_thought_proves_nothing() -> None:
    assert call_laws.only_thinks(whole(reasoning_content="hm", finish="length"))
    assert not call_laws.only_thinks(whole(reasoning_content="hm", finish="stop"))
    assert not call_laws.only_thinks(whole(reasoning_content="hm", content="Y", finish="length"))
    assert not call_laws.only_thinks(whole(("f", ""), reasoning_content="hm", finish="length"))
    assert not call_laws.only_thinks(whole(finish="length"))
    assert not call_laws.only_thinks({})
