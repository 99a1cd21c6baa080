"""The chat: a user, a screen and a session.

One task follows the session's events and shows them, one takes what the user types, one puts the
session's questions to the user. Commands live in `commands`, questions in `questions`; this module
only keeps the three in step.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc

from weft.api.inspection import SessionEvents, session_events
from weft.api.session import Session
from weft.app import App
from weft.cli.chat.approval_text import ApprovalPlace
from weft.cli.chat.chat_tally import ChatTally
from weft.cli.chat.commands.chat_commands import ChatCommands
from weft.cli.chat.conversation import ChatConversation, input_text
from weft.cli.chat.questions import UserQuestions, ask_trust
from weft.cli.chat.screens.screen import (
    ChatClosed,
    ChatScreen,
    ChoiceQuestion,
    ChoiceRow,
    GoBack,
    Input,
    InterruptPressed,
    KeepNoted,
    LineSubmitted,
    NextMode,
    TakeBack,
)
from weft.cli.chat.shell_line import ShellLine
from weft.cli.chat.task_watch import follow_task, tasks_of
from weft.cli.chat.trust_text import left_out
from weft.cli.exit_codes import sentence_of
from weft.cli.headless.answers import whole
from weft.cli.local_model import make_ready
from weft.cli.prompt_input import PromptParts, attached, compose, missing_text
from weft.errors import SessionBusy, SessionInterrupted, UsageError, WeftError
from weft.events import (
    ChildStarted,
    DriverChanged,
    Event,
    FactBase,
    PermissionRequest,
    PermissionResolved,
    PlanDecided,
    QuestionAnswered,
    SettingChanged,
    SystemNote,
    TurnFinished,
    TurnStarted,
)
from weft.ids import SessionId
from weft.messages import Content, Text
from weft.project.slash_commands import is_note
from weft.protocol.session_options import SessionOptions
from weft.view import (
    SUCCESSFUL,
    AnswerBlock,
    AnyBlock,
    LiveArea,
    NoteBlock,
    OpenRequest,
    PlanRequest,
    SessionView,
    chat_sentence,
    history_blocks,
    live_of,
    open_calls,
    receipt_note,
)

if TYPE_CHECKING:  # loaded when the user types a command that is not built in
    from weft.cli.chat.rule_keeper import RuleKeeper
    from weft.cli.chat.woken_text import WokenSession
    from weft.project.markdown_commands import MarkdownCommand

logger = logging.getLogger(__name__)

EARLIER = 12
"""Messages of a resumed conversation that are shown."""
AFTER_A_MOVE = 2
"""Messages that are shown of the line that the conversation was moved to."""
NO_MODEL_YET = (
    "there is no model yet: /login adds a key or finds a server on this machine, and "
    "/model local:smollm2 takes the small embedded model"
)
HOW_TO_GO = "Plan only: /plan go carries it out, without asking about each edit"
FROM_CLIENTS = (PermissionResolved, QuestionAnswered, PlanDecided, DriverChanged)
"""Events that say which client did something."""
MODES = ("default", "accept_edits", "plan")
"""What Shift+Tab goes through."""


class Chat:
    """Runs until the user quits."""

    def __init__(
        self, app: App, screen: ChatScreen, options: SessionOptions, *, new_id: str | None = None
    ) -> None:
        self._app = app
        self.screen = screen
        self.conversation = self._make_conversation(app, options, new_id)
        self.view = SessionView(self.conversation.blank())
        self._group: anyio.abc.TaskGroup | None = None
        self._following: anyio.CancelScope | None = None
        self._asked = anyio.Event()
        self._asking: tuple[str, anyio.CancelScope] | None = None
        self.tally = ChatTally(app.project_path)
        self._may_retry = False
        """The last turn of this session failed, or was stopped."""
        self._woken: list[WokenSession] = []
        """Sessions that were woken while this chat was open."""
        self._has_told_plan = False
        self._put_count = 0
        """Approvals of the row that is being answered: `2 of 3`."""
        self._commands = ChatCommands(self)
        self._shell_line = ShellLine(self)
        place = ApprovalPlace(
            app.project_path,
            bool(app.config.get("sandbox.network")),
            any("(domain:" in rule for rule in app.config.get("permissions.allow")),
        )
        self._asker = UserQuestions(screen, self._interrupt_apart, place, self._make_keeper(app))
        screen.watch(self.view.live)

    def _make_conversation(
        self, app: App, options: SessionOptions, new_id: str | None
    ) -> ChatConversation:
        return ChatConversation(app, options, new_id=new_id)

    def _make_keeper(self, app: App) -> RuleKeeper | None:
        """Who keeps the rules that "always" may mean; none where they are another machine's."""
        from weft.cli.chat.rule_keeper import RuleKeeper  # start-up time

        return RuleKeeper(app)

    @property
    def live(self) -> LiveArea:
        """What is in flight."""
        return self.view.live

    async def run(
        self,
        *,
        first: PromptParts = (),
        words: Sequence[str] = (),
        resume: SessionId | None = None,
        fork: bool = False,
        picks: bool = False,
    ) -> None:
        """Talk.  `first` is sent at once, with the files that `words` name; `resume` is the session
        to go on with, or (`picks`) the user picks one."""
        async with anyio.create_task_group() as group:
            self._group = group
            self._app.host.on_woken = self._tell_woken
            # The screen is up before anything else starts: what the rest shows, an error of its
            # start included, needs a place to go.
            await group.start(self.screen.run)
            group.start_soon(self._put_questions)
            send_first = partial(self._send_first, first, words) if first else None
            # In a task of its own, so that the user can quit while the trust question or the list
            # of sessions is open.
            group.start_soon(self._safely, self._begin, send_first, resume, fork, picks)
            try:
                await self._take_inputs()
            finally:
                self._leave_screen()
            group.cancel_scope.cancel()

    async def _begin(
        self,
        send_first: Callable[[], Awaitable[None]] | None,
        resume: SessionId | None,
        fork: bool,
        picks: bool,
    ) -> None:
        try:
            await self._open(send_first, resume, fork, picks)
        except Exception:
            self.screen.ready(is_sent=False)
            raise
        self.screen.ready(is_sent=send_first is not None)

    async def _open(
        self,
        send_first: Callable[[], Awaitable[None]] | None,
        resume: SessionId | None,
        fork: bool,
        picks: bool,
    ) -> None:
        for line in left_out(await self._app.project_problems()):
            self.screen.show(NoteBlock(text=line, level="warning"))
        await self.ask_trust()
        if self._app.mcp_servers is not None:
            from weft.cli.mcp.project_question import ask_servers  # only where some are configured

            await ask_servers(self._app, self.screen)
        if not picks and resume is None and self.conversation.lacks_model:
            await self.offer_login()
        if picks:
            await self._commands.pick(fork=fork)
        elif resume is not None:
            await self.switch(resume, fork=fork)
        if send_first is not None:
            await send_first()
        elif picks or resume is not None:
            # Only of the session opened here: by now the user may have opened another, which was
            # offered then.
            await self.offer_to_go_on()

    async def _send_first(self, first: PromptParts, words: Sequence[str]) -> None:
        try:
            said = (*first, *await self._attached(words))
            await self.say(said, " ".join(words))
        except WeftError:
            # The words as they were typed: the composed parts no longer show which of them named a
            # file.
            self.screen.put_back(" ".join(words))
            raise

    def _leave_screen(self) -> None:
        """What was being said stays on the screen, as far as it came."""
        if self.live.text.strip():
            self.screen.show(AnswerBlock(text=self.live.text))
        self.screen.close()

    # -- what goes on beside it

    def _tell_woken(self, port: WokenSession) -> None:
        """Say that a session of this folder goes on here, which the user did not ask for."""
        from weft.cli.chat.woken_text import woken_text  # few sessions wait

        # What this chat shows is seen to go on.
        if not self._shows(port):
            self._woken.append(port)
            self.screen.show(NoteBlock(text=woken_text(port)))

    def _shows(self, port: WokenSession) -> bool:
        session = self.conversation.session
        return session is not None and session.id == port.session_id

    def left_at_work(self) -> list[str]:
        """What to say at the end of sessions that were woken here and are not done, and of what
        the shown one still waits for.
        """
        return [*self._left_woken(), *self._left_waiting()]

    def _left_waiting(self) -> list[str]:
        session = self.conversation.session
        port = None if session is None else self._app.host.running(session.id)
        if port is None or (port.state.turn.asleep is None and not port.state.schedules.open):
            return []
        from weft.cli.unattended.server_notice import server_notice  # few sessions wait

        notice = server_notice(self._app)
        return [f"it still waits, and {notice}"] if notice else []

    def _left_woken(self) -> list[str]:
        if not self._woken:
            return []
        from weft.cli.chat.woken_text import left_text  # as above

        left = (port for port in self._woken if port.is_open and not self._shows(port))
        return [left_text(port) for port in left if port.state.turn.open is not None]

    # -- what the user does

    async def _take_inputs(self) -> None:
        while True:
            match await self.screen.next_input():
                case ChatClosed():
                    return
                # Handled here and not as a command: only this loop can end the chat.
                case LineSubmitted(text="/quit" | "/exit" | "/q"):
                    return
                case given:
                    await self._safely(self._take, given)

    async def _take(self, given: Input) -> None:
        match given:
            case LineSubmitted(text=text, later=later, picked=picked, typed=typed):
                self._asker.picked.update(picked)
                await self._submitted(text, later=later, typed=typed)
            case GoBack():
                await self._commands.go_back()
            case KeepNoted():
                await self._commands.keep_noted()
            case InterruptPressed():
                await self.interrupt()
            case NextMode():
                place = MODES.index(self.live.mode) if self.live.mode in MODES else -1
                await self.set_mode(MODES[(place + 1) % len(MODES)])
            case TakeBack():
                await self.take_back()
            case ChatClosed():
                pass

    async def _submitted(self, text: str, *, later: bool = False, typed: str = "") -> None:
        stripped = text.strip()
        if not stripped:
            await self._try_again()
            return
        if stripped == "?":
            stripped = "/help"
        if stripped.startswith("!"):
            # In a task of its own: the keys that stop it are read meanwhile.
            self._start(self._shell_line.run, stripped)
            return
        if self._commands.takes(stripped):
            await self._commands.run(stripped)
            return
        send = partial(self.say_later if later else self.say_text, text, typed=typed)
        if is_note(stripped):
            await self._commands.remember(stripped, send)
        else:
            await send()

    async def _try_again(self) -> None:
        """Enter on the empty line: go on with a turn that failed or was stopped, else nothing."""
        is_over = not self.live.is_busy
        if is_over and (self._may_retry or self.live.status == "interrupted"):
            # At once: a second Enter before the turn has begun must not begin another.
            self._may_retry = False
            await self.go_on()

    async def say_text(self, text: str, *, steers: bool = False, typed: str = "") -> None:
        """Say something: it starts a turn, or is heard before the next step; in a turn of another
        process only when it `steers`.  Screens show what was `typed`, where that is given.
        """
        # What stands for files goes back as their paths: a label alone would lose them.
        back = typed if typed.startswith("/") else text
        self.screen.sending(typed or text)
        try:
            await self.say(await self._composed(text, typed), back, steers=steers)
        except WeftError:
            # Nothing typed is lost: it goes back where it was typed.
            self.screen.put_back(back)
            raise

    async def _say_after(
        self, said: Content, typed: str, more: Mapping[str, Any] | None = None
    ) -> None:
        try:
            await self.conversation.say_after(said, more)
        except SessionInterrupted:
            raise  # it was accepted, and waits to go on
        except WeftError:
            self.screen.put_back(typed)
            raise

    def _start(self, call: object, *given: object) -> None:
        assert self._group is not None
        self._group.start_soon(self._safely, call, *given)

    async def say_later(self, text: str, *, typed: str = "") -> None:
        """Say something when the turn has ended."""
        session = self.conversation.session
        if session is None or not self.live.is_busy:
            await self.say_text(text, typed=typed)
            return
        try:
            await self.conversation.say(await self._composed(text, typed), later=True)
        except WeftError:
            self.screen.put_back(text)
            raise

    async def _composed(self, text: str, typed: str = "") -> PromptParts:
        said = compose([text])
        if typed:
            said = tuple(Text(text=text, typed=typed) for _ in said)
        return (*said, *await self._attached([text]))

    async def _attached(self, words: Sequence[str]) -> PromptParts:
        ask = self._asker.ask_read
        return await attached(self._app, words, ask=ask, tell=self._quiet_note)

    def _quiet_note(self, text: str) -> None:
        self.screen.show(NoteBlock(text=text, level="quiet"))

    async def _safely(self, call: object, *given: object) -> None:
        """Show the error of a command that fails; the chat goes on."""
        assert callable(call)
        try:
            await call(*given)
        except WeftError as error:
            said = chat_sentence(sentence_of(error))
            self.screen.show(NoteBlock(text=said, level="error"))
        except Exception as error:
            logger.exception("the chat failed")
            self.screen.show(NoteBlock(text=f"that failed: {sentence_of(error)}", level="error"))

    async def say(self, said: PromptParts, typed: str, *, steers: bool = False) -> None:
        """Send a message, in a new session where there is none yet."""
        # The first message makes the session, so a chat that was only opened and closed stores
        # nothing.
        await self.begin_session()
        try:
            await self._deliver(said, typed, steers=steers)
        except WeftError:
            await self.forget_if_empty()
            raise

    async def _deliver(
        self,
        said: Content,
        typed: str,
        more: Mapping[str, Any] | None = None,
        *,
        steers: bool = False,
    ) -> None:
        whose = "own" if steers else await self.conversation.whose_turn()
        if whose == "foreign":
            # In a task of its own: it lasts until the turn of the message is over.
            self._start(self._say_after, said, typed, more)
        else:
            # Only a turn that is known to be ours is steered: another process may begin one
            # while this message is on its way.
            await self.conversation.say(said, more, later=whose == "none")

    async def begin_session(self) -> Session:
        """The session; a new one where there is none yet."""
        if self.conversation.session is None:
            if self.conversation.lacks_model:
                # The message waits meanwhile: with a model it is sent.
                await self.offer_login()
            if self.conversation.lacks_model:
                raise UsageError(NO_MODEL_YET)
            if self.conversation.next_model.startswith("local:"):
                await make_ready(self.conversation.next_model, self._note)
            # Followed from the snapshot's `seq`: events between the snapshot and the subscription
            # would otherwise be lost or shown twice.
            session, snapshot = await self.conversation.begin()
            await self.follow(session, live_of(snapshot), after=snapshot.seq)
        assert self.conversation.session is not None
        return self.conversation.session

    async def file_commands(self) -> Mapping[str, MarkdownCommand]:
        """The commands from Markdown files, by name."""
        return (await self._app.host.commands(self._app.project_path)).found

    async def run_file_command(self, text: str) -> None:
        """Send what a command from a Markdown file stands for."""
        self.screen.sending(text)
        session = await self.begin_session()
        try:
            expanded = await session.expand_command(
                text, ask=self._asker.ask_shell, ask_read=self._asker.ask_read
            )
            if expanded.missing:
                self._quiet_note(missing_text(expanded.missing))
            await self._deliver(expanded.content, text, expanded.options)
        except WeftError:
            self.screen.put_back(text)
            await self.forget_if_empty()
            raise

    async def ask_trust(self, *, is_asked_for: bool = False) -> None:
        """Ask whether the user trusts the folder, where there is something to ask."""
        await ask_trust(self._app, self.screen, is_asked_for=is_asked_for)

    async def offer_login(self) -> None:
        """Have the user get a model, where they have no key."""
        from weft.cli.chat.login import LoginDialog  # only for those who have no key

        await LoginDialog(self).offer()

    def _note(self, text: str) -> None:
        self.screen.show(NoteBlock(text=text))

    async def forget_if_empty(self) -> None:
        """Drop a session that was begun for what then could not be done."""
        await self.conversation.drop_if_empty()
        if self.conversation.session is None:
            self.watch(SessionView(self.conversation.blank()))

    async def interrupt(self) -> None:
        """Stop the turn; what waits to be said goes back to the input line."""
        session = self.conversation.session
        if session is None or not self.live.is_busy:
            self._shell_line.stop()
            return
        # An abort waits until the turn has settled its calls; without a notice the key would seem
        # to be ignored.
        self.screen.notify("stopping…")
        try:
            # Before the end of the turn, with which a message that waits for it is sent.
            await self.take_back()
        finally:
            try:
                await session.abort("stopped by the user")
            finally:
                self.screen.notify("")
        # What was sent between the two.
        await self.take_back()

    def _interrupt_apart(self) -> None:
        """Stop the turn from inside one of its questions, which ends with the turn."""
        # In another task: the abort resolves the question, which cancels the scope that this call
        # runs in, and an abort awaited here would be cancelled with it.
        self._start(self._interrupt_or_ask_again)

    async def _interrupt_or_ask_again(self) -> None:
        session = self.conversation.session
        try:
            await self.interrupt()
        except WeftError:
            # It goes on, because this client only watches: what it asks waits for an answer still.
            if session is not None:
                await self._ask_again(session)
            raise

    async def _ask_again(self, session: Session) -> None:
        """Put what the session asks once more: this window has let go of it, and it is open."""
        self.live.requests |= live_of(await session.editor_snapshot()).requests
        self._wake_asker()

    async def take_back(self) -> None:
        """Put what waits to be said back into the input line; what others have sent stays."""
        if self.conversation.session is not None and self.live.queue:
            self.screen.put_back(input_text(await self.conversation.recall_own()))

    async def set_mode(self, mode: str) -> None:
        """Change what may be done without asking."""
        await self.conversation.set_mode(mode)
        # At once, without waiting for the event: the status line must show the mode that the next
        # key press starts from.
        self.live.mode = mode
        self.screen.refresh()

    # -- sessions

    def watch(self, view: SessionView) -> None:
        """Show another session from now on."""
        self.view = view
        self._may_retry = False
        self.screen.watch(view.live)

    async def switch(self, session_id: SessionId, *, fork: bool = False) -> None:
        """Go on with another session, and show what was said last."""
        session, snapshot = await self.conversation.resume(session_id, fork=fork)
        # A page, because the whole of a long session would be read to show its end.
        page = await session.line(limit=EARLIER)
        if page.before is not None:
            self.screen.show(
                NoteBlock(
                    text="there are earlier messages; /export writes all of them", level="quiet"
                )
            )
        asides = await session.asides()
        if asides:
            from weft.cli.chat.told_asides import with_asides  # few sessions have some

            messages = with_asides(page.items, asides)
        else:
            messages = [message for _, message in page.items]
        self.screen.show(*history_blocks(messages))
        live = live_of(snapshot)
        if live.status == "interrupted":
            # Seen before the user decides whether it goes on; it is stored when the turn does.
            live.text = await self.conversation.stored_answer()
        # Events from the snapshot on, for what is in flight; what the page has is not shown again.
        await self.follow(
            session,
            live,
            after=snapshot.seq,
            shown=page.seq,
            calls=open_calls(messages),
        )

    async def count_context(self) -> None:
        """Let the status line say how full the window is, after something other than a request has
        changed that.
        """
        if self.conversation.session is not None:
            snapshot = await self.conversation.session.editor_snapshot()
            self.live.context_used = snapshot.context_used
            # The one of a model that was just switched to.
            self.live.context_window = snapshot.context_window or self.live.context_window

    async def show_place(self) -> None:
        """Show where the conversation stands now, after it was moved."""
        session = self.conversation.session
        assert session is not None
        await self.count_context()
        branch = next(each for each in await session.list_branches() if each.is_current)
        said = [
            message
            for message in await session.messages()
            if message.role in ("user", "assistant") and message.content.strip()
        ]
        where = f"{len(said)} messages" if said else "at its beginning"
        self.screen.show(
            NoteBlock(text=f"now on {branch.name}, {where}"), *history_blocks(said[-AFTER_A_MOVE:])
        )

    async def leave_session(self) -> None:
        """Begin anew with the next message."""
        self._stop_following()
        await self.conversation.leave()
        self.watch(SessionView(self.conversation.blank()))

    async def offer_to_go_on(self) -> None:
        """Where the last turn was interrupted, or left its plan unfinished: offer to
        continue it.
        """
        if self.live.status != "interrupted" and not self.live.has_open_plan:
            return
        about = await self._how_to_come_back()
        if about is None:
            return
        question = ChoiceQuestion(
            title=about,
            rows=(
                ChoiceRow("Continue it"),
                ChoiceRow("Don't continue; the next message starts a new turn"),
            ),
            hint="1-2; Esc is no",
        )
        if await self.screen.choose(question) == 0:
            await self.go_on()

    async def _how_to_come_back(self) -> str | None:
        """The title of that offer; None where the user has chosen already."""
        session = self.conversation.session
        if self.live.status != "interrupted" or session is None:
            return "The plan was not finished."
        offer = await session.coming_back()
        if offer.resume == "never":
            return None
        if offer.resume == "auto" and not offer.parked:
            return None  # it goes on by itself: it is due
        from weft.view import coming_back_text  # few sessions were interrupted

        return coming_back_text(offer.parked, offer.tokens, offer.max_cost_usd)

    async def go_on(self) -> None:
        """Go on with a turn that was interrupted or stopped."""
        await self.conversation.go_on()

    # -- events

    async def follow(
        self,
        session: Session,
        live: LiveArea,
        *,
        after: int,
        shown: int = 0,
        calls: Mapping[str, tuple[str, dict[str, Any]]] | None = None,
    ) -> None:
        """Show what happens in this session from now on, and is not `shown` yet; `calls` are those
        without a result so far.
        """
        assert self._group is not None
        self._stop_following()
        # A snapshot knows no tasks: agents and background commands that were started before we
        # joined are asked for once, later ones are announced by events.
        live.tasks = await tasks_of(session)
        await self.conversation.follow_foreign(after)
        self.watch(SessionView(live, calls))
        await self._group.start(self._follow, session, self.view, after, shown)
        self._wake_asker()

    def _stop_following(self) -> None:
        if self._following is not None:
            self._following.cancel()
            self._following = None
        if self._asking is not None:
            self._asking[1].cancel()

    async def _follow(
        self,
        session: Session,
        view: SessionView,
        after: int,
        shown: int,
        *,
        task_status: anyio.abc.TaskStatus[None],
    ) -> None:
        with anyio.CancelScope() as scope:
            self._following = scope
            # `follow` returns only when the subscription stands, so that nothing the caller does
            # next can happen unseen.
            events = await self._events_of(session, after)
            self.tally.open(view.live.cost_usd)
            task_status.started()
            async with (
                self._app.host.waiting(session.id),
                events,
                anyio.create_task_group() as following,
            ):
                for child, row in view.live.tasks.items():
                    if row.purpose != "command":
                        following.start_soon(self._follow_task, child, view.live)
                async for event in events:
                    self.conversation.foreign.take(event)
                    self._tell_clients(event)
                    if isinstance(event, TurnStarted):
                        self._may_retry = False
                    elif isinstance(event, TurnFinished):
                        self._put_count = 0
                        self._may_retry = event.finish_reason not in SUCCESSFUL
                    blocks = view.take(await whole(event, self._app))
                    if isinstance(event, SystemNote):
                        blocks = self._with_keys(blocks)
                    self.tally.take(event, blocks, view.live.cost_usd)
                    is_shown = isinstance(event, FactBase) and event.seq <= shown
                    if blocks and not is_shown:
                        self.screen.show(*blocks)
                    if isinstance(event, TurnFinished):
                        self._tell_plan(event)
                        following.start_soon(self._tell_receipts, session, event.seq > shown)
                    if isinstance(event, SettingChanged) and event.name == "model":
                        await self.count_context()
                    if isinstance(event, ChildStarted):
                        following.start_soon(self._follow_task, event.child, view.live)
                    self.screen.refresh()
                    self._wake_asker()
                # The events end with the session; followers of its agents would wait for ever.
                following.cancel_scope.cancel()
        # Cancelled, or no longer the chat's, means that it shows another session now. An end by
        # itself is news.
        if not scope.cancelled_caught and self.conversation.session is session:
            self.screen.show(
                NoteBlock(text=f"the session ended: {await session.wait()}", level="warning")
            )

    async def _events_of(self, session: Session, after: int) -> SessionEvents:
        return await session_events(
            session, after=after, moved=lambda: self._begin_take_over(session)
        )

    def _own_client(self) -> str:
        """The id of this chat among the clients of the session; empty for one of this process."""
        return ""

    def _tell_clients(self, event: Event) -> None:
        """Say what another client of the session did."""
        if isinstance(event, FROM_CLIENTS):
            from weft.cli.chat.client_notes import client_note  # few sessions have others

            if (note := client_note(event, self._own_client())) is not None:
                self.screen.show(note)

    def _with_keys(self, blocks: Sequence[AnyBlock]) -> list[AnyBlock]:
        """Notes, with the key for what they ask of the user."""
        from weft.decisions.note import noted_title  # few sessions note something

        found: list[AnyBlock] = []
        for block in blocks:
            title = noted_title(block.text) if isinstance(block, NoteBlock) else None
            if title is not None:
                text = f"Noted: {title} · {self.screen.keep_key} keeps it as a decision"
                block = NoteBlock(text=text)
            found.append(block)
        return found

    async def _tell_receipts(self, session: Session, is_new: bool) -> None:
        """Say below an answer what is on record for its claims; those of old ones were said."""
        if not is_new:
            return
        try:
            found = await session.receipts()
        except WeftError:  # the answer stands there; only the look at the record failed
            logger.exception("the claims of an answer were not looked up")
            return
        judged = [each for each in found if each.color != "none"]
        if judged and self.conversation.session is session:
            self.screen.show(*map(receipt_note, judged))

    def _tell_plan(self, ended: TurnFinished) -> None:
        """Say once how a plan is carried out; a question would take the keys from the next
        message.
        """
        if self.live.mode == "plan" and ended.finish_reason == "stop" and not self._has_told_plan:
            self._has_told_plan = True
            self._quiet_note(HOW_TO_GO)

    def _begin_take_over(self, session: Session) -> None:
        # Not in the task that shows events: going on waits for the session.
        self._start(self._take_over, session)

    async def _take_over(self, session: Session) -> None:
        """The process that had the session is gone: what it left open goes on."""
        if await session.get_status() == "interrupted":
            self.screen.show(NoteBlock(text="the process that had the session is gone; going on"))
            # A message of ours that waits goes on with the turn before it, too.
            with suppress(SessionBusy):
                await self.go_on()

    async def _follow_task(self, child: str, live: LiveArea) -> None:
        try:
            await follow_task(self._app, child, live, self.screen.refresh)
        except WeftError:  # an agent's progress is only shown; its end is an event of this session
            logger.exception("a worker could not be followed")

    # -- questions

    def _wake_asker(self) -> None:
        """Look at the open requests again: one may have come, or gone because another client
        answered.
        """
        # Another client may have answered, or the turn ended: an open question whose request is
        # gone would send its answer to nothing.
        # A question of an interrupted turn is put when that goes on: an answer now would be taken
        # and nothing would happen.
        if self._asking is not None and (
            self._asking[0] not in self.live.requests or self._waits_with_its_turn
        ):
            self._asking[1].cancel()
        if self.live.requests:
            self._asked.set()

    def _next_question(self) -> OpenRequest | None:
        """The next request to put.

        What a turn asks that is not going on is asked when it goes on; a background agent may ask
        any time.
        """
        live = self.live
        for request in live.requests.values():
            if not self._waits_with_its_turn and (
                live.is_busy or not isinstance(request, PlanRequest)
            ):
                return request
        return None

    @property
    def _waits_with_its_turn(self) -> bool:
        """Whether the turn that asks is not going on."""
        return self.live.status == "interrupted"

    async def _put(self, session: Session, request: OpenRequest) -> None:
        """Put a question, with its number among those that wait."""
        asked = [
            each for each in self.live.requests.values() if isinstance(each, PermissionRequest)
        ]
        # Of one answer's calls the session asks one at a time; those behind it are counted too.
        waiting = len(asked) + sum(map(self.view.calls_behind, asked))
        self._put_count = max(self._put_count, waiting)
        number = self._put_count - waiting + 1
        args = None if isinstance(request, PlanRequest) else self.view.args_of(request)
        child = request.child if isinstance(request, PermissionRequest) else None
        agent = self.live.tasks.get(child) if child is not None else None
        await self._asker.put(
            session,
            request,
            number=number,
            count=self._put_count,
            args=args,
            task="" if agent is None else agent.title,
        )
        if waiting <= 1:
            self._put_count = 0

    async def _put_questions(self) -> None:
        while True:
            await self._asked.wait()
            self._asked = anyio.Event()
            # One question at a time and always the oldest: two at once would take each other's
            # keys.
            while (request := self._next_question()) and self.conversation.session is not None:
                with anyio.CancelScope() as scope:
                    self._asking = (request.request_id, scope)
                    await self._safely(self._put, self.conversation.session, request)
                self._asking = None
                if not self._waits_with_its_turn:
                    self.live.requests.pop(request.request_id, None)
