"""The name of a tree that has grown and has none: a few words by one of its models."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from weft.context import estimate_text
from weft.errors import WeftError
from weft.events import Fact, SettingChanged, UsageRecorded
from weft.loop import Commit
from weft.messages import ChatMessage, Text, Usage
from weft.providers import Model, ModelRequest, TextPiece, UsageSeen

if TYPE_CHECKING:
    from weft.loom.host import LoomHost
    from weft.loom.trees.loom_tree import LoomTree

logger = logging.getLogger(__name__)

NAMED_FROM: Final = 500
"""Tokens from which on a tree gets a name."""
READ_CHARACTERS: Final = 4_000
LONGEST_NAME: Final = 60
PATIENCE_SECONDS: Final = 60.0
_SYSTEM: Final = (
    "Name the text that the user sends in three to seven words, in its language, in lower case. "
    "Answer with the name alone."
)


def wants_name(tree: LoomTree, text: str) -> bool:
    """Whether a tree has grown enough for a name, and has none."""
    is_unnamed = bool(tree.setting("auto_title")) and not tree.setting("loom_named")
    return is_unnamed and estimate_text(len(text)) >= NAMED_FROM


async def name_tree(tree: LoomTree, host: LoomHost, model: str, text: str) -> str:
    """Have a model name a tree, and keep the name; empty where it could not.

    It is tried once for each tree: a failure is no reason to pay again and again.
    """
    usage: Usage | None = None
    name = ""
    try:
        with anyio.move_on_after(PATIENCE_SECONDS):
            said, usage = await _asked(host.model(model), text[:READ_CHARACTERS])
            name = plain_name(said)
    except WeftError as error:
        logger.info("a tree was not named: %s", error)
    facts: list[Fact] = [SettingChanged(name="loom_named", value=True)]
    if name and wants_name(tree, text):
        facts += [
            SettingChanged(name="title", value=name),
            SettingChanged(name="auto_title", value=None),
        ]
    if usage is not None:
        cost = usage.cost_usd if usage.cost_usd is not None else host.cost(model, usage)
        used = msgspec.structs.replace(usage, cost_usd=cost)
        facts.append(UsageRecorded(usage=used, model=model, purpose="title"))
    if tree.is_open:
        await tree.actor.append(lambda state: Commit(facts=tuple(facts)))
    return name


async def _asked(model: Model, text: str) -> tuple[str, Usage]:
    request = ModelRequest(
        model=model.info.name,
        messages=(ChatMessage(role="user", parts=(Text(text=text),)),),
        system=_SYSTEM,
        max_output_tokens=40,
        thinking="off" if model.info.levels else "default",
    )
    pieces: list[str] = []
    usage = Usage(input_tokens=estimate_text(len(text)))
    async with model.stream(request) as events:
        async for event in events:
            if isinstance(event, TextPiece):
                pieces.append(event.text)
            elif isinstance(event, UsageSeen):
                usage = event.usage
    return "".join(pieces), usage


def plain_name(said: str) -> str:
    """A name out of what a model said: one line, seven words at most, no quotation marks."""
    first = next((line for line in said.splitlines() if line.strip()), "")
    words = re.sub(r"[\"“”'`*#.:;!?<>]", " ", first).split()[:7]
    return " ".join(words)[:LONGEST_NAME].rstrip()
