"""What came of a turn, in words: for standard output, files and the sentence on standard error."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from weft.api.results import Result
from weft.app import App
from weft.cli.exit_codes import FAILED, CommandExit
from weft.cli.session_options import text_file
from weft.errors import UsageError
from weft.events import Event, NewMessage
from weft.messages import Text


def answer_text(result: Result, *, as_json: bool) -> str:
    """What the run is about: the structured result where one was asked for (`as_json`), else the
    words.  A plan that was carried out has both.
    """
    if result.deliverable is None or (result.text and not as_json):
        return result.text
    return msgspec.json.encode(result.deliverable).decode()


def with_whole_text(result: Result) -> Result:
    """Long answers come shortened in events; the history has them whole."""
    for message in reversed(result.messages):
        if result.text and message.role == "assistant" and message.content:
            if len(message.content) > len(result.text) and message.content.startswith(result.text):
                return msgspec.structs.replace(result, text=message.content)
            break
    return result


async def whole(event: Event, app: App) -> Event:
    """The event with long texts in full: the log keeps those beside it, and events carry only their
    beginning.
    """
    if not isinstance(event, NewMessage) or not any(
        isinstance(part, Text) and part.blob for part in event.node.parts
    ):
        return event
    parts = []
    for part in event.node.parts:
        if isinstance(part, Text) and part.blob is not None:
            data = await app.store.blob(part.blob)
            # A blob that is gone leaves the beginning, which is better than nothing.
            if data is not None:
                said = data.decode("utf-8", "replace")
                part = msgspec.structs.replace(part, text=said, blob=None)
        parts.append(part)
    return msgspec.structs.replace(
        event, node=msgspec.structs.replace(event.node, parts=tuple(parts))
    )


def read_schema(given: str) -> dict[str, Any]:
    """A JSON Schema, from a file or from the text itself.

    Raises:
        UsageError: it is neither.
    """
    text = given
    if not given.lstrip().startswith("{"):
        text = text_file(given, f"the schema {given!r}")
    try:
        schema = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise UsageError(f"--json-schema is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise UsageError("--json-schema must be a JSON object")
    return schema


def check_file(path: str) -> None:
    """See that an answer can be written to a file, before there is one.

    Raises:
        UsageError: it cannot; the model was not asked.
    """
    place = os.path.expanduser(path)
    folder = os.path.dirname(place) or "."
    if os.path.isdir(place):
        why = "it is a folder"
    elif not os.path.isdir(folder):
        why = f"there is no folder {folder!r}"
    elif not os.access(place if os.path.lexists(place) else folder, os.W_OK):
        why = "permission denied"
    else:
        why = "" if os.path.lexists(place) else _why_not_made(place)
    if why:
        raise UsageError(f"cannot write the answer to {path!r}: {why}")


def _why_not_made(place: str) -> str:
    """Why no file can be made there: folders of the kernel, and full or odd disks, say it only when
    it is tried.  Empty when it can be; the file is removed again.
    """
    try:
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(place)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def write_file(path: str, text: str) -> None:
    """Write an answer to a file.

    Raises:
        CommandExit: it cannot be written.
    """
    try:
        with open(os.path.expanduser(path), "w", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") or not text else f"{text}\n")
    except OSError as error:
        raise CommandExit(
            FAILED, f"cannot write the answer to {path!r}: {error.strerror}"
        ) from error
