"""A session with one tool that switches between the models of several vendors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

import weft
from tests.support.vendor_models import VendorModel
from weft.api.session import Session
from weft.app import App
from weft.errors import FinalToolError


async def look(where: str) -> str:
    """Look somewhere."""
    if where == "up":
        raise FinalToolError("there is no up")
    return f"nothing at {where}"


def open_app(folder: Path) -> App:
    return weft.open(
        folder,
        "memory",
        {"model.default": "scripted:none"},
        environ={"HOME": str(folder), "WEFT_HOME": str(folder)},
        sleep=_no_wait,
    )


async def _no_wait(seconds: float) -> None:
    await anyio.lowlevel.checkpoint()


async def start(app: App, models: dict[str, VendorModel], **settings_: Any) -> Session:
    first = next(iter(models.values()))
    tool = weft.tool(effect="pure")(look)
    session = await app.sessions.start_session(model=first.model, tools=[tool], **settings_)
    for each in models.values():
        await session.update_model(each.model)
    await session.update_model(first.model)
    return session
