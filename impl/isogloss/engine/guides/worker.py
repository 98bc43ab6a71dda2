"""A process that tries guides, so that none can take the server with it.

llguidance bounds most of its work by itself, but a long chain of rules overflows its stack, and some patterns take
memory and seconds. Here that ends this process only. Started by `compiler` with the number of a connected socket:
it receives a Vocabulary, answers once it is ready, and then answers one guide at a time.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import threading
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from llguidance import LLTokenizer

from isogloss.engine.api import Guide, GuideError
from isogloss.engine.guides.trial import tried_grammar

STACK = 2**20
"""Bytes. Less than any thread of the server has: what fits here fits there."""
MEMORY = 2**29
"""Bytes of address space for one guide, beside the vocabulary."""


def encode(guide: Guide) -> bytes:
    """A guide on its way here."""
    return json.dumps(asdict(guide)).encode()


def decode(data: bytes) -> Guide:
    """A guide that has arrived."""
    return _guide(json.loads(data))


def _guide(members: dict[str, Any]) -> Guide:
    lists = {"choices": tuple(members["choices"]), "parts": tuple(map(_guide, members["parts"]))}
    return Guide(**{**members, **lists})


def serve(connection: Connection) -> None:
    """Answer until the other side is gone."""
    tokenizer = connection.recv().tokenizer()
    _set_limits()
    connection.send_bytes(b"{}")
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            _in_thread(tokenizer, connection)


def _set_limits() -> None:
    threading.stack_size(STACK)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = Path("/proc/self/statm")
    if size.exists():  # only Linux tells how much there is already
        used = int(size.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def _in_thread(tokenizer: LLTokenizer, connection: Connection) -> None:
    guide = decode(connection.recv_bytes())
    thread = threading.Thread(target=lambda: connection.send_bytes(_answer(tokenizer, guide)))
    thread.start()
    thread.join()


def _answer(tokenizer: LLTokenizer, guide: Guide) -> bytes:
    answer: dict[str, object]
    try:
        answer = {"grammar": tried_grammar(tokenizer, guide)}
    except GuideError as error:
        answer = {"flaw": error.flaw, "whitespace": error.whitespace}
    except (RecursionError, MemoryError):
        answer = {"flaw": "too_complex", "whitespace": False}
    except ValueError:
        answer = {"flaw": "invalid", "whitespace": False}
    return json.dumps(answer).encode()


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
