"""A command beside its egress proxy, and what the model is told of the hosts that were refused."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import closing

import anyio
import msgspec

from weft.workspace.base import RunResult
from weft.workspace.egress.egress_proxy import EgressProxy
from weft.workspace.egress.judge import EgressJudge, RefusedHost
from weft.workspace.egress.proxy_variables import proxy_variables

_MOST_TOLD = 10


async def run_with_egress(
    listener: socket.socket,
    judge: EgressJudge,
    environ: Mapping[str, str],
    work: Callable[[Mapping[str, str]], Awaitable[RunResult]],
) -> RunResult:
    """Run a command (`work`, with the variables that it needs besides `environ`) while the proxy
    serves it; the listener is closed, and every connection, when this returns or is cancelled.
    """
    proxy = EgressProxy(judge)
    result: RunResult | Exception
    with closing(listener):
        async with anyio.create_task_group() as group:
            group.start_soon(proxy.serve, listener)
            try:
                result = await work(proxy_variables(environ, judge.local_names))
            except Exception as error:  # not through the group, which would wrap it
                result = error
            group.cancel_scope.cancel()
    if isinstance(result, Exception):
        raise result
    if not (remark := refusal_remark(proxy.refused.values())):
        return result
    return msgspec.structs.replace(result, remarks=(*result.remarks, remark))


def refusal_remark(refused: Iterable[RefusedHost]) -> str:
    """What the model reads of refused hosts; empty where there are none."""
    hosts = list(refused)
    if not hosts:
        return ""
    shown = ", ".join(map(str, hosts[:_MOST_TOLD]))
    more = f" and {len(hosts) - _MOST_TOLD} more" if len(hosts) > _MOST_TOLD else ""
    rules = dict.fromkeys(each.rule for each in hosts[:_MOST_TOLD] if each.rule)
    told = f"(The sandbox did not let it reach {shown}{more}."
    if rules:
        told += (
            f" The user can allow it with the rule {', '.join(f'`{rule}`' for rule in rules)}; "
            "to ask for it now, call again and name the host in `hosts`."
        )
    return f"{told})"
