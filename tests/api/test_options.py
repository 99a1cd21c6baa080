"""Options of the public calls: each is typed, and one that does not exist is refused by name."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import weft
from tests.support.world import World
from weft.api import Session, SessionManager
from weft.api.options import MessageOptions, QueryOptions, SessionDefaults, StartOptions
from weft.errors import UsageError
from weft.providers.scripted import ScriptedModel

CALLS: dict[str, Callable[..., Awaitable[Any]]] = {
    "send_message": lambda session, **wrong: session.send_message("x", **wrong),
    "send_prompt": lambda session, **wrong: session.send_prompt("x", **wrong),
    "queue_follow_up": lambda session, **wrong: session.queue_follow_up("x", **wrong),
    "continue_turn": lambda session, **wrong: session.continue_turn(**wrong),
    "continue_and_wait": lambda session, **wrong: session.continue_and_wait(**wrong),
}


@pytest.mark.anyio
@pytest.mark.parametrize("value", [3, None])
@pytest.mark.parametrize("call", CALLS)
async def test_an_unknown_option_is_refused_with_the_nearest_name(
    plain_world: World, call: str, value: Any
) -> None:
    async with plain_world.open(ScriptedModel(["hello"])) as app:
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match="no option 'max_turn'; did you mean 'max_turns'"):
            await CALLS[call](session, max_turn=value)
        assert await session.messages() == []


@pytest.mark.anyio
async def test_a_name_that_is_near_none_gets_the_whole_list(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel(["hello"])) as app:
        session = await app.sessions.start_session()
        wrong: dict[str, Any] = {"zzz": 1}
        with pytest.raises(UsageError, match=r"no option 'zzz'; it takes .*edit_model.*tools"):
            await session.send_message("x", **wrong)


@pytest.mark.anyio
async def test_a_new_session_and_a_query_refuse_an_unknown_option_too(plain_world: World) -> None:
    wrong: dict[str, Any] = {"thinkin": "high"}
    async with plain_world.open(ScriptedModel(["hello"])) as app:
        with pytest.raises(UsageError, match="start_session has no option 'thinkin'; did you mean"):
            await app.sessions.start_session(**wrong)
        session = await app.sessions.start_session()
        wrong_title: dict[str, Any] = {"titel": "x"}
        with pytest.raises(UsageError, match="no option 'titel'; did you mean 'title'"):
            await session.new_session(**wrong_title)
    with pytest.raises(UsageError, match="a query has no option 'thinkin'; did you mean"):
        await weft.query("x", model=ScriptedModel(["hello"]), **wrong)


@pytest.mark.parametrize(
    ("function", "options"),
    [
        *((getattr(Session, name), MessageOptions) for name in CALLS),
        (SessionManager.start_session, SessionDefaults),
        (Session.new_session, StartOptions),
        (weft.query, QueryOptions),
        (weft.stream, QueryOptions),
    ],
)
def test_every_call_with_options_says_which_and_of_what_type(
    function: Callable[..., Any], options: type
) -> None:
    [more] = [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is inspect.Parameter.VAR_KEYWORD
    ]
    assert function.__annotations__[more] == f"Unpack[{options.__name__}]"
