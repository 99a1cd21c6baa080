"""The shell tool."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.support.tool_bench import ToolBench
from weft.errors import BadArguments, FinalToolError
from weft.permissions import PermissionRule, decide

pytestmark = pytest.mark.anyio


@pytest.mark.process
async def test_output_comes_back_and_is_shown_while_it_runs(bench: ToolBench) -> None:
    outcome = await bench.run("shell", command="echo hello; echo problem >&2")
    assert outcome.text == "hello\nproblem"
    assert not outcome.is_error
    assert "".join(bench.shown) == "hello\nproblem\n"


@pytest.mark.process
async def test_how_it_ended_is_said(bench: ToolBench) -> None:
    failed = await bench.run("shell", command="echo x; exit 3")
    assert (failed.text, failed.is_error, failed.data["exit_code"]) == ("x\n(exit code 3)", True, 3)
    assert await bench.text("shell", command="true") == "(no output)"
    assert "(killed by signal 9)" in await bench.text("shell", command="kill -9 $$")
    late = await bench.run("shell", command="sleep 600", timeout_seconds=0.2)
    assert "took too long" in late.text
    assert late.is_error


@pytest.mark.process
async def test_it_runs_in_the_project_or_a_folder_of_it(bench: ToolBench) -> None:
    bench.write("a b/x", "")
    assert await bench.text("shell", command="pwd") == str(bench.root)
    prepared = await bench.prepare("shell", command="pwd", cwd="a b")
    assert (await prepared.run()).text == str(bench.root / "a b")
    assert prepared.action.target == "cd 'a b'\npwd"
    assert prepared.preview.endswith("cd 'a b'\npwd")
    with pytest.raises(FinalToolError, match="no folder"):
        await bench.run("shell", command="pwd", cwd="none")
    (bench.root / "out").symlink_to("/")
    with pytest.raises(FinalToolError, match="leads out"):
        await bench.prepare("shell", command="pwd", cwd="out")
    assert (await bench.prepare("shell", command="pwd", cwd="/")).action.outside


async def test_it_is_shown_exactly_and_always_asks(bench: ToolBench) -> None:
    command = "git   diff;   echo '  '"
    prepared = await bench.prepare("shell", command=command)
    assert prepared.action.target == command
    assert prepared.preview == f"# without a sandbox: it is switched off\n{command}"
    assert decide(prepared.action, mode="accept_edits").verdict == "ask"
    assert decide(prepared.action, mode="plan").verdict == "deny"


@pytest.mark.process
async def test_long_output_is_cut_and_kept_whole(bench: ToolBench) -> None:
    outcome = await bench.run("shell", command="seq 1 100000")
    assert "bytes are not shown" in outcome.text
    assert outcome.full_text is not None
    assert outcome.full_text.decode().split()[-1] == "100000"


@pytest.mark.process
async def test_bash_is_there_when_the_machine_has_it(bench: ToolBench) -> None:
    assert await bench.text("shell", command="[[ a == a ]] && echo ${BASH_VERSION:+bash}") == "bash"


@pytest.mark.parametrize(
    "args", [{"command": "true", "timeout_seconds": 601}, {"command": "true", "x": 1}, {}]
)
async def test_wrong_arguments_start_nothing(bench: ToolBench, args: dict[str, object]) -> None:
    with pytest.raises(BadArguments):
        await bench.prepare("shell", **args)


async def test_an_empty_command_is_refused(bench: ToolBench) -> None:
    with pytest.raises(FinalToolError, match="empty"):
        await bench.prepare("shell", command=" \n")


async def test_a_line_that_nobody_looked_at_is_not_taken_for_one_that_only_reads(
    bench: ToolBench,
) -> None:
    """The mode may change between the two."""
    for reads_lines, verdict in ((True, "allow"), (False, "ask")):
        bench.context = replace(bench.context, reads_lines=reads_lines)
        prepared = await bench.prepare("shell", command="cat notes.txt")
        action = replace(prepared.action, sandboxed=True)
        assert decide(action, mode="default").verdict == verdict
        assert decide(action, mode="bypass").verdict == "allow"
        denied = [PermissionRule(verdict="deny", tool="shell", pattern="cat *")]
        assert decide(action, mode="bypass", rules=denied).verdict == "deny"


@pytest.mark.process
async def test_binary_output_is_a_note(bench: ToolBench) -> None:
    bench.write("noise", bytes(range(256)) * 400)
    outcome = await bench.run("shell", command="cat noise")
    assert outcome.text == (
        "[binary output, 102,400 bytes, not shown; look at it with xxd or file, or save it to a "
        "file]"
    )
    assert outcome.full_text is None
    failed = await bench.text("shell", command="cat noise noise; exit 1")
    assert failed.startswith("[binary output, 204,800 bytes")
    assert failed.endswith("(exit code 1)")


@pytest.mark.process
@pytest.mark.parametrize(
    "text",
    [
        "Gr\xfc\xdfe aus K\xf6ln, mit vielen W\xf6rtern".encode("latin-1"),
        b"src/one.py\0src/two.py\0README.md\0",
        b"\x1b[31mred\x1b[0m\r\n\tprogress\b\b\x07",
    ],
)
async def test_text_in_another_encoding_names_that_end_in_nul_and_colours_are_no_binary(
    bench: ToolBench, text: bytes
) -> None:
    bench.write("text", text)
    assert "binary" not in await bench.text("shell", command="cat text")
