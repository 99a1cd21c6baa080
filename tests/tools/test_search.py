"""list, find and grep: with ripgrep, and without it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from tests.support.hostile_git import drop_object, git
from tests.support.program_path import only_programs
from tests.support.tool_bench import ToolBench
from weft.errors import FinalToolError
from weft.tools.glob import matcher

pytestmark = pytest.mark.anyio

WAYS = ["rg", "walk"]


@pytest.fixture(params=WAYS)
def project(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    bench_with: Callable[[dict[str, str]], ToolBench],
) -> ToolBench:
    """The same project, searched in each way."""
    # git is there, and of no use to us
    bench = bench_with(only_programs(tmp_path, "git", *{"rg": ["rg"], "walk": []}[request.param]))
    bench.write("README.md", "Weft\n")
    bench.write("src/app.py", "import os\n\ndef main():\n    return os.getpid()\n")
    bench.write("src/deep/util.py", "def helper():\n    return 'MAIN'\n")
    bench.write("tests/test_app.py", "def test_main():\n    assert main\n")
    bench.write("data.bin", b"main\0main")
    bench.write("-e", "main -e\n")
    git(bench.root, "init", "-q")
    return bench


def ignoring(bench: ToolBench) -> None:
    bench.write(".gitignore", "build/\n*.log\n!keep.log\n")
    bench.write("build/out.py", "main\n")
    bench.write("a.log", "main\n")
    bench.write("keep.log", "main\n")


async def test_files_are_found_by_pattern(project: ToolBench) -> None:
    assert (await project.text("find", pattern="*.py")).split("\n") == [
        "src/app.py",
        "src/deep/util.py",
        "tests/test_app.py",
    ]
    assert (
        await project.text("find", pattern="src/**/*.py", path=".")
        == "src/app.py\nsrc/deep/util.py"
    )
    assert await project.text("find", pattern="*.{md,py}", path="src/deep") == "src/deep/util.py"
    assert await project.text("find", pattern="*.rs") == "(no file fits)"


async def test_lines_are_found_by_expression(project: ToolBench) -> None:
    assert await project.text("grep", pattern=r"def \w*main") == (
        "src/app.py:3:def main():\ntests/test_app.py:1:def test_main():"
    )
    assert await project.text("grep", pattern="main", path="src", ignore_case=True) == (
        "src/app.py:3:def main():\nsrc/deep/util.py:2:    return 'MAIN'"
    )
    assert (
        await project.text("grep", pattern="main", glob="*_app.py", files_only=True)
        == "tests/test_app.py"
    )
    assert (
        await project.text("grep", pattern="helper", path="src/deep/util.py")
        == "src/deep/util.py:1:def helper():"
    )
    assert await project.text("grep", pattern="getpid", context=1, path="src") == (
        "src/app.py-3-def main():\nsrc/app.py:4:    return os.getpid()"
    )
    assert await project.text("grep", pattern="nowhere") == "(no match)"
    project.write("odd.", "odd one\n")
    assert await project.text("grep", pattern="odd", path="odd.") == "odd.:1:odd one"


async def test_what_the_model_writes_never_becomes_an_option(project: ToolBench) -> None:
    marker = project.root / "marker"
    hostile = f"--pre=touch {marker}"
    for pattern in ("-e", "--files", hostile, "--hostname-bin=x", "@file", "-f/etc/passwd"):
        await project.run("grep", pattern=pattern)
    assert await project.text("grep", pattern="-e", path="-e") == "-e:1:main -e"
    await project.run("grep", pattern="main", glob=hostile)
    await project.run("find", pattern=hostile)
    assert not marker.exists()


async def test_a_bad_expression_is_reported(project: ToolBench) -> None:
    with pytest.raises(FinalToolError, match="not a regular expression"):
        await project.run("grep", pattern="(unclosed")


async def test_results_are_capped(project: ToolBench) -> None:
    project.write("many.txt", "needle\n" * 500)
    text = await project.text("grep", pattern="needle", limit=10)
    assert text.count("needle") == 10
    assert "more than 10 lines" in text
    project.write("wide.txt", "haystack " + "x" * 5000 + "\n")
    assert len(await project.text("grep", pattern="haystack")) < 1000


async def test_a_missing_path_is_reported(project: ToolBench) -> None:
    with pytest.raises(
        FinalToolError, match="there is no file or folder 'sorc'; did you mean 'src'"
    ):
        await project.run("grep", pattern="x", path="sorc")


async def test_links_are_not_searched_through(project: ToolBench) -> None:
    outside = project.root.parent / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("main secret\n")
    (project.root / "link").symlink_to(outside)
    (project.root / "one.py").symlink_to(outside / "secret.py")
    assert "secret" not in await project.text("grep", pattern="main|secret")
    with pytest.raises(FinalToolError, match="leads out"):
        await project.run("grep", pattern="main", path="link")


async def test_ignored_files_are_left_out(project: ToolBench) -> None:
    ignoring(project)
    found = (await project.text("find", pattern="**")).split("\n")
    assert "keep.log" in found
    assert not {"build/out.py", "a.log"} & set(found)
    assert "build" not in await project.text("grep", pattern="main")


async def test_ignore_files_count_in_every_folder_and_above_the_one_that_is_searched(
    project: ToolBench,
) -> None:
    ignoring(project)
    project.write("src/.gitignore", "util.py\n!a.log\n")
    project.write("src/a.log", "main\n")
    project.write("src/deep/b.log", "main\n")
    found = (await project.text("find", pattern="**", path="src")).split("\n")
    assert found == ["src/.gitignore", "src/a.log", "src/app.py"]


@pytest.mark.parametrize("place", ["", "src/", "src/deep/"])
@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".rgignore"])
async def test_an_ignore_file_that_is_a_pipe_or_without_end_holds_no_search_up(
    project: ToolBench, name: str, place: str
) -> None:
    trap = project.root / place / name
    os.mkfifo(trap)
    with anyio.fail_after(20):
        assert "src/app.py" in await project.text("find", pattern="*.py")
        assert "src/app.py:3:" in await project.text("grep", pattern="def main")
    trap.unlink()
    with trap.open("wb") as file:
        file.truncate(1 << 40)
    with anyio.fail_after(20):
        assert "src/app.py" in await project.text("find", pattern="*.py")
        assert "src/app.py:3:" in await project.text("grep", pattern="def main")


async def test_a_pipe_among_the_records_of_a_repository_holds_no_search_up(
    project: ToolBench,
) -> None:
    exclude = project.root / ".git/info/exclude"
    exclude.unlink(missing_ok=True)
    exclude.parent.mkdir(exist_ok=True)
    os.mkfifo(exclude)
    with anyio.fail_after(20):
        assert "src/app.py" in await project.text("find", pattern="*.py")
        assert "src/app.py:3:" in await project.text("grep", pattern="def main")


async def test_a_hostile_repository_runs_nothing_and_a_deleted_file_is_not_found(
    project: ToolBench,
) -> None:
    ignoring(project)
    git(project.root, "add", "-A")
    (project.root / "src/app.py").unlink()
    marker = project.root.parent / "ran"
    script = project.root.parent / "evil.sh"
    script.write_text(f"#!/bin/sh\n: > {marker}\nexit 1\n")
    script.chmod(0o755)
    for name in (
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "diff.external",
        "filter.x.clean",
    ):
        git(project.root, "config", name, str(script))
    git(project.root, "config", "core.hooksPath", str(script.parent))
    (script.parent / "post-index-change").symlink_to(script)
    project.write(".gitattributes", "* filter=x\n")
    found = (await project.text("find", pattern="*.py")).split("\n")
    assert found == ["src/deep/util.py", "tests/test_app.py"]
    assert not marker.exists()
    git(project.root, "status")  # the trap works: plain git falls into it
    assert marker.exists()


async def test_an_ignore_file_that_must_be_fetched_is_not(project: ToolBench) -> None:
    """A list of files, asked of git, would fetch it, by a program that the repository names."""
    ignoring(project)
    marker = project.root.parent / "ran"
    script = project.root.parent / "evil.sh"
    script.write_text(f"#!/bin/sh\n: > {marker}\nexit 1\n")
    script.chmod(0o755)
    git(project.root, "add", "-A")
    git(project.root, "update-index", "--skip-worktree", ".gitignore")
    (project.root / ".gitignore").unlink()
    drop_object(project.root, ":.gitignore")
    for setting in (
        "core.repositoryformatversion=1",
        "extensions.partialClone=origin",
        "remote.origin.promisor=true",
        f"remote.origin.url={project.root}",
        f"remote.origin.uploadpack={script}",
    ):
        git(project.root, "config", *setting.split("=", 1))
    assert "src/app.py" in await project.text("find", pattern="*.py")
    assert not marker.exists()
    git(project.root, "ls-files", "-c", "-o", "--exclude-standard", check=False)
    assert marker.exists(), "the trap does not work"


async def test_our_own_programs_are_never_ones_from_the_project(
    tmp_path: Path, bench_with: Callable[[dict[str, str]], ToolBench]
) -> None:
    own = tmp_path / "project" / "bin"
    own.mkdir(parents=True)
    marker = tmp_path / "ran"
    for name in ("git", "rg"):
        (own / name).write_text(f"#!/bin/sh\n: > {marker}\n")
        (own / name).chmod(0o755)
    bench = bench_with({"PATH": f"{own}:{os.environ['PATH']}"})
    await bench.run("find", pattern="*")
    await bench.run("grep", pattern="x")
    assert not marker.exists()


@pytest.mark.parametrize("project", ["walk"], indirect=True)
@pytest.mark.timeout(100)
async def test_a_pattern_that_never_ends_is_stopped_and_blocks_no_other_call(
    project: ToolBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.tools.builtin.grep._SECONDS", 1.0)
    project.write("bad.txt", "a" * 200 + "!\n")
    assert "stopped after" in await project.text("grep", pattern="(a+)+$", path="bad.txt")


async def test_a_folder_is_listed_folders_first(bench: ToolBench) -> None:
    bench.write("b.txt", "")
    bench.write("z/x", "")
    (bench.root / "link").symlink_to("z")
    assert await bench.text("list") == "z/\nb.txt\nlink@"
    assert await bench.text("list", path="z") == "x"
    (bench.root / "empty").mkdir()
    assert "empty" in await bench.text("list", path="empty")
    with pytest.raises(FinalToolError, match="not a folder"):
        await bench.run("list", path="b.txt")
    assert not (await bench.prepare("list", path=".")).action.has_effect


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("*.py", ["a.py", "x/y/a.py"], ["a.pyc", "py"]),
        ("/a.py", ["a.py"], ["x/a.py"]),
        ("src/*.py", ["src/a.py"], ["src/x/a.py", "a.py"]),
        ("src/**", ["src/a", "src/x/y"], ["src", "a"]),
        ("**/test_*", ["test_a", "x/y/test_b"], ["x/tests"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a", "b", "a/bb"]),
        ("[ab]?.{c,h}", ["ax.c", "x/by.h"], ["cx.c", "a.c"]),
        ("./x", ["x"], ["y"]),
        ("**", ["a", "a/b"], []),
    ],
)
def test_a_name_pattern_means_what_hands_expect(
    pattern: str, fits: list[str], fits_not: list[str]
) -> None:
    matches = matcher(pattern)
    assert [name for name in fits if not matches(name)] == []
    assert [name for name in fits_not if matches(name)] == []


def test_a_name_pattern_takes_no_time_whatever_it_is() -> None:
    assert not matcher("*a" * 30 + "b")("a" * 200)
    assert not matcher("**/a/" * 30 + "b")("a/" * 200 + "c")
    assert matcher("{a,b}" * 12)("x") is False
