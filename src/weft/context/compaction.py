"""Compaction: where a line is cut, what the model reads of the part before the cut, and what is
carried over whatever the summary says.

All of it is pure.  The cut falls between two nodes; results hang on the node that called, so no cut
can part a call from its result. What must not depend on how good a summary is (pinned messages,
changed files, tasks, the user's rules) is carried as text of its own: `carried_record`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from weft.context.build import ContextTarget, LineEntry, render
from weft.context.carried_record import (
    NOTHING_KEPT,
    boundary_blocks,
    edits_with,
    files_block,
    kept_blocks,
    task_blocks,
    tasks_on,
)
from weft.context.sizes import CHARACTERS_PER_TOKEN, estimate
from weft.events import Compacted, KeptRecord
from weft.ids import NodeId
from weft.messages import File, Image, Node, ToolCall, ToolResult
from weft.sha256 import sha256
from weft.state import SessionState

KEPT_SHARE: Final = 0.25
"""How much of the room the newest messages, which stay as they are, may take."""
STEPS: Final = 5
"""Answers, with their results, that stay as they are."""
STEPS_SHARE: Final = 0.4
"""How much of the room they may take."""
RESULT_KEPT: Final = 2_000
"""Characters of a tool's result that the summarising model is shown at first."""
OLD_RESULT_KEPT: Final = 200
"""The same, when that was too much."""
HANDOVER_ROOM: Final = 200_000
"""Tokens of room for what is not carried into a window of known size."""
LEFT_OUT: Final = "\n\n[… left out …]\n\n"

_TAG: Final = re.compile(r"<(?=\s{0,9}/?\s{0,9}(?:conversation|record|kept)\b)", re.IGNORECASE)

INSTRUCTIONS: Final = """\
You write the handover of a coding session to the agent that continues it, which will see your \
text instead of the conversation. Be exact \
and complete about what matters, and leave out what does not. Keep file paths, names, commands, \
numbers and error messages as they \
are.

Where there is an earlier summary, write it on: keep what still holds, add what is new, and take \
out what the conversation has overtaken. What stands in <kept> reaches the agent word for word, \
behind your text, and is newer: where it differs from the conversation, <kept> is right, and what \
it shows as finished is finished. What stands in <record> reaches the agent as well; do not repeat \
it, and never contradict it.

Use these headings:

## Task
What the user wants, in their words where it matters; every constraint they gave.
## Done
What was changed and how it was checked.
## Decisions
What was decided, and why; what was tried and given up.
## State
Where things stand now: what works, what fails, what is half done.
## Next
The steps that remain."""

HEADING: Final = "[What came before was summarised to make room. Summary:]"
RECORD_HEADING: Final = (
    "[What follows is taken from the record of this session, not from the summary. "
    "Where the two differ, the record is right.]"
)


def choose_cut(
    line: Sequence[LineEntry], keep_tokens: int, *, steps: int = 0, most_tokens: int = 0
) -> int:
    """How many entries from the start are to be summarised: all but the newest that fit, and never
    the very last.

    The last `steps` answers stay too, as far as they are not more than `most_tokens`.  Prefers to
    cut just before something the user said.  0: there is nothing to cut, because all but the last
    fits.
    """
    cut = _first_within(line, keep_tokens)
    if cut == 0:
        return 0
    last = _first_within(line, most_tokens, steps) if steps else len(line) - 1
    return _at_user_message(line, min(cut, last), last)


def first_of_steps(line: Sequence[LineEntry]) -> int:
    """Where the last steps begin."""
    return _first_within(line, sys.maxsize, STEPS)


def _first_within(line: Sequence[LineEntry], most_tokens: int, steps: int = 0) -> int:
    """The first of the newest entries that fit, the last one in any case; with `steps`, of so many
    answers at most, and what the user said before them.
    """
    target = ContextTarget("", "")
    # From the end: what was said last is what the next step needs word for word.
    first, kept = len(line) - 1, 0
    answers = int(first >= 0 and line[first].node.role == "assistant")
    while first > 0:
        entry = line[first - 1]
        kept += estimate(render(entry, target))
        answers += entry.node.role == "assistant"
        if kept > most_tokens or (steps and answers > steps):
            break
        first -= 1
    return max(0, first)


def _at_user_message(line: Sequence[LineEntry], cut: int, last: int) -> int:
    """The next place from `cut` to `last` where the kept part begins with the user, if there is
    one.
    """
    for place in range(cut, last + 1):
        if line[place].node.role == "user":
            return place
    return cut


def transcript(
    line: Sequence[LineEntry],
    most_tokens: int,
    before: str = "",
    notes: Mapping[NodeId | None, Sequence[str]] | None = None,
) -> str:
    """The line as text for the summarising model, within `most_tokens`, with what the system had
    said to the model at each place.

    In stages that stop when it fits: long results cut, old results cut harder, repeated results
    named only once, and at last the middle left out.
    """
    most = most_tokens * CHARACTERS_PER_TOKEN
    for kept, unique in ((RESULT_KEPT, False), (OLD_RESULT_KEPT, False), (OLD_RESULT_KEPT, True)):
        text = _rendered(line, kept, unique, before, notes or {})
        if len(text) <= most:
            return text
    return cut_middle(text, most_tokens)


def framed(tag: str, text: str) -> str:
    """The text between the tags of its part; no tag inside of it ends the part or begins one."""
    return f"<{tag}>\n{_TAG.sub('‹', text)}\n</{tag}>"


def cut_middle(text: str, most_tokens: int) -> str:
    """The text within `most_tokens`, without its middle where it is longer."""
    most = most_tokens * CHARACTERS_PER_TOKEN
    if len(text) <= most:
        return text
    # Both ends: the beginning has the task, the end has the state of the work.
    half = max(1, (most - len(LEFT_OUT)) // 2)
    return f"{text[:half]}{LEFT_OUT}{text[-half:]}"


def _rendered(
    line: Sequence[LineEntry],
    kept: int,
    unique: bool,
    before: str,
    notes: Mapping[NodeId | None, Sequence[str]],
) -> str:
    pieces = [f"EARLIER SUMMARY:\n{before}"] if before else []
    seen: set[bytes] = set()
    for entry in line:
        pieces.append(_node_text(entry.node, kept))
        pieces += [
            _result_text(call, entry.results.get(call.call_uid), kept, seen if unique else None)
            for call in entry.node.calls
        ]
        pieces += [f"SYSTEM: {note}" for note in notes.get(entry.node.id, ())]
    return "\n\n".join(piece for piece in pieces if piece)


def _node_text(node: Node, kept: int) -> str:
    who = {"user": "USER", "assistant": "AGENT", "system": "SYSTEM"}[node.role]
    words = [node.text] if node.text.strip() else []
    words += [_attachment_text(part, kept) for part in node.parts if isinstance(part, File | Image)]
    text = "\n".join(words)
    return f"{who}: {text}" if text else ""


def _attachment_text(part: File | Image, kept: int) -> str:
    """An image by its name; a file with its text, as long as a result may be."""
    if isinstance(part, Image):
        return f"[{part.kind}: {part.name or part.media_type}]"
    return f"[file: {part.name}]\n  {_indented(_cut(part.text, kept))}".rstrip()


def _result_text(
    call: ToolCall, result: ToolResult | None, kept: int, seen: set[bytes] | None
) -> str:
    args = msgspec.json.encode(call.args).decode()[:kept]
    if result is None:
        return f"TOOL {call.name} {args}: no result"
    text = result.text
    if seen is not None:
        digest = sha256(text.encode()).digest()
        text = "(as before)" if digest in seen else text
        seen.add(digest)
    failed = " FAILED" if result.is_error else ""
    return f"TOOL {call.name} {args}{failed}: {_indented(_cut(text, kept))}"


def _indented(text: str) -> str:
    # What a file or a program says may hold a line "USER: …"; only the user's own begin a line.
    return "\n  ".join(text.splitlines())


def _cut(text: str, kept: int) -> str:
    return text if len(text) <= kept else f"{text[:kept]} [… {len(text) - kept} more characters]"


def pinned(state: SessionState, line: Sequence[LineEntry]) -> tuple[LineEntry, ...]:
    """What is pinned on a line."""
    tree = state.tree
    pins = {node for node in tree.pins if node not in tree.excluded}
    return tuple(entry for entry in line if entry.node.id in pins)


def pin_block(entry: LineEntry) -> str:
    """A pinned message as it is carried."""
    return f"[Pinned, said by the {entry.node.role}:]\n{entry.node.text}"


def carried(
    state: SessionState,
    line: Sequence[LineEntry],
    kept: KeptRecord = NOTHING_KEPT,
    space: int = HANDOVER_ROOM,
    tail: Sequence[LineEntry] = (),
) -> tuple[str, ...]:
    """What the state of the session has, as blocks of text: pinned messages of the part that goes,
    changed files, tasks, boundaries.

    The edits of the tail are counted here, and kept only when it goes.
    """
    return (
        *(pin_block(entry) for entry in pinned(state, line)),
        *files_block(state, edits_with(kept.edits, tail), space),
        *task_blocks(tasks_on(state, kept, tail or line), kept.done),
        *boundary_blocks(state),
    )


def as_message(summary: str, blocks: Sequence[str]) -> str:
    """What the model reads in place of what was compacted."""
    return "\n\n".join((f"{HEADING}\n\n{summary}", *blocks))


def compacted_message(fact: Compacted, pins: Sequence[LineEntry] = ()) -> str:
    """The message that a compaction stands for; `pins` are what is pinned in its part now."""
    # What was pinned at the time of the compaction is in it already.
    late = [block for block in map(pin_block, pins) if block not in fact.carried]
    return as_message(fact.summary, (*fact.carried, *late, *kept_blocks(fact.kept)))
