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
    line = await port.line()
    if last.clears:
        return await _of_results(session.id, last, line, store)
    return await _of_summary(session.id, tree, last, line, store)


async def _of_summary(
    session_id: str,
    tree: ConversationTree,
    last: TreeCompaction,
    line: Sequence[LineEntry],
    store: Store,
) -> CompactionDiff:
    fact = await load_compaction(last, store)
    above = tree.walk_up(tree.head)
    earlier = [c for c in tree.compactions if not c.clears and c != last and c.upto in above]
    before = await load_compaction(earlier[-1], store) if earlier else None
    places = {entry.node.id: place for place, entry in enumerate(line)}
    first = places.get(before.upto, -1) + 1 if before is not None else 0
    taken = line[first : places.get(last.upto, -1) + 1]
    return CompactionDiff(
        session=session_id,
        kind="summary",
        tokens_before=fact.tokens_before,
        tokens_after=fact.tokens_after,
        before=(*(_split(compacted_message(before)) if before else ()), *_messages(taken)),
        after=tuple(_split(compacted_message(fact))),
        struck=fact.struck,
    )


async def _of_results(
    session_id: str, last: TreeCompaction, line: Sequence[LineEntry], store: Store
) -> CompactionDiff:
    cleared = await load_clearing(last, store)
    changed = [entry for entry in line if any(uid in cleared for uid in entry.results)]
    sizes = [
        sum(len(result.text) for entry in entries for result in entry.results.values()) // 4
        for entries in (changed, [cleared_entry(entry, cleared) for entry in changed])
    ]
    return CompactionDiff(
        session=session_id,
        kind="results",
        tokens_before=sizes[0],
        tokens_after=sizes[1],
        before=tuple(_messages(changed)),
        after=tuple(_messages([cleared_entry(entry, cleared) for entry in changed])),
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
