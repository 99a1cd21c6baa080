"""Operations on the tree of a session: branches, checkpoints, rewinds, revisions, fan-outs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import msgspec

from weft.api import (
    Branch,
    Fan,
    FanCandidate,
    FanSummary,
    FileComparison,
    FileWeave,
    HunkOutcome,
    KeepOutcome,
    NetChange,
    RewindPlan,
)
from weft.errors import UsageError
from weft.server.bodies import (
    BranchBody,
    BranchesQuery,
    ChangesQuery,
    FileWeaveBody,
    HunkBody,
    LabelBody,
    NameBody,
    NodeBody,
    NodesQuery,
    RevisionBody,
    RewindBody,
    TakenHunkBody,
    TextAnswer,
    UndoRewindBody,
)
from weft.server.operation import ApiCall, ApiOperation, ChangeBody, QueryFields, session_call
from weft.server.routes.event_streams import CursorQuery, cursor_of
from weft.server.sse import EventResponse, piece_of
from weft.view import TreeMessage, TreeView


class FanBody(ChangeBody, frozen=True, kw_only=True):
    """A task for several candidates at once."""

    prompt: str
    n: int = 4
    models: list[str] = []
    verify: str | None = None
    """The command that shows whether a candidate is right."""
    verify_runs: int = 1
    base: Literal["now", "head"] = "now"
    stop: Literal["all", "verified"] = "all"
    budget_usd: float | None = None


class FanView(msgspec.Struct, frozen=True, kw_only=True):
    """A fan-out as it is now."""

    id: str
    session_id: str
    prompt: str
    planned: int
    verify_command: str
    is_settled: bool
    candidates: list[FanCandidate]


class KeepBody(ChangeBody, frozen=True, kw_only=True):
    """Which candidate."""

    index: int
    preview: bool = False
    force: bool = False
    conflicts: Literal["mine", "markers"] = "mine"
    """Where both changed the same lines: yours stay, or both are put between conflict markers."""


class IndexBody(ChangeBody, frozen=True, kw_only=True):
    """A candidate."""

    index: int


class ResumeBody(ChangeBody, frozen=True, kw_only=True):
    """Which candidates; all without it."""

    indices: list[int] | None = None


class CompareQuery(QueryFields, frozen=True, kw_only=True):
    """Two candidates."""

    first: int
    second: int


async def _branch(call: ApiCall) -> Branch:
    body: BranchBody = call.body
    session = await call.session()
    return await session.branch_at(body.at, body.name, input_id=body.input_id)


def _place(text: str) -> str | int:
    """A branch by its name, or by its number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


async def _switch(call: ApiCall) -> Branch:
    session = await call.session()
    return await session.switch_branch(_place(call.path["branch"]), input_id=call.body.input_id)


async def _rename(call: ApiCall) -> None:
    session, body = await call.session(), call.body
    await session.rename_branch(_place(call.path["branch"]), body.name, input_id=body.input_id)


async def _delete(call: ApiCall) -> None:
    session = await call.session()
    await session.delete_branch(_place(call.path["branch"]), input_id=call.body.input_id)


async def _checkpoint(call: ApiCall) -> TextAnswer:
    session, body = await call.session(), call.body
    return TextAnswer(text=await session.checkpoint(body.label, input_id=body.input_id))


async def _rewind(call: ApiCall) -> RewindPlan:
    body: RewindBody = call.body
    session = await call.session()
    return await session.rewind(
        body.to,
        body.files,
        body.conversation,
        body.preview,
        overwrite=body.overwrite,
        # A look is no change, and what it shows may be another the next time.
        input_id=None if body.preview else body.input_id,
    )


async def _undo_rewind(call: ApiCall) -> RewindPlan:
    body: UndoRewindBody = call.body
    session = await call.session()
    return await session.undo_rewind(
        body.preview,
        overwrite=body.overwrite,
        input_id=None if body.preview else body.input_id,
    )


async def _summarize_branch(call: ApiCall) -> TextAnswer:
    session, body = await call.session(), call.body
    return TextAnswer(text=await session.summarize_branch(body.node, input_id=body.input_id))


async def _nodes(call: ApiCall) -> list[TreeMessage]:
    wanted = [each for each in call.query.ids.split(",") if each]
    if len(wanted) > MOST_NODES:
        raise UsageError(f"at most {MOST_NODES} messages at once")
    return await (await call.session()).nodes(wanted)


MOST_NODES = 1_000


async def _fan(call: ApiCall) -> Fan:
    app = await call.parts.projects.home_of(call.path["id"])
    fan = await app.fan(call.path["fan"])
    session = await app.sessions.resolve_id(call.path["id"])
    if fan.session_id != session:
        raise UsageError(f"{call.path['fan']!r:.80} is no fan-out of this session")
    return fan


def fan_view(fan: Fan) -> FanView:
    """A fan-out as it is now."""
    return FanView(
        id=fan.id,
        session_id=fan.session_id,
        prompt=fan.prompt,
        planned=fan.planned,
        verify_command=fan.verify_command,
        is_settled=fan.is_settled,
        candidates=fan.candidates(),
    )


async def _start_fan(call: ApiCall) -> FanView:
    return fan_view(await (await call.session()).generate_branches(**call.fields()))


async def _get_fan(call: ApiCall) -> FanView:
    return fan_view(await _fan(call))


async def _fan_diff(call: ApiCall) -> str:
    index = call.path["index"]
    if not (index.isascii() and index.isdigit()):
        raise UsageError(f"a candidate has a number, not {index!r:.40}")
    return await (await _fan(call)).diff(int(index))


async def _fan_output(call: ApiCall) -> str:
    index = call.path["index"]
    if not (index.isascii() and index.isdigit()):
        raise UsageError(f"a candidate has a number, not {index!r:.40}")
    return await (await _fan(call)).verify_output(int(index))


async def _fan_compare(call: ApiCall) -> str:
    return await (await _fan(call)).compare(call.query.first, call.query.second)


async def _fan_events(call: ApiCall) -> EventResponse:
    fan, after = await _fan(call), cursor_of(call)

    async def pieces(lost: Callable[[], None]) -> AsyncIterator[bytes]:
        del lost  # the log has what it does not take
        events = fan.events(after)
        try:
            async for fact in events:
                yield b"id: %d\n" % fact.seq + piece_of(fact)
        finally:
            events.close()

    return EventResponse(pieces, call.parts.relays.is_closing)


async def _keep(call: ApiCall) -> KeepOutcome:
    body: KeepBody = call.body
    return await (await _fan(call)).keep(
        body.index, body.preview, force=body.force, conflicts=body.conflicts
    )


async def _prune(call: ApiCall) -> None:
    await (await _fan(call)).prune(call.body.index)


async def _resume(call: ApiCall) -> FanView:
    fan = await _fan(call)
    await fan.resume(call.body.indices)
    return fan_view(fan)


async def _stop(call: ApiCall) -> FanView:
    fan = await _fan(call)
    await fan.stop()
    return fan_view(fan)


async def _fans(call: ApiCall) -> list[FanSummary]:
    return await (await call.app()).fans()


def _fan_call(
    method: Literal["GET", "POST"],
    path: str,
    name: str,
    says: str,
    run: Callable[[ApiCall], Any],
    **more: Any,
) -> ApiOperation:
    return ApiOperation(
        method=method,
        path=f"/sessions/{{id}}/fan/{{fan}}{path}",
        name=name,
        says=says,
        run=run,
        remembers=False,
        **more,
    )


TREE: tuple[ApiOperation, ...] = (
    session_call("GET", "/tree", "tree", "Every message of every branch.", answer=TreeView),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/nodes",
        name="nodes",
        says="Some messages of the tree, each with its beginning.",
        run=_nodes,
        query=NodesQuery,
        answer=list[TreeMessage],
        calls=("session.nodes",),
    ),
    session_call("GET", "/branches", "list_branches", "The branches.", answer=list[Branch]),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/branches",
        name="branch_at",
        says="Let the line end at a message, and go on from there; nothing is lost.",
        run=_branch,
        body=BranchBody,
        answer=Branch,
        status=201,
        calls=("session.branch_at",),
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/branches/{branch}/switch",
        name="switch_branch",
        says="Switch to a branch, by its name or number.",
        run=_switch,
        answer=Branch,
        calls=("session.switch_branch",),
    ),
    ApiOperation(
        method="PATCH",
        path="/sessions/{id}/branches/{branch}",
        name="rename_branch",
        says="Rename a branch.",
        run=_rename,
        body=NameBody,
        calls=("session.rename_branch",),
    ),
    ApiOperation(
        method="DELETE",
        path="/sessions/{id}/branches/{branch}",
        name="delete_branch",
        says="Delete a branch.",
        run=_delete,
        calls=("session.delete_branch",),
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/checkpoints",
        name="checkpoint",
        says="Save a checkpoint; the answer is its name.",
        run=_checkpoint,
        body=LabelBody,
        answer=TextAnswer,
        status=201,
        calls=("session.checkpoint",),
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/rewind",
        name="rewind",
        says="Put files, the conversation or both back to what they were at a message.",
        run=_rewind,
        body=RewindBody,
        answer=RewindPlan,
        calls=("session.rewind",),
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/rewind/undo",
        name="undo_rewind",
        says="Undo the last rewind.",
        run=_undo_rewind,
        body=UndoRewindBody,
        answer=RewindPlan,
        calls=("session.undo_rewind",),
    ),
    session_call(
        "GET",
        "/changes",
        "net_changes",
        "What was changed in files between two messages, one difference for each file.",
        query=ChangesQuery,
        answer=list[NetChange],
    ),
    session_call(
        "POST",
        "/changes/revert",
        "revert_hunk",
        "Put back one hunk of a file, by an edit under the session's rules.",
        body=HunkBody,
        answer=HunkOutcome,
    ),
    session_call(
        "GET",
        "/branch-files",
        "compare_files",
        "The files at the ends of two branches, and their differences.",
        query=BranchesQuery,
        answer=FileComparison,
    ),
    session_call(
        "POST",
        "/branch-files/take",
        "take_hunk",
        "Take one hunk of a file from another branch, by an edit under the session's rules.",
        body=TakenHunkBody,
        answer=HunkOutcome,
    ),
    session_call(
        "POST",
        "/branch-files/weave",
        "weave_files",
        "Put the files of two branches together, below the message where they part.",
        body=FileWeaveBody,
        answer=FileWeave,
    ),
    session_call(
        "GET",
        "/revisions/{node}",
        "revisions",
        "The texts that a message has had, oldest first.",
        answer=list[str],
    ),
    session_call(
        "POST",
        "/revisions/{node}",
        "restore_revision",
        "Bring an earlier text of a message back.",
        body=RevisionBody,
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/summarize-branch",
        name="summarize_branch",
        says="Carry what was learned on another branch to this one.",
        run=_summarize_branch,
        body=NodeBody,
        answer=TextAnswer,
        calls=("session.summarize_branch",),
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/fan",
        name="generate_branches",
        says="Have several candidates do a task at once, each in a copy of its own.",
        run=_start_fan,
        body=FanBody,
        answer=FanView,
        status=201,
        calls=("session.generate_branches",),
    ),
    ApiOperation(
        method="GET",
        path="/projects/{project}/fans",
        name="fans",
        says="The fan-outs of a project, newest first.",
        run=_fans,
        answer=list[FanSummary],
        calls=("app.fans",),
    ),
    _fan_call(
        "GET",
        "",
        "fan",
        "A fan-out with its candidates, the best first.",
        _get_fan,
        answer=FanView,
        calls=("app.fan", "fan.candidates"),
    ),
    _fan_call(
        "GET",
        "/events",
        "fan_events",
        "The facts of a fan-out as server-sent events, until it is settled.",
        _fan_events,
        query=CursorQuery,
        answer=str,
        media_type="text/event-stream",
        streams=True,
        calls=("fan.events",),
    ),
    _fan_call(
        "GET",
        "/diff/{index}",
        "fan_diff",
        "What a candidate changed.",
        _fan_diff,
        answer=str,
        media_type="text/plain",
        calls=("fan.diff",),
    ),
    _fan_call(
        "GET",
        "/output/{index}",
        "fan_output",
        "What the last run of the check printed for a candidate; 0 is the base.",
        _fan_output,
        answer=str,
        media_type="text/plain",
        calls=("fan.verify_output",),
    ),
    _fan_call(
        "GET",
        "/compare",
        "fan_compare",
        "How two candidates differ.",
        _fan_compare,
        query=CompareQuery,
        answer=str,
        media_type="text/plain",
        calls=("fan.compare",),
    ),
    _fan_call(
        "POST",
        "/keep",
        "fan_keep",
        "Put a candidate's changes into the project, or look what that would do.",
        _keep,
        body=KeepBody,
        answer=KeepOutcome,
        calls=("fan.keep",),
    ),
    _fan_call(
        "POST",
        "/prune",
        "fan_prune",
        "Give a candidate up.",
        _prune,
        body=IndexBody,
        calls=("fan.prune",),
    ),
    _fan_call(
        "POST",
        "/resume",
        "fan_resume",
        "Resume candidates that were interrupted.",
        _resume,
        body=ResumeBody,
        answer=FanView,
        calls=("fan.resume",),
    ),
    _fan_call(
        "POST",
        "/stop",
        "fan_stop",
        "Stop what is at work.",
        _stop,
        answer=FanView,
        calls=("fan.stop", "fan.close"),
    ),
)
