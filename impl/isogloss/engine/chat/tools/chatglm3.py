"""ChatGLM3: the name on a line of its own, and below it Python that calls `tool_call`."""

from __future__ import annotations

from collections.abc import Sequence

from isogloss.engine.chat.calls import Function, FunctionCall
from isogloss.engine.chat.guiding.arguments import Arguments, arguments_of
from isogloss.engine.chat.guiding.grammar import Builder, one_of, repeated
from isogloss.engine.chat.python_text import is_keyword, mapping_of, read_keywords
from isogloss.engine.chat.source import Markers, Read, ignore
from isogloss.engine.chat.tools.base import ToolFormat, ToolParser

_TURN = "<|assistant|>"
"""Begins a call behind text; at the start of an answer the prompt has it."""
_FENCE = "```"
_FENCED = f"{_FENCE}python"
_CALL = "tool_call("
_OPENING = f"\n {_FENCED}\n{_CALL}"
_CLOSING = f")\n{_FENCE}"
_END = Markers(_FENCE)

_NAME = r"/[A-Za-z_][A-Za-z0-9_]{0,63}/"


class ChatGlm3Parser(ToolParser):
    """A call may begin at any line, and behind the mark of a turn."""

    starts = Markers("\n", _TURN)

    def _answer(self) -> Read[None]:
        while (yield from self._source.peek()):
            yield from self._source.blanks(self._content)
            if not (yield from self._attempt(self._call())):
                yield from self._source.until(self.starts, self._content)

    def _call(self) -> Read[bool]:
        if (yield from self._source.literal(_TURN)):
            yield from self._source.blanks()
        name = yield from self._name()
        if name is None or not (yield from self._opening()):
            return False
        self._start(name)
        if (yield from read_keywords(self._source, self._argue)):
            yield from self._source.blanks()
        else:
            yield from self._source.until(_END, ignore)
        yield from self._source.literal(_FENCE, cut=True)
        return True

    def _name(self) -> Read[str | None]:
        """The name of a known function that stands alone on its line."""
        for name in self._functions:
            if (yield from self._source.literal(f"{name}\n")):
                return name
        return None

    def _opening(self) -> Read[bool]:
        for part in (_FENCED, _CALL):
            yield from self._source.blanks()
            if not (yield from self._source.literal(part)):
                return False
        return True


class ChatGlm3(ToolFormat):
    """ChatGLM3.

    Guides write values as JSON, which stands in Python too but for `true`, `false` and `null`; the parser takes both.
    They honour the schema of each argument, which ones are required and their order, and allow no others; where a
    schema names none, any number of those that `additionalProperties` allows. What a schema says of its arguments
    together is refused, and so are names that are no identifiers.
    """

    name = "chatglm3"
    parsed_by = ChatGlm3Parser
    markers = (_TURN,)
    special_tokens = True
    result_role = "observation"

    def write(self, calls: Sequence[FunctionCall]) -> str:
        """Arguments that are no JSON object are left out: the form has no place for them."""
        return "\n".join(
            call.name
            + _OPENING
            + ", ".join(f"{key}={value!r}" for key, value in mapping_of(call.arguments).items())
            + _CLOSING
            for call in calls
        )

    def calls(
        self, build: Builder, functions: Sequence[Function], *, at_least: int, at_most: int | None, strict_only: bool
    ) -> str:
        """Each as `write` writes it."""
        ways = [
            f"{build.text(function.name + _OPENING)} {_keywords(build, function, strict_only)}"
            for function in functions
        ]
        call = build.rule(f"{one_of(ways)} {build.text(_CLOSING)}")
        return repeated(call, "", at_least, at_most, blank=build.text("\n"))

    def free(self, build: Builder, thought: str) -> str:
        """Anything that calls nothing, at any place."""
        return build.terminal(r"/(?s:.*)/ & ~/(?s:.*)tool_call\((?s:.*)/")


def _keywords(build: Builder, function: Function, strict_only: bool) -> str:
    """All arguments of a function, with commas between them; maybe nothing."""
    strict = function.strict or not strict_only
    wanted = arguments_of(function, is_keyword) if strict else Arguments([], others={})
    if wanted.others is not None:
        any_one = f"{build.terminal(_NAME)} {build.text('=')} {build.schema(wanted.others)}"
        return f"({repeated(any_one, build.text(', '), 0, None)})?"
    head = tail = ""
    for argument in reversed(wanted.known):
        member = build.rule(f"{build.text(argument.name + '=')} {build.schema(argument.schema)}")
        begun = f"{member} {tail}"
        head = build.rule(begun if argument.required else f"{begun} | {head}" if head else f"({begun})?")
        more = f"{build.text(', ')} {member}"
        tail = build.rule(f"{more} {tail}" if argument.required else f"({more})? {tail}")
    return head
