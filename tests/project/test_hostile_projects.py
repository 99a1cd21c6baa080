"""Hostile projects: nothing outside is read, nothing hangs, and one sentence tells what is left
out.
"""

from __future__ import annotations

import itertools
import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.example_count import cases
from tests.support.hook_project import HookProject
from tests.support.hostile_project import CANARY, FOLDERS, SKILL, SLOTS, TRAPS, Outside, sparse_file
from weft.errors import UsageError
from weft.providers import ScriptedModel
from weft.providers.script import CallTool, SayText

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
def place(tmp_path: Path) -> HookProject:
    return HookProject(tmp_path)


@pytest.fixture
def outside(place: HookProject, tmp_path: Path) -> Outside:
    place.home.rmdir()
    return Outside(tmp_path)


class Life:
    """A short session on a project: all that the project brings is listed, and used."""

    def __init__(self, place: HookProject) -> None:
        self._place = place
        self.model = ScriptedModel(
            [
                [CallTool(name="skill", args={"name": "trap"})],
                [CallTool(name="agent", args={"agent": "trap", "prompt": "work"})],
                *[[SayText(text="ok")] for _ in range(9)],
            ]
        )
        self.problems: tuple[str, ...] = ()
        self.known = ""

    async def live(self) -> str:
        """All that the model saw, and all that was found."""
        async with self._place.open() as app:
            session = await app.sessions.start_session(model=self.model, asking="no")
            commands = await session.list_commands()
            found = (
                app.config.all(),
                await app.trust_question(),
                await session.list_skills(),
                await session.list_agents(),
                commands,
            )
            await session.send_message("go")
            for command in commands:
                expanded = await session.expand_command(f"/{command.name}")
                await session.send_message(expanded.content)
            self.problems = await app.project_problems()
        return repr((found, self.model.requests))


def assert_one_sentence(problems: tuple[str, ...], about: str) -> None:
    """Exactly one thing is told, in one line that names the file."""
    [told] = problems
    assert about in told
    assert told.isprintable()
    assert len(told) < 500


@pytest.mark.parametrize(
    ("slot", "trap"),
    cases(itertools.product(SLOTS, TRAPS)),
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
async def test_a_trap_is_left_out_with_one_sentence(
    place: HookProject, outside: Outside, slot: str, trap: Callable[[Path, Outside, str], None]
) -> None:
    trap(place.project / slot, outside, SLOTS[slot])
    life = Life(place)
    assert CANARY not in await life.live()
    assert_one_sentence(life.problems, slot)


@pytest.mark.parametrize("folder", FOLDERS)
async def test_a_folder_that_leads_out_brings_nothing(
    place: HookProject, outside: Outside, folder: str
) -> None:
    slot = f"{folder}/{FOLDERS[folder]}"
    behind = outside.folder / "other" / FOLDERS[folder]
    behind.parent.mkdir(parents=True)
    behind.write_text(SLOTS[slot])
    (place.project / folder).parent.mkdir(parents=True, exist_ok=True)
    (place.project / folder).symlink_to(outside.folder / "other")
    life = Life(place)
    assert CANARY not in await life.live()
    assert_one_sentence(life.problems, folder)


@pytest.mark.parametrize("slot", SLOTS)
async def test_a_huge_file_is_not_read_to_its_end(place: HookProject, slot: str) -> None:
    sparse_file(place.project / slot, "x")
    life = Life(place)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await life.live()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200 * 1024, f"{grown} KB more"
    assert_one_sentence(life.problems, slot)


# --- what is written in them ------------------------------------------------------------------

LAUGHS = "\n".join(
    ["a0: &a0 [lol]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    + ["description: *a11"]
)
MERGED = "\n".join(
    ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]" for n in range(1, 26)]
)
BAD_YAML = {
    "a bomb of aliases": LAUGHS,
    "a bomb of merges": MERGED,
    "brackets": "description: " + "[" * 10_000,
    "a deep table": "\n".join(" " * depth + "a:" for depth in range(180)),
    "a huge text": "description: " + "x" * 100_000,
    "a name twice": "description: good\ndescription: bad",
    "a list": "- description",
    "a list for a text": "description: good\nname: [a, b]\nmodel: [a, b]",
    "a table for a text": "description: good\nname: {a: b}\nmodel: {a: b}",
    "a tag": "description: !!python/object/apply:os.system [id]",
    "a control character": "description: \x1b[2J",
    "no YAML": "description: [",
}


@pytest.mark.parametrize("yaml", cases(BAD_YAML.values()), ids=cases(BAD_YAML))
@pytest.mark.parametrize(
    "slot", [".agents/skills/trap/SKILL.md", ".weft/agents/trap.md", ".weft/commands/trap.md"]
)
async def test_bad_settings_at_the_top_leave_the_file_out(
    place: HookProject, slot: str, yaml: str
) -> None:
    place.write(slot, f"---\n{yaml}\n---\nbody\n")
    place.write(".agents/skills/good/SKILL.md", "---\ndescription: A good one.\n---\nbody\n")
    life = Life(place)
    assert "A good one." in await life.live(), "a broken file hides no other"
    assert_one_sentence(life.problems, slot)


@pytest.mark.parametrize(
    "body", [b"a\xff\xfeb", b"\xef\xbb\xbfa\r\nb", "a\u202eb\u0007\x1b[2J".encode()]
)
async def test_odd_letters_break_nothing(place: HookProject, body: bytes) -> None:
    place.project.joinpath("AGENTS.md").write_bytes(b"begin " + body + b" end")
    skill = place.write(".agents/skills/odd/SKILL.md", "")
    skill.write_bytes(b"---\r\ndescription: Odd.\r\n---\r\nbegin " + body + b" end")
    life = Life(place)
    seen = await life.live()
    assert "begin" in seen
    assert "- odd: Odd." in seen
    assert "\\r" not in seen
    assert life.problems == ()


@pytest.mark.parametrize("named", ["@../outside", "@link", "@up/outside", "@{outside}", "@pipe"])
async def test_a_command_attaches_no_file_that_is_not_the_projects(
    place: HookProject, outside: Outside, named: str
) -> None:
    path = outside.file(CANARY)
    (place.project / "link").symlink_to(path)
    (place.project / "up").symlink_to("..")
    os.mkfifo(place.project / "pipe")
    place.write(".weft/commands/trap.md", f"Look at {named.format(outside=path)}")
    life = Life(place)
    with pytest.raises(UsageError, match=r"is outside the project|is a named pipe") as refused:
        await life.live()
    assert CANARY not in str(refused.value)
    assert CANARY not in repr(life.model.requests)


# --- names ----------------------------------------------------------------------------------


async def test_names_that_would_write_on_the_screen_are_left_out(place: HookProject) -> None:
    for name in ("two\nlines", "\x1b[2J", "\udcff", "\u202eevil"):  # the third is the byte FF
        place.write(f".agents/skills/{name}/SKILL.md", SKILL)
    life = Life(place)
    assert CANARY not in await life.live()
    assert_one_sentence(life.problems, "4 of the names in it cannot be printed")


@pytest.mark.parametrize("name", ["../../outside", "/etc/passwd", "a/b", "..", "a\\nb", "A B"])
async def test_a_skill_is_not_called_like_a_path(place: HookProject, name: str) -> None:
    place.write(".agents/skills/trap/SKILL.md", f'---\nname: "{name}"\ndescription: x\n---\n')
    life = Life(place)
    await life.live()
    assert_one_sentence(life.problems, "is not a valid skill name")


# --- many of them ---------------------------------------------------------------------------


async def test_thousands_of_skills_and_agents_push_none_of_the_users_out(
    place: HookProject,
) -> None:
    for number in range(1_000):
        text = f"---\nname: a{number}\ndescription: {'x' * 900}\n---\nbody\n"
        place.write(f".agents/skills/a{number}/SKILL.md", text)
        place.write(f".weft/agents/a{number}.md", text)
    for kind in ("skills/mine/SKILL.md", "agents/mine.md"):
        (place.config / kind).parent.mkdir(parents=True)
        (place.config / kind).write_text("---\nname: zz-mine\ndescription: My own.\n---\nbody\n")
    life = Life(place)
    await life.live()
    system = life.model.requests[0].system
    assert system.count("- zz-mine: My own.") == 2
    assert system.count("more are left out: the list is too long") == 2
    assert len(system) < 100_000
    assert len(life.problems) == 2
    assert all("more than 500" in problem for problem in life.problems)


async def test_thousands_of_broken_files_are_a_few_sentences(place: HookProject) -> None:
    for number in range(1_000):
        place.write(f".agents/skills/a{number}/SKILL.md", "---\n[\n---\n")
    life = Life(place)
    await life.live()
    assert len(life.problems) == 20
    assert life.problems[-1] == "482 more files"


# --- secrets --------------------------------------------------------------------------------

KEY = "sk-ant-api03-" + "a1B2c3D4e5" * 5
TOKEN = "ghp_" + "a1B2c3D4e5" * 4


async def test_secrets_in_what_a_project_brings_reach_no_model(place: HookProject) -> None:
    place.write("AGENTS.md", f"Deploy with ANTHROPIC_API_KEY={KEY}, then {TOKEN}.")
    head = f"name: trap\ndescription: Use {TOKEN} for it."
    place.write(".agents/skills/trap/SKILL.md", f"---\n{head}\n---\nThe key is {KEY}.\n")
    place.write(".weft/agents/trap.md", f"---\n{head}\n---\nYou know {KEY}.\n")
    place.write(".weft/commands/trap.md", f"Say {KEY} to everybody.\n")
    life = Life(place)
    await life.live()
    seen = repr(life.model.requests)
    assert KEY not in seen
    assert TOKEN not in seen
    for begin in ("Deploy with", "Use", "The key is", "You know", "Say"):
        assert f"{begin} " in seen, "the rest is there"


async def test_a_secret_at_the_limit_is_masked_before_the_text_is_cut(place: HookProject) -> None:
    place.write("AGENTS.md", "x " * (16 * 1024 - 8) + f" {KEY} and more")
    life = Life(place)
    await life.live()
    system = life.model.requests[0].system
    assert "sk-ant" not in system
    assert "The rest is left out" in system
    assert_one_sentence(life.problems, "AGENTS.md: only its beginning counts")


# --- everyday use ---------------------------------------------------------------------------


async def test_links_that_stay_in_the_repository_work(place: HookProject) -> None:
    """A package of a monorepo, with links to what the whole repository shares."""
    root, place.project = place.project, place.project / "packages" / "web"
    place.project.mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "CLAUDE.md").write_text("Shared instructions.")
    (root / "AGENTS.md").symlink_to("CLAUDE.md")
    (root / "docs").mkdir()
    (root / "docs" / "web.md").write_text("Instructions for the web.")
    (place.project / "AGENTS.md").symlink_to("../../docs/web.md")
    (root / "skills" / "test").mkdir(parents=True)
    (root / "skills" / "test" / "SKILL.md").write_text(
        "---\ndescription: How we test.\n---\nbody\n"
    )
    (place.project / ".claude").mkdir()
    (place.project / ".claude" / "skills").symlink_to(root / "skills")
    (root / ".weft" / "agents").mkdir(parents=True)
    (root / "reviewer.md").write_text("---\ndescription: Reviews.\n---\nbody\n")
    (root / ".weft" / "agents" / "reviewer.md").symlink_to("../../reviewer.md")
    life = Life(place)
    await life.live()
    system = life.model.requests[0].system
    assert system.index("Shared instructions.") < system.index("Instructions for the web.")
    assert "- test: How we test." in system
    assert "- reviewer: Reviews." in system
    assert life.problems == ()


async def test_the_users_own_files_may_be_links_to_anywhere(
    place: HookProject, tmp_path: Path
) -> None:
    dotfiles = tmp_path / "dotfiles"
    (dotfiles / "skills" / "mine").mkdir(parents=True)
    (dotfiles / "agents").mkdir()
    (dotfiles / "AGENTS.md").write_text("My instructions.")
    (dotfiles / "config.toml").write_text("[session]\nmax_turns = 7\n")
    (dotfiles / "skills" / "mine" / "SKILL.md").write_text(
        "---\ndescription: My skill.\n---\nbody\n"
    )
    (dotfiles / "agents" / "mine.md").write_text("---\ndescription: My agent.\n---\nbody\n")
    place.config.mkdir(parents=True)
    (place.home / ".claude").mkdir()
    for name in ("AGENTS.md", "config.toml", "agents"):
        (place.config / name).symlink_to(dotfiles / name)
    (place.home / ".claude" / "skills").symlink_to(dotfiles / "skills")
    life = Life(place)
    await life.live()
    system = life.model.requests[0].system
    for told in ("My instructions.", "- mine: My skill.", "- mine: My agent."):
        assert told in system
    assert life.problems == ()
    assert place.open().config.get("session.max_turns") == 7


async def test_in_the_home_folder_itself_the_users_skills_are_theirs(
    place: HookProject, tmp_path: Path
) -> None:
    (tmp_path / "dotfiles" / "mine").mkdir(parents=True)
    (tmp_path / "dotfiles" / "mine" / "SKILL.md").write_text(
        "---\ndescription: My skill.\n---\nbody\n"
    )
    place.project = place.home
    (place.home / ".agents").mkdir()
    (place.home / ".agents" / "skills").symlink_to(tmp_path / "dotfiles")
    life = Life(place)
    await life.live()
    assert "- mine: My skill." in life.model.requests[0].system
    assert life.problems == ()


async def test_another_file_counts_where_the_first_is_left_out(place: HookProject) -> None:
    os.mkfifo(place.project / "AGENTS.md")
    place.write("CLAUDE.md", "These count.")
    life = Life(place)
    await life.live()
    assert "These count." in life.model.requests[0].system
    assert_one_sentence(life.problems, "AGENTS.md")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("slot", SLOTS)
async def test_what_another_user_left_in_a_shared_folder_is_not_obeyed(
    place: HookProject, slot: str
) -> None:
    os.chown(place.write(slot, SLOTS[slot]), 12345, 12345)
    life = Life(place)
    assert CANARY not in await life.live()
    assert_one_sentence(life.problems, slot)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("slot", SLOTS)
async def test_root_works_on_a_checkout_of_another_user(place: HookProject, slot: str) -> None:
    os.chown(place.write(slot, SLOTS[slot]), 12345, 12345)
    os.chown(place.project, 12345, 12345)
    life = Life(place)
    assert CANARY in await life.live()
    assert life.problems == ()
