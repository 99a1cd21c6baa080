"""Commands that only read run in the sandbox without a question; what leads out of it asks."""

from __future__ import annotations

import anyio
import pytest

from tests.support.rewind_project import open_world, shell, turns
from tests.support.sandboxed_session import skip_without_sandbox, tool_results
from tests.support.world import World
from weft.providers.script import CallTool

pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def result_of(world: World, command: str, **settings: object) -> str:
    model = turns(shell(command))
    async with open_world(world, model, sandbox="auto", **settings) as app:
        await skip_without_sandbox(app, world)
        session = await app.sessions.start_session(permission_mode="default", asking="no")
        await session.send_message("go")
    [result] = tool_results(model)
    return result


async def test_a_command_that_only_reads_needs_no_question(plain_world: World) -> None:
    plain_world.write("a.txt", "inside\n")
    assert "inside" in await result_of(plain_world, "cat a.txt | head -1")
    assert "Denied" in await result_of(plain_world, "cat a.txt > b.txt")


async def test_a_link_out_of_the_project_is_not_read_unasked(plain_world: World) -> None:
    plain_world.write("../beside.txt", "TOPSECRET\n")
    plain_world.write("deep/a.txt", "inside\n")
    (plain_world.project / "link").symlink_to(plain_world.project.parent / "beside.txt")
    (plain_world.project / "up").symlink_to(plain_world.project.parent)
    (plain_world.project / "in").symlink_to("deep")
    for command in ("cat link", "head -1 ./link", "cat up/beside.txt", "cd up && cat beside.txt"):
        result = await result_of(plain_world, command)
        assert "TOPSECRET" not in result, command
        assert "Denied" in result, command
    assert "inside" in await result_of(plain_world, "cat in/a.txt")


@pytest.mark.parametrize(
    "command",
    [
        "cat < link",
        "tr a b 0< link",
        "grep -v -flink deep/a.txt",
        "grep -v --file=link deep/a.txt",
        " ".join(("cat", *(f"a{number}" for number in range(250)), "link")),
    ],
)
async def test_a_link_out_of_the_project_is_found_wherever_a_line_names_it(
    plain_world: World, command: str
) -> None:
    plain_world.write("../beside.txt", "TOPSECRET\n")
    plain_world.write("deep/a.txt", "inside\n")
    (plain_world.project / "link").symlink_to(plain_world.project.parent / "beside.txt")
    result = await result_of(plain_world, command)
    assert "TOPSECRET" not in result
    assert "Denied" in result


async def test_words_that_are_blank_or_a_tilde_are_words(plain_world: World) -> None:
    plain_world.write("a.txt", "one two~\n")
    plain_world.write("../beside.txt", "TOPSECRET\n")
    for command in ("cut -d ' ' -f1 a.txt", "tr '\\n' ' ' < a.txt", "tr '~' ' ' < a.txt"):
        assert "one" in await result_of(plain_world, command), command
    for name in (" ", "~"):
        (plain_world.project / name).symlink_to(plain_world.project.parent / "beside.txt")
        result = await result_of(plain_world, f"cat '{name}'")
        assert "TOPSECRET" not in result
        assert "Denied" in result


async def test_a_rule_allows_the_command_it_names_and_no_other(plain_world: World) -> None:
    rules = ["shell(touch *)"]
    await result_of(plain_world, "touch made", permissions__allow=rules)
    assert (plain_world.project / "made").exists()
    await result_of(plain_world, "touch more; rm made", permissions__allow=rules)
    assert (plain_world.project / "made").exists()
    assert not (plain_world.project / "more").exists()


async def test_what_a_command_that_only_reads_has_others_write_does_not_reach_the_project(
    plain_world: World,
) -> None:
    """Git obeys the repository: here a filter that leaves a file behind."""
    project = plain_world.project
    plain_world.write("a.txt", "one\n")
    plain_world.write(".gitattributes", "*.txt filter=f\n")
    clean = "sh -c 'echo pwned > evil.sh; cat'"
    for argv in (["init", "-q"], ["add", "."], ["config", "filter.f.clean", clean]):
        await anyio.run_process(["git", "-C", str(project), *argv])
    plain_world.write("a.txt", "two\n")
    result = await result_of(plain_world, "git diff")
    assert "+two" in result
    assert "did not reach the project: evil.sh" in result
    assert not (project / "evil.sh").exists()


async def test_what_bash_refuses_is_told_to_the_model_without_asking(plain_world: World) -> None:
    result = await result_of(plain_world, "if true; then ls")
    assert "syntax error" in result


async def test_plan_mode_looks_with_commands_and_carries_nothing_over(plain_world: World) -> None:
    project = plain_world.project
    plain_world.write("a.txt", "one\n")
    plain_world.write(".gitattributes", "*.txt filter=f\n")
    clean = "sh -c 'echo pwned > evil.sh; cat'"
    for argv in (["init", "-q"], ["add", "."], ["config", "filter.f.clean", clean]):
        await anyio.run_process(["git", "-C", str(project), *argv])
    plain_world.write("a.txt", "two\n")
    model = turns(shell("git diff"), shell("touch made"), shell("cat a.txt"))
    rules = {"permissions__allow": ["shell(touch *)", "shell(cat *)"]}
    async with open_world(plain_world, model, sandbox="auto", **rules) as app:
        await skip_without_sandbox(app, plain_world)
        session = await app.sessions.start_session(permission_mode="plan", asking="no")
        for _ in range(3):
            await session.send_message("go")
    assert "shell" in [tool.name for tool in model.requests[0].tools]
    diff, touched, shown = tool_results(model)
    assert "+two" in diff
    assert "did not reach the project: evil.sh" in diff
    assert "plan mode changes nothing" in touched
    assert "two" in shown
    assert not (project / "evil.sh").exists()
    assert not (project / "made").exists()


async def test_a_command_in_the_background_is_asked_about_though_it_only_reads(
    plain_world: World,
) -> None:
    """What it has others write would not be dropped with it."""
    plain_world.write("a.txt", "inside\n")
    call = CallTool(name="shell", args={"command": "cat a.txt", "background": True})
    for mode in ("default", "plan"):
        model = turns(call)
        async with open_world(plain_world, model, sandbox="auto") as app:
            await skip_without_sandbox(app, plain_world)
            session = await app.sessions.start_session(permission_mode=mode, asking="no")
            await session.send_message("go")
        [result] = tool_results(model)
        assert "enied" in result
        assert "inside" not in result
