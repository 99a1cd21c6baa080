"""AGENTS.md, from the person's own to the nearest."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from weft.project.instructions import LIMIT, find_instructions
from weft.providers import ScriptedModel
from weft.providers.script import SayText

pytestmark = pytest.mark.anyio


def repository(tmp_path: Path) -> Path:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    inner = tmp_path / "repo" / "a" / "b"
    inner.mkdir(parents=True)
    return inner


def test_the_users_own_come_first_and_the_nearest_last(tmp_path: Path) -> None:
    inner = repository(tmp_path)
    config = tmp_path / "config"
    config.mkdir()
    (config / "AGENTS.md").write_text("mine")
    (tmp_path / "AGENTS.md").write_text("outside the repository")
    (tmp_path / "repo" / "AGENTS.md").write_text("outer")
    (inner / "AGENTS.md").write_text("inner")
    text = find_instructions(inner, config).text
    assert [word for word in text.split() if word in ("mine", "outer", "inner")] == [
        "mine",
        "outer",
        "inner",
    ]
    assert "outside" not in text


def test_claude_md_is_read_only_where_there_is_no_agents_md(tmp_path: Path) -> None:
    inner = repository(tmp_path)
    (tmp_path / "repo" / "CLAUDE.md").write_text("from claude")
    (inner / "AGENTS.md").write_text("from agents")
    (inner / "CLAUDE.md").write_text("not this one")
    text = find_instructions(inner, tmp_path / "none").text
    assert "from claude" in text
    assert "from agents" in text
    assert "not this one" not in text


def test_instructions_are_bounded_and_say_so(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("x" * (LIMIT * 2))
    text = find_instructions(tmp_path, tmp_path / "none").text
    assert len(text) < LIMIT + 500
    assert "left out" in text


async def test_the_model_is_told_and_a_changed_file_is_told_in_a_message(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("use tabs")
    model = ScriptedModel([[SayText(text="one")], [SayText(text="two")], [SayText(text="three")]])
    async with weft.open(tmp_path, store="memory") as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("a")
        await session.send_message("b")
        (tmp_path / "AGENTS.md").write_text("use spaces")
        await session.send_message("c")
    first, second, third = (request.system for request in model.requests)
    assert "use tabs" in first
    assert first == second == third
    assert "use spaces" in repr(model.last_request.messages[-1])
