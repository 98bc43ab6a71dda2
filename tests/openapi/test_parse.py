"""Bytes to JSON: what is let in and what is not."""

from __future__ import annotations

import pytest
from isogloss_spec.faults import Fault
from isogloss_spec.parse import parse

REFUSED = {
    "empty": b"",
    "cut off": b'{"a": 1',
    "trailing text": b"{} x",
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": -Infinity}',
    "a double overflows": b'{"a": 1e400}',
    "a double overflows deep down": b'{"a": [{"b": [0, 123e456]}]}',
    "a long decimal overflows": b'{"a": ' + b"9" * 400 + b".5}",
    "a key twice": b'{"a": 1, "a": 2}',
    "a key twice deep down": b'{"x": {"a": 1, "a": 1}}',
    "a lone surrogate": b'{"a": "\\ud800"}',
    "5,000 digits": b'{"a": ' + b"9" * 5000 + b"}",
    "nested 12,000 deep": b"[" * 12_000 + b"]" * 12_000,
    "a byte order mark": b"\xef\xbb\xbf{}",
    "another charset": '{"a": "é"}'.encode("utf-16"),
}


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED)
def test_refused(raw: bytes) -> None:
    with pytest.raises(Fault) as caught:
        parse(raw)
    assert caught.value.name == "malformed_json"


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"{}", {}),
        (b" [1, 2.5, null, true] ", [1, 2.5, None, True]),
        (b"18446744073709551616", 2**64),
        (b'{"a": 1e10}', {"a": 1e10}),
        (b'"1e999 is only text"', "1e999 is only text"),
        (b'"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
        (b"[" * 100 + b"]" * 100, None),
    ],
)
def test_let_in(raw: bytes, value: object) -> None:
    parsed = parse(raw)
    assert value is None or parsed == value


@pytest.mark.parametrize(
    ("raw", "refused"),
    [
        (b'{"a": [{}]}', False),
        (b'{"a": [{}, []]}', True),
        (b'{"a": "[[[[[{{{{{"}', False),
        (b'[{"a": [[{"b": 1}]]}]', True),
    ],
)
def test_objects_and_lists_are_counted(raw: bytes, refused: bool) -> None:
    if not refused:
        parse(raw, 3)
        return
    with pytest.raises(Fault, match="malformed_json") as caught:
        parse(raw, 3)
    assert caught.value.values["reason"] == "it holds too many objects and lists"


def test_the_reason_speaks_of_the_place_and_never_of_the_text() -> None:
    with pytest.raises(Fault) as caught:
        parse(b'{"secret-key": "secret-value", "secret-key": 2}')
    reason = caught.value.values["reason"]
    assert "line 1" in reason
    assert "secret" not in reason
