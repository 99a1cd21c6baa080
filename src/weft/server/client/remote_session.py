"""A session of a server: the calls of `weft.Session`, with the same names and answers."""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, NoReturn, Unpack

import anyio

from weft.api import (
    AbortReceipt,
    Accepted,
    EditorSnapshot,
    HistoryMessage,
    MessageOptions,
    Page,
    Reply,
    RewindPlan,
    Session,
    SessionMetadata,
)
from weft.errors import UsageError
from weft.events import PermissionAction, Replaced, Status
from weft.evidence import BisectCheck, Bisection
from weft.ids import SessionId
from weft.messages import Content
from weft.server.client.remote_events import LiveChoice, RemoteEvents, RemoteJoined
from weft.server.client.remote_fan import RemoteFan
from weft.server.client.server_link import ClientForgotten, ServerLink
from weft.server.client.session_calls import ELSEWHERE, WITHOUT_ROUTE, bound, shape_of
from weft.server.routes.sessions import MOST_MESSAGES
from weft.state import QueueEntry


class RemoteSession:
    """A handle on a session of a server.  Callables cannot travel: tools are named.

    What is not written out here is called as on a `Session`, and bound by its signature.
    """

    def __init__(self, link: ServerLink, session_id: str) -> None:
        self.id = SessionId(session_id)
        self._link = link
        self._client = ""
        self._name = ""
        self.driver = ""
        """The client that drove when this one attached, or has driven since."""
        self._attaching = anyio.Lock()
        self._readers: list[weakref.ref[RemoteEvents]] = []

    def __repr__(self) -> str:
        return f"RemoteSession({self.id!r})"

    @property
    def client(self) -> str:
        """The id under which this handle is attached; empty when it is not."""
        return self._client

    def session_id(self) -> SessionId:
        """`id`, as a call."""
        return self.id

    @staticmethod
    def combine_queue_entries_to_text(entries: Sequence[QueueEntry]) -> str:
        """One string for showing entries or putting them back into an input box."""
        return Session.combine_queue_entries_to_text(entries)

    async def _call(self, operation: str, body: dict[str, Any] | None = None, **path: str) -> Any:
        return await self._sent(operation, path, body=body)

    async def _sent(self, operation: str, path: dict[str, str], **more: Any) -> Any:
        where = {"id": self.id, **path}
        client = self._client
        try:
            return await self._link.call(operation, where, client=client, **more)
        except ClientForgotten:
            await self._attach_again(client)
            if "client" in path:
                where["client"] = self._client
            return await self._link.call(operation, where, client=self._client, **more)

    async def _attach_again(self, forgotten: str) -> None:
        """Come back after the server was started again, or was out of reach for long.

        Who drove drives again, unless another does by now.
        """
        async with self._attaching:
            if self._client != forgotten:
                return  # a call beside this one has done it
            has_driven = bool(forgotten) and self.driver == forgotten
            await self.attach("viewer", self._name)
            if has_driven and not self.driver:
                await self.claim_driver()

    async def _port(self) -> NoReturn:
        """What is made from a session's state, and not by a call of the API, is made where that
        state is.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"this {ELSEWHERE}")

    async def _same(self, name: str, *args: Any, **options: Any) -> Any:
        """A call of the API by its name."""
        call = bound(name, args, options)
        answer = await self._sent(
            call.operation, call.path, body=call.body, query=call.query, nulls=call.nulls
        )
        return call.answer(answer)

    async def bisect(
        self,
        check: str,
        good: str | int | None = None,
        bad: str | int | None = None,
        *,
        on_check: Callable[[BisectCheck], None] | None = None,
        **options: Any,
    ) -> Bisection:
        """As `Session.bisect`: the checks are told when all have ended, and no user is asked on
        the server's machine.
        """
        if callable(options.get("in_copies")):
            options["in_copies"] = False
        found: Bisection = await self._same("bisect", check, good, bad, **options)
        if on_check is not None:
            for each in found.checks:
                on_check(each)
        return found

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        """Every other call of a session: `usage()`, `set_model("…")`."""
        if name.startswith("_") or not hasattr(Session, name):
            raise AttributeError(f"a session has no {name!r}")
        is_known = shape_of(name) is not None

        async def call(*args: Any, **options: Any) -> Any:
            if not is_known:
                raise UsageError(f"{name}() {WITHOUT_ROUTE.get(name, ELSEWHERE)}")
            return await self._same(name, *args, **options)

        call.__name__ = name
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
        reply: Reply = await self._same(
            "send_message", content, queue=queue, input_id=input_id, **options
        )
        return reply

    async def send_prompt(
        self, content: Content, *, input_id: str | None = None, **options: Unpack[MessageOptions]
    ) -> Accepted:
        """Send a message; returns as soon as it is durable."""
        accepted: Accepted = await self._same("send_prompt", content, input_id=input_id, **options)
        return accepted

    async def abort(self, reason: str = "", *, input_id: str | None = None) -> AbortReceipt:
        """Stop the turn that runs."""
        receipt: AbortReceipt = await self._same("abort", reason, input_id=input_id)
        return receipt

    async def attach(self, role: Literal["viewer", "driver"] = "viewer", name: str = "") -> str:
        """Attach as one of several clients; a viewer's changes are refused.

        Others see the `name`.  Returns the client's id.
        """
        self._client, self._name = "", name
        attached = await self._call("attach", {"role": role, "name": name or None})
        self._client, self.driver = attached.client, attached.driver
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
            self.driver = self._client

    async def respond_to_permission(
        self,
        action: PermissionAction,
        *,
        request_id: str | None = None,
        meta: dict[str, Any] | None = None,
        input_id: str | None = None,
    ) -> None:
        """Answer a permission request; the only open one need not be named."""
        body = {"action": action, "input_id": input_id, **(meta or {})}
        await self._call("respond", body, request=request_id or await self._only_request())

    async def respond_to_approval(
        self,
        decision: Literal["approve", "reject", "approve_all"],
        *,
        request_id: str | None = None,
        input_id: str | None = None,
    ) -> None:
        """The other spelling of `respond_to_permission`."""
        body = {"decision": decision, "input_id": input_id}
        await self._call("respond", body, request=request_id or await self._only_request())

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
        found = await self._same("line", before, after, limit)
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

    async def messages(
        self, before: str | None = None, after: str | None = None, limit: int | None = None
    ) -> list[HistoryMessage]:
        """The whole present line, oldest first; with a limit or a place, a page of it."""
        if before is None and after is None and limit is None:
            return [message for _, message in await self.messages_with_ids()]
        page = await self.line(before, after, MOST_MESSAGES if limit is None else limit)
        return [message for _, message in page.items]

    get_history = messages

    async def get_status(self) -> Status:
        """What the session does."""
        status: Status = await self._same("get_status")
        return status

    async def editor_snapshot(self) -> EditorSnapshot:
        """What a screen needs to draw itself."""
        view = await self._call("editor_snapshot")
        snapshot: EditorSnapshot = view.snapshot
        return snapshot

    async def metadata(self) -> SessionMetadata:
        """Title, model, counts, cost and status."""
        found: SessionMetadata = await self._same("metadata")
        return found

    async def subscribe(
        self,
        *,
        after: int | None = None,
        live: LiveChoice = True,
        lost: Callable[[str], None] | None = None,
    ) -> RemoteEvents:
        """Events: those after the cursor, then new ones; they go on through lost connections and a
        server that is started again.  `live` is as in `Session.subscribe`.

        `lost` is told when the connection goes, and with an empty text when it is back; with it the
        server is waited for without an end.
        """
        end = None if live is not False else (await self.editor_snapshot()).seq
        reader = RemoteEvents(
            self._link,
            self.id,
            after,
            live=live,
            end=end,
            lost=lost,
            client=lambda: self._client,
            attach=self._attach_again,
        )
        events = await reader.open()
        self._readers = [*(each for each in self._readers if each()), weakref.ref(events)]
        return events

    async def join(self, after: int | None = None) -> RemoteJoined:
        """Begin to show a session in one step.

        Answers in flight are the first live events, each part of them as one piece at offset 0.
        """
        now = await self.editor_snapshot()
        events = await self.subscribe(after=now.seq if after is None else after)
        return RemoteJoined(seq=now.seq, drafts=(), requests=now.requests, events=events)

    async def unsubscribe(self) -> None:
        """End the newest subscription of this handle."""
        open_now = [each for ref in self._readers if (each := ref()) is not None and each.is_open]
        for events in open_now[-1:]:
            await events.aclose()

    async def wait(self) -> str:
        """Wait until the session stops; returns why."""
        async with await self.subscribe(live="status") as events:
            async for _ in events:
                pass
            return events.end_reason

    # -- the tree

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
        plan: RewindPlan = await self._same(
            "rewind",
            to,
            files,
            conversation,
            preview,
            overwrite=list(overwrite),
            input_id=input_id,
        )
        return plan

    async def generate_branches(self, prompt: str, *args: Any, **options: Any) -> RemoteFan:
        """Begin candidates for one task; see `Session.generate_branches`."""
        view = await self._same("generate_branches", prompt, *args, **options)
        return RemoteFan(self._link, view)

    # -- its life

    async def new_session(self, **settings: Any) -> RemoteSession:
        """Another session like this one; this one can still be resumed."""
        view = await self._call("editor_snapshot")
        body = {"model": view.snapshot.model, "project_path": view.project_path, **settings}
        made = await self._link.call("start_session", body=body)
        return self._replaced_by(made.id)

    async def load_session(self, session_id: str) -> RemoteSession:
        """Go over to a stored session; this one can still be resumed."""
        view = await self._link.call("editor_snapshot", {"id": session_id})
        return self._replaced_by(view.id)

    def _replaced_by(self, session_id: SessionId) -> RemoteSession:
        for ref in self._readers:
            if (events := ref()) is not None:
                events.end_with(Replaced(session_id=self.id, by=session_id))
        return RemoteSession(self._link, session_id)

    async def stop(self) -> None:
        """Stop the session; its record stays."""
        await self._call("stop_session")
