"""The base of the chat's commands: what they need of the chat, and what they share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from weft.api.session import Session
from weft.cli.chat.conversation import ChatConversation
from weft.cli.chat.screens.list_question import ListQuestion, ListRow
from weft.cli.chat.screens.screen import ChatScreen, ChoiceQuestion, ChoiceRow, rows_hint
from weft.errors import UsageError
from weft.ids import SessionId
from weft.view import AnyBlock, LiveArea, NoteBlock

if TYPE_CHECKING:  # loaded when the user types a command that is not built in
    from weft.project.markdown_commands import MarkdownCommand

Handler: TypeAlias = Callable[[str], Awaitable[None]]
"""Carries out a command with the words behind it."""


class CommandChat(Protocol):
    """What commands need of the chat."""

    screen: ChatScreen
    conversation: ChatConversation

    @property
    def live(self) -> LiveArea:
        """What is in flight."""
        ...

    async def switch(self, session_id: SessionId, *, fork: bool = False) -> None:
        """Go on with another session."""
        ...

    async def begin_session(self) -> Session:
        """The session; a new one where there is none yet."""
        ...

    async def leave_session(self) -> None:
        """Begin anew with the next message."""
        ...

    async def offer_to_go_on(self) -> None:
        """Ask whether the last turn should go on, where it came to no end."""
        ...

    async def interrupt(self) -> None:
        """Stop the turn, as Esc does."""
        ...

    async def go_on(self) -> None:
        """Go on with a turn that was interrupted or stopped."""
        ...

    async def set_mode(self, mode: str) -> None:
        """Change what may be done without asking."""
        ...

    async def count_context(self) -> None:
        """Count again how full the window is."""
        ...

    async def show_place(self) -> None:
        """Show where the conversation stands now, after it was moved."""
        ...

    async def file_commands(self) -> Mapping[str, MarkdownCommand]:
        """The commands from Markdown files, by name."""
        ...

    async def run_file_command(self, text: str) -> None:
        """Send what a command from a Markdown file stands for."""
        ...

    async def say_later(self, text: str) -> None:
        """Say something when the turn has ended."""
        ...

    async def say_text(self, text: str, *, steers: bool = False, typed: str = "") -> None:
        """Say something: it starts a turn, or is heard before the next step."""
        ...

    async def ask_trust(self, *, is_asked_for: bool = False) -> None:
        """Ask whether the user trusts the folder, where there is something to ask."""
        ...


class CommandGroup:
    """Commands that belong together."""

    def __init__(self, chat: CommandChat) -> None:
        self._chat = chat

    @property
    def handlers(self) -> dict[str, Handler]:
        """What each command of the group does, by its name."""
        raise NotImplementedError

    def _session(self, what: str) -> Session:
        """The session that is talked in.

        Raises:
            UsageError: there is none yet.
        """
        session = self._chat.conversation.session
        if session is None:
            raise UsageError(f"there is nothing to {what} yet; send a message first")
        return session

    def _must_be_idle(self, what: str) -> None:
        if self._chat.live.is_busy:
            raise UsageError(f"a turn runs; Esc stops it, then {what} can begin")

    def _show(self, *blocks: AnyBlock) -> None:
        self._chat.screen.show(*blocks)

    def _say(self, text: str) -> None:
        self._chat.screen.show(NoteBlock(text=text))

    async def _pick_word(
        self,
        title: str,
        words: tuple[str, ...],
        details: dict[str, str] | None = None,
        *,
        now: str = "",
    ) -> str | None:
        """Have the user choose a word; the question opens on the one that holds `now`."""
        rows = tuple(ChoiceRow(word, (details or {}).get(word, "")) for word in words)
        chosen = await self._chat.screen.choose(
            ChoiceQuestion(
                title=title,
                rows=rows,
                hint=rows_hint(len(rows)),
                picked=words.index(now) if now in words else 0,
                is_own=True,
            )
        )
        return None if chosen is None else words[chosen]

    async def _pick(
        self, title: str, rows: tuple[ListRow, ...], *, picked: int = 0, enter: str = ""
    ) -> int | None:
        """Have the user pick one of many; None when they leave the list."""
        question = ListQuestion(title=title, rows=rows, picked=picked, enter=enter)
        answer = await self._chat.screen.choose_from(question)
        return None if answer is None else answer.row
