"""The chat where nothing is redrawn: for screen readers, simple terminals and those who like it so.

Lines are printed once and stay.  What is typed is read line by line, also while the model works; a
line that ends in `\\` goes on.
"""

from __future__ import annotations

import sys

import anyio
import anyio.abc
import anyio.to_thread

from weft.cli.chat.screens.external_editor import edited
from weft.cli.chat.screens.picker import ListPicker
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
from weft.cli.line_reader import LineReader
from weft.cli.sanitize import clean
from weft.clock import Clock, SystemClock
from weft.view import AnyBlock, LiveArea

INPUTS = 1000


class PlainScreen(ChatScreen):
    """A user who reads and writes lines."""

    def __init__(self, *, width: int, clock: Clock | None = None) -> None:
        unicode = (sys.stdout.encoding or "").lower().startswith("utf")
        self._painter = BlockRenderer(width=width, styled=False, coloured=False, unicode=unicode)
        self._live = LiveArea()
        self._lines = LineReader(sys.stdin.fileno())
        self._sending, self._receiving = anyio.create_memory_object_stream[Input](INPUTS)
        self._answers, self._answered = anyio.create_memory_object_stream[str](0)
        self._is_asking = False
        self._one_question = anyio.Lock()
        self._group: anyio.abc.TaskGroup | None = None
        self._reading = anyio.CancelScope()
        self._closed = anyio.Event()
        self._was_busy = False
        self._was_command = False
        """A command was typed: no turn will end to say that the next line is waited for."""
        self._twice = DoublePress(clock or SystemClock())

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._read)
            task_status.started()
            self._prompt()
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
        await self._sending.send(ChatClosed())

    async def _typed(self, text: str) -> None:
        if self._is_asking:
            self._is_asking = False
            await self._answers.send(text)
        elif text.strip():
            self._was_command = text.startswith("/")
            await self._sending.send(LineSubmitted(text))
        else:
            self._prompt()

    def close(self) -> None:
        self._closed.set()
        self._receiving.close()

    def interrupted(self) -> None:
        if self._twice.now("stop" if self._live.is_busy else "leave"):
            self._sending.send_nowait(ChatClosed())
        elif self._live.is_busy:
            self._sending.send_nowait(InterruptPressed())
        else:
            self.notify(f"\n{LEAVE_HINT}")
            self._prompt()

    def show(self, *blocks: AnyBlock) -> None:
        for block in blocks:
            self._write(self._painter.paint(block))

    def watch(self, live: LiveArea) -> None:
        self._live = live

    def refresh(self) -> None:
        if self._was_busy and not self._live.is_busy:
            self._prompt()
        self._was_busy = self._live.is_busy

    def notify(self, text: str) -> None:
        if text:
            self._write(f"{text}\n")

    def put_back(self, text: str) -> None:
        self._write(f"(not sent: {clean(text)})\n")

    def _prompt(self) -> None:
        self._write("\n> ")

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
        choosing = ListPicker(question)
        self.show(*question.preview)
        self._write(f"{clean(question.title)}\n")
        for number, row in choosing.rows():
            detail = f" ({clean(row.detail)})" if row.detail else ""
            self._write(f"  {number + 1}. {row.margin}{clean(row.label)}{detail}\n")
        while True:
            answer = await self._ask("Number, or an empty line for none: ")
            if not answer.strip():
                return None
            if answer.strip().isdecimal() and 1 <= int(answer) <= len(question.rows):
                return int(answer) - 1
            self._write(f"Type a number from 1 to {len(question.rows)}.\n")

    async def ask_line(self, label: str, text: str = "") -> str | None:
        async with self._one_question:
            before = f"(an empty line keeps: {clean(text)})\n" if text else ""
            return await self._ask(f"{before}{clean(label)} ") or text

    async def edit(self, text: str, suffix: str) -> str | None:
        assert self._group is not None
        # The editor reads the terminal now; what is typed there is not for us.
        self._reading.cancel()
        try:
            return await anyio.to_thread.run_sync(edited, text, suffix)
        finally:
            self._group.start_soon(self._read)

    async def _ask(self, label: str) -> str:
        self._write(label)
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
