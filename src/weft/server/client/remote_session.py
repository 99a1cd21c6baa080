"""A session of a server: the calls of `weft.Session`, with the same names and answers."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, Unpack

from weft.api import (
    AbortReceipt,
    Accepted,
    Branch,
    EditorSnapshot,
    HistoryMessage,
    MessageOptions,
    Page,
    Reply,
    RewindPlan,
    SessionMetadata,
)
from weft.errors import UsageError
from weft.events import PermissionAction, Status
from weft.ids import SessionId
from weft.messages import Content
from weft.server.client.remote_events import RemoteEvents
from weft.server.client.server_link import BY_NAME, ServerLink
from weft.server.routes.sessions import MOST_MESSAGES


class RemoteSession:
    """A handle on a session of a server.  Callables cannot travel: tools are named."""

    def __init__(self, link: ServerLink, session_id: str) -> None:
        self.id = SessionId(session_id)
        self._link = link
        self._client = ""

    def __repr__(self) -> str:
        return f"RemoteSession({self.id!r})"

    async def _call(
        self,
        name: str,
        body: dict[str, Any] | None = None,
        query: dict[str, Any] | None = None,
        **path: str,
    ) -> Any:
        return await self._link.call(
            name, {"id": self.id, **path}, body=body, query=query, client=self._client
        )

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Every other call of a session that is one operation: `usage()`, `set_model(model=…)`."""
        operation = BY_NAME.get(name)
        if operation is None or operation.calls[:1] != (f"session.{name}",):
            raise AttributeError(f"a session of a server has no {name!r}")
        parts = [part for part in _names(operation.path) if part != "id"]

        async def call(**arguments: Any) -> Any:
            path = {part: str(arguments.pop(part)) for part in parts}
            if operation.changes:
                return await self._call(name, arguments, None, **path)
            return await self._call(name, None, arguments, **path)

        return call

    # -- talking

    async def send_message(
        self,
        content: Content,
        *,
        queue: bool = True,
        input_id: str | None = None,
        **options: Unpack[MessageOptions],
    ) -> Reply:
        """Send a message and wait for the end of its turn; see `Session.send_message`."""
        body = {"content": content, "queue": queue, "input_id": input_id, **options}
        reply: Reply = await self._call("send_message", body)
        return reply

    async def send_prompt(
        self, content: Content, *, input_id: str | None = None, **options: Unpack[MessageOptions]
    ) -> Accepted:
        """Send a message; returns as soon as it is durable."""
        accepted: Accepted = await self._call(
            "send_prompt", {"content": content, "input_id": input_id, **options}
        )
        return accepted

    async def queue_steering(self, content: Content, *, input_id: str | None = None) -> Accepted:
        """Send a message that the turn which runs takes up after its tool calls."""
        accepted: Accepted = await self._call(
            "queue_steering", {"content": content, "input_id": input_id}
        )
        return accepted

    async def queue_follow_up(
        self, content: Content, *, input_id: str | None = None, **options: Unpack[MessageOptions]
    ) -> Accepted:
        """Send a message for when the turn which runs has ended."""
        accepted: Accepted = await self._call(
            "queue_follow_up", {"content": content, "input_id": input_id, **options}
        )
        return accepted

    async def abort(self, reason: str = "", *, input_id: str | None = None) -> AbortReceipt:
        """Stop the turn that runs."""
        receipt: AbortReceipt = await self._call("abort", {"reason": reason, "input_id": input_id})
        return receipt

    async def continue_turn(
        self, *, input_id: str | None = None, **options: Unpack[MessageOptions]
    ) -> Accepted:
        """Continue from exactly what is stored."""
        accepted: Accepted = await self._call("continue_turn", {"input_id": input_id, **options})
        return accepted

    async def attach(self, role: Literal["viewer", "driver"] = "viewer") -> str:
        """Attach as one of several clients; a viewer's changes are refused."""
        attached = await self._call("attach", {"role": role})
        self._client = attached.client
        return self._client

    async def detach(self) -> None:
        """Detach this client; without one, nothing happens."""
        if self._client:
            client, self._client = self._client, ""
            await self._call("detach", client=client)

    async def claim_driver(self) -> None:
        """Drive from now on."""
        if not self._client:
            await self.attach("driver")
        else:
            await self._call("claim_driver", client=self._client)

    async def respond_to_permission(
        self,
        action: PermissionAction,
        *,
        request_id: str | None = None,
        meta: dict[str, Any] | None = None,
        input_id: str | None = None,
    ) -> None:
        """Answer a permission request; the only open one need not be named."""
        request = request_id or await self._only_request()
        body = {"action": action, "input_id": input_id, **(meta or {})}
        await self._call("respond", body, request=request)

    async def _only_request(self) -> str:
        snapshot = await self.editor_snapshot()
        found = [each.request_id for each in snapshot.requests]
        if len(found) != 1:
            raise UsageError(f"{len(found)} requests are open: name one by its request_id")
        return found[0]

    async def answer_question(
        self, request_id: str, answer: str, *, input_id: str | None = None
    ) -> None:
        """Answer a question of the model's."""
        await self._call("respond", {"answer": answer, "input_id": input_id}, request=request_id)

    # -- reading

    async def line(
        self, before: str | None = None, after: str | None = None, limit: int = MOST_MESSAGES
    ) -> Page:
        """A page of the present line, each message with its id."""
        found = await self._call(
            "messages", query={"before": before, "after": after, "limit": limit}
        )
        return Page(
            items=tuple((row.id, row.message) for row in found.messages),
            before=found.previous,
            after=found.next,
            seq=found.seq,
        )

    async def messages_with_ids(self) -> list[tuple[str, HistoryMessage]]:
        """The whole present line, oldest first, read page by page from its end."""
        pages = [await self.line()]
        while pages[-1].before is not None:
            pages.append(await self.line(before=pages[-1].before))
        return [item for page in reversed(pages) for item in page.items]

    async def messages(self) -> list[HistoryMessage]:
        """The whole present line, oldest first."""
        return [message for _, message in await self.messages_with_ids()]

    async def get_status(self) -> Status:
        """What the session does."""
        return (await self.editor_snapshot()).status

    async def editor_snapshot(self) -> EditorSnapshot:
        """What a screen needs to draw itself."""
        view = await self._call("editor_snapshot")
        snapshot: EditorSnapshot = view.snapshot
        return snapshot

    async def metadata(self) -> SessionMetadata:
        """Title, model, counts, cost and status."""
        found: SessionMetadata = await self._call("metadata")
        return found

    async def subscribe(self, *, after: int | None = None) -> RemoteEvents:
        """Events: those after the cursor, then new ones; they go on through lost connections and a
        server that is started again.
        """
        return await RemoteEvents(self._link, self.id, after).open()

    # -- the tree

    async def branch_at(
        self, node_or_index: str | int, name: str | None = None, *, input_id: str | None = None
    ) -> Branch:
        """Let the line end at a message, and go on from there."""
        body = {"at": node_or_index, "name": name, "input_id": input_id}
        branch: Branch = await self._call("branch_at", body)
        return branch

    async def switch_branch(
        self, name_or_index: str | int, *, input_id: str | None = None
    ) -> Branch:
        """Switch to a branch."""
        branch: Branch = await self._call(
            "switch_branch", {"input_id": input_id}, branch=str(name_or_index)
        )
        return branch

    async def checkpoint(self, label: str | None = None, *, input_id: str | None = None) -> str:
        """Save a checkpoint; returns its name."""
        made = await self._call("checkpoint", {"label": label, "input_id": input_id})
        return str(made.text)

    async def rewind(
        self,
        to: str | int | None,
        files: bool = True,
        conversation: bool = True,
        preview: bool = False,
        *,
        overwrite: Sequence[str] = (),
        input_id: str | None = None,
    ) -> RewindPlan:
        """Put files, the conversation or both back to what they were at a message."""
        body = {
            "to": to,
            "files": files,
            "conversation": conversation,
            "preview": preview,
            "overwrite": list(overwrite),
            "input_id": input_id,
        }
        plan: RewindPlan = await self._link.call(
            "rewind", {"id": self.id}, body=body, client=self._client, nulls=("to",)
        )
        return plan

    async def undo_rewind(
        self, preview: bool = False, *, overwrite: Sequence[str] = (), input_id: str | None = None
    ) -> RewindPlan:
        """Undo the last rewind."""
        body = {"preview": preview, "overwrite": list(overwrite), "input_id": input_id}
        plan: RewindPlan = await self._call("undo_rewind", body)
        return plan

    async def stop(self) -> None:
        """Stop the session; its record stays."""
        await self._call("stop_session")


def _names(path: str) -> list[str]:
    return re.findall(r"\{(\w+)", path)
