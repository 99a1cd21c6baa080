"""What the last compaction of a session's line changed: what the model read before, and what it
reads now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from weft.api.session import Session
from weft.context import LineEntry, cleared_entry, compacted_message
from weft.messages import ToolCall, ToolResult
from weft.session.log.stored_line import load_clearing, load_compaction
from weft.store import Store
from weft.tree import ConversationTree, TreeCompaction

SHOWN = 160
"""Characters of a message that a diff shows."""


class CompactionDiff(msgspec.Struct, frozen=True, kw_only=True):
    """The last compaction, or clearing of results, on the line of a session."""

    session: str
    kind: str
    """`summary` or `results`."""
    tokens_before: int = 0
    tokens_after: int = 0
    before: tuple[str, ...] = ()
    """What the model read, a line for each message; an earlier summary whole."""
    after: tuple[str, ...] = ()
    """What it reads now."""
    struck: tuple[str, ...] = ()
    """Lines of the summary that the record contradicted."""

    def lines(self) -> list[str]:
        """As a unified diff, all lines shown."""
        import difflib  # few look at a diff, and it is slow to load

        most = len(self.before) + len(self.after)
        diff = difflib.unified_diff(
            self.before, self.after, "the model read", "the model reads now", n=most, lineterm=""
        )
        return [*diff, *(f"! struck from the summary: {line}" for line in self.struck)]


async def compaction_diff(session: Session, store: Store) -> CompactionDiff | None:
    """What the last compaction of the present line changed; None where there is none."""
    port = await session._port()
    tree = port.state.tree
    last = tree.undoable_for(tree.head)
    if last is None:
        return None
    earlier = _earlier(tree, last, clears=False)
    first = None if earlier is None else earlier.upto
    # Only what the step was about: a line is as long as the session.
    line = await port.nodes(tree.line(last.upto, first))
    clearing = _earlier(tree, last, clears=True)
    known = {} if clearing is None else await load_clearing(clearing, store)
    read = [cleared_entry(entry, known) for entry in line]
    if not last.clears:
        return await _of_summary(session.id, earlier, last, read, store)
    # From the whole results: one that is cleared twice would say that it had one line.
    cleared = await load_clearing(last, store)
    return _of_results(session.id, read, [cleared_entry(entry, cleared) for entry in line])


def _earlier(
    tree: ConversationTree, last: TreeCompaction, *, clears: bool
) -> TreeCompaction | None:
    """The newest of a kind that held on the line when the last one was made."""
    above = tree.walk_up(last.upto)
    made = tree.compactions[: tree.compactions.index(last)]
    return next((c for c in reversed(made) if c.clears == clears and c.upto in above), None)


async def _of_summary(
    session_id: str,
    earlier: TreeCompaction | None,
    last: TreeCompaction,
    taken: Sequence[LineEntry],
    store: Store,
) -> CompactionDiff:
    fact = await load_compaction(last, store)
    before = None if earlier is None else await load_compaction(earlier, store)
    return CompactionDiff(
        session=session_id,
        kind="summary",
        tokens_before=fact.tokens_before,
        tokens_after=fact.tokens_after,
        before=(*(_split(compacted_message(before)) if before else ()), *_messages(taken)),
        after=tuple(_split(compacted_message(fact))),
        struck=fact.struck,
    )


def _of_results(
    session_id: str, read: Sequence[LineEntry], line: Sequence[LineEntry]
) -> CompactionDiff:
    pairs = zip(read, line, strict=True)
    changed = [(entry, now) for entry, now in pairs if entry.results != now.results]
    before, after = [entry for entry, _ in changed], [now for _, now in changed]
    sizes = [
        sum(len(result.text) for entry in entries for result in entry.results.values()) // 4
        for entries in (before, after)
    ]
    return CompactionDiff(
        session=session_id,
        kind="results",
        tokens_before=sizes[0],
        tokens_after=sizes[1],
        before=tuple(_messages(before)),
        after=tuple(_messages(after)),
    )


def _split(text: str) -> list[str]:
    return text.splitlines()


def _messages(entries: Iterable[LineEntry]) -> Iterable[str]:
    for entry in entries:
        if entry.node.text.strip():
            yield f"{entry.node.role}: {_short(entry.node.text)}"
        for call in entry.node.calls:
            yield f"{call.name} {_arguments(call)}: {_outcome(entry.results.get(call.call_uid))}"


def _arguments(call: ToolCall) -> str:
    return _short(msgspec.json.encode(call.args).decode())


def _outcome(result: ToolResult | None) -> str:
    return "no result" if result is None else _short(result.text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= SHOWN:
        return line
    return f"{line[:SHOWN]}… ({len(text):,} characters)"
