"""The page of all settings, from the table that Weft itself reads.

    python -m scripts.settings_page    # writes docs/settings.md

A test compares the page with the table, and reads every example with the reader of settings.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

from weft.config.setting_keys import KEYS, SettingKey, kind_name

WIDTH = 100
PAGE = Path(__file__).parent.parent / "docs" / "settings.md"

INTRODUCTION = """\
# Settings

<!-- Written by `python -m scripts.settings_page`; edit `weft/config/setting_keys.py` instead. -->

Settings come from four places; a later one takes precedence:

1. `~/.config/weft/config.toml`, your own;
2. `.weft/config.toml` in the project: before you [trust](hooks.md#trust) the folder, only what is
   marked "any project" below;
3. the environment: `WEFT_` and the name in capitals, with `_` for the dot (`WEFT_MODEL_DEFAULT`);
4. the command line: `--set NAME=VALUE`.

`weft config` shows every value and where it came from. An unknown name is an error that suggests
the nearest one. Rules and hooks of a project are added to yours; they replace none.

`weft config set NAME VALUE` writes a setting into your own file and `weft config unset NAME` takes
it out; in the chat, `/config NAME VALUE` and `/config unset NAME` do the same. Comments, order and
the file's mode stay as they are, and a value that the setting does not take is refused before
anything is written. A list is written with commas (`weft config set permissions.ask shell,fetch`),
a switch as on or off. Tables (`hooks`, `providers`, `models`, `profiles`) are written by hand.
"""
EXAMPLES: dict[str, str] = {
    "model.default": 'model.default = "anthropic:claude-sonnet-5-5:high"',
    "model.effort": 'model.effort = "medium"',
    "model.rotation": 'model.rotation = ["anthropic:claude-sonnet-5-5", "openai:gpt-5.5"]',
    "model.fallback": 'model.fallback = ["openai:gpt-5.5"]',
    "model.architect": 'model.architect = "anthropic:claude-opus-5-5"',
    "model.editor": 'model.editor = "anthropic:claude-haiku-5-5"',
    "model.style": 'model.style = "explanatory"',
    "agents.max_depth": "agents.max_depth = 1",
    "agents.max_parallel": "agents.max_parallel = 4",
    "agents.max_total": "agents.max_total = 20",
    "agents.step_turns": "agents.step_turns = 50",
    "fan.at_once": "fan.at_once = 8",
    "fan.isolation": 'fan.isolation = "overlay"',
    "fan.setup": 'fan.setup = "npm ci"',
    "fan.pin_ignored": "fan.pin_ignored = false",
    "fan.max_disk": "fan.max_disk = 8_589_934_592  # 8 GB",
    "fan.verify_seconds": "fan.verify_seconds = 1800",
    "loom.model": '[loom]\nmodel = "anthropic:claude-haiku-4-5"',
    "loom.n_branches": "[loom]\nn_branches = 3",
    "loom.max_tokens": "[loom]\nmax_tokens = 40",
    "loom.temperature": "[loom]\ntemperature = 1.0",
    "loom.show_model_names": "[loom]\nshow_model_names = false",
    "loom.models": '[loom.models."openai:gpt-4o-mini"]\nmax_tokens = 80\nn_branches = 2',
    "history.quota": "history.quota = 536_870_912  # 512 MB",
    "history.max_file": "history.max_file = 16_777_216  # 16 MB",
    "decisions.enabled": "decisions.enabled = false",
    "animation": "animation = false",
    "keys": 'keys = "vi"',
    "chat.keys": '[chat.keys]\nkeep = "alt+n"\nmodel = "f2 alt+m"',
    "loom.keys": '[loom.keys]\nnext_fork = "f"\nprevious_fork = "F"\nquit = "q ctrl+d"',
    "notify": "notify = false",
    "statusline": 'statusline = "date +%H:%M"',
    "theme": 'theme = "light"',
    "sandbox.mode": 'sandbox.mode = "on"',
    "sandbox.network": "sandbox.network = true",
    "sandbox.unix_sockets": "sandbox.unix_sockets = true",
    "sandbox.show": 'sandbox.show = ["~/.npmrc"]',
    "environment.pass": 'environment.pass = ["NPM_TOKEN"]',
    "repo.index": "repo.index = false",
    "repo.map_tokens": "repo.map_tokens = 2048",
    "repo.watch": "repo.watch = false",
    "web.tools": "web.tools = true",
    "web.search": 'web.search = "brave"',
    "web.search_url": 'web.search_url = "http://localhost:8888"',
    "lsp.enabled": "lsp.enabled = false",
    "lsp.servers": '[lsp.servers.nimlangserver]\ncommand = ["nimlangserver"]\nsuffixes = [".nim"]',
    "serve.autostart": "serve.autostart = true",
    "lsp.wait": "lsp.wait = 5.0",
    "lsp.idle_stop": "lsp.idle_stop = 3600.0",
    "lsp.max_memory": "lsp.max_memory = 4_294_967_296",
    "formatters": '[formatters.prettier]\ncommand = ["prettier", "--stdin-filepath", "{path}"]\n'
    'suffixes = [".ts", ".css"]',
    "context.instructions": "context.instructions = 4096",
    "context.memory": "context.memory = 1024",
    "context.skills": "context.skills = 4096",
    "context.agents": "context.agents = 2048",
    "context.results": "context.results = 4000",
    "store.address": '[store]\naddress = "postgres://weft@db.example.org/weft"',
    "session.idle_unload": "session.idle_unload = 600.0",
    "session.max_turns": "session.max_turns = 200",
    "session.max_seconds": "session.max_seconds = 1800.0",
    "session.max_tool_calls": "session.max_tool_calls = 50",
    "session.resume": 'session.resume = "auto"',
    "compaction.soft": "compaction.soft = 0.6",
    "compaction.hard": "compaction.hard = 0.8",
    "compaction.timeout": "compaction.timeout = 120.0",
    "permissions.mode": 'permissions.mode = "accept_edits"',
    "permissions.allow": 'permissions.allow = ["shell(git diff)", "write(docs/**)"]',
    "permissions.ask": 'permissions.ask = ["shell"]',
    "permissions.deny": 'permissions.deny = ["read(.env)", "write(migrations/**)"]',
    "permissions.examples": """[permissions.examples."deny shell(rm *)"]
match = ["rm -rf x"]""",
    "permissions.ask_timeout": "permissions.ask_timeout = 300.0",
    "hooks": '[[hooks.PostToolUse]]\nmatcher = "edit|write"\ncommand = "make format"',
    "providers": '[providers.here]\nprotocol = "chat"\nbase_url = "http://localhost:8000/v1"',
    "models": '[models."here:qwen3"]\nwindow = 131072\nvision = false',
    "profile": 'profile = "work"',
    "profiles": '[profiles.work.model]\ndefault = "openai:gpt-5.5"',
}


def page() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(_section(name, key) for name, key in KEYS.items())])


def _section(name: str, key: SettingKey) -> str:
    facts = f"Type: {kind_name(key.kind)}. Default: `{_default(key.default)}`. {_setters(key)}"
    about, said = (
        textwrap.fill(text, WIDTH, break_on_hyphens=False) for text in (key.about, facts)
    )
    return f"## `{name}`\n\n{about}\n\n{said}\n\n```toml\n{EXAMPLES[name]}\n```\n"


def _default(value: Any) -> str:
    return json.dumps(value)


def _setters(key: SettingKey) -> str:
    if key.personal:
        return "Set by: you alone, never a project."
    who = "any project" if key.safe else "a project that you trust"
    return f"Set by: you, {who}."


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
