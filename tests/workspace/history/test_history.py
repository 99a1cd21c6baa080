"""What commands changed: found by the kernel's events or by looking everywhere, with what was there
before.
"""

from __future__ import annotations

import hashlib
import os
import random
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.file_tree import TreeEntry, run_script, tree
from weft.workspace.base import ChangedFile
from weft.workspace.history import index as index_module
from weft.workspace.history.history import ChangeSet, FileHistory, HistoryLimits, WatchedRun

pytestmark = pytest.mark.process


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a file, a folder, a link and something ignored."""
    root = tmp_path / "project"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "build").mkdir()
    (root / "a.txt").write_text("one\n")
    (root / "src" / "b.txt").write_text("two\n")
    (root / "src" / "deep" / "c.txt").write_text("three\n")
    (root / "build" / "out").write_text("made\n")
    (root / ".gitignore").write_text("build/\n*.tmp\n")
    (root / "link").symlink_to("a.txt")
    return root


@pytest.fixture
def history(root: Path) -> Iterator[FileHistory]:
    found = FileHistory(str(root))
    yield found
    found.close()


def around(history: FileHistory, script: str) -> ChangeSet:
    """Run a script as a command, and say what it changed."""
    run = WatchedRun()
    history.begin(run)
    run_script(Path(history.root), script)
    return history.end(run)


def told(changes: ChangeSet) -> dict[str, str]:
    return {change.path: change.action for change in changes.changes}


def change(changes: ChangeSet, path: str) -> ChangedFile:
    return next(each for each in changes.changes if each.path == path)


def test_a_command_that_changes_nothing_has_changed_nothing(history: FileHistory) -> None:
    assert around(history, "cat a.txt; ls -R") == ChangeSet()
    if history.watch_fd is None:
        pytest.skip("the kernel has no queue left for this user")
    assert history.begin_quickly(run := WatchedRun()), "nothing happened, so nobody has to look"
    assert history.end_quickly(run) == ChangeSet()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo more >> a.txt", {"a.txt": "modified"}),
        ("sed -i s/one/1/ a.txt", {"a.txt": "modified"}),
        ("chmod 600 a.txt", {"a.txt": "modified"}),
        ("rm a.txt", {"a.txt": "deleted"}),
        ("mv a.txt z.txt", {"a.txt": "deleted", "z.txt": "created"}),
        ("mv a.txt src/b.txt", {"a.txt": "deleted", "src/b.txt": "modified"}),
        ("touch new", {"new": "created"}),
        ("touch a.txt", {}),
        ("cp a.txt x; rm x", {}),
        ("rm a.txt; printf 'one\\n' > a.txt", {}),
        ("rm a.txt; echo other > a.txt", {"a.txt": "modified"}),
        ("ln -sfn src link", {"link": "modified"}),
        ("ln a.txt hard", {"hard": "created"}),
        ("rm link", {"link": "deleted"}),
        ("mkdir -p x/y; echo 1 > x/y/z", {"x": "created", "x/y": "created", "x/y/z": "created"}),
        ("chmod 700 src", {"src": "modified"}),
        ("rm -r src/deep", {"src/deep": "deleted", "src/deep/c.txt": "deleted"}),
        (
            "mv src/deep deep",
            {
                "src/deep": "deleted",
                "src/deep/c.txt": "deleted",
                "deep": "created",
                "deep/c.txt": "created",
            },
        ),
        ("rm a.txt; mkdir a.txt", {"a.txt": "modified"}),
        (
            "rm -r src/deep; ln -s /etc src/deep",
            {"src/deep": "modified", "src/deep/c.txt": "deleted"},
        ),
        ("echo x > build/out; touch t.tmp; mkdir .git; touch .git/x", {}),
    ],
)
@pytest.mark.parametrize("way", ["events", "looking"])
def test_every_kind_of_change_is_named(
    history: FileHistory, script: str, expected: dict[str, str], way: str
) -> None:
    run = WatchedRun()
    history.begin(run)
    run_script(Path(history.root), script)
    if way == "looking":
        history.lose_track()
    assert told(history.end(run)) == expected


def test_what_was_there_before_is_handed_on_with_its_hash_and_mode(history: FileHistory) -> None:
    found = change(around(history, "echo more >> a.txt; chmod 640 a.txt"), "a.txt")
    assert found.data_before == b"one\n"
    assert found.before == hashlib.sha256(b"one\n").hexdigest()
    assert found.after == hashlib.sha256(b"one\nmore\n").hexdigest()
    assert stat.S_IMODE(found.mode_after) == 0o640 != stat.S_IMODE(found.mode_before)
    link = change(around(history, "rm link"), "link")
    assert (link.data_before, stat.S_ISLNK(link.mode_before)) == (b"a.txt", True)


def test_what_happened_between_two_commands_belongs_to_neither(
    history: FileHistory, root: Path
) -> None:
    around(history, "true")
    (root / "a.txt").write_text("by hand\n")
    (root / "src" / "mine").write_text("by hand\n")
    changes = around(history, "echo more >> a.txt")
    assert told(changes) == {"a.txt": "modified"}
    assert change(changes, "a.txt").data_before == b"by hand\n"


def test_what_the_door_writes_while_a_command_runs_is_not_the_commands(
    history: FileHistory, root: Path
) -> None:
    run = WatchedRun()
    history.begin(run)
    (root / "a.txt").write_text("ours\n")
    history.refresh("a.txt")
    (root / "made").mkdir()
    (root / "made" / "x").write_text("ours\n")
    history.refresh("made/x")
    run_script(root, "echo theirs > src/b.txt")
    assert told(history.end(run)) == {"src/b.txt": "modified"}


def test_what_two_commands_at_once_changed_is_reported_to_both_as_uncertain(
    history: FileHistory, root: Path
) -> None:
    one, other = WatchedRun(), WatchedRun()
    history.begin(one)
    run_script(root, "echo 1 > a.txt")
    history.begin(other)
    run_script(root, "echo 2 > src/b.txt")
    first = history.end(one)
    run_script(root, "echo 3 > src/deep/c.txt")
    second = history.end(other)
    assert {each.path: each.is_certain for each in first.changes} == {
        "a.txt": True,
        "src/b.txt": False,
    }
    assert {each.path: each.is_certain for each in second.changes} == {
        "src/b.txt": False,
        "src/deep/c.txt": True,
    }


def test_a_command_that_was_given_up_leaves_nothing_behind(
    history: FileHistory, root: Path
) -> None:
    gone = WatchedRun()
    history.begin(gone)
    gone.void()
    changes = around(history, "echo 1 > a.txt")
    assert [each.is_certain for each in changes.changes] == [True]


def test_a_folder_that_takes_the_place_of_another_is_still_watched(history: FileHistory) -> None:
    around(history, "mv src old; mkdir src; echo 1 > src/new")
    assert told(around(history, "echo 2 > src/new")) == {"src/new": "modified"}
    assert told(around(history, "echo 2 > old/b.txt")) == {"old/b.txt": "modified"}
    around(history, "rm -r src; mkdir -p src/deep; echo 1 > src/deep/x")
    assert told(around(history, "echo 3 > src/deep/x")) == {"src/deep/x": "modified"}


@pytest.mark.parametrize(
    ("script", "moved"),
    [("mv src/deep aaa", "aaa/c.txt"), ("mkdir zzz; mv src/deep zzz/", "zzz/deep/c.txt")],
    ids=["seen before it is missed", "missed before it is seen"],
)
def test_a_folder_that_was_moved_is_still_watched(
    history: FileHistory, script: str, moved: str
) -> None:
    """The kernel's watch moves with the folder, so the old name must not take it away."""
    around(history, script)
    assert told(around(history, f"echo more >> {moved}")) == {moved: "modified"}


def test_a_write_through_one_name_is_seen_under_all_names(history: FileHistory, root: Path) -> None:
    around(history, "true")
    os.link(root / "a.txt", root / "src" / "before")
    around(history, "true")
    expected = {"a.txt": "modified", "src/before": "modified"}
    assert told(around(history, "echo 1 > a.txt")) == expected
    assert told(around(history, "echo 2 > src/before")) == expected
    assert told(around(history, "ln a.txt third; echo 3 > third")) == expected | {
        "third": "created"
    }
    assert told(around(history, "mv third src/deep; rm src/before")) == {
        "third": "deleted",
        "src/deep/third": "created",
        "src/before": "deleted",
    }
    assert told(around(history, "echo 4 > src/deep/third")) == {
        "a.txt": "modified",
        "src/deep/third": "modified",
    }
    assert told(around(history, "sed -i s/4/5/ a.txt")) == {"a.txt": "modified"}


def test_more_events_than_the_kernel_holds_lose_nothing(history: FileHistory, root: Path) -> None:
    run = WatchedRun()
    history.begin(run)
    with (
        (root / "src" / "b.txt").open("wb", buffering=0) as one,
        (root / "noise").open("wb") as two,
    ):
        for _ in range(10_000):  # two files in turn, so that the kernel cannot fold equal events
            one.write(b"x")
            two.write(b"y")
            two.flush()
    (root / "a.txt").unlink()
    assert told(history.end(run)) == {
        "a.txt": "deleted",
        "noise": "created",
        "src/b.txt": "modified",
    }
    assert told(around(history, "rm noise")) == {"noise": "deleted"}


def test_where_nothing_can_be_watched_everything_is_looked_at(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: object, folder: str) -> int:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("weft.workspace.history.inotify.InotifyWatcher.add", refuse)
    history = FileHistory(str(root))
    assert told(around(history, "echo 1 > a.txt; mkdir n; echo 2 > n/x")) == {
        "a.txt": "modified",
        "n": "created",
        "n/x": "created",
    }
    assert history.watch_fd is None
    monkeypatch.undo()
    history._tried_to_watch = float("-inf")
    assert told(around(history, "echo 3 > n/x")) == {"n/x": "modified"}
    assert told(around(history, "echo 4 > n/x")) == {"n/x": "modified"}
    history.close()


def test_a_change_within_one_tick_of_the_clock_is_not_missed_by_looking(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.workspace.history.history._watcher", lambda: None)
    history = FileHistory(str(root))
    for number in range(20):
        (root / "a.txt").write_text(f"{number:03}")
        run = WatchedRun()
        history.begin(run)
        before = os.stat(root / "a.txt")
        (root / "a.txt").write_text(f"{number + 500:03}")
        os.utime(root / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert told(history.end(run)) == {"a.txt": "modified"}
    history.close()


def test_what_is_too_large_or_no_file_is_named_without_its_content(root: Path) -> None:
    (root / "big").write_bytes(b"x" * 5_000)
    history = FileHistory(str(root), limits=HistoryLimits(max_file=4_096))
    changes = around(history, "echo more >> big; mkfifo pipe; echo 1 > a.txt")
    big = change(changes, "big")
    assert (big.missing, big.before, big.data_before) == ("too large", None, None)
    assert change(changes, "pipe").action == "created"
    assert change(changes, "a.txt").missing == ""
    gone = change(around(history, "rm pipe"), "pipe")
    assert gone.missing == "not a regular file"
    history.close()


def test_what_does_not_fit_the_quota_is_named_and_the_rest_is_kept(root: Path) -> None:
    for number in range(20):
        (root / f"f{number:02}").write_bytes(os.urandom(1_000))
    history = FileHistory(str(root), limits=HistoryLimits(quota=30_000))
    changes = around(history, "for f in f*; do echo x >> $f; done")
    missing = [each.missing for each in changes.changes]
    assert 0 < missing.count("quota") < len(missing) == 20
    assert set(missing) == {"", "quota"}
    history.close()


def test_changing_the_same_file_for_ever_does_not_fill_the_quota(root: Path) -> None:
    history = FileHistory(str(root), limits=HistoryLimits(quota=200_000))
    for number in range(60):
        found = change(
            around(history, f"head -c 5000 /dev/zero | tr '\\0' {number % 10} > a.txt"), "a.txt"
        )
        assert found.missing == ""
    assert history._pack is not None
    assert history._pack.size <= 100_000
    history.close()


def test_what_was_moved_in_from_outside_the_watch_is_uncertain(
    history: FileHistory, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "precious").write_text("the only copy")
    around(history, "true")
    run = WatchedRun()
    history.begin(run)
    run.began += 1_000_000_000  # the files above are a second old
    run_script(
        root, "mv build/out moved; mv ../precious a.txt; mv src/b.txt b2; echo x >> b2; ln b2 b3"
    )
    found = history.end(run)
    assert {each.path: each.is_certain for each in found.changes} == {
        "a.txt": False,
        "b2": True,
        "b3": True,
        "moved": False,
        "src/b.txt": True,
    }


def test_a_file_that_an_ignore_file_gives_free_was_not_made_by_the_command(
    history: FileHistory, root: Path
) -> None:
    around(history, "true")
    changes = around(history, "echo '*.tmp' > .gitignore")
    assert told(changes) == {".gitignore": "modified"}
    assert told(around(history, "echo 1 > build/out; rm -r build")) == {
        "build": "deleted",
        "build/out": "deleted",
    }
    assert told(around(history, "echo 'src/' > .gitignore; rm a.txt")) == {
        ".gitignore": "modified",
        "a.txt": "deleted",
    }
    assert told(around(history, "echo 1 > src/b.txt")) == {}
    assert history.left_out()["src/"] == "ignored"


def test_what_is_left_out_is_named(root: Path) -> None:
    (root / "weft-home").mkdir()
    (root / os.fsdecode(b"caf\xe9")).write_text("x")
    subprocess.run(["git", "init", "-q", root], check=True)
    history = FileHistory(str(root), skip=[str(root / "weft-home")])
    around(history, "echo x > weft-home/db")
    assert history.left_out() == {
        ".git/": "ignored",
        "build/": "ignored",
        "weft-home/": "Weft's own",
        "caf\ufffd": "its name is not text",
    }
    history.close()


def test_a_huge_folder_is_left_out_and_takes_no_room_from_the_others(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "data").mkdir()
    for number in range(40):
        (root / "data" / f"{number}").write_text("x")
    monkeypatch.setattr(index_module, "MAX_FILES", 30)
    monkeypatch.setattr(index_module, "_LARGE_FOLDER", 20)
    history = FileHistory(str(root))
    changes = around(history, "echo 1 > src/deep/c.txt; echo 2 > data/1; touch data/new")
    assert told(changes) == {"src/deep/c.txt": "modified"}
    assert history.left_out()["data/"] == "too many files"
    assert told(around(history, "rm data/2")) == {}
    assert change(around(history, "rm -r data"), "data").action == "deleted"
    history.close()


def test_folders_nested_deeper_than_calls_can_be_are_no_trap(history: FileHistory) -> None:
    made = around(history, "mkdir -p $(printf 'd/%.0s' $(seq 1500))")
    assert len(made.changes) == 1500
    gone = around(history, "rm -r d")
    assert {each.action for each in gone.changes} == {"deleted"}
    assert len(gone.changes) == 1500


def test_submodules_and_links_to_folders_are_no_trap(root: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", root / "sub"], check=True)
    (root / "sub" / "m.txt").write_text("m")
    (root / "away").symlink_to(tmp_path)
    history = FileHistory(str(root))
    changes = around(history, "echo 2 > sub/m.txt; touch sub/.git/x; echo 1 > ../outside")
    assert told(changes) == {"sub/m.txt": "modified"}
    history.close()


# --- the next process ------------------------------------------------------------------------


def test_what_is_known_outlives_the_process(root: Path, tmp_path: Path) -> None:
    pack = str(tmp_path / "pack")
    first = FileHistory(str(root), pack=pack)
    around(first, "echo 2 > a.txt")
    first.close()
    size = os.stat(pack).st_size
    (root / "src" / "b.txt").write_text("by hand\n")
    second = FileHistory(str(root), pack=pack)
    changes = around(second, "echo 3 > a.txt; echo 3 > src/b.txt")
    assert change(changes, "a.txt").data_before == b"2\n"
    assert change(changes, "src/b.txt").data_before == b"by hand\n"
    second.close()
    assert os.stat(pack).st_size < size + 2_000, "only what changed was read again"


def test_what_a_killed_process_command_changed_is_reported_once_as_uncertain(
    root: Path, tmp_path: Path
) -> None:
    pack = str(tmp_path / "pack")
    script = (
        "import os, sys\n"
        "from weft.workspace.history.history import FileHistory, WatchedRun\n"
        "history = FileHistory(sys.argv[1], pack=sys.argv[2]); history.begin(WatchedRun('mine'))\n"
        "open(sys.argv[1] + '/a.txt', 'w').write('half'); os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(root), pack], check=False)
    assert done.returncode == 9
    history = FileHistory(str(root), pack=pack)
    found = history.interrupted(WatchedRun(), ["mine", "other"])
    assert list(found) == ["mine"]
    assert [(each.path, each.data_before, each.is_certain) for each in found["mine"].changes] == [
        ("a.txt", b"one\n", False)
    ]
    assert history.interrupted(WatchedRun(), ["mine"]) == {}
    assert told(around(history, "echo 1 > a.txt")) == {"a.txt": "modified"}
    history.close()


def test_nothing_is_reported_of_a_process_that_died_between_two_commands(
    root: Path, tmp_path: Path
) -> None:
    pack = str(tmp_path / "pack")
    first = FileHistory(str(root), pack=pack)
    around(first, "true")
    (root / "a.txt").write_text("by hand")
    first.close()
    second = FileHistory(str(root), pack=pack)
    assert second.interrupted(WatchedRun(), [""]) == {}
    second.close()


@pytest.mark.parametrize("later", ["nothing", "another command", "another process"])
def test_what_a_command_changed_is_known_until_it_is_on_record(
    root: Path, tmp_path: Path, later: str
) -> None:
    pack = str(tmp_path / "pack")
    first = FileHistory(str(root), pack=pack)
    run = WatchedRun("mine")
    first.begin(run)
    run_script(root, "echo 2 > a.txt; rm -r src")
    told_once = first.end(run)
    if later == "another command":
        around(first, "echo 3 > a.txt")
    first.close()
    (root / "a.txt").write_text("by hand")
    if later == "another process":
        between = FileHistory(str(root), pack=pack)
        around(between, "echo 4 > a.txt")
        between.close()
    second = FileHistory(str(root), pack=pack)
    assert second.interrupted(WatchedRun(), ["mine"]) == {"mine": told_once}
    assert all(each.is_certain for each in told_once.changes)
    second.close()


def test_what_two_processes_died_with_is_reported_from_the_first_on(
    root: Path, tmp_path: Path
) -> None:
    pack = str(tmp_path / "pack")
    first = FileHistory(str(root), pack=pack)
    first.begin(WatchedRun("mine"))
    run_script(root, "echo 2 > a.txt")
    first.close()
    second = FileHistory(str(root), pack=pack)
    around(second, "echo 3 > a.txt; touch new")
    second.close()
    third = FileHistory(str(root), pack=pack)
    found = third.interrupted(WatchedRun(), ["mine"])["mine"]
    assert {each.path: each.data_before for each in found.changes} == {
        "a.txt": b"one\n",
        "new": None,
    }
    third.close()


def test_a_second_process_at_the_same_time_has_a_file_of_its_own(
    root: Path, tmp_path: Path
) -> None:
    pack = str(tmp_path / "pack")
    first, second = FileHistory(str(root), pack=pack), FileHistory(str(root), pack=pack)
    around(first, "true")
    around(second, "true")
    packs = [each._pack for each in (first, second)]
    assert [pack.is_private for pack in packs if pack is not None] == [False, True]
    assert told(around(second, "echo 1 > a.txt")) == {"a.txt": "modified"}
    first.close()
    second.close()


def test_a_history_that_was_spoilt_begins_anew(root: Path, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    first = FileHistory(str(root), pack=str(pack))
    around(first, "true")
    first.close()
    whole = pack.read_bytes()
    for spoilt in (b"", b"nonsense" * 100, whole[:-7], whole[:40] + b"\0" * 400 + whole[440:]):
        pack.write_bytes(spoilt)
        history = FileHistory(str(root), pack=str(pack))
        found = change(around(history, "printf 'two\\n' > a.txt"), "a.txt")
        assert found.data_before == b"one\n"
        around(history, "printf 'one\\n' > a.txt")
        history.close()


# --- chance ----------------------------------------------------------------------------------

STEPS = (
    "echo {n} >> {f}",
    "echo {n} > {f}",
    "rm -f {f}",
    "mkdir -p {d}",
    "rm -rf {d}",
    "mv {f} {g}",
    "mv -T {d} {e}",
    "chmod {m} {f}",
    "chmod 7{o}5 {d}",
    "ln -sfn {f} {g}",
    "cp {f} {g}",
    "ln -f {f} {g}",
)


def some_script(dice: random.Random) -> str:
    folders = ["a", "b", "a/x", "b/y", "a/x/z"]
    files = [f"{folder}/{name}" for folder in [*folders, "."] for name in "pqr"]
    lines = []
    for _ in range(dice.randint(1, 6)):
        line = dice.choice(STEPS).format(
            n=dice.random(),
            f=dice.choice(files),
            g=dice.choice(files),
            d=dice.choice(folders),
            e=dice.choice(folders),
            m=dice.choice(["600", "644", "755"]),
            o=dice.choice("057"),
        )
        lines.append(f"{line} 2>/dev/null || true")
    return "\n".join(lines)


def as_told(before: dict[str, TreeEntry], changes: ChangeSet) -> dict[str, tuple[int, str]]:
    """The tree that one gets by applying what was told to what was there."""
    known = {path: (thing.mode, _hash(thing)) for path, thing in before.items()}
    for each in changes.changes:
        if each.action == "deleted":
            del known[each.path]
        else:
            known[each.path] = (each.mode_after, each.after or "")
    return known


def _hash(thing: TreeEntry) -> str:
    return "" if thing.content is None else hashlib.sha256(thing.content).hexdigest()


@pytest.mark.parametrize("seed", range(12))
def test_before_and_change_make_after_whatever_the_commands_do(
    seed: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    dice = random.Random(seed)
    pack = str(tmp_path_factory.mktemp("pack") / "pack")
    history = FileHistory(str(tmp_path), pack=pack)
    for _ in range(12):
        if dice.random() < 0.3:
            # Another process, which takes a snapshot before its first command.
            history.close()
            run_script(tmp_path, some_script(dice))
            history = FileHistory(str(tmp_path), pack=pack)
            history.tree(WatchedRun())
        before = tree(tmp_path)
        run = WatchedRun()
        history.begin(run)
        run_script(tmp_path, some_script(dice))
        if dice.random() < 0.2:
            history.lose_track()
        changes = history.end(run)
        after = {path: (thing.mode, _hash(thing)) for path, thing in tree(tmp_path).items()}
        assert as_told(before, changes) == after
        for each in changes.changes:
            thing = before.get(each.path)
            assert (thing is None) == (each.action == "created")
            if thing is not None and thing.content is not None:
                assert each.data_before is not None
                assert hashlib.sha256(each.data_before).hexdigest() == _hash(thing)
    history.close()


# --- files that are only looked at ---------------------------------------------------------------


def test_a_look_at_the_tree_copies_nothing_and_the_first_command_copies_all(
    root: Path, tmp_path: Path
) -> None:
    (root / "big.txt").write_text("x" * 100_000)
    pack = tmp_path / "pack"
    history = FileHistory(str(root), pack=str(pack))
    history.tree(WatchedRun())
    history.close()
    assert pack.stat().st_size < 10_000
    # Another process goes on with what is known, and a command must find its pre-images.
    history = FileHistory(str(root), pack=str(pack))
    tree_hash = history.tree(WatchedRun()).digest
    assert not history.begin_quickly(WatchedRun()), "it has to copy first"
    changes = around(history, "echo 2 > big.txt; rm a.txt")
    assert change(changes, "big.txt").data_before == b"x" * 100_000
    assert change(changes, "a.txt").data_before == b"one\n"
    assert pack.stat().st_size > 100_000
    run_script(root, f"printf 'one\\n' > a.txt; printf '{'x' * 100_000}' > big.txt")
    assert history.tree(WatchedRun()).digest == tree_hash
    history.close()


def test_what_changed_before_the_copies_were_made_is_not_the_commands(root: Path) -> None:
    history = FileHistory(str(root))
    history.tree(WatchedRun())
    (root / "a.txt").write_text("the user's\n")
    changes = around(history, "echo 2 > src/b.txt; echo 3 >> a.txt")
    assert change(changes, "a.txt").data_before == b"the user's\n"
    assert change(changes, "src/b.txt").data_before == b"two\n"
    history.close()


def test_a_file_that_was_only_looked_at_is_read_where_it_is_still_that_one(root: Path) -> None:
    history = FileHistory(str(root))
    history.tree(WatchedRun())
    one, two = (hashlib.sha256(data).hexdigest() for data in (b"one\n", b"two\n"))
    (root / "src" / "b.txt").write_text("other\n")
    wanted = [("a.txt", one), ("src/b.txt", two)]
    assert history.contents(wanted, 1_000) == ({one: b"one\n"}, {"src/b.txt"})
    assert history.contents(wanted, 2) == ({}, set())
    # From the first look on, what changes is kept as it was found.
    history.tree(WatchedRun())
    (root / "src" / "b.txt").write_text("later\n")
    other = hashlib.sha256(b"other\n").hexdigest()
    assert history.contents([("src/b.txt", other)], 1_000).by_hash == {other: b"other\n"}
    history.close()


def test_a_history_of_before_goes_on(root: Path, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    history = FileHistory(str(root), pack=str(pack))
    around(history, "true")
    history.close()
    data = pack.read_bytes()
    assert data.startswith(b"weft pre-images 2\n")
    pack.write_bytes(data.replace(b"weft pre-images 2\n", b"weft pre-images 1\n", 1))
    history = FileHistory(str(root), pack=str(pack))
    assert change(around(history, "rm a.txt"), "a.txt").data_before == b"one\n"
    history.close()
    # A program of before must not take files for copied that are not.
    assert pack.read_bytes().startswith(b"weft pre-images 2\n")
