"""One operation at one mount: body in, answer out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from isogloss_api.runtime import Framing, Operation, Reply, Stream
from isogloss_spec import Fault, Verdict
from starlette.types import Receive, Scope, Send

from isogloss.web.answers import encoded_headers, send_reply
from isogloss.web.errors import ClientGone
from isogloss.web.events import EventStream
from isogloss.web.exchange import BareExchange, JudgedExchange
from isogloss.web.failure import as_fault
from isogloss.web.interrupt import Interruptible
from isogloss.web.limits.body import BodyReader
from isogloss.web.limits.body_budget import BodyBudget, BodyShare
from isogloss.web.limits.media_type import check_media_type
from isogloss.web.routing import Api
from isogloss.web.state import RequestState, state_of

_JUDGED_ON_THE_LOOP = 64 * 1024
"""Bytes. Larger bodies are judged in a thread, so that other requests go on."""

_PLAIN = Framing(None, None)
_Whole = tuple[Reply[Any], Mapping[str, str]]
"""A whole answer and its own headers."""


class Endpoint:
    """Answers one operation that takes no body."""

    def __init__(self, api: Api, operation: Operation) -> None:
        self._function = api.functions[operation.id]
        self._operation = operation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        state = state_of(scope)
        answer = await self._function(BareExchange(state))
        assert isinstance(answer, Reply), "operations without a body do not stream"
        await send_reply(send, state, answer.body, self._operation.media_type)


class BodyEndpoint:
    """Answers one operation that takes a body: reads and judges it, runs the route stub, writes the answer.

    Until an answer has begun, raises Fault, ClientGone, or what the handler raised; later errors end the stream.
    """

    def __init__(
        self,
        api: Api,
        operation: Operation,
        body_timeout_s: float,
        budget: BodyBudget,
        running: set[Interruptible],
    ) -> None:
        self._api = api
        self._operation = operation
        self._function = api.functions[operation.id]
        self._judge = api.judges[operation.id]
        self._reader = BodyReader(api.body_limit)
        self._body_timeout_s = body_timeout_s
        self._budget = budget
        self._framing = operation.framing or _PLAIN
        self._running = running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        state = state_of(scope)
        check_media_type(state.headers)
        stream = EventStream(send, state, self._framing)
        try:
            whole = await self._answer(state, receive, stream)
        except ClientGone:
            raise
        except Exception as error:  # whatever breaks a stream that has begun must end it in its own form
            if not stream.started:
                raise
            await stream.fail(self._api.errors.render(as_fault(state, error), state.request_id, state.own_id))
        else:
            if whole is not None:
                reply, headers = whole
                await send_reply(send, state, reply.body, self._operation.media_type, encoded_headers(headers))

    async def _answer(self, state: RequestState, receive: Receive, stream: EventStream) -> _Whole | None:
        # The share is held until the end, since the typed body and its texts are.
        async with Interruptible(self._running) as block:
            with self._budget.share() as share:
                return await self._answered(state, receive, stream, block, share)

    async def _answered(
        self, state: RequestState, receive: Receive, stream: EventStream, block: Interruptible, share: BodyShare
    ) -> _Whole | None:
        exchange = await self._judged(state, receive, block, share)
        block.watch(receive)
        answer = await self._function(exchange)
        if isinstance(answer, Stream):
            await stream.run(answer.events, exchange.call.headers)
            return None
        return answer, exchange.call.headers

    async def _judged(
        self, state: RequestState, receive: Receive, block: Interruptible, share: BodyShare
    ) -> JudgedExchange:
        clock = block.interrupt_after(self._body_timeout_s, Fault("timeout"))
        raw = await self._reader.read(state.headers, receive, share)
        clock.cancel()
        return JudgedExchange(self._judge, await self._verdict(raw), state)

    async def _verdict(self, raw: bytes) -> Verdict:
        if len(raw) <= _JUDGED_ON_THE_LOOP:
            return self._judge.check(raw)
        return await asyncio.to_thread(self._judge.check, raw)
