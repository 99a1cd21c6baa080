"""The table of operations: what the router, the OpenAPI document and the tests are made from."""

from __future__ import annotations

from typing import Final

from weft.server.operation import ApiOperation
from weft.server.routes.conversation import CONVERSATION
from weft.server.routes.server_calls import SERVER_CALLS
from weft.server.routes.sessions import SESSIONS
from weft.server.routes.settings import SETTINGS

OPERATIONS: Final[tuple[ApiOperation, ...]] = (
    *SERVER_CALLS,
    *SESSIONS,
    *CONVERSATION,
    *SETTINGS,
)
"""Every operation there is."""
