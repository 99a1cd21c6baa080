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

    Bytes that are no UTF-8 (as surrogates) and ends of lines come back as they were given.

    Raises:
        UsageError: there is no editor, or it failed.
    """
    handle, path = tempfile.mkstemp(prefix="weft-", suffix=suffix)
    try:
        with os.fdopen(handle, "wb") as written:
            written.write(text.encode("utf-8", "surrogateescape"))
        command = _editor()
        try:
            code = subprocess.call([*command, path])
        except OSError as error:
            raise UsageError(
                f"the editor {command[0]!r} cannot be started: {error.strerror}"
            ) from error
        if code:
            raise UsageError(f"the editor {command[0]!r} failed ({code}); nothing was changed")
        # A text that came without them gets neither from an editor: a message with a surrogate
        # could not be stored.
        errors = "replace" if _is_unicode(text) else "surrogateescape"
        newline = "" if "\r" in text else None
        with open(path, encoding="utf-8", errors=errors, newline=newline) as file:
            return file.read()
    finally:
        os.unlink(path)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= each <= "\udfff" for each in text)


def _editor() -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        if words := shlex.split(os.environ.get(name) or ""):
            return words
    for path in EDITORS:
        if os.access(path, os.X_OK):
            return [path]
    raise UsageError("there is no editor; set $VISUAL or $EDITOR")
