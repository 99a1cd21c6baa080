"""Small files of a project: beneath the repository, without blocking, bounded, of known owners."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import msgspec
import pytest

from tests.support.example_count import examples
from weft.errors import UsageError
from weft.workspace import (
    SourceFolder,
    is_there,
    list_folder,
    printable_path,
    project_folders,
    read_small_file,
    read_small_text,
    user_folder,
)
from weft.workspace.safe_read import MOST_ENTRIES, MOST_LINKS, believed_owners

LIMIT = 1024


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "repository" / "package").mkdir()
    (tmp_path / "outside").write_text("secret")
    return tmp_path / "repository"


def text_in(folder: SourceFolder, name: str = "file") -> str | None:
    found = read_small_text(folder, name, LIMIT)
    return None if found is None else found.text


# --- which folders --------------------------------------------------------------------------


def test_the_folders_of_a_project_go_up_to_the_repositorys_root(repository: Path) -> None:
    folders = project_folders(repository / "package")
    assert [folder.path for folder in folders] == [str(repository / "package"), str(repository)]
    assert {folder.root for folder in folders} == {str(repository)}


def test_outside_a_repository_only_the_project_counts(tmp_path: Path) -> None:
    [folder] = project_folders(tmp_path)
    assert (folder.path, folder.root) == (str(tmp_path), str(tmp_path))


@pytest.mark.parametrize(
    ("euid", "project_owner", "believed"),
    [
        (1000, 1000, {0, 1000}),
        (1000, 1001, {0, 1000}),
        (0, 0, {0}),
        (0, 1001, {0, 1001}),
        (0, None, {0}),
    ],
)
def test_files_of_us_and_root_count_and_for_root_those_of_the_projects_owner(
    euid: int, project_owner: int | None, believed: set[int]
) -> None:
    assert believed_owners(euid, project_owner) == believed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_that_another_user_made_of_a_shared_folder_is_none_of_ours(
    tmp_path: Path,
) -> None:
    project = tmp_path / "shared" / "ours"
    project.mkdir(parents=True)
    (tmp_path / "shared" / ".git").mkdir()
    assert len(project_folders(project)) == 2
    os.chown(tmp_path / "shared" / ".git", 12345, 12345)
    assert [folder.path for folder in project_folders(project)] == [str(project)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_in_a_container_reads_a_checkout_of_another_user(repository: Path) -> None:
    (repository / "file").write_text("theirs")
    for path in (repository, repository / ".git", repository / "package", repository / "file"):
        os.chown(path, 12345, 12345)
    assert text_in(project_folders(repository / "package")[1]) == "theirs"
    os.chown(repository / "file", 54321, 54321)
    with pytest.raises(UsageError, match=r"another user \(uid 54321\)"):
        text_in(project_folders(repository / "package")[1])


def test_a_file_of_another_user_is_refused(repository: Path) -> None:
    (repository / "file").write_text("ours")
    folder = project_folders(repository)[0]
    assert text_in(folder) == "ours"
    strangers = msgspec.structs.replace(folder, owners=frozenset({os.geteuid() + 1}))
    with pytest.raises(UsageError, match="file: it belongs to another user"):
        text_in(strangers)


# --- links ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "other",
        "./package/../other",
        "package/link",
        "{root}/other",
        "{root}/package/../other",
        "package/up/other",
    ],
)
def test_a_link_that_stays_inside_is_followed(repository: Path, target: str) -> None:
    (repository / "other").write_text("inside")
    (repository / "package" / "link").symlink_to("../other")
    (repository / "package" / "up").symlink_to("..")
    (repository / "file").symlink_to(target.format(root=repository))
    assert text_in(project_folders(repository)[0]) == "inside"


def test_a_project_below_the_root_may_link_to_anything_in_the_repository(repository: Path) -> None:
    (repository / "shared" / "skills").mkdir(parents=True)
    (repository / "shared" / "skills" / "file").write_text("inside")
    (repository / "package" / "file").symlink_to("../shared/skills/file")
    (repository / "package" / "skills").symlink_to("../shared/skills")
    folder = project_folders(repository / "package")[0]
    assert text_in(folder) == "inside"
    assert text_in(folder.below("skills")) == "inside"
    assert [entry.name for entry in list_folder(folder.below("skills")).entries] == ["file"]


@pytest.mark.parametrize(
    "target",
    [
        "../outside",
        "{root}/../outside",
        "package/../../outside",
        "/etc/passwd",
        "{root}_evil/file",
        "/proc/self/cwd/../outside",
        "/proc/self/root/etc/passwd",
        "..",
        "/",
        "//etc/passwd",
        "package/up/../../outside",
    ],
)
def test_a_link_that_leads_out_is_refused(repository: Path, target: str) -> None:
    (repository / "package" / "up").symlink_to("..")
    (repository / "file").symlink_to(target.format(root=repository))
    with pytest.raises(UsageError) as refused:
        text_in(project_folders(repository)[0])
    assert str(refused.value) == (
        f"{repository}/file: it is a symbolic link that leads out of {repository}, "
        "and nothing outside is read"
    )


def test_the_sentence_names_the_link_that_leads_out_and_not_what_would_lie_behind_it(
    repository: Path, tmp_path: Path
) -> None:
    (tmp_path / "skills").mkdir()
    (repository / ".agents").symlink_to(tmp_path)
    folder = project_folders(repository)[0].below(".agents/skills")
    for look in (lambda: list_folder(folder), lambda: read_small_file(folder, "x", LIMIT)):
        with pytest.raises(UsageError, match=f"^{repository}/.agents: it is a symbolic link"):
            look()
    assert is_there(folder), "or else no sentence would tell of it"


@pytest.mark.parametrize(("links", "is_read"), [(MOST_LINKS, True), (MOST_LINKS + 1, False)])
def test_as_many_links_are_followed_as_linux_follows(
    repository: Path, links: int, is_read: bool
) -> None:
    (repository / "link0").write_text("inside")
    for number in range(1, links):
        (repository / f"link{number}").symlink_to(f"link{number - 1}")
    (repository / "file").symlink_to(f"link{links - 1}")
    folder = project_folders(repository)[0]
    if is_read:
        assert text_in(folder) == (repository / "file").read_text() == "inside"
        return
    with pytest.raises(UsageError, match="in circles, or are too many"):
        text_in(folder)


def test_a_link_to_nothing_is_no_file(repository: Path) -> None:
    (repository / "file").symlink_to("gone")
    assert text_in(project_folders(repository)[0]) is None


def test_links_in_the_users_own_folders_may_lead_anywhere(tmp_path: Path) -> None:
    (tmp_path / "dotfiles" / "skills").mkdir(parents=True)
    (tmp_path / "dotfiles" / "file").write_text("mine")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "file").symlink_to(tmp_path / "dotfiles" / "file")
    (tmp_path / "config" / "skills").symlink_to(tmp_path / "dotfiles" / "skills")
    folder = user_folder(tmp_path / "config")
    assert text_in(folder) == "mine"
    assert is_there(folder.below("skills"))


def test_a_link_that_is_swapped_all_the_time_never_leads_out(repository: Path) -> None:
    (repository / "other").write_text("inside")
    stop = threading.Event()

    def swap() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            new = repository / "new"
            new.symlink_to("../outside" if number % 2 else "other")
            os.replace(new, repository / "file")

    (repository / "file").symlink_to("other")
    folder = project_folders(repository)[0]
    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: set[str | None] = set()
    try:
        for number in range(100_000):
            try:
                seen.add(text_in(folder))
            except UsageError:
                seen.add("refused")
            if number > examples(3_000) and len(seen) > 1:
                break
    finally:
        stop.set()
        swapper.join()
    assert seen == {"inside", "refused"}, "both were in flight, and nothing else was read"


# --- what is no small text ------------------------------------------------------------------


@pytest.mark.parametrize("whose", ["project", "user"])
def test_a_pipe_is_not_waited_for(repository: Path, whose: str) -> None:
    os.mkfifo(repository / "file")
    folder = project_folders(repository)[0] if whose == "project" else user_folder(repository)
    with pytest.raises(UsageError, match="file: it is a named pipe, not a regular file"):
        text_in(folder)


def test_a_device_of_the_users_own_is_no_file_either(tmp_path: Path) -> None:
    (tmp_path / "file").symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="file: it is a device, not a regular file"):
        text_in(user_folder(tmp_path))


def test_a_file_of_the_kernel_that_does_not_know_its_size_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "file").symlink_to("/proc/self/smaps")
    with pytest.raises(UsageError, match="file: it is larger than 1 KB"):
        text_in(user_folder(tmp_path))


@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT, LIMIT + 1, 10 * LIMIT])
def test_a_file_beyond_the_limit_is_refused_or_cut(repository: Path, size: int) -> None:
    (repository / "file").write_bytes(b"x" * size)
    folder = project_folders(repository)[0]
    cut = read_small_text(folder, "file", LIMIT, cut=True)
    assert cut is not None
    assert (len(cut.text), cut.is_cut) == (min(size, LIMIT), size > LIMIT)
    if size <= LIMIT:
        assert text_in(folder) == "x" * size
        return
    with pytest.raises(UsageError, match="file: it is larger than 1 KB"):
        text_in(folder)


@pytest.mark.parametrize("letter", ["ä", "€", "😀"])
@pytest.mark.parametrize("before", range(4))
def test_a_cut_leaves_no_half_of_a_letter(repository: Path, letter: str, before: int) -> None:
    (repository / "file").write_text("x" * before + letter * LIMIT, encoding="utf-8")
    cut = read_small_text(project_folders(repository)[0], "file", LIMIT, cut=True)
    assert cut is not None
    assert set(cut.text) <= {"x", letter}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (b"\xef\xbb\xbfa\r\nb\rc\n", "a\nb\nc\n"),
        (b"caf\xe9", "caf\ufffd"),
        ("naïve 日本".encode(), "naïve 日本"),
        (b"", ""),
    ],
)
def test_text_comes_with_plain_newlines_and_no_mark(
    repository: Path, written: bytes, read: str
) -> None:
    (repository / "file").write_bytes(written)
    assert text_in(project_folders(repository)[0]) == read


def test_what_cannot_be_opened_says_so(repository: Path) -> None:
    name = "x" * 300
    with pytest.raises(UsageError, match="it cannot be read: File name too long"):
        text_in(project_folders(repository)[0], name)


# --- names ----------------------------------------------------------------------------------


def test_names_that_cannot_be_printed_are_counted_and_left_out(repository: Path) -> None:
    folder = repository / "package"
    names = [b"good", b"two\nlines", b"\x1b[2Jclear", b"no \xff text", "\u202eodd".encode()]
    for name in names:
        (Path(os.fsdecode(bytes(folder) + b"/" + name))).touch()
    listing = list_folder(project_folders(folder)[0])
    assert [entry.name for entry in listing.entries] == ["good"]
    assert listing.problems == (f"{folder}: 4 of the names in it cannot be printed",)


def test_a_folder_without_end_is_looked_at_up_to_a_limit(repository: Path) -> None:
    folder = repository / "package"
    for number in range(MOST_ENTRIES + 10):
        os.mknod(folder / str(number))  # in half the time of an open and a close
    listing = list_folder(project_folders(folder)[0])
    assert len(listing.entries) == MOST_ENTRIES
    assert listing.problems == (f"{folder}: it holds more than 10,000 names",)


def test_a_path_in_a_sentence_is_one_line_of_bounded_length() -> None:
    assert printable_path("/a\n\x1b[31m\udcff\u202e/b") == "/a\\n\\x1b[31m\\udcff\\u202e/b"
    long = printable_path("/x" * 4000 + "/SKILL.md")
    assert len(long) < 250
    assert long.endswith("/x/SKILL.md")
