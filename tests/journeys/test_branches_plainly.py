"""The tree against a plain one: whatever is said, branched, switched, renamed, deleted, compacted,
undone and edited, in any order.

The plain tree is a list of (parent, words) and some names; what the model sees is read off it in
the most obvious way.  After each step history, branches and context agree, and every few steps the
program is closed and opened again.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.compaction import SummarizingModel, start
from tests.support.example_count import examples
from tests.support.world import World
from weft.api.session import Session
from weft.app import App
from weft.errors import SessionError, UsageError
from weft.messages import Text
from weft.session import EditNode

Step: TypeAlias = tuple[str, int, int]


@dataclass
class Plain:
    """Everything that was said, and where each line ends."""

    said: list[tuple[int | None, str]] = field(default_factory=list)
    """(what it was said after, `role: words`); the place in the list is the name of a message."""
    texts: dict[int, list[str]] = field(default_factory=dict)
    """The revisions of a message."""
    ends: dict[str, int | None] = field(default_factory=lambda: {"main": None})
    current: str = "main"
    compactions: list[tuple[int, str]] = field(default_factory=list)
    """(the last message it stands for, the summary), oldest first."""
    answers: int = 0
    summaries: int = 0

    def line(self) -> list[int]:
        found: list[int] = []
        place = self.ends[self.current]
        while place is not None:
            found.append(place)
            place = self.said[place][0]
        return found[::-1]

    def words(self, place: int) -> str:
        role = self.said[place][1].partition(":")[0]
        return f"{role}: {self.texts[place][-1]}"

    def history(self) -> list[str]:
        return [self.words(place) for place in self.line()]

    def context(self) -> list[str]:
        """The newest summary that stands for a part of the line, then the rest."""
        line = self.line()
        for upto, summary in reversed(self.compactions):
            if upto in line:
                rest = line[line.index(upto) + 1 :]
                return [f"user: <{summary}>", *(self.words(place) for place in rest)]
        return [self.words(place) for place in line]

    def add(self, role: str, text: str) -> None:
        self.said.append((self.ends[self.current], f"{role}: {text}"))
        self.texts[len(self.said) - 1] = [text]
        self.ends[self.current] = len(self.said) - 1

    def in_force(self) -> tuple[int, str] | None:
        line = self.line()
        return next((each for each in reversed(self.compactions) if each[0] in line), None)


class Pair:
    """A real session and a plain one, led side by side."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.teller = SummarizingModel()
        self.plain = Plain()
        self.ids: list[str] = []
        """The real id of each message of the plain tree."""
        self.numbers = 0
        self.app: App
        self.session: Session

    async def open(self) -> None:
        self.app = await self.world.open(self.teller.model).__aenter__()
        self.session = await start(self.app)

    async def do(self, step: Step) -> None:
        """Do one step to both.

        What cannot be done must be refused by the real one and leave it as it was.
        """
        kind, one, two = step
        self.numbers += 1
        match kind:
            case "say":
                await self._say(f"say {self.numbers}")
            case "branch":
                await self._branch(one, two)
            case "switch":
                await self._switch(one)
            case "rename":
                await self._rename(one)
            case "delete":
                await self._delete(one)
            case "compact":
                await self._compact()
            case "undo":
                await self._undo()
            case "edit":
                await self._edit(one)
            case "restore":
                await self._restore(one, two)
            case _:
                await self.app.aclose()
                await self.open()

    async def _say(self, text: str) -> None:
        plain, expected = self.plain, self.plain.context()
        await self.session.send_message(text)
        assert self.teller.seen == [*expected, f"user: {text}"]
        plain.add("user", text)
        plain.answers += 1
        plain.add("assistant", f"answer {plain.answers}")
        self.ids += [key for key, _ in (await self.session.messages_with_ids())[-2:]]

    async def _branch(self, one: int, two: int) -> None:
        name = f"b{self.numbers}"
        if not self.plain.said:
            return
        line = self.plain.line()
        if two % 2 and line:
            place = line[one % len(line)]
            await self.session.branch_at(line.index(place), name)
        else:
            place = one % len(self.plain.said)
            await self.session.branch_at(self.ids[place], name)
        self.plain.ends[name] = place
        self.plain.current = name

    async def _switch(self, one: int) -> None:
        name = list(self.plain.ends)[one % len(self.plain.ends)]
        await self.session.switch_branch(name)
        self.plain.current = name

    async def _rename(self, one: int) -> None:
        name, new = list(self.plain.ends)[one % len(self.plain.ends)], f"n{self.numbers}"
        await self.session.rename_branch(name, new)
        self.plain.ends[new] = self.plain.ends.pop(name)
        self.plain.current = new if self.plain.current == name else self.plain.current

    async def _delete(self, one: int) -> None:
        name = list(self.plain.ends)[one % len(self.plain.ends)]
        try:
            await self.session.delete_branch(name)
        except UsageError:
            assert name == self.plain.current
            return
        assert name != self.plain.current
        del self.plain.ends[name]

    async def _compact(self) -> None:
        """Without much to say everything is summarised, beyond the summary that stands there."""
        rest = self.plain.context()
        has_summary = bool(rest) and rest[0].startswith("user: <")
        if len(rest) == has_summary:
            error = SessionError if rest else UsageError
            try:
                await self.session.compact()
            except error:
                return
            raise AssertionError("there was nothing to compact")
        await self.session.compact()
        self.plain.summaries += 1
        self.plain.compactions.append((self.plain.line()[-1], f"summary {self.plain.summaries}"))

    async def _undo(self) -> None:
        found = self.plain.in_force()
        try:
            await self.session.undo_compaction()
        except UsageError:
            assert found is None
            return
        assert found is not None
        self.plain.compactions.remove(found)

    async def _edit(self, one: int) -> None:
        if not self.plain.said:
            return
        place, text = one % len(self.plain.said), f"edit {self.numbers}"
        # An id.
        command: Any = EditNode(node=self.ids[place], parts=(Text(text=text),))  # type: ignore[arg-type]
        await (await self.session._port()).call(command)
        self.plain.texts[place].append(text)

    async def _restore(self, one: int, two: int) -> None:
        if not self.plain.said:
            return
        place = one % len(self.plain.said)
        texts = self.plain.texts[place]
        await self.session.restore_revision(self.ids[place], two % len(texts))
        texts.append(texts[two % len(texts)])

    async def compare(self) -> None:
        """What can be read of both is the same."""
        rows = await self.session.messages_with_ids()
        assert [f"{m.role}: {m.content}" for _, m in rows] == self.plain.history()
        assert [key for key, _ in rows] == [self.ids[place] for place in self.plain.line()]
        branches = await self.session.list_branches()
        assert {each.name: each.node for each in branches} == {
            name: None if end is None else self.ids[end] for name, end in self.plain.ends.items()
        }
        assert [each.name for each in branches if each.is_current] == [self.plain.current]
        for place, texts in self.plain.texts.items():
            if len(texts) > 1:
                assert await self.session.revisions(self.ids[place]) == texts


kinds = st.sampled_from(
    [
        *["say"] * 4,
        *["branch"] * 3,
        *["switch"] * 2,
        *["compact"] * 2,
        *("rename", "delete", "undo", "edit", "restore", "reopen"),
    ]
)
steps = st.tuples(kinds, st.integers(0, 40), st.integers(0, 40))


async def lead(folder: Path, store: str, sequence: list[Step]) -> None:
    pair = Pair(World(store, folder))
    with anyio.fail_after(60):
        await pair.open()
        try:
            for step in sequence:
                await pair.do(step)
                await pair.compare()
            await pair.do(("say", 0, 0))
        finally:
            await pair.app.aclose()


def play(store: str, sequence: list[Step]) -> None:
    with tempfile.TemporaryDirectory(prefix="tree-") as folder:
        asyncio.run(lead(Path(folder), store, sequence))


@settings(max_examples=examples(50))
@given(sequence=st.lists(steps, min_size=5, max_size=30))
def test_the_tree_is_the_plain_tree(sequence: list[Step]) -> None:
    play("memory", sequence)


@settings(max_examples=examples(15))
@given(sequence=st.lists(steps, min_size=5, max_size=25))
def test_the_tree_on_the_default_store_is_the_plain_tree(sequence: list[Step]) -> None:
    play("sqlite", sequence)
