"""Repositories under other names than `.git`: none is planted whose settings git would obey."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.git_history import GIT, git, make_history
from tests.support.sandboxed_project import sandboxed_project

pytestmark = pytest.mark.anyio

_PARTS = "mkdir -p b/objects b/refs; echo 'ref: refs/heads/main' > b/HEAD"
_TRAP = (
    "mkdir -p b; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n"
    '\\tworktree = .\\n\\tfsmonitor = "touch %s/ran; false"\\n\' "{0}" > b/config'
)
_HOOK = (
    "mkdir -p b/hooks; printf '#!/bin/sh\\ntouch %s/ran\\n' \"{0}\" > b/hooks/post-index-change; "
    "chmod +x b/hooks/*"
)
PLANTS = [
    (f"{_PARTS}; {_TRAP}",),
    (_PARTS, _TRAP),
    (_TRAP, _PARTS),
    (_TRAP, "mkdir -p b/objects; echo 'ref: refs/heads/main' > b/HEAD", "mkdir b/refs"),
    ("git init -q --bare b", "git -C b config core.bare false; " + _TRAP),
    (f"mkdir t; cd t; {_PARTS}; {_TRAP}; mv b ../b",),
    (f"{_HOOK}; {_PARTS}; git init -q -b main b/x; cp b/x/.git/config b/; rm -rf b/x",),
    (f"{_TRAP}; mv b/config c; ln -s ../c b/config; {_PARTS}",),
    # Settings and hooks of another folder, which has no HEAD and is none itself.
    (
        f"{_TRAP}; mv b o; mkdir -p o/objects o/refs; mkdir b; echo ../o > b/commondir; "
        "echo 'ref: refs/heads/main' > b/HEAD",
    ),
]


def _runs_a_program(project: Path) -> bool:
    """What a shell prompt does in each folder."""
    for folder in [
        path for path in project.rglob("*") if path.is_dir() and ".git" not in path.parts
    ]:
        for command in ("status", "add ."):
            subprocess.run(["git", *command.split()], cwd=folder, capture_output=True, check=False)
    return (project / "ran").exists()


@pytest.mark.process
def test_such_a_folder_makes_git_run_a_program(tmp_path: Path) -> None:
    line = f"{_PARTS}; {_TRAP.format(tmp_path)}"
    subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True)
    assert _runs_a_program(tmp_path)


@pytest.mark.parametrize("lines", PLANTS)
async def test_no_command_plants_a_repository_that_git_obeys(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        said = ""
        for line in lines:
            result = await there.shell(line.replace("{0}", str(there.project)))
            said += "".join(result.remarks)
        assert "git would obey it there" in said
        assert not _runs_a_program(there.project)


@pytest.mark.parametrize(
    "line",
    [
        "git init -q --bare b && git push -q ./b main",
        "git clone -q --bare --no-hardlinks . b && git --git-dir=b log -1",
        "git clone -q --mirror --no-hardlinks . b && git --git-dir=b log -1",
        f"git init -q --bare b && {GIT} push -q ./b main && git clone -q --no-hardlinks b copy",
        "mkdir -p app/hooks app/refs && echo 1 > app/hooks/use.ts && echo 2 > app/config",
    ],
)
async def test_what_git_sets_up_under_another_name_reaches_the_project(
    tmp_path: Path, line: str
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        result = await there.shell(f"set -e; {line}")
        assert result.exit_code == 0, result.output
        assert not result.is_held_back, result.remarks
        if "b" in line.split():
            assert git(there.project / "b", "rev-parse", "main") == git(
                there.project, "rev-parse", "main"
            )


@pytest.mark.parametrize(
    "line",
    [
        "echo touch ran >> tools/hooks/pre-commit",
        "echo touch ran > x; mv x tools/hooks/pre-commit; chmod +x tools/hooks/pre-commit",
        "mv tools/hooks old; mkdir tools/hooks; cp old/pre-commit tools/hooks/post-commit",
        "rm tools/hooks/pre-commit",
    ],
)
async def test_no_command_changes_hooks_wherever_the_repository_has_them(
    tmp_path: Path, line: str
) -> None:
    async with sandboxed_project(tmp_path) as there:
        make_history(there.project)
        there.write("tools/hooks/pre-commit", "#!/bin/sh\n")
        git(there.project, "config", "core.hooksPath", "tools/hooks")
        result = await there.shell(f"{line}; echo 1 > tools/free")
        assert "git would obey it there" in "".join(result.remarks)
        assert [each.name for each in (there.project / "tools/hooks").iterdir()] == ["pre-commit"]
        assert (there.project / "tools/hooks/pre-commit").read_text() == "#!/bin/sh\n"
        assert (there.project / "tools/free").read_text() == "1\n"
