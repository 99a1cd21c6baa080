"""Scripted models for a session and its agents: each gets the answers of its role, whenever it
asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from weft.api.session import Session
from weft.messages import Text
from weft.providers import ChatMessage
from weft.providers.base import ModelRequest
from weft.providers.script import CallTogether, CallTool, ScriptedAnswer, Step, as_answer
from weft.providers.scripted import ScriptedModel, assistant_turns

AnswerSteps: TypeAlias = str | Step | Sequence[Step]
RoleAnswers: TypeAlias = Mapping[str, Sequence[AnswerSteps]]


def first_prompt(request: ModelRequest) -> str:
    """The first prompt of a request: by it a session is known."""
    for message in request.messages:
        if isinstance(message, ChatMessage) and message.role == "user":
            return "".join(part.text for part in message.parts if isinstance(part, Text))
    return ""


def role_model(roles: RoleAnswers, name: str = "script") -> ScriptedModel:
    """A model that plays several sessions: a session whose first prompt holds a role's name gets
    that role's answers, one a round.

    It needs no memory, so another process goes on at the right answer.
    """

    def choose(request: ModelRequest) -> ScriptedAnswer:
        prompt = first_prompt(request)
        role = next((role for role in roles if role in prompt), None)
        if role is None:
            raise AssertionError(f"no role answers {prompt!r}")
        return as_answer(roles[role][assistant_turns(request)])

    model = ScriptedModel([], choose=choose)
    model.info = msgspec.structs.replace(model.info, name=name)
    return model


def agent_call(prompt: str, **more: Any) -> CallTool:
    """A call of `agent`."""
    return CallTool(name="agent", args={"prompt": prompt, **more})


def agent_calls(*prompts: str, **more: Any) -> CallTogether:
    """Several calls of `agent` in one answer."""
    return CallTogether(calls=tuple(agent_call(prompt, **more) for prompt in prompts))


async def only_child(session: Session) -> str:
    """The id of the one child that there is."""
    [child] = await session.children()
    return child.id
