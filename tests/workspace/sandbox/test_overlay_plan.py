"""What an upper layer says, and how it becomes steps.

The layers here are made by the kernel, in a namespace of our own.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from weft import faults
from weft.workspace.sandbox import overlay_changes as overlay
from weft.workspace.sandbox.overlay_apply import OverlayApplier
from weft.workspace.sandbox.overlay_changes import TooMuch, changes
from weft.workspace.sandbox.overlay_plan import ApplyStep, plan, started_now
from weft.workspace.seen_versions import MOST_BYTES, MOST_OF_ONE, SeenVersions
from weft.workspace.writes.atomic_write import OURS
from weft.workspace.writes.rename_calls import exchange

pytestmark = pytest.mark.process


class Layers:
    """A project, and what scripts wrote over it."""

    def __init__(self, base: Path) -> None:
        self.project, self.upper, self.work = base / "project", base / "upper", base / "work"
        for folder in (self.project, self.upper, self.work):
            folder.mkdir()
        self.started = 0

    def write(self, script: str) -> None:
        """Run a script over the project, in an overlay of the kernel's."""
        self.started = started_now()
        options = f"lowerdir={self.project},upperdir={self.upper},workdir={self.work},userxattr"
        mounted = (
            f"mount -t overlay -o {options} overlay {self.project} && cd {self.project} && {script}"
        )
        done = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted],
            capture_output=True,
            text=True,
        )
        if "mount" in done.stderr or "unshare" in done.stderr:
            pytest.skip(f"no overlay can be made here: {done.stderr}")
        assert done.returncode == 0, done.stderr

    def found(self) -> dict[str, str]:
        return {change.path: change.kind for change in changes(str(self.upper))}

    def steps(self) -> list[tuple[str, str]]:
        return [
            (step.do, step.path) for step in plan(str(self.project), str(self.upper), self.started)
        ]


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    made = Layers(tmp_path)
    for name in ("a/one", "a/two", "b/deep/x", "c"):
        path = made.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{name}\n")
    return made


def test_everything_that_was_done_is_found_and_nothing_else(layers: Layers) -> None:
    layers.write("rm a/one; echo > new; ln -s c link; mkfifo pipe; chmod 600 c; rm -r b; mkdir b")
    assert layers.found() == {
        "a": "folder",
        "a/one": "gone",
        "b": "folder",
        "c": "file",
        "link": "link",
        "new": "file",
        "pipe": "special",
    }
    opaque = [change.path for change in changes(str(layers.upper)) if change.is_opaque]
    assert opaque == ["b"]


def test_a_removed_folder_becomes_a_step_for_each_thing_in_it(layers: Layers) -> None:
    layers.write("rm -r a b; mkdir -p b/deep; echo > b/deep/y")
    assert layers.steps() == [
        ("remove", "a/one"),
        ("remove", "a/two"),
        ("remove_folder", "a"),
        ("remove", "b/deep/x"),
        ("put", "b/deep/y"),
    ]


def test_what_was_only_looked_at_or_touched_changes_nothing(layers: Layers) -> None:
    layers.write("cat c > /dev/null; touch c; echo a/one > a/one")
    assert layers.steps() == [("touch", "a/one"), ("touch", "c")]


def test_a_mode_alone_is_changed_in_place(layers: Layers) -> None:
    before = (layers.project / "c").stat().st_ino
    layers.write("chmod 755 c a")
    steps = plan(str(layers.project), str(layers.upper), layers.started)
    applier = OverlayApplier(str(layers.project), str(layers.upper))
    outcome = applier.run(steps)
    applier.close()
    assert outcome.failed == []
    assert (layers.project / "c").stat().st_ino == before
    assert (layers.project / "c").stat().st_mode & 0o777 == 0o755


def test_what_changed_since_it_was_judged_is_left_alone(layers: Layers) -> None:
    layers.write("echo command > c; echo new > d; rm a/one")
    steps = plan(str(layers.project), str(layers.upper), layers.started)
    (layers.project / "c").write_text("person, just now\n")
    (layers.project / "d").write_text("person\n")
    (layers.project / "a/one").write_text("person too\n")
    applier = OverlayApplier(str(layers.project), str(layers.upper))
    outcome = applier.run(steps)
    applier.close()
    assert [step.path for step, _ in outcome.failed] == ["a/one", "c", "d"]
    assert (layers.project / "c").read_text() == "person, just now\n"
    assert (layers.project / "d").read_text() == "person\n"
    assert (layers.project / "a/one").read_text() == "person too\n"


def test_a_folder_that_became_a_link_is_not_followed(layers: Layers, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    layers.write("echo harm > a/new")
    steps = plan(str(layers.project), str(layers.upper), layers.started)
    shutil.rmtree(layers.project / "a")
    (layers.project / "a").symlink_to(outside)
    applier = OverlayApplier(str(layers.project), str(layers.upper))
    outcome = applier.run(steps)
    applier.close()
    assert len(outcome.failed) == 1
    assert not list(outside.iterdir())


def test_no_attribute_of_the_overlay_comes_along(layers: Layers) -> None:
    layers.write("echo more >> c; chmod 444 c")
    applier = OverlayApplier(str(layers.project), str(layers.upper))
    outcome = applier.run(plan(str(layers.project), str(layers.upper), layers.started))
    applier.close()
    assert outcome.failed == []
    assert [name for name in os.listxattr(layers.project / "c") if "overlay" in name] == []
    assert (layers.project / "c").stat().st_mode & 0o777 == 0o444


def test_too_much_is_refused_before_anything_is_done(
    layers: Layers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlay, "MOST", 3)
    layers.write("touch 1 2 3 4")
    with pytest.raises(TooMuch):
        layers.steps()


def test_another_disk_is_no_hindrance(layers: Layers) -> None:
    """The layer lies on another disk than the project: files are copied beside their place
    first.
    """
    elsewhere = Path("/dev/shm/weft-test-upper")
    shutil.rmtree(elsewhere, ignore_errors=True)
    if (
        not os.access("/dev/shm", os.W_OK)
        or os.stat("/dev/shm").st_dev == layers.project.stat().st_dev
    ):
        pytest.skip("there is no other disk")
    layers.write(
        "echo changed > c; echo new > d; ln -s c link; chmod 640 d; touch -d @1000000000 d"
    )
    shutil.copytree(layers.upper, elsewhere, symlinks=True)
    try:
        steps = plan(str(layers.project), str(elsewhere), layers.started)
        applier = OverlayApplier(str(layers.project), str(elsewhere))
        outcome = applier.run(steps)
        applier.close()
    finally:
        shutil.rmtree(elsewhere)
    assert outcome.failed == []
    assert (layers.project / "c").read_text() == "changed\n"
    assert (layers.project / "d").read_text() == "new\n"
    assert (layers.project / "d").stat().st_mode & 0o777 == 0o640
    assert (layers.project / "d").stat().st_mtime == 1000000000
    assert os.readlink(layers.project / "link") == "c"
    assert not [name for name in os.listdir(layers.project) if name.startswith(OURS)]


@pytest.mark.parametrize("disk", ["the same disk", "another disk"])
def test_what_another_program_writes_in_the_very_instant_stays(
    layers: Layers, disk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers.write("echo changed > c")
    if disk == "another disk":

        def refuse(folder: int, one: str, other: str) -> bool:
            if one.startswith("/"):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            return exchange(folder, one, other)

        monkeypatch.setattr("weft.workspace.writes.displaced_file.exchange", refuse)

    def change(name: str) -> None:
        (layers.project / "c").write_text("by hand\n")

    faults.arm("workspace.displaced.before_exchange", action=change)
    applier = OverlayApplier(str(layers.project), str(layers.upper))
    try:
        outcome = applier.run(plan(str(layers.project), str(layers.upper), layers.started))
    finally:
        applier.close()
        faults.disarm_all()
    assert [why for _, why in outcome.failed] == ["it was changed just now"]
    assert (layers.project / "c").read_text() == "by hand\n"
    assert not [name for name in os.listdir(layers.project) if name.startswith(OURS)]


def test_what_is_written_behind_the_last_look_at_a_removed_file_stays(
    layers: Layers, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers.write("rm c")
    look = OverlayApplier._check

    def check(self: OverlayApplier, step: ApplyStep, folder: int, leaf: str) -> None:
        look(self, step, folder, leaf)
        (layers.project / "c").write_text("by hand\n")

    monkeypatch.setattr(OverlayApplier, "_check", check)
    applier = OverlayApplier(str(layers.project), str(layers.upper))
    outcome = applier.run(plan(str(layers.project), str(layers.upper), layers.started))
    applier.close()
    assert [why for _, why in outcome.failed] == ["it was changed just now"]
    assert (layers.project / "c").read_text() == "by hand\n"
    assert not [name for name in os.listdir(layers.project) if name.startswith(OURS)]


def test_a_mode_that_is_set_in_the_very_instant_stays(layers: Layers) -> None:
    layers.write("echo changed > c")
    faults.arm(
        "workspace.displaced.before_exchange",
        action=lambda name: (layers.project / "c").chmod(0o750),
    )
    applier = OverlayApplier(str(layers.project), str(layers.upper))
    try:
        outcome = applier.run(plan(str(layers.project), str(layers.upper), layers.started))
    finally:
        applier.close()
        faults.disarm_all()
    assert [why for _, why in outcome.failed] == ["it was changed just now"]
    assert (layers.project / "c").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("disk", ["the same disk", "another disk"])
def test_what_is_displaced_when_the_disk_fails_stays_in_the_project(
    layers: Layers, disk: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the scratch folder, which is emptied."""
    layers.write("echo changed > c")
    exchanged: list[str] = []

    def fail_once_exchanged(folder: int, one: str, other: str) -> bool:
        if exchanged or (one.startswith("/") and disk == "another disk"):
            raise OSError(errno.EIO if exchanged else errno.EXDEV, "no")
        exchanged.append(one)
        return exchange(folder, one, other)

    monkeypatch.setattr("weft.workspace.writes.displaced_file.exchange", fail_once_exchanged)
    if disk == "another disk":
        link = os.link

        def refuse(src: str, *rest: Any, **more: Any) -> None:
            if src.startswith("/"):
                raise OSError(errno.EXDEV, "no")
            link(src, *rest, **more)

        monkeypatch.setattr("weft.workspace.sandbox.overlay_apply.os.link", refuse)

    def change(name: str) -> None:
        (layers.project / "c").write_text("by hand\n")

    faults.arm("workspace.displaced.before_exchange", action=change)
    applier = OverlayApplier(str(layers.project), str(layers.upper))
    try:
        outcome = applier.run(plan(str(layers.project), str(layers.upper), layers.started))
    finally:
        applier.close()
        faults.disarm_all()
    assert len(outcome.failed) == 1
    shutil.rmtree(layers.upper)
    there = [path.read_text() for path in layers.project.iterdir() if path.is_file()]
    assert "by hand\n" in there


# --- versions


def test_the_last_seen_version_is_kept_and_the_longest_unseen_goes_first() -> None:
    versions = SeenVersions()
    versions.saw("a", b"1")
    versions.saw("a", b"2")
    assert (versions.of("a"), versions.of("b")) == (b"2", None)
    versions.saw("large", b"x" * (MOST_OF_ONE + 1))
    assert versions.of("large") is None
    for number in range(MOST_BYTES // MOST_OF_ONE + 1):
        versions.saw(f"{number}", b"x" * MOST_OF_ONE)
    assert versions.of("a") is None
    assert versions.of("0") is None
    assert versions.of("16") is not None
