"""ripgrep and our own way find the same, and say the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.hostile_git import git
from tests.support.program_path import only_programs
from tests.support.tool_bench import ToolBench
from weft.errors import FinalToolError

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["rg", "own"])
def project(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    bench_with: Callable[[dict[str, str]], ToolBench],
) -> ToolBench:
    """A project of odd files, searched in both ways."""
    bench = bench_with(only_programs(tmp_path, *(["rg"] if request.param == "rg" else [])))
    git(bench.root, "init", "-q")
    bench.write("src/a.py", "needle one\nsecond Needle\n")
    bench.write("src/deep/b.ts", "needle\r\nother\r\n")
    bench.write("wide.txt", "\ufeffneedle wide\n".encode("utf-16-le"))
    bench.write("long.txt", "needle " + "x" * 900 + "\n")
    bench.write("data.bin", b"needle\0\0")
    return bench


A, B, LONG, WIDE = (
    "src/a.py:1:needle one",
    "src/deep/b.ts:1:needle",
    "long.txt:1:needle " + "x" * 393 + " (…)",
    "wide.txt:1:needle wide",
)

BOTH = [A, "src/a.py:2:second Needle"]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"pattern": "needle"}, [LONG, A, B, WIDE]),
        ({"pattern": "needle$"}, [B]),
        ({"pattern": "needle(?= one)"}, [A]),
        ({"pattern": r"(e)\1dle o"}, [A]),
        ({"pattern": "(?i)second needle"}, ["src/a.py:2:second Needle"]),
        ({"pattern": r"needle[^\n]*one"}, [A]),
        ({"pattern": "needle", "glob": "src/**/*.ts"}, [B]),
        ({"pattern": "needle", "path": "src", "glob": "src/**/*.ts"}, [B]),
        ({"pattern": "needle", "path": "src", "glob": "deep/*.ts"}, [B]),
        ({"pattern": "needle", "path": "src", "glob": "!*.ts"}, [A]),
        ({"pattern": "needle", "glob": "["}, ["(no match)"]),
        ({"pattern": "one\nsecond"}, BOTH),
        ({"pattern": r"one\nsecond"}, BOTH),
        ({"pattern": r"^needle one$\n^SEC", "ignore_case": True}, BOTH),
        ({"pattern": r"needle\nother"}, [B, "src/deep/b.ts:2:other"]),
        ({"pattern": r"needle\nother", "files_only": True}, ["src/deep/b.ts"]),
        ({"pattern": r"one\n", "context": 1}, [A, "src/a.py-2-second Needle"]),
        ({"pattern": r"\n\n"}, ["(no match)"]),
    ],
)
async def test_the_same_lines_are_found(
    project: ToolBench, args: dict[str, Any], expected: list[str]
) -> None:
    assert (await project.text("grep", **args)).split("\n") == expected


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"pattern": "("}, "not a regular expression: missing"),
        ({"pattern": "needle", "path": "data.bin"}, "is a binary file of 8 bytes"),
        ({"pattern": "needle", "path": "source"}, "there is no file or folder 'source'"),
    ],
)
async def test_the_same_is_said(project: ToolBench, args: dict[str, Any], said: str) -> None:
    with pytest.raises(FinalToolError, match=said):
        await project.run("grep", **args)


async def test_looking_for_names_where_there_is_no_folder_is_reported(project: ToolBench) -> None:
    with pytest.raises(FinalToolError, match="there is no folder 'srcs'; did you mean 'src'"):
        await project.run("find", pattern="*", path="srcs")
    with pytest.raises(FinalToolError, match=r"'src/a\.py' is a file"):
        await project.run("find", pattern="*", path="src/a.py")


async def test_names_are_found_from_the_project_too(project: ToolBench) -> None:
    assert await project.text("find", pattern="src/**/*.ts", path="src") == "src/deep/b.ts"
