"""What the journeys of rewinds share: a model whose turns are lists of commands and edits, and a
project that is worth keeping.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from typing import Any

from tests.support.file_tree import TreeEntry, tree
from tests.support.world import World
from weft.api.session import Session
from weft.app import App
from weft.config.setting_keys import KEYS
from weft.providers.base import ModelInfo
from weft.providers.script import CallTool, SayText, Step
from weft.providers.scripted import ScriptedModel
from weft.session import RewindPlan

INFO = ModelInfo(provider="scripted", name="script", price_input=0.0, price_output=0.0)


def shell(command: str) -> CallTool:
    return CallTool(name="shell", args={"command": command})


def write(path: str, content: str) -> CallTool:
    return CallTool(name="write", args={"path": path, "content": content})


def turns(*calls: Sequence[CallTool] | CallTool) -> ScriptedModel:
    """A model that makes these calls, one or several for each prompt, then says that it is done."""
    answers: list[list[Step]] = []
    for each in calls:
        answers += [[call] for call in ([each] if isinstance(each, CallTool) else each)]
        answers.append([SayText(text="done")])
    return ScriptedModel(answers, info=INFO)


def open_world(world: World, model: ScriptedModel, *, sandbox: str = "off", **settings: Any) -> App:
    """The application on a world, with commands that are watched, or (`auto`) that run in the
    sandbox where there is one.
    """
    settings = {"sandbox__mode": sandbox, **settings} if "sandbox.mode" in KEYS else settings
    config = {name.replace("__", "."): value for name, value in settings.items()}
    return world.open(model, config=config)


async def start(app: App, **settings: Any) -> Session:
    """A session that allows everything."""
    return await app.sessions.start_session(session_id="s", auto_approve=True, **settings)


def project_tree(world: World) -> dict[str, TreeEntry]:
    """The project as it is."""
    return tree(world.project)


def make_files(world: World) -> None:
    """A project with files of every kind."""
    world.write("a.txt", "one\n")
    world.write("dos.txt", "one\r\ntwo\r\n")
    world.write("d/b.txt", "two\n")
    world.write("d/deep/c.txt", "three\n")
    world.write("secret", "s\n").chmod(0o600)
    (world.project / "d" / "deep").chmod(0o700)
    (world.project / "binary").write_bytes(bytes(range(256)))
    (world.project / "empty").mkdir()
    (world.project / "link").symlink_to("a.txt")
    (world.project / "away").symlink_to("/no/where")


def add_submodule(world: World) -> None:
    """Another repository inside, as a submodule has it: a file `.git` that points elsewhere."""
    inner = world.project / "sub"
    subprocess.run(["git", "init", "-q", world.project], check=True)
    subprocess.run(["git", "init", "-q", inner], check=True)
    (inner / "m.txt").write_text("m\n")
    os.rename(inner / ".git", world.base / "elsewhere")
    (inner / ".git").write_text(f"gitdir: {world.base / 'elsewhere'}\n")


def actions(plan: RewindPlan) -> dict[str, str]:
    """What happens to each path that does not just stay."""
    return {item.path: item.action for item in plan.files if item.action != "unchanged"}


async def last_id(session: Session) -> str:
    """The id of the last message."""
    return (await session.messages_with_ids())[-1][0]
