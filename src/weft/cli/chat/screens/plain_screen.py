"""The chat where nothing is redrawn: for screen readers, simple terminals and those who like it so.

Lines are printed once and stay.  What is typed is read line by line, also while the model works; a
line that ends in `\\` goes on.  With `--plain` everything is said in words; on a terminal that
cannot be drawn on, blocks have their usual layout without styles.
"""

from __future__ import annotations

import os
import re
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import anyio
import anyio.abc
import anyio.to_thread
import msgspec

from weft.cli.chat.paint.plain_words import plain_lines, whole_plain_lines, wrapped_words
from weft.cli.chat.paint.theme import ascii_text
from weft.cli.chat.screens.external_editor import edited
from weft.cli.chat.screens.list_picker import VISIBLE_ROWS, matching
from weft.cli.chat.screens.list_question import ListAnswer, ListQuestion, ListRow
from weft.cli.chat.screens.render import BlockRenderer
from weft.cli.chat.screens.screen import (
    LEAVE_HINT,
    ChatClosed,
    ChatScreen,
    ChoiceQuestion,
    DoublePress,
    Input,
    InterruptPressed,
    LineSubmitted,
)
from weft.cli.chat.screens.shown_record import ShownRecord
from weft.cli.line_reader import LineReader
from weft.cli.sanitize import clean, clean_line
from weft.clock import Clock, SystemClock
from weft.errors import UsageError
from weft.permissions import EDITING_TOOLS
from weft.view import (
    AnswerBlock,
    AnyBlock,
    LiveArea,
    PermissionBlock,
    ThinkingBlock,
    ToolCard,
    UserBlock,
)

INPUTS = 1000
FIRST_SECONDS = 30
"""For so long a turn runs before it is said that it still works; then it is said every minute."""
LOOK_SECONDS = 1.0
TYPED_LINES = 20
"""Typed lines that are remembered until they come back as messages."""


_KEY_HINT = re.compile(r" · Ctrl\+O$", re.MULTILINE)


def still_working(before: float, now: float, verb: str = "working") -> str:
    """What to say of a turn whose time went from `before` to `now` seconds; mostly nothing."""
    for seconds in (FIRST_SECONDS, *range(60, int(now) + 1, 60)):
        if before < seconds <= now:
            minutes = seconds // 60
            time = f"{minutes} minute{'' if minutes == 1 else 's'}" if minutes else "30 seconds"
            return f"Still {verb}, {time}."
    return ""


class PlainScreen(ChatScreen):
    """A user who reads and writes lines."""

    def __init__(
        self, *, width: int, clock: Clock | None = None, in_words: bool = True, folder: str = ""
    ) -> None:
        """`in_words`: sentences instead of marks and layout; `folder` is the project."""
        unicode = (sys.stdout.encoding or "").lower().startswith("utf")
        self._unicode = unicode
        self._width = width
        self._in_words = in_words
        self._folder = folder
        self._painter = BlockRenderer(width=width, styled=False, coloured=False, unicode=unicode)
        self._clock = clock or SystemClock()
        self._busy_since = self._looked_at = self._clock.monotonic()
        self._typed_lines: list[str] = []
        """Lines that the terminal has echoed: as messages they are not repeated."""
        self._shown = ShownRecord()
        self._live = LiveArea()
        self._lines = LineReader(sys.stdin.fileno())
        self._sending, self._receiving = anyio.create_memory_object_stream[Input](INPUTS)
        self._answers, self._answered = anyio.create_memory_object_stream[str | None](0)
        self._is_asking = False
        self._is_at_end = False
        """Nothing more will be typed."""
        self._one_question = anyio.Lock()
        self._group: anyio.abc.TaskGroup | None = None
        self._reading = anyio.CancelScope()
        self._closed = anyio.Event()
        self._was_busy = False
        self._changes_above = 0
        """Changes that were shown with their question, and whose cards are still to come."""
        self._was_answer = False
        self._was_command = False
        """A command was typed: no turn will end to say that the next line is waited for."""
        self._twice = DoublePress(self._clock)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._read)
            group.start_soon(self._watch_time)
            task_status.started()
            await self._closed.wait()
            group.cancel_scope.cancel()
        for stream in (self._sending, self._answers, self._answered):
            stream.close()

    async def _read(self) -> None:
        with anyio.CancelScope() as self._reading:
            await self._read_on()

    async def _read_on(self) -> None:
        text = ""
        while (line := await self._lines.next_line()) is not None:
            text += line.decode("utf-8", "replace").rstrip("\r")
            if text.endswith("\\"):
                text = f"{text[:-1]}\n"
                continue
            await self._typed(text)
            text = ""
        self._is_at_end = True
        self._dismiss()
        await self._sending.send(ChatClosed())

    async def _typed(self, text: str) -> None:
        if self._is_asking:
            self._is_asking = False
            await self._answers.send(text)
        elif not text.strip():
            # Tries again, where the last turn failed; else the next line is waited for.
            self._was_command = True
            await self._sending.send(LineSubmitted(""))
        else:
            self._was_command = text.startswith("/")
            self._typed_lines = [*self._typed_lines, text.strip()][-TYPED_LINES:]
            await self._sending.send(LineSubmitted(text))

    def _dismiss(self) -> bool:
        """Take a question away that the user has opened; one of a turn ends with its turn."""
        if not self._is_asking or self._live.can_stop:
            return False
        self._is_asking = False
        self._answers.send_nowait(None)
        return True

    def close(self) -> None:
        self._closed.set()
        self._receiving.close()

    def interrupted(self) -> None:
        if self._dismiss():
            self._write("\n")
        elif self._twice.now("stop" if self._live.can_stop else "leave"):
            self._sending.send_nowait(ChatClosed())
        elif self._live.can_stop:
            self._sending.send_nowait(InterruptPressed())
        else:
            self.notify(f"\n{LEAVE_HINT}")
            self._prompt()

    def show(self, *blocks: AnyBlock) -> None:
        for block in blocks:
            self._shown.add(block)
            if isinstance(block, UserBlock) and block.text.strip() in self._typed_lines:
                self._typed_lines.remove(block.text.strip())
                self._was_answer = False
                continue
            if not self._in_words:
                self._write(self._painted(block))
                continue
            lines = plain_lines(block, self._folder)
            # An answer comes in pieces: who speaks is said before the first.
            is_answer = isinstance(block, AnswerBlock)
            self._say(*(lines[1:] if is_answer and self._was_answer else lines))
            self._was_answer = is_answer

    def _painted(self, block: AnyBlock) -> str:
        is_change = isinstance(block, ToolCard) and block.name in EDITING_TOOLS
        if isinstance(block, PermissionBlock):
            self._changes_above += block.tool in EDITING_TOOLS
        elif isinstance(block, ToolCard) and is_change and block.was_shown and self._changes_above:
            self._changes_above -= 1
            return self._painter.paint_head(block)
        # No key is read here: a command shows what is folded.
        return _KEY_HINT.sub(
            "" if isinstance(block, ThinkingBlock) else " · /show", self._painter.paint(block)
        )

    def view(self, title: str, *blocks: AnyBlock) -> None:
        if self._in_words:
            self._say(*(row for block in blocks for row in whole_plain_lines(block, self._folder)))
        else:
            self._write("".join(self._painter.paint_whole(block) for block in blocks))

    def unfold(self, number: int) -> None:
        card = self._shown.card(number)
        if not self._in_words:
            self._write(self._painter.paint_whole(card))
            return
        self._say(*whole_plain_lines(card, self._folder))

    def _say(self, *lines: str) -> None:
        text = "".join(f"{line}\n" for line in self._rows(lines))
        self._write(text if self._unicode else ascii_text(text))

    def _rows(self, lines: Sequence[str]) -> Sequence[str]:
        return wrapped_words(lines, _columns(self._width)) if self._in_words else lines

    async def _watch_time(self) -> None:
        while True:
            await anyio.sleep(LOOK_SECONDS)
            self.look_at_time()

    def look_at_time(self) -> None:
        """Say from time to time that a long turn still works."""
        now = self._clock.monotonic()
        if self._live.is_busy and self._live.status != "awaiting_permission":
            since = self._busy_since
            verb = "waiting" if self._live.status == "waiting" else "working"
            if said := still_working(self._looked_at - since, now - since, verb):
                self._say(said)
        self._looked_at = now

    def watch(self, live: LiveArea) -> None:
        self._live = live

    def refresh(self) -> None:
        if self._live.is_busy and not self._was_busy:
            self._busy_since = self._looked_at = self._clock.monotonic()
        if self._was_busy and not self._live.can_stop:
            self._prompt()
        self._was_busy = self._live.can_stop

    def notify(self, text: str) -> None:
        if text:
            self._write(f"{text}\n")

    def sending(self, text: str) -> None:
        pass  # what was typed stands here already, and nothing is redrawn

    def put_back(self, text: str) -> None:
        self._write(f"(not sent: {clean(text)})\n")

    def ready(self, *, is_sent: bool) -> None:
        # What is typed here is the terminal's own until it is sent: there is no draft.
        if not is_sent:
            self._prompt()

    def _prompt(self) -> None:
        self._write("\nYou: " if self._in_words else "\n> ")

    def paint(self, theme: str) -> None:
        pass  # plain lines have no colours

    def copy(self, text: str) -> None:
        raise UsageError("plain lines cannot reach the clipboard; /export writes a file")

    async def next_input(self) -> Input:
        if self._was_command and not self._live.is_busy:
            self._prompt()
        self._was_command = False
        try:
            return await self._receiving.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            return ChatClosed()

    async def choose(self, question: ChoiceQuestion) -> int | None:
        async with self._one_question:
            return await self._choose(question)

    async def _choose(self, question: ChoiceQuestion) -> int | None:
        self._introduce(question)
        for number, row in enumerate(question.rows):
            label = clean(row.label)
            if row.detail:
                # A label of the other screen may end in a colon of its own.
                label = f"{label.removesuffix(':')}: {clean(row.detail)}"
            self._say(f"{number + 1}. {label}")
        count = len(question.rows)
        title = clean_line(question.title).removeprefix("→ ")
        # In the words of a sentence: `Question: allow this edit? Type 1 to 4.`
        title = title[:1].lower() + title[1:] if title.startswith("Allow") else title
        label = f"Question: {title} Type 1 to {count}. "
        named = [*(row.key for row in question.rows), *question.other_keys]
        keys = {key: number for number, key in enumerate(named) if len(key) == 1}
        while True:
            answer = (await self._ask(label) or "").strip().lower()
            if not answer:
                return None
            if answer in keys:
                return keys[answer]
            if answer.isdecimal() and 1 <= int(answer) <= count:
                return int(answer) - 1
            label = f"Type a number from 1 to {count}, or nothing for none. "

    async def choose_from(self, question: ListQuestion) -> ListAnswer | None:
        async with self._one_question:
            return await self._choose_from(question)

    async def _choose_from(self, question: ListQuestion) -> ListAnswer | None:
        if question.peek:
            # Read out once: there is nothing to go back from.
            self.view("", *question.peek)
            question = msgspec.structs.replace(question, peek=())
        else:
            self._say(_list_title(question))
        words = question.words
        self._say(*_list_lines(question, words))
        while True:
            typed = (await self._ask(_list_prompt(question)) or "").strip()
            if not typed:
                return None
            answer = list_answer(question, typed)
            if answer is not None:
                return answer
            if wrong := _wrong_order(question, typed):
                self._say(wrong)
                continue
            words = typed
            self._say(*_list_lines(question, words))

    def _introduce(self, question: ChoiceQuestion) -> None:
        """What is asked about, and where it would happen."""
        if question.rule:
            self._say(f"{clean_line(question.rule).replace(' ─ ', ', ')}.")
        if question.danger:
            self._say(f"Warning: {clean_line(question.danger)}.")
        self.show(*question.preview)

    async def ask_line(
        self,
        label: str,
        text: str = "",
        *,
        is_secret: bool = False,
        about: ChoiceQuestion | None = None,
    ) -> str | None:
        async with self._one_question:
            before = f"(an empty line keeps: {clean(text)})\n" if text else ""
            with _without_echo() if is_secret else nullcontext():
                answer = await self._ask(f"{before}{clean(label)} ")
            return None if answer is None else answer or text

    async def edit(self, text: str, suffix: str) -> str | None:
        assert self._group is not None
        # The editor reads the terminal now; what is typed there is not for us.
        self._reading.cancel()
        try:
            return await anyio.to_thread.run_sync(edited, text, suffix)
        finally:
            self._group.start_soon(self._read)

    async def run_shell(self, folder: str) -> None:
        from weft.cli.evidence.past_shell import run_shell  # few look back

        assert self._group is not None
        self._reading.cancel()
        try:
            await anyio.to_thread.run_sync(run_shell, folder)
        finally:
            self._group.start_soon(self._read)

    async def _ask(self, label: str) -> str | None:
        """A line that is typed; None when the question is dismissed."""
        if self._is_at_end and not self._live.can_stop:
            return None
        # With room for an answer behind it.
        self._write("\n".join(self._rows([f"{label.rstrip()}__"])).removesuffix("__") + " ")
        self._is_asking = True
        try:
            return await self._answered.receive()
        finally:
            self._is_asking = False

    def _write(self, text: str) -> None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:  # the terminal is gone
            self._closed.set()


# --- lists in words --------------------------------------------------------------------


def list_answer(question: ListQuestion, typed: str) -> ListAnswer | None:
    """What a typed line means: a row's number, with a level behind it or the word of a key before
    it; None when it means no row.
    """
    words = typed.split()
    if len(words) <= 2 and (row := _row_of(question, words[0])) >= 0:
        levels = question.rows[row].levels
        if len(words) == 1 or words[1] in levels:
            return ListAnswer(row, level=words[1] if len(words) == 2 else "")
    for each in question.keys:
        if words[0].casefold() != each.typed:
            continue
        row = _row_of(question, words[1]) if len(words) == 2 else -1
        if (row >= 0) == each.needs_row and len(words) == 1 + each.needs_row:
            return ListAnswer(row, each.key)
    return None


def _wrong_order(question: ListQuestion, typed: str) -> str:
    """What is wrong with a line that was meant for a row; empty for words to look for."""
    words = typed.casefold().split()
    row = _row_of(question, words[0])
    if len(words) == 2 and row >= 0 and question.rows[row].levels:
        return f"Row {words[0]} takes {', '.join(question.rows[row].levels)}."
    is_key = any(words[0] == each.typed for each in question.keys)
    if words[-1].isdecimal() and (len(words) == 1 or (is_key and len(words) == 2)):
        return f"There is no row {words[-1]}."
    return ""


def _row_of(question: ListQuestion, text: str) -> int:
    is_row = text.isascii() and text.isdecimal() and 1 <= int(text) <= len(question.rows)
    return int(text) - 1 if is_row else -1


def _list_title(question: ListQuestion) -> str:
    count = len(question.rows)
    rows = f"{count} {'row' if count == 1 else 'rows'}"
    return f"{clean_line(question.title).rstrip('…')}, {question.about or rows}."


def _list_lines(question: ListQuestion, words: str) -> list[str]:
    """The rows with these words, as many as can be listened to."""
    found = matching(question.rows, words)
    if not found:
        said = f"No row has {clean(words)!r}." if words else question.empty or "Nothing to pick."
        return [said]
    start = 0
    if not words and question.picked in found:
        start = max(0, min(question.picked - VISIBLE_ROWS // 2, len(found) - VISIBLE_ROWS))
    shown = found[start : start + VISIBLE_ROWS]
    lines = [_list_line(number, question.rows[number]) for number in shown]
    if len(shown) < len(found):
        lines.append(f"{len(found) - len(shown)} more; type words to find one.")
    return lines


def _list_line(number: int, row: ListRow) -> str:
    parts = [clean_line(row.label), *(clean_line(each) for each in row.details)]
    if row.is_current and parts[-1] != "now":
        parts.append("now")
    if row.is_current and row.levels:
        parts.append(f"level {row.level or row.levels[0]}")
    return f"{number + 1}. {', '.join(part for part in parts if part)}"


def _list_prompt(question: ListQuestion) -> str:
    keys = [f"{each.typed}{' and a number' if each.needs_row else ''}" for each in question.keys]
    label = question.levels_label.casefold()
    level = f", with an {label} behind it if it should change" if label else ""
    if not question.rows:
        return f"Type {' or '.join([*keys, 'nothing to go back'])}. "
    more = f" Also: {', '.join(keys)}." if keys else ""
    return f"Type a number{level}, words to filter, or nothing to go back.{more} "


def _columns(width: int) -> int:
    """The columns of the window as it is now; `width` where there is none."""
    try:
        return os.get_terminal_size(1).columns or width
    except OSError:
        return width


@contextmanager
def _without_echo() -> Iterator[None]:
    """What is typed is not shown; a pipe shows nothing anyhow."""
    try:
        mode = termios.tcgetattr(0)
    except termios.error:
        yield
        return
    silent = [*mode]
    silent[3] &= ~termios.ECHO
    # DRAIN and not FLUSH: what was typed in advance stays.
    termios.tcsetattr(0, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, mode)
        # Enter was not shown either.
        sys.stdout.write("\n")
