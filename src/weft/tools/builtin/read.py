"""`read`: lines of a text file, a notebook or a PDF, numbered; or an image."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect
from weft.messages import Image, image_info
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome
from weft.tools.did_you_mean import near_names
from weft.tools.files import action
from weft.tools.text import decode, in_lf, is_binary, is_pdf
from weft.workspace import FileState

DEFAULT_LINES = 2_000
MAX_LINE = 2_000
MAX_CHARACTERS = 100_000
MOST_SHOWN_PAGES = 20
"""Pages of a document that is shown as it is: each costs as much as a picture."""
_NOTEBOOK = "the cells of a notebook; its file is JSON, see it with the shell before you edit it"

_SECRETS = "only the text, in which secrets are masked; the document itself would show them"


class ReadArguments(ToolArguments, frozen=True, kw_only=True):
    """What `read` takes."""

    path: Annotated[str, Meta(description="File to read, relative to the project or absolute.")]
    offset: Annotated[int, Meta(ge=1, description="First line to show, counted from 1.")] = 1
    limit: Annotated[int, Meta(ge=1, description="How many lines to show at most.")] = DEFAULT_LINES


class ReadTool(Tool):
    """Shows a file to the model, and notes which version it saw."""

    name = "read"
    description = (
        "Read a text file, a notebook or a PDF, or look at a picture (PNG, JPEG, GIF, "
        "WebP). Lines come "
        "numbered as `     1\\ttext`; the numbers are not "
        f"part of the file. Shows up to {DEFAULT_LINES} lines; use offset and limit for "
        "more. Read a file before you edit it."
    )
    schema = late_schema(ReadArguments)
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
            shown, images = await _shown(state, given, context)
            if state.truncated:
                return ToolOutcome(text=shown, images=images)
            # Only a file that was read whole counts as known: an edit is checked against the hash
            # of all of it.
            context.reads.saw(state.path, state.hash)
            return ToolOutcome(text=shown, images=images, data={"read": {state.path: state.hash}})

        return PreparedCall(action=action(self.name, path, context, edits=False), run=run)


async def _shown(
    state: FileState, given: ReadArguments, context: ToolContext
) -> tuple[str, tuple[Image, ...]]:
    """What the model reads, and what it sees."""
    # Content decides, not the name.  A text may begin with the letters of a format (`GIF89a` in a
    # test file).
    if image_info(state.data) is not None and is_binary(state.data):
        return await _picture(state, context)
    if is_pdf(state.data):
        return await _document(state, given, context)
    if state.path.endswith(".ipynb"):
        from weft.tools.notebook import notebook_text  # few files are notebooks

        if (cells := notebook_text(state.data)) is not None:
            shown = render(state, given.offset, given.limit, text=cells)
            return f"{shown}\n({_NOTEBOOK})", ()
    return render(state, given.offset, given.limit), ()


async def _document(
    state: FileState, given: ReadArguments, context: ToolContext
) -> tuple[str, tuple[Image, ...]]:
    """The text of a PDF, and the document itself for models that can look at it.

    Who reads on from a line has seen it, and a long one would fill the window.
    """
    from weft.tools.pdf import MAX_PDF_FILE, read_pdf, without_text  # few files are documents

    whole = state
    if state.truncated:
        whole = await context.workspace.read(state.path, limit=MAX_PDF_FILE)
    if whole.truncated:
        raise FinalToolError(f"{state.path!r} is too large: {state.size:,} bytes of PDF")
    found = await read_pdf(
        whole.data, state.path, runner=context.runner, cwd=context.workspace.root
    )
    is_whole = given.offset == 1 and given.limit >= DEFAULT_LINES
    can_be_shown = is_whole and found.can_be_shown and found.pages <= MOST_SHOWN_PAGES
    # All of the text is asked about, and not only the lines below: the document shows all of it.
    has_secrets = can_be_shown and await _has_secrets(found.text, context)
    images = (found.shown_as(state.path),) if can_be_shown and not has_secrets else ()
    if not found.text and not images:
        raise FinalToolError(without_text(state.path, found.pages))
    if not found.text:
        return without_text(state.path, found.pages), images
    shown = render(whole, given.offset, given.limit, text=found.text)
    return f"{shown}\n({_SECRETS})" if has_secrets else shown, images


async def _has_secrets(text: str, context: ToolContext) -> bool:
    return context.masked is not None and await context.masked(text) != text


async def _picture(state: FileState, context: ToolContext) -> tuple[str, tuple[Image, ...]]:
    from weft.tools.pictures import MAX_PICTURE_FILE, PictureProblem, fitted  # slow to load

    whole = state
    if state.truncated:
        # Text is cut where pictures are just large.
        whole = await context.workspace.read(state.path, limit=MAX_PICTURE_FILE)
    found = PictureProblem("is too large") if whole.truncated else await fitted(whole.data)
    if isinstance(found, PictureProblem):
        raise FinalToolError(f"{state.path!r} cannot be shown: it {found.text}")
    size = f"{found.before.width} x {found.before.height}, {state.size:,} bytes"
    note = f" ({found.note})" if found.note else ""
    data = base64.b64encode(found.data).decode()
    image = Image(media_type=found.info.media_type, data=data, name=state.path)
    kind = found.before.media_type
    return f"{state.path}: {kind}, {size}. The image itself is shown with this{note}.", (image,)


def render(state: FileState, offset: int, limit: int, *, text: str | None = None) -> str:
    """The asked-for lines with their numbers, and a last line that says what is not shown.

    `text` is what the file says, where that is not what its bytes are.

    Raises:
        FinalToolError: the file is binary, or ends before `offset`.
    """
    if not state.data:
        return f"(the file {state.path} is empty)"
    lines = in_lf(_text_of(state) if text is None else text).split("\n")
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


def _text_of(state: FileState) -> str:
    decoded = decode(state.data)
    if decoded is None:
        raise FinalToolError(
            f"{state.path!r} is a binary file of {state.size:,} bytes; it cannot be shown as text"
        )
    return decoded.text


def _numbered(lines: list[str], first: int, last: int) -> tuple[str, int]:
    """Numbered lines from `first` on, to `last` or as far as there is room.

    And the last one shown.
    """
    wanted = lines[first - 1 : last]
    lengths = list(map(len, wanted))
    # Nearly every file: all of it fits, which is known without a look at each line in Python.
    if sum(lengths) + 8 * len(lengths) <= MAX_CHARACTERS and max(lengths, default=0) <= MAX_LINE:
        return "\n".join([f"{at:6}\t{line}" for at, line in enumerate(wanted, first)]), last
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
