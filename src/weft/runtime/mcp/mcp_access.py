"""The way of sessions to MCP servers; nothing of them is loaded where none is configured."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from weft.runtime.mcp.mcp_terms import McpTerms

if TYPE_CHECKING:  # loaded where a server is configured: it costs start-up time
    from weft.runtime.mcp.project_servers import ProjectMcpServers


class McpAccess:
    """The MCP servers of one application, by project."""

    def __init__(self, terms: McpTerms) -> None:
        self._terms = terms
        self._projects: dict[str, ProjectMcpServers] = {}
        self._may_have: dict[str, bool] = {}

    def look(self, project: str) -> None:
        """See whether a project may have servers; done when a session is opened, and not by its
        turns."""
        self._may_have[project] = self._may_have_any(project)

    def of(self, project: str) -> ProjectMcpServers | None:
        """The servers of a project; None where none is configured.

        Raises:
            UsageError: what the command line brings cannot be read.
        """
        if project not in self._may_have:
            self.look(project)
        is_known = project in self._projects
        return self.loaded(project) if is_known or self._may_have[project] else None

    def loaded(self, project: str) -> ProjectMcpServers:
        """The servers of a project, be there none."""
        if project not in self._projects:
            from weft.runtime.mcp.project_servers import ProjectMcpServers

            self._projects[project] = ProjectMcpServers(self._terms, project)
        return self._projects[project]

    @property
    def is_driven(self) -> bool:
        """A program drives us, and may name servers of its own at any time."""
        return self._terms.program is not None

    def names(self, project: str) -> set[str]:
        """The names of all servers that the user has, usable or not: of this project, and of any
        other, for rules of theirs hold in all of them."""
        from weft.mcp import ProjectChoices, UserServers, configured_servers  # few have rules

        config = self._terms.places.config
        found = self.of(project)
        here = () if found is None else found.configured.servers
        # Also what a strict list of servers leaves out for this one run.
        named = configured_servers(config, project).servers
        return {*here, *named, *UserServers(config).names(), *ProjectChoices(config).names()}

    def _may_have_any(self, project: str) -> bool:
        terms = self._terms
        if terms.program is not None and terms.program.entries:
            return True
        if terms.given or terms.is_strict:
            return bool(terms.given)
        # The names of the files as `weft.mcp` has them, without loading that.
        is_users = os.path.exists(f"{terms.places.config}/mcp.json")
        if is_users or terms.without_project:
            return is_users
        return os.path.lexists(f"{project}/.mcp.json")
