"""What Weft offers to other agents: its sessions, and the files of the project."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

import anyio
import msgspec

from weft.app import App
from weft.errors import SessionNotFound, UsageError
from weft.mcp_server.ask_tool import AskTool
from weft.mcp_server.catalogue import (
    CallClient,
    OfferChange,
    ResourceMissing,
    ServedOffer,
    ServedPrompt,
    ServedResource,
    ServedTool,
)
from weft.messages import File, Text

SCHEME: Final = "weft://session/"
MOST_LISTED: Final = 50
MOST_TEXT: Final = 100_000
"""Characters of a conversation or a file that one call brings."""
_INSTRUCTIONS: Final = (
    "Weft is a coding agent with durable sessions. weft_ask gives it a task and waits for the "
    "answer; what needs permission is asked of your user. The other tools read: sessions, files."
)
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}


def weft_offer(app: App) -> ServedOffer:
    """All of it, for one open application."""
    served = _Offer(app)
    return ServedOffer(
        instructions=_INSTRUCTIONS,
        tools=served.tools(),
        resources=served.resources,
        templates=(
            ServedResource(
                uri=f"{SCHEME}{{id}}", name="session", description="A conversation as Markdown."
            ),
        ),
        read=served.read,
        prompts=served.prompts,
        prompt=served.prompt,
        changes=served.changes,
    )


class _Offer:
    def __init__(self, app: App) -> None:
        self._app = app
        self._ask = AskTool(app)

    def tools(self) -> tuple[ServedTool, ...]:
        return (*self._session_tools(), *self._file_tools())

    def _session_tools(self) -> tuple[ServedTool, ...]:
        return (
            ServedTool(
                name="weft_ask",
                description="Give Weft a task or a question and wait for its answer. Without "
                "session_id a new session begins.",
                properties={
                    "prompt": _described(_TEXT, "What to do or to answer."),
                    "session_id": _described(_TEXT, "A session to go on with."),
                    "model": _described(_TEXT, "The model of a new session."),
                    "cwd": _described(_TEXT, "The folder of a new session."),
                },
                required=("prompt",),
                run=self._ask.run,
            ),
            ServedTool(
                name="weft_sessions",
                description="List stored sessions of this project, the newest first.",
                properties={
                    "query": _described(_TEXT, "Words of the title or of what was said."),
                    "limit": _described(_NUMBER, f"Maximum number, up to {MOST_LISTED}."),
                },
                only_reads=True,
                run=self._sessions,
            ),
            ServedTool(
                name="weft_read",
                description="Read the conversation of a session as Markdown.",
                properties={
                    "session_id": _described(_TEXT, "Its id."),
                    "offset": _described(_NUMBER, "Characters to leave out at the beginning."),
                },
                required=("session_id",),
                only_reads=True,
                run=self._read_session,
            ),
            ServedTool(
                name="weft_fork",
                description="Make a new session that shares the history of another.",
                properties={
                    "session_id": _described(_TEXT, "The session to fork."),
                    "at": _described(_TEXT, "The last message to share; by default the last."),
                    "title": _described(_TEXT, "The title of the new session."),
                },
                required=("session_id",),
                run=self._fork,
            ),
            ServedTool(
                name="weft_rewind",
                description="Show what a rewind of a session to a message would do to files and "
                "conversation. Nothing is changed.",
                properties={
                    "session_id": _described(_TEXT, "The session."),
                    "to": _described(_TEXT, "A message; by default before the first."),
                },
                required=("session_id",),
                only_reads=True,
                run=self._rewind,
            ),
        )

    def _file_tools(self) -> tuple[ServedTool, ...]:
        return (
            ServedTool(
                name="weft_files",
                description="Find files of the project by a part of their path.",
                properties={"query": _described(_TEXT, "A part of the path.")},
                required=("query",),
                only_reads=True,
                run=self._files,
            ),
            ServedTool(
                name="weft_search",
                description="Find the files that a request is about, with their signatures.",
                properties={"request": _described(_TEXT, "Words, names, or a sentence.")},
                required=("request",),
                only_reads=True,
                run=self._search,
            ),
            ServedTool(
                name="weft_read_file",
                description="Read a file of the project; secrets in it are masked.",
                properties={"path": _described(_TEXT, "Relative to the project.")},
                required=("path",),
                only_reads=True,
                run=self._read_file,
            ),
        )

    # -- sessions

    async def _sessions(self, args: dict[str, Any], client: CallClient) -> str:
        limit = max(1, min(int(args.get("limit", 20)), MOST_LISTED))
        rows = await self._app.sessions.list_saved(self._app.project_path, args.get("query"), limit)
        found = [
            {
                "id": row.id,
                "title": row.title or row.first_prompt[:200],
                "model": row.model,
                "last_active": row.last_active,
                "messages": row.message_count,
            }
            for row in rows
        ]
        return msgspec.json.format(msgspec.json.encode(found)).decode()

    async def _read_session(self, args: dict[str, Any], client: CallClient) -> str:
        text = await self._app.sessions.export_session(str(args["session_id"]), "md")
        return _page(text, int(args.get("offset", 0)))

    async def _fork(self, args: dict[str, Any], client: CallClient) -> str:
        forked = await self._app.sessions.fork_session(
            str(args["session_id"]), args.get("at"), args.get("title")
        )
        return f"made the session {forked.id}"

    async def _rewind(self, args: dict[str, Any], client: CallClient) -> str:
        session = await self._app.sessions.get(str(args["session_id"]))
        plan = await session.rewind(args.get("to"), preview=True)
        lines = [f"{item.action} {item.path} {item.reason}".rstrip() for item in plan.files]
        lines += [f"not known: {path}" for path in plan.left_out]
        return "\n".join(lines) or "no file would change"

    # -- files

    async def _files(self, args: dict[str, Any], client: CallClient) -> str:
        found = await self._app.index.find(str(args["query"]))
        return "\n".join(found[:200]) or "no file has such a path"

    async def _search(self, args: dict[str, Any], client: CallClient) -> str:
        return await self._app.index.map(str(args["request"]), tokens=2048) or "nothing was found"

    async def _read_file(self, args: dict[str, Any], client: CallClient) -> str:
        path = str(args["path"])
        # The rules of `@file`: beneath the project, not denied by a rule, masked.
        for part in await self._app.attach_files([f"@{path}"]):
            if isinstance(part, File) and part.text is not None:
                return _page(part.text, 0)
        raise UsageError(f"there is no text file {path[:200]!r} in this project")

    # -- resources and prompts

    async def resources(self) -> list[ServedResource]:
        rows = await self._app.sessions.list_saved(self._app.project_path, None, MOST_LISTED)
        return [
            ServedResource(
                uri=f"{SCHEME}{row.id}",
                name=row.title or row.first_prompt[:80] or row.id,
                description="A conversation as Markdown.",
            )
            for row in rows
        ]

    async def changes(self) -> AsyncGenerator[OfferChange]:
        """What is another from now on: sessions that come, go or go on."""
        listed = await self.resources()
        events = await self._app.subscribe("sessions")
        try:
            async for change in events:
                now = await self.resources()
                # More than can be named have changed, where none is.
                ids = change.ids or [each.uri.removeprefix(SCHEME) for each in now]
                uris = frozenset(f"{SCHEME}{each}" for each in ids)
                # The order of the list, the newest first, is no change of it.
                is_list = set(now) != set(listed)
                listed = now
                yield OfferChange(is_list, uris)
        finally:
            events.close()

    async def read(self, uri: str) -> list[dict[str, Any]]:
        if not uri.startswith(SCHEME):
            raise ResourceMissing(f"there is no resource {uri[:200]!r}")
        try:
            text = await self._app.sessions.export_session(uri.removeprefix(SCHEME), "md")
        except SessionNotFound as error:
            raise ResourceMissing(f"there is no resource {uri[:200]!r}") from error
        return [{"uri": uri, "mimeType": "text/markdown", "text": text}]

    async def prompts(self) -> list[ServedPrompt]:
        found = (await self._app.host.commands(self._app.project_path)).found.values()
        return [
            ServedPrompt(
                name=each.name,
                description=each.description,
                arguments={"arguments": each.argument_hint or "what follows the command"},
            )
            for each in found
        ]

    async def prompt(
        self, name: str, args: dict[str, Any], client: CallClient
    ) -> list[dict[str, Any]]:
        arguments = str(args.get("arguments", ""))
        session = await self._app.sessions.start_session(store="memory")
        try:
            # No one is asked: a command whose shell commands need permission is refused.
            found = await session.expand_command(f"/{name} {arguments}".strip())
        finally:
            with anyio.CancelScope(shield=True):
                await self._app.sessions.delete_session(session.id)
        texts = [part.text for part in found.content if isinstance(part, (Text, File))]
        text = "\n\n".join(text for text in texts if text)
        return [{"role": "user", "content": {"type": "text", "text": text}}]


def _described(kind: dict[str, Any], about: str) -> dict[str, Any]:
    return {**kind, "description": about}


def _page(text: str, offset: int) -> str:
    """A part of a text, and where the next one begins."""
    start = max(0, offset)
    end = start + MOST_TEXT
    rest = f"\n\n[{len(text) - end} characters more; offset {end}]" if len(text) > end else ""
    return text[start:end] + rest
