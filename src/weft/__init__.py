"""Weft: a coding-agent session engine.

    async with weft.open() as app:
        session = await app.sessions.start_session(model="anthropic:claude-sonnet-5-5")
        reply = await session.send_message("Why does the test fail?")

This module is the face we promise to keep.  Names are loaded when they are used, so that importing
it costs next to nothing.
"""

from __future__ import annotations

from weft.version import __version__

# By hand: `typing` takes as long to load as the interpreter itself, and the chat shows no key
# before this module is loaded.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from weft.api import (
        Answer,
        Delta,
        HistoryMessage,
        Reply,
        Result,
        Session,
        SessionManager,
        query,
        stream,
    )
    from weft.app import App, run
    from weft.app import open_app as open
    from weft.errors import WeftError
    from weft.loom import LoomSession
    from weft.messages import File, Image, Text, Usage
    from weft.server import connect
    from weft.store import Store
    from weft.tools import Tool, ToolContext, tool


_HOME = {
    "Answer": ("weft.api", "Answer"),
    "App": ("weft.app", "App"),
    "Delta": ("weft.api", "Delta"),
    "File": ("weft.messages", "File"),
    "HistoryMessage": ("weft.api", "HistoryMessage"),
    "Image": ("weft.messages", "Image"),
    "LoomSession": ("weft.loom", "LoomSession"),
    "Reply": ("weft.api", "Reply"),
    "Result": ("weft.api", "Result"),
    "Session": ("weft.api", "Session"),
    "SessionManager": ("weft.api", "SessionManager"),
    "Store": ("weft.store", "Store"),
    "Text": ("weft.messages", "Text"),
    "Tool": ("weft.tools", "Tool"),
    "ToolContext": ("weft.tools", "ToolContext"),
    "Usage": ("weft.messages", "Usage"),
    "WeftError": ("weft.errors", "WeftError"),
    "connect": ("weft.server", "connect"),
    "open": ("weft.app", "open_app"),
    "query": ("weft.api", "query"),
    "run": ("weft.app", "run"),
    "stream": ("weft.api", "stream"),
    "tool": ("weft.tools", "tool"),
}

__all__ = [
    "Answer",
    "App",
    "Delta",
    "File",
    "HistoryMessage",
    "Image",
    "LoomSession",
    "Reply",
    "Result",
    "Session",
    "SessionManager",
    "Store",
    "Text",
    "Tool",
    "ToolContext",
    "Usage",
    "WeftError",
    "__version__",
    "connect",
    "open",
    "query",
    "run",
    "stream",
    "tool",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in ("sync", "testing"):
        return import_module(f"weft.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    module, attribute = _HOME[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
