"""A plan of architect mode as a text that a user can edit, and back.

TOML: every word stands where it can be seen, long texts keep their lines, and what is wrong with it
    is said with its line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from weft.errors import UsageError
from weft.view import steps_of

HEAD = """\
# The plan.  Change what you like, take steps out, put them in another order or add some; then \
save and close the editor.
# action is create, edit, delete or run.  A step may have a check (a shell command that fails when \
it is not done right)
# and a boundary (first and last line that may be changed, counted from 0): \
boundary = { first = 0, last = 9 }
"""

_ORDER = ("action", "file", "description", "check", "boundary", "details")


def as_text(plan: Mapping[str, Any]) -> str:
    """A plan for an editor."""
    pieces = [HEAD, f"summary = {_text(str(plan.get('summary', '')))}"]
    for step in steps_of(plan):
        lines = [f"{name} = {_value(step[name])}" for name in _ORDER if step.get(name)]
        pieces.append("\n".join(["\n[[steps]]", *lines]))
    return "\n".join(pieces) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{name} = {_value(each)}" for name, each in value.items())
        return f"{{ {inside} }}"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(value: str) -> str:
    if "\n" not in value:
        return _escaped(value)
    lines = [_escaped(line)[1:-1] for line in value.split("\n")]
    return '"""\n' + "\n".join(lines) + '"""'


def _escaped(value: str) -> str:
    """A JSON string is one of TOML, but for the one control character that JSON lets stand."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def from_text(text: str) -> dict[str, Any]:
    """The plan in a text.

    Raises:
        UsageError: it cannot be read; the message says where.
    """
    import tomllib  # only when a plan was edited

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the plan cannot be read: {error}") from error
