"""What the calls of some messages show: checks that were run, searches, and texts written.

A run counts as evidence only with the exit code of the check itself and with the hash of the files
that it left; both stand in its result.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from weft.evidence.command_kinds import CheckCommand, CheckKind, checks_in, is_test
from weft.ids import CallUid
from weft.messages import Node, ToolCall, ToolResult

MessageCalls: TypeAlias = tuple[Node, Mapping[CallUid, ToolResult], Mapping[str, float]]
"""A message, the results of its calls, and when each came."""

_WRITES: Final = frozenset({"write", "edit", "multi_edit", "apply_patch"})
_MOST_OUTPUT: Final = 60_000
_HIT: Final = re.compile(r"^(?:\./)?([^:\n]+):(\d+):(.*)$")
_SEARCHERS: Final = frozenset({"rg", "grep", "ag", "ack"})
_WIDE: Final = re.compile(r"-(?:[rRnHiIswFEn]+|-(?:line-number|recursive|no-heading|ignore-case|"
                          r"word-regexp|fixed-strings|hidden|color=never))")  # fmt: skip


class CommandRun(msgspec.Struct, frozen=True, kw_only=True):
    """A check that was run, as it ended."""

    check: CheckCommand
    command: str
    """All of the command line."""
    exit_code: int | None
    """None where it did not come to its end."""
    tree: str
    """The hash of the project's files behind it; empty where that is not known."""
    output: str
    at: float
    call: CallUid

    @property
    def kind(self) -> CheckKind:
        return self.check.kind

    @property
    def has_passed(self) -> bool:
        return self.exit_code == 0


class TextSearch(msgspec.Struct, frozen=True, kw_only=True):
    """A search of the whole project for a text, and what it found."""

    pattern: str
    hits: tuple[tuple[str, int, str], ...]
    """File, line and text of each."""
    is_complete: bool
    """It looked at all files of the project, and no hit was left out."""
    at: float
    call: CallUid
    words: str
    """The search as it is shown."""
    tree: str = ""
    """The hash of the files that it looked at; empty where it does not say."""


class WrittenText(msgspec.Struct, frozen=True, kw_only=True):
    """What a call put into a file."""

    path: str
    text: str
    at: float


class EvidenceRuns(msgspec.Struct, frozen=True, kw_only=True):
    """All that some messages show, oldest first."""

    checks: tuple[CommandRun, ...] = ()
    unclear: tuple[CommandRun, ...] = ()
    """Commands that run tests as far as their words tell, whose exit code may be another
    program's.
    """
    searches: tuple[TextSearch, ...] = ()
    written: tuple[WrittenText, ...] = ()
    turn_began: float = 0.0
    files_changed: float = 0.0
    """When a tool of the session last changed a file."""
    last_tree: str = ""
    """The hash of the files at the end of the last turn that had an effect."""

    @property
    def written_in_turn(self) -> tuple[WrittenText, ...]:
        return tuple(each for each in self.written if each.at >= self.turn_began)


class _Call(msgspec.Struct, frozen=True):
    name: str
    args: Mapping[str, Any]
    result: ToolResult
    at: float
    uid: CallUid


def runs_of(messages: Iterable[MessageCalls], root: str = "") -> EvidenceRuns:
    """What the calls of these messages show, whatever session they are of; `root` is the project's
    folder.
    """
    calls = sorted(_calls(messages), key=lambda call: call.at)
    checks = [run for call in calls for run in _checks(call, root)]
    return EvidenceRuns(
        checks=tuple(checks),
        unclear=tuple(run for call in calls for run in _unclear(call, root)),
        searches=tuple(found for call in calls if (found := _search(call, root)) is not None),
        written=tuple(each for call in calls for each in _written(call)),
    )


def _calls(messages: Iterable[MessageCalls]) -> Iterator[_Call]:
    for node, results, times in messages:
        for part in node.parts:
            if isinstance(part, ToolCall) and (result := results.get(part.call_uid)) is not None:
                at = times.get(part.call_uid, 0.0)
                yield _Call(part.name, part.args, result, at, part.call_uid)


def _checks(call: _Call, root: str) -> Iterator[CommandRun]:
    if call.name == "shell":
        command = str(call.args.get("command", ""))
        for check in checks_in(command, root):
            yield _run(call, command, check, root)


def _unclear(call: _Call, root: str) -> Iterator[CommandRun]:
    command = str(call.args.get("command", ""))
    if call.name == "shell" and not checks_in(command) and is_test(command):
        check = CheckCommand(kind="test", program="", text=command, narrow=(command,))
        yield _run(call, command, check, root)


def _run(call: _Call, command: str, check: CheckCommand, root: str) -> CommandRun:
    data = call.result.data if call.result.status == "done" else {}
    code = data.get("exit_code")
    has_ended = isinstance(code, int) and not data.get("timed_out")
    cwd = str(call.args.get("cwd", ".") or ".").rstrip("/")
    if cwd not in (".", root):
        check = msgspec.structs.replace(check, narrow=(*check.narrow, cwd))
    return CommandRun(
        check=check,
        command=command,
        exit_code=code if has_ended else None,
        tree=str(data.get("tree") or ""),
        output=str(data.get("output") or call.result.text)[-_MOST_OUTPUT:],
        at=call.at,
        call=call.uid,
    )


def _search(call: _Call, root: str) -> TextSearch | None:
    if call.result.status != "done":
        return None
    if call.name == "grep":
        return _grep(call)
    return _searched_by_command(call, root) if call.name == "shell" else None


def _grep(call: _Call) -> TextSearch | None:
    args = call.args
    text = call.result.text
    is_whole = str(args.get("path", ".") or ".") in (".", "./") and not args.get("glob")
    hits, rest = _hits(text)
    return TextSearch(
        pattern=str(args.get("pattern", "")),
        hits=hits,
        # A last line that is no hit says that there are more, or that the search was stopped.
        is_complete=is_whole and (not rest if hits else text == "(no match)"),
        at=call.at,
        call=call.uid,
        words=f"grep {args.get('pattern', '')}",
    )


def _searched_by_command(call: _Call, root: str) -> TextSearch | None:
    command = str(call.args.get("command", "")).strip().removeprefix(f"cd {root} && ")
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if len(words) > 1 and words[0] == "git" and words[1] == "grep":
        words = words[1:]
    if not words or words[0] not in _SEARCHERS or re.search(r"[|;&<>`]|\$\(", command):
        return None
    plain = [word for word in words[1:] if not _WIDE.fullmatch(word)]
    code = call.result.data.get("exit_code")
    # Without -r, grep reads what it is fed; with a file type, a glob or a place it looks at a part.
    is_wide = (
        words[0] != "grep"
        or command.startswith("git ")
        or any(
            word.startswith("-") and not word.startswith("--") and ("r" in word or "R" in word)
            for word in words[1:]
        )
    )
    has_place = len(plain) == 2 and plain[1].rstrip("/") in (".", root)
    hits, rest = _hits(call.result.text)
    return TextSearch(
        pattern=plain[0] if plain else "",
        hits=hits,
        is_complete=is_wide
        and (len(plain) == 1 or has_place)
        and code in (0, 1)
        and (bool(hits) if code == 0 else not hits)
        and rest <= 1
        and "[" not in call.result.text[-80:],
        at=call.at,
        call=call.uid,
        words=command,
        tree=str(call.result.data.get("tree") or ""),
    )


def _hits(text: str) -> tuple[tuple[tuple[str, int, str], ...], int]:
    """The hits of a search, and how many other lines there are."""
    found: list[tuple[str, int, str]] = []
    rest = 0
    for line in text.split("\n"):
        if hit := _HIT.match(line):
            found.append((hit[1], int(hit[2]), hit[3]))
        elif line.strip():
            rest += 1
    return tuple(found), rest


def _written(call: _Call) -> Iterator[WrittenText]:
    if call.name not in _WRITES or call.result.status != "done" or call.result.is_error:
        return
    args = call.args
    path = str(args.get("path", ""))
    for text in _texts(args):
        yield WrittenText(path=path, text=text, at=call.at)


def _texts(args: Mapping[str, Any]) -> Iterator[str]:
    for name in ("content", "new_string", "patch"):
        if isinstance(text := args.get(name), str):
            yield text
    edits = args.get("edits")
    for each in edits if isinstance(edits, list) else ():
        if isinstance(each, dict):
            yield from _texts(each)
