"""`weft decisions …`, from the words of a command line to what is printed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.cli.commands import decisions
from weft.cli.exit_codes import code_of, sentence_of
from weft.cli.parse import parse
from weft.cli.stdio import complain
from weft.errors import WeftError

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process, in an empty project."""
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "weft"))
    monkeypatch.chdir(project)

    def run_words(*words: str) -> tuple[int, str, str]:
        try:
            code = decisions.run(parse(["decisions", *words]))
        except WeftError as error:
            complain(sentence_of(error))
            code = code_of(error)
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return run_words


def logged(run: Run, *words: str) -> str:
    code, out, _ = run("log", *words)
    assert code == 0
    return out.split()[0]


def test_a_decision_is_logged_listed_shown_accepted_and_superseded(run: Run) -> None:
    assert run() == (0, "", "no decisions yet; `weft decisions log TITLE` adds one\n")
    old = logged(run, "Use YAML")
    new = logged(run, "Use TOML", "--rejected", "YAML: too clever", "--why", "People edit it")
    code, out, _ = run("supersede", old, new[:8], "--why", "typos")
    assert (code, out) == (0, f"{new}  active  Use TOML\n")
    _, out, _ = run("list")
    assert [line.split()[0] for line in out.splitlines()[1:]] in ([old, new], [new, old])
    assert "superseded" in out
    _, out, _ = run("show", new)
    assert "rejected: YAML (too clever)" in out
    _, out, _ = run("list", "--status", "active", "--json")
    assert [node["id"] for node in json.loads(out)] == [new]
    _, out, _ = run("narrative")
    assert out.index("Use YAML") < out.index("  superseded by: Use TOML")
    _, out, _ = run("abandon", new, "--json")
    assert json.loads(out)["status"] == "abandoned"


def test_an_option_is_shown_as_what_became_of_it(run: Run) -> None:
    logged(run, "Use SQLite", "--rejected", "Redis", "--chosen", "SQLite")
    _, out, _ = run("list", "--kind", "option")
    states = {line.split()[4]: line.split()[3] for line in out.splitlines()[1:]}
    assert states == {"Redis": "rejected", "SQLite": "chosen"}
    for form in ("dot", "mermaid"):
        _, out, _ = run("export", "-f", form)
        drawn = [line for line in out.splitlines() if "option: Redis" in line]
        assert ["rejected" in line and "active" not in line for line in drawn] == [True]


def test_a_decision_is_purged_with_its_options_only_when_that_is_confirmed(run: Run) -> None:
    kept, gone = logged(run, "Use TOML"), logged(run, "The key is 12345", "--rejected", "54321")
    code, _, err = run("purge", gone)
    assert (code, "add --yes to purge this decision" in err) == (2, True)
    assert "12345" in run("list")[1]
    code, out, err = run("purge", gone[:10], "--yes")
    assert (code, err) == (0, "")
    assert [line.split()[1] for line in out.splitlines()] == ["purged", "purged"]
    assert out.split()[0] == gone
    assert [node["id"] for node in json.loads(run("list", "--json")[1])] == [kept]
    code, _, err = run("purge", gone, "--yes")
    assert (code, "no decision" in err) == (2, True)
    assert json.loads(run("purge", kept, "--yes", "--json")[1]) == {"ids": [kept], "sessions": []}


def test_the_pulse_can_fail_a_script(run: Run) -> None:
    logged(run, "Ship", "--kind", "goal")
    code, out, _ = run("pulse")
    assert code == 0
    assert "goal_without_action" in out
    assert run("pulse", "--check")[0] == 1
    _, out, _ = run("pulse", "--json")
    assert json.loads(out)["findings"][0]["check"] == "goal_without_action"


def test_why_and_exports(run: Run, tmp_path: Path) -> None:
    (tmp_path / "project" / "a.py").write_text("one\n")
    name = logged(run, "One letter names", "--scope", "*.py", "--chosen", "short")
    _, out, _ = run("why", "a.py:1")
    assert out.startswith("a.py:1: in no commit\n")
    assert name in out
    _, out, _ = run("why", "a.py", "--json")
    assert json.loads(out)["decisions"][0]["id"] == name
    for words, start in (((), "{"), (("-f", "dot"), "digraph"), (("-f", "mermaid"), "flowchart")):
        assert run("export", *words)[1].startswith(start)
    assert run("export", "-f", "adr", "-o", str(tmp_path / "adr"))[:2] == (0, "")
    # A record that the graph was written out as is no new decision.
    known = "nothing new: these are decisions of this project already\n"
    assert run("import-adr", str(tmp_path / "adr"))[2] == known
    [record] = (tmp_path / "adr").iterdir()
    record.write_text("# 1. One word names\n\n## Decision\n\nWords.\n")
    _, out, _ = run("import-adr", str(tmp_path / "adr"))
    assert out.endswith("One word names\n")
    assert "nothing new" in run("import-adr", str(tmp_path / "adr"))[2]


def test_several_ids_are_one_json_value_and_all_or_none_is_done(run: Run) -> None:
    names = [logged(run, title) for title in ("One", "Two")]
    code, _, err = run("abandon", names[0], "dec_no")
    assert (code, "no decision 'dec_no'" in err) == (2, True)
    assert "abandoned" not in run("list")[1]
    _, out, _ = run("accept", *names, names[0], "--json")
    assert [node["id"] for node in json.loads(out)] == names
    new = logged(run, "Three", "--supersedes", names[0], "--confidence", "0")
    code, _, err = run("abandon", names[0])
    assert (code, "is superseded" in err) == (2, True)
    code, _, err = run("supersede", new, names[0])
    assert (code, "cannot take the place of another" in err) == (2, True)
    assert json.loads(run("show", new, "--json")[1])["node"]["confidence"] == 0


def test_names_that_are_no_text_are_shown(run: Run, tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.py")
    (tmp_path / "project" / name).write_text("one\n")
    (tmp_path / "project" / "a:3").write_text("one\n")
    logged(run, "All of it", "--scope", "*.py")
    for words in (("why", name), ("why", f"{name}:1")):
        code, out, _ = run(*words)
        assert (code, "All of it" in out) == (0, True)
    code, out, _ = run("why", name, "--json")
    assert json.loads(out)["path"].endswith("\ufffd.py")
    assert run("why", "a:3")[1].startswith("a:3: in no commit")
    assert run("log", "Odd", "--scope", name)[0] == 0


@pytest.mark.parametrize("kind", ["pipe", "folder", "bytes", "large", "device"])
def test_what_is_no_record_is_not_waited_for(run: Run, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "adr"
    folder.mkdir()
    record = folder / "0001-x.md"
    if kind == "pipe":
        os.mkfifo(record)
    elif kind == "folder":
        record.mkdir()
    elif kind == "device":
        record.symlink_to("/dev/zero")
    else:
        record.write_bytes(b"# \xff" if kind == "bytes" else b"# x\n" * 100_000)
    code, out, err = run("import-adr", str(folder))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "0001-x.md" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("show", "dec_no"), "no decision 'dec_no'; `weft decisions list` shows them"),
        (("show",), "`weft decisions show` needs ID"),
        (("supersede", "a"), "`weft decisions supersede` needs OLD and NEW"),
        (("log", ""), "a decision needs a title"),
        (("log", "x", "--kind", "wish"), "no kind 'wish'"),
        (("log", "x", "--confidence", "101"), "confidence is between 0 and 100, not 101"),
        (("log", "x", "--scope", "/etc"), "'/etc' is no scope"),
        (("why", "nothing.py"), "no file 'nothing.py' in this project"),
        (("why", "../a"), "'../a' is not in this project"),
        (("export", "-f", "xml"), "xml"),
        (("import-adr", "nowhere"), "no file or folder 'nowhere'"),
        (("lst",), "there is no `decisions lst`"),
        (("show", "a", "b"), "`weft decisions show` takes only ID, no 'b'"),
        (("supersede", "a", "b", "c"), "takes only OLD and NEW, no 'c'"),
        (("why", "a", "b"), "takes only PATH[:LINE], no 'b'"),
        (("why", ""), "'' is no path"),
        (("why", ".:0"), "lines are counted from 1, not 0"),
        (("list", "--kind", "wish"), "no kind 'wish'; there are goal"),
        (("narrative", "--session", "ses_x"), "session 'ses_x' has decided nothing here"),
        (("log", "x", "--confidence", "much"), "needs a number from 0 to 100, not 'much'"),
        (("log", "x", "--scope", "a" * 400), "a scope has at most 300 characters"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(run: Run, words: tuple[str, ...], says: str) -> None:
    code, out, err = run(*words)
    assert code == 2
    assert out == ""
    assert err.startswith("weft: ")
    assert says in err


def test_names_that_cannot_be_are_refused_and_odd_ones_shown_in_one_line(
    run: Run, tmp_path: Path
) -> None:
    code, _, said = run("why", "x" * 5_000)
    assert (code, said.count("\n")) == (2, 1)
    assert len(said) < 300
    for option in ("--supersedes", "--parent"):
        code, _, said = run("log", "Use TOML", option, "")
        assert (code, "needs the id of a decision" in said) == (2, True)
    (tmp_path / "project" / "a\x1b[31m\nb.py").write_text("one\n")
    _, out, _ = run("why", "a\x1b[31m\nb.py")
    assert "\x1b" not in out
    assert out.splitlines()[0].endswith("in no commit")


@pytest.mark.process
def test_why_says_on_the_command_line_that_git_failed(run: Run, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "a.py").write_text("one\n")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / ".git" / "refs" / "heads" / "main").write_text("1" * 40 + "\n")
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    _, out, _ = run("why", "a.py:1")
    assert out.startswith("a.py:1: git failed, its commit is not known: ")
