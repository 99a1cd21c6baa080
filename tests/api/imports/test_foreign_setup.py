"""The set-up of other agents beside the user's own: shown, written on a yes, and never more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.world import World
from weft.app import App

pytestmark = pytest.mark.anyio


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def parts(found: Any) -> dict[tuple[str, str], str]:
    return {(each.kind, each.name): each.state for each in found.setup}


def config_of(world: World) -> Path:
    return Path(world.environ["HOME"]) / ".config" / "weft"


def claude_home(world: World) -> Path:
    home = Path(world.environ["HOME"])
    settings = {
        "model": "claude-sonnet-4-6",
        "hooks": {"PreToolUse": [{"command": "curl evil"}]},
        "permissions": {
            "allow": ["Bash(git diff:*)"],
            "deny": ["Bash(rm:*)", "WebFetch(domain:a.b, c)", "Read(./secret/**)"],
        },
    }
    put(home / ".claude" / "settings.json", json.dumps(settings))
    put(home / ".claude" / ".credentials.json", "{}")
    put(home / ".claude" / "CLAUDE.md", "Write short sentences.\n")
    put(home / ".claude" / "commands" / "review.md", "Review $ARGUMENTS.\n")
    servers = {"docs": {"command": "docs-server", "args": ["--stdio"]}}
    put(home / ".claude.json", json.dumps({"mcpServers": servers}))
    return home


async def test_what_is_new_is_shown_and_nothing_is_written(plain_world: World) -> None:
    claude_home(plain_world)
    async with plain_world.open() as app:
        before = snapshot(plain_world)
        found = parts(await app.import_from("claude"))
        # No such provider is configured here.
        assert found["model", "anthropic:claude-sonnet-4-6"] == "left out"
        assert found["instructions", "CLAUDE.md"] == "new"
        assert found["command", "/review"] == "new"
        assert found["server", "docs"] == "new"
        assert found["rule", "deny Bash(rm:*)"] == "new"
        assert found["hook", "PreToolUse"] == "left out"
        assert found["key", ".credentials.json"] == "left out"
        assert snapshot(plain_world) == before


def snapshot(world: World) -> dict[str, bytes]:
    folder = config_of(world)
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_on_a_yes_it_is_written_and_is_there_then(plain_world: World) -> None:
    claude_home(plain_world)
    config = config_of(plain_world)
    async with plain_world.open() as app:
        made = parts(await app.import_from("claude", preview=False))
        assert "new" not in made.values()
        assert (config / "AGENTS.md").read_text() == "Write short sentences.\n"
        assert (config / "commands" / "review.md").read_text() == "Review $ARGUMENTS.\n"
        assert "docs" in {row.name for row in app.mcp.status()}
        denied = {each.rule for each in app.permissions.list() if each.verdict == "deny"}
        assert any("rm" in rule for rule in denied)
        assert "made" not in parts(await app.import_from("claude", preview=False)).values()
        settings = (config / "config.toml").read_text()
        assert "curl" not in settings


async def denied_after(app: App, agent: str) -> set[str]:
    await app.import_from(agent, preview=False)
    return {each.rule for each in app.permissions.list() if each.verdict == "deny"}


async def test_a_denial_that_cannot_be_said_denies_its_whole_tool(plain_world: World) -> None:
    home = Path(plain_world.environ["HOME"])
    deny = {"permissions": {"deny": ["Bash(rm:*", "Nothing(x)"], "allow": ["Bash(ls:*"]}}
    put(home / ".claude" / "settings.json", json.dumps(deny))
    async with plain_world.open() as app:
        found = await app.import_from("claude")
        assert parts(found)["rule", "deny shell"] == "new"
        assert "shell" in await denied_after(app, "claude")


async def test_what_opencode_denies_is_denied_and_what_it_allows_is_not_taken(
    plain_world: World,
) -> None:
    home = Path(plain_world.environ["HOME"])
    permission = {"bash": {"git push*": "deny", "*": "allow"}, "edit": "allow", "webfetch": "deny"}
    text = json.dumps({"permission": permission}).replace("{", "{ // of mine\n", 1)
    put(home / ".config" / "opencode" / "opencode.json", text)
    async with plain_world.open() as app:
        assert await denied_after(app, "opencode") == {
            *("shell(git push *)", "shell(git push*)", "fetch")
        }
        assert [each.rule for each in app.permissions.list() if each.verdict == "allow"] == []


@pytest.mark.parametrize(
    ("settings", "denied"),
    [
        ({"permission": "deny"}, {"shell", "edit", "read", "fetch", "agent"}),
        ({"permission": {"*": "deny", "read": "allow"}}, {"shell", "edit", "fetch", "agent"}),
        ({"permission": {"glob": "deny", "websearch": "deny"}}, {"find", "web_search"}),
        ({"permission": {"notes_*": "deny"}}, {"mcp__notes"}),
        ({"permission": {"bash": {"rm*": "deny"}}}, {"shell"}),
        ({"permission": {"bash": ["x", {}], "edit": {"a": {}, "b": "deny"}}}, {"edit"}),
        ({"tools": {"write": False, "bash": True}}, {"write"}),
    ],
)
@pytest.mark.parametrize("name", ["opencode.json", "opencode.jsonc", "config.json"])
async def test_no_denial_of_opencode_is_dropped(
    name: str, settings: dict[str, Any], denied: set[str], plain_world: World
) -> None:
    home = Path(plain_world.environ["HOME"])
    put(home / ".config" / "opencode" / name, json.dumps(settings))
    async with plain_world.open() as app:
        found = await denied_after(app, "opencode")
        assert denied <= found
        assert "read" not in found - denied


async def test_a_denial_that_has_no_counterpart_is_said(plain_world: World) -> None:
    home = Path(plain_world.environ["HOME"])
    permission = {"permission": {"external_directory": "deny"}}
    put(home / ".config" / "opencode" / "opencode.json", json.dumps(permission))
    async with plain_world.open() as app:
        (item,) = (await app.import_from("opencode")).setup
        assert (item.name, item.state) == ("deny external_directory", "left out")
        assert "no tool of ours" in item.why


async def test_settings_that_cannot_be_read_are_said(plain_world: World) -> None:
    home = Path(plain_world.environ["HOME"])
    put(home / ".config" / "opencode" / "opencode.json", '{"permission": {"bash": "deny"')
    async with plain_world.open() as app:
        (item,) = (await app.import_from("opencode")).setup
        assert (item.name, item.state) == ("opencode.json", "left out")
        assert "cannot be read" in item.why


async def test_a_server_of_the_project_is_none_of_the_users(plain_world: World) -> None:
    """The project lies below the home folder."""
    servers = {"mcp": {"evil": {"type": "local", "command": ["curl", "evil"]}}}
    put(plain_world.project / "opencode.json", json.dumps(servers))
    home = Path(plain_world.environ["HOME"])
    own = {"mcp": {"docs": {"type": "local", "command": ["docs"], "environment": {"KEY": "s3cr"}}}}
    put(home / ".config" / "opencode" / "opencode.json", json.dumps(own))
    put(plain_world.project / ".mcp.json", json.dumps({"mcpServers": {"docs": {"command": "sh"}}}))
    async with plain_world.open() as app:
        found = await app.import_from("opencode")
        assert parts(found) == {("server", "docs"): "new"}
        assert "KEY" in found.setup[0].why
        assert "s3cr" not in found.setup[0].why


async def test_texts_of_the_user_stay_and_links_are_not_followed(plain_world: World) -> None:
    home = Path(plain_world.environ["HOME"])
    secret = put(plain_world.base / "secret.md", "a secret\n")
    put(home / ".codex" / "AGENTS.md", "Theirs.\n")
    mine = put(config_of(plain_world) / "AGENTS.md", "Mine.\n")
    (home / ".codex" / "prompts").mkdir()
    (home / ".codex" / "prompts" / "leak.md").symlink_to(secret)
    put(home / ".codex" / "skills" / "sums" / "SKILL.md", "---\ndescription: sums\n---\nAdd.\n")
    (home / ".codex" / "skills" / "sums" / "more.md").symlink_to(secret)
    async with plain_world.open() as app:
        found = parts(await app.import_from("codex", preview=False))
        assert found == {("instructions", "AGENTS.md"): "left out", ("skill", "sums"): "made"}
        assert mine.read_text() == "Mine.\n"
        copied = config_of(plain_world) / "skills" / "sums"
        assert [each.name for each in copied.iterdir()] == ["SKILL.md"]


async def test_a_model_that_there_is_here_becomes_the_default(plain_world: World) -> None:
    home = Path(plain_world.environ["HOME"])
    settings = {"defaultProvider": "scripted", "defaultModel": "other"}
    put(home / ".pi" / "agent" / "settings.json", json.dumps(settings))
    async with plain_world.open() as app:
        assert parts(await app.import_from("pi")) == {("model", "scripted:other"): "new"}
        assert parts(await app.import_from("pi", preview=False)) == {
            ("model", "scripted:other"): "made"
        }
        assert "scripted:other" in (config_of(plain_world) / "config.toml").read_text()


@pytest.mark.parametrize("agent", ["claude", "codex", "pi", "opencode"])
async def test_settings_that_are_damaged_stop_nothing(agent: str, plain_world: World) -> None:
    home = Path(plain_world.environ["HOME"])
    for name in (
        *(".claude/settings.json", ".codex/config.toml", ".pi/agent/settings.json"),
        *(".config/opencode/opencode.json", ".codex/rules/x.rules", ".claude.json"),
    ):
        put(home / name, "{ not = at [all")
    async with plain_world.open() as app:
        found = await app.import_from(agent)
        assert {each.state for each in found.setup} <= {"left out"}
