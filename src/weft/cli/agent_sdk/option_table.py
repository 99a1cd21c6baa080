"""The command-line options of the Agent SDK as data; `sdk_options` carries them over into ours."""

from __future__ import annotations

from typing import Final

from weft.cli.command_spec import CommandOption

_ABOUT: Final = "As the Agent SDK gives it."


def _flag(name: str) -> CommandOption:
    return CommandOption((name,), _ABOUT)


def _text(name: str, choices: tuple[str, ...] = ()) -> CommandOption:
    return CommandOption((name,), _ABOUT, "text", "VALUE", choices)


SDK_OPTIONS: Final = (
    *map(_flag, ("--allow-dangerously-skip-permissions", "--await-initialize", "--debug")),
    *map(_flag, ("--debug-to-stderr", "--include-hook-events", "--managed-settings-in-initialize")),
    *map(_flag, ("--replay-user-messages", "--session-mirror")),
    *map(_text, ("--agent", "--agents", "--betas", "--channels", "--debug-file")),
    *map(_text, ("--managed-settings", "--max-thinking-tokens", "--project-config-root")),
    *map(_text, ("--resume-drops-turn", "--resume-session-at", "--setting-sources", "--settings")),
    *map(_text, ("--task-budget", "--thinking-display")),
    _text("--permission-prompts", ("host", "none")),
    _text("--thinking", ("adaptive", "enabled", "disabled")),
    CommandOption(("--plugin-dir",), _ABOUT, "many", "FOLDER", hidden=("--plugin-dir-no-mcp",)),
)
"""What is taken besides our own options; of two with one name, these count."""
