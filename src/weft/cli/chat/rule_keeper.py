"""Rules that are proposed when an approval is answered with "always": which, and where to keep
them.  Of a command that asks for hosts, the rules are about those."""

from __future__ import annotations

from typing import Any

from weft.app import App
from weft.events import PermissionRequest
from weft.permissions import PermissionRule
from weft.view import count_of

_STAYS = "# goes on in the background\n"
_REACHES = "it would reach "
"""How the reason begins where the hosts are what is asked about."""
_UNCONFINED = ("# outside the sandbox\n", "# without a sandbox: ")


class RuleKeeper:
    """The rules of the user, for one who answers approvals."""

    def __init__(self, app: App) -> None:
        self._app = app

    def proposed(
        self, request: PermissionRequest, args: dict[str, Any] | None
    ) -> tuple[PermissionRule, ...]:
        """Rules that allow the command that is asked about and others like it; none where there is
        no better one than its very words."""
        command = (args or {}).get("command")
        is_plain = request.tool_name == "shell" and request.child is None
        if is_plain and request.reason.startswith(_REACHES):
            return _host_rules(request.reason.removeprefix(_REACHES))
        if not is_plain or not isinstance(command, str) or (args or {}).get("cwd"):
            return ()
        asked = request.preview.removeprefix(_STAYS)
        if asked.startswith(_UNCONFINED[0]):
            return ()  # only the user can allow that, each time anew
        from weft.permissions.shell.rule_proposal import proposed_patterns  # loads the grammar

        patterns = proposed_patterns(
            command,
            self._app.project_path,
            reads_unasked=not asked.startswith(_UNCONFINED[1]),
        )
        if not any(pattern.endswith("*") for pattern in patterns):
            return ()
        return tuple(
            PermissionRule(verdict="allow", tool="shell", pattern=pattern) for pattern in patterns
        )

    async def history_of(self, rules: tuple[PermissionRule, ...]) -> str:
        """What rules would have covered in the sessions of this project."""
        told = []
        for rule in rules:
            found = await self._app.permissions.simulate("allow", f"{rule.tool}({rule.pattern})")
            told.append(f"{rule.pattern}: {found.covered} of {count_of(found.calls, 'past call')}")
        return " · ".join(told)

    async def keep(self, rules: tuple[PermissionRule, ...]) -> None:
        """Keep rules in the user's settings.

        Raises:
            UsageError: the file cannot be changed.
        """
        for rule in rules:
            await self._app.permissions.add("allow", f"{rule.tool}({rule.pattern})")


def _host_rules(hosts: str) -> tuple[PermissionRule, ...]:
    """Rules that let commands reach the hosts that are asked about."""
    from weft.permissions.network_rules import read_host  # few commands name any

    named = map(read_host, hosts.split(", "))
    return tuple(
        PermissionRule(verdict="allow", tool="fetch", pattern=f"domain:{host}")
        for host in dict.fromkeys(named)
        if host is not None
    )
