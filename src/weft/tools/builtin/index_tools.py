"""`find_symbol`, `references`, `outline` and `map`: what the index of the project knows."""

from __future__ import annotations

from typing import Annotated, Any

import anyio.to_thread
import msgspec
from msgspec import Meta

from weft.errors import FinalToolError, RetryableToolError
from weft.events import Effect
from weft.repo import (
    Definition,
    FoundReference,
    ProjectIndex,
    ReferenceOrder,
    plain_line,
    plain_path,
    reference_argv,
)
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome
from weft.tools.files import action
from weft.workspace import ProcessCommand

MOST_LINES = 200
MAP_TOKENS = 2048
_SECONDS = 60.0
_NAME = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=300,
        description="Name of a function, class, method, type or constant; `Cart.total` for the "
        "`total` in a `Cart`.",
    ),
]


class FindSymbolArguments(ToolArguments, frozen=True, kw_only=True):
    """What `find_symbol` takes."""

    name: _NAME


class ReferencesArguments(ToolArguments, frozen=True, kw_only=True):
    """What `references` takes."""

    name: _NAME
    limit: Annotated[int, Meta(ge=1, le=1000, description="Lines to show at most.")] = MOST_LINES


class OutlineArguments(ToolArguments, frozen=True, kw_only=True):
    """What `outline` takes."""

    path: Annotated[str, Meta(min_length=1, description="Source file, relative to the project.")]


class MapArguments(ToolArguments, frozen=True, kw_only=True):
    """What `map` takes."""

    request: Annotated[
        str, Meta(min_length=1, max_length=5000, description="What you look for, in words.")
    ]
    tokens: Annotated[int, Meta(ge=50, le=8000, description="How long it may get.")] = MAP_TOKENS


class _IndexTool(Tool):
    effect: Effect = "pure"
    timeout_seconds = 120.0


class FindSymbolTool(_IndexTool):
    """Where something is defined."""

    name = "find_symbol"
    description = (
        "Find where a function, class, method, type or constant is defined, by its name. Shows "
        "path, lines and signature. Without an exact match, names made of the same words."
    )
    schema = late_schema(FindSymbolArguments)

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(FindSymbolArguments, args)

        async def run() -> ToolOutcome:
            index = await _index(context)
            found = await anyio.to_thread.run_sync(index.symbols, given.name)
            lines = [
                f"{plain_path(path)}:{each.first}-{each.last}  {each.kind}  "
                f"{plain_line(each.signature)}"
                for path, each in found
                if _may_read(path, context)
            ]
            return ToolOutcome(text="\n".join(lines) or f"(no definition of {given.name!r})")

        return PreparedCall(action=action(self.name, ".", context, edits=False), run=run)


class ReferencesTool(_IndexTool):
    """Where a name is used."""

    name = "references"
    description = (
        "Find the lines where a name is used in code, by syntax: not in comments, strings or "
        "longer names. Definitions are marked with `=`."
    )
    schema = late_schema(ReferencesArguments)

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(ReferencesArguments, args)

        async def run() -> ToolOutcome:
            found = await _references(given, context)
            lines = [
                f"{plain_path(each.path)}:{each.line}{'=' if each.is_definition else ':'} "
                f"{plain_line(each.text.expandtabs(4))}"
                for each in found[: given.limit]
            ]
            if len(found) > given.limit:
                lines.append("(… more; raise the limit, or use grep with a path)")
            return ToolOutcome(text="\n".join(lines) or f"(no code uses {given.name!r})")

        return PreparedCall(action=action(self.name, ".", context, edits=False), run=run)


class OutlineTool(_IndexTool):
    """What a file defines."""

    name = "outline"
    description = "List what a source file defines, with lines and signatures, without reading it."
    schema = late_schema(OutlineArguments)

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        path = await context.workspace.resolve(parse(OutlineArguments, args).path)

        async def run() -> ToolOutcome:
            if not _may_read(path, context):
                raise FinalToolError(f"{path!r} may not be read")
            index = await _index(context)
            found = await anyio.to_thread.run_sync(index.outline, path)
            if found is None:
                raise FinalToolError(f"{path!r} is no source file of the index; read it instead")
            return ToolOutcome(text="\n".join(_nested(found)) or "(it defines nothing)")

        return PreparedCall(action=action(self.name, path, context, edits=False), run=run)


class MapTool(_IndexTool):
    """What a request is about."""

    name = "map"
    description = (
        "Show the files of the project that fit a request in words, best first, with the "
        "signatures of the definitions that fit. Start here when you do not know where to look."
    )
    schema = late_schema(MapArguments)

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(MapArguments, args)

        async def run() -> ToolOutcome:
            index = await _index(context)

            def mapped() -> str:
                return index.map(
                    given.request, (), given.tokens, lambda path: _may_read(path, context)
                )

            text = await anyio.to_thread.run_sync(mapped)
            return ToolOutcome(text=text or "(the project has no source files)")

        return PreparedCall(action=action(self.name, ".", context, edits=False), run=run)


async def _index(context: ToolContext) -> ProjectIndex:
    """The index, up to date."""
    if context.index is None:
        raise FinalToolError("there is no index here: the setting repo.index is off")
    return await context.index()


def _may_read(path: str, context: ToolContext) -> bool:
    guard = context.read_guard
    return guard is None or not guard.has_rules or not guard.forbids(path)


async def _references(given: ReferencesArguments, context: ToolContext) -> list[FoundReference]:
    index = await _index(context)
    # What comes before the last name says which one is meant; the use has only the last.
    name = given.name.replace("::", ".").replace("#", ".").rpartition(".")[2] or given.name
    paths = await anyio.to_thread.run_sync(index.files_with, name)
    order = ReferenceOrder(
        project=context.workspace.root,
        name=name,
        paths=[path for path in paths if _may_read(path, context)],
        most=given.limit,
    )
    if not order.paths:
        return []
    command = ProcessCommand(
        argv=reference_argv(),
        cwd=context.workspace.root,
        timeout_seconds=_SECONDS,
        stdin=msgspec.json.encode(order),
        only_reads=True,
        errors_apart=True,
    )
    result = await context.runner.run(command)
    data = result.full_output or result.output.encode()
    try:
        return msgspec.json.decode(data, type=list[FoundReference])
    except msgspec.MsgspecError as error:
        raise RetryableToolError("the search for references failed; use grep") from error


def _nested(definitions: list[Definition]) -> list[str]:
    """A line for each, indented by what it lies in."""
    lines: list[str] = []
    around: list[Definition] = []
    for each in definitions:
        while around and around[-1].last < each.last:
            around.pop()
        signature = plain_line(each.signature)
        lines.append(f"{each.first}-{each.last}\t{'  ' * len(around)}{signature}")
        around.append(each)
    return lines
