"""Operations on the decision graph of a project."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from weft.api import ProjectDecisions, PulseReport, WhyReport
from weft.decisions import DecisionEdge, DecisionNode, DecisionOption
from weft.server.bodies import TextAnswer
from weft.server.operation import ApiCall, ApiOperation, ChangeBody, Method, QueryFields, given


class DecisionQuery(QueryFields, frozen=True, kw_only=True):
    """Words or a file to look for; otherwise all nodes, of a kind or a status."""

    text: str | None = None
    path: str | None = None
    kind: str | None = None
    status: str | None = None
    session: str | None = None
    limit: int = 20


class DecisionList(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes, and the edges between them."""

    nodes: list[DecisionNode]
    edges: list[DecisionEdge]


class WhyQuery(QueryFields, frozen=True, kw_only=True):
    """A file, and perhaps a line of it, counted from 1."""

    path: str
    line: int | None = None


class NarrativeQuery(QueryFields, frozen=True, kw_only=True):
    """Of which session, or of which goal."""

    session: str | None = None
    goal: str | None = None


class DecisionExportQuery(QueryFields, frozen=True, kw_only=True):
    """The form of the export."""

    format: Literal["json", "dot", "mermaid", "adr"] = "json"


class DecisionBody(ChangeBody, frozen=True, kw_only=True):
    """What was decided."""

    title: str
    kind: str = "decision"
    why: str = ""
    scope: list[str] = []
    options: list[DecisionOption | str] = []
    supersedes: str | None = None
    parent: str | None = None
    confidence: int | None = None
    tags: list[str] = []
    review_after: float | None = None
    status: str = "active"
    session: str | None = None


class SupersedeBody(ChangeBody, frozen=True, kw_only=True):
    """The node that stands in the place of this one."""

    new: str
    rationale: str = ""


class AcceptBody(ChangeBody, frozen=True, kw_only=True):
    """Why it counts."""

    reason: str = ""


class LinkBody(ChangeBody, frozen=True, kw_only=True):
    """An edge from this node to another."""

    target: str
    kind: str = "leads_to"
    rationale: str = ""
    weight: float = 1.0


class DecisionChange(ChangeBody, frozen=True, kw_only=True):
    """What is to be changed of a node; what is left out stays."""

    status: str | None = None
    title: str | None = None
    why: str | None = None
    confidence: int | None = None
    scope: list[str] | None = None
    tags: list[str] | None = None
    review_after: float | None = None
    reason: str = ""


class AdrBody(ChangeBody, frozen=True, kw_only=True):
    """A file or a folder of architecture decision records."""

    path: str


class KindBody(ChangeBody, frozen=True, kw_only=True):
    """A kind of a program's own."""

    kind: str
    about: str = ""


async def _book(call: ApiCall) -> ProjectDecisions:
    return (await call.app()).decisions


async def _list(call: ApiCall) -> DecisionList:
    query: DecisionQuery = call.query
    book = await _book(call)
    if query.text is not None or query.path is not None:
        found = await book.query(query.text, path=query.path, limit=query.limit)
    else:
        found = await book.nodes(kind=query.kind, status=query.status, session=query.session)
    ids = {node.id for node in found}
    edges = [each for each in await book.edges() if each.source in ids and each.target in ids]
    return DecisionList(nodes=found, edges=edges)


async def _log(call: ApiCall) -> DecisionNode:
    return await (await _book(call)).log(**given(call.body, "input_id"))


async def _get(call: ApiCall) -> DecisionList:
    book = await _book(call)
    node = await book.get(call.path["decision"])
    return DecisionList(nodes=[node], edges=await book.edges(node.id))


async def _supersede(call: ApiCall) -> DecisionNode:
    book = await _book(call)
    return await book.supersede(call.path["decision"], call.body.new, call.body.rationale)


async def _accept(call: ApiCall) -> DecisionNode:
    return await (await _book(call)).accept(call.path["decision"], call.body.reason)


async def _change(call: ApiCall) -> DecisionNode:
    fields = given(call.body, "input_id")
    return await (await _book(call)).change(call.path["decision"], **fields)


async def _purge(call: ApiCall) -> None:
    await (await _book(call)).purge(call.path["decision"])


async def _link(call: ApiCall) -> DecisionEdge:
    body: LinkBody = call.body
    book = await _book(call)
    return await book.link(
        call.path["decision"], body.target, body.kind, body.rationale, body.weight
    )


async def _why(call: ApiCall) -> WhyReport:
    return await (await _book(call)).why(call.query.path, call.query.line)


async def _pulse(call: ApiCall) -> PulseReport:
    return await (await _book(call)).pulse()


async def _narrative(call: ApiCall) -> TextAnswer:
    query: NarrativeQuery = call.query
    book = await _book(call)
    return TextAnswer(text=await book.narrative(session=query.session, goal=query.goal))


async def _export(call: ApiCall) -> str:
    return await (await _book(call)).export(call.query.format)


async def _import(call: ApiCall) -> list[DecisionNode]:
    return await (await _book(call)).import_adr(call.body.path)


async def _kinds(call: ApiCall) -> dict[str, str]:
    return (await _book(call)).kinds()


async def _register(call: ApiCall) -> dict[str, str]:
    (await _book(call)).register(call.body.kind, call.body.about)
    return await _kinds(call)


def _on(
    method: Method, path: str, name: str, says: str, run: Any, *calls: str, **more: Any
) -> ApiOperation:
    return ApiOperation(
        method=method,
        path=f"/projects/{{project}}/decisions{path}",
        name=name,
        says=says,
        run=run,
        calls=tuple(f"app.decisions.{each}" for each in calls),
        remembers=method == "GET",
        **more,
    )


DECISIONS: tuple[ApiOperation, ...] = (
    _on(
        "GET",
        "",
        "decisions",
        "What was decided: about some words, about a file, or all of it.",
        _list,
        "query",
        query=DecisionQuery,
        answer=DecisionList,
    ),
    _on(
        "POST",
        "",
        "log_decision",
        "Log a decision.",
        _log,
        "log",
        body=DecisionBody,
        answer=DecisionNode,
        status=201,
    ),
    _on(
        "GET",
        "/pulse",
        "decision_pulse",
        "How the graph is: what is missing, stale or at odds.",
        _pulse,
        "pulse",
        answer=PulseReport,
    ),
    _on(
        "GET",
        "/narrative",
        "decision_narrative",
        "What was decided, as text.",
        _narrative,
        "narrative",
        query=NarrativeQuery,
        answer=TextAnswer,
    ),
    _on(
        "GET",
        "/why",
        "decision_why",
        "Why a file, or a line of it, is as it is.",
        _why,
        "why",
        query=WhyQuery,
        answer=WhyReport,
    ),
    _on(
        "GET",
        "/export",
        "export_decisions",
        "The graph as JSON, DOT, Mermaid or Markdown records.",
        _export,
        "export",
        query=DecisionExportQuery,
        answer=str,
        media_type="text/plain",
    ),
    _on(
        "POST",
        "/import",
        "import_adr",
        "Log the decision records of a file or a folder of this machine.",
        _import,
        "import_adr",
        body=AdrBody,
        answer=list[DecisionNode],
        status=201,
    ),
    _on(
        "GET",
        "/kinds",
        "decision_kinds",
        "The kinds of nodes that can be logged.",
        _kinds,
        answer=dict[str, str],
    ),
    _on(
        "POST",
        "/kinds",
        "register_kind",
        "Let nodes of a kind of your own be logged.",
        _register,
        "register",
        body=KindBody,
        answer=dict[str, str],
    ),
    _on(
        "GET",
        "/{decision}",
        "decision",
        "A node with its edges.",
        _get,
        "get",
        answer=DecisionList,
    ),
    _on(
        "PATCH",
        "/{decision}",
        "change_decision",
        "Change a node.",
        _change,
        "change",
        body=DecisionChange,
        answer=DecisionNode,
    ),
    _on(
        "DELETE",
        "/{decision}",
        "purge_decision",
        "Take a node out for good, such as a secret that was logged by mistake.",
        _purge,
        "purge",
    ),
    _on(
        "POST",
        "/{decision}/supersede",
        "supersede_decision",
        "Let another node stand in the place of this one.",
        _supersede,
        "supersede",
        body=SupersedeBody,
        answer=DecisionNode,
    ),
    _on(
        "POST",
        "/{decision}/accept",
        "accept_decision",
        "Make what was proposed count.",
        _accept,
        "accept",
        body=AcceptBody,
        answer=DecisionNode,
    ),
    _on(
        "POST",
        "/{decision}/link",
        "link_decision",
        "Link this node to another.",
        _link,
        "link",
        body=LinkBody,
        answer=DecisionEdge,
        status=201,
    ),
)
