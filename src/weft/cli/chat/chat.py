"""The chat: a person, a screen and a session.

One task follows the session's events and shows them, one takes what the person types, one puts the session's questions to the person.
Commands live in `commands`; this module only keeps the three in step.
"""

from __future__ import annotations

import logging

import anyio
import anyio.abc

from weft.app import App, Session
from weft.cli.answers import whole
from weft.cli.chat.blocks import Answer, Asked, Leave, Note
from weft.cli.chat.commands import Commands
from weft.cli.chat.conversation import Conversation
from weft.cli.chat.screen import (
    Input,
    Interrupted,
    Left,
    NextMode,
    Question,
    Row,
    Screen,
    Submitted,
    TakeBack,
)
from weft.cli.chat.story import Live, Story, earlier, live_of
from weft.cli.embedded import make_ready
from weft.cli.exits import sentence_of
from weft.cli.launch import Wanted
from weft.cli.prompts import Said, compose
from weft.errors import NoPendingRequest, WeftError
from weft.events import PermissionRequest, QuestionAsked
from weft.ids import SessionId

logger = logging.getLogger(__name__)

EARLIER = 12
"""Messages of a resumed conversation that are shown."""
MODES = ("default", "accept_edits", "plan")
"""What Shift+Tab goes through."""


class Chat:
    """Runs until the person leaves."""

    def __init__(
        self, app: App, screen: Screen, wanted: Wanted, *, new_id: str | None = None
    ) -> None:
        self._app = app
        self.screen = screen
        self.conversation = Conversation(app, wanted, new_id=new_id)
        self.story = Story(self.conversation.blank())
        self._group: anyio.abc.TaskGroup | None = None
        self._following: anyio.CancelScope | None = None
        self._asked = anyio.Event()
        self._asking: tuple[str, anyio.CancelScope] | None = None
        self._commands = Commands(self)
        screen.watch(self.story.live)

    @property
    def live(self) -> Live:
        """What is in flight."""
        return self.story.live

    async def run(
        self,
        *,
        first: Said = (),
        resume: SessionId | None = None,
        fork: bool = False,
        picks: bool = False,
    ) -> None:
        """Talk.  `first` is said at once; `resume` is the session to go on with, or (`picks`) the person picks one."""
        async with anyio.create_task_group() as group:
            self._group = group
            await group.start(self.screen.run)
            group.start_soon(self._put_questions)
            group.start_soon(self._safely, self._begin, first, resume, fork, picks)
            try:
                await self._take_inputs()
            finally:
                self._leave_screen()
            group.cancel_scope.cancel()

    async def _begin(self, first: Said, resume: SessionId | None, fork: bool, picks: bool) -> None:
        if picks:
            await self._commands.pick(fork=fork)
        elif resume is not None:
            await self.switch(resume, fork=fork)
        if first:
            await self.say(first)
        elif self.live.status == "interrupted":
            await self.offer_to_go_on()

    def _leave_screen(self) -> None:
        """What was being said stays on the screen, as far as it came."""
        if self.live.text.strip():
            self.screen.show(Answer(text=self.live.text))
        self.screen.close()

    # -- what the person does

    async def _take_inputs(self) -> None:
        while True:
            match await self.screen.next_input():
                case Left():
                    return
                case Submitted(text="/quit" | "/exit" | "/q"):
                    return
                case given:
                    await self._safely(self._take, given)

    async def _take(self, given: Input) -> None:
        match given:
            case Submitted(text=text):
                await self._submitted(text)
            case Interrupted():
                await self.interrupt()
            case NextMode():
                place = MODES.index(self.live.mode) if self.live.mode in MODES else -1
                await self.set_mode(MODES[(place + 1) % len(MODES)])
            case TakeBack():
                await self.take_back()
            case Left():
                pass

    async def _submitted(self, text: str) -> None:
        stripped = text.strip()
        if stripped == "?":
            stripped = "/help"
        if self._commands.takes(stripped):
            await self._commands.run(stripped)
            return
        try:
            said = compose([text], folder=self._app.project_path)
            await self.say(said)
        except WeftError:
            # Nothing typed is lost: it goes back where it was typed.
            self.screen.put_back(text)
            raise

    async def _safely(self, call: object, *given: object) -> None:
        """A command that fails says so and hurts nobody."""
        assert callable(call)
        try:
            await call(*given)
        except WeftError as error:
            self.screen.show(Note(text=sentence_of(error), level="error"))
        except Exception as error:
            logger.exception("the chat failed")
            self.screen.show(Note(text=f"that failed: {sentence_of(error)}", level="error"))

    async def say(self, said: Said) -> None:
        """Send a message, in a new session where there is none yet."""
        if self.conversation.session is None:
            if self.conversation.stands_in:
                await make_ready(self._app, self._note)
            session, snapshot = await self.conversation.begin()
            await self.follow(session, live_of(snapshot), after=snapshot.seq)
        try:
            await self.conversation.say(said)
        except WeftError:
            await self._forget_if_empty()
            raise

    def _note(self, text: str) -> None:
        self.screen.show(Note(text=text))

    async def _forget_if_empty(self) -> None:
        await self.conversation.drop_if_empty()
        if self.conversation.session is None:
            self.watch(Story(self.conversation.blank()))

    async def interrupt(self) -> None:
        """Stop the turn; what waits to be said goes back to the input line."""
        session = self.conversation.session
        if session is None or not self.live.is_busy:
            return
        self.screen.notify("stopping…")
        await session.abort("stopped by the person")
        self.screen.notify("")
        await self.take_back()

    def _interrupt_apart(self) -> None:
        """Stop the turn from inside one of its questions, which ends with the turn."""
        assert self._group is not None
        self._group.start_soon(self._safely, self.interrupt)

    async def take_back(self) -> None:
        """Put what waits to be said back into the input line."""
        session = self.conversation.session
        if session is None or not self.live.queued:
            return
        steering, follow_up = await session.recall_queues()
        self.screen.put_back(session.combine_queue_entries_to_text([*steering, *follow_up]))

    async def set_mode(self, mode: str) -> None:
        """Change what may be done without asking."""
        await self.conversation.set_mode(mode)
        self.live.mode = mode
        self.screen.refresh()

    # -- sessions

    def watch(self, story: Story) -> None:
        """Show another story from now on."""
        self.story = story
        self.screen.watch(story.live)

    async def switch(self, session_id: SessionId, *, fork: bool = False) -> None:
        """Go on with another session, and show what was said last."""
        session, live = await self.conversation.resume(session_id, fork=fork)
        messages = await session.messages()
        left_out = len(messages) - EARLIER
        if left_out > 0:
            self.screen.show(
                Note(text=f"{left_out} earlier messages; /export writes all of them", level="quiet")
            )
        self.screen.show(*earlier(messages[-EARLIER:]))
        snapshot = await session.editor_snapshot()
        await self.follow(session, live, after=snapshot.seq)

    async def leave_session(self) -> None:
        """Begin anew with the next message."""
        self._stop_following()
        await self.conversation.leave()
        self.watch(Story(self.conversation.blank()))

    async def offer_to_go_on(self) -> None:
        """The last turn was interrupted: go on with it, or leave it."""
        question = Question(
            title="The last turn was interrupted.",
            rows=(Row("Go on with it"), Row("Leave it; the next message begins a new turn")),
            hint="1-2, or Esc to leave it",
        )
        if await self.screen.choose(question) == 0:
            await self.go_on()

    async def go_on(self) -> None:
        """Go on with a turn that was interrupted or stopped."""
        if self.conversation.session is not None:
            await self.conversation.session.continue_turn(**self.conversation.options())

    # -- events

    async def follow(self, session: Session, live: Live, *, after: int) -> None:
        """Show what happens in this session from now on."""
        assert self._group is not None
        self._stop_following()
        self.watch(Story(live))
        await self._group.start(self._follow, session, self.story, after)
        self._wake_asker()

    def _stop_following(self) -> None:
        if self._following is not None:
            self._following.cancel()
            self._following = None
        if self._asking is not None:
            self._asking[1].cancel()

    async def _follow(
        self, session: Session, story: Story, after: int, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        with anyio.CancelScope() as scope:
            self._following = scope
            events = await session.subscribe(after=after)
            task_status.started()
            async with events:
                async for event in events:
                    blocks = story.take(await whole(event, self._app))
                    if blocks:
                        self.screen.show(*blocks)
                    self.screen.refresh()
                    self._wake_asker()
        if not scope.cancelled_caught:
            self.screen.show(
                Note(text=f"the session ended: {await session.wait()}", level="warning")
            )

    # -- questions

    def _wake_asker(self) -> None:
        """Look at the open requests again: one may have come, or gone because somebody else answered."""
        if self._asking is not None and self._asking[0] not in self.live.requests:
            self._asking[1].cancel()
        if self.live.requests:
            self._asked.set()

    async def _put_questions(self) -> None:
        while True:
            await self._asked.wait()
            self._asked = anyio.Event()
            while self.live.requests and self.conversation.session is not None:
                request = next(iter(self.live.requests.values()))
                with anyio.CancelScope() as scope:
                    self._asking = (request.request_id, scope)
                    await self._safely(self._put, self.conversation.session, request)
                self._asking = None
                self.live.requests.pop(request.request_id, None)

    async def _put(self, session: Session, request: PermissionRequest | QuestionAsked) -> None:
        try:
            if isinstance(request, PermissionRequest):
                await self._ask_leave(session, request)
            else:
                await self._ask_person(session, request)
        except NoPendingRequest:
            return  # somebody else was faster

    async def _ask_leave(self, session: Session, request: PermissionRequest) -> None:
        self.screen.show(
            Leave(
                tool=request.tool_name,
                target=request.tool_path,
                preview=request.preview,
                reason=request.reason,
            )
        )
        chosen = await self.screen.choose(leave_question(request))
        if chosen is None:
            self._interrupt_apart()
            return
        reason = ""
        if chosen == 3:
            answer = await self.screen.ask_line("Why not? (Enter for no reason)")
            reason = (answer or "").strip()
        actions = ("allow_once", "allow_turn", "allow_always", "deny")
        await session.respond_to_permission(
            actions[chosen],  # type: ignore[arg-type]  # these are the literals
            request_id=request.request_id,
            meta={"reason": reason} if reason else None,
        )

    async def _ask_person(self, session: Session, request: QuestionAsked) -> None:
        answer: str | None = None
        self.screen.show(Asked(text=request.question))
        if request.options:
            rows = (*(Row(option) for option in request.options), Row("Something else"))
            question = Question(title="Your answer?", rows=rows, hint="Esc stops the turn")
            chosen = await self.screen.choose(question)
            if chosen is not None and chosen < len(request.options):
                answer = request.options[chosen]
            elif chosen is not None:
                answer = await self.screen.ask_line("Your answer:")
        else:
            answer = await self.screen.ask_line("Your answer:")
        if answer is None:
            self._interrupt_apart()
        else:
            await session.answer_question(request.request_id, answer or "(no answer)")


def leave_question(request: PermissionRequest) -> Question:
    """The four answers.  What "always" grants is said in full, or stands right above."""
    pattern = request.always_pattern
    is_short = "\n" not in pattern and len(pattern) <= 60 and pattern.isprintable()
    granted = pattern if is_short else "exactly what is shown above"
    return Question(
        title="May it?",
        rows=(
            Row("Yes, once"),
            Row("Yes, also again in this turn", granted),
            Row("Yes, always in this session", granted),
            Row("No, and say why"),
        ),
        hint="1-4; Esc stops the turn",
        picked=-1,
    )
