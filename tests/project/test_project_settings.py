"""Broken settings and hooks of a project: an untrusted folder stops nothing, a trusted one says
where.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.support.hook_project import KEEP, HookProject, facts, shell
from tests.support.hostile_project import chain_in
from weft.cli.chat.trust_text import in_rows
from weft.errors import UsageError
from weft.events import ToolComplete
from weft.hooks.scripts import LARGEST_SCRIPT
from weft.project.system_prompt import SystemPromptWriter
from weft.project.trust import look
from weft.providers import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


@pytest.fixture
def place(tmp_path: Path) -> HookProject:
    return HookProject(tmp_path)


BROKEN = {
    "no value": (b"[session]\nmax_turns =\n", "is not valid TOML: Invalid value (at line 2"),
    "no TOML": (b"max_turns: 7\n", "is not valid TOML"),
    "a wrong type": (b"[session]\nmax_turns = 'many'\n", "config.toml, line 2 is not right"),
    "no turns": (
        b"[session]\nmax_turns = 0\n",
        "line 2 is not right: it takes a whole number of at least 1, not 0",
    ),
    "a table": (b"[session.max_turns]\na = 1\n", "line 1 is not right: it takes a whole number"),
    "a list": (b"session = [1]\n", "config.toml, line 1: there is no setting 'session'"),
    "no such name": (b"[session]\n\nmax_truns = 7\n", "line 3: there is no setting"),
    "a wrong list": (b"[permissions]\ndeny = [1, 2]\n", "config.toml, line 2 is not right"),
    "latin letters": (b"# f\xfcr dich\n", "is not UTF-8 text: line 1"),
    "UTF-16": ("a = 1".encode("utf-16"), "is not UTF-8 text"),
    "NUL": (b"a = '\0'\n", "is not valid TOML"),
    "brackets": (b"a = " + b"[" * 10_000, "is nested deeper than 32 levels"),
    "a long name": (b"a" + b".a" * 100_000 + b" = 1", "is nested deeper than 32 levels"),
    "a huge name": (b"a" * 200_000 + b" = 1", "there is no setting 'aaaa"),
    "too much": (b"#" * 300_000, "it is larger than 256 KB"),
    "a name twice": (b"[session]\nmax_turns = 1\nmax_turns = 2\n", "is not valid TOML"),
    "very many names": (b"".join(b"a%d = 1\n" % n for n in range(20_000)), "there is no setting"),
}


@pytest.mark.parametrize(("written", "told"), BROKEN.values(), ids=BROKEN.keys())
async def test_broken_settings_of_an_untrusted_folder_are_one_sentence(
    place: HookProject, written: bytes, told: str
) -> None:
    path = place.write(".weft/config.toml", "")
    path.write_bytes(written)
    model = ScriptedModel(["ok"])
    async with place.open() as app:
        session = await app.sessions.start_session(model=model)
        await session.send_message("go")
        assert app.config.get("session.max_turns") == 100
        assert await app.trust_question() is None
        [problem] = app.config.problems
    assert str(path) in problem
    assert told in problem
    assert problem.isprintable()
    assert len(problem) < 400


async def test_what_is_wrong_with_one_setting_leaves_the_others_in_force(
    place: HookProject,
) -> None:
    place.write(
        ".weft/config.toml",
        "[session]\nmax_turns = 'many'\nnonsense = 1\n[permissions]\ndeny = ['shell']\nask = 7\n",
    )
    async with place.open() as app:
        assert app.config.get("permissions.deny") == ["shell"]
        assert app.config.get("session.max_turns") == 100
        [problem] = app.config.problems
    assert "session.max_turns" in problem


@pytest.mark.parametrize("model", ["nonsense", "nope:x", "x" * 100_000, "a\\nb:c", ":", "/"])
async def test_an_unknown_model_is_left_out_and_the_users_own_stays(
    place: HookProject, model: str
) -> None:
    place.config.mkdir(parents=True)
    (place.config / "config.toml").write_text('[model]\ndefault = "openai:mine"\n')
    place.write(".weft/config.toml", f'[model]\ndefault = "{model}"\narchitect = "{model}"\n')
    async with place.open() as app:
        assert app.host.default_model() == "openai:mine"
        assert app.config.get("model.architect") == ""
        problems = app.config.problems
    assert ["model.default:" in problems[0], "model.architect:" in problems[1]] == [True, True]
    assert all(problem.isprintable() and len(problem) <= 400 for problem in problems)


async def test_a_model_that_there_is_counts(place: HookProject) -> None:
    place.write(".weft/config.toml", '[model]\ndefault = "openai:theirs"\n')
    async with place.open() as app:
        assert app.host.default_model() == "openai:theirs"
        assert app.config.problems == ()


@pytest.mark.parametrize(
    "setting",
    [
        'default = "scripted:evil.json"',
        'default = "replay/evil.json"',
        'default = "local:evil.gguf"',
        'default = "local:./evil"',
        'default = "local:/tmp/evil.gguf"',
        'default = "local:smollm2"',
        'editor = "local/smollm2"',
        'rotation = ["openai:x", "scripted:evil.json"]',
        'rotation = "openai:x, scripted:evil.json"',
        'rotation = "openai:x,local:evil.gguf"',
    ],
)
async def test_no_file_of_an_untrusted_folder_speaks_as_a_model(
    place: HookProject, setting: str
) -> None:
    place.write(".weft/config.toml", f"[model]\n{setting}\n")
    name = f"model.{setting.partition(' ')[0]}"
    async with place.open() as app:
        assert not app.config.get(name)
        question = await app.trust_question()
    assert question is not None
    assert question.settings == (name,)


async def test_the_question_shows_what_the_settings_would_be(place: HookProject) -> None:
    place.write(
        ".weft/config.toml",
        '[permissions]\nmode = "bypass"\nallow = ["shell", "write(.git/hooks/\u202ex)"]\n'
        '[model]\ndefault = "local:smollm2"\n',
    )
    async with place.open() as app:
        question = await app.trust_question()
    assert question is not None
    rows = [text for name, text in in_rows(question) if name == "sets"]
    assert rows[0] == 'permissions.mode = "bypass"'
    assert rows[1].startswith('permissions.allow = ["shell", "write(.git/hooks/')
    assert rows[2] == 'model.default = "local:smollm2"'
    assert all(text.isprintable() for text in rows)


async def test_a_value_that_is_cut_says_so(place: HookProject) -> None:
    rules = ", ".join(f'"write(file{number})"' for number in range(1000))
    place.write(".weft/config.toml", f"[permissions]\nallow = [{rules}]\n")
    async with place.open() as app:
        question = await app.trust_question()
    assert question is not None
    [row] = [text for name, text in in_rows(question) if name == "sets"]
    assert len(row) < 5_000
    assert "characters more; read .weft/config.toml" in row


@pytest.mark.parametrize("weights", ["local:evil.gguf", "local:./evil.gguf", "local/smollm2"])
async def test_no_agent_or_command_of_a_project_chooses_local_weights(
    place: HookProject, weights: str
) -> None:
    place.write(
        ".weft/agents/helper.md",
        f"---\nname: helper\ndescription: Helps.\nmodel: {weights}\n---\nHelp.\n",
    )
    place.write(".weft/commands/look.md", f"---\nmodel: {weights}\n---\nLook.\n")
    writer = SystemPromptWriter(place.config, place.config)
    agents = writer.agents(str(place.project))
    assert "helper" not in agents.found
    [problem] = agents.problems
    assert "local weights" in problem
    commands = writer.commands(str(place.project))
    assert "look" not in commands.found
    [problem] = commands.problems
    assert "local weights" in problem


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (b"{", "is not valid JSON: Expecting property name"),
        (b"[]", "is not a JSON object"),
        (b'{"hooks": []}', "hooks must be an object"),
        (b'{"a":' * 10_000, "is nested deeper than 32 levels"),
        (b'{"PreToolUse": [], "PreToolUse": []}', "'PreToolUse' is there twice"),
        (b"\xff", "is not UTF-8 text"),
        (b" " * 300_000, "it is larger than 256 KB"),
    ],
)
async def test_broken_hooks_of_an_untrusted_folder_are_one_sentence(
    place: HookProject, written: bytes, told: str
) -> None:
    path = place.write(".weft/hooks.json", "")
    path.write_bytes(written)
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        await session.send_message("go")
        assert await app.trust_question() is None, "nothing of it could act"
        [problem] = app.config.problems
    assert str(path) in problem
    assert told in problem


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("[session]\nmax_turns =\n", "at line 2"),
        ("[permissions]\n\ndeny = 7\n", "line 3 is not right"),
        ("[permissions]\ndney = ['shell']\n", "line 2: there is no setting 'permissions.dney'"),
    ],
)
async def test_a_trusted_folder_does_not_go_on_without_its_settings(
    place: HookProject, written: str, told: str
) -> None:
    path = place.write(".weft/config.toml", "[permissions]\nmode = 'plan'\ndeny = ['shell']\n")
    async with place.open() as app:
        await app.trust()
        assert app.config.get("permissions.mode") == "plan"
    path.write_text(written)
    with pytest.raises(UsageError, match=re.escape(str(path))) as stopped:
        place.open()
    assert told in str(stopped.value)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"config.toml": "[permissions]\nmode =\n", "hooks.json": "{}"}, "at line 2"),
        ({"config.toml": "[permissions]\nmode = 'plan'\nallow = 7\n"}, "line 3 is not right"),
        ({"config.toml": "[permissions]\nmode = 'plan'\nallwo = 7\n"}, "line 3: there is no"),
        ({"config.toml": "[[hooks.Never]]\ncommand = 'true'\n"}, "no hook event 'Never'"),
        ({"hooks.json": '{"Never": []}'}, "no hook event 'Never'"),
    ],
)
async def test_what_cannot_be_understood_cannot_be_trusted(
    place: HookProject, files: dict[str, str], told: str
) -> None:
    for name, text in files.items():
        place.write(f".weft/{name}", text)
    async with place.open() as app:
        assert await app.trust_question() is not None
        with pytest.raises(UsageError, match=r"config\.toml|hooks\.json") as refused:
            await app.trust()
        assert told in str(refused.value)
        assert not await app.is_trusted()
    assert not (place.config / "trust.json").exists()
    async with place.open() as app:
        await app.sessions.start_session(model=ScriptedModel(["ok"]))


# --- scripts that hooks name ------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "cat a\0b",
        "cat \udc80\ud800",
        "cat {link}",
        "cat " + "a " * 50_000,
        "cat '",
        "cat " + "/" * 9_000,
    ],
)
async def test_a_hook_can_name_nothing_that_breaks_the_look_at_it(
    place: HookProject, command: str
) -> None:
    (place.project / "link0").touch()
    last = chain_in(place.project) if "{link}" in command else ""
    hooks = {"PreToolUse": [{"command": command.format(link=last)}]}
    place.write(".weft/hooks.json", json.dumps(hooks))
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        await session.send_message("go")
        assert not await app.is_trusted()


async def test_very_many_scripts_are_not_all_read_before_they_are_trusted(
    place: HookProject,
) -> None:
    for number in range(50):
        place.write(f"script{number}", "")
        os.truncate(place.project / f"script{number}", LARGEST_SCRIPT // 4)
    names = " ".join(f"script{number}" for number in range(50))
    place.write(".weft/hooks.json", json.dumps({"PreToolUse": [{"command": f"cat {names}"}]}))
    scripts = look(place.project).scripts
    assert len(scripts) == 50
    assert list(scripts.values()).count("not read") == 46


@pytest.mark.process
@pytest.mark.parametrize("becomes", ["pipe", "link", "other", "huge"])
async def test_a_script_that_is_no_longer_what_was_trusted_is_not_run_and_not_waited_for(
    place: HookProject, tmp_path: Path, becomes: str
) -> None:
    script = place.write("check.sh", KEEP, mode=0o755)
    place.write(".weft/hooks.json", json.dumps({"PreToolUse": [{"command": "bash check.sh"}]}))
    async with place.open() as app:
        await app.trust()
        session = await app.sessions.start_session(
            model=ScriptedModel([shell("touch made"), "ok"]), permission_mode="bypass"
        )
        script.unlink()
        if becomes == "pipe":
            os.mkfifo(script)
        elif becomes == "link":
            (tmp_path / "outside.sh").write_text(KEEP)
            script.symlink_to(tmp_path / "outside.sh")
        else:
            script.write_text("exit 0")
            os.truncate(script, LARGEST_SCRIPT + 1 if becomes == "huge" else 6)
        await session.send_message("go")
        [done] = await facts(session, ToolComplete)
    assert done.result.is_error
    assert "check.sh is not what it was when you trusted this folder" in done.result.text
    assert place.heard() == []
    assert not (place.project / "made").exists()


@pytest.mark.process
async def test_a_script_that_is_too_large_to_be_checked_is_not_run(place: HookProject) -> None:
    os.truncate(place.write("check.sh", KEEP, mode=0o755), LARGEST_SCRIPT + 1)
    place.write(".weft/hooks.json", json.dumps({"PreToolUse": [{"command": "bash check.sh"}]}))
    async with place.open() as app:
        await app.trust()
        session = await app.sessions.start_session(
            model=ScriptedModel([shell("touch made"), "ok"]), permission_mode="bypass"
        )
        await session.send_message("go")
        [done] = await facts(session, ToolComplete)
    assert "check.sh could not be read, or is too large to be checked" in done.result.text
    assert place.heard() == []
    assert not (place.project / "made").exists()
