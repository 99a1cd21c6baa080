"""`lsp` and `rename`: what language servers know of the code, and a rename by it.

Offered only where a language server is there; loaded then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta

from weft.errors import BadArguments, FinalToolError, RetryableToolError, ToolError
from weft.events import Effect
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome
from weft.tools.file_changes import FileChange, prepare_changes
from weft.tools.files import EditTarget, action, place_of, target_of
from weft.tools.text import DecodedText, decode

if TYPE_CHECKING:
    from weft.lsp import CodePlace, CodeQueries, CodeSymbol, OtherMentions, RenameEdits, TextEdit

MOST_LINES: Final = 100
MOST_FILES: Final = 100
_MOST_CHARACTERS: Final = 200
_MOST_NAMED: Final = 10
_HOVER_CHARACTERS: Final = 4_000

_PATH = "A file of the project; for a search of all symbols, any file of the language."
_LINE = "The line in which the name stands, from 1; left out, its first place in the file counts."
_SYMBOL = "The name, as it stands there."


class LspArguments(ToolArguments, frozen=True, kw_only=True):
    """What `lsp` takes."""

    action: Annotated[
        Literal["definition", "references", "hover", "symbols", "diagnostics"],
        Meta(
            description="definition, references, hover (type and documentation) of a name; "
            "symbols of a file, or of the project with query; diagnostics of a file."
        ),
    ]
    path: Annotated[str, Meta(description=_PATH)]
    symbol: Annotated[str, Meta(description=_SYMBOL)] = ""
    line: Annotated[int, Meta(ge=0, description=_LINE)] = 0
    query: Annotated[str, Meta(description="With symbols: part of a name to look for.")] = ""


class RenameArguments(ToolArguments, frozen=True, kw_only=True):
    """What `rename` takes."""

    path: Annotated[str, Meta(description="A file in which the name stands.")]
    symbol: Annotated[str, Meta(min_length=1, description=_SYMBOL)]
    new_name: Annotated[str, Meta(min_length=1, description="The name to give it everywhere.")]
    line: Annotated[int, Meta(ge=0, description=_LINE)] = 0


class LspTool(Tool):
    """Asks the language server about code."""

    name = "lsp"
    description = (
        "Ask the language server about code: where a name is defined or used, its type and "
        "documentation, the symbols of a file or of the project, the problems of a file. More "
        "exact than a search for text."
    )
    schema = late_schema(LspArguments)
    effect: Effect = "pure"
    timeout_seconds = 90.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(LspArguments, args)
        if given.action in ("definition", "references", "hover") and not given.symbol:
            raise BadArguments(f"{given.action} needs a symbol")
        path = await context.workspace.resolve(given.path)

        async def run() -> ToolOutcome:
            queries = await _queries(context)
            lines = await _answer(given, place_of(path, context), queries, context)
            return ToolOutcome(text="\n".join(lines))

        return PreparedCall(action=action(self.name, path, context, edits=False), run=run)


async def _queries(context: ToolContext) -> CodeQueries:
    if context.code is None:
        raise FinalToolError("there are no language servers here")
    return await context.code()


async def _answer(
    given: LspArguments, place: str, queries: CodeQueries, context: ToolContext
) -> list[str]:
    match given.action:
        case "hover":
            text = await queries.hover(place, given.line, given.symbol)
            return [text[:_HOVER_CHARACTERS] or f"nothing is known of {given.symbol!r} there"]
        case "diagnostics":
            return await queries.diagnostics(place)
        case "symbols" if given.query:
            symbols = await queries.search(given.query, place)
            lines = _symbol_lines(symbols, queries, named=True)
            return lines or [f"no symbol like {given.query!r}"]
        case "symbols":
            symbols = await queries.outline(place)
            return _symbol_lines(symbols, queries, named=False) or ["it defines no symbols"]
        case "definition" | "references":
            found = await queries.places(given.action, place, given.line, given.symbol)
            lines = await _place_lines(found.places, queries, context)
            unseen = _unseen(given.symbol, found.others, queries)
            return [*(lines or [f"no {given.action} found"]), *unseen]


def _symbol_lines(found: Sequence[CodeSymbol], queries: CodeQueries, *, named: bool) -> list[str]:
    lines = [
        f"{_where(each.place, queries)} {each.kind} {each.name}"
        + (f" in {each.container}" if each.container else "")
        if named
        else f"{each.place.line}: {'  ' * each.depth}{each.kind} {each.name}"
        for each in found
    ]
    return _cut(lines)


async def _place_lines(
    places: Sequence[CodePlace], queries: CodeQueries, context: ToolContext
) -> list[str]:
    lines: list[str] = []
    texts: dict[str, list[str]] = {}
    for place in places[:MOST_LINES]:
        shown = queries.shown_path(place.path)
        if shown not in texts:
            texts[shown] = await _lines_of(shown, context)
        known = texts[shown]
        text = known[place.line - 1].strip() if place.line <= len(known) else ""
        lines.append(f"{_where(place, queries)} {text[:_MOST_CHARACTERS]}".rstrip())
    return _cut(lines, len(places))


async def _lines_of(path: str, context: ToolContext) -> list[str]:
    """The lines of a file of the project; none of one outside of it, or that may not be read."""
    guard = context.read_guard
    if context.workspace.is_outside(path) or (guard is not None and guard.forbids(path)):
        return []
    try:
        found = await context.workspace.peek(path)
    except ToolError:
        return []
    decoded = None if found is None else decode(found.data)
    from weft.lsp import lines_of_text  # with the first question

    return [] if decoded is None else lines_of_text(decoded.text)


def _where(place: CodePlace, queries: CodeQueries) -> str:
    return f"{queries.shown_path(place.path)}:{place.line}:{place.column}"


def _cut(lines: list[str], total: int | None = None) -> list[str]:
    more = (len(lines) if total is None else total) - MOST_LINES
    return [*lines[:MOST_LINES], f"… and {more} more"] if more > 0 else lines


class RenameTool(Tool):
    """Renames something everywhere, by edits that the language server works out."""

    name = "rename"
    description = (
        "Rename a function, class, variable or other name everywhere in the project, by the "
        "language server's knowledge of what refers to it. All files or none."
    )
    schema = late_schema(RenameArguments)
    effect: Effect = "checkable"
    timeout_seconds = 90.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(RenameArguments, args)
        path = await context.workspace.resolve(given.path)
        queries = await _queries(context)
        place = place_of(path, context)
        found = await queries.rename(place, given.line, given.symbol, given.new_name)
        if len(found.edits) > MOST_FILES:
            raise FinalToolError(
                f"it would change {len(found.edits)} files; at most {MOST_FILES} are changed at "
                "once"
            )
        changes = [
            await _change(queries.shown_path(file), found, edits, given.symbol, context)
            for file, edits in sorted(found.edits.items())
        ]
        count = sum(map(len, found.edits.values()))
        summary = f"renamed {given.symbol} to {given.new_name}: {_count(count, 'place')} in "
        summary += _count(len(changes), "file")
        others = [*_unchanged(given.symbol, found.others, queries)]
        others += _unseen(given.symbol, found.others, queries)
        return await prepare_changes(
            self.name,
            changes,
            context,
            "; ".join((summary, *others)),
            remarks=[f"({each})" for each in others],
            is_whole=True,
        )


def _unchanged(symbol: str, others: OtherMentions, queries: CodeQueries) -> list[str]:
    if not others.shown:
        return []
    named = _some(others.shown, queries)
    return [f"{symbol!r} also stands in {named}, which the server leaves as it is"]


def _unseen(symbol: str, others: OtherMentions, queries: CodeQueries) -> list[str]:
    """What the model and the user must know of an answer that may not be whole."""
    found: list[str] = []
    if count := len(others.unseen):
        found.append(
            f"{symbol!r} also stands in {_count(count, 'file')} that the server was not shown: "
            f"{_some(others.unseen, queries)}"
        )
    if not others.is_whole:
        found.append(f"the project is too large to be looked through for all places of {symbol!r}")
    return found


def _some(paths: Sequence[str], queries: CodeQueries) -> str:
    more = ", …" if len(paths) > _MOST_NAMED else ""
    return ", ".join(map(queries.shown_path, paths[:_MOST_NAMED])) + more


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


async def _change(
    path: str, found: RenameEdits, edits: Sequence[TextEdit], symbol: str, context: ToolContext
) -> FileChange:
    if context.workspace.is_outside(path):
        raise FinalToolError(f"it would change {path!r}, which lies outside the project")
    target = await target_of(path, context)
    guard = context.read_guard
    if guard is not None and (why := guard.forbids(target.path)):
        raise FinalToolError(f"{target.path!r} may not be read, and so not changed: {why}")
    decoded = _text_of(target)
    _refuse_other_text(target.path, decoded.text, edits, found.encoding, symbol)
    from weft.lsp import edited  # with the first rename

    data = decoded.encode(edited(decoded.text, edits, found.encoding), target.path)
    is_known = context.reads.seen(target.path) == target.hash
    return FileChange(target=target, data=data, verb="changed", is_known=is_known)


def _text_of(target: EditTarget) -> DecodedText:
    decoded = None if target.state is None else decode(target.state.data)
    if decoded is None or decoded.encoding != "utf-8":
        raise FinalToolError(f"{target.path!r} is no text in UTF-8")
    return decoded


def _refuse_other_text(
    path: str, text: str, edits: Iterable[TextEdit], encoding: str, symbol: str
) -> None:
    """Edits are places: where the old name does not stand at one, they are meant for another text
    than the file holds.
    """
    from weft.lsp import TextPlaces  # as above

    places = TextPlaces(text, encoding)
    for edit in edits:
        replaced = text[places.offset(edit.range.start) : places.offset(edit.range.end)]
        if replaced and symbol not in replaced:
            raise RetryableToolError(
                f"the language server has another version of {path!r} than the disk; try again"
            )
