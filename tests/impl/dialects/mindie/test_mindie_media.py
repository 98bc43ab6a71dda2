"""Media in messages: every spelling, what is refused and how, and that nothing is got in vain."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest
from isogloss.dialects.mindie_config import MindIEConfig
from isogloss.engine.media import Audio, Image, MediaRefused, Video
from isogloss.engine.scripted import ScriptedEngine
from isogloss.media.api import Inline, MediaError, MediaReason, Reference
from isogloss_api import document
from isogloss_spec.faults import Fault, FaultTable
from isogloss_spec.media import MediaLimits

SECRET = "http://somewhere.example/secret.png"
WORDS = {"type": "text", "text": "What is this?"}


class Loader:
    """Gives each address its own medium, or what the test put in its place; remembers all it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.rules: list[Any] = []
        self.budgets: list[Any] = []
        self.answers: dict[str, Any] = {}
        self.cancelled: list[str] = []
        self.running = self.most = 0

    async def load(self, source: Any, rules: Any, processor: Any, budget: Any) -> Any:
        self.asked.append(source)
        self.rules.append(rules)
        self.budgets.append(budget)
        text = source.text if isinstance(source, Reference) else source.base64
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await self._found(text, rules.kind)
        except asyncio.CancelledError:
            self.cancelled.append(text)
            raise
        finally:
            self.running -= 1

    async def _found(self, text: str, kind: str) -> Any:
        found = self.answers.get(text)
        if isinstance(found, Exception):
            raise found
        await (asyncio.sleep(0.01) if found is None else found.wait())
        pixels = np.full((64, 32, 3), sum(text.encode()) % 256, dtype=np.uint8)
        sound = np.zeros(16_000, dtype=np.float32)
        return {"image": Image(pixels), "video": Video(pixels[None], 1.0), "audio": Audio(sound, 16_000)}[kind]


@pytest.fixture
def loader() -> Loader:
    return Loader()


@pytest.fixture
async def scripted(calling, loader):
    engine = ScriptedEngine()
    await engine.start()
    yield calling(engine, media=loader)
    await engine.stop()


def user(*parts: Any) -> list[Any]:
    return [{"role": "user", "content": [*parts]}]


async def refused(caller: Any, **fields: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        await caller.ask(**fields)
    return caught.value


@pytest.mark.parametrize(
    ("part", "kind", "source", "limit", "tokens"),
    [
        ({"type": "image_url", "image_url": "demo.png"}, "image", Reference("demo.png"), 40, 8),
        ({"image_url": {"url": "https://a.example/b"}}, "image", Reference("https://a.example/b"), 40, 8),
        ({"image_url": {"url": "file://demo.png"}}, "image", Reference("file://demo.png"), 40, 8),
        ({"image_url": "data:image/png;base64,eA=="}, "image", Reference("data:image/png;base64,eA=="), 40, 8),
        ({"image_url": "/9j/4AAQSkZJRg=="}, "image", Reference("/9j/4AAQSkZJRg=="), 40, 8),
        ({"type": "video_url", "video_url": {"url": "a.mp4"}}, "video", Reference("a.mp4"), 512, 8),
        ({"type": "audio_url", "audio_url": "a.wav"}, "audio", Reference("a.wav"), 40, 4),
        ({"input_audio": {"data": "eA==", "format": "mp3"}}, "audio", Inline("eA==", "mp3"), 20, 4),
    ],
)
async def test_each_spelling_reaches_the_loader_and_the_prompt(scripted, loader, part, kind, source, limit, tokens):
    plain = (await scripted.ask(messages=user(WORDS), max_tokens=2))["usage"]["prompt_tokens"]
    body = await scripted.ask(messages=user(WORDS, part), max_tokens=2)
    assert loader.asked == [source]
    assert (loader.rules[0].kind, loader.rules[0].max_bytes) == (kind, limit * 2**20)
    assert body["usage"]["prompt_tokens"] == plain + tokens
    assert scripted.context["prompt_tokens_max"] == plain + tokens


async def test_formats_stand_in_the_document(scripted, loader):
    await scripted.ask(messages=user({"image_url": "a"}, {"video_url": "b"}, {"audio_url": "c"}), max_tokens=1)
    image, video, audio = sorted(loader.rules, key=lambda rules: ["image", "video", "audio"].index(rules.kind))
    assert (image.formats, image.bare) == ({"jpeg": "image/jpeg", "png": "image/png"}, {"jpeg": "/9j/"})
    assert video.formats == {"mp4": "video/mp4", "avi": "video/x-msvideo", "wmv": "video/x-ms-wmv"}
    assert audio.formats == {"mp3": "audio/mpeg", "wav": "audio/x-wav", "flac": "audio/flac"}


async def test_the_answer_depends_on_the_picture(scripted):
    async def text(address: str) -> str:
        body = await scripted.ask(messages=user({"image_url": address}, WORDS), temperature=0, max_tokens=12)
        return body["choices"][0]["message"]["content"]

    first, same, other = [await text(address) for address in ("a", "a", "b")]
    assert first == same != other


async def test_parts_keep_their_order(calling, engine, loader):
    scripted = ScriptedEngine()
    engine.processor, engine.features = scripted.processor, scripted.features
    engine.card = replace(engine.card, context_length=256)
    caller = calling(engine, media=loader)
    await caller.ask(messages=user({"text": "a"}, {"image_url": "x"}, {"text": "b"}, {"audio_url": "y"}))
    (request,) = engine.requests
    placeholder = {kind: engine.tokenizer.encode_chat(user({"type": kind}))[9] for kind in ("image", "audio")}
    wanted = [97, *[placeholder["image"]] * 8, 98, *[placeholder["audio"]] * 4]
    start = request.prompt.index(97)
    assert request.prompt[start : start + len(wanted)] == wanted
    assert request.media is not None


async def test_texts_alone_need_no_loader(scripted, loader):
    await scripted.ask(messages=user(WORDS, {"text": "x"}), max_tokens=1)
    assert loader.asked == []


@pytest.mark.parametrize("reason", sorted({*get_args(MediaReason)} - {"busy", "no_room"}))
async def test_a_refusal_names_the_part_and_not_the_address(scripted, loader, reason):
    loader.answers[SECRET] = MediaError(reason)
    messages = [{"role": "system", "content": "x"}, *user(WORDS, {"image_url": {"url": SECRET}})]
    fault = await refused(scripted, messages=messages)
    answer = FaultTable(document("mindie")).render(fault)
    assert (fault.name, fault.param) == ("mindie.media_refused", "messages[1].content[1].image_url")
    assert (answer.status, answer.body["error_type"]) == (422, "Input Validation Error")
    text = document("mindie")["x-faults"]["mindie.media_refused"]["reasons"][reason]
    assert answer.body["error"] == f"'messages[1].content[1].image_url' cannot be used: {text}."


@pytest.mark.parametrize("reason", ["busy", "no_room"])
async def test_a_server_without_room_asks_to_come_back(scripted, loader, reason):
    loader.answers["a"] = MediaError(reason)
    assert (await refused(scripted, messages=user({"image_url": "a"}))).name == "overloaded"


async def test_what_the_model_cannot_take(scripted, loader):
    loader.answers["a"] = MediaRefused("the picture is too narrow")
    fault = await refused(scripted, messages=user({"audio_url": "b"}, {"image_url": "a"}))
    assert (fault.param, fault.values["reason"]) == ("messages[0].content[1].image_url", "unsuitable")


async def test_what_leaves_nothing_in_its_place(scripted, monkeypatch):
    def place(*_: object) -> None:
        raise MediaRefused("the sound is too short", 1)

    monkeypatch.setattr(type(scripted.engine.processor), "place", place)
    fault = await refused(scripted, messages=user({"audio_url": "b"}, WORDS, {"audio_url": "a"}))
    assert (fault.param, fault.values["reason"]) == ("messages[0].content[2].audio_url", "unsuitable")


async def test_a_template_without_a_place_for_it(scripted, monkeypatch):
    monkeypatch.setattr(type(scripted.engine.tokenizer), "encode_chat", lambda *_, **__: [1, 2, 3])
    fault = await refused(scripted, messages=user({"image_url": "a"}))
    assert (fault.name, fault.param, fault.values["reason"]) == ("mindie.media_refused", "messages", "misplaced")


async def test_the_first_of_several_faults_is_told(scripted, loader):
    held = asyncio.Event()
    loader.answers |= {"a": held, "b": MediaError("broken"), "c": MediaError("too_large")}
    task = asyncio.create_task(refused(scripted, messages=user({"image_url": "a"}, *parts("c", "b"))))
    await asyncio.sleep(0.02)
    held.set()
    fault = await task
    assert (fault.param, fault.values["reason"]) == ("messages[0].content[1].image_url", "too_large")


async def test_a_refusal_keeps_no_other_medium_until_the_garbage_collector_runs(scripted, loader, monkeypatch):
    seen = []
    found = loader._found

    async def watched(text: str, kind: str) -> Any:
        medium = await found(text, kind)
        seen.append(weakref.ref(medium.pixels))
        return medium

    monkeypatch.setattr(loader, "_found", watched)
    loader.answers["b"] = MediaError("broken")
    gc.disable()
    try:
        for addresses in ("ab", "acb"):
            with contextlib.suppress(Fault):  # pytest's own way would keep the error
                await scripted.ask(messages=user(*parts(*addresses)))
            await asyncio.sleep(0)  # the loop itself lets go of what it has just told
        assert seen
        assert [one() for one in seen if one() is not None] == []
    finally:
        gc.enable()


def parts(*addresses: str) -> list[Any]:
    return [{"image_url": address} for address in addresses]


REFUSED = [
    ({"messages": user(*parts(*"abcdefghijklmnopqrstu"))}, "messages/media_parts"),
    ({"messages": user({"image_url": "a" * 4097})}, "messages/media_address"),
    ({"messages": user({"video_url": {"url": "/9j/" + "a" * 4096}})}, "messages/media_address"),
    ({"messages": [*user(*parts("a")), {"role": "user", "content": ""}]}, "messages/content"),
    ({"messages": user(*parts("a"), {"type": "text"})}, "messages/parts"),
    ({"messages": user(*parts("a"), {"text": "x y" * 4000})}, "messages/input_length"),
    ({"messages": user(*parts("a")), "use_beam_search": True, "max_tokens": 129}, "max_tokens/beam"),
    ({"messages": user(*parts("a")), "stop": ["x" * 20_000, "y" * 20_000]}, "stop/total_length"),
]


@pytest.mark.parametrize(("fields", "rule"), REFUSED, ids=[rule for _, rule in REFUSED])
async def test_nothing_is_got_for_a_request_that_is_refused_anyway(scripted, loader, fields, rule):
    fault = await refused(scripted, **fields)
    assert fault.entry == f"mindie/chat.completions/{rule}"
    assert loader.asked == []


@pytest.mark.parametrize(
    "messages",
    [
        user(*parts(*"abcdefghijklmnopqrst")),
        [*user(*parts(*"abcdefghijklmnopqrst")), *user(*parts("u"))],
        user({"image_url": "a" * 4096}),
        user({"image_url": "data:image/png;base64," + "a" * 5000}),
        user({"image_url": {"url": "/9j/" + "a" * 5000}}),
    ],
    ids=["20", "20 and 1", "4096 characters", "data", "base64"],
)
async def test_up_to_the_limits(scripted, loader, messages):
    await scripted.ask(messages=messages, max_tokens=1)
    assert len(loader.asked) == sum(len(message["content"]) for message in messages)


async def test_more_media_than_the_context_has_tokens(scripted, loader):
    fault = await refused(scripted, messages=user(*parts("a")) * 4096)
    assert fault.entry == "mindie/chat.completions/messages/input_length"
    assert loader.asked == []


async def test_the_length_counts_what_media_take(calling, scripted, loader):
    plain = (await scripted.ask(messages=user(WORDS), max_tokens=1))["usage"]["prompt_tokens"]
    for truncation in (False, True):
        for limit, fits in ((plain + 8, True), (plain + 7, False)):
            config = MindIEConfig(max_input_token_len=limit, truncation=truncation)
            caller = calling(scripted.engine, config, media=loader)
            messages = user(WORDS, *parts("a"))
            if fits:
                assert (await caller.ask(messages=messages, max_tokens=1))["usage"]["prompt_tokens"] == limit
            else:
                assert (await refused(caller, messages=messages)).name == "context_overflow"


async def test_a_prompt_with_media_is_not_cut(calling, scripted, loader):
    caller = calling(scripted.engine, MindIEConfig(max_input_token_len=20, truncation=True), media=loader)
    cut = await caller.ask(messages=user({"text": "x y" * 40}), max_tokens=1)
    assert cut["usage"]["prompt_tokens"] == 20
    fault = await refused(caller, messages=user({"text": "x y" * 40}, *parts("a")))
    assert (fault.name, loader.asked) == ("context_overflow", [])


async def test_texts_alone_count_as_characters(scripted):
    await scripted.ask(
        messages=user({"image_url": "data:image/png;base64," + "a" * 5000}, {"text": "xyz"}), max_tokens=1
    )
    assert scripted.context["messages_chars"] == len("user") + 3


async def test_a_request_has_a_budget_for_all_its_media(scripted, loader):
    await scripted.ask(messages=user(*parts("a", "b")), max_tokens=1)
    first, second = loader.budgets
    assert first is second
    first.take(1000 * 2**20)
    with pytest.raises(MediaError):
        first.take(1)


async def test_what_is_decoded_has_a_limit_too(scripted, monkeypatch):
    limits = MediaLimits(files=2**30, decoded=2 * 64 * 32 * 3)
    monkeypatch.setattr("isogloss.dialects.mindie_media._LIMITS", limits)
    await scripted.ask(messages=user(*parts("a", "b")), max_tokens=1)
    fault = await refused(scripted, messages=user(*parts("a", "b", "c")))
    assert (fault.name, fault.values["reason"]) == ("mindie.media_refused", "too_large")


async def test_some_at_a_time(scripted, loader):
    await scripted.ask(messages=user(*parts(*"abcdefghij")), max_tokens=1)
    assert 1 < loader.most <= 4


async def test_whoever_leaves_ends_the_work(scripted, loader):
    loader.answers |= dict.fromkeys("ab", asyncio.Event())
    task = asyncio.create_task(scripted.ask(messages=user(*parts("a", "b"))))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (sorted(loader.cancelled), loader.running) == (["a", "b"], 0)


async def test_a_refusal_ends_the_work_on_the_others(scripted, loader):
    loader.answers |= {"a": MediaError("broken"), "b": asyncio.Event()}
    await refused(scripted, messages=user(*parts("a", "b")))
    assert (loader.cancelled, loader.running) == (["b"], 0)


@pytest.mark.parametrize("value", [None, "", {}, {"url": None}, {"url": ""}, 1])
async def test_an_empty_reference(scripted, loader, value):
    fault = await refused(scripted, messages=user({"image_url": value}))
    assert fault.name in ("wrong_type", "out_of_range", "missing_field")
    assert loader.asked == []


async def test_without_a_loader_no_media_are_taken(calling, scripted):
    fault = await refused(calling(scripted.engine), messages=user(*parts("a")))
    assert (fault.name, fault.values["feature"]) == ("unsupported_feature", "image")
