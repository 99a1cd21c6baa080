"""Keyword options of the public calls, typed: of one message, of one query, of a new session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from weft.errors import UsageError, did_you_mean
from weft.providers import Model
from weft.runtime.tool_table import AGENT, NAVIGATION, WEB, tool_table
from weft.store.location import StoreArgument
from weft.thinking_levels import ThinkingLevel
from weft.tools import Tool
from weft.view.snapshot import HistoryMessage

ToolSelection: TypeAlias = str | Sequence[str | Tool | Callable[..., Any]]
""""all", or a list of names of tools, tools and functions."""
SessionMode: TypeAlias = Literal["normal", "architect"]


class MessageOptions(TypedDict, total=False):
    """What may be set for one message; None leaves what the session has."""

    model: str | Model | None
    """`provider:model`, or a model object."""
    tools: ToolSelection | None
    max_turns: int | None
    """Model calls of the turn."""
    max_seconds: float | None
    """How long the turn may work; sleep and open questions do not count."""
    max_tool_calls: int | None
    """Tool calls of the turn."""
    max_budget_usd: float | None
    max_tokens: int | None
    """Tokens of the session in all, input and output."""
    thinking: ThinkingLevel | None
    schema: Any
    """A JSON Schema or a type: the reply has a checked `deliverable`."""
    mode: SessionMode | None
    plan_model: str | Model | None
    edit_model: str | Model | None
    retries: int | None
    """Attempts after a model call that failed and may work the next time."""


class QueryOptions(TypedDict, total=False):
    """What may be set for one query."""

    max_output_tokens: int | None
    temperature: float | None
    thinking: ThinkingLevel | None
    stop: Sequence[str]
    retries: int


class SessionDefaults(TypedDict, total=False):
    """What a new session sets for all its messages."""

    max_turns: int | None
    max_seconds: float | None
    max_tool_calls: int | None
    thinking: ThinkingLevel | None
    budget: Mapping[str, float] | None
    """`max_budget_usd` and `max_tokens`."""
    mode: SessionMode | None
    append_system_prompt: str | None
    plan_model: str | None
    edit_model: str | None


class StartOptions(SessionDefaults, total=False):
    """All that a session can be started with.

    `SessionManager.start_session` says what each means.
    """

    session_id: str | None
    model: str | Model | None
    project_path: str | os.PathLike[str] | None
    title: str | None
    tools: ToolSelection
    auto_approve: bool
    system_prompt: str | None
    permission_mode: str | None
    store: StoreArgument | None
    messages: Sequence[Mapping[str, Any] | HistoryMessage] | None
    resume: Literal["ask", "auto", "never"] | None
    asking: Literal["wait", "no"]


def refuse_unknown(given: Mapping[str, Any], known: type, call: str) -> None:
    """Refuse an option that `known`, a typed dictionary, does not name.

    Raises:
        UsageError: there is one; the sentence names the nearest that there is.
    """
    # A typed dictionary's annotations include those of its bases.
    names = known.__annotations__
    for name in given:
        if name not in names:
            hint = did_you_mean(name, names) or f"; it takes {', '.join(sorted(names))}"
            raise UsageError(f"{call} has no option {name!r}{hint}")


def builtin_tool_names(
    *,
    has_skills: bool = False,
    has_agents: bool = False,
    has_servers: bool = False,
    has_web: bool = False,
) -> list[str]:
    """Every tool of a session that was given no list; `has_servers`: there are language servers,
    `has_web`: the user wants those that reach the web."""
    more = [*([AGENT] if has_agents else []), *(["skill"] if has_skills else [])]
    more += sorted(NAVIGATION) if has_servers else []
    more += sorted(WEB) if has_web else []
    return [*tool_table("all")[0], *more]
