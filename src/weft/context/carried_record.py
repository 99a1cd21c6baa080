"""What a compaction carries whatever its summary says: all of it from the record.

Two parts.  What the state of the session knows (pinned messages, tasks, files, boundaries) is
written anew each time.  What only the words of the line tell (the user's rules and messages,
commands that fail) is gathered from the part that goes and added to what the compaction before has
kept: so a compaction costs as much as its own part of the line, however long that is.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from weft.context.build import LineEntry
from weft.context.sizes import CHARACTERS_PER_TOKEN
from weft.context.user_rules import is_firm, rules_of, values_of
from weft.events import EditedFile, FailedCommand, KeptRecord, Todo
from weft.ids import NodeId
from weft.messages import ToolResult, typed_text
from weft.state import SessionState

MESSAGES_SHARE: Final = 0.06
RULES_SHARE: Final = 0.05
VALUES_SHARE: Final = 0.08
FILES_SHARE: Final = 0.03
"""How much of the room each part may take."""
LEAST_CHARACTERS: Final = 1_200
LEAST_SHARE: Final = 0.1
"""What each of them has in a small window: so many characters, or this share."""
FAILURES: Final = 5
LAST_LINES: Final = 12
LINE_CHARACTERS: Final = 200
COMMAND_CHARACTERS: Final = 400
EDITS: Final = 500
"""Files whose added and removed lines are counted."""
DONE: Final = 50
"""Finished tasks that are remembered once they have left the list."""
MESSAGE_ENDS: Final = 400
"""Characters that are kept of either end of a message that is too long to be kept whole."""

TodoStatus: TypeAlias = Literal["pending", "in_progress", "done", "cancelled"]

NOTHING_KEPT: Final = KeptRecord()


def gather(
    gone: Sequence[LineEntry],
    tail: Sequence[LineEntry],
    before: KeptRecord | None,
    space: int,
    pinned: Container[NodeId] = (),
    unpinned: Sequence[LineEntry] = (),
) -> KeptRecord:
    """What is kept once `gone` is summarised and `tail` stays, in a room of `space` tokens.

    What is pinned is carried whole in any case; `unpinned` was, by the compaction before.
    """
    before = before or NOTHING_KEPT
    asked = [e.node for e in (*unpinned, *gone) if e.node.role == "user"]
    users = [node for node in asked if node.id not in pinned]
    # What was typed: what a command made of it, with files and the output of programs, is not the
    # user's word and may hold any order.
    said = [text for node in users if (text := typed_text(node.parts)).strip()]
    messages, left = _newest(
        (*before.messages, *map(bounded_message, said)), _share(space, MESSAGES_SHARE)
    )
    # A message that was too long lost its middle, so its values count as if it were gone.
    cut = [*left, *(text for text in said if bounded_message(text) != text)]
    values = _unique((*before.values, *(each for text in cut for each in values_of(text))))
    rules = _unique((*before.rules, *(rule for text in said for rule in rules_of(text))))
    firmest = _firmest(rules, _share(space, RULES_SHARE))
    return KeptRecord(
        rules=firmest,
        more_rules=before.more_rules + len(rules) - len(firmest),
        values=_newest([each for each in values if each not in rules], _share(space, VALUES_SHARE))[
            0
        ],
        messages=messages,
        more_messages=before.more_messages + len(left),
        failures=_failures(before.failures, (*gone, *tail)),
        done=_finished(before.done, gone),
        todos=before.todos if (tasks := _newest_tasks(gone)) is None else tasks,
        edits=edits_with(before.edits, gone),
        pinned=tuple(
            node for node in (*before.pinned, *(node.id for node in asked)) if node in pinned
        ),
    )


def kept_blocks(kept: KeptRecord | None) -> tuple[str, ...]:
    """What is kept, as the model reads it."""
    if kept is None:
        return ()
    blocks = []
    if kept.rules:
        more = f"\n… and {kept.more_rules} older rules that had no room" if kept.more_rules else ""
        heading = "Rules that the user gave; they hold until the user lifts them:"
        blocks.append(_list(heading, kept.rules) + more)
    if kept.values:
        blocks.append(_list("Said by the user earlier, with exact values:", kept.values))
    if kept.messages:
        more = f" ({kept.more_messages} older ones are left out)" if kept.more_messages else ""
        said = "\n---\n".join(kept.messages)
        blocks.append(f"[The user's own messages, oldest first{more}:]\n{said}")
    blocks += [_failure_block(each) for each in kept.failures]
    return tuple(blocks)


def tasks_on(state: SessionState, kept: KeptRecord, since: Sequence[LineEntry]) -> tuple[Todo, ...]:
    """The tasks as they are on this line, of which `since` is what comes after what is kept."""
    tree = state.tree
    head = None if tree.head is None else tree.nodes.get(tree.head)
    # The list of the session is the one that was written last, on whichever line: after a rewind it
    # may call finished what was undone.
    if head is None or head.depth == len(tree.nodes):
        return state.todos.items
    found = _newest_tasks(since)
    return kept.todos if found is None else found


def task_blocks(items: Sequence[Todo], done: Sequence[str] = ()) -> list[str]:
    """The open tasks and the finished ones."""
    waiting = [f"{each.text} ({each.status})" for each in items if _is_open(each.status)]
    finished = finished_tasks(items, done)
    blocks = [_list("Open tasks:", waiting)] if waiting else []
    if finished:
        blocks.append(_list("Finished tasks; they are not to be done again:", finished))
    dropped = [each.text for each in items if each.status == "cancelled"]
    return [*blocks, *([_list("Tasks that were given up:", dropped)] if dropped else [])]


def finished_tasks(items: Sequence[Todo], done: Sequence[str] = ()) -> list[str]:
    """What was finished, and is not open again."""
    again = {each.text for each in items if _is_open(each.status)}
    now = [each.text for each in items if each.status == "done"]
    return [text for text in _unique((*done, *now)) if text not in again]


def files_block(state: SessionState, edits: Iterable[EditedFile], space: int) -> list[str]:
    """The files that the session has changed, the newest first."""
    counted = {each.path: each for each in edits}
    lines = [
        f"{_one_line(each.path)} ({each.action}{_stat(counted.get(each.path))})"
        for each in state.files.newest_first()
    ]
    if not lines:
        return []
    shown, left = _newest(lines[::-1], _share(space, FILES_SHARE), least=20)
    more = f"\n… and {len(left)} more that were changed earlier" if left else ""
    return ["[Files changed so far:]\n" + "\n".join(reversed(shown)) + more]


def boundary_blocks(state: SessionState) -> list[str]:
    """The ranges of lines that edits are held to."""
    held = [
        f"{_one_line(each.path)}: lines {each.first + 1} to {each.last + 1}"
        for each in state.boundaries.held.values()
    ]
    return [_list("Edits of these files must stay within:", held)] if held else []


def edits_with(before: Iterable[EditedFile], gone: Sequence[LineEntry]) -> tuple[EditedFile, ...]:
    """Lines that edits added and removed, with those of these entries."""
    found = {each.path: each for each in before}
    for entry in gone:
        for result in entry.results.values():
            diff, read = result.data.get("diff"), result.data.get("read")
            if not isinstance(diff, str) or not isinstance(read, dict) or len(read) != 1:
                continue
            [path] = read
            file = found.pop(path, EditedFile(path=path))
            found[path] = EditedFile(
                path=path,
                added=file.added + _marked(diff, "+"),
                removed=file.removed + _marked(diff, "-"),
            )
    return tuple(found.values())[-EDITS:]


def failed_runs(line: Sequence[LineEntry]) -> set[tuple[str, int]]:
    """The commands of these entries that failed, as they are kept, and how each ended."""
    runs = (failed for entry in line for _, failed in _runs(entry) if failed is not None)
    return {(failed.command, failed.exit_code) for failed in runs}


# --- gathering ---------------------------------------------------------------------------


def _failures(
    before: Sequence[FailedCommand], line: Sequence[LineEntry]
) -> tuple[FailedCommand, ...]:
    """The commands that failed when they were last run."""
    found = {each.command: each for each in before}
    for entry in line:
        for command, failed in _runs(entry):
            # Out and in again: the newest is last. It is known by what is kept of it; older
            # programs kept its beginning.
            short = _short_command(command)
            for name in (short, command[:COMMAND_CHARACTERS]):
                found.pop(name, None)
            if failed is not None:
                found[short] = failed
    return tuple(found.values())[-FAILURES:]


def _runs(entry: LineEntry) -> Iterator[tuple[str, FailedCommand | None]]:
    """The shell commands of an entry that have ended, and for each how it failed, if it did."""
    for call in entry.node.calls:
        result = entry.results.get(call.call_uid)
        command = call.args.get("command")
        if result is None or call.name != "shell" or not isinstance(command, str):
            continue
        is_failed = result.is_error and result.status == "done"
        yield command, _failed(_short_command(command), result) if is_failed else None


def _short_command(command: str) -> str:
    """A command as it is kept: with both of its ends, since long ones often begin alike."""
    if len(command) <= COMMAND_CHARACTERS:
        return command
    half = COMMAND_CHARACTERS // 2
    return f"{command[:half]} [… {len(command) - 2 * half} characters …] {command[-half:]}"


def _failed(command: str, result: ToolResult) -> FailedCommand:
    code = result.data.get("exit_code")
    lines = [line[:LINE_CHARACTERS] for line in result.text.rstrip().splitlines()[-LAST_LINES:]]
    return FailedCommand(
        command=command,
        exit_code=code if isinstance(code, int) else 0,
        output="\n".join(lines),
    )


def _finished(before: Sequence[str], gone: Sequence[LineEntry]) -> tuple[str, ...]:
    """The tasks that some list of the part that goes had as done."""
    found = list(before)
    for listed in _task_lists(gone):
        found += (str(each.get("text", "")) for each in listed if each.get("status") == "done")
    return _unique(list(filter(None, found)))[-DONE:]


def _newest_tasks(entries: Sequence[LineEntry]) -> tuple[Todo, ...] | None:
    """The list that was written last; None where there is none."""
    lists = list(_task_lists(entries))
    if not lists:
        return None
    return tuple(
        Todo(id=str(number), text=str(each.get("text", "")), status=_status(each.get("status")))
        for number, each in enumerate(lists[-1], 1)
    )


def _status(value: object) -> TodoStatus:
    try:
        status: TodoStatus = msgspec.convert(value, TodoStatus)
    except msgspec.ValidationError:
        return "pending"
    return status


def _marked(diff: str, mark: str) -> int:
    return sum(
        line.startswith(mark) and not line.startswith(mark * 3) for line in diff.splitlines()
    )


def _task_lists(entries: Sequence[LineEntry]) -> Iterable[list[dict[str, Any]]]:
    """The lists of tasks that were taken over: a call that was refused has changed none."""
    for entry in entries:
        for call in entry.node.calls:
            result = entry.results.get(call.call_uid)
            if call.name != "todo" or result is None or result.is_error or result.status != "done":
                continue
            # What a model wrote may have any form.
            todos = call.args.get("todos")
            listed = todos if isinstance(todos, list) else []
            yield [each for each in listed if isinstance(each, dict)]


# --- room --------------------------------------------------------------------------------


def _share(space: int, share: float) -> int:
    characters = space * CHARACTERS_PER_TOKEN
    return int(max(characters * share, min(LEAST_CHARACTERS, characters * LEAST_SHARE)))


def _newest(
    texts: Sequence[str], most: int, *, least: int = 0
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The newest of them that have room, `least` of them in any case, and those that have none."""
    used, first = 0, len(texts)
    while first > 0:
        used += len(texts[first - 1]) + 1
        if used > most and len(texts) - first >= least:
            break
        first -= 1
    return tuple(texts[first:]), tuple(texts[:first])


def _firmest(rules: Sequence[str], most: int) -> tuple[str, ...]:
    """The rules that have room: hints give way to orders, and then the older to the newer."""
    firm = [rule for rule in rules if is_firm(rule)]
    hints = [rule for rule in rules if not is_firm(rule)]
    kept = set(_newest((*hints, *firm), most)[0])
    return tuple(rule for rule in rules if rule in kept)


def bounded_message(text: str) -> str:
    """A message of the user as it is kept: the two ends of a long one."""
    if len(text) <= 4 * MESSAGE_ENDS:
        return text
    left = len(text) - 2 * MESSAGE_ENDS
    return f"{text[:MESSAGE_ENDS]}\n[… {left} characters …]\n{text[-MESSAGE_ENDS:]}"


def _unique(texts: Sequence[str]) -> tuple[str, ...]:
    """Each of them once, where it came last: what was said again is newer than what it answers."""
    return tuple(dict.fromkeys(reversed(texts)))[::-1]


# --- words -------------------------------------------------------------------------------


# What a program printed and how a file is called is the word of others.  None of their lines may
# begin at the margin, where it could be read as a block of the record: "Where the two differ, the
# record is right" would then hold for it too.


def _list(heading: str, texts: Iterable[str]) -> str:
    return "\n".join([f"[{heading}]", *(f"- {_marked_lines(text, '  ')}" for text in texts)])


def _marked_lines(text: str, mark: str) -> str:
    """The text with this before each of its lines but the first."""
    return f"\n{mark}".join(text.splitlines())


def _one_line(path: str) -> str:
    if path.isprintable():
        return path
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in path)


def _stat(file: EditedFile | None) -> str:
    return "" if file is None else f", +{file.added} −{file.removed}"


def _failure_block(failure: FailedCommand) -> str:
    how = f"exit code {failure.exit_code}" if failure.exit_code else "it did not end well"
    command, output = _marked_lines(failure.command, "  "), _marked_lines(failure.output, "| ")
    return f"[This command fails: {how}. Its last lines:]\n$ {command}\n| {output}"


def _is_open(status: str) -> bool:
    return status in ("pending", "in_progress")
