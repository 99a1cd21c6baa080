"""`decision_log`, `decision_query`, `decision_update`: the project's decision graph for the model.

They change no file and need no permission.  What a model writes is only proposed: the user, or a
check that passes, makes it count.  It cannot change what the user decided, but propose something in
its place.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from weft.decisions import (
    DecisionAccess,
    DecisionAdded,
    DecisionChanged,
    DecisionEntry,
    DecisionFact,
    DecisionGraph,
    DecisionNode,
    DecisionOption,
    clean_scope,
    clean_why,
    log_entry,
    narrative_of,
    nodes_for_path,
    note_line,
    relevant_nodes,
    returning_options,
    search,
)
from weft.errors import BadArguments, FinalToolError, UsageError
from weft.events import DecisionLogged, Effect
from weft.ids import DecisionId
from weft.permissions import ToolAction
from weft.tools.arguments import ToolArguments, late_schema, parse
from weft.tools.base import PreparedCall, Tool, ToolContext, ToolOutcome

MOST_SHOWN = 8


class OptionArguments(ToolArguments, frozen=True, kw_only=True):
    """One option."""

    title: Annotated[str, Meta(max_length=120, description="One line.")]
    verdict: Annotated[
        Literal["chosen", "rejected", "open"], Meta(description="What became of it.")
    ] = "rejected"
    why: Annotated[str, Meta(description="Why.")] = ""


class LogArguments(ToolArguments, frozen=True, kw_only=True):
    """What `decision_log` takes."""

    title: Annotated[str, Meta(max_length=120, description="One line.")]
    kind: Annotated[
        str,
        Meta(description="decision, goal, action, outcome, observation, revisit or constraint."),
    ] = "decision"
    why: Annotated[str, Meta(description="Reasons, short.")] = ""
    scope: Annotated[
        list[str], Meta(description="Paths, globs or symbols that it is about; empty: all.")
    ] = []
    options: Annotated[list[OptionArguments], Meta(description="What was weighed.")] = []
    supersedes: Annotated[str, Meta(description="Id of the decision that it replaces.")] = ""


class QueryArguments(ToolArguments, frozen=True, kw_only=True):
    """What `decision_query` takes."""

    text: Annotated[str, Meta(description="Words to look for.")] = ""
    path: Annotated[str, Meta(description="A file.")] = ""
    id: Annotated[str, Meta(description="One decision, in full.")] = ""


class UpdateArguments(ToolArguments, frozen=True, kw_only=True):
    """What `decision_update` takes."""

    id: Annotated[str, Meta(description="Which one.")]
    status: Annotated[
        Literal["", "proposed", "abandoned", "done"],
        Meta(description="abandoned: tried and given up; done: finished."),
    ] = ""
    why: Annotated[str, Meta(description="Replaces the reasons.")] = ""
    confidence: Annotated[int, Meta(ge=-1, le=100, description="-1: as it is.")] = -1
    scope: Annotated[list[str], Meta(description="Replaces the scope.")] = []
    reason: Annotated[str, Meta(description="Why it changes.")] = ""


class DecisionLogTool(Tool):
    """Puts a node down, with its options."""

    name = "decision_log"
    description = (
        "Write down a decision of lasting value for this project: what was chosen, what was "
        "rejected and why. Later sessions get it when it matters. Not for what the code says."
    )
    schema = late_schema(LogArguments)
    effect: Effect = "pure"
    timeout_seconds = 30.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(LogArguments, args)
        access = _access(context)
        graph = await access.graph()
        entry = DecisionEntry(
            title=given.title,
            kind=given.kind,
            why=given.why,
            by="model",
            scope=tuple(given.scope),
            evidence=(access.turn(),),
            options=tuple(
                DecisionOption(title=each.title, verdict=each.verdict, why=each.why)
                for each in given.options
            ),
            supersedes=given.supersedes,
            at=access.now,
        )
        try:
            # The call's own id: one that is run again after a crash writes the same node.
            logged = log_entry(entry, graph, seed=context.call_uid, kinds=access.kinds)
        except UsageError as error:
            raise BadArguments(str(error)) from error

        async def run() -> ToolOutcome:
            facts = await access.noted(logged.facts)
            text = f"Logged as {logged.node.id}, proposed: the user can accept it."
            warning = _returning(graph, logged.node)
            title = next(fact.node.title for fact in facts if isinstance(fact, DecisionAdded))
            return _outcome(access, context, f"{text}{warning}", facts, logged.ids, title)

        return _prepared(self.name, given.title, run)


class DecisionQueryTool(Tool):
    """Looks something up."""

    name = "decision_query"
    description = (
        "Look up what was decided in this project before, by words, by file or by id: rejected "
        "options and failed attempts too. Use it before you propose a design."
    )
    schema = late_schema(QueryArguments)
    effect: Effect = "pure"
    timeout_seconds = 30.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(QueryArguments, args)
        if not (given.text or given.path or given.id):
            raise BadArguments("give `text`, `path` or `id`")
        access = _access(context)

        async def run() -> ToolOutcome:
            return ToolOutcome(text=_answer(await access.graph(), given, context, access.now))

        return _prepared(self.name, given.id or given.path or given.text, run)


class DecisionUpdateTool(Tool):
    """Changes a node that a model wrote."""

    name = "decision_update"
    description = (
        "Change a decision that you logged: abandon it, finish it, or correct it. What the user "
        "decided is replaced by `decision_log` with `supersedes`."
    )
    schema = late_schema(UpdateArguments)
    effect: Effect = "pure"
    timeout_seconds = 30.0

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        given = parse(UpdateArguments, args)
        access = _access(context)
        graph = await access.graph()
        node = _found(graph, given.id)
        # What the log showed (a correction, a plan) is as little the model's as what the user has
        # accepted of its own.
        if node.by != "model" or node.id in graph.of_user:
            raise FinalToolError(
                f"{node.id} is the user's: propose another with decision_log and `supersedes`"
            )
        if given.status == "done" and any(True for _ in graph.outgoing(node.id, "supersedes")):
            raise FinalToolError(
                f"{node.id} would take the place of another decision: the user accepts it first"
            )
        try:
            changed = DecisionChanged(
                id=node.id,
                status=given.status or None,
                why=clean_why(given.why) or None,
                confidence=given.confidence if given.confidence >= 0 else None,
                scope=clean_scope(given.scope) or None,
                evidence=(access.turn(),),
                by="model",
                reason=clean_why(given.reason),
            )
        except UsageError as error:
            raise BadArguments(str(error)) from error

        async def run() -> ToolOutcome:
            facts = await access.noted((changed,))
            return _outcome(access, context, f"Changed {node.id}.", facts, (node.id,), node.title)

        return _prepared(self.name, node.id, run)


def _access(context: ToolContext) -> DecisionAccess:
    if context.decisions is None:
        raise FinalToolError("there is no decision graph here")
    return context.decisions()


def _prepared(name: str, target: str, run: Any) -> PreparedCall:
    action = ToolAction(tool=name, kind="other", target=target, has_effect=False)
    return PreparedCall(action=action, run=run)


def _outcome(
    access: DecisionAccess,
    context: ToolContext,
    text: str,
    facts: tuple[DecisionFact, ...],
    ids: tuple[DecisionId, ...],
    title: str,
) -> ToolOutcome:
    logged = DecisionLogged(
        ids=ids,
        project_id=access.project_id,
        summary=title,
        node=context.node,
        call_uid=context.call_uid,
    )
    return ToolOutcome(text=text, facts=(logged,), project_facts=facts, data={"decision": ids[0]})


def _found(graph: DecisionGraph, name: str) -> DecisionNode:
    try:
        return graph.find(name)
    except UsageError:
        raise BadArguments(f"no decision {name!r}; decision_query finds them") from None


def _returning(graph: DecisionGraph, node: DecisionNode) -> str:
    """A warning where a plan goes back to what was rejected before."""
    if node.kind not in ("goal", "action", "decision"):
        return ""
    found = returning_options(graph, node.title)
    if not found:
        return ""
    decision, option = found[0]
    return f" Beware: {option.title} was rejected before ({decision.id}: {decision.title})."


def _answer(graph: DecisionGraph, given: QueryArguments, context: ToolContext, now: float) -> str:
    if given.id:
        return narrative_of(graph, [_found(graph, given.id)])
    found: dict[DecisionId, DecisionNode] = {}
    if given.path:
        path = context.workspace.relative(given.path)
        found.update((node.id, node) for node in nodes_for_path(graph, path))
    if given.text:
        near = relevant_nodes(graph, given.text, now=now, most=MOST_SHOWN, standing=False)
        found.update((each.node.id, each.node) for each in near)
        heads = (each for each in search(graph, given.text, now=now) if each.kind != "option")
        found.update((node.id, node) for node in heads)
    lines = [note_line(graph, node) for node in list(found.values())[:MOST_SHOWN]]
    return "\n".join(lines) or "Nothing was decided about that."
