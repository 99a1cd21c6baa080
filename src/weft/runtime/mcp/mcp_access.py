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

    def names(self, project: str) -> tuple[str, ...]:
        """The names of all servers that are configured for a project, usable or not."""
        found = self.of(project)
        return () if found is None else tuple(found.configured.servers)

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
