"""What the chat needs of a screen, and what a screen sends back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

import anyio.abc
import msgspec

from weft.cli.chat.screens.list_question import ListAnswer, ListQuestion
from weft.clock import Clock
from weft.view import AnyBlock, LiveArea

TWICE_SECONDS = 2.0
"""How close two Ctrl-C must be to mean "quit", and two Esc "go back"."""
LEAVE_HINT = "Ctrl+C again quits"
BACK_HINT = "Esc again: back to an earlier message"
CLEAR_HINT = "Esc again clears the line"


def rows_hint(count: int) -> str:
    """Which keys answer a question of the user's own with so many rows."""
    return f"{'1' if count == 1 else f'1-{count}'}, Esc goes back"


class LineSubmitted(msgspec.Struct, frozen=True):
    """The user sent a line."""

    text: str
    later: bool = False
    """PromptParts when the turn has ended, not before its next step."""
    picked: tuple[str, ...] = ()
    """Files that the text mentions because the user has dropped or pasted them."""
    pasted: tuple[tuple[int, int], ...] = ()
    """Where in `shown` a paste begins and ends that was folded while it was typed."""
    typed: str = ""
    """The text with labels for those files, where it mentions any."""

    @property
    def shown(self) -> str:
        """The text as screens show it."""
        return self.typed or self.text


class InterruptPressed(msgspec.Struct, frozen=True):
    """The user wants the turn to stop."""


class NextMode(msgspec.Struct, frozen=True):
    """The user wants the next permission mode."""


class TakeBack(msgspec.Struct, frozen=True):
    """The user wants the queued messages back."""


class GoBack(msgspec.Struct, frozen=True):
    """The user wants to go back to an earlier message."""


class KeepNoted(msgspec.Struct, frozen=True):
    """The user wants to keep what was noted of their last correction."""


class ChatClosed(msgspec.Struct, frozen=True):
    """The user quits."""


Input: TypeAlias = (
    LineSubmitted | InterruptPressed | NextMode | TakeBack | GoBack | KeepNoted | ChatClosed
)


class ChoiceRow(msgspec.Struct, frozen=True):
    """One answer to choose."""

    label: str
    detail: str = ""
    key: str = ""
    """A letter that means this row, beside its number; `s-tab` for Shift+Tab."""


class ChoiceQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Something to choose from."""

    title: str
    rows: tuple[ChoiceRow, ...]
    hint: str = ""
    picked: int = 0
    """The row that Enter means at first; -1 for none, so that nothing is allowed by accident."""
    preview: tuple[AnyBlock, ...] = ()
    """What is asked about.  It is part of the question and is shown whole: inside it where there is
    room, else in full above it.
    """
    rule: str = ""
    """What stands in the rule above the preview: `Edit calc.py ─ +1 −1`."""
    danger: str = ""
    """The end of that rule, in red: `OUTSIDE the sandbox`."""
    is_from_model: bool = False
    """The model asks, not the program: the rule is cyan instead of yellow."""
    other_keys: tuple[str, ...] = ()
    """Keys that do something else than choose a row; the first is answered with the number behind
    that of the last row, and so on.
    """
    is_own: bool = False
    """The user's own key or command has brought it up: no key can be meant for something else."""
    paste_row: int = -1
    """The row that a paste chooses, because the line that it asks for is what was pasted; -1: a
    paste goes into the input line.
    """
    are_described: bool = False
    """The details stand under their rows: they say more than what a row covers."""


class DoublePress:
    """Notices when the same is done twice in a short time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = ("", float("-inf"))

    def now(self, what: str) -> bool:
        """It is done now; True when the same was done just before."""
        now = self._clock.monotonic()
        (last, at), self._last = self._last, (what, now)
        return what == last and now - at <= TWICE_SECONDS

    def forget(self) -> None:
        """What was done before no longer counts."""
        self._last = ("", float("-inf"))


class ChatScreen(Protocol):
    """Shows a conversation to one user."""

    keep_key: str = "/keep"
    """What keeps a correction that was noted: a key, where the screen has keys."""
    key_names: Mapping[str, str] = {}
    """The names of keys that the user has set, by those that they have else."""

    async def run(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """Be there until `close`."""
        ...

    def close(self) -> None:
        """Go away; what is on the screen stays."""
        ...

    def interrupted(self) -> None:
        """Ctrl-C, however it came: stops the turn; else clears the input line; twice leaves."""
        ...

    def show(self, *blocks: AnyBlock) -> None:
        """Show something for good, above what is redrawn."""
        ...

    def watch(self, live: LiveArea) -> None:
        """From now on draw what this says is in flight."""
        ...

    def refresh(self) -> None:
        """What is in flight has changed."""
        ...

    def notify(self, text: str) -> None:
        """Say something in passing."""
        ...

    def sending(self, text: str) -> None:
        """A message that the user gave as this text is on its way: `show` has it once it is on
        record, `put_back` where it is refused.
        """
        ...

    def put_back(self, text: str) -> None:
        """Put text into the input line, before what stands there."""
        ...

    def ready(self, *, is_sent: bool) -> None:
        """The conversation is there and the user may type; with `is_sent`, a message of theirs was
        sent already.  What was typed in an earlier chat, and not sent, is in the input line again.
        """
        ...

    def paint(self, theme: str) -> None:
        """Take the colours of this theme from now on."""
        ...

    def copy(self, text: str) -> None:
        """Put text into the clipboard of the user's terminal.

        Raises:
            UsageError: this screen cannot.
        """
        ...

    def unfold(self, number: int) -> None:
        """Show a card once more, in full: 1 is the last, 2 the one before it.

        Raises:
            UsageError: there are not so many.
        """
        ...

    def view(self, title: str, *blocks: AnyBlock) -> None:
        """Show these blocks unfolded, apart from the conversation where the screen can."""
        ...

    async def next_input(self) -> Input:
        """Wait for the user."""
        ...

    async def choose(self, question: ChoiceQuestion) -> int | None:
        """Have the user choose a row.

        None when they dismiss it.  A cancel takes the question away.
        """
        ...

    async def choose_from(self, question: ListQuestion) -> ListAnswer | None:
        """Have the user pick from a list.

        None when they leave it.  A cancel takes the list away.
        """
        ...

    async def ask_line(
        self,
        label: str,
        text: str = "",
        *,
        is_secret: bool = False,
        about: ChoiceQuestion | None = None,
    ) -> str | None:
        """Have the user write a line, or change `text`; None when they dismiss it.

        What is typed of a secret is not shown.  `about` is the question that it belongs to, which
        stays in sight.
        """
        ...

    async def run_shell(self, folder: str) -> None:
        """Give the terminal to the user's shell in a folder, until it ends.

        Raises:
            UsageError: there is no shell, or this screen cannot give the terminal away.
        """
        ...

    async def edit(self, text: str, suffix: str) -> str | None:
        """Have the user change a text in their own editor, as a file that is named with `suffix`;
        None when that cannot be.

        Raises:
            UsageError: there is no editor, or this screen cannot give the terminal away.
        """
        ...
