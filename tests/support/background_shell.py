"""A scripted model that starts shell commands in the background, and a session that allows them."""

from __future__ import annotations

from typing import Any

from weft.api.session import Session
from weft.app import App
from weft.providers.script import CallTool, SayText, Step
from weft.providers.scripted import ScriptedModel


def background_shell(command: str, **more: Any) -> CallTool:
    return CallTool(name="shell", args={"command": command, "background": True, **more})


def plays(*answers: str | Step | list[Step]) -> ScriptedModel:
    return ScriptedModel(
        [[SayText(text=each)] if isinstance(each, str) else each for each in answers]
    )


async def start(app: App, **settings: Any) -> Session:
    return await app.sessions.start_session(session_id="s", auto_approve=True, **settings)
