"""`weft loom select`, `edit`, `bookmark`, `rate`, `delete`, `restore` and `settings`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio.to_thread
import msgspec

from weft.app import App
from weft.cli.commands.confirmation import confirm
from weft.cli.exit_codes import OK
from weft.cli.loom.branch_text import counted, node_data, one_line, write_fact
from weft.cli.loom.given_text import is_unicode, piped_text, value_text, without_last_newline
from weft.cli.loom.growth_plan import changed_plan
from weft.cli.loom.node_references import (
    BY_ID,
    PREFIX,
    find_node,
    is_number,
    one_reference,
    short_id,
)
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import write_line, write_pretty
from weft.errors import NodeNotFound, UsageError
from weft.ids import NodeId
from weft.loom import LoomNode, LoomSession, ModelPlanEntry, TreeSettings
from weft.loom.formats.plain_json import RATINGS
from weft.loom.model_plan import checked_plan

_SHOWN: Final = 70
_PLAN_FIELDS: Final = ModelPlanEntry.__struct_fields__
"""All of them: what is stored leaves out what is as usual, and programs would have to know that."""


@asynccontextmanager
async def _view(app: App, at: NodeId) -> AsyncGenerator[LoomSession]:
    """A view at a node; what it changes is durable behind it."""
    view = await app.loom.open(at)
    try:
        yield view
        await view.save()
    finally:
        await view.aclose()


def _say(node: LoomNode, arguments: ParsedArguments, sentence: str) -> int:
    if arguments.flag("json"):
        write_pretty(node_data(node))
    else:
        write_line(sentence)
    return OK


async def select(app: App, arguments: ParsedArguments) -> int:
    """Go to a node."""
    given = one_reference(arguments)
    if given is None:
        raise UsageError("`weft loom select` takes a node: a number, .. or an id")
    at = await find_node(app.loom, given)
    async with _view(app, at) as view:
        state = view.checkout(at)
    # Stored even where the tree was left there: the one that is written to last is the active one.
    await app.loom.set_active_node(at)
    text = one_line(state.current_node.text)[:_SHOWN]
    return _say(state.current_node, arguments, f"{short_id(at)}  {text}".rstrip())


async def edit(app: App, arguments: ParsedArguments) -> int:
    """Give a node another text."""
    words = [word for word in arguments.words if word != "-"]
    is_piped = len(words) < len(arguments.words)
    if len(words) > 1:
        raise UsageError("`weft loom edit` takes one node; --text gives the new text")
    given = arguments.text("text")
    if is_piped and given is not None:
        raise UsageError("give the text either by --text or with -, not both")
    at = await find_node(app.loom, words[0] if words else None)
    before = (await app.loom.get(at)).text
    if given is not None:
        after = value_text(given)
    elif is_piped:
        after = piped_text()
    else:
        after = await _in_editor(before)
    async with _view(app, at) as view:
        node = view.edit_node_text(at, after, fork=arguments.flag("fork"))
    if node is None:
        return _say(await app.loom.get(at), arguments, "nothing was changed")
    what = "a sibling, which is active now" if arguments.flag("fork") else "changed"
    return _say(node, arguments, f"{short_id(node.id)}  {what}")


async def _in_editor(before: str) -> str:
    from weft.cli.chat.screens.external_editor import edited  # only then

    after = await anyio.to_thread.run_sync(edited, before, ".txt")
    # Editors end a file with a newline; the text of a node seldom has one.
    if after.endswith("\n") and not before.endswith("\n"):
        after = without_last_newline(after)
    return after


async def bookmark(app: App, arguments: ParsedArguments) -> int:
    """Bookmark a node, or take the bookmark away."""
    at, is_on = await find_node(app.loom, one_reference(arguments)), not arguments.flag("off")
    node = await app.loom.update_metadata(at, {"bookmarked": True if is_on else None})
    return _say(node, arguments, f"{short_id(at)}  {'bookmarked' if is_on else 'no bookmark'}")


async def rate(app: App, arguments: ParsedArguments) -> int:
    """Rate a node."""
    is_off, words = arguments.flag("off"), arguments.words
    if len(words) != 2 - is_off:
        raise UsageError(
            "`weft loom rate` takes a node and a number (`rate 2 up`), or a node and --off"
        )
    rating = None if is_off else read_rating(words[1])
    at = await find_node(app.loom, words[0])
    node = await app.loom.update_metadata(at, {"rating": rating})
    said = "no rating" if rating is None else f"rated {rating:+}"
    return _say(node, arguments, f"{short_id(at)}  {said}")


def read_rating(word: str) -> int:
    """A rating as it is written.

    Raises:
        UsageError: it is none.
    """
    known = {"up": 1, "down": -1}
    if word in known:
        return known[word]
    try:
        number = int(word)
    except ValueError:
        number = RATINGS + 1
    if abs(number) > RATINGS:
        raise UsageError(
            f"a rating is up, down or a whole number from -{RATINGS} to {RATINGS}, not {word!r} "
            "(a negative one stands behind --)"
        )
    return number


async def delete(app: App, arguments: ParsedArguments) -> int:
    """Delete nodes with what is below them, or trees."""
    if not arguments.words:
        raise UsageError("`weft loom delete` takes at least one node")
    # All are found first: a number names another node once one before it is gone.
    found = [await find_node(app.loom, each) for each in arguments.words]
    nodes = [await app.loom.get(each) for each in dict.fromkeys(found)]
    purges = arguments.flag("purge")
    if purges and (below := next((each for each in nodes if each.parent_id is not None), None)):
        raise UsageError(
            f"--purge removes whole trees, and {short_id(below.id)} is no root; its tree is "
            f"{short_id(below.root_id)}"
        )
    counts = await app.loom.descendant_counts([node.id for node in nodes])
    if not arguments.flag("yes"):
        _confirm(nodes, sum(counts.values()) + len(nodes), purges=purges)
    gone: list[dict[str, Any]] = []
    for node in nodes:
        if purges:
            count = await app.loom.delete_tree(node.id)
        else:
            count = await _deleted(app, node.id)
        gone.append({"id": node.id, "deleted": count, "restorable": not purges})
    if arguments.flag("json"):
        write_pretty(gone)
        return OK
    for each in gone:
        nodes_gone = counted(each["deleted"])
        back = "" if purges else f"; `weft loom restore {short_id(each['id'])}` brings it back"
        write_line(f"{short_id(each['id'])}  {nodes_gone} deleted{back}")
    return OK


async def _deleted(app: App, node_id: NodeId) -> int:
    try:
        return await app.loom.delete_subtree(node_id)
    except NodeNotFound:
        return 0  # it was below another one that is deleted


def _confirm(nodes: list[LoomNode], count: int, *, purges: bool) -> None:
    what = one_line(nodes[0].text)[:40] or short_id(nodes[0].id)
    named = f"{what!r}" if len(nodes) == 1 else f"{what!r} and {len(nodes) - 1} more"
    more = count - len(nodes)
    below = f" with {counted(more)} below" if more else ""
    ends = " permanently" if purges else ""
    confirm(
        f"Delete {named}{below}{ends}?",
        unasked=f"there is no terminal to ask; add --yes to delete {named}{below}",
        refused="nothing was deleted",
    )


async def restore(app: App, arguments: ParsedArguments) -> int:
    """Bring back what was deleted."""
    if not arguments.words:
        raise UsageError("`weft loom restore` takes the id of a node that was deleted")
    back: list[dict[str, Any]] = [
        {"id": each, "restored": await _restored(app, each)} for each in arguments.words
    ]
    if arguments.flag("json"):
        write_pretty(back)
        return OK
    for each in back:
        write_line(f"{each['id']}  {counted(each['restored'])} restored")
    return OK


async def _restored(app: App, given: str) -> int:
    if not is_unicode(given):
        raise NodeNotFound(given)
    if is_number(given):
        raise UsageError(f"what was deleted has no number; `{BY_ID}{given}` is the node of that id")
    given = given.removeprefix(BY_ID)
    try:
        return await app.loom.restore_subtree(given)
    except NodeNotFound:
        if not given or given.startswith(PREFIX):
            raise
    try:
        return await app.loom.restore_subtree(PREFIX + given)
    except NodeNotFound:
        raise NodeNotFound(given) from None


async def settings(app: App, arguments: ParsedArguments) -> int:
    """Show or change the settings of a tree."""
    at = await find_node(app.loom, one_reference(arguments))
    root = (await app.loom.root(at)).id
    found = await app.loom.tree_settings(root)
    changes = _setting_changes(app, arguments, found)
    context = arguments.text("context")
    if context is not None:
        await app.loom.set_context(at, value_text(context))
    if changes:
        found = await app.loom.update_tree_settings(root, **changes)
    told = await app.loom.context_of(at)
    if arguments.flag("json"):
        plan = [{name: getattr(each, name) for name in _PLAN_FIELDS} for each in found.model_plan]
        data = {**msgspec.to_builtins(found), "model_plan": plan}
        write_pretty({"root": root, **data, "context": told})
    else:
        _show_settings(root, found, told)
    return OK


def _setting_changes(app: App, arguments: ParsedArguments, found: TreeSettings) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    plan = changed_plan(app, arguments, found.model_plan)
    if plan is not None:
        changes["model_plan"] = checked_plan(plan)
    if (name := arguments.text("name")) is not None:
        if not is_unicode(name) or not name.strip():
            raise UsageError(f"{name!r} is no name for a tree")
        changes["name"] = name
    if (logprobs := arguments.text("logprobs")) is not None:
        number = 0 if logprobs == "off" else int(logprobs) if logprobs.isdecimal() else -1
        if not 0 <= number <= 20:
            raise UsageError(f"--logprobs takes off, or 1 to 20, not {logprobs!r}")
        changes["logprobs"] = number
    if arguments.flag("archive") and arguments.flag("unarchive"):
        raise UsageError("give either --archive or --unarchive, not both")
    if arguments.flag("archive") or arguments.flag("unarchive"):
        changes["archived"] = arguments.flag("archive")
    return changes


def _show_settings(root: NodeId, found: TreeSettings, context: str) -> None:
    write_fact("tree", root)
    write_fact("name", one_line(found.name) or "(its first words)")
    for entry in found.model_plan:
        off = "  (off)" if not entry.enabled else ""
        how = f"  {entry.strategy}" if entry.strategy else ""
        write_fact(
            "model",
            f"{entry.model}  {entry.n_branches} x {entry.max_tokens} tokens  "
            f"temperature {entry.temperature:g}{how}{off}",
        )
    if found.logprobs:
        write_fact("logprobs", f"{found.logprobs}")
    if context:
        write_fact("context", one_line(context))
    if found.archived:
        write_line("archived")
