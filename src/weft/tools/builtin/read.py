"""`read`: lines of a text file, numbered; or an image."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect
from weft.messages import Image, ImageInfo, image_info, image_problem
from weft.tools.arguments import ToolArguments, parse, schema_of
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome
from weft.tools.did_you_mean import near_names
from weft.tools.files import action
from weft.tools.text import decode, in_lf, is_binary
from weft.workspace import FileState

DEFAULT_LINES = 2_000
MAX_LINE = 2_000
MAX_CHARACTERS = 100_000


class ReadArguments(ToolArguments, frozen=True, kw_only=True):
    """What `read` takes."""

    path: Annotated[str, Meta(description="File to read, relative to the project or absolute.")]
    offset: Annotated[int, Meta(ge=1, description="First line to show, counted from 1.")] = 1
    limit: Annotated[int, Meta(ge=1, description="How many lines to show at most.")] = DEFAULT_LINES


class ReadTool(Tool):
    """Shows a file to the model, and notes which version it saw."""

    name = "read"
    description = (
        "Read a text file, or look at a picture (PNG, JPEG, GIF, WebP). Lines come "
        "numbered as `     1\\ttext`; the numbers are not "
        f"part of the file. Shows up to {DEFAULT_LINES} lines; use offset and limit for "
        "more. Read a file before you edit it."
    )
    schema = schema_of(ReadArguments)
    effect: Effect = "pure"
    timeout_seconds = 30.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(ReadArguments, args)
        path = await context.workspace.resolve(given.path)

        async def run() -> ToolOutcome:
            state = await context.workspace.peek(path)
            if state is None:
                near = await near_names(path, context.workspace)
                raise FinalToolError(f"there is no file {path!r}{near}")
            info = shown_image(state)
            images = (_image(state, info),) if info else ()
            shown = _about(state, info) if info else render(state, given.offset, given.limit)
            if state.truncated:
                return ToolOutcome(text=shown)
            # Only a file that was read whole counts as known: an edit is checked against the hash
            # of all of it.
            context.reads.saw(state.path, state.hash)
            return ToolOutcome(text=shown, images=images, data={"read": {state.path: state.hash}})

        return PreparedCall(action=action(self.name, path, context, edits=False), run=run)


def shown_image(state: FileState) -> ImageInfo | None:
    """What is known of the image that a file holds; None when it holds none.

    Raises:
        FinalToolError: it is too large for models to see.
    """
    info = image_info(state.data)
    # A text may begin with the letters of a format (`GIF89a` in a test file).
    if info is None or not is_binary(state.data):
        return None
    if problem := image_problem(info, state.size):
        raise FinalToolError(
            f"{state.path!r} cannot be shown: {problem}. Make a smaller copy of it with the shell"
        )
    return info


def _image(state: FileState, info: ImageInfo) -> Image:
    data = base64.b64encode(state.data).decode()
    return Image(media_type=info.media_type, data=data, name=state.path)


def _about(state: FileState, info: ImageInfo) -> str:
    size = f"{info.width} x {info.height}, {state.size:,} bytes"
    return f"{state.path}: {info.media_type}, {size}. The image itself is shown with this."


def render(state: FileState, offset: int, limit: int) -> str:
    """The asked-for lines with their numbers, and a last line that says what is not shown.

    Raises:
        FinalToolError: the file is binary, or ends before `offset`.
    """
    decoded = decode(state.data)
    if decoded is None:
        raise FinalToolError(
            f"{state.path!r} is a binary file of {state.size:,} bytes; it cannot be shown as text"
        )
    if not state.data:
        return f"(the file {state.path} is empty)"
    lines = in_lf(decoded.text).split("\n")
    if lines[-1] == "":
        lines.pop()  # the end of the last line, not a line of its own
    if offset > len(lines) and state.truncated:
        raise FinalToolError(
            f"{state.path!r} is too large: of its {state.size:,} bytes only the first "
            f"{len(state.data):,}, {len(lines)} lines, can be "
            "read here; use grep or the shell for the rest"
        )
    if offset > len(lines):
        raise FinalToolError(
            f"{state.path!r} has only {len(lines)} lines; offset {offset} is beyond its end"
        )
    body, last = _numbered(lines, offset, min(offset + limit - 1, len(lines)))
    return body + _rest(state, last, len(lines))


def _numbered(lines: list[str], first: int, last: int) -> tuple[str, int]:
    """Numbered lines from `first` on, to `last` or as far as there is room.

    And the last one shown.
    """
    shown: list[str] = []
    room = MAX_CHARACTERS
    for number in range(first, last + 1):
        line = lines[number - 1]
        if len(line) > MAX_LINE:
            line = f"{line[:MAX_LINE]} (… {len(line) - MAX_LINE} more characters)"
        # The number, the tab and the line end count as well.
        room -= len(line) + 8
        if room < 0 and shown:
            return "\n".join(shown), number - 1
        shown.append(f"{number:6}\t{line}")
    return "\n".join(shown), last


def _rest(state: FileState, last: int, count: int) -> str:
    if state.truncated:
        return (
            f"\n(the file is too large: {state.size:,} bytes, of which only the first "
            f"{len(state.data):,} can be read "
            f"here; shown to line {last}. Use grep or the shell for the rest)"
        )
    if last < count:
        return f"\n(lines {last + 1} to {count} are not shown; use offset={last + 1})"
    return ""
