"""What a command might leave in its overlay to get further than the sandbox lets it, and what
becomes of each.

The walls around a running command have tests of their own (`test_sandbox_walls`).  Here the command
has ended, and what it wrote is carried into the project by us, with all our rights: names, modes,
links, attributes and sizes are the attacker's.
"""

from __future__ import annotations

import os
import signal
import stat
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from tests.support.sandbox_cell import keeper_without, sandbox_cell
from tests.support.sandboxed_project import SandboxedProject, run_and_meanwhile, sandboxed_project
from weft.errors import RetryableToolError
from weft.workspace.sandbox import overlay_apply, overlay_plan
from weft.workspace.sandbox import runner as sandbox
from weft.workspace.sandbox.overlay_recovery import sweep
from weft.workspace.sandbox.scratch import remove

pytestmark = pytest.mark.anyio


def mode(there: SandboxedProject, name: str) -> int:
    return stat.S_IMODE((there.project / name).lstat().st_mode)


# --- modes


async def test_no_file_comes_over_that_would_run_as_its_owner(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("ours", "old\n", mode=0o755)
        result = await there.shell(
            "cp /bin/true shell; chmod 6755 shell; chmod 4755 ours; mkdir shared; chmod 2775 shared"
        )
        assert (mode(there, "shell"), mode(there, "ours")) == (0o755, 0o755)
        assert mode(there, "shared") == 0o2775  # of a folder it means whose group new files have
        assert "set-user-id" in result.remarks[0]
        assert "- ours\n- shell" in result.remarks[0]


async def test_a_program_that_was_so_before_stays_so_only_with_its_very_content(
    tmp_path: Path,
) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("kept", "#!/bin/sh\n", mode=0o4755)
        there.write("changed", "#!/bin/sh\n", mode=0o4755)
        await there.shell("touch kept; chmod 4711 kept; echo evil > changed; chmod 4755 changed")
        assert (mode(there, "kept"), mode(there, "changed")) == (0o4711, 0o755)


# --- links


async def test_a_link_that_came_meanwhile_does_not_lead_a_change_into_what_is_protected(
    tmp_path: Path,
) -> None:
    """The command fills a folder.

    Meanwhile another one has made a link to git's hooks of its name.
    """
    async with sandboxed_project(tmp_path) as there:
        there.write(".git/HEAD", "ref: refs/heads/main\n")
        there.write(".git/hooks/sample", "")
        result = await run_and_meanwhile(
            there,
            "mkdir a; echo evil > a/pre-commit; chmod +x a/pre-commit",
            lambda: (there.project / "a").symlink_to(".git/hooks"),
        )
        assert os.listdir(there.project / ".git/hooks") == ["sample"]
        assert (there.project / "a").is_symlink()
        assert result.is_held_back


async def test_a_link_out_of_the_project_is_a_link_and_nothing_is_written_through_it(
    tmp_path: Path,
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("theirs")
    async with sandboxed_project(tmp_path) as there:
        await there.shell(f"ln -s {outside} way; ln -s {outside}/file file")
        result = await there.shell("echo harm > way/file; echo harm > file; echo harm > way/new")
        assert result.exit_code != 0
        assert (os.listdir(outside), (outside / "file").read_text()) == (["file"], "theirs")
        assert os.readlink(there.project / "way") == str(outside)


async def test_what_is_kept_aside_is_kept_from_what_others_kept(tmp_path: Path) -> None:
    """One command loses a link, the next a file below the same name: kept in one folder, the link
    would lead the file outside.
    """
    outside = tmp_path / "outside"
    outside.mkdir()
    for _ in range(2):  # places are numbered alike in every process
        async with sandboxed_project(tmp_path) as there:
            there.write("plain", "")
            await run_and_meanwhile(there, f"ln -s {outside} a", lambda: there.write("a", "person"))
            (there.project / "a").unlink()
            await run_and_meanwhile(
                there,
                "mkdir a; echo harm > a/file",
                lambda: there.write("a/file", "person"),
            )
            (there.project / "a/file").unlink()
            (there.project / "a").rmdir()
    assert not os.listdir(outside)
    assert len(list((tmp_path / "sandbox" / "kept").iterdir())) == 4


async def test_what_is_kept_aside_goes_in_the_end(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        await run_and_meanwhile(there, "echo command > new", lambda: there.write("new", "person\n"))
        kept = tmp_path / "sandbox" / "kept"
        [folder] = kept.iterdir()
        assert sweep(str(tmp_path / "sandbox")) == 0
        os.utime(folder, (0, 0))
        assert sweep(str(tmp_path / "sandbox")) == 0  # never by its age alone
        assert sweep(str(tmp_path / "sandbox"), most_bytes=0) == 1
        assert not list(kept.iterdir())


async def test_hard_links_between_files_are_not_torn_and_lead_nowhere(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("one", "1\n")
        there.write(".env", "KEY=1\n")
        result = await there.shell(
            "ln one two; echo both >> two; ln .env leak; ln /etc/hostname host; ln /tmp/x y"
        )
        assert result.exit_code != 0
        assert (there.read("one"), there.read("two")) == ("1\nboth\n", "1\nboth\n")
        assert sorted(os.listdir(there.project)) == [".env", "one", "two"]


async def test_a_secret_that_a_link_leads_to_is_hidden_under_both_names(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("shared/secrets", "KEY=1\n")
        (there.project / ".env").symlink_to("shared/secrets")
        result = await there.shell("cat .env shared/secrets")
        assert "KEY" not in result.output


# --- attributes and marks of the overlay's own


async def test_a_command_cannot_make_marks_that_take_files_away(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        for name in ("folder/kept", "file", "other"):
            there.write(name, "x\n")
        script = (
            "import os\n"
            "for name in ('opaque', 'whiteout', 'redirect', 'metacopy', 'origin', 'impure'):\n"
            "    for path in ('folder', 'file'):\n"
            "        try: os.setxattr(path, 'user.overlay.' + name, b'y')\n"
            "        except OSError: pass\n"
            "open('other', 'w').close(); os.setxattr('other', 'user.overlay.whiteout', b'y')\n"
        )
        await there.shell(f'python3 -c "{script}"; mknod gone c 0 0; mknod disk b 8 0')
        assert sorted(os.listdir(there.project)) == ["file", "folder", "other"]
        assert os.listdir(there.project / "folder") == ["kept"]
        left = [
            name
            for path in there.project.rglob("*")
            for name in os.listxattr(path)
            if "overlay" in name
        ]
        assert left == []


async def test_attributes_of_a_new_file_come_over(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        await there.shell(
            "python3 -c \"import os; open('f', 'w').close(); os.setxattr('f', 'user.note', b'1')\""
        )
        with suppress(OSError):  # not every disk has attributes
            assert os.getxattr(there.project / "f", "user.note") == b"1"


# --- sizes and numbers


@pytest.mark.parametrize("is_other_disk", [False, True])
async def test_a_file_of_holes_is_not_read_nor_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_other_disk: bool
) -> None:
    if is_other_disk:
        monkeypatch.setattr(overlay_apply, "_move_in", _refuse_to_move)
    async with sandboxed_project(tmp_path) as there:
        there.write("was-large", b"")
        os.truncate(there.project / "was-large", 1 << 40)
        result = await there.shell(
            "truncate -s 4T holes; printf middle | dd of=some bs=1 seek=3G status=none; "
            "rm was-large"
        )
        for name, size in (("holes", 4 << 40), ("some", (3 << 30) + 6)):
            about = (there.project / name).stat()
            assert about.st_size == size
            assert about.st_blocks < 1000
        with (there.project / "some").open("rb") as file:
            file.seek(3 << 30)
            assert file.read() == b"middle"
        told = {each.path: each for each in result.changes or ()}
        assert told["holes"].after is None
        assert told["was-large"].missing.startswith("too large; it is kept in ")
        assert not (there.project / "was-large").exists()


def _refuse_to_move(*_: object) -> None:
    raise OSError(18, "another disk")


async def test_a_large_file_is_changed_even_if_it_looks_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is read, so nothing is concluded from what was not."""
    monkeypatch.setattr(overlay_plan, "HASHED_BYTES", 10)
    async with sandboxed_project(tmp_path) as there:
        there.write("large", "x" * 100)
        await there.shell(
            "cp -p large old; printf y | dd of=large conv=notrunc status=none; touch -r old large"
        )
        assert there.read("large") == "y" + "x" * 99


async def test_folders_too_deep_for_us_stay_out_and_are_taken_away(tmp_path: Path) -> None:
    script = "import os\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')"
    async with sandboxed_project(tmp_path) as there:
        result = await there.shell(f'python3 -c "{script}"; echo x > beside')
        assert not list(there.project.iterdir())
        assert result.is_held_back
        assert "None of its changes reached the project" in result.remarks[0]
        assert "250 deep" in result.remarks[0]
        assert (await there.shell("echo on > file")).exit_code == 0
    assert os.listdir(tmp_path / "sandbox") == ["cache"]


async def test_names_as_long_as_they_can_be_come_over(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        name = "n" * 255
        await there.shell(f"mkdir {name}; echo x > {name}/{name}; touch Case case")
        assert there.read(f"{name}/{name}") == "x\n"
        assert {"Case", "case"} <= set(os.listdir(there.project))


async def test_names_that_are_no_text_can_be_reported(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        there.write("x", "")
        result = await there.shell("mkfifo $'p\\xff'; mkdir $'d\\xff'; echo 1 > $'d\\xff/f\\xfe'")
        for line in (*result.remarks, *result.left_out):
            line.encode()
        assert "p�: pipes" in result.remarks[0]
        assert os.listdir(os.fsencode(there.project / "d") + b"\xff") == [b"f\xfe"]


def test_everything_can_be_taken_away(tmp_path: Path) -> None:
    folder = tmp_path / "place"
    here = str(folder)
    os.mkdir(here)
    base = os.open(here, os.O_RDONLY)
    for number in range(1200):
        os.mkdir("d" * 20, dir_fd=base)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=base)
        os.close(os.open("file", os.O_CREAT, dir_fd=below))
        if number % 100 == 0:
            os.fchmod(below, 0o700)
        os.close(base)
        base = below
    os.fchmod(base, 0)
    os.close(base)
    remove(here)
    assert os.listdir(tmp_path) == []


# --- what runs


@pytest.mark.parametrize("who", ["nobody", "me"])
async def test_a_command_cannot_fill_the_machine_with_processes(who: str) -> None:
    if who == "me" and os.geteuid() == 0:
        pytest.skip("root is held to no number of processes")
    script = (
        "import os, sys, time\n"
        "try:\n"
        "    for _ in range(200):\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "except BlockingIOError: sys.exit(7)"
    )

    def few(source: str) -> str:
        assert "MOST_PROCESSES = 4096" in source
        return source.replace("MOST_PROCESSES = 4096", "MOST_PROCESSES = 40")

    async with sandbox_cell(who, without=few) as box:
        assert await box.python(script) == 7
        assert await box.python("pass") == 0  # all of them are gone
    async with sandbox_cell(who, without=keeper_without("bound_processes()")) as box:
        assert await box.python(script) == 0


async def test_where_memory_runs_out_commands_go_first(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        ours = int(Path("/proc/self/oom_score_adj").read_text())
        result = await there.shell("cat /proc/self/oom_score_adj")
        assert int(result.output) == max(500, ours)


async def test_a_command_has_three_descriptors_and_no_more(tmp_path: Path) -> None:
    async with sandboxed_project(tmp_path) as there:
        result = await there.shell("echo /proc/self/fd/*")
        numbers = {int(each.rpartition("/")[2]) for each in result.output.split()}
        assert {0, 1, 2} <= numbers
        assert len(numbers) <= 4  # and the one that the shell lists them by


async def test_what_a_command_that_cannot_be_ended_wrote_is_not_carried_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could go on writing while its changes are judged."""
    monkeypatch.setattr(sandbox, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(sandbox, "REAP_SECONDS", 0.1)
    async with sandboxed_project(tmp_path) as there:
        await there.shell("true")
        keeper = there.sandbox.keeper._popen
        assert keeper is not None
        pids = [keeper.pid, *_below(keeper.pid)]
        stopped: list[int] = []

        def stop(text: str) -> None:
            """Let the keeper do nothing any more, as if the kernel kept it waiting."""
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)

        try:
            with (
                anyio.fail_after(20),
                pytest.raises(RetryableToolError, match="could not be ended"),
            ):
                await there.shell(
                    "trap '' TERM; echo x > early; echo go; while :; do sleep 0.01; done",
                    stop,
                    timeout_seconds=2.0,
                )
            assert stopped
            assert not list(there.project.iterdir())
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


def _below(pid: int) -> list[int]:
    """Bubblewrap's own processes and the keeper, but not its cells."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    if not children:
        return []
    line = Path(f"/proc/{children[0]}/cmdline").read_bytes()
    is_keeper = not line.startswith(b"bwrap") and b"/bwrap\0" not in line
    found = [int(children[0])]
    return found if is_keeper else found + _below(found[0])
