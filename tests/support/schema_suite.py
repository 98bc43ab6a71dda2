"""Runs JSON-Schema-Test-Suite through guided decoding: `python -m support.schema_suite FOLDER`, from `tests`.

Each schema becomes a guide. One that compiles generates texts with the scripted engine, and meets the suite's own
instances: a text that is complete must be valid, an invalid instance must not be allowed. Exit code 1 if not so.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs
from isogloss.engine.api import Delta, GenerationRequest, Guide, GuideError, Sampling, Stopping
from isogloss.engine.guides.compiler import GuideCompiler
from isogloss.engine.guides.matcher import ReadyGuide
from isogloss.engine.scripted import ScriptedEngine
from isogloss.engine.scripted.vocabulary import guide_vocabulary

DRAFTS = {"draft4": "http://json-schema.org/draft-04/schema#"}
MAX_TOKENS = 400


@dataclass(frozen=True, slots=True)
class Case:
    """One schema of the suite with its instances."""

    name: str
    schema: dict[str, Any]
    tests: list[dict[str, Any]]


def cases(folder: Path) -> Iterator[Case]:
    """All schemas below a draft's folder, with their draft written into them."""
    for path in sorted(folder.rglob("*.json")):
        for group in json.loads(path.read_text()):
            schema = {"$schema": DRAFTS[folder.name], **group["schema"]}
            yield Case(f"{path.stem}: {group['description']}", schema, group["tests"])


class Run:
    """Counts what happens."""

    def __init__(self, seeds: int) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._seeds = seeds
        self._engine = ScriptedEngine()
        self._compiler = GuideCompiler(guide_vocabulary())

    async def all(self, found: Iterator[Case]) -> None:
        """Run these cases."""
        await self._engine.start()
        for case in found:
            await self._one(case)
        await self._engine.stop()
        self._compiler.close()

    async def _one(self, case: Case) -> None:
        guide = Guide("json_schema", json.dumps(case.schema))
        self.counts["schemas"] += 1
        try:
            ready = await self._compiler.ready(guide)
        except GuideError as error:
            self.counts[f"schemas refused as {error.flaw}"] += 1
            return
        self.counts["schemas compiled"] += 1
        for seed in range(self._seeds):
            await self._generate(case, guide, seed)
        for test in case.tests:
            self._meet(case, ready, test)

    async def _generate(self, case: Case, guide: Guide, seed: int) -> None:
        request = GenerationRequest("r", [72], Stopping(MAX_TOKENS), Sampling(seed=seed), guide=guide)
        events = [event async for event in self._engine.generate(request) if isinstance(event, Delta)]
        text, finish = "".join(event.text for event in events), events[-1].finish
        if finish is None or finish.reason == "length":
            self.counts["texts cut by their length"] += 1
        elif _valid(case.schema, text):
            self.counts["texts complete and valid"] += 1
        else:
            self._count_wrong("texts complete and not valid", case, text)

    def _meet(self, case: Case, ready: ReadyGuide, test: dict[str, Any]) -> None:
        text = json.dumps(test["data"], ensure_ascii=False, separators=(",", ":"))
        allowed = _allows(ready, text)
        if not test["valid"] and allowed:
            self._count_wrong("invalid instances allowed", case, text)
        else:
            kind = "valid" if test["valid"] else "invalid"
            self.counts[f"{kind} instances {'allowed' if allowed else 'not allowed'}"] += 1

    def _count_wrong(self, what: str, case: Case, text: str) -> None:
        self.counts[what] += 1
        self.wrong.append(f"{what}: {case.name}: {json.dumps(case.schema)}: {text}")


def _valid(schema: dict[str, Any], text: str) -> bool:
    try:
        instance = json.loads(text)
    except ValueError:
        return False
    return jsonschema_rs.is_valid(schema, instance)


def _allows(ready: ReadyGuide, text: str) -> bool:
    matcher, tokens = ready.matcher(), list(text.encode())
    if not matcher.permits(tokens):
        return False
    matcher.accept_all(tokens)
    return matcher.may_end()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a draft's folder of the suite")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    run = Run(options.seeds)
    asyncio.run(run.all(cases(options.folder)))
    for what, count in sorted(run.counts.items()):
        print(f"{count:5} {what}")
    for line in run.wrong:
        print(line)
    return 1 if run.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
