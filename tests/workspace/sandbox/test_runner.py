"""Commands in the sandbox: what they come to, what reaches the project, and what they
leave behind.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path

import anyio
import pytest

from tests.support.sandboxed_project import SandboxedProject, run_and_meanwhile, sandboxed_project
from weft.errors import FinalToolError, RetryableToolError
from weft.workspace import ChangedFile, ProcessCommand, RunResult
from weft.workspace.sandbox.machine import ProcessSandbox, SandboxOptions

pytestmark = pytest.mark.anyio


def told(result: RunResult) -> dict[str, str]:
    """Path → what happened, as the history is told."""
    assert result.changes is not None
    return {change.path: change.action for change in result.changes}


def change(result: RunResult, path: str) -> ChangedFile:
    assert result.changes is not None
    return next(each for each in result.changes if each.path == path)


# --- what reaches the project


async def test_what_a_command_changes_reaches_the_project_and_is_reported_exactly(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("changed", "old\n")
        there.write("removed", "x\n")
        there.write("kept", "kept\n")
        there.write("run.sh", "#!/bin/sh\n")
        result = await there.shell(
            "echo new > changed; rm removed; mkdir -p a/b; echo deep > a/b/file; ln -s kept link; "
            "chmod +x run.sh; cat kept; echo same > /tmp/elsewhere"
        )
        assert (result.exit_code, result.output) == (0, "kept\n")
        assert told(result) == {
            "changed": "modified",
            "removed": "deleted",
            "a": "created",
            "a/b": "created",
            "a/b/file": "created",
            "link": "created",
            "run.sh": "modified",
        }
        assert there.read("changed") == "new\n"
        assert not (there.project / "removed").exists()
        assert there.read("a/b/file") == "deep\n"
        assert os.readlink(there.project / "link") == "kept"
        assert stat.S_IMODE((there.project / "run.sh").stat().st_mode) == 0o755
        before = change(result, "changed")
        assert (before.data_before, before.data_after) == (b"old\n", b"new\n")
        assert change(result, "removed").data_before == b"x\n"
        assert stat.S_ISLNK(change(result, "link").mode_after)
        assert not result.is_held_back


async def test_a_command_that_changes_nothing_leaves_nothing(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("a", "1")
        for _ in range(20):
            result = await there.shell("cat a; ls")
            assert (result.changes, result.remarks) == ((), ())
        assert len(places(there)) <= 10


@pytest.mark.parametrize(
    "changes", ["echo {} > file; mkdir -p d/e; echo {} > d/e/f; rm -f gone", ":"]
)
async def test_a_place_is_used_again_and_nothing_of_the_last_command_is_in_it(
    tmp_path: Path, changes: str
) -> None:
    async with sandboxed_project(tmp_path) as there:
        for number in range(15):
            there.write("gone", "x")
            await there.shell(
                "python3 -c \"import os; os.setxattr('.', 'user.mark', b'1')\"; "
                f"{changes.format(number, number)}; chmod {number % 2}77 ."
            )
            there.write("gone", "x")
            for _ in range(number % 3):
                result = await there.shell(
                    "stat -c %a .; cat gone; python3 -c \"import os; print(os.listxattr('.'))\""
                )
                assert result.output == f"{mode_of(there.project):o}\nx[]\n"
                assert result.changes == ()
        assert len(places(there)) <= 12
        assert mode_of(there.project) == 0o755


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def places(there: SandboxedProject) -> list[Path]:
    """Where commands write, or will."""
    folder = Path(there.sandbox.scratch.folder)
    return [folder / name for name in os.listdir(folder) if name.isdigit()]


async def test_a_command_sees_what_the_last_one_did_and_finds_its_own_tmp_again(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        await there.shell("echo one > a; echo mine > /tmp/note; echo warm > ~/.cache/warm")
        result = await there.shell("cat a /tmp/note ~/.cache/warm; echo two > a; cat a")
        assert result.output == "one\nmine\nwarm\ntwo\n"
        assert there.read("a") == "two\n"
    assert not Path("/tmp/note").exists()
    assert not list((tmp_path / "home" / ".cache").iterdir())


async def test_times_modes_and_empty_folders_come_over(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("stamp", "x")
        there.write("secret", "x")
        result = await there.shell(
            "touch -d '2001-01-01 UTC' stamp; mkdir -m 700 closed empty; chmod 400 secret; "
            "mkdir locked; echo in > locked/file; chmod 000 locked; chmod 2755 empty"
        )
        assert (there.project / "stamp").stat().st_mtime == 978307200
        assert "stamp" not in told(result)
        modes = {
            name: stat.S_IMODE((there.project / name).stat().st_mode)
            for name in ("closed", "empty", "secret", "locked")
        }
        assert modes == {"closed": 0o700, "empty": 0o2755, "secret": 0o400, "locked": 0o000}
        (there.project / "locked").chmod(0o700)
        assert there.read("locked/file") == "in\n"


async def test_one_kind_of_thing_takes_the_place_of_another(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("folder/a", "1")
        there.write("folder/sub/b", "2")
        there.write("file", "3")
        there.write("anew/old", "4")
        there.write("anew/both", "5")
        (there.project / "link").symlink_to("file")
        await there.shell(
            "rm -r folder; echo now > folder; rm file; mkdir file; echo in > file/x; "
            "rm -r anew; mkdir anew; echo new > anew/both; rm link; mkdir link"
        )
        assert there.read("folder") == "now\n"
        assert there.read("file/x") == "in\n"
        assert {each.name for each in (there.project / "anew").iterdir()} == {"both"}
        assert there.read("anew/both") == "new\n"
        assert (there.project / "link").is_dir()
        assert not (there.project / "link").is_symlink()


async def test_a_folder_can_be_moved(tmp_path: Path) -> None:
    """The kernel refuses to rename it in an overlay; `mv` copies."""
    async with sandboxed_project(tmp_path) as there:
        there.write("old/deep/file", "text")
        result = await there.shell("mv old new")
        assert result.exit_code == 0
        assert there.read("new/deep/file") == "text"
        assert not (there.project / "old").exists()
        assert told(result)["old/deep/file"] == "deleted"


@pytest.mark.parametrize("is_busy", [False, True])
async def test_a_file_can_be_moved_and_linked(tmp_path: Path, is_busy: bool) -> None:
    """Under its new name it is a copy of the project's, and yet nobody has removed anything.

    Even when others work beside.
    """
    async with sandboxed_project(tmp_path) as there:
        for name in ("moved", "edited", "linked", "swapped", "folder/deep"):
            there.write(name, f"{name}\n")
        result = await run_and_meanwhile(
            there,
            "mv moved a; mv edited b; echo more >> b; ln linked c; mv swapped d; echo "
            "new > swapped; "
            "mkdir -p made/here; mv folder/deep made/here/e",
            lambda: there.write("beside", "") if is_busy else None,
        )
        assert result.remarks == ()
        assert {name: there.read(name) for name in ("a", "b", "c", "d", "made/here/e")} == {
            "a": "moved\n",
            "b": "edited\nmore\n",
            "c": "linked\n",
            "d": "swapped\n",
            "made/here/e": "folder/deep\n",
        }
        assert (there.read("linked"), there.read("swapped")) == ("linked\n", "new\n")
        assert not (there.project / "moved").exists()
        assert told(result)["moved"] == "deleted"
        assert told(result)["a"] == "created"


async def test_names_that_are_hard_to_write_come_over(tmp_path: Path) -> None:
    base = tmp_path / "with: colon, comma\\ and space"
    base.mkdir()
    async with sandboxed_project(base) as there:
        result = await there.shell(
            "echo 1 > 'a b'; echo 2 > $'new\\nline'; echo 3 > $'b\\xffd'; echo 4 > -x; echo 5 > ä"
        )
        assert len(list(there.project.iterdir())) == 5
        assert sorted(told(result)) == ["-x", "a b", "new\nline", "ä"]
        assert result.left_out == ("1 files whose names are no text changed",)


async def test_a_project_in_tmp_is_where_it_was(tmp_path: Path) -> None:
    """Commands see another `/tmp`, and the project in it all the same."""
    assert str(tmp_path).startswith("/tmp/") or pytest.skip("the tests' folder lies elsewhere")
    async with sandboxed_project(tmp_path) as there:
        result = await there.shell(f"pwd; ls {tmp_path}; echo x > made")
        assert result.output.split() == [str(there.project), "home", "project"]
        assert there.read("made") == "x\n"


async def test_folders_that_were_added_can_be_changed_too(tmp_path: Path) -> None:
    added = tmp_path / "added"
    added.mkdir()
    async with sandboxed_project(tmp_path, added=[str(added)]) as there:
        result = await there.shell(f"echo 1 > {added}/x; echo 2 > y; echo 3 > {tmp_path}/z")
        assert told(result) == {"y": "created", f"{added}/x": "created"}
        assert (added / "x").read_text() == "1\n"
    assert not (tmp_path / "z").exists()


async def test_pipes_and_sockets_stay_behind_and_are_named(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        result = await there.shell("mkfifo pipe; echo x > file")
        assert list(there.project.iterdir()) == [there.project / "file"]
        assert "pipe: pipes, sockets and devices are not carried over" in result.remarks[0]


async def test_ignored_files_come_over_and_are_not_reported(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(".gitignore", "*.log\nbuild/\n")
        result = await there.shell(
            "echo 1 > a.log; mkdir -p build/x; echo 2 > build/x/y; echo 3 > b"
        )
        assert there.read("a.log") + there.read("build/x/y") == "1\n2\n"
        assert told(result) == {"b": "created"}


async def test_an_ignore_file_that_the_command_writes_counts_for_what_it_makes(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("old.log", "1\n")
        there.write(".gitignore", "*.tmp\n")
        there.write("sub/.gitignore", "*.o\n")
        result = await there.shell(
            "echo '*.log' > .gitignore; echo 2 >> old.log; echo 3 > new.log; echo 4 > new.tmp; "
            "rm sub/.gitignore; echo 5 > sub/x.o; mkdir deep; echo '*' > "
            "deep/.gitignore; echo 6 > deep/y"
        )
        assert told(result) == {
            ".gitignore": "modified",
            "old.log": "modified",
            "new.tmp": "created",
            "sub/.gitignore": "deleted",
            "sub/x.o": "created",
            "deep": "created",
        }


async def test_a_large_file_is_reported_without_its_content(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("large", b"x" * (5 * 1024 * 1024))
        result = await there.shell("head -c 6000000 /dev/zero > large")
        touched = change(result, "large")
        assert (touched.data_before, touched.data_after, touched.missing) == (
            None,
            None,
            "too large",
        )
        assert touched.before is not None
        assert touched.after is not None
        assert (there.project / "large").stat().st_size == 6_000_000


async def test_a_hard_link_to_a_file_outside_is_not_written_through(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        outside = tmp_path / "outside"
        outside.write_text("theirs\n")
        os.link(outside, there.project / "alias")
        await there.shell("echo mine > alias")
        assert (outside.read_text(), there.read("alias")) == ("theirs\n", "mine\n")


# --- a box that was made before


async def test_a_box_that_stood_ready_shows_the_project_as_it_is_when_the_command_comes(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("changed", "1")
        there.write("folder/removed", "1")
        there.write("folder/kept", "1")
        await there.shell("ls -R . > /dev/null; cat changed missing folder/* 2> /dev/null")
        for round in range(4):
            there.write("changed", f"now {round}")
            there.write(f"new{round}", f"new {round}")
            there.write(f"folder/new{round}", "")
            (there.project / "folder" / "removed").unlink(missing_ok=True)
            result = await there.shell(f"cat changed new{round}; echo; ls folder")
            news = [f"new{number}" for number in range(round + 1)]
            assert result.output.split("\n") == [f"now {round}new {round}", "kept", *news, ""]


async def test_a_box_over_a_folder_that_was_replaced_is_not_used(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("old", "")
        await there.shell("true")
        there.project.rename(tmp_path / "moved")
        there.project.mkdir()
        there.write("new", "")
        result = await there.shell("ls; echo x > made")
        assert result.output == "new\n"
        assert there.read("made") == "x\n"
        assert not (tmp_path / "moved" / "made").exists()


async def test_a_secret_that_came_to_be_since_is_hidden_too(elsewhere: Path) -> None:
    async with sandboxed_project(elsewhere) as there:
        await there.shell("true")
        (elsewhere / "home" / ".aws").mkdir()
        (elsewhere / "home" / ".aws" / "credentials").write_text("key")
        there.write(".env", "KEY=1")
        result = await there.shell("cat ~/.aws/credentials .env")
        assert result.output.count("Permission denied") == 2


async def test_an_older_bubblewrap_that_lacks_a_switch_will_do(tmp_path: Path) -> None:
    """Versions before 0.8 cannot forbid user namespaces; the filter does."""
    real = shutil.which("bwrap")
    if real is None:
        pytest.skip("bubblewrap is not installed")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "bwrap").write_text(
        '#!/bin/sh\ncase "$*" in *--disable-userns*) echo \'bwrap: Unknown option '
        "--disable-userns' >&2; exit 1;; esac\n"
        f'exec {real} "$@"\n'
    )
    (programs / "bwrap").chmod(0o755)
    environ = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    sandbox = ProcessSandbox(environ=environ, folder=str(tmp_path / "sandbox"))
    there = SandboxedProject(tmp_path, sandbox)
    assert await sandbox.why_not((str(there.project),)) == ""
    result = await there.shell("unshare --user true; echo x > made")
    assert "Operation not permitted" in result.output
    assert there.read("made") == "x\n"
    await sandbox.aclose()


def planted_bubblewrap(folder: Path, marker: Path) -> None:
    """A `bwrap` that writes its process number down each time it is started, and does its work."""
    real = shutil.which("bwrap")
    if real is None:
        pytest.skip("bubblewrap is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bwrap").write_text(f'#!/bin/sh\necho $$ >> {marker}\nexec {real} "$@"\n')
    (folder / "bwrap").chmod(0o755)


async def test_a_bubblewrap_inside_the_project_is_never_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an absolute entry, relative ones, and a folder and a program outside that are links."""
    marker = tmp_path / "ran"
    project = tmp_path / "project"
    planted_bubblewrap(project / "bin", marker)
    planted_bubblewrap(project, marker)
    (tmp_path / "folder").symlink_to(project / "bin")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "bwrap").symlink_to(project / "bwrap")
    monkeypatch.chdir(project)
    entries = f"{project}/bin:bin:.::{tmp_path}/folder:{tmp_path}/links:{os.environ['PATH']}"
    sandbox = ProcessSandbox(environ={"PATH": entries}, folder=str(tmp_path / "sandbox"))
    there = SandboxedProject(tmp_path, sandbox)
    assert await sandbox.why_not((str(project),)) == ""
    await there.shell("echo x > made")
    assert there.read("made") == "x\n"
    assert not marker.exists()
    await sandbox.aclose()


async def test_where_the_only_bubblewrap_is_inside_the_project_there_is_no_sandbox(
    tmp_path: Path,
) -> None:
    marker = tmp_path / "ran"
    planted_bubblewrap(tmp_path / "project" / "bin", marker)
    environ = {"PATH": str(tmp_path / "project" / "bin")}
    sandbox = ProcessSandbox(environ=environ, folder=str(tmp_path / "sandbox"))
    there = SandboxedProject(tmp_path, sandbox)
    assert await sandbox.why_not((str(there.project),)) == (
        f"the only bubblewrap on PATH is {there.project}/bin/bwrap, which commands could replace; "
        "install it outside of the project"
    )
    assert not marker.exists()
    await sandbox.aclose()


async def test_a_project_opened_later_does_not_run_under_a_bubblewrap_of_its_own(
    tmp_path: Path,
) -> None:
    """Outside of the first project it was as good as any.

    The second one's commands could replace it.
    """
    marker = tmp_path / "ran"
    later = tmp_path / "later"
    planted_bubblewrap(later / "bin", marker)
    environ = {"PATH": f"{later}/bin:{os.environ['PATH']}"}
    sandbox = ProcessSandbox(environ=environ, folder=str(tmp_path / "sandbox"))
    there = SandboxedProject(tmp_path, sandbox)
    await there.shell("true")
    pid = marker.read_text().strip()
    assert Path(f"/proc/{pid}").exists()
    assert await sandbox.why_not((str(later),)) == ""
    assert not Path(f"/proc/{pid}").exists()
    await there.shell("echo x > made")
    assert there.read("made") == "x\n"
    assert marker.read_text().strip() == pid, "it was not started again"
    await sandbox.aclose()


# --- how it ends


async def test_output_comes_while_it_runs_and_errors_apart_when_wanted(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        seen: list[str] = []
        result = await there.shell("echo out; echo err >&2; exit 3", seen.append)
        assert (result.exit_code, "".join(seen)) == (3, "out\nerr\n")
        apart = await there.shell("echo out; echo err >&2", errors_apart=True)
        assert (apart.output, apart.errors) == ("out\n", "err\n")
        fed = await there.shell("cat; cat", stdin=b"given")
        assert fed.output == "given"
        killed = await there.shell("kill -9 $$")
        assert killed.exit_code == -9


async def test_much_output_is_cut_and_kept(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        result = await there.shell("yes 0123456789 | head -c 3000000")
        assert (result.total_bytes, result.truncated) == (3_000_000, True)
        assert result.full_output is not None
        assert len(result.full_output) == 3_000_000


async def test_a_command_that_takes_too_long_is_asked_to_end_and_keeps_what_it_did(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        result = await there.shell(
            "trap 'echo bye; exit 7' TERM; echo half > done; while :; do sleep 0.1; done",
            timeout_seconds=0.5,
        )
        assert (result.timed_out, result.exit_code) == (True, 7)
        assert "bye" in result.output
        assert there.read("done") == "half\n"


async def test_a_cancelled_command_leaves_no_process_and_nothing_in_the_project(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        started = anyio.Event()
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:

                async def run() -> None:
                    await there.shell(
                        "echo x > written; setsid sleep 4711 & echo go; sleep 4711",
                        lambda text: started.set(),
                    )

                group.start_soon(run)
                await started.wait()
                group.cancel_scope.cancel()
        assert not list(there.project.iterdir())
        assert not [file for place in places(there) for file in place.glob("upper*/*")]
        assert not running("4711")
        assert (await there.shell("echo on")).output == "on\n"


def running(word: str) -> list[str]:
    """Command lines of living processes with this word."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                line = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if word.encode() in line:
                found.append(name)
    return found


async def test_what_cannot_start_is_explained(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        missing = ProcessCommand(argv=("no-such-program",), cwd=str(there.project))
        with pytest.raises(FinalToolError, match="no program 'no-such-program'"):
            await there.runner.run(missing)
        elsewhere = ProcessCommand(argv=("true",), cwd=str(there.project / "gone"))
        with pytest.raises(FinalToolError, match="no folder"):
            await there.runner.run(elsewhere)
        with pytest.raises(FinalToolError, match="too long"):
            await there.shell("x" * 3_000_000)
        assert (await there.shell("true")).exit_code == 0


async def test_commands_run_side_by_side_and_do_not_see_each_other(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        results: dict[int, RunResult] = {}

        async def run(number: int) -> None:
            results[number] = await there.shell(
                f"echo {number} > shared; mkfifo /tmp/wait{number} 2>/dev/null; cat "
                f"shared; echo {number} > own{number}"
            )

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for number in range(12):
                    group.start_soon(run, number)
        assert {number: result.output for number, result in results.items()} == {
            number: f"{number}\n" for number in range(12)
        }
        assert all(there.read(f"own{number}") == f"{number}\n" for number in range(12))


async def test_a_keeper_that_dies_takes_its_commands_along_and_the_next_one_works(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        started = anyio.Event()

        async def run() -> None:
            with pytest.raises(RetryableToolError, match="broke down"):
                await there.shell("echo x > lost; echo go; sleep 4712", lambda text: started.set())

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await started.wait()
                keeper = there.sandbox.keeper._popen
                assert keeper is not None
                keeper.kill()
        assert not list(there.project.iterdir())
        assert (await there.shell("echo back")).output == "back\n"
        assert not running("4712")


async def test_the_keeper_does_not_gather_mounts_or_descriptors(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        for _ in range(3):
            await there.shell("true")
        keeper = keeper_process(there)
        before = looked_at(keeper)
        for number in range(20):
            await there.shell(f"echo {number} > x")
        await there.shell("true")
        with anyio.fail_after(10):
            while looked_at(keeper) != before:
                await there.shell("true")


def keeper_process(there: SandboxedProject) -> str:
    """The keeper itself, below bubblewrap."""
    outer = there.sandbox.keeper._popen
    assert outer is not None
    pid = str(outer.pid)
    while not Path(f"/proc/{pid}/exe").resolve().name.startswith("python"):
        pid = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
    return pid


def looked_at(pid: str) -> tuple[int, int]:
    mounts = Path(f"/proc/{pid}/mountinfo").read_text().count("\n")
    return mounts, len(os.listdir(f"/proc/{pid}/fd"))


# --- judging


async def test_what_the_judge_forbids_stays_out_and_the_rest_comes_in(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.forbidden = {".git/hooks/x": "programs run it", "kept": "a rule denies it"}
        there.write("kept", "as it was\n")
        there.write(".git/HEAD", "ref: refs/heads/main\n")
        result = await there.shell(
            "mkdir -p .git/hooks; echo evil > .git/hooks/x; rm kept; echo 1 > a"
        )
        assert there.read("kept") == "as it was\n"
        assert not (there.project / ".git/hooks/x").exists()
        assert there.read("a") == "1\n"
        assert result.is_held_back
        assert "- .git/hooks/x: programs run it\n- kept: a rule denies it" in result.remarks[0]
        assert told(result) == {"a": "created"}


async def test_the_parent_of_what_is_forbidden_cannot_be_moved_away(tmp_path: Path) -> None:
    """Moving `sub` and making a new one with a `.git/config` of one's own is the way around a
    read-only mount.
    """
    async with sandboxed_project(tmp_path) as there:
        there.forbidden = {"sub/.git/config": "programs obey it"}
        there.write("sub/.git/config", "[core]\n")
        there.write("sub/.git/HEAD", "ref: refs/heads/main\n")
        result = await there.shell(
            "mv sub gone; mkdir -p sub/.git; echo '[core] fsmonitor=evil' > sub/.git/config"
        )
        assert there.read("sub/.git/config") == "[core]\n"
        assert result.is_held_back


@pytest.mark.parametrize(
    "script",
    [
        "rm -rf .git",
        "rm -rf .git/objects",
        "rm .git/HEAD",
        "rm -rf .git; mkdir .git; echo x > .git/HEAD; mkdir .git/objects .git/refs",
        "mv .git elsewhere",
        "rm -rf .git; echo 'gitdir: /elsewhere' > .git",
    ],
)
async def test_a_repository_is_not_taken_away(tmp_path: Path, script: str) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write(".git/HEAD", "ref: refs/heads/main\n")
        there.write(".git/objects/ab/cd", "object")
        there.write(".git/refs/heads/main", "abcd\n")
        result = await there.shell(f"{script}; echo 1 > other")
        assert there.read(".git/HEAD") == "ref: refs/heads/main\n"
        assert there.read(".git/objects/ab/cd") == "object"
        assert there.read(".git/refs/heads/main") == "abcd\n"
        assert there.read("other") == "1\n"
        assert "a command may not take a repository away" in result.remarks[0]


async def test_commits_and_packing_are_carried_over(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        git = "git -c user.name=a -c user.email=a@b.c"
        result = await there.shell(
            f"{git} init -q . && echo 1 > a && git add a && {git} commit -qm one && echo "
            f"2 > a && {git} commit -qam two"
        )
        assert result.exit_code == 0, result.output
        result = await there.shell("git gc -q && git log --oneline | wc -l && git fsck --strict")
        assert result.output.startswith("2\n"), result.output
        plain = ProcessCommand(argv=("git", "log", "--format=%s"), cwd=str(there.project))
        assert (await there.local.run(plain)).output == "two\none\n"


# --- changed meanwhile


async def test_a_file_that_another_program_changed_meanwhile_is_merged_where_that_is_clean(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        old = "".join(f"line {number}\n" for number in range(10))
        there.write("file", old)
        there.seen["file"] = old.encode()
        result = await run_and_meanwhile(
            there,
            "sed -i 's/line 1/command/' file",
            lambda: there.write("file", old.replace("line 8", "person")),
        )
        assert there.read("file") == old.replace("line 1", "command").replace("line 8", "person")
        assert "both changes were merged:\n- file" in result.remarks[0]
        assert not result.is_held_back
        assert change(result, "file").data_after == (there.project / "file").read_bytes()


async def test_a_file_that_cannot_be_merged_stays_the_users_and_both_are_told(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("file", "old\n")
        there.seen["file"] = b"old\n"
        there.write("removed", "x\n")
        result = await run_and_meanwhile(
            there,
            "echo command > file; rm removed; echo fine > other",
            lambda: (there.write("file", "person\n"), there.write("removed", "person\n")),
        )
        assert (there.read("file"), there.read("removed")) == ("person\n", "person\n")
        assert there.read("other") == "fine\n"
        assert result.is_held_back
        [said] = result.remarks
        aside = said.partition("the command's version is kept in ")[2].split("\n")[0]
        assert Path(aside).read_text() == "command\n"
        assert "- removed" in said


async def test_a_file_that_another_program_removed_meanwhile_is_not_brought_back(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("file", "old\n")
        await run_and_meanwhile(
            there, "echo more >> file", lambda: (there.project / "file").unlink()
        )
        assert not (there.project / "file").exists()


async def test_a_file_that_another_program_made_meanwhile_is_not_overwritten(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        result = await run_and_meanwhile(
            there, "echo command > new", lambda: there.write("new", "person\n")
        )
        assert there.read("new") == "person\n"
        assert result.is_held_back


# --- where there is none


async def test_where_there_is_no_sandbox_commands_run_as_they_would_without(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    environ = {"PATH": str(empty), "HOME": str(tmp_path)}
    sandbox = ProcessSandbox(environ=environ, folder=str(tmp_path / "sandbox"))
    there = SandboxedProject(tmp_path, sandbox)
    assert not await there.runner.is_sandboxed()
    report = await sandbox.probe((str(there.project),))
    assert (report.is_available, report.reason) == (
        False,
        "bubblewrap (the program bwrap) is not installed",
    )
    assert [layer.works for layer in report.layers[:2]] == [False, False]
    result = await there.shell("echo plainly > here")
    assert (result.exit_code, result.changes) == (0, None)
    assert there.read("here") == "plainly\n"
    strict = SandboxedProject(tmp_path, sandbox, is_required=True)
    with pytest.raises(
        FinalToolError, match="only run in the sandbox, and there is none: bubblewrap"
    ):
        await strict.shell("true")
    await sandbox.aclose()


async def test_a_bubblewrap_that_fails_is_no_sandbox_and_says_why(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "bwrap").write_text("#!/bin/sh\necho 'bwrap: no permissions' >&2\nexit 1\n")
    (programs / "bwrap").chmod(0o755)
    sandbox = ProcessSandbox(
        environ={"PATH": f"{programs}:/usr/bin:/bin"}, folder=str(tmp_path / "sandbox")
    )
    there = SandboxedProject(tmp_path, sandbox)
    assert await sandbox.why_not((str(there.project),)) == "bwrap: no permissions"
    await sandbox.aclose()


async def test_a_project_that_an_overlay_would_not_show_is_not_confined(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        assert "whole disk" in await there.sandbox.why_not(("/",))


async def test_a_command_that_was_let_out_runs_outside(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        canary = tmp_path / "canary"
        await there.shell(f"echo out > {canary}")
        assert not canary.exists()
        await there.shell(f"echo out > {canary}", is_unconfined=True)
        assert canary.read_text() == "out\n"


# --- what it sees


async def test_secrets_of_the_project_and_of_the_home_are_hidden(elsewhere: Path) -> None:
    tmp_path = elsewhere
    async with sandboxed_project(tmp_path, settled=SandboxOptions(shown=(".env.test",))) as there:
        for name in (".env", ".env.local", "app/.env.production", ".env.example", ".env.test"):
            there.write(name, f"{name} told\n")
        home = tmp_path / "home"
        (home / ".ssh").mkdir()
        (home / ".ssh" / "id").write_text("private")
        (home / ".netrc").write_text("password")
        result = await there.shell(
            "cat .env .env.local app/.env.production .env.example .env.test ~/.ssh/id "
            "~/.netrc; ls ~/.ssh"
        )
        assert [line for line in result.output.splitlines() if line.endswith("told")] == [
            ".env.example told",
            ".env.test told",
        ]
        assert "private" not in result.output
        assert "password" not in result.output
        assert "files with secrets cannot be read" in result.remarks[-1]
        there.write("late/.env", "late told\n")
        assert "told" not in (await there.shell("cat late/.env")).output


async def test_the_network_is_off_unless_it_is_allowed_and_the_model_is_told_why(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        result = await there.shell("getent hosts example.org; echo x > /dev/tcp/192.0.2.1/80")
        assert result.exit_code != 0
        assert "there is no network" in result.remarks[-1]


PAIR_OF_DATAGRAMS = "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)"


@pytest.mark.parametrize("network", [False, True])
async def test_unix_sockets_are_refused_unless_they_are_allowed_and_the_model_is_told_why(
    tmp_path: Path, network: bool
) -> None:
    """The network does not bring them along: its setting says nothing of servers of this
    machine.
    """
    line = f"{sys.executable} -c '{PAIR_OF_DATAGRAMS}'"
    async with sandboxed_project(tmp_path, settled=SandboxOptions(network=network)) as there:
        result = await there.shell(line)
        assert "Operation not permitted" in result.output
        assert "unix sockets are refused" in result.remarks[-1]
    settled = SandboxOptions(network=network, unix_sockets=True)
    async with sandboxed_project(tmp_path, settled=settled) as there:
        assert (await there.shell(line)).exit_code == 0
        result = await there.shell("echo x > /etc/weft-was-here")
        assert "unix sockets" not in result.remarks[-1]


async def test_the_environment_is_scrubbed_and_says_where_it_is(tmp_path: Path) -> None:
    environ = {**os.environ, "MY_TOKEN": "secret", "LD_PRELOAD": "", "HOME": str(tmp_path)}
    sandbox = ProcessSandbox(environ=environ, folder=str(tmp_path / "sandbox"))
    there = SandboxedProject(tmp_path, sandbox)
    if await sandbox.why_not((str(there.project),)):
        pytest.skip("this machine has no sandbox")
    result = await there.shell("echo $MY_TOKEN$WEFT_SANDBOX $TMPDIR", env={"MORE": "1"})
    assert result.output == "1 /tmp\n"
    await sandbox.aclose()


async def test_the_folder_is_taken_away_at_the_end(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        await there.shell("mkdir -p /tmp/a/b; chmod 000 /tmp/a; echo x > y")
        folder = Path(there.sandbox.scratch.folder)
        assert folder.is_dir()
    assert not folder.exists()
