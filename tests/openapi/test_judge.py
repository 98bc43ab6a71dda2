"""What the judge says of bodies for NIM's completions: the fault, where, and in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from isogloss_spec import Fault, FaultTable, Judge
from support.growth import calls_of

MINIMAL = {"model": "served", "prompt": "Once upon a time"}

# patch onto the minimal body, fault, param, status
CASES: list[tuple[dict[str, Any], str, str | None, int]] = [
    ({"x": 1}, "unknown_field", "x", 400),
    ({"stream": True, "stream_options": {"x": 1}}, "unknown_field", "stream_options.x", 400),
    ({"prompt": None}, "wrong_type", "prompt", 422),
    ({"prompt": 5}, "wrong_type", "prompt", 422),
    ({"prompt": ["a", 1]}, "wrong_type", "prompt", 422),
    ({"prompt": [[1], ["a"]]}, "wrong_type", "prompt", 422),
    ({"prompt": [1, True]}, "wrong_type", "prompt", 422),
    ({"prompt": ""}, "out_of_range", "prompt", 422),
    ({"prompt": []}, "out_of_range", "prompt", 422),
    ({"prompt": [-1]}, "out_of_range", "prompt", 422),
    ({"max_tokens": "2"}, "wrong_type", "max_tokens", 422),
    ({"max_tokens": 2.5}, "wrong_type", "max_tokens", 422),
    ({"max_tokens": 0}, "out_of_range", "max_tokens", 422),
    ({"echo": 1}, "wrong_type", "echo", 422),
    ({"echo": "true"}, "wrong_type", "echo", 422),
    ({"n": True}, "wrong_type", "n", 422),
    ({"add_special_tokens": None}, "wrong_type", "add_special_tokens", 422),
    ({"logprobs": 6}, "out_of_range", "logprobs", 422),
    ({"seed": 2**63}, "out_of_range", "seed", 422),
    ({"seed": 9223372036854776000}, "out_of_range", "seed", 422),
    ({"seed": -(2**63) - 1}, "out_of_range", "seed", 422),
    ({"top_p": 0}, "out_of_range", "top_p", 422),
    ({"top_p": 1.0001}, "out_of_range", "top_p", 422),
    ({"temperature": 999999.0}, "out_of_range", "temperature", 422),
    ({"user": ""}, "out_of_range", "user", 422),
    ({"stop": [""]}, "out_of_range", "stop", 422),
    ({"stop": [1]}, "wrong_type", "stop", 422),
    ({"logit_bias": {"You": 6}}, "out_of_range", "logit_bias", 422),
    ({"logit_bias": {"007": 6}}, "out_of_range", "logit_bias", 422),
    ({"logit_bias": {"1": "6"}}, "wrong_type", "logit_bias.1", 422),
    ({"logit_bias": {"2": 1, "10": None}}, "wrong_type", "logit_bias.10", 422),
    ({"logit_bias": {"": ""}}, "wrong_type", "logit_bias.", 422),
    ({"response_format": {}}, "missing_field", "response_format.type", 422),
    ({"response_format": {"type": "prose"}}, "out_of_range", "response_format.type", 422),
    ({"response_format": {"type": 5}}, "wrong_type", "response_format.type", 422),
    ({"response_format": {"type": "json_schema"}}, "missing_field", "response_format.json_schema", 422),
    ({"guided_decoding_backend": "other"}, "out_of_range", "guided_decoding_backend", 422),
    ({"guided_choice": []}, "out_of_range", "guided_choice", 422),
    ({"model": "other"}, "unknown_model", "model", 404),
    ({"n": 2, "best_of": 1}, "rule", "best_of", 400),
    ({"repetition_penalty": 0}, "rule", "repetition_penalty", 400),
    ({"min_p": 10**30}, "rule", "min_p", 400),
    ({"min_tokens": 17, "max_tokens": None}, "rule", "min_tokens", 400),
    ({"logit_bias": {"1": 100.5}}, "rule", "logit_bias", 400),
    ({"guided_json": "["}, "rule", "guided_json", 400),
    ({"best_of": 2}, "unsupported_feature", "best_of", 400),
    ({"suffix": "x"}, "unsupported_feature", "suffix", 400),
    ({"guided_regex": "a+"}, "unsupported_feature", "guided_regex", 400),
    ({"response_format": {"type": "json_object"}}, "unsupported_feature", "response_format", 400),
    ({"nvext": {"guided_regex": "a"}}, "unsupported_feature", "nvext", 400),
]
ACCEPTED: list[dict[str, Any]] = [
    {},
    {"best_of": 1},
    {"best_of": None, "suffix": None, "guided_json": None},
    {"response_format": {"type": "text"}},
    {"nvext": {}},
    {"max_tokens": 2.0},
    {"temperature": 1},
    {"temperature": 0, "n": None},
    {"seed": -(2**63)},
    {"logit_bias": {}},
    {"stop": []},
    {"prompt": [0]},
    {"prompt": [[0], [1, 2]]},
    {"stream": True, "stream_options": None},
]


@pytest.fixture(scope="module")
def judge(nim: dict[str, Any]) -> Judge:
    return Judge(nim, "create_completion", models={"served"}, features=frozenset())


@pytest.mark.parametrize(("patch", "name", "param", "status"), CASES, ids=lambda value: str(value)[:60])
def test_refused(
    judge: Judge, nim: dict[str, Any], patch: dict[str, Any], name: str, param: str | None, status: int
) -> None:
    with pytest.raises(Fault) as caught:
        judge.check(json.dumps(MINIMAL | patch).encode())
    answer = FaultTable(nim).render(caught.value)
    assert (caught.value.name, caught.value.param, answer.status) == (name, param, status)
    assert answer.body["code"] == status
    assert answer.body["param"] == param
    assert param.split(".")[0] in answer.body["message"]
    assert ("detail" in answer.body) == (status == 422)


@pytest.mark.parametrize("patch", ACCEPTED, ids=str)
def test_accepted(judge: Judge, patch: dict[str, Any]) -> None:
    judge.check(json.dumps(MINIMAL | patch).encode())


@pytest.mark.parametrize(
    ("body", "name", "param"),
    [
        ({"zzz": 1, "max_tokens": "1"}, "unknown_field", "zzz"),
        ({"model": "other", "max_tokens": "1"}, "missing_field", "prompt"),
        (MINIMAL | {"temperature": -1, "echo": 1}, "wrong_type", "echo"),
        (MINIMAL | {"model": "other", "temperature": -1}, "out_of_range", "temperature"),
        (MINIMAL | {"temperature": -1, "n": 0}, "out_of_range", "n"),
        (MINIMAL | {"model": "other", "top_k": 0}, "unknown_model", "model"),
        (MINIMAL | {"top_k": 0, "suffix": "x"}, "rule", "top_k"),
        (MINIMAL | {"top_k": 0, "echo": True, "stream": True}, "rule", "echo"),
    ],
    ids=str,
)
def test_the_first_fault_is_fixed(judge: Judge, body: dict[str, Any], name: str, param: str) -> None:
    with pytest.raises(Fault) as caught:
        judge.check_body(body)
    assert (caught.value.name, caught.value.param) == (name, param)


def test_a_body_that_is_no_object(judge: Judge, nim: dict[str, Any]) -> None:
    with pytest.raises(Fault) as caught:
        judge.check(b"[]")
    answer = FaultTable(nim).render(caught.value)
    assert answer.body["param"] is None
    assert answer.body["message"] == "'body' must be an object."


def test_effective_values(judge: Judge) -> None:
    sent = MINIMAL | {"n": None, "stream": True, "stream_options": {}}
    eff = judge.check_body(sent).eff
    assert (eff["n"], eff["max_tokens"], eff["temperature"], eff["top_k"]) == (1, 16, 1, -1)
    assert eff["stream_options"] == {"include_usage": False, "continuous_usage_stats": False}
    assert eff["seed"] is None
    assert eff["add_special_tokens"] is True


def test_whole_numbers_written_as_decimals_are_integers(judge: Judge) -> None:
    eff = judge.check_body(MINIMAL | {"n": 2.0, "prompt": [[1.0, 2], [3]], "temperature": 1.0}).eff
    assert (repr(eff["n"]), repr(eff["prompt"]), repr(eff["temperature"])) == ("2", "[[1, 2], [3]]", "1.0")


FITS = {
    "prompt_tokens_min": 3,
    "prompt_tokens_max": 4,
    "max_token_id": 9,
    "vocab_size": 10,
    "context_length": 20,
}


@pytest.mark.parametrize(
    ("patch", "context", "name", "param"),
    [
        ({}, {"prompt_tokens_max": 5}, "context_overflow", "max_tokens"),
        ({"max_tokens": 17}, {}, "context_overflow", "max_tokens"),
        ({}, {"max_token_id": 10}, "rule", "prompt"),
        ({}, {"prompt_tokens_min": 0}, "rule", "prompt"),
        ({"logit_bias": {"10": 1}}, {}, "rule", "logit_bias"),
        ({"prompt_logprobs": 11}, {}, "rule", "prompt_logprobs"),
    ],
)
def test_rules_of_the_prompt(
    judge: Judge, patch: dict[str, Any], context: dict[str, int], name: str, param: str
) -> None:
    verdict = judge.check_body(MINIMAL | patch)
    with pytest.raises(Fault) as caught:
        judge.check_prompt(verdict, FITS | context)
    assert (caught.value.name, caught.value.param) == (name, param)


def test_a_prompt_that_just_fits(judge: Judge) -> None:
    judge.check_prompt(judge.check_body(MINIMAL | {"logit_bias": {"9": 1}, "max_tokens": 16}), FITS)


def test_no_text_of_the_request_shows_in_an_error(judge: Judge, nim: dict[str, Any]) -> None:
    secret = "s3cr3t"
    bodies = [
        MINIMAL | {"max_tokens": secret},
        MINIMAL | {"guided_decoding_backend": secret},
        MINIMAL | {"guided_json": secret},
        MINIMAL | {"response_format": {"type": secret}},
        MINIMAL | {"logit_bias": {"1": secret}},
    ]
    for body in bodies:
        with pytest.raises(Fault) as caught:
            judge.check_body(body)
        assert secret not in json.dumps(FaultTable(nim).render(caught.value).body)


def test_names_of_the_request_are_cut_to_64_printable_characters(judge: Judge, nim: dict[str, Any]) -> None:
    with pytest.raises(Fault) as caught:
        judge.check_body(MINIMAL | {"model": "a\x1b" + "b" * 200})
    message = FaultTable(nim).render(caught.value).body["message"]
    assert "\x1b" not in message
    assert len(message) < 120


def test_a_huge_bad_body_costs_a_look_at_each_item(judge: Judge) -> None:
    raw = b'{"model": "served", "prompt": [' + b"[]," * 1_000_000 + b"1]}"

    def work() -> None:
        with pytest.raises(Fault):
            judge.check(raw)

    # A look at each of the million items is two calls; saying what is wrong with each would be dozens.
    assert calls_of(work) < 3_000_000
