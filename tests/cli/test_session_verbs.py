"""Moving in a session without a chat."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.weft_program import WeftProgram, call, text


def made(weft: WeftProgram) -> str:
    """A session of two turns that made a file and changed it; returns its id."""
    answers = (
        {"when": {"user_says": "third"}, "steps": [text("Third.")]},
        [call("write", path="a.txt", content="one\n")],
        "Made it.",
        [call("write", path="a.txt", content="two\n")],
        "Changed it.",
    )
    model = weft.script(*answers)
    assert weft.call("-p", "--yolo", "-m", model, "make it").stdout == "Made it.\n"
    assert weft.call("-p", "-c", "--yolo", "change it").stdout == "Changed it.\n"
    return str(weft.sessions()[0]["id"])


def history(weft: WeftProgram, session: str) -> list[str]:
    shown = json.loads(weft.call("session", "show", session, "--json").stdout)
    return [each["content"] for each in shown["messages"] if each["role"] == "user"]


def test_a_tree_is_printed_with_the_places_that_other_commands_take(weft: WeftProgram) -> None:
    session = made(weft)
    shown = weft.call("session", "tree", session).stdout.splitlines()
    assert [re.sub(r"^\S+ +", "", line) for line in shown] == [
        "› make it  (1 call)",
        "[here, main] › change it  (1 call)",
    ]
    place = shown[0].split()[0]
    assert weft.call("session", "branch", session, "--at", place, "-n", "other").stdout == "other\n"
    assert history(weft, session) == ["make it"]
    assert weft.call("-p", "-c", "third").stdout == "Third.\n"
    tree = json.loads(weft.call("session", "tree", session, "--json").stdout)
    assert [each["name"] for each in tree["branches"]] == ["main", "other"]
    assert [each["text"] for each in tree["messages"] if each["role"] == "user"] == [
        "make it",
        "change it",
        "third",
    ]
    assert weft.call("session", "switch", session, "main").returncode == 0
    assert history(weft, session) == ["make it", "change it"]


def test_a_rewind_is_previewed_needs_a_yes_and_is_undone(weft: WeftProgram) -> None:
    session = made(weft)
    file = weft.project / "a.txt"
    to = ("session", "rewind", session, "--to", "3")
    seen = weft.call(*to, "--preview")
    assert (seen.returncode, seen.stdout.split()) == (0, ["a.txt", "restore"])
    assert seen.stderr == "preview: restore 1 file\n"
    refused = weft.call(*to)
    assert refused.returncode == 2
    assert refused.stderr == (
        "weft: this changes files; add --yes to do it, or --preview to only look\n"
    )
    assert file.read_text() == "two\n"
    assert history(weft, session) == ["make it", "change it"]
    done = weft.run(*to, "--yes")
    assert (done.returncode, done.stderr) == (0, "restored 1 file\n")
    assert file.read_text() == "one\n"
    assert history(weft, session) == ["make it"]
    undone = json.loads(weft.run("session", "undo", session, "-y", "--json").stdout)
    assert undone["is_done"]
    assert file.read_text() == "two\n"
    assert history(weft, session) == ["make it", "change it"]


def test_files_and_conversation_go_back_apart_and_to_the_very_start(weft: WeftProgram) -> None:
    session = made(weft)
    file = weft.project / "a.txt"
    rewind = ("session", "rewind", session, "--to", "start", "-y")
    assert weft.call(*rewind, "--files-only").returncode == 0
    assert not file.exists()
    assert history(weft, session) == ["make it", "change it"]
    assert weft.call("session", "undo", session, "-y").returncode == 0
    assert weft.call(*rewind, "--conversation-only").returncode == 0
    assert file.read_text() == "two\n"
    assert history(weft, session) == []


def test_what_another_program_changed_stays_unless_it_is_named(weft: WeftProgram) -> None:
    session = made(weft)
    (weft.project / "a.txt").write_text("mine\n")
    rewind = ("session", "rewind", session, "--to", "start", "--files-only", "-y")
    assert "a.txt  keep" in weft.call(*rewind).stdout
    assert (weft.project / "a.txt").read_text() == "mine\n"
    assert weft.call(*rewind, "--overwrite", "a.txt").returncode == 0
    assert not (weft.project / "a.txt").exists()


def test_a_checkpoint_is_named_and_come_back_to(weft: WeftProgram) -> None:
    session = made(weft)
    assert weft.call("session", "checkpoint", session, "good", "place").stdout == "good place\n"
    assert weft.call("session", "checkpoint", session).stdout == "checkpoint-1\n"
    weft.call("-p", "-c", "third")
    assert weft.call("session", "rewind", session, "--to", "good place").returncode == 0
    assert history(weft, session) == ["make it", "change it"]


def test_a_session_is_compacted_summarised_and_the_compaction_undone(weft: WeftProgram) -> None:
    model = weft.script(
        {"when": {"user_says": "handover"}, "steps": [text("# Decisions\n\nNone.")]},
        *["Answer. " + "word " * 400] * 8,
    )
    for number in range(6):
        weft.call("-p", *(["-c"] if number else ["-m", model]), f"question {number}")
    session = str(weft.sessions()[0]["id"])
    done = weft.call("session", "compact", session, "the", "numbers")
    assert done.returncode == 0, done.stderr
    assert "tokens reduced to" in done.stderr
    assert json.loads(weft.call("session", "tree", session, "--json").stdout)["summarized_to"]
    diff = weft.call("context", "--diff")
    assert "-user: question 0\n" in diff.stdout
    assert "+# Decisions\n" in diff.stdout
    assert re.search(r"[\d,]+ tokens summarized, [\d,]+ in their place", diff.stderr)
    assert weft.call("session", "undo", session, "compaction").returncode == 0
    assert not json.loads(weft.call("session", "tree", session, "--json").stdout)["summarized_to"]
    assert "nothing on this line was compacted" in weft.call("context", session, "--diff").stderr
    written = weft.call("session", "summarize", session)
    assert written.returncode == 0, written.stderr
    assert written.stdout.strip()
    assert f"{session}.md" in written.stderr


def test_an_archived_session_leaves_the_list_and_comes_back(weft: WeftProgram) -> None:
    session = made(weft)
    assert weft.call("session", "archive", session).returncode == 0
    assert weft.sessions() == []
    assert session in weft.call("session", "list", "--archived").stdout
    assert weft.call("session", "archive", "--undo", session).returncode == 0
    assert len(weft.sessions()) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("tree",), "`weft session tree` takes ID"),
        (("tree", "nope"), "there is no session 'nope'"),
        (("rewind", "ID"), "`weft session rewind` needs --to"),
        (("rewind", "ID", "--to", "99", "--preview"), "there is no message 99; the history has 8"),
        (("rewind", "ID", "--to", "nowhere", "-y"), "there is no message 'nowhere'"),
        (
            ("rewind", "ID", "--to", "start", "--files-only", "--conversation-only"),
            "either --files-only or --conversation-only",
        ),
        (
            ("rewind", "ID", "--to", "start", "-y", "--overwrite", "b.txt"),
            "'b.txt' would not be touched",
        ),
        (("undo", "ID"), "there is no rewind to undo"),
        (("undo", "ID", "everything"), "not 'everything'"),
        (("undo", "ID", "compaction"), "nothing on this line was compacted"),
        (("switch", "ID"), "`weft session switch` takes ID BRANCH"),
        (("switch", "ID", "nowhere"), "no branch 'nowhere'; there are main"),
        (("branch", "ID", "-n", "main"), "the name 'main' is taken"),
        (("checkpoint", "ID", "main"), "the name 'main' is taken"),
        (("archive",), "needs at least one id"),
    ],
)
def test_a_wrong_word_is_one_clear_sentence_and_changes_nothing(
    weft: WeftProgram, words: tuple[str, ...], told: str
) -> None:
    session = made(weft)
    done = weft.call("session", *(session if word == "ID" else word for word in words))
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert done.stderr.startswith("weft: ")
    assert done.stderr.count("\n") == 1
    assert history(weft, session) == ["make it", "change it"]
    assert (weft.project / "a.txt").read_text() == "two\n"
