"""How other agents are started without a terminal, on a vendor that is played (`scripted_vendor`).

`ADDRESS` stands for that vendor's address.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

PROMPT: Final = "write the report"


class AgentCommand(NamedTuple):
    """One agent."""

    name: str
    """Of its program."""
    words: tuple[str, ...]
    env: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    """Settings, by their paths below the home folder."""


_PI_MODEL: Final = {
    "id": "scripted",
    "name": "scripted",
    "reasoning": False,
    "input": ["text"],
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    "contextWindow": 200000,
    "maxTokens": 8192,
}
_PI: Final = {
    "providers": {
        "played": {
            "baseUrl": "ADDRESS/v1",
            "apiKey": "none",
            "api": "openai-completions",
            "models": [_PI_MODEL],
        }
    }
}
_OPENCODE: Final = {
    "permission": {"bash": "allow", "edit": "allow"},
    "provider": {
        "played": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "ADDRESS/v1", "apiKey": "none"},
            "models": {"scripted": {"name": "scripted"}},
        }
    },
}
_CODEX: Final = """
model = "scripted"
model_provider = "played"
[model_providers.played]
name = "played"
base_url = "ADDRESS/v1"
wire_api = "responses"
"""

AGENTS: Final = (
    AgentCommand(
        "claude",
        ("-p", PROMPT, "--dangerously-skip-permissions"),
        {
            "ANTHROPIC_BASE_URL": "ADDRESS",
            "ANTHROPIC_API_KEY": "none",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            # It refuses that switch to root anywhere else.
            "IS_SANDBOX": "1",
        },
    ),
    AgentCommand(
        "codex",
        (
            *("exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"),
            PROMPT,
        ),
        {"OPENAI_API_KEY": "none"},
        {".codex/config.toml": _CODEX},
    ),
    AgentCommand(
        "opencode",
        ("run", "-m", "played/scripted", PROMPT),
        {"OPENCODE_DISABLE_AUTOUPDATE": "1"},
        {".config/opencode/opencode.json": json.dumps(_OPENCODE)},
    ),
    AgentCommand(
        "pi",
        ("-p", "--provider", "played", "--model", "scripted", PROMPT),
        {},
        {".pi/agent/models.json": json.dumps(_PI)},
    ),
)
