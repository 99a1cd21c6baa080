"""Edits of a TOML document as text: one value is set or taken out, every other byte stays.

A parser that writes back what it read would lose comments and order.  Here the document is only cut
into statements, and the one that is meant is replaced; what comes out is parsed again, and a
document that would say anything else than before is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from weft.config.documents import read_toml
from weft.errors import UsageError

_KEY_PART = re.compile(r"""\s*(?:([A-Za-z0-9_-]+)|"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)')\s*(\.?)""")


class TomlStatement(NamedTuple):
    """A table's header, or a key with its value, as places in the text."""

    start: int
    """Where its first line begins."""
    value: tuple[int, int]
    """Where its value stands; for a header an empty range."""
    end: int
    """Behind its last line's end."""
    path: tuple[str, ...]
    """The whole name: that of its table, and its own."""
    is_header: bool = False
    is_array: bool = False
    """It is, or stands in, a table of a list (`[[hooks.Stop]]`)."""


def toml_text(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    if isinstance(value, str):
        return _quoted(value)
    return repr(value)


def _quoted(text: str) -> str:
    named = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}

    def escaped(letter: str) -> str:
        # TOML takes no control characters, DEL included.
        is_control = letter < " " or letter == "\x7f"
        return named.get(letter) or (f"\\u{ord(letter):04x}" if is_control else letter)

    return f'"{"".join(map(escaped, text))}"'


def with_value(text: str, name: str, value: Any, *, source: str) -> str:
    """The document with a setting set; `source` says which file it is.

    Raises:
        UsageError: it is no TOML, or has the setting in a form that is not edited here.
    """
    path = tuple(name.split("."))
    statements = list(_statements(text))
    written = toml_text(value)
    place = _find(statements, path)
    if place is not None:
        start, end = place.value
        changed = text[:start] + written + text[end:]
    else:
        changed = _inserted(text, statements, path, written)
    _check(text, changed, path, value, source)
    return changed


def without_value(text: str, name: str, *, source: str) -> str | None:
    """The document without a setting; None when it does not have it.

    Raises:
        UsageError: as above.
    """
    path = tuple(name.split("."))
    if _value_at(read_toml(text.encode(), source), path) is None:
        return None
    place = _find(list(_statements(text)), path)
    if place is None:
        raise _by_hand(path, source)
    changed = text[: place.start] + text[place.end :]
    _check(text, changed, path, None, source)
    return changed


# --- where it goes ---------------------------------------------------------------------


def _find(statements: list[TomlStatement], path: tuple[str, ...]) -> TomlStatement | None:
    return next((each for each in statements if each.path == path and not each.is_header), None)


def _inserted(
    text: str, statements: list[TomlStatement], path: tuple[str, ...], written: str
) -> str:
    """A setting that is not there yet: beside its neighbours, where it has any."""
    newline = "\r\n" if "\r\n" in text else "\n"
    table = path[:-1]
    header = next(
        (n for n, each in enumerate(statements) if each.is_header and each.path == table), None
    )
    if table and header is not None and not statements[header].is_array:
        at = _last_of(statements, header).end
        return _line_in(text, at, f"{path[-1]} = {written}", newline)
    first = next((each for each in statements if each.is_header), None)
    root = statements[: statements.index(first)] if first is not None else statements
    beside = [each for each in root if table and each.path[:-1] == table]
    if beside or first is None:
        end = beside[-1].end if beside else len(text)
        return _line_in(text, end, f"{'.'.join(path)} = {written}", newline)
    if table:
        # A dotted name at the end of the file would belong to the last table there.
        gap = "" if text.endswith(newline * 2) else newline
        opened = f"{gap}[{'.'.join(table)}]{newline}{path[-1]} = {written}"
        return _line_in(text, len(text), opened, newline)
    if root:
        return _line_in(text, root[-1].end, f"{path[-1]} = {written}", newline)
    at_top = _above(text, first.start)
    return f"{text[:at_top]}{path[-1]} = {written}{newline}{newline}{text[at_top:]}"


def _last_of(statements: list[TomlStatement], header: int) -> TomlStatement:
    """The last statement of the table that begins with this header."""
    last = statements[header]
    for each in statements[header + 1 :]:
        if each.is_header:
            break
        last = each
    return last


def _line_in(text: str, at: int, line: str, newline: str) -> str:
    before = text[:at]
    gap = newline if before and not before.endswith("\n") else ""
    return f"{before}{gap}{line}{newline}{text[at:]}"


def _above(text: str, start: int) -> int:
    """Where the comment lines begin that stand directly above a place."""
    while start:
        line = text.rfind("\n", 0, start - 1) + 1
        if not text[line:start].lstrip().startswith("#"):
            break
        start = line
    return start


# --- that nothing else changed ---------------------------------------------------------


def _check(before: str, after: str, path: tuple[str, ...], value: Any, source: str) -> None:
    expected = read_toml(before.encode(), source)
    _put(expected, path, value)
    try:
        is_so = _without_empty(read_toml(after.encode(), source)) == _without_empty(expected)
    except UsageError:
        is_so = False
    if not is_so:
        raise _by_hand(path, source)


def _put(tables: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        inner = tables.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        tables = inner
    if value is None:
        tables.pop(path[-1], None)
    else:
        tables[path[-1]] = list(value) if isinstance(value, tuple) else value


def _without_empty(tables: dict[str, Any]) -> dict[str, Any]:
    """Without tables that say nothing: taking the last value out leaves its header."""
    found = {
        name: _without_empty(value) if isinstance(value, dict) else value
        for name, value in tables.items()
    }
    return {name: value for name, value in found.items() if value != {}}


def _value_at(tables: dict[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = tables
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _by_hand(path: tuple[str, ...], source: str) -> UsageError:
    return UsageError(
        f"{'.'.join(path)} stands in {source} in a form that is not changed here; edit the file"
    )


# --- statements ------------------------------------------------------------------------


def _statements(text: str) -> Iterator[TomlStatement]:
    """Every statement, in order; of a document that was parsed before."""
    at = 1 if text.startswith("\ufeff") else 0
    table: tuple[str, ...] = ()
    in_array = False
    while at < len(text):
        line_end = _line_end(text, at)
        line = text[at:line_end].strip()
        if not line or line.startswith("#"):
            at = line_end
        elif line.startswith("["):
            in_array = line.startswith("[[")
            table, _ = _key(text, text.index("[", at) + (2 if in_array else 1))
            yield TomlStatement(at, (line_end, line_end), line_end, table, True, in_array)
            at = line_end
        else:
            key, behind = _key(text, at)
            start = behind + 1 + len(text[behind + 1 :]) - len(text[behind + 1 :].lstrip(" \t"))
            end = _value_end(text, start)
            last = _line_end(text, end)
            yield TomlStatement(at, (start, end), last, (*table, *key), False, in_array)
            at = last


def _line_end(text: str, at: int) -> int:
    found = text.find("\n", at)
    return len(text) if found < 0 else found + 1


def _key(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """The parts of a key, and the place behind it."""
    parts: list[str] = []
    while (found := _KEY_PART.match(text, at)) is not None:
        parts.append(next(part for part in found.groups()[:3] if part is not None))
        at = found.end()
        if not found.group(4):
            break
    return tuple(parts), at


def _value_end(text: str, at: int) -> int:
    """Where a value ends: at the end of its line, or of the brackets and quotes that it opens."""
    depth, last = 0, at
    while at < len(text):
        letter = text[at]
        if letter in "\"'":
            at = last = _string_end(text, at)
            continue
        if letter == "#":
            at = _line_end(text, at) - 1 if "\n" in text[at:] else len(text)
            continue
        if letter == "\n" and not depth:
            break
        depth += (letter in "[{") - (letter in "]}")
        at += 1
        if not letter.isspace():
            last = at
    return last


def _string_end(text: str, at: int) -> int:
    quote = text[at]
    mark = quote * 3 if text.startswith(quote * 3, at) else quote
    at += len(mark)
    while at < len(text) and not text.startswith(mark, at):
        at += 2 if text[at] == "\\" and quote == '"' else 1
    at += len(mark)
    # Up to two quotes may stand directly before the three that end it.
    while len(mark) == 3 and text.startswith(quote, at):
        at += 1
    return at
