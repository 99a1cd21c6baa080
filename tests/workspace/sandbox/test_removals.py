"""Removed files that the history does not hold: kept where there is room, named, and asked about
where many would be gone.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.sandboxed_project import SandboxedProject, sandboxed_project
from weft.workspace import RunResult

pytestmark = pytest.mark.anyio

LARGE = 5_000_000


def told(result: RunResult) -> dict[str, tuple[str, str]]:
    return {each.path: (each.action, each.missing) for each in result.changes or ()}


def kept(there: SandboxedProject, name: str) -> list[Path]:
    base = Path(there.sandbox.scratch.base) / "kept"
    return [path for path in base.rglob("*") if path.name == name]


async def test_an_ignored_file_that_a_command_removes_goes_to_the_history(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(".gitignore", "*.env\n")
        there.write("a.env", "KEY=1\n")
        result = await there.shell("rm a.env")
        [change] = result.changes or ()
        assert (change.path, change.action, change.missing) == ("a.env", "deleted", "")
        assert change.data_before == b"KEY=1\n"
        assert result.remarks == ()


async def test_a_large_file_that_a_command_removes_is_kept_aside_and_named(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(".gitignore", "*.db\n")
        there.write("big", b"x" * LARGE)
        there.write("my.db", b"y" * LARGE)
        result = await there.shell("rm big my.db; echo 1 > a")
        for name, why in (("big", "too large"), ("my.db", "ignored")):
            [path] = kept(there, name)
            assert path.stat().st_size == LARGE
            assert told(result)[name] == ("deleted", f"{why}; it is kept in {path}")
            assert f"- {name} ({why}): {path}" in result.remarks[0]
        assert "kept as long as history.quota has room" in result.remarks[0]
        assert not result.is_held_back
        assert not (there.project / "big").exists()


async def test_a_file_whose_name_is_no_text_is_kept_aside_and_named(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(os.fsdecode(b"bad\xff"), "data")
        result = await there.shell("rm bad*")
        assert os.listdir(there.project) == []
        action, missing = told(result)["bad\\xff"]
        assert (action, missing[:32]) == ("deleted", "its name is not text; it is kept")
        [path] = kept(there, os.fsdecode(b"bad\xff"))
        assert path.read_bytes() == b"data"
        assert "- bad\\xff (its name is not text): " in result.remarks[0]


async def test_without_room_each_is_named_as_gone(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path, aside_bytes=1_000) as there:
        there.write("big", b"x" * LARGE)
        result = await there.shell("rm big")
        assert told(result) == {"big": ("deleted", "too large")}
        assert "nothing brings them back:\n- big (too large)" in result.remarks[0]
        assert not (there.project / "big").exists()


async def test_many_files_that_would_be_gone_stay_and_the_command_has_to_ask(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path, aside_bytes=1_000) as there:
        there.write(".gitignore", "data/\n")
        for number in range(30):
            there.write(f"data/{number:02}", b"x" * 2_000_000)
        result = await there.shell("rm -rf data; echo 1 > a")
        # The first eight fit into the history, so they go and come back with a rewind.
        assert sorted(os.listdir(there.project / "data")) == [f"{each:02}" for each in range(8, 30)]
        assert [each.path for each in result.changes or () if each.action == "deleted"] == [
            f"data/{each:02}" for each in range(8)
        ]
        assert result.is_held_back
        assert "no rewind could bring it back (ignored)" in result.remarks[0]
        assert "outside_sandbox asks" in result.remarks[0]
        assert there.read("a") == "1\n"


@pytest.mark.parametrize("name", ["node_modules/p/{}.js", "src/{}.o", "target/debug/{}", "{}.pyc"])
async def test_what_tools_make_again_asks_nothing_and_is_not_kept(
    tmp_path: Path, name: str
) -> None:
    async with sandboxed_project(tmp_path, aside_bytes=0) as there:
        there.write(".gitignore", "node_modules/\ntarget/\n*.o\n*.pyc\n")
        there.write("src/keep", "1")
        for number in range(30):
            there.write(name.format(number), b"x" * 10)
        there.write(name.format("large"), b"x" * LARGE)
        result = await there.shell("rm -rf node_modules target *.pyc src/*.o")
        assert (told(result), result.remarks, result.left_out) == ({}, (), ())
        assert not kept(there, "0")


async def test_a_file_that_was_moved_is_neither_kept_nor_named(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(".gitignore", "cache/\n")
        there.write("big", b"x" * LARGE)
        there.write("cache/small", "1")
        result = await there.shell("mkdir to; mv big to/big; cp cache/small to; rm -r cache")
        # The small one goes to the history: a rewind takes its copy away.
        assert sorted(told(result)) == ["big", "cache/small", "to", "to/big", "to/small"]
        assert result.remarks == ()
        assert not kept(there, "big")


async def test_of_many_ignored_files_the_first_go_to_the_history_and_the_rest_aside(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(".gitignore", "data/\n")
        for number in range(205):
            there.write(f"data/{number:03}", "x")
        result = await there.shell("rm -r data")
        facts = [each for each in result.changes or () if each.action == "deleted"]
        assert len(facts) == 205
        assert [each.path for each in facts if each.missing] == [
            f"data/{number}" for number in range(200, 205)
        ]
        assert "- data/200 (ignored): " in result.remarks[0]


@pytest.mark.parametrize("line", ["rm a.db; touch b.db", "rm a.db; mv b.db c.db"])
async def test_a_removed_file_is_not_taken_for_moved_because_another_has_its_size(
    tmp_path: Path, line: str
) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(".gitignore", "*.db\n")
        there.write("a.db", b"a" * LARGE)
        there.write("b.db", b"b" * LARGE)
        result = await there.shell(line)
        [path] = kept(there, "a.db")
        assert path.read_bytes() == b"a" * LARGE
        assert f"- a.db (ignored): {path}" in result.remarks[0]
        assert kept(there, "b.db") == []


@pytest.mark.parametrize("line", [": > {}", "cp /dev/null {}", "ln -sf /dev/null {}"])
async def test_an_emptied_file_counts_as_removed(tmp_path: Path, line: str) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(".gitignore", "*.db\n")
        there.write("small.db", "small\n")
        there.write("large.db", b"x" * LARGE)
        there.write("large", b"y" * LARGE)
        names = ("small.db", "large.db", "large")
        result = await there.shell("; ".join(line.format(name) for name in names))
        changes = {change.path: change for change in result.changes or ()}
        assert changes["small.db"].data_before == b"small\n"
        for name, byte in (("large.db", b"x"), ("large", b"y")):
            [path] = kept(there, name)
            assert path.read_bytes() == byte * LARGE
            assert (changes[name].action, str(path) in changes[name].missing) == ("modified", True)
            assert str(path) in result.remarks[0]
        assert (there.project / "large").read_bytes() == b""


async def test_many_files_that_would_be_emptied_for_good_keep_what_they_hold(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path, aside_bytes=0) as there:
        there.write(".gitignore", "data/\n")
        for number in range(30):
            there.write(f"data/{number}", b"z" * LARGE)
        result = await there.shell("truncate -s 0 data/*; echo 1 > a")
        assert result.is_held_back
        assert there.read("a") == "1\n"
        assert {path.stat().st_size for path in (there.project / "data").iterdir()} == {LARGE}


async def test_logs_swap_files_and_lfs_objects_are_not_made_again(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(".gitignore", "*.log\n.*.swp\n")
        there.write(".git/HEAD", "ref: refs/heads/main\n")
        names = ("run.log", ".a.swp", ".git/lfs/objects/ab/cd/abcd")
        for name in names:
            there.write(name, "only here\n")
        result = await there.shell("rm -r run.log .a.swp .git/lfs")
        held = {change.path: change.data_before for change in result.changes or ()}
        assert {name: held.get(name) for name in names} == dict.fromkeys(names, b"only here\n")


async def test_a_small_file_that_another_was_moved_over_goes_to_the_history(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(".gitignore", "*.db\n")
        there.write("new.db", "new\n")
        there.write("old.db", "old\n")
        result = await there.shell("mv new.db old.db")
        held = {change.path: change.data_before for change in result.changes or ()}
        assert held["old.db"] == b"old\n"
        assert there.read("old.db") == "new\n"


async def test_a_file_that_another_was_moved_over_counts_as_removed(tmp_path: Path) -> None:
    size = LARGE
    async with sandboxed_project(tmp_path) as there:
        there.write(".gitignore", "*.db\n")
        there.write("new.db", b"n" * (size + 1))
        there.write("old.db", b"o" * size)
        result = await there.shell("mv new.db old.db")
        assert (there.project / "old.db").read_bytes() == b"n" * (size + 1)
        [path] = kept(there, "old.db")
        assert path.read_bytes() == b"o" * size
        assert f"- old.db (ignored): {path}" in result.remarks[0]
        assert kept(there, "new.db") == []


async def test_an_ignored_file_that_a_command_rewrites_goes_to_the_history(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(".gitignore", "*.cfg\n*.log\n__pycache__/\n")
        there.write("my.cfg", "PORT=1\n")
        there.write("run.log", "one\n")
        there.write("same.log", "one\n")
        there.write("__pycache__/a.pyc", "old")
        result = await there.shell(
            "echo PORT=2 > my.cfg; echo two >> run.log; touch same.log; "
            "echo new > __pycache__/a.pyc"
        )
        # What only grew has lost nothing, and what tools make again is no loss.
        [change] = result.changes or ()
        assert (change.path, change.action) == ("my.cfg", "modified")
        assert (change.data_before, change.data_after) == (b"PORT=1\n", b"PORT=2\n")
        assert not change.missing


async def test_a_large_ignored_file_that_a_command_rewrites_is_named(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(".gitignore", "*.db\n")
        names = [f"{number}.db" for number in range(22)]
        for name in (*names, "grown.db"):
            os.truncate(there.write(name, b""), LARGE)
        line = "printf x | dd of=$f conv=notrunc status=none"
        result = await there.shell(f"for f in [0-9]*.db; do {line}; done; echo more >> grown.db")
        # A database is rewritten every day: that asks nothing, and fills no disk.
        assert not result.is_held_back
        assert kept(there, "0.db") == []
        assert (there.project / "0.db").read_bytes()[:2] == b"x\0"
        assert told(result) == dict.fromkeys(names, ("modified", "ignored"))
        assert "These files were rewritten and a rewind does not bring back" in result.remarks[0]
        assert "- 0.db (ignored)" in result.remarks[0]
        assert "grown.db" not in result.remarks[0]


@pytest.mark.parametrize("line", ["truncate -s 100 {}", "printf x | dd of={} conv=notrunc"])
async def test_a_large_file_that_a_command_rewrites_is_named(tmp_path: Path, line: str) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("large.bin", b"y" * LARGE)
        there.write("grown.bin", b"y" * LARGE)
        result = await there.shell(f"{line.format('large.bin')}; echo more >> grown.bin")
        assert "These files were rewritten and a rewind does not bring back" in result.remarks[0]
        assert "- large.bin (too large)" in result.remarks[0]
        assert "grown.bin" not in result.remarks[0]
        assert told(result)["large.bin"] == ("modified", "too large")


@pytest.mark.parametrize("line", ["mv other bad*", "echo new > bad*"])
async def test_a_file_whose_name_is_no_text_is_kept_aside_when_it_holds_something_else(
    tmp_path: Path, line: str
) -> None:
    async with sandboxed_project(tmp_path) as there:
        name = os.fsdecode(b"bad\xff")
        there.write(name, "data")
        there.write("other", "other")
        result = await there.shell(f"for f in bad*; do {line.replace('bad*', '$f')}; done")
        assert (there.project / name).read_text() in ("new\n", "other")
        [path] = kept(there, name)
        assert path.read_bytes() == b"data"
        assert "- bad\\xff (its name is not text): " in result.remarks[0]


async def test_the_only_copy_of_what_the_history_does_not_hold_is_not_certain(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(os.fsdecode(b"bad\xff"), "data")
        result = await there.shell("mv bad* here; echo 1 > beside")
        certain = {each.path: each.is_certain for each in result.changes or ()}
        # A rewind that took it away would take the content away, too.
        assert (certain["here"], certain["beside"]) == (False, True)
