"""The chat in a terminal: what was said scrolls by for good, and a few lines at the bottom are
redrawn.

The bottom is an inline application of prompt_toolkit: what is in flight, a question if there is
one, the input line, the status.  Finished blocks are written above it and belong to the terminal
from then on: they can be scrolled, selected and searched like any output.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.abc
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition

from weft.cli.chat.screens.completion import ChatCompleter, OfferedCommand
from weft.cli.chat.screens.external_editor import edited
from weft.cli.chat.screens.live_area import (
    Fragments,
    in_flight,
    question_lines,
    status_line,
    wrapped,
)
from weft.cli.chat.screens.picker import ListPicker
from weft.cli.chat.screens.render import BlockRenderer
from weft.cli.chat.screens.screen import (
    BACK_HINT,
    CLEAR_HINT,
    LEAVE_HINT,
    ChatClosed,
    ChatScreen,
    ChoiceQuestion,
    DoublePress,
    GoBack,
    Input,
    InterruptPressed,
    LineSubmitted,
)
from weft.cli.chat.screens.terminal_keys import key_bindings
from weft.cli.chat.screens.terminal_layout import (
    REDRAW_SECONDS,
    ScreenParts,
    line_history,
    make_application,
    speaks_unicode,
    without_last_newline,
)
from weft.clock import Clock, SystemClock
from weft.view import AnyBlock, LiveArea

CALM_SECONDS = 0.4
"""A question takes keys only after so long without typing: what was meant for the input line must
not answer it.
"""
NOTICE_SECONDS = 4.0
INPUTS = 1000


class TerminalScreen(ChatScreen):
    """A user at a terminal."""

    def __init__(
        self,
        *,
        folder: str,
        history: str | None,
        coloured: bool,
        offered: Callable[[], list[OfferedCommand]] = list,
        clock: Clock | None = None,
    ) -> None:
        """`offered` gives the commands from files; it is called in a thread."""
        self._clock = clock or SystemClock()
        self._coloured = coloured
        self._live = LiveArea()
        self._busy_since = self._clock.monotonic()
        self._pending: list[AnyBlock] = []
        self._work = anyio.Event()
        self._notice = ("", 0.0)
        self._choosing: ListPicker | None = None
        self._asking = ""
        """The label of the line that is asked for."""
        self._one_question = anyio.Lock()
        """Two questions at once would take each other's answers: a request may come up while a list
        is open.
        """
        self._answered = anyio.Event()
        self._answer: int | str | None = None
        self._last_key = float("-inf")
        self._twice = DoublePress(self._clock)
        # Bounded: a stuck chat must not collect a key's auto-repeat without limit.
        self._sending, self._receiving = anyio.create_memory_object_stream[Input](INPUTS)
        self.buffer = Buffer(
            multiline=True,
            history=line_history(history),
            # Listing a large project takes longer than a key press may.
            completer=ThreadedCompleter(ChatCompleter(folder, offered)),
            complete_while_typing=Condition(self._offers),
        )
        self.line = Buffer(multiline=False)
        chooses = Condition(lambda: self._choosing is not None)
        asks = Condition(lambda: bool(self._asking))
        parts = ScreenParts(
            in_flight=self._in_flight,
            question=self._question,
            label=self._label,
            completions=self._completions,
            status=self._status,
            buffer=self.buffer,
            line=self.line,
            chooses=chooses,
            asks=asks,
        )
        keys = key_bindings(self, chooses=chooses, asks=asks)
        self._app = make_application(parts, keys, coloured=coloured)

    # -- what the chat uses

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._keep_drawing)
            group.start_soon(self._tick)
            task_status.started()
            self._write_pending()
            try:
                await self._app.run_async(handle_sigint=False, set_exception_handler=False)
            except (EOFError, OSError):  # the terminal is gone
                return
            finally:
                # Ends `next_input`, so that the chat ends when its terminal is gone.
                self._sending.close()
                group.cancel_scope.cancel()

    def close(self) -> None:
        self._write_pending()
        self._receiving.close()
        if self._app.is_running and self._app.future is not None and not self._app.future.done():
            self._app.exit()

    def interrupted(self) -> None:
        if self._live.is_busy:
            # The second one while it still stops leaves; one after it has stopped is the first of
            # two.
            self.tell(ChatClosed() if self._twice.now("stop") else InterruptPressed())
        elif self.buffer.text:
            self.buffer.append_to_history()
            self.buffer.reset()
        elif self._twice.now("leave"):
            self.tell(ChatClosed())
        else:
            self.notify(LEAVE_HINT)

    def show(self, *blocks: AnyBlock) -> None:
        self._pending.extend(blocks)
        self._work.set()

    def watch(self, live: LiveArea) -> None:
        self._live = live
        self.refresh()

    def refresh(self) -> None:
        if not self._live.is_busy:
            self._busy_since = self._clock.monotonic()
        self._work.set()

    def notify(self, text: str) -> None:
        self._notice = (text, self._clock.monotonic() + NOTICE_SECONDS)
        self._work.set()

    def put_back(self, text: str) -> None:
        if not text:
            return
        draft = self.buffer.text
        whole = f"{text}\n{draft}" if draft.strip() else text
        self.buffer.set_document(Document(whole, len(whole)), bypass_readonly=True)

    async def next_input(self) -> Input:
        try:
            return await self._receiving.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return ChatClosed()

    async def choose(self, question: ChoiceQuestion) -> int | None:
        async with self._one_question:
            return await self._choose(question)

    async def _choose(self, question: ChoiceQuestion) -> int | None:
        self.show(*question.preview)
        self._choosing = ListPicker(question)
        # A question that comes up counts as a key press: a key that was already on its way must not
        # answer it.
        self._last_key = max(self._last_key, self._clock.monotonic())
        try:
            answer = await self._wait_for_answer()
        finally:
            self._choosing = None
            self._work.set()
        return answer if type(answer) is int else None

    async def ask_line(self, label: str, text: str = "") -> str | None:
        async with self._one_question:
            return await self._ask_line(label, text)

    async def edit(self, text: str, suffix: str) -> str | None:
        with set_app(self._app):
            return await run_in_terminal(lambda: edited(text, suffix), in_executor=True)

    async def _ask_line(self, label: str, text: str) -> str | None:
        self._asking = label
        self.line.set_document(Document(text, len(text)), bypass_readonly=True)
        self._app.layout.focus(self.line)
        try:
            answer = await self._wait_for_answer()
        finally:
            self._asking = ""
            self._app.layout.focus(self.buffer)
            self._work.set()
        return answer if isinstance(answer, str) else None

    async def _wait_for_answer(self) -> int | str | None:
        self._answered = anyio.Event()
        self._answer = None
        self._work.set()
        await self._answered.wait()
        return self._answer

    def give(self, answer: int | str | None) -> None:
        """Answer what is asked; None dismisses it."""
        self._answer = answer
        self._answered.set()

    def tell(self, happened: Input) -> None:
        try:
            self._sending.send_nowait(happened)
        except anyio.WouldBlock:
            self.notify("too much at once; wait a moment")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # leaving already

    # -- drawing

    async def _keep_drawing(self) -> None:
        """Draw what has changed, at most twenty times a second."""
        while True:
            await self._work.wait()
            self._work = anyio.Event()
            # While an external editor has the terminal nothing may be written, or it would be drawn
            # into the editor's screen.
            if not self._app.is_running or getattr(self._app, "_running_in_terminal", False):
                await anyio.sleep(REDRAW_SECONDS)
                self._work.set()
                continue
            self._write_pending()
            # Also after writing: what was drawn with it may be from before the change.
            self._app.invalidate()
            await anyio.sleep(REDRAW_SECONDS)

    async def _tick(self) -> None:
        """The seconds of what is being done, and notices that have had their time."""
        while True:
            await anyio.sleep(CALM_SECONDS / 2 if self._choosing is not None else 1)
            text, until = self._notice
            if text and self._clock.monotonic() >= until:
                self._notice = ("", 0.0)
                self._work.set()
            if self._live.is_busy or self._choosing is not None:
                self._work.set()

    def _write_pending(self) -> None:
        """Write finished blocks above the redrawn lines."""
        blocks, self._pending = self._pending, []
        if not blocks:
            return
        output, renderer = self._app.output, self._app.renderer
        painter = BlockRenderer(
            width=output.get_size().columns, coloured=self._coloured, unicode=speaks_unicode()
        )
        text = "".join(painter.paint(block) for block in blocks)
        running = self._app.is_running
        if running:
            # Erase, write, draw again: the finished text goes where the redrawn lines were, and
            # they come back below it. In any other order a copy of them would stay in the
            # scrollback.
            renderer.erase()
        # Raw: the text has its own colours, and everything foreign in it was cleaned when it was
        # painted.
        output.write_raw(text)
        output.flush()
        if running:
            with set_app(self._app):
                renderer.render(self._app, self._app.layout)

    def _in_flight(self) -> Fragments:
        size = self._app.output.get_size()
        seconds = int(self._clock.monotonic() - self._busy_since)
        drawn = in_flight(self._live, width=size.columns - 1, rows=size.rows, seconds=seconds)
        return without_last_newline([("", "\n"), *drawn] if drawn else [])

    def _question(self) -> Fragments:
        if self._choosing is None:
            return []
        width = self._app.output.get_size().columns - 1
        ready = self._is_calm() and not self.buffer.text
        lines = question_lines(self._choosing, width=width, is_ready=ready)
        return without_last_newline(lines)

    def _label(self) -> Fragments:
        width = self._app.output.get_size().columns - 1
        lines = wrapped(self._asking, width)
        return without_last_newline(
            [("", "\n"), *(("class:question", f"{each}\n") for each in lines)]
        )

    def _status(self) -> Fragments:
        width = self._app.output.get_size().columns - 1
        return status_line(self._live, width=width, notice=self._notice[0])

    def _completions(self) -> Fragments:
        state = self.buffer.complete_state
        if state is None:
            return []
        index = state.complete_index or 0
        start = max(0, min(index - 3, len(state.completions) - 6))
        width = self._app.output.get_size().columns - 1
        drawn: Fragments = []
        for place, completion in enumerate(state.completions[start : start + 6], start):
            is_current = place == state.complete_index
            style = "class:completion.current" if is_current else "class:completion"
            text = f"  {completion.display_text:<24}  {completion.display_meta_text}".rstrip()
            drawn.append((style, f"{text[:width]}\n"))
        return without_last_newline(drawn)

    def _is_calm(self) -> bool:
        """What is typed now can be meant for the question: nothing else was being typed, or the
        user has just asked for it.
        """
        if self._choosing is not None and self._choosing.question.is_searched:
            return True
        return self._clock.monotonic() - self._last_key >= CALM_SECONDS

    def _offers(self) -> bool:
        before = self.buffer.document.text_before_cursor
        return before.startswith("/") or "@" in before.rpartition("\n")[2].rpartition(" ")[2]

    def typed_at_question(self, letter: str) -> None:
        """A letter answers only after a moment of calm and with an empty input line.

        Else it belongs to what is being typed.
        """
        if self._choosing is None or not letter.isprintable():
            return
        if self._is_calm() and not self.buffer.text and self._choosing.understands(letter):
            if (chosen := self._choosing.typed(letter)) is not None:
                self.give(chosen)
            return
        self.buffer.insert_text(letter)

    def move(self, step: int) -> None:
        if self._choosing is not None:
            self._choosing.move(step)

    def enter(self) -> None:
        buffer = self.buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion:
            buffer.complete_state = None
            if not buffer.text.startswith("/"):
                return
        if buffer.document.char_before_cursor == "\\" and not buffer.document.text_after_cursor:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
            return
        if buffer.text.strip():
            self._send()

    def _send(self, *, later: bool = False) -> None:
        text = self.buffer.text
        self.buffer.append_to_history()
        self.buffer.reset()
        self.notify("")
        self.tell(LineSubmitted(text, later))

    def send_later(self) -> None:
        """Send after this turn; where no turn runs, a new line."""
        if self._live.is_busy and self.buffer.text.strip():
            self._send(later=True)
        else:
            self.buffer.insert_text("\n")

    def escape(self) -> None:
        """Close the completions, else stop the turn, else count towards Esc Esc."""
        if self.buffer.complete_state is not None:
            self.buffer.cancel_completion()
        elif self._live.is_busy:
            self.tell(InterruptPressed())
        else:
            self._escape()

    def text_changed(self) -> None:
        """Typing goes on: a question has to wait, and Esc, typing, Esc is not Esc Esc."""
        self._last_key = self._clock.monotonic()
        self._twice.forget()

    def take_picked(self) -> None:
        """Enter at a list: take the marked row, or send what was being typed."""
        picked = self._choosing.picked() if self._choosing is not None else None
        if picked is not None and self._is_calm():
            self.give(picked)
        elif picked is None and self.buffer.text.strip():
            self.enter()

    def erase_letter(self) -> None:
        """Backspace at a list: of the text that was being typed, else of the search."""
        if self.buffer.text:
            self.buffer.delete_before_cursor()
        elif self._choosing is not None:
            self._choosing.erase()

    def _escape(self) -> None:
        """Esc while nothing runs: twice goes back to an earlier message, or clears the line if
        something stands there.
        """
        has_text = bool(self.buffer.text)
        if not self._twice.now("clear" if has_text else "back"):
            self.notify(CLEAR_HINT if has_text else BACK_HINT)
            return
        self._twice.forget()
        self.notify("")
        if has_text:
            self.buffer.append_to_history()
            self.buffer.reset()
        else:
            self.tell(GoBack())
