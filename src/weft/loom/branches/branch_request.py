"""The request of one branch: how a model is made to continue a text."""

from __future__ import annotations

from typing import Final

import msgspec

from weft.messages import ChatMessage, Text
from weft.providers import ModelInfo, ModelRequest

_CONTINUE: Final = (
    "Continue the text that the user sends. Write only what comes next, from its very next "
    "character on: no greeting, no comment, nothing of it again."
)


class BranchOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a generation sets for one branch."""

    max_tokens: int
    temperature: float | None = None
    context: str = ""
    strategy: str = ""
    seed: int | None = None
    logprobs: int | None = None
    session_id: str = ""


def strategy_for(info: ModelInfo, wanted: str) -> str:
    """The strategy that a branch of this model uses."""
    return wanted or "system"


def branch_request(info: ModelInfo, text: str, options: BranchOptions) -> ModelRequest:
    """The request that has a model continue a text."""
    told = options.context.strip()
    system = f"{_CONTINUE}\n\n<context>\n{told}\n</context>" if told else _CONTINUE
    said = text if text.strip() else "(The text is still empty. Write its beginning.)"
    return ModelRequest(
        model=info.name,
        messages=(ChatMessage(role="user", parts=(Text(text=said),)),),
        system=system,
        max_output_tokens=min(options.max_tokens, info.max_output_tokens),
        temperature=options.temperature,
        session_id=options.session_id,
    )
