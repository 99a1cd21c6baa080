"""`weft loom new` and `weft loom continue`: branches grown at once, and shown while they grow."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import anyio
import anyio.abc
import msgspec

from weft.app import App
from weft.cli.exit_codes import FAILED, OK, CommandExit
from weft.cli.loom.branch_text import node_data, one_line, short_model, write_branch
from weft.cli.loom.given_text import is_unicode, text_of, value_text
from weft.cli.loom.growth_plan import changed_plan, make_ready, new_plan
from weft.cli.loom.live_branches import LiveBranches
from weft.cli.loom.node_references import child_of, find_node, one_reference, short_id
from weft.cli.parse import ParsedArguments
from weft.cli.signals import StopSignal
from weft.cli.stdio import complain, tell, write_line, write_pretty
from weft.errors import UsageError
from weft.events import TokenReceived
from weft.ids import NodeId
from weft.loom import (
    BranchFailure,
    GenerationCancelled,
    GenerationError,
    LoomNode,
    LoomSession,
)
from weft.loom.branches.generation import StopRule
from weft.loom.branches.generation_events import ClosingEvent
from weft.loom.model_plan import checked_plan

NAME_SECONDS: Final = 10.0
"""How long a command waits for the name of a tree that has grown long."""
_SHOWN: Final = 60


async def new(app: App, arguments: ParsedArguments) -> int:
    """Make a tree, and grow branches of it."""
    text = text_of(arguments.words, arguments.text("file"))
    name = arguments.text("name") or ""
    if not is_unicode(name):
        raise UsageError(f"{name!r} is no name for a tree")
    # Before anything is made: a tree that can only fail would be in every list.
    StopRule.read(arguments.text("stop_when") or "")
    is_empty = arguments.flag("empty")
    metadata: dict[str, Any] = {}
    try:
        plan = checked_plan(new_plan(app, arguments))
        metadata["model_plan"] = [msgspec.to_builtins(each) for each in plan]
    except CommandExit:
        # Nothing is written yet: the model may come with the first `continue`.
        if not is_empty:
            raise
    else:
        if not is_empty:
            await make_ready(app, plan)
    if context := value_text(arguments.text("context") or ""):
        metadata["context"] = context
    root = await app.loom.create_root(text, metadata=metadata, title=name)
    if is_empty:
        if arguments.flag("json"):
            write_pretty({"root": root.id, "source": root.id, "active": root.id, "branches": []})
        else:
            write_line(root.id)
        return OK
    return await _grown(await app.loom.open(root.id), arguments)


async def go_on(app: App, arguments: ParsedArguments) -> int:
    """Go on where the tree ends, or at a node that is named."""
    at = await find_node(app.loom, one_reference(arguments))
    branch = arguments.whole("branch")
    if branch is not None:
        at = await child_of(app.loom, at, branch)
    if not arguments.flag("here"):
        at = await _end_below(app, at)
    view = await app.loom.open(at)
    view.checkout(at)
    # A tree that was imported, or made by a program, may have no plan yet.
    has_plan = bool(view.loom_tree.setting("model_plan"))
    plan = changed_plan(app, arguments, view.model_plan) if has_plan else new_plan(app, arguments)
    await make_ready(app, view.model_plan if plan is None else checked_plan(plan))
    if plan is not None:
        view.set_model_plan(plan)
    if (context := arguments.text("context")) is not None:
        view.update_context(value_text(context))
    return await _grown(view, arguments)


async def _end_below(app: App, at: NodeId) -> NodeId:
    """Where a line ends that has one way to go on."""
    while children := await app.loom.children(at):
        if len(children) > 1:
            raise UsageError(_forks(at, children))
        at = children[0].id
    return at


def _forks(at: NodeId, children: list[LoomNode]) -> str:
    listed = "\n".join(
        f"  {number}  {short_id(child.id)}  {one_line(child.text)[:_SHOWN]}"
        for number, child in enumerate(children, start=1)
    )
    return (
        f"{short_id(at)} has {len(children)} children; -b N continues with one of them, --here "
        f"grows more beside them:\n{listed}"
    )


async def _grown(view: LoomSession, arguments: ParsedArguments) -> int:
    """Grow branches where a view stands, and show them; Ctrl-C stops, and keeps what has come."""
    source, is_json = view.current_node_id, arguments.flag("json")
    run = view.generate(
        stop_when=arguments.text("stop_when") or "", adaptive=arguments.flag("adaptive")
    )
    stop = StopSignal()
    closing: ClosingEvent | None = None

    async def settle() -> None:
        run.cancel()

    async def watch(*, task_status: anyio.abc.TaskStatus[None]) -> None:
        await stop.watch(settle, task_status=task_status)

    live = LiveBranches(_told(view), is_quiet=is_json)
    async with anyio.create_task_group() as group:
        await group.start(watch)
        with live:
            async for event in run:
                if isinstance(event, TokenReceived):
                    live.take(event)
                else:
                    closing = event
        await view.save()
        group.cancel_scope.cancel()
    assert closing is not None
    nodes = await _new_nodes(view, closing)
    if is_json:
        write_pretty(_as_data(view, source, closing, nodes))
    else:
        _show(view, source, closing, nodes)
    with anyio.move_on_after(NAME_SECONDS):
        await run.settled()
    await view.aclose()
    return stop.code or (FAILED if isinstance(closing, GenerationError) else OK)


def _told(view: LoomSession) -> list[str]:
    """The models of the branches, in the order of the plan."""
    return [
        short_model(entry.model)
        for entry in view.model_plan
        if entry.enabled
        for _ in range(entry.n_branches)
    ]


async def _new_nodes(view: LoomSession, closing: ClosingEvent) -> list[tuple[int, LoomNode]]:
    """What was made, each with its number among the children."""
    partial = [each.partial_node for each in _failures(closing)]
    made = [] if isinstance(closing, GenerationError) else [each.id for each in closing.new_nodes]
    found = [await view.store.get(each) for each in (*made, *filter(None, partial))]
    if not found or found[0].parent_id is None:
        return []
    beside = [each.id for each in await view.store.children(found[0].parent_id)]
    return sorted(((beside.index(node.id) + 1, node) for node in found), key=lambda each: each[0])


def _failures(closing: ClosingEvent) -> tuple[BranchFailure, ...]:
    return () if isinstance(closing, GenerationCancelled) else closing.failures


def _show(
    view: LoomSession, source: NodeId, closing: ClosingEvent, nodes: list[tuple[int, LoomNode]]
) -> None:
    for number, node in nodes:
        write_branch(number, node)
    failures = _failures(closing)
    told = Counter(f"{short_model(each.model)}: {each.sentence}" for each in failures)
    for sentence, count in told.items():
        complain(f"{sentence} ({count} branches)" if count > 1 else sentence)
    if isinstance(closing, GenerationError) and not failures:
        complain(closing.error)
    if isinstance(closing, GenerationCancelled):
        tell("stopped; what had come is kept" if nodes else "stopped; nothing had come yet")
    tell(_next_step(source, [number for number, _ in nodes], view.root_id))


def _next_step(source: NodeId, numbers: list[int], root: NodeId) -> str:
    if not numbers:
        what = "the text is kept" if source == root else "nothing was changed"
        return f"{what}; `weft loom continue {short_id(source)}` tries again"
    if len(numbers) == 1:
        return "`weft loom continue` continues here, `weft loom show` prints the whole text"
    one, two = numbers[0], numbers[1]
    return (
        f"`weft loom continue -b {one}` continues with {one}, `weft loom compare {one} {two}` "
        "shows how two differ, `weft loom continue --here` grows more"
    )


def _as_data(
    view: LoomSession, source: NodeId, closing: ClosingEvent, nodes: list[tuple[int, LoomNode]]
) -> dict[str, Any]:
    failures = [msgspec.to_builtins(each) for each in _failures(closing)]
    if isinstance(closing, GenerationError) and not failures:
        failures = [{"category": closing.category, "sentence": closing.error}]
    state = view.get_state()
    return {
        "root": view.root_id,
        "source": source,
        "active": state.current_node_id,
        "name": state.name,
        "branches": [{"number": at, **node_data(node)} for at, node in nodes],
        "failures": failures,
        "cancelled": isinstance(closing, GenerationCancelled),
        "cost_usd": state.cost,
    }
