"""A chat driven by a test, through a screen that records what it is shown."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from weft.app import App
from weft.cli.chat.chat import Chat
from weft.cli.chat.screens.list_question import ListAnswer, ListQuestion
from weft.cli.chat.screens.screen import (
    ChatClosed,
    ChatScreen,
    ChoiceQuestion,
    Input,
    InterruptPressed,
    LineSubmitted,
)
from weft.cli.parse import parse
from weft.cli.session_options import session_options_of
from weft.view import AnswerBlock, AnyBlock, LiveArea, NoteBlock, UserBlock


class RecordingScreen(ChatScreen):
    """A screen for tests: records what is shown; what is typed and answered comes from the test."""

    def __init__(self) -> None:
        self.blocks: list[AnyBlock] = []
        self.live = LiveArea()
        self.line = ""
        self.copied: list[str] = []
        self.unfolded: list[int] = []
        self.viewed: list[tuple[str | AnyBlock, ...]] = []
        self.notices: list[str] = []
        self.shells: list[list[str]] = []
        """What lay in the folders in which a shell was opened."""
        self.on_their_way: list[tuple[str, int]] = []
        """Messages that were on their way, each with how many were shown by then."""
        self.themes: list[str] = []
        self.question: ChoiceQuestion | ListQuestion | str | None = None
        self._one_question = anyio.Lock()
        self._changed = anyio.Event()
        self._answer: Any = None
        self._answered = anyio.Event()
        self._closed = anyio.Event()
        self._sending, self._receiving = anyio.create_memory_object_stream[Input](100)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        with self._sending, self._receiving:
            task_status.started()
            await self._closed.wait()

    def close(self) -> None:
        self._closed.set()

    def interrupted(self) -> None:
        self._sending.send_nowait(InterruptPressed())

    def show(self, *blocks: AnyBlock) -> None:
        self.blocks.extend(blocks)
        self._wake()

    def watch(self, live: LiveArea) -> None:
        self.live = live
        self._wake()

    def refresh(self) -> None:
        self._wake()

    def notify(self, text: str) -> None:
        self.notices.append(text)
        self._wake()

    def put_back(self, text: str) -> None:
        self.line = text + self.line
        self._wake()

    def sending(self, text: str) -> None:
        self.on_their_way.append((text, len(self.of(UserBlock))))

    def ready(self, *, is_sent: bool) -> None:
        pass

    def paint(self, theme: str) -> None:
        self.themes.append(theme)

    def copy(self, text: str) -> None:
        self.copied.append(text)

    def view(self, title: str, *blocks: AnyBlock) -> None:
        self.viewed.append((title, *blocks))
        self._wake()

    def unfold(self, number: int) -> None:
        self.unfolded.append(number)
        self._wake()

    async def next_input(self) -> Input:
        return await self._receiving.receive()

    async def choose(self, question: ChoiceQuestion) -> int | None:
        self.show(*question.preview)
        # The test answers with a number.
        return await self._asked(question)  # type: ignore[no-any-return]

    async def choose_from(self, question: ListQuestion) -> ListAnswer | None:
        answer = await self._asked(question)
        return ListAnswer(answer) if isinstance(answer, int) else answer

    async def run_shell(self, folder: str) -> None:
        self.shells.append(sorted(path.name for path in Path(folder).iterdir()))

    async def edit(self, text: str, suffix: str) -> str | None:
        # The test answers with a text.
        return await self._asked(text)  # type: ignore[no-any-return]

    async def ask_line(
        self,
        label: str,
        text: str = "",
        *,
        is_secret: bool = False,
        about: ChoiceQuestion | None = None,
    ) -> str | None:
        # The test answers with a text.
        return await self._asked(label)  # type: ignore[no-any-return]

    async def _asked(self, question: ChoiceQuestion | ListQuestion | str) -> Any:
        async with self._one_question:
            return await self._put(question)

    async def _put(self, question: ChoiceQuestion | ListQuestion | str) -> Any:
        self.question, self._answered = question, anyio.Event()
        self._wake()
        try:
            await self._answered.wait()
            return self._answer
        finally:
            if not self._answered.is_set():
                self.question = None
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # -- the user

    def typed(self, given: str | Input) -> None:
        self._sending.send_nowait(LineSubmitted(given) if isinstance(given, str) else given)

    def answer(self, answer: Any) -> None:
        assert self.question is not None
        self.question, self._answer = None, answer
        self._answered.set()

    async def until(self, holds: Callable[[], object]) -> None:
        with anyio.fail_after(20):
            while not holds():
                await self._changed.wait()

    async def choice(self) -> ChoiceQuestion:
        """Wait for a question with rows."""
        await self.until(lambda: isinstance(self.question, ChoiceQuestion))
        assert isinstance(self.question, ChoiceQuestion)
        return self.question

    async def opened_list(self) -> ListQuestion:
        """Wait for a list."""
        await self.until(lambda: isinstance(self.question, ListQuestion))
        assert isinstance(self.question, ListQuestion)
        return self.question

    async def pick(self, label: str, *, key: str = "enter") -> Any:
        """Wait for a question or a list, and choose the row that holds this; returns the
        question.
        """
        await self.until(lambda: isinstance(self.question, ChoiceQuestion | ListQuestion))
        question = self.question
        assert isinstance(question, ChoiceQuestion | ListQuestion)
        rows = [f"{row.label} {row}" for row in question.rows]
        found = [n for n, row in enumerate(rows) if label in row]
        assert found, f"no row {label!r} in {question}"
        is_list = isinstance(question, ListQuestion)
        self.answer(ListAnswer(found[0], key) if is_list else found[0])
        return question

    async def noted(self, text: str) -> str:
        """Wait for a note that holds this; returns it."""
        await self.until(lambda: any(text in note.text for note in self.of(NoteBlock)))
        return str(next(note.text for note in self.of(NoteBlock) if text in note.text))

    async def asked(self) -> ChoiceQuestion | ListQuestion | str:
        await self.until(lambda: self.question is not None)
        assert self.question is not None
        return self.question

    async def idle(self) -> None:
        await self.until(
            lambda: self.live.status in ("idle", "interrupted") and not self.live.is_busy
        )

    def of(self, kind: type[Any]) -> list[Any]:
        return [block for block in self.blocks if isinstance(block, kind)]

    def words(self) -> str:
        return "".join(block.text for block in self.of(AnswerBlock))


class ChatDriver:
    """A chat that a test drives."""

    def __init__(self, chat: Chat, screen: RecordingScreen) -> None:
        self.chat = chat
        self.screen = screen

    async def say(self, text: str) -> None:
        """Send a prompt, and wait for an answer or a note and for the end of the turn."""
        screen = self.screen
        screen.typed(text)
        await screen.until(lambda: [each.text for each in screen.of(UserBlock)[-1:]] == [text])
        said = max(n for n, block in enumerate(screen.blocks) if isinstance(block, UserBlock))
        await screen.until(
            lambda: any(isinstance(b, AnswerBlock | NoteBlock) for b in screen.blocks[said:])
        )
        await screen.idle()


@asynccontextmanager
async def driven_chat(
    app: App, *answers: Any, flags: tuple[str, ...] = (), **fields: Any
) -> AsyncIterator[ChatDriver]:
    script = Path(app.project_path).parent / "script.json"
    script.write_text(json.dumps({"by": "content", "answers": answers, **fields}))
    wanted = session_options_of(parse(["-m", f"scripted:{script}", *flags]), headless=False)
    screen = RecordingScreen()
    chat = Chat(app, screen, wanted)
    async with anyio.create_task_group() as group:
        group.start_soon(chat.run)
        yield ChatDriver(chat, screen)
        screen.typed(ChatClosed())
