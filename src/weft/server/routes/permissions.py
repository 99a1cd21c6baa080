"""Operations on the permission rules of a project, and the audit of a session."""

from __future__ import annotations

import msgspec

from weft.api import AuditEntry, PermissionExplanation, RuleSimulation, StandingRule
from weft.permissions import Mode, Verdict
from weft.server.operation import ApiCall, ApiOperation, ChangeBody, QueryFields


class RuleBody(ChangeBody, frozen=True, kw_only=True):
    """A rule of the user's settings."""

    verdict: Verdict
    rule: str
    match: list[str] = []
    """Examples that it has to cover."""
    not_match: list[str] = []
    """Examples that it must not cover."""


class RuleRemovalBody(ChangeBody, frozen=True, kw_only=True):
    """A rule that is taken out of the user's settings."""

    verdict: Verdict
    rule: str


class ExplainQuery(QueryFields, frozen=True, kw_only=True):
    """What is to be judged: a command, or what another tool is given."""

    text: str
    tool: str = "shell"
    mode: Mode = "default"


class SimulateQuery(QueryFields, frozen=True, kw_only=True):
    """The rule that is tried on past calls, and whether on those of every project."""

    rule: str
    verdict: Verdict = "allow"
    mode: Mode = "default"
    everywhere: bool = False


class RuleList(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that count in a project."""

    rules: list[StandingRule]


async def _list(call: ApiCall) -> RuleList:
    return RuleList(rules=(await call.app()).permissions.list())


async def _add(call: ApiCall) -> StandingRule:
    body = call.body
    permissions = (await call.app()).permissions
    added = await permissions.add(
        body.verdict, body.rule, match=body.match, not_match=body.not_match
    )
    _tell_others(call)
    return added


async def _remove(call: ApiCall) -> None:
    await (await call.app()).permissions.remove(call.body.verdict, call.body.rule)
    _tell_others(call)


def _tell_others(call: ApiCall) -> None:
    """The other projects that are open have the same user, whose rules are others now."""
    for app in call.parts.projects.apps:
        app.permissions.reread()


async def _explain(call: ApiCall) -> PermissionExplanation:
    asked = call.query
    permissions = (await call.app()).permissions
    return await permissions.explain(asked.text, tool=asked.tool, mode=asked.mode)


async def _simulate(call: ApiCall) -> RuleSimulation:
    asked = call.query
    permissions = (await call.app()).permissions
    return await permissions.simulate(
        asked.verdict, asked.rule, mode=asked.mode, everywhere=asked.everywhere
    )


async def _audit(call: ApiCall) -> list[AuditEntry]:
    return list(await (await call.app()).permissions.audit(call.path["id"]))


PERMISSIONS: tuple[ApiOperation, ...] = (
    ApiOperation(
        method="GET",
        path="/projects/{project}/permissions",
        name="list_rules",
        says="The permission rules that count in a project, those that deny first.",
        run=_list,
        answer=RuleList,
        calls=("app.permissions",),
    ),
    ApiOperation(
        method="POST",
        path="/projects/{project}/permissions",
        name="add_rule",
        says="Keep a permission rule in the user's settings; open sessions heed it at once.",
        run=_add,
        body=RuleBody,
        answer=StandingRule,
        remembers=False,
    ),
    ApiOperation(
        method="DELETE",
        path="/projects/{project}/permissions",
        name="remove_rule",
        says="Take a permission rule out of the user's settings.",
        run=_remove,
        body=RuleRemovalBody,
        remembers=False,
    ),
    ApiOperation(
        method="GET",
        path="/projects/{project}/permissions/explain",
        name="explain_action",
        says="What would be decided of a command, a path or an address, and why; nothing is run.",
        run=_explain,
        query=ExplainQuery,
        answer=PermissionExplanation,
    ),
    ApiOperation(
        method="GET",
        path="/projects/{project}/permissions/simulate",
        name="simulate_rule",
        says="What a rule would have changed in past sessions; it is not kept.",
        run=_simulate,
        query=SimulateQuery,
        answer=RuleSimulation,
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/audit",
        name="audit_session",
        says="Every effect of a session and of its agents, with who allowed it and why.",
        run=_audit,
        answer=list[AuditEntry],
    ),
)
