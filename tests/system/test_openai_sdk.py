"""The openai SDK against the scripted engine and against a real language model."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest
from support.server import KEY, Server

PROMPT = "The capital of France is"


def sdk(server: Server, key: str = "none", prefix: str = "/nim") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}{prefix}/v1", api_key=key, max_retries=0)


@pytest.fixture(params=["scripted", pytest.param("real", marks=pytest.mark.model)])
def client(request: pytest.FixtureRequest) -> Iterator[openai.OpenAI]:
    with sdk(request.getfixturevalue(request.param)) as client:
        yield client


@pytest.fixture
def model(client: openai.OpenAI) -> str:
    return client.models.list().data[0].id


def test_text(client: openai.OpenAI, model: str) -> None:
    answer = client.completions.create(model=model, prompt=PROMPT, max_tokens=5, temperature=0)
    assert answer.choices[0].text
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_says_what_the_plain_answer_says(client: openai.OpenAI, model: str) -> None:
    body = {"model": model, "prompt": PROMPT, "max_tokens": 12, "temperature": 0}
    plain = client.completions.create(**body)
    chunks = list(client.completions.create(**body, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == plain.choices[0].text
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == plain.usage.completion_tokens
    assert len({chunk.id for chunk in chunks}) == 1
    assert len(chunks) > 3


def test_several_prompts_and_choices(client: openai.OpenAI, model: str) -> None:
    answer = client.completions.create(model=model, prompt=["One", "Two"], n=3, max_tokens=3, seed=1)
    assert [choice.index for choice in answer.choices] == list(range(6))
    assert len({choice.text for choice in answer.choices}) > 1


def test_fields_of_the_dialect_go_into_extra_body(client: openai.OpenAI, model: str) -> None:
    body = {"model": model, "prompt": PROMPT, "max_tokens": 8, "temperature": 0}
    extra = {"min_tokens": 8, "ignore_eos": True, "top_k": 1, "repetition_penalty": 1.3}
    answer = client.completions.create(**body, extra_body=extra)
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 8


def test_logprobs_and_echo(client: openai.OpenAI, model: str) -> None:
    answer = client.completions.create(model=model, prompt=PROMPT, max_tokens=2, logprobs=2, echo=True, temperature=0)
    found = answer.choices[0].logprobs
    assert answer.choices[0].text.startswith(PROMPT)
    assert found is not None
    assert found.token_logprobs[0] is None
    assert all(value <= 0 for value in found.token_logprobs[1:])
    assert len(found.tokens) == len(found.text_offset) == len(found.top_logprobs)
    assert "".join(found.tokens) == answer.choices[0].text


def test_errors_by_class(client: openai.OpenAI, model: str) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.completions.create(model="no-such-model", prompt="x")
    assert missing.value.type == "NotFoundError"
    with pytest.raises(openai.UnprocessableEntityError) as invalid:
        client.completions.create(model=model, prompt="x", max_tokens=0)
    assert invalid.value.param == "max_tokens"
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model=model, prompt="x", echo=True, stream=True)
    assert refused.value.param == "echo"
    with pytest.raises(openai.BadRequestError, match="tokens"):
        client.completions.create(model=model, prompt="a b c " * 20_000)


def test_the_default_dialect_answers_without_a_prefix(scripted: Server) -> None:
    with sdk(scripted, prefix="") as client:
        assert client.completions.create(model="scripted", prompt=PROMPT, max_tokens=1).choices


def test_one_server_speaks_all_dialects(scripted: Server) -> None:
    said = []
    for name in ("nim", "atoma", "acs"):
        with sdk(scripted, prefix=f"/{name}") as client:
            body = {"model": client.models.list().data[0].id, "prompt": PROMPT, "max_tokens": 9, "temperature": 0}
            plain = client.completions.create(**body)
            chunks = list(client.completions.create(**body, stream=True, stream_options={"include_usage": True}))
        assert "".join(chunk.choices[0].text for chunk in chunks[:-1]) == plain.choices[0].text
        assert chunks[-1].usage.total_tokens == plain.usage.total_tokens
        said.append(plain.choices[0].text)
    assert len(set(said)) == 1
    with sdk(scripted, prefix="/mindie") as client:
        body = {"model": client.models.list().data[0].id, "max_tokens": 9, "temperature": 0}
        body["messages"] = [{"role": "user", "content": PROMPT}]
        answer = client.chat.completions.create(**body)
        chunks = list(client.chat.completions.create(**body, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == answer.choices[0].message.content


def test_best_of_returns_the_likeliest(client: openai.OpenAI, model: str) -> None:
    body = {"model": model, "prompt": PROMPT, "max_tokens": 4, "seed": 5, "logprobs": 0}
    candidates = client.completions.create(**body, n=4)
    best = client.completions.create(**body, n=2, best_of=4)
    totals = sorted((sum(choice.logprobs.token_logprobs) for choice in candidates.choices), reverse=True)
    assert [sum(choice.logprobs.token_logprobs) for choice in best.choices] == pytest.approx(totals[:2], abs=0.05)
    assert best.usage.completion_tokens == candidates.usage.completion_tokens


def test_a_key_is_asked_for(keyed: Server) -> None:
    with sdk(keyed, "wrong") as client, pytest.raises(openai.AuthenticationError):
        client.models.list()
    with sdk(keyed, KEY) as client:
        assert client.completions.create(model="scripted", prompt=PROMPT, max_tokens=1).choices


@pytest.mark.model
def test_the_real_model_knows_something(real: Server) -> None:
    with sdk(real) as client:
        model = client.models.list().data[0].id
        answer = client.completions.create(model=model, prompt=PROMPT, max_tokens=6, temperature=0)
    assert "Paris" in answer.choices[0].text
