from __future__ import annotations

import asyncio
import time

import pytest
from isogloss.engine.api import (
    Delta,
    Engine,
    EngineFailure,
    EngineOverloaded,
    EngineRefused,
    PromptScores,
    Sampling,
    Started,
)
from isogloss.engine.scripted import ScriptedEngine
from isogloss.engine.scripted.vocabulary import END, VOCAB_SIZE

WARM = Sampling()


def seeded(seed: int, **more) -> Sampling:
    return Sampling(seed=seed, **more)


def test_it_is_an_engine():
    engine: Engine = ScriptedEngine("tiny", features=frozenset({"echo"}), chat_template="{}")
    assert engine.card.name == "tiny"
    assert engine.card.vocab_size == engine.tokenizer.vocab_size == VOCAB_SIZE
    assert engine.card.chat_template == "{}"
    assert engine.features == {"echo"}
    assert not engine.status().ready


class TestModel:
    async def test_one_delta_per_token_after_the_start(self, ask):
        answer = await ask(max_tokens=8)
        assert answer.events[0] == Started()
        assert len(answer.deltas()) == len(answer.events) - 1 == 8
        assert answer.finish().reason == "length"
        assert answer.text().strip()

    async def test_greedy_is_deterministic_and_depends_on_the_prompt(self, ask):
        assert (await ask()).text() == (await ask()).text()
        assert (await ask("Once")).text() != (await ask("Twice")).text()

    async def test_a_seed_repeats(self, ask):
        assert (await ask(sampling=seeded(4))).text() == (await ask(sampling=seeded(4))).text()
        assert (await ask(sampling=seeded(4))).text() != (await ask(sampling=seeded(5))).text()
        assert (await ask(sampling=WARM)).text() != (await ask(sampling=WARM)).text()

    async def test_a_choice_draws_from_seed_and_index_alone(self, ask):
        wide, narrow = await ask(sampling=seeded(4), n=3), await ask(sampling=seeded(4), n=2)
        assert len({wide.text(choice) for choice in range(3)}) == 3
        assert [wide.text(choice) for choice in range(2)] == [narrow.text(0), narrow.text(1)]

    async def test_texts_end_by_themselves(self, ask):
        answers = [await ask(sampling=seeded(seed), max_tokens=300) for seed in range(8)]
        stopped = [answer for answer in answers if answer.finish().reason == "stop"]
        assert stopped
        for answer in stopped:
            assert answer.tokens()[-1] == END
            assert answer.deltas()[-1].text == ""
            assert answer.finish().stop is None

    async def test_min_tokens_keep_the_end_away(self, ask):
        forced = Sampling(temperature=0, logit_bias={END: 100})
        assert len((await ask(sampling=forced)).tokens()) == 1
        answer = await ask(sampling=forced, min_tokens=5)
        assert len(answer.tokens()) == 6
        assert answer.tokens().index(END) == 5

    async def test_ignored_ends_are_ordinary_tokens(self, ask):
        forced = Sampling(temperature=0, logit_bias={END: 100})
        answer = await ask(sampling=forced, ignore_eos=True, max_tokens=4, skip_special_tokens=False)
        assert answer.text() == "<|end|>" * 4
        assert answer.finish().reason == "length"

    async def test_stop_tokens(self, ask):
        third = (await ask()).tokens()[2]
        answer = await ask(stop_token_ids=frozenset({third}))
        assert (len(answer.tokens()), answer.finish().reason, answer.finish().stop) == (3, "stop", third)
        shown = await ask(stop_token_ids=frozenset({third}), include_stop=True)
        assert shown.text() != answer.text()
        assert third not in (await ask(stop_token_ids=frozenset({third}), min_tokens=9)).tokens()[:9]

    async def test_the_context_is_the_limit(self, ask):
        prompt = [5] * 500
        answer = await ask(prompt, max_tokens=100, ignore_eos=True)
        assert (len(answer.tokens()), answer.finish().reason) == (12, "length")

    @pytest.mark.parametrize("prompt", [[], [5] * 512, [VOCAB_SIZE], [-1]])
    async def test_bad_prompts_are_refused(self, ask, engine, prompt):
        with pytest.raises(EngineRefused):
            await ask(prompt)
        assert engine.status().running == 0


class TestScores:
    async def test_one_score_a_token(self, ask):
        answer = await ask(sampling=seeded(1), logprobs=3, n=2)
        for choice in (0, 1):
            scores = answer.scores(choice)
            assert [score.chosen.id for score in scores] == answer.tokens(choice)
            assert "".join(score.chosen.text for score in scores) == answer.text(choice)
            for score in scores:
                ranks = [candidate.rank for candidate in score.top]
                assert ranks == [1, 2, 3]
                assert score.chosen in score.top or score.chosen.rank > 3

    async def test_sampling_controls_leave_scores_alone(self, ask):
        plain = (await ask(logprobs=2, max_tokens=1)).scores()[0]
        banned = Sampling(temperature=0, logit_bias={plain.chosen.id: -100})
        other = (await ask(logprobs=2, max_tokens=1, sampling=banned)).scores()[0]
        assert other.top == plain.top
        assert other.chosen == plain.top[1]

    async def test_prompt_scores(self, ask):
        answer = await ask("Tell a story", prompt_logprobs=1)
        scores = answer.events[1]
        assert isinstance(scores, PromptScores)
        first, *rest = scores.scores
        assert first is None
        assert "".join(score.chosen.text for score in rest) == "Tell a story"[1:]

    async def test_no_scores_unasked(self, ask):
        assert (await ask()).scores() == []
        assert (await ask(logprobs=0)).scores()[0].top == ()


class TestScript:
    @pytest.mark.parametrize(
        ("script", "stopping", "text", "reason"),
        [
            ({"bytes_hex": ["20f09f", "a68a", "20", "e2889e"]}, {"max_tokens": 8}, " 🦊 ∞", "stop"),
            ({"bytes_hex": ["e6bca2", "20e5ad", "97"]}, {"max_tokens": 3}, "漢 字", "length"),
            ({"bytes_hex": ["48", "69", "f09f98", "80"]}, {"max_tokens": 4}, "Hi😀", "length"),
            (
                {"tokens": ["A tall ap", "ple", " tree", " stands"]},
                {"stop": ("ple tree",)},
                "A tall ap",
                "stop",
            ),
            (
                {"tokens": ["a <|", "en", "d of", " it"]},
                {"stop": ("<|end|>",)},
                "a <|end of it",
                "stop",
            ),
            ({"tokens": ["one two STOPthree", "four"]}, {"stop": ("STOP",)}, "one two ", "stop"),
            ({"tokens": ["Good", " Morning", " All"]}, {"max_tokens": 6}, "Good Morning All", "stop"),
            ({"tokens": ["5", " 6", " 7", " 8"]}, {"stop": ("7",)}, "5 6 ", "stop"),
            ({"tokens": ["All", " good", "."]}, {"stop": ("zq" * 1500,)}, "All good.", "stop"),
            ({"tokens": ["a", "b"], "end": "length"}, {}, "ab", "length"),
            ({"tokens": ["a", "b"]}, {"max_tokens": 2}, "ab", "length"),
            ({"tokens": ["a", "b"]}, {"min_tokens": 5}, "ababa", "stop"),
            ({"tokens": ["a", "b"], "end": "length"}, {"min_tokens": 5}, "ababa", "length"),
            ({"tokens": ["a", "b"]}, {"ignore_eos": True, "max_tokens": 5}, "ababa", "length"),
            ({"tokens": ["a", "b"], "end": "length"}, {"ignore_eos": True}, "ab", "length"),
            ({"prefer_tokens": [" ", "\n"]}, {"max_tokens": 3}, " \n ", "length"),
            ({"tokens": []}, {}, "", "stop"),
        ],
    )
    async def test_texts(self, ask, script, stopping, text, reason):
        answer = await ask(script=script, **stopping)
        assert answer.text() == text
        assert answer.finish().reason == reason
        assert all("\ufffd" not in delta.text for delta in answer.deltas())

    async def test_every_token_is_its_own_delta(self, ask):
        answer = await ask(script={"tokens": ["Once", " upon", " a"]})
        assert [delta.text for delta in answer.deltas()] == ["Once", " upon", " a", ""]
        assert all(len(delta.token_ids) == 1 for delta in answer.deltas())

    async def test_all_choices_follow_it(self, ask):
        answer = await ask(script={"tokens": ["x", "yz"]}, n=2, sampling=WARM)
        assert answer.text(0) == answer.text(1) == "xyz"

    async def test_scores_name_its_tokens(self, ask):
        answer = await ask(script={"tokens": ["Once", " upon"]}, logprobs=2, sampling=WARM)
        scores = answer.scores()
        assert [score.chosen.text for score in scores] == ["Once", " upon", "<|end|>"]
        assert all(score.top[0] == score.chosen for score in scores)

    async def test_stop_tokens_hold(self, ask):
        script = {"tokens": ["a", "b", "a", "c"]}
        answer = await ask(script=script, stop_token_ids=frozenset(b"a"), min_tokens=1)
        assert (answer.text(), answer.finish().stop) == ("ab", ord("a"))

    @pytest.mark.parametrize(("tokens", "events"), [(0, 0), (2, 3), (3, 4)])
    async def test_fail_after(self, engine, request_of, tokens, events):
        script = {"tokens": ["Once", " upon", " a"], "fail_after": tokens}
        seen = []
        with pytest.raises(EngineFailure):
            async for event in engine.generate(request_of(script=script)):
                seen.append(event)
        assert len(seen) == events
        assert engine.status().running == 0

    async def test_the_model_may_fail_too(self, engine, request_of):
        with pytest.raises(EngineFailure):
            async for _ in engine.generate(request_of(script={"fail_after": 4})):
                pass

    async def test_delays(self, ask):
        began = time.perf_counter()
        script = {"tokens": ["a", "b"], "delay_ms_first": 60, "delay_ms_each": 20}
        answer = await ask(script=script, max_tokens=2)
        assert time.perf_counter() - began >= 0.075
        timing = answer.finish().timing
        assert timing.prefill >= 0.055
        assert [round(step, 2) >= 0.02 for step in timing.decode] == [True]

    async def test_tokens_of_a_tool_call_come_in_steps(self, ask):
        call = {"name": "f", "arguments": "{}"}
        answer = await ask(script={"tool_calls": [call], "one_delta": True}, max_tokens=99)
        assert answer.text().startswith("<tool_call>")
        assert set(answer.finish().timing.decode[:-1]) == {0.0}

    async def test_a_broken_script_is_refused(self, engine, ask):
        with pytest.raises(EngineRefused):
            await ask(script={"tokenz": []})
        assert engine.status().running == 0


class TestPlaces:
    async def first(self, engine, request):
        events = engine.generate(request)
        await anext(events)
        return events

    async def test_status_counts(self, engine, request_of, ask):
        running = await self.first(engine, request_of([5, 6, 7], n=4))
        waiting = asyncio.create_task(ask([5], max_tokens=3))
        await asyncio.sleep(0.01)
        status = engine.status()
        assert (status.ready, status.running, status.waiting) == (True, 1, 1)
        await running.aclose()
        await waiting
        status = engine.status()
        assert (status.running, status.waiting) == (0, 0)
        assert (status.prompt_tokens, status.generated_tokens) == (4, 3)

    async def test_closing_frees_the_place_at_once(self, engine, request_of):
        events = await self.first(engine, request_of(max_tokens=400))
        assert engine.status().running == 1
        await events.aclose()
        assert engine.status().running == 0

    async def test_cancelling_a_waiting_request_leaves_the_line(self, engine, request_of, ask):
        running = await self.first(engine, request_of(n=4))
        task = asyncio.create_task(ask())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert engine.status().waiting == 0
        await running.aclose()

    async def test_the_place_is_free_with_the_last_delta(self, engine, request_of):
        async for event in engine.generate(request_of()):
            if isinstance(event, Delta) and event.finish:
                assert engine.status().running == 0

    async def test_too_many_waiting_requests_are_turned_away(self, engine, request_of, ask):
        running = await self.first(engine, request_of(n=4))
        tasks = [asyncio.create_task(ask()) for _ in range(2)]
        await asyncio.sleep(0.01)
        with pytest.raises(EngineOverloaded):
            await ask()
        await running.aclose()
        texts = [(await task).text() for task in tasks]
        assert texts[0] == texts[1]

    async def test_priority_decides_who_starts(self, engine, request_of, ask):
        running = await self.first(engine, request_of(n=4))
        done = []

        async def late(priority):
            await ask(n=4, priority=priority)
            done.append(priority)

        tasks = [asyncio.create_task(late(priority)) for priority in (7, 1)]
        await asyncio.sleep(0.01)
        await running.aclose()
        await asyncio.gather(*tasks)
        assert done == [1, 7]

    async def test_an_unlimited_stream_leaves_others_their_turn(self, engine, request_of, ask):
        endless = request_of(max_tokens=450, ignore_eos=True)
        counted = 0

        async def drain():
            nonlocal counted
            async for _ in engine.generate(endless):
                counted += 1

        task = asyncio.create_task(drain())
        await asyncio.sleep(0)
        await ask(max_tokens=1)
        assert counted < 200
        await task

    async def test_stop_ends_running_delayed_and_waiting_requests(self, engine, request_of, ask):
        delayed = {"tokens": ["a"], "delay_ms_first": 60_000}
        tasks = [asyncio.create_task(ask(n=4, script=delayed)), asyncio.create_task(ask())]
        await asyncio.sleep(0.01)
        await engine.stop()
        for task in tasks:
            with pytest.raises(EngineFailure):
                await task
        assert engine.status().running == engine.status().waiting == 0
        assert not engine.status().ready
        with pytest.raises(EngineOverloaded):
            await ask()
        await engine.start()
        assert (await ask()).text()

    async def test_timing(self, engine, request_of, ask):
        running = await self.first(engine, request_of(n=4))
        task = asyncio.create_task(ask(n=2, max_tokens=5))
        await asyncio.sleep(0.02)
        await running.aclose()
        timing = (await task).finish(1).timing
        assert timing.queue >= 0.015
        assert len(timing.decode) == 4
        assert timing.batch_sizes == (2,) * 5
