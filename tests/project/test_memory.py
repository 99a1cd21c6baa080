"""What the user asked to be remembered: files that people edit, and what becomes of them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.config.paths import WeftPaths
from weft.errors import UsageError
from weft.project.memory import LIMIT, LONGEST_NOTE, MemoryFiles, memory_root
from weft.redact import Redactor

NOW = 1_800_000_000.0
KEY = "sk-ant-api03-" + "a1B2c3D4" * 8


def files_in(base: Path) -> MemoryFiles:
    places = WeftPaths(home=base / "data", user=base, config=base / "config")
    return MemoryFiles(places, Redactor())


@pytest.fixture
def files(tmp_path: Path) -> MemoryFiles:
    return files_in(tmp_path)


@pytest.fixture
def project(tmp_path: Path) -> str:
    (tmp_path / "calc").mkdir()
    return str(tmp_path / "calc")


def texts(files: MemoryFiles, project: str) -> list[str]:
    return [note.text for note in files.notes(project)]


def test_what_is_added_is_listed_and_given_to_the_model_the_users_own_first(
    files: MemoryFiles, project: str
) -> None:
    files.add(project, "use tabs", "project", NOW)
    files.add(project, "answer in German", "user", NOW)
    files.add(project, "tests run with `make test`\nnever with pytest", "project", NOW)
    assert texts(files, project) == [
        "answer in German",
        "use tabs",
        "tests run with `make test`\nnever with pytest",
    ]
    given = files.text(project).text
    assert given.index("answer in German") < given.index("use tabs") < given.index("never with")
    assert files.text(project).problems == ()


def test_another_project_has_only_the_users_own(
    files: MemoryFiles, project: str, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    files.add(project, "use tabs", "project", NOW)
    files.add(project, "answer in German", "user", NOW)
    assert texts(files, str(tmp_path / "other")) == ["answer in German"]
    assert os.listdir(project) == []


def test_the_same_is_remembered_once(files: MemoryFiles, project: str) -> None:
    first = files.add(project, "use tabs", "project", NOW)
    assert files.add(project, "  use tabs\n", "project", NOW) == first
    assert texts(files, project) == ["use tabs"]


def test_what_is_remembered_in_both_scopes_is_forgotten_in_the_one_that_is_meant(
    files: MemoryFiles, project: str
) -> None:
    own = files.add(project, "use tabs", "user", NOW)
    note = files.add(project, "use tabs", "project", NOW)
    assert files.remove(project, note.id) == note
    assert files.notes(project) == [own]


def test_a_file_is_what_people_make_of_it(files: MemoryFiles, project: str) -> None:
    note = files.add(project, "use tabs", "project", NOW)
    path = Path(note.path)
    assert path.read_text() == f"# Memory: {project}\n\n- use tabs\n"
    path.write_text("# Mine\n\nWe deploy on\nFridays.\n\n* use spaces\n  of two\n\n## More\n")
    assert texts(files, project) == ["We deploy on\nFridays.", "use spaces\nof two"]
    files.add(project, "third", "project", NOW)
    assert path.read_text().endswith("## More\n\n- third\n")
    [spaces] = [each for each in files.notes(project) if "spaces" in each.text]
    assert files.remove(project, spaces.id) == spaces
    assert path.read_text() == "# Mine\n\nWe deploy on\nFridays.\n\n\n## More\n\n- third\n"
    with pytest.raises(UsageError, match="nothing with the id"):
        files.remove(project, spaces.id)


def test_files_are_private_and_one_that_is_a_link_stays_one(
    files: MemoryFiles, project: str, tmp_path: Path
) -> None:
    note = files.add(project, "use tabs", "project", NOW)
    assert Path(note.path).stat().st_mode & 0o777 == 0o600
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "memory.md").write_text("- old\n")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "MEMORY.md").symlink_to(dotfiles / "memory.md")
    files.add(project, "new", "user", NOW)
    assert (dotfiles / "memory.md").read_text() == "- old\n- new\n"
    assert (tmp_path / "config" / "MEMORY.md").is_symlink()


def test_an_empty_file_and_one_of_headings_say_nothing(files: MemoryFiles, project: str) -> None:
    path = Path(files.add(project, "use tabs", "project", NOW).path)
    for text in ("", "\n\n", "# Memory\n\n## Later\n"):
        path.write_text(text)
        assert files.text(project).text == ""


@pytest.mark.parametrize("kind", ["pipe", "folder", "bytes", "device"])
def test_what_is_no_text_file_is_named_and_never_waited_for(
    files: MemoryFiles, project: str, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "config").mkdir()
    path = tmp_path / "config" / "MEMORY.md"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "bytes":
            path.write_bytes(b"\0\1\2")
        case _:
            path.symlink_to("/dev/zero")
    files.add(project, "use tabs", "project", NOW) if kind == "bytes" else None
    found = files.text(project)
    assert "MEMORY.md" in found.problems[0]
    if kind != "bytes":
        with pytest.raises(UsageError, match=r"MEMORY\.md"):
            files.add(project, "x", "user", NOW)


def test_secrets_reach_neither_the_file_nor_the_model(files: MemoryFiles, project: str) -> None:
    note = files.add(project, f"the key is {KEY}", "project", NOW)
    path = Path(note.path)
    assert KEY not in path.read_text()
    path.write_text(f"- the key is {KEY}\n- use tabs\n")
    assert KEY not in files.text(project).text
    [listed, _] = files.notes(project)
    assert KEY not in listed.text
    files.remove(project, listed.id)
    assert path.read_text() == "- use tabs\n"


def test_memory_is_bounded_and_says_so(files: MemoryFiles, project: str) -> None:
    path = Path(files.add(project, "use tabs", "project", NOW).path)
    path.write_text("- ünd so weiter\n" * LIMIT)
    found = files.text(project)
    assert len(found.text.encode()) < LIMIT + 600
    assert "[The rest is left out: the memory is limited to 8 KiB.]" in found.text
    assert found.problems == (f"{path}: only its beginning counts, because the memory is limited "
                              "to 8 KiB",)  # fmt: skip
    with pytest.raises(UsageError, match="the memory is full"):
        files.add(project, "one more", "project", NOW)
    with pytest.raises(UsageError, match="the memory is full"):
        files.add(project, "one more", "user", NOW)


def test_a_users_memory_without_end_leaves_room_for_the_projects_and_says_so(
    files: MemoryFiles, project: str
) -> None:
    own = Path(files.add(project, "answer in German", "user", NOW).path)
    note = files.add(project, "use tabs", "project", NOW)
    own.write_text("- and so on\n" * LIMIT)
    found = files.text(project)
    assert "use tabs" in found.text
    assert [problem.partition(":")[0] for problem in found.problems] == [str(own)]
    Path(note.path).write_text("- and so on\n" * LIMIT)
    found = files.text(project)
    assert [problem.partition(":")[0] for problem in found.problems] == [str(own), note.path]
    assert len(found.text.encode()) < LIMIT + 600


def test_a_users_file_that_cannot_be_read_does_not_refuse_a_note_of_the_project(
    files: MemoryFiles, project: str, tmp_path: Path
) -> None:
    (tmp_path / "config" / "MEMORY.md").mkdir(parents=True)
    note = files.add(project, "use tabs", "project", NOW)
    assert Path(note.path).read_text().endswith("- use tabs\n")


def test_notes_that_are_added_at_once_stay_within_the_limit(tmp_path: Path, project: str) -> None:
    places = WeftPaths(home=tmp_path / "data", user=tmp_path, config=tmp_path / "config")
    files = MemoryFiles(places, limit=600)
    path = Path(files.add(project, "first", "project", NOW).path)
    barrier = threading.Barrier(4)

    def add(number: int) -> None:
        barrier.wait()
        with contextlib.suppress(UsageError):
            files.add(project, f"{number}" * 250, "project", NOW)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.stat().st_size <= 600 + 100


@pytest.mark.parametrize("text", ["", " \n\t", "\x00\x1b", "x" * (LONGEST_NOTE + 1)])
def test_what_cannot_be_remembered_is_refused_and_writes_nothing(
    files: MemoryFiles, project: str, tmp_path: Path, text: str
) -> None:
    with pytest.raises(UsageError):
        files.add(project, text, "project", NOW)
    assert not (tmp_path / "data" / "memory").exists()


def test_an_editor_does_not_lose_what_was_remembered_meanwhile(
    files: MemoryFiles, project: str
) -> None:
    files.add(project, "use tabs", "project", NOW)
    before = files.source(project, "project")
    files.add(project, "meanwhile", "project", NOW)
    files.rewrite(project, "project", NOW, before=before, after="- use spaces\n")
    assert texts(files, project) == ["use spaces", "meanwhile"]
    assert files.rewrite(project, "project", NOW, before=before, after=before) is None


def test_an_editor_keeps_the_ends_of_lines_of_a_file(files: MemoryFiles, project: str) -> None:
    path = Path(files.add(project, "use tabs", "project", NOW).path)
    path.write_bytes(b"- use tabs\r\n")
    before = files.source(project, "project")
    path.write_bytes(b"- use tabs\r\n- meanwhile\r\n")
    files.rewrite(project, "project", NOW, before=before, after="- a\r\n- b\r\n")
    assert path.read_bytes() == b"- a\r\n- b\r\n- meanwhile\r\n"


def test_an_editor_does_not_bring_back_what_was_forgotten_meanwhile(
    files: MemoryFiles, project: str
) -> None:
    files.add(project, "use tabs", "project", NOW)
    secret = files.add(project, "the door code\nis 1234", "project", NOW)
    before = files.source(project, "project")
    files.remove(project, secret.id)
    files.rewrite(project, "project", NOW, before=before, after=f"{before}- new\n")
    assert texts(files, project) == ["use tabs", "new"]


def test_many_at_once_lose_nothing(files: MemoryFiles, project: str) -> None:
    files.add(project, "first", "project", NOW)
    threads = [
        threading.Thread(target=files.add, args=(project, f"note {n}", "project", NOW))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(texts(files, project)) == {"first", *(f"note {n}" for n in range(4))}


# --- whose memory it is ----------------------------------------------------------------------


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.mark.process
def test_a_repository_has_one_memory_in_all_its_folders_and_worktrees(
    files: MemoryFiles, tmp_path: Path
) -> None:
    top = tmp_path / "repo"
    (top / "a" / "b").mkdir(parents=True)
    git(top, "init", "-q")
    git(top, "commit", "-q", "--allow-empty", "-m", "x")
    git(top, "worktree", "add", "-q", str(tmp_path / "linked"))
    files.add(str(top / "a"), "use tabs", "project", NOW)
    for folder in (top, top / "a" / "b", tmp_path / "linked"):
        assert texts(files, str(folder)) == ["use tabs"]


@pytest.mark.process
def test_the_worktrees_of_a_bare_clone_have_one_memory(files: MemoryFiles, tmp_path: Path) -> None:
    bare = tmp_path / "repo.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(bare))
    (tmp_path / "first").mkdir()
    git(tmp_path, "clone", "-q", str(bare), "first")
    git(tmp_path / "first", "commit", "-q", "--allow-empty", "-m", "x")
    git(tmp_path / "first", "push", "-q", "origin", "HEAD:main")
    for name in ("one", "two"):
        git(bare, "worktree", "add", "-q", "--detach", str(tmp_path / name), "main")
    files.add(str(tmp_path / "one"), "use tabs", "project", NOW)
    assert texts(files, str(tmp_path / "two")) == ["use tabs"]
    assert texts(files, str(tmp_path / "first")) == []


def test_a_folder_cannot_claim_the_memory_of_another(files: MemoryFiles, tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    (mine / ".git" / "worktrees" / "x").mkdir(parents=True)
    for name, text in (("HEAD", "ref: x"), ("commondir", "../.."), ("gitdir", "/elsewhere/.git")):
        (mine / ".git" / "worktrees" / "x" / name).write_text(text)
    (mine / ".git" / "HEAD").write_text("ref: refs/heads/main")
    theirs.mkdir()
    (theirs / ".git").write_text(f"gitdir: {mine}/.git/worktrees/x\n")
    files.add(str(mine), "the door code is 1234", "project", NOW)
    assert texts(files, str(mine))
    assert memory_root(str(theirs)) == str(theirs)
    assert texts(files, str(theirs)) == []


def test_a_folder_that_was_moved_keeps_its_memory(
    files: MemoryFiles, project: str, tmp_path: Path
) -> None:
    files.add(project, "use tabs", "project", NOW)
    moved = tmp_path / "moved"
    Path(project).rename(moved)
    assert texts(files_in(tmp_path), str(moved)) == ["use tabs"]


# Few examples: each note is made durable on the disk.
@settings(max_examples=12)
@given(notes=st.lists(st.text(min_size=1, max_size=60), max_size=6))
def test_whatever_is_added_is_there_and_can_be_forgotten(
    notes: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = tmp_path_factory.mktemp("memory")
    (base / "p").mkdir()
    files, project = files_in(base), str(base / "p")
    kept = {}
    for text in notes:
        try:
            note = files.add(project, text, "project", NOW)
        except UsageError:
            continue  # nothing in it can be printed
        kept[note.id] = note
    assert {note.id: note for note in files.notes(project)} == kept
    for note_id in kept:
        files.remove(project, note_id)
    assert files.notes(project) == []
    assert files.text(project).text == ""
