"""Operations on trees of text.  A view is opened for each call: where a reader stands is its own.

`{id}` is any node of a tree, or a unique beginning of its id.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from weft.errors import UsageError
from weft.events import TokenReceived
from weft.loom import (
    BranchComparison,
    GenerationCancelled,
    GenerationComplete,
    GenerationError,
    LoomHit,
    LoomNode,
    LoomSession,
    LoomState,
    RankedTree,
    TreeCatalogue,
    TreeImport,
    TreeSettings,
    TreeShape,
    TreeStats,
    export_tree,
    import_trees,
)
from weft.server.bodies import StatusAnswer, TextAnswer, ToggleAnswer
from weft.server.gate import MOST_BODY_BYTES
from weft.server.operation import (
    LARGE_BODY,
    ApiCall,
    ApiOperation,
    ChangeBody,
    Method,
    QueryFields,
    given,
)
from weft.server.sse import EventResponse, piece_of

MOST_ROWS = 1_000


class CatalogueQuery(QueryFields, frozen=True, kw_only=True):
    """Which trees."""

    q: str | None = None
    sort: Literal["updated", "created", "name", "nodes"] = "updated"
    offset: int = 0
    limit: int = 50


class LoomSearchQuery(QueryFields, frozen=True, kw_only=True):
    """Words to look for; lists have commas between their parts."""

    q: str
    roots: str | None = None
    models: str | None = None
    bookmarked: bool | None = None
    after: float | None = None
    limit: int = 20


class RootBody(ChangeBody, frozen=True, kw_only=True):
    """A new tree."""

    text: str = ""
    title: str = ""
    metadata: dict[str, Any] = {}


class ChildBody(ChangeBody, frozen=True, kw_only=True):
    """A node below this one."""

    text: str
    model: str = ""
    metadata: dict[str, Any] = {}


class GenerateBody(ChangeBody, frozen=True, kw_only=True):
    """How branches are made."""

    max_context_tokens: int | None = None
    stop_when: str = ""


class CancelBody(ChangeBody, frozen=True, kw_only=True):
    """Whether what was paid for is kept."""

    keep_partial: bool = True


class EditBody(ChangeBody, frozen=True, kw_only=True):
    """The text of this node alone, or (with `original`) of the whole line down to it."""

    text: str
    original: str | None = None
    """The text that was edited; another one on record refuses the edit."""
    fork: bool = False
    """Make a line beside it, and leave the old one as it is."""


class PositionBody(ChangeBody, frozen=True, kw_only=True):
    """A place in the node's text, in characters."""

    position: int


class RatingBody(ChangeBody, frozen=True, kw_only=True):
    """A rating; null takes it away."""

    rating: int | None


class LoomLabelBody(ChangeBody, frozen=True, kw_only=True):
    """A name; null takes it away."""

    text: str | None


class WeaveBody(ChangeBody, frozen=True, kw_only=True):
    """Two branches, and which parts of each are taken."""

    first: str
    second: str
    picks: list[tuple[int, int]] | None = None


class TokenBody(ChangeBody, frozen=True, kw_only=True):
    """A token by its place, and what stands there instead."""

    index: int
    alternative: str | None = None


class LoomSettingsBody(ChangeBody, frozen=True, kw_only=True):
    """Settings of a tree; what is left out stays."""

    name: str | None = None
    model_plan: list[dict[str, Any]] | None = None
    show_model_names: bool | None = None
    logprobs: int | None = None
    archived: bool | None = None


class LoomContextBody(ChangeBody, frozen=True, kw_only=True):
    """What models are told besides the text; empty clears it."""

    text: str


class TreeFileBody(ChangeBody, frozen=True, kw_only=True):
    """A tree as a file has it."""

    content: str


class MetadataBody(ChangeBody, frozen=True, kw_only=True):
    """What a program keeps with a node; null takes a key out."""

    changes: dict[str, Any]


class TreeFormatQuery(QueryFields, frozen=True, kw_only=True):
    """The form of the file."""

    format: Literal["json", "basemode", "md", "html"] = "json"


class CompareNodesQuery(QueryFields, frozen=True, kw_only=True):
    """Another node."""

    other: str


def _listed(text: str | None) -> list[str] | None:
    return None if text is None else [each for each in text.split(",") if each]


@asynccontextmanager
async def _view(call: ApiCall, *, read_only: bool = False) -> AsyncIterator[LoomSession]:
    store = (await call.app()).loom
    # A root opens where the tree was left; the caller means the node that it names.
    node = await store.resolve_node_id(call.path["id"])
    view = await store.open(node, read_only=read_only)
    try:
        if not read_only and view.current_node_id != node:
            view.checkout(node)
        yield view
    finally:
        await view.aclose()


async def _state(call: ApiCall) -> LoomState:
    store = (await call.app()).loom
    view = await store.open(call.path["id"], read_only=True)
    try:
        return view.get_state()
    finally:
        await view.aclose()


async def _generate(call: ApiCall) -> Any:
    body: GenerateBody = call.body
    runs = call.parts.generations
    store = (await call.app()).loom
    view = await store.open(await store.resolve_node_id(call.path["id"]))
    run = view.generate(body.max_context_tokens, stop_when=body.stop_when)
    runs.setdefault(view.root_id, set()).add(view)

    async def pieces(lost: Callable[[], None]) -> AsyncIterator[bytes]:
        del lost  # the events of the session have them too
        try:
            async for event in run:
                yield _piece(event)
        finally:
            runs.get(view.root_id, set()).discard(view)
            await run.aclose()
            await view.aclose()

    if call.wants_events:
        return EventResponse(pieces, call.parts.relays.is_closing)
    closing: Any = None
    try:
        async for event in run:
            closing = event
    finally:
        runs.get(view.root_id, set()).discard(view)
        await view.aclose()
    return _told(closing)


def _told(event: Any) -> dict[str, Any]:
    """An event of a generation, with its name."""
    names: dict[type, str] = {
        TokenReceived: "token_received",
        GenerationComplete: "generation_complete",
        GenerationError: "generation_error",
        GenerationCancelled: "generation_cancelled",
    }
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    return {"kind": names[type(event)], **fields}


def _piece(event: Any) -> bytes:
    return piece_of(_told(event))


async def _cancel(call: ApiCall) -> ToggleAnswer:
    root = (await (await call.app()).loom.root(call.path["id"])).id
    views = list(call.parts.generations.get(root, ()))
    for view in views:
        view.cancel(keep_partial=call.body.keep_partial)
    return ToggleAnswer(value=bool(views))


async def _checkout(call: ApiCall) -> LoomState:
    async with _view(call) as view:
        state = view.checkout(call.path["id"])
        await view.save()
        return state


async def _edit(call: ApiCall) -> LoomNode | None:
    body: EditBody = call.body
    async with _view(call) as view:
        if body.original is not None:
            node = view.apply_edit(body.original, body.text, fork=body.fork)
        else:
            node = view.edit_node_text(view.current_node_id, body.text, fork=body.fork)
        await view.save()
        return node


async def _truncate(call: ApiCall) -> LoomNode | None:
    store = (await call.app()).loom
    node = await store.get(call.path["id"])
    if node.parent_id is None:
        raise UsageError("the beginning of a tree cannot be cut off: edit it")
    kept = node.text[: max(0, call.body.position)]
    if not kept or kept == node.text:
        return None
    # Named with its session: by its id alone, the parent of a fork's node may be in another tree.
    session_id = await store.session_of(call.path["id"])
    return await store.add_child(
        f"{session_id}/{node.parent_id}",
        kept,
        model=node.model or "",
        strategy=node.strategy,
        max_tokens=node.max_tokens,
        temperature=node.temperature,
        metadata={"truncated_from": node.id},
    )


async def _delete(call: ApiCall) -> dict[str, int]:
    return {"deleted": await (await call.app()).loom.delete_subtree(call.path["id"])}


async def _restore(call: ApiCall) -> dict[str, int]:
    return {"restored": await (await call.app()).loom.restore_subtree(call.path["id"])}


async def _bookmark(call: ApiCall) -> ToggleAnswer:
    async with _view(call) as view:
        return ToggleAnswer(value=view.toggle_bookmark())


async def _split(call: ApiCall) -> list[LoomNode]:
    async with _view(call) as view:
        return list(view.split_node(view.current_node_id, call.body.position))


async def _join(call: ApiCall) -> LoomNode:
    async with _view(call) as view:
        return view.join_with_parent()


async def _weave(call: ApiCall) -> LoomNode:
    body: WeaveBody = call.body
    async with _view(call) as view:
        return view.weave(body.first, body.second, body.picks)


async def _compare(call: ApiCall) -> BranchComparison:
    async with _view(call, read_only=True) as view:
        node = await view.store.resolve_node_id(call.path["id"])
        return view.compare(node, call.query.other)


async def _rate(call: ApiCall) -> LoomNode:
    async with _view(call) as view:
        return view.rate(call.body.rating)


async def _label(call: ApiCall) -> LoomNode:
    async with _view(call) as view:
        return view.label(call.body.text)


async def _at_token(call: ApiCall) -> LoomNode:
    body: TokenBody = call.body
    async with _view(call) as view:
        return view.branch_at_token(view.current_node_id, body.index, body.alternative)


async def _undo(call: ApiCall) -> LoomState:
    async with _view(call) as view:
        return view.undo()


async def _context(call: ApiCall) -> LoomNode:
    return await (await call.app()).loom.set_context(call.path["id"], call.body.text)


async def _get_context(call: ApiCall) -> TextAnswer:
    return TextAnswer(text=await (await call.app()).loom.context_of(call.path["id"]))


async def _metadata(call: ApiCall) -> LoomNode:
    return await (await call.app()).loom.update_metadata(call.path["id"], call.body.changes)


async def _delete_tree(call: ApiCall) -> dict[str, int]:
    return {"deleted": await (await call.app()).loom.delete_tree(call.path["id"])}


async def _settings(call: ApiCall) -> TreeSettings:
    return await (await call.app()).loom.tree_settings(call.path["id"])


async def _set_settings(call: ApiCall) -> TreeSettings:
    changes = given(call.body, "input_id")
    return await (await call.app()).loom.update_tree_settings(call.path["id"], **changes)


async def _catalogue(call: ApiCall) -> TreeCatalogue:
    query: CatalogueQuery = call.query
    return await (await call.app()).loom.catalogue(
        query=query.q, sort=query.sort, offset=query.offset, limit=query.limit
    )


def _limit(call: ApiCall) -> int:
    """How many rows a list has at most.

    Raises:
        UsageError: it is no number that a list can have.
    """
    limit: int = call.query.limit
    if not 0 < limit <= MOST_ROWS:
        raise UsageError(f"a list has from 1 to {MOST_ROWS} rows")
    return limit


async def _search(call: ApiCall) -> list[LoomHit]:
    query: LoomSearchQuery = call.query
    return await (await call.app()).loom.search(
        query.q,
        roots=_listed(query.roots),
        models=_listed(query.models),
        bookmarked=query.bookmarked,
        after=query.after,
        limit=_limit(call),
    )


async def _search_trees(call: ApiCall) -> list[RankedTree]:
    return await (await call.app()).loom.search_trees(call.query.q, limit=_limit(call))


async def _create(call: ApiCall) -> LoomNode:
    body: RootBody = call.body
    store = (await call.app()).loom
    return await store.create_root(body.text, metadata=body.metadata, title=body.title)


async def _add_child(call: ApiCall) -> LoomNode:
    body: ChildBody = call.body
    store = (await call.app()).loom
    return await store.add_child(
        call.path["id"], body.text, model=body.model, metadata=body.metadata
    )


async def _node(call: ApiCall) -> LoomNode:
    return await (await call.app()).loom.get(call.path["id"])


async def _tree(call: ApiCall) -> list[LoomNode]:
    return await (await call.app()).loom.tree(call.path["id"])


async def _lineage(call: ApiCall) -> list[LoomNode]:
    return await (await call.app()).loom.lineage(call.path["id"])


async def _children(call: ApiCall) -> list[LoomNode]:
    return await (await call.app()).loom.children(call.path["id"])


async def _text(call: ApiCall) -> TextAnswer:
    return TextAnswer(text=await (await call.app()).loom.full_text(call.path["id"]))


async def _stats(call: ApiCall) -> TreeStats:
    return await (await call.app()).loom.stats(call.path["id"])


async def _shape(call: ApiCall) -> TreeShape:
    return await (await call.app()).loom.shape(call.path["id"])


async def _session(call: ApiCall) -> StatusAnswer:
    return StatusAnswer(value=await (await call.app()).loom.session_of(call.path["id"]))


async def _import(call: ApiCall) -> TreeImport:
    return await import_trees((await call.app()).loom, call.body.content.encode())


async def _export(call: ApiCall) -> bytes:
    return await export_tree((await call.app()).loom, call.path["id"], call.query.format)


def _on(
    method: Method, path: str, name: str, says: str, run: Any, *calls: str, **more: Any
) -> ApiOperation:
    return ApiOperation(
        method=method,
        path=f"/looms{path}",
        name=f"loom_{name}",
        says=says,
        run=run,
        calls=tuple(f"loom.{each}" for each in calls),
        remembers=method == "GET",
        **more,
    )


_ONE = "/{id}"

LOOMS: tuple[ApiOperation, ...] = (
    _on(
        "GET",
        "",
        "catalogue",
        "All trees of text.",
        _catalogue,
        "catalogue",
        "roots",
        "recent",
        query=CatalogueQuery,
        answer=TreeCatalogue,
    ),
    _on(
        "POST",
        "",
        "create_root",
        "Begin a tree.",
        _create,
        "create_root",
        body=RootBody,
        answer=LoomNode,
        status=201,
        most_bytes=LARGE_BODY,
    ),
    _on(
        "GET",
        "/search",
        "search",
        "Nodes that have some words.",
        _search,
        "search",
        query=LoomSearchQuery,
        answer=list[LoomHit],
    ),
    _on(
        "GET",
        "/search/trees",
        "search_trees",
        "Trees that have some words.",
        _search_trees,
        "search_trees",
        query=LoomSearchQuery,
        answer=list[RankedTree],
    ),
    _on(
        "POST",
        "/import",
        "import",
        "Add the trees of a file: ours, or one of other looms and chats.",
        _import,
        "import_nodes",
        body=TreeFileBody,
        answer=TreeImport,
        status=201,
        most_bytes=MOST_BODY_BYTES,
    ),
    _on(
        "GET",
        _ONE,
        "state",
        "A view of the tree at a node.",
        _state,
        "get_state",
        "open",
        answer=LoomState,
    ),
    _on("GET", f"{_ONE}/node", "node", "One node.", _node, "get", answer=LoomNode),
    _on(
        "GET",
        f"{_ONE}/tree",
        "tree",
        "A node and all below it.",
        _tree,
        "tree",
        answer=list[LoomNode],
    ),
    _on(
        "GET",
        f"{_ONE}/lineage",
        "lineage",
        "The line from the root to a node.",
        _lineage,
        "lineage",
        answer=list[LoomNode],
    ),
    _on(
        "GET",
        f"{_ONE}/children",
        "children",
        "The nodes right below.",
        _children,
        "children",
        answer=list[LoomNode],
    ),
    _on(
        "POST",
        f"{_ONE}/children",
        "add_child",
        "Add a node.",
        _add_child,
        "add_child",
        body=ChildBody,
        answer=LoomNode,
        status=201,
        most_bytes=LARGE_BODY,
    ),
    _on(
        "GET",
        f"{_ONE}/text",
        "full_text",
        "The whole text down to a node.",
        _text,
        "full_text",
        answer=TextAnswer,
    ),
    _on("GET", f"{_ONE}/stats", "stats", "A tree in numbers.", _stats, "stats", answer=TreeStats),
    _on(
        "GET",
        f"{_ONE}/shape",
        "shape",
        "How a subtree has grown.",
        _shape,
        "shape",
        answer=TreeShape,
    ),
    _on(
        "GET",
        f"{_ONE}/session",
        "session",
        "The session that keeps a tree: follow its events.",
        _session,
        "session_of",
        answer=StatusAnswer,
    ),
    _on(
        "GET",
        f"{_ONE}/export",
        "export",
        "A tree as a file.",
        _export,
        "export",
        query=TreeFormatQuery,
        answer=str,
        media_type="text/plain",
    ),
    _on(
        "GET",
        f"{_ONE}/compare",
        "compare",
        "How two branches differ.",
        _compare,
        "compare",
        query=CompareNodesQuery,
        answer=BranchComparison,
    ),
    _on(
        "GET",
        f"{_ONE}/context",
        "context",
        "What models are told at a node.",
        _get_context,
        "context_of",
        answer=TextAnswer,
    ),
    _on(
        "PUT",
        f"{_ONE}/context",
        "set_context",
        "Tell models something besides the text.",
        _context,
        "update_context",
        body=LoomContextBody,
        answer=LoomNode,
    ),
    _on(
        "PATCH",
        f"{_ONE}/metadata",
        "update_metadata",
        "Change what a program keeps with a node.",
        _metadata,
        "update_metadata",
        body=MetadataBody,
        answer=LoomNode,
    ),
    _on(
        "DELETE",
        _ONE,
        "delete_tree",
        "Delete a whole tree for good.",
        _delete_tree,
        "delete_tree",
        answer=dict[str, int],
    ),
    _on(
        "GET",
        f"{_ONE}/settings",
        "tree_settings",
        "The settings of a tree.",
        _settings,
        "tree_settings",
        answer=TreeSettings,
    ),
    _on(
        "PUT",
        f"{_ONE}/settings",
        "update_tree_settings",
        "Change the settings of a tree.",
        _set_settings,
        "update_tree_settings",
        "set_model_plan",
        "set_model",
        "set_max_tokens",
        "set_temperature",
        "set_n_branches",
        "set_logprobs",
        "archive",
        body=LoomSettingsBody,
        answer=TreeSettings,
    ),
    _on(
        "POST",
        f"{_ONE}/generate",
        "generate",
        "Branches of a node by all models of the plan; as events where those are accepted.",
        _generate,
        "generate",
        body=GenerateBody,
        answer=dict[str, Any],
        streams=True,
    ),
    _on(
        "POST",
        f"{_ONE}/cancel",
        "cancel",
        "Stop generating in a tree.",
        _cancel,
        "cancel",
        body=CancelBody,
        answer=ToggleAnswer,
    ),
    _on(
        "POST",
        f"{_ONE}/checkout",
        "checkout",
        "Remember a node as where the tree was left.",
        _checkout,
        "checkout",
        "set_active_node",
        "set_checked_out_child",
        answer=LoomState,
    ),
    _on(
        "POST",
        f"{_ONE}/edit",
        "edit",
        "Edit a node, or the whole text down to it.",
        _edit,
        "apply_edit",
        "edit_node_text",
        body=EditBody,
        answer=LoomNode | None,
        most_bytes=LARGE_BODY,
    ),
    _on(
        "POST",
        f"{_ONE}/truncate",
        "truncate",
        "A node beside this one with its beginning alone.",
        _truncate,
        "truncate_selected_child",
        body=PositionBody,
        answer=LoomNode | None,
    ),
    _on(
        "POST",
        f"{_ONE}/delete",
        "delete",
        "Delete a node and all below it; it can be restored.",
        _delete,
        "delete_subtree",
        "delete_selected_child",
        answer=dict[str, int],
    ),
    _on(
        "POST",
        f"{_ONE}/restore",
        "restore",
        "Bring back what was deleted.",
        _restore,
        "restore_subtree",
        answer=dict[str, int],
    ),
    _on(
        "POST",
        f"{_ONE}/bookmark",
        "bookmark",
        "Bookmark a node, or take the bookmark away.",
        _bookmark,
        "toggle_bookmark",
        answer=ToggleAnswer,
    ),
    _on(
        "POST",
        f"{_ONE}/split",
        "split",
        "Make two nodes of one.",
        _split,
        "split_node",
        body=PositionBody,
        answer=list[LoomNode],
    ),
    _on(
        "POST",
        f"{_ONE}/join",
        "join",
        "Join a node with the one above it.",
        _join,
        "join_with_parent",
        answer=LoomNode,
    ),
    _on(
        "POST",
        f"{_ONE}/weave",
        "weave",
        "A branch made of parts of two others.",
        _weave,
        "weave",
        body=WeaveBody,
        answer=LoomNode,
        status=201,
    ),
    _on(
        "POST",
        f"{_ONE}/rate",
        "rate",
        "Rate a node.",
        _rate,
        "rate",
        body=RatingBody,
        answer=LoomNode,
    ),
    _on(
        "POST",
        f"{_ONE}/label",
        "label",
        "Name a node.",
        _label,
        "label",
        body=LoomLabelBody,
        answer=LoomNode,
    ),
    _on(
        "POST",
        f"{_ONE}/branch-at-token",
        "branch_at_token",
        "A node beside this one that goes another way at a token.",
        _at_token,
        "branch_at_token",
        body=TokenBody,
        answer=LoomNode,
        status=201,
    ),
    _on(
        "POST",
        f"{_ONE}/undo",
        "undo",
        "Undo the last change of the tree.",
        _undo,
        "undo",
        answer=LoomState,
    ),
)
