"""`weft map`: the command."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.git_history import git
from tests.support.weft_program import WeftProgram
from weft.cli.commands.map import map_folder
from weft.config.paths import places
from weft.errors import UsageError
from weft.repo.indexer_process import take_lock


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture(autouse=True)
def index_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by default."""
    plain = WeftProgram.environment.__get__

    def environment(weft: WeftProgram) -> dict[str, str]:
        return {name: value for name, value in plain(weft).items() if name != "WEFT_REPO_INDEX"}

    monkeypatch.setattr(WeftProgram, "environment", property(environment))


@pytest.fixture
def shop(weft: WeftProgram) -> WeftProgram:
    write(
        weft.project,
        {
            "shop/cart.py": "class Cart:\n    def total(self):\n        return self.tax()\n",
            "shop/mail.py": "def send_receipt(): ...\n",
            "web/page.ts": "export function render(): void {}\n",
        },
    )
    git(weft.project, "init", "-q")
    return weft


def test_a_map_shows_what_a_request_is_about_first(shop: WeftProgram) -> None:
    done = shop.run("map", "--request", "the tax of a cart is wrong")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "shop/cart.py\n  class Cart\n    def total(self)\n".replace("    d", "  d")
    )
    (shop.home / "request").write_text("render the page")
    by_file = shop.run(
        "map", "--request-file", str(shop.home / "request"), "--focus", "--tokens", "20"
    )
    assert by_file.stdout.startswith("web/page.ts\n")


def test_a_map_is_limited_to_paths_or_is_of_another_folder(shop: WeftProgram) -> None:
    limited = shop.run("map", "web", "--request", "cart").stdout
    assert limited.startswith("web/page.ts\n")
    assert "cart" not in limited
    write(shop.home / "other", {"deep/a.py": "def alone(): ...\n"})
    assert shop.run("map", str(shop.home / "other")).stdout.startswith("deep/a.py\n")


def test_files_of_a_folder_without_git_are_mapped_together(weft: WeftProgram) -> None:
    write(weft.project, {"a.py": "def one(): ...\n", "b.py": "def two(): ...\n", "c.py": ""})
    done = weft.run("map", "a.py", "b.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(line for line in done.stdout.split("\n") if line[:1].strip()) == ["a.py", "b.py"]


def test_a_map_leaves_out_the_focus_and_takes_a_history_from_a_file(shop: WeftProgram) -> None:
    history = shop.home / "history.jsonl"
    history.write_text('[1, ["shop/cart.py", "web/page.ts"], "x"]\n')
    done = shop.run("map", "--focus", "shop/cart.py", "--history", str(history))
    assert done.stdout.startswith("web/page.ts\n")
    assert "cart" not in done.stdout


def test_a_history_from_a_file_leaves_the_past_that_git_tells_alone(shop: WeftProgram) -> None:
    git(shop.project, "init", "-q")
    git(shop.project, "add", "-A")
    git(shop.project, "commit", "-qm", "x")
    history = shop.home / "history.jsonl"
    history.write_text('[1, ["web/page.ts"], "quokka"]\n')
    asked = ("map", "--request", "quokka")
    before = shop.run(*asked).stdout
    assert not before.startswith("web/page.ts\n")
    assert shop.run(*asked, "--history", str(history)).stdout.startswith("web/page.ts\n")
    assert shop.run(*asked).stdout == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "there is no file or folder 'nowhere'"),
        (["--request", "x", "--request-file", "y"], "either --request or --request-file"),
        (["--request-file", "nowhere"], "cannot read the request 'nowhere'"),
        (["--tokens", "100001"], "a map has 1 to 100,000 tokens, not 100,001"),
        (["--history", "nowhere"], "cannot read the history"),
        (["/", "/tmp"], "only paths of this project"),
    ],
)
def test_what_cannot_be_mapped_is_said_in_one_sentence(
    weft: WeftProgram, arguments: list[str], said: str
) -> None:
    (weft.project / "a.py").write_text("")
    done = weft.call("map", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") <= 2


def test_a_folder_without_sources_says_so(weft: WeftProgram) -> None:
    done = weft.run("map")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no source files" in done.stderr


def test_what_a_map_has_no_room_for_or_does_not_know_is_said(shop: WeftProgram) -> None:
    done = shop.run("map", "--tokens", "2", "--focus", "shop/nowhere.py,shop/cart.py")
    assert done.stdout == ""
    assert "2 tokens have no room" in done.stderr
    assert "no source files" not in done.stderr
    assert "--focus: there is no file 'shop/nowhere.py'" in done.stderr
    assert done.stderr.count("\n") == 2


def test_a_folder_that_is_gone_is_said_as_by_other_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UsageError, match="the folder you are in is gone; cd to another one"):
        map_folder(None)


def test_an_index_that_cannot_be_made_is_an_error_and_no_empty_project(shop: WeftProgram) -> None:
    shop.data.mkdir(parents=True, exist_ok=True)
    (shop.data / "index").write_text("a file in its place")
    done = shop.call("map", "--request", "cart")
    assert (done.returncode, done.stdout) == (1, "")
    assert "could not be brought up to date" in done.stderr
    assert "no source files" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_name_with_control_characters_is_written_out(shop: WeftProgram) -> None:
    write(shop.project, {"a\x1b[2Jb\n.py": "def odd(): ...\n"})
    done = shop.run("map", "--request", "odd")
    assert "\x1b" not in done.stdout
    assert r'"a\x1b[2Jb\n.py"' in done.stdout


def test_there_is_no_map_where_the_setting_is_off(shop: WeftProgram) -> None:
    off = {"WEFT_REPO_INDEX": "off"}
    by_variable = shop.call("map", env=off)
    write(shop.project, {".weft/config.toml": "repo.index = false\n"})
    for done in (by_variable, shop.call("map")):
        assert (done.returncode, done.stdout) == (2, "")
        assert "the setting repo.index is off" in done.stderr
    assert not (shop.data / "index").exists()


def _niceness(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        return os.getpriority(os.PRIO_PROCESS, pid)
    return 0


def test_an_interrupt_ends_a_map_that_waits_for_its_index(shop: WeftProgram) -> None:
    folder = places(shop.environment).index_of(str(shop.project))
    lock = take_lock(folder)
    assert lock is not None
    running = shop.start("map", env={"WEFT_REPO_INDEX": "on"})
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    deadline = time.monotonic() + 60
    # An indexer that has made itself nice has begun: the map waits for it.
    while not any(_niceness(int(pid)) for pid in children.read_text().split()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    running.wait(30)
    os.close(lock)
    assert running.returncode == 130


def test_a_map_that_takes_long_shows_how_far_it_is_on_a_terminal_and_takes_it_back(
    shop: WeftProgram,
) -> None:
    folder = places({"HOME": str(shop.home)}).index_of(str(shop.project))
    folder.mkdir(parents=True)
    lock = take_lock(folder)
    assert lock is not None
    terminal, errors = pty.openpty()
    argv = [sys.executable, "-m", "weft", "map"]
    with subprocess.Popen(
        argv, cwd=shop.project, env=shop.environment, stdout=subprocess.PIPE, stderr=errors
    ) as running:
        os.close(errors)
        # An indexer that does not get on is a project that takes long.
        shown = b""
        while b"so far" not in shown:
            shown += os.read(terminal, 1000)
        os.close(lock)
        assert running.stdout is not None
        assert b"class Cart" in running.stdout.read()
        with contextlib.suppress(OSError):  # how a terminal ends
            while data := os.read(terminal, 1000):
                shown += data
    os.close(terminal)
    assert running.returncode == 0
    assert shown.startswith(b"\r\x1b[Kreading the project: 0 source files so far")
    assert shown.endswith(b"\r\x1b[K")
