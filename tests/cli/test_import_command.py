"""`weft import` and `weft store`, as typed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.foreign_sessions import FILES, put_in_home
from tests.support.weft_program import WeftProgram

pytestmark = pytest.mark.process


@pytest.fixture
def weft(tmp_path: Path) -> Iterator[WeftProgram]:
    program = WeftProgram(tmp_path)
    yield program
    program.close()


def test_it_shows_first_then_does_it_once(weft: WeftProgram) -> None:
    put_in_home(FILES / "codex-0.169.0.jsonl", Path(weft.environment["HOME"]), str(weft.project))
    shown = weft.call("import", "--from", "codex")
    assert shown.returncode == 2
    assert "Read the two files." in shown.stdout
    assert "nothing is taken over yet; --yes takes what is new" in shown.stderr
    assert "Read the two files." not in weft.call("session", "list").stdout
    assert "1 session to take over" in weft.call("import", "--from", "codex", "--dry-run").stderr
    assert "1 session taken over" in weft.call("import", "--from", "codex", "--yes").stderr
    again = json.loads(weft.call("import", "--from", "codex", "--yes", "--json").stdout)
    assert [each["state"] for each in again["sessions"]] == ["there"]
    assert weft.call("session", "list").stdout.count("Read the two files.") == 1


def test_what_cannot_be_imported_is_one_sentence(weft: WeftProgram) -> None:
    for words, sentence in (
        ((), "say from which agent"),
        (("--from", "clude"), "did you mean 'claude'?"),
        (("--from", "claude", "nothing"), "no session of claude has the id 'nothing'"),
    ):
        done = weft.call("import", *words)
        assert done.returncode == 2
        assert sentence in done.stderr
    file = weft.project / "notes.txt"
    file.write_text("no session\n")
    done = weft.call("import", "--from", "pi", "notes.txt")
    assert done.returncode == 1
    assert "it is no session of this agent, or empty" in done.stderr


def test_a_command_of_a_session_imports_nothing(weft: WeftProgram) -> None:
    done = weft.call("import", "--from", "claude", "--yes", env={"WEFT_RUN": "x"})
    assert done.returncode == 2
    assert "a model does not import sessions or set-up" in done.stderr


def test_the_store_says_what_is_kept_and_what_goes_next(weft: WeftProgram) -> None:
    shown = weft.call("store")
    assert shown.returncode == 0
    assert "kept until you delete them" in shown.stderr
    assert "no file content goes before" in shown.stderr
    assert json.loads(weft.call("store", "show", "--json").stdout)["next"] == []
