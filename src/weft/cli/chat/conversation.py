"""The session that the chat talks in: made with the first message, changed, switched, left.

A chat that says nothing leaves nothing behind: until then the settings are only remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Literal

import msgspec

from weft.api.inspection import LineTurn, line_turns
from weft.api.session import Session
from weft.app import App
from weft.cli.chat.foreign_turns import ForeignTurns
from weft.cli.session_options import note_of_level
from weft.errors import UsageError
from weft.ids import InputId, SessionId, new_id
from weft.messages import Content, File, Image, Part, Text
from weft.protocol.session_options import (
    SessionOptions,
    message_options,
    model_and_effort,
    open_session,
)
from weft.state import QueueEntry
from weft.thinking_levels import THINKING_LEVELS, thinking_level
from weft.view import EditorSnapshot, LiveArea

NO_MODEL = "no model"
"""What the status line shows until the user has a key or has chosen a model."""


def input_text(entries: Iterable[QueueEntry]) -> str:
    """Queued messages as they are typed: put into the input line, they can be sent again."""
    return "\n\n".join(_typed(entry.parts) for entry in entries)


def _typed(parts: Iterable[Part]) -> str:
    parts = tuple(parts)
    # A command stands for its text; but the label of a picture would not attach it again.
    texts = [
        part.typed if part.typed.startswith("/") else part.text
        for part in parts
        if isinstance(part, Text)
    ]
    said = "".join(texts)
    names = [part.name for part in parts if isinstance(part, File | Image)]
    is_command = said.startswith("/")
    others = [f'@"{name}"' for name in dict.fromkeys(names) if name not in said and not is_command]
    return " ".join([said, *others])


class ChatConversation:
    """One conversation after another; at most one at a time."""

    def __init__(self, app: App, options: SessionOptions, *, new_id: str | None = None) -> None:
        self.app = app
        self._options = options
        self._new_id = new_id
        self.session: Session | None = None
        self._resumed = False
        self.foreign = ForeignTurns()
        self.ran_in: SessionId | None = None
        """The session in which the user has run a command of their own."""

    def blank(self) -> LiveArea:
        """What a conversation that has not begun looks like."""
        options, config = self._options, self.app.config
        return LiveArea(
            model=NO_MODEL if self.lacks_model else options.model or self.app.host.default_model(),
            mode=options.permission_mode or str(config.get("permissions.mode")),
            effort=options.effort or self.app.host.default_effort(options.model),
            is_architect=options.architect,
        )

    @property
    def note_of_level(self) -> str:
        """What to say of the next conversation's thinking level; empty when its model has it."""
        blank = self.blank()
        return note_of_level(self.app, self._options, blank.model, blank.effort, begins=True)

    def levels(self, model: str) -> dict[str, str]:
        """The thinking levels to pick from for a model, each with a detail to show beside it."""
        host = self.app.host
        known = host.levels_of(model)
        if not known:
            return dict.fromkeys(THINKING_LEVELS if known is None else (), "")
        own = host.model(model).info.default_level
        return {
            "default": f"the vendor's own: {own}" if own else "the vendor's own"
        } | dict.fromkeys(known, "")

    @property
    def lacks_model(self) -> bool:
        """Whether nothing could answer: no model is named and no provider has a key."""
        return self._options.model is None and not self.app.host.has_default_model()

    @property
    def next_model(self) -> str:
        """The model of the next conversation."""
        return self._options.model or self.app.host.default_model()

    async def begin(self) -> tuple[Session, EditorSnapshot]:
        """Make the session, if there is none yet."""
        if self.session is None:
            self.session = await open_session(
                self.app.sessions, self._options, existing=None, new_id=self._new_id
            )
            self._new_id, self._resumed = None, False
        return self.session, await self.session.editor_snapshot()

    async def resume(
        self, session_id: SessionId, *, fork: bool = False
    ) -> tuple[Session, EditorSnapshot]:
        """Resume a stored session, or a fork of it; the session before is stopped."""
        # A model or mode given on the command line is meant for the session that it starts, not for
        # every session that the user resumes later.
        options = (
            self._options
            if self.session is None
            else msgspec.structs.replace(
                self._options,
                model=None,
                effort=None,
                permission_mode=None,
                architect=False,
                title=None,
            )
        )
        options = msgspec.structs.replace(options, system_prompt=None, append_system_prompt=None)
        session = await open_session(self.app.sessions, options, existing=session_id, fork=fork)
        before, self.session, self._resumed = self.session, session, True
        # Only now: what follows the session before must know that its end is no news.
        if before is not None and before.id != session.id:
            await self._let_go(before)
        return session, await session.editor_snapshot()

    async def leave(self) -> None:
        """Leave the session; the next message begins a new one, with the same settings."""
        if self.session is None:
            return
        snapshot = await self.session.editor_snapshot()
        self._options = msgspec.structs.replace(
            self._options,
            model=snapshot.model,
            permission_mode=snapshot.permission_mode,
            effort=snapshot.thinking,
            architect=snapshot.mode == "architect",
            title=None,
        )
        await self._let_go(self.session)
        self.session = None

    async def _let_go(self, session: Session) -> None:
        """The chat shows it no more."""
        await session.stop()

    async def line_turns(self) -> list[LineTurn]:
        """The present line, cut at each of the user's messages."""
        assert self.session is not None
        return await line_turns(self.session)

    async def stored_answer(self) -> str:
        """What had arrived of the answer when the process died that was at work on it."""
        assert self.session is not None
        turn = (await self.app.host.port(self.session.id)).state.turn.open
        call = turn.call if turn is not None else None
        drafts = await self.app.store.load_drafts(self.session.id) if call is not None else []
        return next((each.text for each in drafts if call and each.node == call.node), "")

    async def drop_if_empty(self) -> None:
        """A session whose first message could not even be sent is none."""
        session = self.session
        # What the user ran in it changed files, perhaps: without the record no rewind knows them.
        if session is None or session.id == self.ran_in:
            return
        if not (await session.metadata()).message_count:
            self.session = None
            await self.app.sessions.delete_session(session.id)

    async def follow_foreign(self, after: int) -> None:
        """Begin to tell our turns from those of others: what runs elsewhere now is not ours.

        Events come from the one after `after` on.
        """
        assert self.session is not None
        port = await self.app.host.port(self.session.id)
        is_here = self.app.host.runs_here(self.session.id)
        turn = None if is_here else port.state.turn.open
        waiting = () if is_here else tuple(port.state.queue.entries)
        self.foreign = ForeignTurns(after, turn.turn_id if turn is not None else None, waiting)

    async def whose_turn(self) -> Literal["none", "own", "foreign"]:
        """Whose turn it is that runs, or was left open."""
        assert self.session is not None
        state = (await self.app.host.port(self.session.id)).state
        turn = state.turn.open
        if turn is None:
            return "none"
        await self.foreign.caught_up(state.seq)
        return "foreign" if self.foreign.is_foreign(turn.turn_id) else "own"

    async def say(
        self, said: Content, more: Mapping[str, Any] | None = None, *, later: bool = False
    ) -> None:
        """Send a message: it starts a turn, or is heard before the next step of the one that runs,
        or, with `later`, after it.

        `more` are options for it alone.
        """
        session = self.session
        assert session is not None
        send = session.queue_follow_up if later else session.send_prompt
        await send(said, input_id=self._new_input(), **{**self.options(), **(more or {})})

    async def say_after(self, said: Content, more: Mapping[str, Any] | None = None) -> None:
        """Send a message that has its turn when the one of another process is over, however that
        ends and whoever has the session then; returns at the end of its own.

        Raises:
            WeftError: it was not accepted, or no process works on it.
        """
        assert self.session is not None
        made = self._new_input()
        options = {**self.options(), **(more or {})}
        try:
            await self.session.send_message(said, input_id=made, **options)
        except UsageError:
            # After it was accepted, this one only says that the user has taken it back.
            if not self.foreign.was_queued(InputId(made)):
                raise

    async def recall_own(self) -> list[QueueEntry]:
        """Take the messages of this chat out of the queue.  One of another window stays its own,
        and one that a command line has sent waits for its answer.
        """
        session = self.session
        assert session is not None
        waiting = [entry for queue in await session.get_queued_messages() for entry in queue]
        if self.foreign.are_ours(entry.entry_id for entry in waiting):
            # The session decides what is still in the queue. Our copy may be one event behind, and
            # a message that was just delivered must not come back as well.
            return [entry for queue in await session.recall_queues() for entry in queue]
        taken = []
        for entry in waiting:
            if self.foreign.are_ours([entry.entry_id]):
                with suppress(UsageError):  # delivered meanwhile
                    await session.remove_queued(entry.entry_id)
                    taken.append(entry)
        return taken

    async def go_on(self) -> None:
        """Go on with the turn that was interrupted or stopped."""
        if self.session is not None:
            await self.session.continue_turn(input_id=self._new_input(), **self.options())

    def _new_input(self) -> str:
        made = new_id("inp", self.app.host.now())
        self.foreign.sent(InputId(made))
        return made

    def options(self) -> dict[str, Any]:
        """What goes along with each message."""
        return message_options(self._options, existing=self._resumed)

    # -- settings

    async def set_model(self, given: str) -> None:
        """Use another model, from the next call on.

        Raises:
            UsageError: it names none.
        """
        model, effort = model_and_effort(given)
        assert model is not None
        name = self.app.host.normal_model(model)
        if self.session is not None:
            await self.session.update_model(name)
        self._options = msgspec.structs.replace(self._options, model=name)
        if effort is not None:
            await self.set_effort(effort)

    async def set_effort(self, level: str) -> None:
        """How hard the model thinks.

        Raises:
            UsageError: there is no such level.
        """
        if thinking_level(level) is None:
            raise UsageError(f"no thinking level {level!r}; there are {', '.join(THINKING_LEVELS)}")
        if self.session is not None:
            await self.session.set_thinking_level(level)
        self._options = msgspec.structs.replace(self._options, effort=level)

    async def set_architect(self, is_on: bool) -> None:
        """Whether one model plans and another carries out, from the next turn on."""
        if self.session is not None:
            await self.session.set_mode("architect" if is_on else "normal")
        self._options = msgspec.structs.replace(self._options, architect=is_on)

    async def set_mode(self, mode: str) -> None:
        """What may be done without asking."""
        if self.session is not None:
            await self.session.set_permission_mode(mode)
        self._options = msgspec.structs.replace(self._options, permission_mode=mode)
