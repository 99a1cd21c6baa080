"""Slash commands from Markdown files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hook_project import HookProject, facts
from weft.api.session import Session
from weft.errors import UsageError
from weft.events import SystemNote
from weft.messages import Text
from weft.project.markdown_commands import ShellRequest, split_line
from weft.providers import ModelInfo, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> HookProject:
    return HookProject(tmp_path)


class Person:
    """Answers requests, and remembers what was shown."""

    def __init__(self, answer: bool = True) -> None:
        self.answer = answer
        self.shown: list[str] = []

    async def __call__(self, request: ShellRequest) -> bool:
        self.shown.append(request.command)
        return self.answer


async def text_of(session: Session, line: str, person: Person | None = None) -> str:
    expanded = await session.expand_command(line, ask=person)
    first = expanded.content[0]
    assert isinstance(first, Text)
    return first.text


# --- finding -------------------------------------------------------------------------------


async def test_commands_are_found_by_nearness_and_never_in_place_of_a_built_in(
    place: HookProject,
) -> None:
    place.write(".weft/commands/review.md", "---\ndescription: ours\n---\nfrom weft")
    place.write(".claude/commands/review.md", "---\ndescription: theirs\n---\nfrom claude")
    place.write(".claude/commands/docs/check.md", "# Check the docs\nplease")
    place.write(".weft/commands/quit.md", "never")
    place.write(".weft/commands/broken.md", "---\n[\n---\n")
    (place.config / "commands").mkdir(parents=True)
    (place.config / "commands/mine.md").write_text(
        "---\ndescription: my own\nargument-hint: [file]\nmodel: scripted:b\nagent: tester\n---\nx"
    )
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        found = {command.name: command for command in await session.list_commands()}
        names = await session.get_commands()
    assert list(found) == ["docs:check", "mine", "review"]
    assert found["review"].description == "ours"
    assert found["docs:check"].description == "Check the docs"
    assert (found["mine"].argument_hint, found["mine"].model) == ("[file]", "scripted:b")
    assert (found["mine"].source, found["review"].source) == ("user", "project")
    assert "/help" in names
    assert "/docs:check" in names
    assert names.count("/quit") == 1


async def test_every_command_of_the_chat_is_listed(place: HookProject) -> None:
    from weft.project.slash_commands import COMMANDS

    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        assert {command.name for command in COMMANDS} <= set(await session.get_commands())


async def test_a_file_takes_neither_the_name_nor_another_name_of_a_command(
    place: HookProject,
) -> None:
    for name in ("quit", "exit", "mine"):
        place.write(f".weft/commands/{name}.md", "text")
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        assert [command.name for command in await session.list_commands()] == ["mine"]


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("/review", ("review", "")),
        ("  /review  a b ", ("review", "a b")),
        ("/docs:check x", ("docs:check", "x")),
        ("/review\nmore lines", ("review", "more lines")),
        ("/etc/hosts", None),
        ("/", None),
        ("review", None),
        ("", None),
        ("/-x", None),
    ],
)
def test_a_path_is_no_command(line: str, meant: tuple[str, str] | None) -> None:
    assert split_line(line) == meant


async def test_an_unknown_command_is_named_with_the_nearest(place: HookProject) -> None:
    place.write(".weft/commands/review.md", "x")
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        with pytest.raises(UsageError, match="no command /reveiw; did you mean 'review'"):
            await session.expand_command("/reveiw")
        with pytest.raises(UsageError, match="is not a command"):
            await session.expand_command("hello")


# --- filling in ----------------------------------------------------------------------------


async def test_arguments_go_where_the_file_wants_them(place: HookProject) -> None:
    place.write(".weft/commands/a.md", "All: $ARGUMENTS. First: $1. Second: $2. Third: [$3]. $10")
    place.write(".weft/commands/none.md", "Just do it.")
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        assert (
            await text_of(session, "/a one 'two words'")
            == "All: one 'two words'. First: one. Second: two words. Third: []. $10"
        )
        assert await text_of(session, "/none") == "Just do it."
        assert await text_of(session, "/none now") == "Just do it.\n\nnow"


async def test_what_is_typed_behind_a_command_is_no_part_of_the_template(
    place: HookProject,
) -> None:
    place.write(".weft/commands/a.md", "Say: $ARGUMENTS / $1")
    person = Person()
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        text = await text_of(session, "/a $2 !`touch made` $ARGUMENTS", person)
    assert text == "Say: $2 !`touch made` $ARGUMENTS / $2"
    assert person.shown == []
    assert not (place.project / "made").exists()


async def test_a_command_is_sent_with_its_model_and_its_files(place: HookProject) -> None:
    place.write(".weft/commands/look.md", "---\nmodel: scripted:b\n---\nLook at @src/a.py and @$1")
    place.write("src/a.py", "AAA")
    place.write("b.py", "BBB")
    place.write("c.py", "CCC")
    first = ScriptedModel(["no"])
    second = ScriptedModel(["done"], info=_info("b"))
    async with place.open() as app:
        app.host.normal_model(second)
        session = await app.sessions.start_session(model=first)
        expanded = await session.expand_command("/look b.py @c.py")
        await session.send_message(expanded.content, **expanded.options)
    told = str(second.last_request.messages)
    assert all(text in told for text in ("AAA", "BBB", "CCC", "Look at @src/a.py and @b.py"))
    assert first.requests == []


def _info(name: str) -> ModelInfo:
    return ModelInfo(provider="scripted", name=name)


# --- shell commands ------------------------------------------------------------------------


@pytest.mark.process
async def test_a_shell_command_is_asked_about_run_and_on_record(place: HookProject) -> None:
    place.write(".weft/commands/a.md", "The branch: !`echo main`\nThe file: !`cat $1`")
    place.write("notes", "remember")
    person = Person()
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        assert await text_of(session, "/a notes", person) == "The branch: main\nThe file: remember"
        notes = [note.text for note in await facts(session, SystemNote)]
    assert person.shown == ["echo main", "cat notes"]
    assert notes == ["/a runs: echo main", "/a runs: cat notes"]


@pytest.mark.process
@pytest.mark.parametrize("sandbox", ["off", "on"])
async def test_what_a_shell_command_changes_is_known_and_can_be_taken_back(
    place: HookProject, sandbox: str
) -> None:
    place.write(".weft/commands/a.md", "!`echo changed > notes; echo made > new`")
    place.write("notes", "remember\n")
    async with place.open({"sandbox.mode": sandbox}) as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        await session.send_message("hi")
        await session.expand_command("/a", ask=Person())
        touched = {(each.path, each.action) for each in await session.touched_files()}
        assert touched == {("notes", "modified"), ("new", "created")}
        await session.rewind(-1)
    assert (place.project / "notes").read_text() == "remember\n"
    assert not (place.project / "new").exists()


@pytest.mark.process
async def test_a_shell_command_is_held_to_boundaries_and_to_what_may_be_written(
    place: HookProject,
) -> None:
    # What a script writes is not seen before it runs.
    place.write(".weft/commands/a.md", "!`sh change.sh`")
    place.write("change.sh", "sed -i s/one/1/ code; echo x > .env; cat code")
    place.write("code", "one\ntwo\nthree\n")
    config = {"sandbox.mode": "on", "permissions.deny": ["write(.env)"]}
    async with place.open(config) as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        await session.set_boundary("code", 1, 2)
        told = await text_of(session, "/a", Person())
    assert (place.project / "code").read_text() == "one\ntwo\nthree\n"
    assert not (place.project / ".env").exists()
    assert "only lines 2 to 3" in told
    assert ".env" in told


@pytest.mark.process
async def test_a_shell_command_is_refused_without_permission(place: HookProject) -> None:
    place.write(".weft/commands/a.md", "!`touch made`")
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        with pytest.raises(UsageError, match="no one to ask"):
            await session.expand_command("/a")
        with pytest.raises(UsageError, match="Denied by the user"):
            await session.expand_command("/a", ask=Person(answer=False))
        await session.set_permission_mode("plan")
        with pytest.raises(UsageError, match="plan mode"):
            await session.expand_command("/a", ask=Person())
        assert await facts(session, SystemNote) == []
    assert not (place.project / "made").exists()


@pytest.mark.process
async def test_a_folder_that_is_not_trusted_starts_nothing_unasked_in_any_mode(
    place: HookProject,
) -> None:
    place.write(".weft/commands/theirs.md", "!`echo theirs`")
    (place.config / "commands").mkdir(parents=True)
    (place.config / "commands/mine.md").write_text("!`echo mine`")
    async with place.open() as app:
        for settings in ({"permission_mode": "bypass"}, {"auto_approve": True}):
            session = await app.sessions.start_session(
                model=ScriptedModel(["ok"]),
                **settings,
            )
            assert await text_of(session, "/mine") == "mine"
            with pytest.raises(UsageError, match="no one to ask"):
                await session.expand_command("/theirs")
            person = Person()
            assert await text_of(session, "/theirs", person) == "theirs"
            assert person.shown == ["echo theirs"]
        await app.trust()
        assert await text_of(session, "/theirs") == "theirs"


@pytest.mark.process
async def test_rules_and_hooks_hold_for_shell_commands_too(place: HookProject) -> None:
    place.write(".weft/commands/a.md", "!`echo one`")
    place.write(".weft/commands/b.md", "!`echo two`")
    place.on("PreToolUse", "grep -q two && { echo not two >&2; exit 2; }; exit 0")
    async with place.open({"permissions.deny": ["shell(echo one)"]}) as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        with pytest.raises(UsageError, match="the rule"):
            await session.expand_command("/a", ask=Person())
        with pytest.raises(UsageError, match="not two"):
            await session.expand_command("/b", ask=Person())
        bare = await app.sessions.start_session(model=ScriptedModel(["ok"]), tools=["read"])
        with pytest.raises(UsageError, match="no shell"):
            await bare.expand_command("/a", ask=Person())


@pytest.mark.process
@pytest.mark.parametrize(
    ("template", "argument", "shown"),
    [
        ("cat $1", "a.py", "cat a.py"),
        ("cat $1", "'a; touch made'", "cat 'a; touch made'"),
        ("cat $1", "'$(touch made)'", "cat '$(touch made)'"),
        ("cat $ARGUMENTS", "a 'b c'", "cat a 'b c'"),
        ('cat "$1"', "a.py", 'cat "a.py"'),
        ('cat "$1"', "'$(touch made)'", None),
        ("cat '$1'", "\"'; touch made; '\"", None),
        ("cat \\$1", "'; touch made'", None),
        ("cat $1", "'`touch made`'", "cat '`touch made`'"),
    ],
)
async def test_an_argument_cannot_become_another_command(
    place: HookProject, template: str, argument: str, shown: str | None
) -> None:
    place.write(".weft/commands/a.md", f"!`{template}`")
    person = Person()
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        if shown is None:
            with pytest.raises(UsageError, match="inside quotes"):
                await session.expand_command(f"/a {argument}", ask=person)
        else:
            await session.expand_command(f"/a {argument}", ask=person)
    assert person.shown == ([] if shown is None else [shown])
    assert not (place.project / "made").exists()


@pytest.mark.process
async def test_secrets_in_what_a_command_prints_are_masked(place: HookProject) -> None:
    key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"
    place.write(".weft/commands/a.md", "!`cat key` @key")
    place.write("key", key)
    async with place.open() as app:
        session = await app.sessions.start_session(model=ScriptedModel(["ok"]))
        expanded = await session.expand_command("/a", ask=Person())
    assert key not in str(expanded.content)
