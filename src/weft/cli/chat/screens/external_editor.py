"""The user's own editor on a text of ours."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile

from weft.errors import UsageError

EDITORS = ("/usr/bin/editor", "/usr/bin/nano", "/usr/bin/vim", "/usr/bin/vi")
"""What is tried where neither $VISUAL nor $EDITOR is set."""


def edited(text: str, suffix: str) -> str:
    """The text as the user left it; blocks until they are done.

    Raises:
        UsageError: there is no editor, or it failed.
    """
    handle, path = tempfile.mkstemp(prefix="weft-", suffix=suffix)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        command = _editor()
        try:
            code = subprocess.call([*command, path])
        except OSError as error:
            raise UsageError(
                f"the editor {command[0]!r} cannot be started: {error.strerror}"
            ) from error
        if code:
            raise UsageError(f"the editor {command[0]!r} failed ({code}); nothing was changed")
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    finally:
        os.unlink(path)


def _editor() -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        if words := shlex.split(os.environ.get(name) or ""):
            return words
    for path in EDITORS:
        if os.access(path, os.X_OK):
            return [path]
    raise UsageError("there is no editor; set $VISUAL or $EDITOR")
