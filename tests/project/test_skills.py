"""Skills: told by name and description, in full when used."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from weft.errors import UsageError
from weft.project.skills import find_skills
from weft.providers import ScriptedModel
from weft.providers.script import CallTool, SayText

pytestmark = pytest.mark.anyio

BODY = "Always say please."


def write_skill(folder: Path, name: str, extra: str = "") -> None:
    place = folder / name
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: How to be {name}.\n{extra}---\n\n{BODY}\n"
    )


def test_the_nearest_of_a_name_wins_and_a_broken_one_hides_no_other(tmp_path: Path) -> None:
    project, home = tmp_path / "p", tmp_path / "h"
    project.mkdir()
    write_skill(project / ".weft/skills", "polite")
    write_skill(home / ".claude/skills", "polite")
    write_skill(home / ".agents/skills", "brief")
    (project / ".agents/skills/broken").mkdir(parents=True)
    (project / ".agents/skills/broken/SKILL.md").write_text("---\nname: [\n---\n")
    skills = find_skills(project, home, tmp_path / "none")
    assert list(skills.found) == ["brief", "polite"]
    assert skills.found["polite"].path.startswith(str(project))
    assert len(skills.problems) == 1


async def test_only_name_and_description_are_told_until_the_skill_is_used(tmp_path: Path) -> None:
    write_skill(tmp_path / ".agents/skills", "polite")
    model = ScriptedModel([[CallTool(name="skill", args={"name": "polite"})], [SayText(text="ok")]])
    async with weft.open(tmp_path, store="memory") as app:
        session = await app.sessions.start_session(model=model)
        reply = await session.send_message("hello")
    first = model.requests[0]
    assert "How to be polite." in first.system
    assert BODY not in first.system
    assert "skill" in [tool.name for tool in first.tools]
    assert any(BODY in message.content for message in reply.messages if message.role == "tool")


@pytest.mark.requirement(
    "session:list_skills", "session:activate_skill", "session:deactivate_skill"
)
async def test_an_active_skill_is_in_the_prompt_and_survives_reopening(tmp_path: Path) -> None:
    write_skill(tmp_path / ".agents/skills", "polite", "disable-model-invocation: true\n")
    model = ScriptedModel([[SayText(text=str(i))] for i in range(4)])
    store = tmp_path / "weft.db"
    async with weft.open(tmp_path, store=store) as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("a")
        await session.activate_skill("polite")
        with pytest.raises(UsageError, match="no skill 'rude'"):
            await session.activate_skill("rude")
        await session.send_message("b")
    async with weft.open(tmp_path, store=store) as app:
        again = await app.sessions.start_session(session_id=session.id, model=model)
        assert (await again.list_skills())[1] == ["polite"]
        await again.send_message("c")
        await again.deactivate_skill("polite")
        await again.send_message("d")
    assert [BODY in request.system for request in model.requests] == [False, True, True, False]
