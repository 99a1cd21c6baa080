"""The table of operations: what the router, the OpenAPI document and the tests are made from."""

from __future__ import annotations

from typing import Any, Final

from weft.server.operation import ApiCall, ApiOperation
from weft.server.routes.conversation import CONVERSATION
from weft.server.routes.decisions import DECISIONS
from weft.server.routes.event_streams import EVENT_STREAMS
from weft.server.routes.evidence import EVIDENCE
from weft.server.routes.imports import IMPORTS
from weft.server.routes.looms import LOOMS
from weft.server.routes.mcp_servers import MCP_SERVERS
from weft.server.routes.model_access import MODEL_ACCESS
from weft.server.routes.permissions import PERMISSIONS
from weft.server.routes.projects import PROJECTS
from weft.server.routes.queries import QUERIES
from weft.server.routes.server_calls import SERVER_CALLS
from weft.server.routes.sessions import SESSIONS
from weft.server.routes.settings import SETTINGS
from weft.server.routes.tree import TREE
from weft.server.routes.unattended import UNATTENDED


async def _openapi(call: ApiCall) -> Any:
    del call
    from weft.server.openapi import openapi_document  # few ask for it

    return openapi_document(OPERATIONS)


OPERATIONS: Final[tuple[ApiOperation, ...]] = (
    *SERVER_CALLS,
    ApiOperation(
        method="GET",
        path="/openapi.json",
        name="openapi",
        says="This API as an OpenAPI 3.1 document.",
        run=_openapi,
        answer=dict[str, Any],
    ),
    *SESSIONS,
    *EVIDENCE,
    *CONVERSATION,
    *SETTINGS,
    *TREE,
    *UNATTENDED,
    *EVENT_STREAMS,
    *PROJECTS,
    *IMPORTS,
    *MCP_SERVERS,
    *MODEL_ACCESS,
    *PERMISSIONS,
    *DECISIONS,
    *QUERIES,
    *LOOMS,
)
"""Every operation there is."""
