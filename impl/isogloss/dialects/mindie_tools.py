"""What a request says of functions: which ones the model is told of, and what it must call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isogloss_api.mindie import requests
from pydantic import BaseModel

from isogloss.dialects.chat_formats import AnswerForm
from isogloss.dialects.guides import Guided, refusal
from isogloss.engine.api import GuideError
from isogloss.engine.chat import Function, call_guide


@dataclass(frozen=True, slots=True)
class ToolPlan:
    """The functions of a request, narrowed to those that its choice leaves."""

    functions: tuple[Function, ...] = ()
    at_least: int = 0
    """Calls that the answer must make."""
    at_most: int | None = None
    """Calls that it may make; None for any number."""

    @property
    def constrains(self) -> bool:
        """Whether the answer must follow a guide."""
        return bool(self.functions) and (self.at_least > 0 or any(function.strict for function in self.functions))


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The functions of a plan on their way into a prompt."""

    told: Sequence[Mapping[str, object]] = ()
    """As OpenAI writes them."""
    texts: Sequence[str] = ()
    """The same as JSON."""

    @property
    def chars(self) -> int:
        """Characters of the texts."""
        return sum(map(len, self.texts))


def offered_tools(plan: ToolPlan) -> OfferedTools:
    """The functions, complete: templates rarely ask whether a member is there. Takes time by their size."""
    told = [{"type": "function", "function": _for_template(function)} for function in plan.functions]
    return OfferedTools(told, [json.dumps(tool, ensure_ascii=False) for tool in told])


def read_tools(body: requests.ChatRequest) -> ToolPlan:
    """What `tools` and `tool_choice` come to."""
    tools = body.tools if isinstance(body.tools, list) else []
    choice = body.tool_choice
    if not tools or choice == "none":
        return ToolPlan()
    if isinstance(choice, requests.NamedToolChoice):
        named = [tool for tool in tools if tool.function.name == choice.function.name]
        return ToolPlan(_functions(named), at_least=1, at_most=1) if named else ToolPlan()
    return ToolPlan(_functions(tools), at_least=1 if choice == "required" else 0)


def forced_calls(plan: ToolPlan, form: AnswerForm, fault: str) -> Guided | None:
    """The guide for the calls of a plan that constrains. Raises Fault for schemas that cannot be followed."""
    assert form.tools is not None
    try:
        guide = call_guide(
            form.tools,
            plan.functions,
            at_least=plan.at_least,
            at_most=plan.at_most,
            strict_only=plan.at_least == 0,
            reasoning=form.reasoning,
            inside=form.inside,
        )
    except GuideError as error:
        raise refusal("tools", fault, error) from error
    return None if guide is None else Guided(guide, "tools", fault)


def _functions(tools: list[requests.Tool]) -> tuple[Function, ...]:
    return tuple(_function(tool.function) for tool in tools)


def _function(function: requests.ToolFunction) -> Function:
    return Function(
        name=function.name,
        description=function.description if isinstance(function.description, str) else None,
        parameters=_parameters(function.parameters),
        strict=function.strict is True,
    )


def _parameters(parameters: object) -> Mapping[str, object] | None:
    return parameters.model_extra if isinstance(parameters, BaseModel) else None


def _for_template(function: Function) -> dict[str, object]:
    return {
        "name": function.name,
        "description": function.description or "",
        "parameters": function.parameters or {"type": "object", "properties": {}},
    }
