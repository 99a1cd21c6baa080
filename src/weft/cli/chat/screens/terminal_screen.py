"""The chat in a terminal: what was said scrolls by for good, and a region at the bottom is redrawn.

Finished blocks are written above the region and belong to the terminal from then on: they can be
scrolled, selected and searched like any output.  A key is drawn at once; what streams waits for the
next of twenty drawings a second.
"""

from __future__ import annotations

import base64
import contextlib
import math
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from weft.cli.chat.paint.answer_flow import AnswerFlow
from weft.cli.chat.paint.text_cells import fit, row_cells
from weft.cli.chat.paint.theme import PaintTheme, theme_of
from weft.cli.chat.screens.completion import (
    ChatCompleter,
    OfferedCommand,
    ProjectFileList,
)
from weft.cli.chat.screens.external_editor import edited
from weft.cli.chat.screens.line_input.input_draft import InputDraft
from weft.cli.chat.screens.line_input.input_rows import InputRows
from weft.cli.chat.screens.line_input.line_history import LineHistory
from weft.cli.chat.screens.list_question import ListAnswer, ListQuestion
from weft.cli.chat.screens.render import BlockRenderer
from weft.cli.chat.screens.screen import (
    ChatClosed,
    ChatScreen,
    ChoiceQuestion,
    Input,
    LineSubmitted,
)
from weft.cli.chat.screens.shown_record import ShownRecord, UnfoldedBlock
from weft.cli.chat.screens.terminal.activity import TurnActivity
from weft.cli.chat.screens.terminal.chat_input import ChatInput
from weft.cli.chat.screens.terminal.cursor_report import QUIET_SECONDS, CursorReports
from weft.cli.chat.screens.terminal.frame_ledger import lines_behind
from weft.cli.chat.screens.terminal.key_bindings import KeyBindings
from weft.cli.chat.screens.terminal.key_decoder import (
    KeyDecoder,
    KeyPress,
    PastedText,
    TerminalEvent,
    TerminalReply,
)
from weft.cli.chat.screens.terminal.list_panel import ListPanel
from weft.cli.chat.screens.terminal.question_panel import CALM_SECONDS, QuestionPanel
from weft.cli.chat.screens.terminal.region_frame import (
    RegionFrame,
    RegionParts,
    answer_limit,
    frame_of,
    input_limit,
    question_limit,
)
from weft.cli.chat.screens.terminal.region_painter import RegionPainter, ScreenSize
from weft.cli.chat.screens.terminal.region_rows import (
    FRAMES_PER_SECOND,
    SPINNER,
    STILL,
    RegionRows,
)
from weft.cli.chat.screens.terminal.status_command import StatusCommand
from weft.cli.chat.screens.terminal.status_line import StatusPlace, status_row
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.chat.screens.terminal.terminal_device import TerminalPort
from weft.cli.chat.screens.terminal.window_title import (
    POP,
    PUSH,
    AttentionBell,
    WindowTitle,
    background_of,
)
from weft.clock import Clock, SystemClock
from weft.errors import UsageError
from weft.project.slash_commands import is_note
from weft.view import AnswerBlock, AnyBlock, LiveArea, UserBlock

if TYPE_CHECKING:  # loaded when the user opens it, or pastes a picture
    from weft.cli.chat.screens.dropped_files import ClipboardPictures
    from weft.cli.chat.screens.terminal.block_viewer import BlockViewer

REDRAW_SECONDS = 0.05
ESCAPE_SECONDS = 0.05
"""A terminal sends a sequence in one burst: so long after an ESC, it was the key."""
NOTICE_SECONDS = 4.0
PLACE_SECONDS = 0.3
"""Between two looks at the work tree, and before the first: it must not delay the first key."""
DRAFT_SECONDS = 0.5
"""Before what was typed is kept for the case of a crash."""
SENT_ROWS = 4
INPUTS = 1000
MOST_PASTED = 20
"""Messages on their way of which it is known where pastes are."""
_NOTHING_SENT = UserBlock(text="")
MOST_COPIED = 100_000
"""What terminals take of text for the clipboard, in base64."""
BACKGROUND_QUERY = "\x1b]11;?\x1b\\"
DRAWING_SHARE = 10
"""Between two drawings of the stream at least so many times what one takes: a slow machine draws
less often instead of falling behind.
"""


class ScreenSettings(NamedTuple):
    """What the user has set."""

    is_animated: bool = True
    notifies: bool = True
    vi_keys: bool = False
    bindings: KeyBindings = KeyBindings()
    status_command: str = ""
    """A command whose output is the status line."""
    asks_background: bool = False
    """The terminal is asked whether it is dark or light."""


class TerminalScreen(ChatScreen):
    """A user at a terminal."""

    def __init__(
        self,
        terminal: TerminalPort,
        *,
        folder: str,
        history: str | None,
        drafts: str | None = None,
        theme: PaintTheme,
        place: Callable[[], StatusPlace] = StatusPlace,
        look_at_place: Callable[[], None] = lambda: None,
        offered: Callable[[], list[OfferedCommand]] = list,
        files: ProjectFileList | None = None,
        clock: Clock | None = None,
        settings: ScreenSettings | None = None,
        rewraps: bool = True,
    ) -> None:
        """`offered` gives the commands from files, `files` finds files and `look_at_place` looks at
        the work tree; they are called in a thread.  `rewraps` says that the terminal breaks rows
        again when it gets narrower.
        """
        settings = settings or ScreenSettings()
        self._terminal = terminal
        self._clock = clock or SystemClock()
        self._styles = RowStyles(coloured=theme.is_coloured, unicode=theme.is_unicode)
        self._theme = theme
        self._asks_background = settings.asks_background
        self._place, self._look_at_place = place, look_at_place
        self._place_due = anyio.Event()
        """Something has happened that may have changed a file."""
        self._is_animated = settings.is_animated
        self._title = WindowTitle(self._write, os.path.basename(folder) or folder)
        command = settings.status_command
        self._status_command = StatusCommand(command, folder) if command else None
        self._bell = AttentionBell(self._write, os.environ, is_on=settings.notifies)
        self._size = terminal.size()
        self._live = LiveArea()
        self._activity = TurnActivity(self._clock)
        self._pictures: ClipboardPictures | None = None
        """Those that were pasted."""
        self._painter = RegionPainter(self._write, rewraps=rewraps)
        self._cursor = CursorReports(terminal, self._painter)
        self._lost: list[str] = []
        """Finished lines that a resize has cut: they come first in the next drawing."""
        self._decoder = KeyDecoder()
        self._flow = AnswerFlow()
        self._answer_rows: list[str] = []
        self._drawn_text = ""
        """The text that these rows are of."""
        self._greeting = ""
        self._sent = _NOTHING_SENT
        self._pasted: dict[str, tuple[tuple[int, int], ...]] = {}
        """By message: where pastes are in it, until it comes back as a block."""
        """A message that is on its way to the session."""
        self._pending: list[AnyBlock | UnfoldedBlock] = []
        self._shown = ShownRecord()
        self._viewer: BlockViewer | None = None
        """What has the keys and the alternate screen; the region is drawn again behind it."""
        self._opening: Callable[[], BlockViewer] | None = None
        """A viewer that opens with the next drawing: in the middle of a resize there is none."""
        self._about: QuestionPanel | None = None
        """The question that the line which is asked for belongs to."""
        self._printed: ChoiceQuestion | None = None
        """The last question whose preview was printed above it."""
        self._draft = InputDraft(drafts, folder)
        self._typed = anyio.Event()
        """The input may have changed."""
        self._notice = ("", 0.0)
        self._work, self._awake = anyio.Event(), anyio.Event()
        self._is_on = False
        """The region is drawn; not before the start, while another program has the terminal, and
        while the window is being resized.
        """
        self._resize = anyio.Event()
        self._is_away = False
        """Another program has the terminal."""
        self._one_question = anyio.Lock()
        """Two questions at once would take each other's answers: a request may come up while a list
        is open.
        """
        # Bounded: a stuck chat must not collect a key's auto-repeat without limit.
        self._sending, self._receiving = anyio.create_memory_object_stream[Input](INPUTS)
        self._group: anyio.abc.TaskGroup | None = None
        self._completer = ChatCompleter(folder, offered, files)
        self.key_names = settings.bindings.names
        self.keep_key = self.key_names.get("Alt+K", "Alt+K")
        self.input = ChatInput(
            self,
            completer=self._completer,
            history=LineHistory(history),
            clock=self._clock,
            vi=settings.vi_keys,
            bindings=settings.bindings,
        )

    # -- what the chat uses

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        self._terminal.enter()
        if (early := self._terminal.early_rows()) is not None:
            count, at = early
            self._painter.adopt(count, at)
        self._write(PUSH + (BACKGROUND_QUERY if self._asks_background else ""))
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                self._is_on = True
                self._draw_stream()
                task_status.started()
                group.start_soon(self._keep_drawing)
                group.start_soon(self._tick)
                group.start_soon(self._watch_size)
                group.start_soon(self._keep_size)
                group.start_soon(self.input.complete)
                group.start_soon(self._keep_place)
                group.start_soon(self._keep_draft)
                if self._status_command is not None:
                    group.start_soon(self._keep_status, self._status_command)
                await self._read_keys()
                group.cancel_scope.cancel()
        except* OSError:
            pass  # the terminal is gone
        finally:
            # Ends `next_input`, so that the chat ends when its terminal is gone.
            self._sending.close()
            self._is_on, self._group = False, None
            self._draft.keep(self.input.editor.whole_text)
            self._draft.close()
            with contextlib.suppress(OSError):
                self._leave_viewer()
                self._write(POP)
            self._leave_terminal()
            if self._pictures is not None:
                self._pictures.close()

    def close(self) -> None:
        self._receiving.close()
        if self._group is None or self._is_away:
            return
        with contextlib.suppress(OSError):
            self._leave_viewer()
            # Also in the middle of a resize: what was said has to be on the screen.
            self._is_on, self._opening = True, None
            self._draw_stream()
            self._painter.erase()
        self._is_on = False
        self._group.cancel_scope.cancel()

    def greet(self, text: str) -> None:
        """The first line, before anything is shown."""
        self._greeting = text

    def interrupted(self) -> None:
        self.input.interrupted()
        self.redraw()

    def show(self, *blocks: AnyBlock) -> None:
        self._sent = _NOTHING_SENT
        blocks = tuple(map(self._with_pastes, blocks))
        self._pending.extend(blocks)
        for block in blocks:
            self._shown.add(block)
        self._activity.handed_out(blocks)
        self._completer.saw(blocks)
        self._place_due.set()
        self._work.set()

    def watch(self, live: LiveArea) -> None:
        self._live = live
        self.refresh()

    def refresh(self) -> None:
        self._activity.look(self._live)
        if self._status_command is not None:
            self._status_command.changed()
        self._work.set()
        self._awake.set()

    def notify(self, text: str) -> None:
        self._notice = (text, self._clock.monotonic() + NOTICE_SECONDS)
        self._work.set()
        self._awake.set()

    def sending(self, text: str) -> None:
        # A message that was typed as such is in sight since its key.
        if not self._sent.text and not self._live.is_busy:
            self._sent = UserBlock(text=text)
            self._work.set()

    def put_back(self, text: str) -> None:
        self._sent = _NOTHING_SENT
        self.input.put_back(text)
        self._work.set()

    def ready(self, *, is_sent: bool) -> None:
        *older, newest = ["", *self._draft.take_left()]
        for text in older:
            self.input.history.add(text)
        if not newest:
            return
        if self.input.editor.text or self._sent.text:
            # Typed ahead: it must not become a part of what is being said now.
            self.input.history.add(newest)
            self.notify("unsent text from last time: Up")
            return
        self.put_back(newest)
        self.notify("unsent text from last time · Esc Esc clears it")

    def copy(self, text: str) -> None:
        # OSC 52: the terminal does it, also over ssh; many take no more than this much.
        data = base64.b64encode(text.encode())
        if len(data) > MOST_COPIED:
            raise UsageError("that is more than terminals take; /export writes it to a file")
        self._write(f"\x1b]52;c;{data.decode()}\x1b\\")

    def unfold(self, number: int) -> None:
        self._pending.append(UnfoldedBlock(self._shown.card(number)))
        self._work.set()

    def view(self, title: str, *blocks: AnyBlock) -> None:
        self._open(list(blocks), title, at_end=False)

    async def next_input(self) -> Input:
        try:
            return await self._receiving.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return ChatClosed()

    async def choose(self, question: ChoiceQuestion) -> int | None:
        async with self._one_question:
            self._close_viewer()
            answer = await self.input.ask(self._panel(question))
        return answer if type(answer) is int else None

    def _panel(self, question: ChoiceQuestion) -> QuestionPanel:
        panel = QuestionPanel(question, self._clock)
        # Asked again, or for a line about it: the preview stands above already.
        panel.is_printed = question is self._printed
        return panel

    async def choose_from(self, question: ListQuestion) -> ListAnswer | None:
        async with self._one_question:
            self._close_viewer()
            return await self.input.ask_list(ListPanel(question))

    async def ask_line(
        self,
        label: str,
        text: str = "",
        *,
        is_secret: bool = False,
        about: ChoiceQuestion | None = None,
    ) -> str | None:
        async with self._one_question:
            self._close_viewer()
            self._about = self._panel(about) if about is not None else None
            try:
                answer = await self.input.ask_line(label, text, is_secret=is_secret)
            finally:
                self._about = None
        return answer if isinstance(answer, str) else None

    async def edit(self, text: str, suffix: str) -> str | None:
        async with self._away():
            return await anyio.to_thread.run_sync(edited, text, suffix)

    async def run_shell(self, folder: str) -> None:
        from weft.cli.evidence.past_shell import run_shell  # few look back

        async with self._away():
            await anyio.to_thread.run_sync(run_shell, folder)

    # -- what the keys use

    @property
    def live(self) -> LiveArea:
        """What is in flight."""
        return self._live

    def tell(self, happened: Input) -> None:
        """Hand an input to the chat."""
        if isinstance(happened, LineSubmitted) and _is_message(happened.text):
            # Shown in the same frame as the key: the first message makes the session, which takes
            # longer than a user waits for a sign.
            shown = "" if self._live.is_busy else happened.shown
            self._sent = UserBlock(text=shown, pasted=happened.pasted if shown else ())
            self._keep_pastes(happened)
            self._title.said(happened.shown)
        try:
            self._sending.send_nowait(happened)
        except anyio.WouldBlock:
            self.notify("too much at once; wait a moment")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # leaving already

    def _keep_pastes(self, line: LineSubmitted) -> None:
        if line.pasted:
            self._pasted[line.shown] = line.pasted
            # A message that never comes back, because it was refused, is not kept for ever.
            while len(self._pasted) > MOST_PASTED:
                del self._pasted[next(iter(self._pasted))]

    def _with_pastes(self, block: AnyBlock) -> AnyBlock:
        """A message with the places of its pastes: only this screen knows them."""
        if not isinstance(block, UserBlock) or block.text not in self._pasted:
            return block
        return msgspec.structs.replace(block, pasted=self._pasted.pop(block.text))

    def redraw(self) -> None:
        """Something was typed: show it now."""
        self._typed.set()
        self._awake.set()
        if self._can_draw():
            self._draw()

    def start_editor(self, text: str, done: Callable[[str], None]) -> None:
        """Have the user change the input in their own editor."""
        assert self._group is not None
        self._group.start_soon(self._edit_input, text, done)

    async def _edit_input(self, text: str, done: Callable[[str], None]) -> None:
        try:
            written = await self.edit(text, ".md")
        except UsageError as error:
            self.notify(str(error))
            return
        done((written or "").rstrip("\n"))
        self.redraw()

    def paint(self, theme: str) -> None:
        before = self._theme
        self._theme = theme_of(
            os.environ,
            name=theme,
            background=before.background,
            is_unicode=before.is_unicode,
            folder=before.folder,
        )
        self._styles = RowStyles(coloured=self._theme.is_coloured, unicode=before.is_unicode)
        self._asks_background = theme == "auto" and self._theme.has_rows
        if self._asks_background:
            self._write(BACKGROUND_QUERY)
        self.redraw()

    def paste_picture(self) -> None:
        """Ctrl+V: the picture in the clipboard, where it has one."""
        assert self._group is not None
        self._group.start_soon(self._paste_picture)

    async def _paste_picture(self) -> None:
        from weft.cli.chat.screens.dropped_files import ClipboardPictures  # with the first one

        self._pictures = self._pictures or ClipboardPictures(os.environ)
        try:
            path = await anyio.to_thread.run_sync(self._pictures.take)
        except (UsageError, OSError) as error:  # a full disk, say
            self.notify(str(error))
            return
        self.input.drop([path], f"[Image #{self._pictures.count}]")
        self.redraw()

    def open_viewer(self) -> None:
        """Ctrl+O: what was said and done, unfolded."""
        self._open(self._shown.blocks(), "Conversation", at_end=True)

    def _open(self, blocks: list[AnyBlock], title: str, *, at_end: bool) -> None:
        if not blocks:
            self.notify("there is nothing to unfold yet")
            return
        # Only for those who open it: it is not on the way to the first prompt.
        from weft.cli.chat.screens.terminal.block_viewer import BlockViewer

        self._opening = lambda: BlockViewer(
            blocks,
            self._size,
            theme=self._theme,
            styles=self._styles,
            copy=self.copy,
            title=title,
            at_end=at_end,
        )
        self._draw_stream()

    def _enter_viewer(self) -> None:
        """Open what waits to be opened; not over a question, which would not be seen."""
        opening, self._opening = self._opening, None
        if opening is None or self.input.is_held:
            return
        from weft.cli.chat.screens.terminal.block_viewer import OPEN

        # Erased first: the window may have another size when it is drawn again, and then nothing
        # could be erased by counting rows.
        self._painter.erase()
        self._is_on, self._viewer = False, opening()
        self._write(OPEN + self._viewer.frame())

    def _leave_viewer(self) -> None:
        if self._viewer is not None:
            from weft.cli.chat.screens.terminal.block_viewer import SHUT

            self._viewer = None
            self._write(SHUT)

    def _close_viewer(self) -> None:
        """Back to the conversation, with what came meanwhile."""
        if self._viewer is None:
            return
        self._leave_viewer()
        self._size = self._terminal.size()
        self._is_on = True
        self._draw_stream()

    def _press_viewer(self, viewer: BlockViewer, name: str) -> None:
        if name == "c-z":
            self._close_viewer()
            self.suspend()
            return
        viewer.press(name)
        if viewer.is_over:
            self._close_viewer()

    def suspend(self) -> None:
        """Ctrl+Z: back to the shell until it brings us forward again."""
        self._painter.erase()
        self._leave_terminal()
        os.kill(os.getpid(), signal.SIGTSTP)
        # Here the process has been continued; the window may have another size.
        self._terminal.enter()
        self._size = self._terminal.size()
        self._draw()

    def clear_screen(self) -> None:
        """Ctrl+L."""
        self._write("\x1b[H\x1b[2J")
        self._painter.forget()
        self._draw()

    @asynccontextmanager
    async def _away(self) -> AsyncIterator[None]:
        """While another program has the terminal."""
        self._painter.erase()
        self._is_on, self._is_away = False, True
        self._leave_terminal()
        try:
            yield
        finally:
            self._is_away = False
            self._terminal.enter()
            self._size = self._terminal.size()
            self._is_on = True
            self._work.set()

    def _leave_terminal(self) -> None:
        self._terminal.leave(self._painter.frames.forgive())

    # -- keys

    async def _read_keys(self) -> None:
        while data := await self._terminal.read():
            self._take(self._decoder.feed(data))
            while self._decoder.pending:
                more = b""
                with anyio.move_on_after(ESCAPE_SECONDS):
                    more = await self._terminal.read()
                self._take(self._decoder.feed(more) if more else self._decoder.flush())

    def _take(self, events: list[TerminalEvent]) -> None:
        for event in events:
            match event:
                case KeyPress(name=name) if self._viewer is not None:
                    self._press_viewer(self._viewer, name)
                case PastedText(text=text) if self._viewer is not None:
                    self._viewer.paste(text)
                case KeyPress(name=name):
                    self.input.press(name)
                case PastedText(text=text):
                    self.input.paste(text)
                case TerminalReply(kind="cursor", values=values):
                    if self._cursor.take(values, self._size.columns):
                        self._resize.set()
                case TerminalReply(kind="focus", values=values):
                    self._bell.has_focus = bool(values[0])
                    # The user was elsewhere, and may have committed there.
                    self._place_due.set()
                case TerminalReply(kind="background", text=text):
                    self._take_background(text)
                case TerminalReply():
                    continue
        # An answer to a frame must not cause the next one: they would never end.
        has_typed = any(not _is_place(event) for event in events)
        if self._viewer is not None and has_typed:
            self._write(self._viewer.frame())
        elif has_typed:
            self.redraw()

    def _take_background(self, reply: str) -> None:
        background = background_of(reply)
        if background and self._asks_background:
            light = background == "light"
            self._theme = msgspec.structs.replace(
                self._theme, background="light" if light else "dark"
            )

    # -- drawing

    async def _keep_drawing(self) -> None:
        """Draw what has changed, at most twenty times a second."""
        while True:
            await self._work.wait()
            self._work = anyio.Event()
            began = self._clock.monotonic()
            self._draw_stream()
            took = self._clock.monotonic() - began
            await anyio.sleep(max(REDRAW_SECONDS, took * DRAWING_SHARE))

    async def _tick(self) -> None:
        """The spinner and the seconds, notices that have had their time, questions that have been
        read; nothing at all while nothing moves.
        """
        while True:
            text, until = self._notice
            if text and self._clock.monotonic() >= until:
                self._notice = ("", 0.0)
                self._work.set()
            if self._live.can_stop or self._sent.text or self._notice[0] or self.input.is_fresh:
                await anyio.sleep(1 / FRAMES_PER_SECOND if self._is_animated else 1.0)
                self._work.set()
            else:
                self._awake = anyio.Event()
                await self._awake.wait()

    async def _keep_place(self) -> None:
        """Look at the work tree after what may have changed it, and never by a timer alone."""
        while True:
            await anyio.sleep(PLACE_SECONDS)
            self._place_due = anyio.Event()
            await anyio.to_thread.run_sync(self._look_at_place)
            self._work.set()
            await self._place_due.wait()

    async def _keep_draft(self) -> None:
        """Keep what is typed, a moment later: not with each key."""
        while True:
            await self._typed.wait()
            await anyio.sleep(DRAFT_SECONDS)
            self._typed = anyio.Event()
            self._draft.keep(self.input.editor.whole_text)

    async def _keep_status(self, command: StatusCommand) -> None:
        while True:
            await command.wait()
            await command.next_line(self._live, self._place())
            self._work.set()

    def _draw_stream(self) -> None:
        """Draw everything: finished blocks, the answer in flight, the region."""
        if self._viewer is not None:
            self._announce()
        if self._can_draw():
            self._draw_all()

    def _draw_all(self) -> None:
        blocks, self._pending = self._pending, []
        painter = self._renderer()
        lost, self._lost = self._lost, []
        above = [*lost, *self._first_line()]
        above += [row for block in blocks for row in self._painted(block, painter)]
        above += self._settle()
        above += self._preview_above(painter)
        self._draw(above)
        self._announce()
        self._enter_viewer()

    def _announce(self) -> None:
        """Tell the user outside the window, and in its title."""
        asks = self.input.is_asked
        self._title.show(self._live, asks=asks)
        self._bell.look(self._live, seconds=self._activity.last_seconds, asks=asks)

    def _can_draw(self) -> bool:
        """The terminal is ours, and as large as we think."""
        if not self._is_on:
            return False
        # Drawn for a width that the window no longer has, rows would be cut or broken, and nothing
        # could be erased by counting them.  The signal that tells of it may come later.
        if self._terminal.size() != self._size:
            self._resize.set()
            return False
        return True

    def _first_line(self) -> list[str]:
        text, self._greeting = fit(self._greeting, self._size.columns), ""
        return [self._styles.written(self._styles("quiet", text))] if text else []

    def _renderer(self) -> BlockRenderer:
        return BlockRenderer(width=self._size.columns, theme=self._theme)

    def _painted(self, block: AnyBlock | UnfoldedBlock, painter: BlockRenderer) -> list[str]:
        """A finished block; of an answer what has not been printed yet."""
        if isinstance(block, UnfoldedBlock):
            return _lines(painter.paint_whole(block.block))
        if isinstance(block, UserBlock) and block.node_id:
            return _marked(_lines(painter.paint(block)))
        if isinstance(block, AnswerBlock):
            return self._flow.finish(block.text, width=self._size.columns, theme=self._theme)
        return _lines(painter.paint(block))

    def _settle(self) -> list[str]:
        """Look at the answer in flight; returns lines of it that the region has no room for."""
        text, width, theme = self._live.text, self._size.columns, self._theme
        if not text.strip():
            self._answer_rows = []
            return []
        room = answer_limit(self._size)
        self._drawn_text = text
        rows = self._flow.lines(text, width=width, theme=theme)
        settled: list[str] = []
        if len(rows) > room:
            # All that can be, and not just one line: each time costs a drawing.
            settled = self._flow.settle(text, 1, width=width, theme=theme)
            rows = self._flow.lines(text, width=width, theme=theme)
        self._answer_rows = rows if self._flow.is_begun else ["", *rows]
        return settled

    def _preview_above(self, painter: BlockRenderer) -> list[str]:
        """The preview of a question that has no room for it, once."""
        panel = self._about or self.input.panel
        if panel is None or panel.is_printed or not panel.question.preview:
            return []
        lines = _preview(panel, painter)
        width = self._size.columns - 1
        if self._about is not None:
            bare = self.input.label_rows(width=width, styles=self._styles)
        else:
            bare = panel.rows([], width=width, styles=self._styles)
        # A draft that stays below the question takes rows too.
        room = question_limit(self._size, self._held(width), ())
        # A row of the region is cut at the edge of the window; above it, the terminal breaks it.
        is_cut = any(row_cells(line) > self._size.columns for line in lines)
        if not is_cut and len(lines) + len(bare) + 2 <= room - 1:
            return []
        panel.is_printed, self._printed = True, panel.question
        return ["", *lines]

    def _draw(self, above: list[str] | tuple[str, ...] = ()) -> None:
        rows, cursor = self._frame()
        written = self._styles.written
        self._painter.draw(
            [written(row) for row in rows],
            cursor,
            above=above,
            columns=self._size.columns,
            height=self._size.rows,
            # Also for a key on an idle line: a rule that is broken over two rows would stay.
            asks=True,
        )

    def _frame(self) -> RegionFrame:
        size, width = self._size, self._size.columns - 1
        rows = RegionRows(
            self._live, self._activity, width=width, styles=self._styles, mark=self._mark()
        )
        held = self._held(width)
        below = self.input.below(width=width, limit=size.rows // 3, styles=self._styles)
        asked = self._asked_rows(width, question_limit(size, held, below))
        parts = RegionParts(
            answer=self._answer_rows,
            tools=[*self._lookup_rows(), *rows.tools()],
            question=asked or [*self._sent_rows(rows), *rows.activity(), *rows.agents()],
            todo=rows.todo(unfolded=self.input.unfolds_todo),
            queue=[*rows.goal(), *rows.queue(hints=self.input.shows_queue_hint)],
            rule=self._styles("quiet", "─" * size.columns),
            input=held,
            below=below,
            status=self._status(width),
            is_question=bool(asked),
        )
        return frame_of(parts, size)

    def _held(self, width: int) -> InputRows | None:
        return self.input.rows(width=width, limit=input_limit(self._size), styles=self._styles)

    def _status(self, width: int) -> str:
        notice = self.input.search_notice(width) or self._notice[0] or self.input.mode_notice
        own = self._status_command.line if self._status_command is not None else ""
        if own and not notice:
            return self._styles("quiet", fit(f" {own}", width))
        return status_row(
            self._live, self._place(), width=width, styles=self._styles, notice=notice
        )

    def _lookup_rows(self) -> list[str]:
        """Reads and searches that may still be joined by another: the card is printed when
        something else begins.
        """
        if self._live.lookups is None:
            return []
        return _lines(self._renderer().paint(self._live.lookups))

    def _asked_rows(self, width: int, limit: int) -> list[str]:
        if self.input.label is not None:
            label = self.input.label_rows(width=width, styles=self._styles)
            if self._about is None:
                return label
            about = self._preview_rows(self._about)
            styles = self._styles
            return self._about.rows_above(label, about, width=width, styles=styles, limit=limit)
        if self.input.list is not None:
            return self._list_rows(self.input.list, width)
        panel = self.input.panel
        if panel is None:
            return []
        preview = self._preview_rows(panel)
        return panel.rows(preview, width=width, styles=self._styles, limit=limit)

    def _preview_rows(self, panel: QuestionPanel) -> list[str]:
        preview = _preview(panel, self._renderer())
        if panel.is_printed and preview:
            return [self._styles("quiet", f"shown above: {len(preview)} lines")]
        return preview

    def _list_rows(self, panel: ListPanel, width: int) -> list[str]:
        painter = self._renderer()
        peek = [row for block in panel.question.peek for row in _lines(painter.paint(block))]
        peek = peek[1:] if peek and not peek[0] else peek
        # All but three rows, as a question; the rows of the input and the status are needed too.
        limit = self._size.rows - 6
        return panel.rows(peek, width=width, limit=max(4, limit), styles=self._styles)

    def _sent_rows(self, rows: RegionRows) -> list[str]:
        """The message that is on its way, as it will be printed, and that it waits."""
        if not self._sent.text:
            return []
        painted = _lines(self._renderer().paint(self._sent))
        waits = [] if self._live.is_busy else [rows.waiting()]
        return [*painted[:SENT_ROWS], "", *waits]

    def _mark(self) -> str:
        if not self._is_animated:
            return STILL
        return SPINNER[math.floor(self._clock.monotonic() * FRAMES_PER_SECOND) % len(SPINNER)]

    def _write(self, text: str) -> None:
        self._terminal.write(text)

    # -- resize

    async def _watch_size(self) -> None:
        with self._terminal.resizes() as resizes:
            async for _ in resizes:
                self._resize.set()

    async def _keep_size(self) -> None:
        """Draw at the new size, once it has not changed for a moment."""
        while True:
            await self._resize.wait()
            is_quiet = False
            # While another program has the terminal, the size is read when it gives it back.
            self._is_on = False
            while not is_quiet:
                self._resize = anyio.Event()
                await self._mend()
                with anyio.move_on_after(QUIET_SECONDS) as waited:
                    await self._resize.wait()
                is_quiet = waited.cancelled_caught
            if self._viewer is not None:
                self._size = self._terminal.size()
                self._viewer.resize(self._size)
                self._write(self._viewer.frame())
            elif not self._is_away:
                size, row = await self._cursor.settled_size()
                self._resized(size, row)
                self._is_on = not self._is_away
                self._draw_stream()

    async def _mend(self) -> None:
        """Draw over a torn frame at once: what it has left could not be counted any more after the
        next change of the size.
        """
        if not self._painter.frames.width or self._is_away or self._viewer is not None:
            return
        if (place := await self._cursor.ask()) is not None:
            # The size that the system gives may still be the one before.
            self._resized(ScreenSize(place[1], self._terminal.size().rows), place[0])
            self._draw_all()

    def _resized(self, size: ScreenSize, row: int | None) -> None:
        """Have the next frame erase the region where it stands now, at the new size."""
        # Another program has the terminal by now: the size is read again when it gives it back.
        if self._is_away:
            return
        above, left = self._painter.rows_above_cursor(size.columns), []
        if row is not None and above > row - 1:
            said = len(self._answer_rows)
            left = self._painter.leave_rows(above - (row - 1), size.columns, said=said)
        elif row is not None:
            self._lost += self._painter.bring_back_rows(row - 1 - above, size.columns)
        self._lost += self._painter.erase_resized()
        self._print_left(left)
        self._size = size

    def _print_left(self, left: list[str]) -> None:
        """Rows have scrolled off: what they show of the lines in flight is printed by that."""
        count, rest = lines_behind([*self._lost, *self._answer_rows], left)
        shown = max(0, count - len(self._lost))
        self._lost = [*([rest] if rest else []), *self._lost[count:]]
        if shown:
            room = len(self._answer_rows) - shown
            self._flow.settle(self._drawn_text, room, width=self._size.columns, theme=self._theme)


def _is_place(event: TerminalEvent) -> bool:
    return isinstance(event, TerminalReply) and event.kind == "cursor"


def _is_message(text: str) -> bool:
    """Whether a line goes to the model: neither a command, the user's shell nor a note."""
    said = text.strip()
    return bool(said) and not said.startswith(("/", "!")) and not is_note(said)


def _marked(lines: list[str]) -> list[str]:
    """The user's message with the marks of a prompt, for the terminal's "previous prompt" key."""
    first = next((number for number, line in enumerate(lines) if line), None)
    if first is None:
        return lines
    # Without `redraw=0` kitty would erase everything behind the mark when its window changes.
    lines[first] = f"\x1b]133;A;redraw=0\x1b\\{lines[first]}"
    lines[-1] = f"{lines[-1]}\x1b]133;C\x1b\\"
    return lines


def _lines(painted: str) -> list[str]:
    return painted.split("\n")[:-1] if painted else []


def _preview(panel: QuestionPanel, painter: BlockRenderer) -> list[str]:
    lines = [row for block in panel.question.preview for row in _lines(painter.paint(block))]
    return lines[1:] if lines and not lines[0] else lines


__all__ = ["CALM_SECONDS", "TerminalScreen"]
