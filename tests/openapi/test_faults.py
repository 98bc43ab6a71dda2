"""Faults become bodies by the document's templates and nothing else."""

from __future__ import annotations

from isogloss_spec.faults import Fault, FaultTable, fill, param_of, shown_name, shown_path

DOCUMENT = {
    "x-error-bodies": {
        "nested": {
            "error": {"message": "{message}", "param": "{param}", "loc": "{loc}", "code": "{code}"},
            "id": "{request_id}",
        }
    },
    "x-faults": {
        "overloaded": {
            "status": 503,
            "body": "nested",
            "message": "Wait {retry_after} s.",
            "headers": {"Retry-After": "{retry_after}"},
        },
        "out_of_range": {
            "status": 400,
            "body": "nested",
            "code": "bad",
            "message": "No.",
            "messages": {"maximum": "'{path}' is at most {limit}."},
        },
    },
}


def test_headers_and_messages_are_filled() -> None:
    answer = FaultTable(DOCUMENT).render(Fault("overloaded", values={"retry_after": 7}), request_id="r1")
    assert (answer.status, answer.headers) == (503, {"Retry-After": "7"})
    assert answer.body["error"] == {"message": "Wait 7 s.", "param": None, "loc": ["body"], "code": None}
    assert answer.body["id"] == "r1"


def test_a_keyword_has_its_own_message() -> None:
    table = FaultTable(DOCUMENT)
    place = {"param": "a", "path": ("a", 3)}
    answer = table.render(Fault("out_of_range", keyword="maximum", values={"limit": 2.0}, **place))
    assert answer.body["error"] == {
        "message": "'a[3]' is at most 2.",
        "param": "a",
        "loc": ["body", "a", 3],
        "code": "bad",
    }
    assert table.render(Fault("out_of_range", keyword="pattern")).body["error"]["message"] == "No."


def test_placeholders_keep_types_only_when_alone() -> None:
    assert fill(["{a}", "<{a}>", {"b": "{missing}"}], {"a": [1, 2]}) == [[1, 2], "<1, 2>", {"b": None}]


def test_values_are_not_templates() -> None:
    assert fill("{a}{b}", {"a": "{b}", "b": "x"}) == "{b}x"


def test_paths_read_well() -> None:
    assert shown_path(("messages", 0, "content", 2, "type")) == "messages[0].content[2].type"
    assert param_of(("prompt", 0, 3)) == "prompt"
    assert param_of(("messages", 0, "role")) == "messages[0].role"
    assert param_of(()) is None
    assert shown_name("a\nb") == "a?b"
