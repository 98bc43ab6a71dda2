"""The whole ledger of every dialect is looked at, and our server does not fail any of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from isogloss_conformance.completeness import completeness
from isogloss_conformance.results import Status
from isogloss_conformance.runner import Runner
from isogloss_conformance.session import Session

MEDIA = ("image_url", "video_url", "audio_url", "input_audio")
UNPROVABLE = {
    "nim": {"completions/prompt/not_empty"},
    "atoma": {"completions/prompt/not_empty", "completions/fault/unknown_field"},
    "acs": {"completions/prompt/not_empty", "chat.completions/fault/body_too_large"},
    "mindie": {
        "chat.completions/n/deepseek",
        "chat.completions/n/disaggregated",
        "chat.completions/n/plugins",
        *(f"chat.completions/messages.items.content.ContentParts.items.{name}/max_bytes" for name in MEDIA),
        "chat.completions/fault/unsupported_feature",
        "chat.completions/fault/mindie.template_missing",
        "chat.completions/fault/mindie.template_broken",
        "chat.completions/fault/mindie.template_refused",
        "chat.completions/fault/mindie.template_argument",
    },
}
"""What no request shows on this server: modes it never has, templates that its model lacks, a tokenizer that never
returns nothing, files of hundreds of megabytes, a feature that it lacks, a fault of Atoma that no rule of its document
costs."""
UNPROVABLE_STEPS = {"streams/keepalive", "streams/usage_asked", "streams/usage_unasked", "effects/stop_text"}
"""What takes patience, what only a dialect with `stream_options` has, and one stop text where lists alone are taken."""
NEEDS_OPTIONS = ("unauthorized", "keyless", "quota_exceeded", "overloaded", "timeout", "engine_failure")
"""What a plain run cannot provoke everywhere; `test_statuses` has it."""


@pytest.mark.parametrize("dialect", UNPROVABLE)
def test_every_entry_has_its_verdict_or_its_reason(session: Callable[..., Session], dialect: str) -> None:
    found = session(dialect)
    results = list(Runner(found).run())
    wrong = [(result.id, result.got) for result in results if result.status in (Status.FAIL, Status.ERROR)]
    assert wrong == []
    ledger = completeness(found.entries, results)
    assert ledger.complete
    assert ledger.entries == ledger.proved + ledger.unsupported + ledger.unprovable
    skipped = {result.id.removeprefix(f"{dialect}/") for result in results if result.status is Status.SKIP}
    assert {name for name in skipped if not name.endswith(NEEDS_OPTIONS)} <= UNPROVABLE[dialect] | UNPROVABLE_STEPS
    assert all(result.got.startswith("unprovable: ") for result in results if result.status is Status.SKIP)
    assert {result.got for result in results if result.status is Status.DISABLED} == set()
