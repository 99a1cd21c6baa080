"""What programs of the Agent SDK are told of a session: the answer to `initialize`, and what fills
the context."""

from __future__ import annotations

import os
from typing import Any, Final

from weft.api.session import Session
from weft.app import App
from weft.protocol.agent_sdk_dialect import ToolDialect
from weft.protocol.session_options import SPOKEN_VERSION

MOST_MODELS: Final = 200
_NO_EFFORTS: Final = ("off", "minimal")
"""Levels that readers of the SDK have no name for."""
_COLORS: Final = ("permission", "claude", "warning", "success", "inactive", "promptBorder")


async def initialize_answer(app: App, session: Session, dialect: ToolDialect) -> dict[str, Any]:
    """What `initialize` is answered."""
    snapshot = await session.editor_snapshot()
    agents = await session.list_agents()
    return {
        "commands": await _commands(session),
        "agents": [_agent(each) for each in agents],
        "output_style": "default",
        "available_output_styles": ["default"],
        "models": await _models(app),
        "account": {"tokenSource": "none", "apiKeySource": "none", "apiProvider": "firstParty"},
        "pid": os.getpid(),
        "claude_code_version": SPOKEN_VERSION,
        "current_permission_mode": dialect.mode(snapshot.permission_mode),
    }


async def _commands(session: Session) -> list[dict[str, str]]:
    """The commands that a message may name: those from files."""
    return [
        {
            "name": command.name,
            "description": command.description,
            "argumentHint": command.argument_hint,
        }
        for command in await session.list_commands()
    ]


def _agent(agent: Any) -> dict[str, str]:
    told = {"name": agent.name, "description": agent.description}
    return {**told, "model": agent.model} if agent.model else told


async def _models(app: App) -> list[dict[str, Any]]:
    """The models that there are keys for, and before them the one that is used without a name."""
    usual = app.host.default_model() if app.host.has_default_model() else ""
    named = {
        "value": "default",
        "displayName": "Default",
        "description": f"The model that is configured ({usual or 'none'})",
    }
    found = await app.host.available_models(app.host.usable_providers())
    first = {**named, "resolvedModel": usual} if usual else named
    return [first, *(_model(each) for each in found[:MOST_MODELS] if each.name)]


def _model(info: Any) -> dict[str, Any]:
    levels = [level for level in info.levels if level not in _NO_EFFORTS]
    told = {
        "value": f"{info.provider}:{info.name}",
        "displayName": info.name,
        "description": f"{info.name} of {info.provider}, {info.context_window:,} tokens",
        "supportsEffort": bool(levels),
    }
    return {**told, "supportedEffortLevels": levels} if levels else told


async def context_usage(app: App, session: Session) -> dict[str, Any]:
    """What fills the context window, as the SDK has it."""
    from weft.app.context_report import context_report  # most programs never ask

    report = await context_report(session, app.host)
    window = report.window if report is not None else 0
    used = report.used if report is not None else 0
    zones = report.zones if report is not None else ()
    return {
        "categories": [
            {"name": zone.name, "tokens": zone.tokens, "color": _COLORS[n % len(_COLORS)]}
            for n, zone in enumerate(zones)
        ],
        "totalTokens": used,
        "maxTokens": window,
        "rawMaxTokens": window,
        "percentage": min(100, round(100 * used / window)) if window else 0,
        "model": report.model if report is not None else "",
        "isAutoCompactEnabled": bool(report is not None and report.compacts_at),
        **({"autoCompactThreshold": report.compacts_at} if report and report.compacts_at else {}),
        # What readers draw of it is theirs; these are there because they expect the fields.
        "gridRows": [],
        "memoryFiles": [],
        "mcpTools": [],
        "agents": [],
        "apiUsage": None,
    }
