"""The input of a tool call as a text for the user's editor, and back."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from weft.errors import UsageError

_TEXTS = {"shell": "command", "write": "content", "edit": "new_string"}
"""The argument that a user wants to change; of other tools, it is the whole input."""


class EditableInput(NamedTuple):
    """An input that a user may change before they allow the call."""

    args: dict[str, Any]
    field: str
    """The argument that is edited; empty for all of them, as JSON."""
    text: str
    suffix: str

    def changed(self, written: str) -> dict[str, Any] | None:
        """The input with what the user wrote; None when that is what it was.

        Raises:
            UsageError: it is no input.
        """
        # Editors end a file with a newline, whether it had one or not.
        if written.endswith("\n") and not self.text.endswith("\n"):
            written = written[:-1]
        if not self.field:
            args = _object(written)
            return args if args != self.args else None
        if self.field == "command" and not written.strip():
            raise UsageError("that is an empty command; choose No to run nothing")
        return {**self.args, self.field: written} if written != self.text else None


def editable_input(tool: str, args: dict[str, Any]) -> EditableInput:
    """What a user edits of the input of this tool."""
    field = _TEXTS.get(tool, "")
    if not isinstance(args.get(field), str):
        return EditableInput(args, "", json.dumps(args, indent=2, ensure_ascii=False), ".json")
    # The editor colours by the name of the file.
    named = os.path.splitext(str(args.get("path", "")))[1] or ".txt"
    return EditableInput(args, field, args[field], ".sh" if tool == "shell" else named)


def _object(written: str) -> dict[str, Any]:
    try:
        args = json.loads(written)
    except ValueError as error:
        raise UsageError(f"that is not valid JSON: {error}") from error
    if not isinstance(args, dict):
        raise UsageError("that is not a JSON object; the input of a tool is one")
    return args
