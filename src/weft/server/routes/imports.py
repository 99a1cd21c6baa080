"""Operations on what a project keeps: taken over from other agents, and what of it goes next."""

from __future__ import annotations

from typing import Literal

from weft.api import AgentImport, KeptContents
from weft.errors import UsageError
from weft.server.operation import ApiCall, ApiOperation, ChangeBody


class ImportFromBody(ChangeBody, frozen=True, kw_only=True):
    """Whose sessions and set-up are taken over, and whether that is only shown."""

    agent: Literal["claude", "codex", "pi", "opencode"]
    id: str | None = None
    """One session, by its id there; without it those of the project."""
    preview: bool = True
    setup: bool | None = None
    """Its set-up, too; without it where no session is named."""


async def _import_from(call: ApiCall) -> AgentImport:
    body: ImportFromBody = call.body
    if body.id is not None and not body.id.replace("-", "").replace("_", "").isalnum():
        # A path of this machine is not for a browser to name.
        raise UsageError("a session is named by its id, not by a path")
    app = await call.app()
    return await app.import_from(body.agent, body.id, preview=body.preview, setup=body.setup)


async def _store(call: ApiCall) -> KeptContents:
    return await (await call.app()).kept_contents()


IMPORTS: tuple[ApiOperation, ...] = (
    ApiOperation(
        method="POST",
        path="/projects/{project}/import-from",
        name="import_from",
        says="Sessions and set-up of another agent of this machine: shown, or taken over.",
        run=_import_from,
        body=ImportFromBody,
        answer=AgentImport,
        calls=("app.import_from",),
        remembers=False,
    ),
    ApiOperation(
        method="GET",
        path="/projects/{project}/store",
        name="kept_contents",
        says="The file contents of a project, which go next, and what is lost with them.",
        run=_store,
        answer=KeptContents,
        calls=("app.kept_contents",),
    ),
)
