"""The files that a prompt is made from are read beside the event loop, once for each turn."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.world import World
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel
from weft.workspace import safe_open

pytestmark = pytest.mark.anyio

SKILL = "---\nname: {0}\ndescription: how to {0}\n---\nDo {0}.\n"


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the thread of the event loop opens, lists or looks at."""
    found: list[str] = []
    loop_thread = threading.get_ident()

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if threading.get_ident() == loop_thread:
                found.append(str(args[0] if args else ""))
            return real(*args, **options)

        return call

    for name in ("open", "stat", "lstat", "scandir", "listdir", "readlink"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    monkeypatch.setattr(safe_open, "open_beneath", watched(safe_open.open_beneath))
    return found


async def test_a_turn_looks_at_no_file_of_the_prompt_on_the_loop(
    plain_world: World, looked_at: list[str]
) -> None:
    plain_world.write("AGENTS.md", "Be brief.")
    plain_world.write(".weft/skills/bake/SKILL.md", SKILL.format("bake"))
    plain_world.write(".weft/agents/cook.md", "---\ndescription: cooks\n---\nCook.\n")
    model = ScriptedModel(["one", CallTool(name="todo", args={"todos": []}), "two"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        looked_at.clear()
        await session.send_message("a")
        await session.send_message("b")
        project = str(plain_world.project)
        assert [path for path in looked_at if path.startswith(project)] == []
    system = model.requests[0].system
    assert "Be brief." in system
    assert "how to bake" in system
    assert "cooks" in system


async def test_each_turn_knows_the_files_as_they_are_when_it_begins(plain_world: World) -> None:
    model = ScriptedModel(["one", "two", "three"])
    async with plain_world.open(model) as app:
        session = await app.sessions.start_session()
        await session.send_message("a")
        plain_world.write(".weft/skills/bake/SKILL.md", SKILL.format("bake"))
        await session.send_message("b")
        plain_world.write("AGENTS.md", "Be brief.")
        await session.send_message("c")
    said = [request.system for request in model.requests]
    assert ["how to bake" in text for text in said] == [False, True, True]
    assert "Be brief." in str(model.requests[2])
