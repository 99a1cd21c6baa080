"""The door keeps to the boundaries: what it refuses, what moves, and what is told of it."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.example_count import examples
from weft.errors import FinalToolError, RetryableToolError
from weft.ids import BlobId
from weft.workspace import (
    BoundaryRange,
    BoundedWorkspace,
    LineRange,
    LocalWorkspace,
    SessionBoundaries,
    Workspace,
)
from weft.workspace.boundaries.workspace import MAX_BYTES

pytestmark = pytest.mark.anyio

TEXT = b"a\nb\nc\nd\n"


def digest(data: bytes) -> BlobId:
    return BlobId(hashlib.sha256(data).hexdigest())


class Held:
    """What the log says, and the versions that it keeps."""

    def __init__(self, project: Path) -> None:
        (project / "f").write_bytes(TEXT)
        self.in_force = {"f": BoundaryRange(lines=LineRange(1, 2), base=digest(TEXT), name=7)}
        self.kept = {digest(TEXT): TEXT}
        self.boundaries = SessionBoundaries(lambda: self.in_force, self.load)
        self.workspace = BoundedWorkspace(LocalWorkspace(str(project)), self.boundaries)
        self.file = project / "f"

    async def load(self, base: BlobId) -> bytes | None:
        return self.kept.get(base)

    async def write(self, data: bytes) -> LineRange:
        now = digest(self.file.read_bytes()) if self.file.exists() else None
        await self.workspace.write("f", data, expected=now)
        bound = self.boundaries.of("f")
        assert bound is not None
        return bound.lines


async def test_every_way_into_the_workspace_goes_through_the_door() -> None:
    """A method that the wrapper does not have would be inherited from the protocol, and do nothing
    or go around it.
    """
    wanted = {name for name, _ in inspect.getmembers(Workspace, inspect.isfunction)}
    own = {name for name in vars(BoundedWorkspace) if not name.startswith("__")}
    assert {name for name in wanted if not name.startswith("_")} <= own


async def test_a_write_inside_moves_the_range_and_says_so_once(tmp_path: Path) -> None:
    held = Held(tmp_path)
    assert await held.write(b"a\nb\nnew\nc\nd\n") == LineRange(1, 3)
    [moved] = held.boundaries.take()
    assert (moved.path, moved.bound.lines, moved.bound.name) == ("f", LineRange(1, 3), 7)
    assert moved.bound.base == digest(moved.data) == digest(held.file.read_bytes())
    assert held.boundaries.take() == ()


async def test_a_write_outside_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    held = Held(tmp_path)
    for outside in (b"A\nb\nc\nd\n", b"a\nb\nc\nD\n", b"", b"a\nb\nc\n"):
        with pytest.raises(FinalToolError, match=r"only lines 2 to 3 \(of 4\)"):
            await held.write(outside)
    assert held.file.read_bytes() == TEXT
    assert held.boundaries.take() == ()


async def test_the_range_in_memory_counts_until_the_log_has_caught_up(tmp_path: Path) -> None:
    held = Held(tmp_path)
    await held.write(b"a\nb\nnew\nc\nd\n")
    assert await held.write(b"a\nb\nnew\nnewer\nc\nd\n") == LineRange(1, 4)


async def test_a_boundary_that_was_lifted_or_set_anew_counts_at_once(tmp_path: Path) -> None:
    held = Held(tmp_path)
    await held.write(b"a\nb\nnew\nc\nd\n")
    held.in_force = {
        "f": BoundaryRange(lines=LineRange(0, 0), base=digest(held.file.read_bytes()), name=9)
    }
    with pytest.raises(FinalToolError, match="only line 1"):
        await held.write(b"a\nb\nc\nd\n")
    held.in_force = {}
    await held.workspace.write("f", b"free\n", expected=digest(held.file.read_bytes()))


async def test_a_range_follows_a_write_that_was_never_reported(tmp_path: Path) -> None:
    """As after a crash between the write and its record."""
    held = Held(tmp_path)
    held.file.write_bytes(b"above\na\nb\nc\nd\n")
    assert await held.write(b"above\na\nb\nmore\nc\nd\n") == LineRange(2, 4)


async def test_a_bounded_file_that_is_gone_must_come_back_as_it_was_outside(tmp_path: Path) -> None:
    held = Held(tmp_path)
    held.file.unlink()
    with pytest.raises(FinalToolError, match="only lines 2 to 3"):
        await held.write(b"anything\n")
    assert await held.write(b"a\nx\nd\n") == LineRange(1, 1)


async def test_without_the_kept_version_the_lines_count_as_they_are(tmp_path: Path) -> None:
    held = Held(tmp_path)
    held.kept = {}
    held.file.write_bytes(b"above\na\nb\nc\nd\n")
    with pytest.raises(FinalToolError, match="only lines 2 to 3"):
        await held.write(b"above\na\nb\nC\nd\n")
    held.file.unlink()
    with pytest.raises(FinalToolError, match="not there any more"):
        await held.write(b"x")


async def test_what_is_judged_is_what_is_replaced(tmp_path: Path) -> None:
    held = Held(tmp_path)
    with pytest.raises(RetryableToolError, match="changed since it was read"):
        await held.workspace.write("f", TEXT, expected=digest(b"another version"))
    with pytest.raises(RetryableToolError, match="changed since it was read"):
        await held.workspace.write("f", TEXT, expected=None)


async def test_vetting_says_what_the_write_would_say_and_moves_nothing(tmp_path: Path) -> None:
    held = Held(tmp_path)
    state = await held.workspace.peek("f")
    await held.workspace.vet("f", state, b"a\nb\nnew\nc\nd\n")
    with pytest.raises(FinalToolError, match="only lines 2 to 3"):
        await held.workspace.vet("f", state, b"x\n")
    assert held.boundaries.take() == ()
    assert held.boundaries.of("f") == held.in_force["f"]


async def test_a_bounded_file_cannot_outgrow_its_boundary(tmp_path: Path) -> None:
    held = Held(tmp_path)
    with pytest.raises(FinalToolError, match="too large"):
        await held.write(b"a\n" + b"x" * MAX_BYTES + b"\nd\n")


async def test_what_others_changed_is_noticed_for_the_log(tmp_path: Path) -> None:
    held = Held(tmp_path)
    await held.boundaries.noticed("f", TEXT)
    assert held.boundaries.take() == ()
    await held.boundaries.noticed("f", b"above\n" + TEXT)
    [moved] = held.boundaries.take()
    assert moved.bound.lines == LineRange(2, 3)
    assert await held.boundaries.present("f", b"above\nmore\n" + TEXT) == LineRange(3, 4)


# --- any sequence of changes, against a range that is kept by counting


class Counted:
    """A file whose lines are all different, and a range that is kept by counting lines."""

    def __init__(self, length: int, first: int, last: int) -> None:
        self.lines = [f"line {number}\n" for number in range(length)]
        self.first, self.last = first, last
        self._made = length

    @property
    def data(self) -> bytes:
        return "".join(self.lines).encode()

    @property
    def range(self) -> LineRange:
        return LineRange(self.first, self.last)

    def changed(self, start: int, end: int, new: int) -> list[str]:
        """The lines with some of them replaced by new ones."""
        fresh = [f"line {self._made + number}\n" for number in range(new)]
        self._made += new
        return [*self.lines[:start], *fresh, *self.lines[end:]]

    def is_inside(self, start: int, end: int, new: int) -> bool:
        return (start == end and not new) or (self.first <= start and end <= self.last + 1)

    def by_session(self, start: int, end: int, new: int, lines: list[str]) -> None:
        if start != end or new:
            self.last += new - (end - start)
        self.lines = lines

    def by_person(self, start: int, end: int, new: int, lines: list[str]) -> None:
        """What is new right before the range is above it, what is new right after it below.

        A border in what was replaced stays as far in.
        """
        top, bottom, shift = self.first, self.last + 1, new - (end - start)
        if end <= self.first:
            top += shift
        elif start < self.first:
            top = min(self.first, start + new)
        if end <= bottom and start < bottom:
            bottom += shift
        elif start < bottom:
            bottom = min(bottom, start + new)
        elif top > bottom:  # an empty range moves with what comes before it
            bottom = top
        self.first, self.last = top, max(top, bottom) - 1
        self.lines = lines


CHANGES = st.lists(
    st.tuples(st.booleans(), st.integers(0, 30), st.integers(0, 4), st.integers(0, 3)), max_size=12
)


@settings(max_examples=examples(300), deadline=None)
@given(
    length=st.integers(0, 14),
    borders=st.tuples(st.integers(0, 14), st.integers(-1, 14)),
    changes=CHANGES,
)
def test_any_sequence_of_changes_leaves_the_range_where_counting_puts_it(
    length: int, borders: tuple[int, int], changes: list[tuple[bool, int, int, int]]
) -> None:
    first = min(borders[0], length)
    file = Counted(length, first, max(first - 1, min(borders[1], length - 1)))
    kept: dict[BlobId, bytes] = {digest(file.data): file.data}
    bounds = {"f": BoundaryRange(lines=file.range, base=digest(file.data), name=1)}

    async def load(base: BlobId) -> bytes | None:
        return kept.get(base)

    async def live() -> None:
        door = SessionBoundaries(lambda: bounds, load)
        for is_session, at, removed, new in changes:
            start = min(at, len(file.lines))
            end = min(start + removed, len(file.lines))
            lines = file.changed(start, end, new)
            data = "".join(lines).encode()
            if not is_session:
                file.by_person(start, end, new, lines)
                await door.noticed("f", data)
            elif file.is_inside(start, end, new):
                door.moved(await door.admit("f", file.data, data))
                file.by_session(start, end, new, lines)
            else:
                with pytest.raises(FinalToolError) as refused:
                    await door.admit("f", file.data, data)
                assert f"only {file.range} (of {len(file.lines)}) may be changed" in str(
                    refused.value
                )
            held = door.of("f")
            assert held is not None
            assert held.lines == file.range

    anyio.run(live)


async def test_a_bounded_file_is_not_removed(tmp_path: Path) -> None:
    held = Held(tmp_path)
    (tmp_path / "free").write_bytes(b"x")
    with pytest.raises(FinalToolError, match="only in some lines, not removed"):
        await held.workspace.remove("f", expected=digest(TEXT))
    await held.workspace.remove("free", expected=digest(b"x"))
    assert [file.name for file in tmp_path.iterdir()] == ["f"]
