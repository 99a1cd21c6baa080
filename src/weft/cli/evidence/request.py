"""`weft request [ID] [TURN]`: what the model was sent, and what each part of it cost."""

from __future__ import annotations

import sys

import msgspec

from weft.api import SentRequest
from weft.app import App
from weft.cli.commands.table import print_table, when
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.sanitize import clean, clean_line
from weft.cli.session_options import named_or_last
from weft.cli.stdio import write_line, write_pretty
from weft.errors import UsageError
from weft.evidence import PART_HEAD, cache_lines, part_rows


def run(arguments: ParsedArguments) -> int:
    """Show the request of a turn."""
    return with_app(arguments, lambda app: _show(app, arguments))


async def _show(app: App, arguments: ParsedArguments) -> int:
    words = arguments.words
    if len(words) > 2:
        raise UsageError("`weft request` takes [ID] [TURN]")
    # A number alone is a turn: no id looks like one.
    if len(words) == 1 and isinstance(turn_of(words), int):
        words = ("", *words)
    named = words[:1] if words and words[0] else ()
    session = await app.sessions.get(await named_or_last(app, named, "request"))
    given = arguments.whole("call")
    found = await session.request(
        turn_of(words[1:]),
        -1 if given is None else given,
        diff=arguments.flag("diff"),
    )
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(found))
    elif arguments.flag("raw"):
        write_body(found.body)
    elif arguments.flag("diff"):
        for line in found.diff.splitlines() or ["the same request as before"]:
            write_line(clean(line))
    else:
        _print(found)
    return OK


def write_body(body: str) -> None:
    """A body as it is; to a terminal, what that would obey is not written."""
    if sys.stdout.isatty():
        write_line(clean(body))
        return
    # A masked byte would make it another request.
    sys.stdout.flush()
    sys.stdout.buffer.write(body.encode())
    sys.stdout.buffer.flush()


def turn_of(words: tuple[str, ...]) -> str | int | None:
    """A turn by its number, or by the id of a message of it."""
    if not words:
        return None
    is_number = words[0].lstrip("-").isdecimal() and len(words[0]) < 10
    return int(words[0]) if is_number else words[0]


def _print(found: SentRequest) -> None:
    whose = f"{found.model}, effort {found.thinking}, {when(found.at)}"
    which = f"request {found.call + 1} of {found.calls} in this turn (--call {found.call})"
    write_line(clean_line(f"{which}: {whose}"))
    write_line(f"{found.size:,} bytes: {found.said}")
    if found.excluded:
        write_line(f"taken out: {', '.join(found.excluded)}")
    write_line("")
    print_table(part_rows(found.parts, has_before=found.change is not None), head=PART_HEAD)
    write_line("")
    if (change := found.change) is not None:
        write_line(
            f"since the request before: {change.kept_messages} messages kept, "
            f"{change.removed_messages} removed, {change.added_messages} added"
        )
    for line in cache_lines(found.cache):
        write_line(clean_line(line))
