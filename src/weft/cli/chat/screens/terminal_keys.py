"""The keys of the terminal screen: which key does what, while typing, at a question, at a line.

Three states that exclude each other decide who gets a key: a line is asked for, a list is open, or
the user types a message.  Every binding names its state, so no key ever acts in two of them.
"""

from __future__ import annotations

from typing import Any, Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from weft.cli.chat.screens.screen import ChatClosed, Input, NextMode, TakeBack


class KeyActions(Protocol):
    """What the keys act on."""

    @property
    def buffer(self) -> Buffer:
        """The input line of the chat."""
        ...

    @property
    def line(self) -> Buffer:
        """The line that a question asks for."""
        ...

    def interrupted(self) -> None:
        """Ctrl-C."""
        ...

    def tell(self, happened: Input) -> None:
        """Hand an input to the chat."""
        ...

    def give(self, answer: int | str | None) -> None:
        """Answer the open question; None dismisses it."""
        ...

    def enter(self) -> None:
        """Enter in the input line."""
        ...

    def send_later(self) -> None:
        """Alt+Enter: send after this turn, or begin a new line."""
        ...

    def escape(self) -> None:
        """Esc in the input line."""
        ...

    def text_changed(self) -> None:
        """The input line was changed."""
        ...

    def move(self, step: int) -> None:
        """To another row of the open list."""
        ...

    def take_picked(self) -> None:
        """Enter at a list."""
        ...

    def erase_letter(self) -> None:
        """Backspace at a list."""
        ...

    def typed_at_question(self, letter: str) -> None:
        """A letter at a list."""
        ...


def key_bindings(actions: KeyActions, *, chooses: Condition, asks: Condition) -> KeyBindings:
    """All keys."""
    keys = KeyBindings()
    typing = ~chooses & ~asks & ~is_searching
    _input_keys(keys, actions, typing)
    _completion_keys(keys, actions, typing)
    _question_keys(keys, actions, chooses & ~asks)

    @keys.add("enter", filter=asks)
    def _(event: KeyPressEvent) -> None:
        actions.give(actions.line.text)

    @keys.add("escape", filter=asks)
    @keys.add("c-c", filter=asks)
    def _(event: KeyPressEvent) -> None:
        actions.give(None)

    @keys.add("c-z")
    def _(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("c-l")
    def _(event: KeyPressEvent) -> None:
        event.app.renderer.clear()

    return keys


def _input_keys(keys: KeyBindings, actions: KeyActions, typing: Any) -> None:
    buffer = actions.buffer

    @keys.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        actions.enter()

    @keys.add("escape", "enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        actions.send_later()

    @keys.add("c-j", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer.insert_text("\n")

    @keys.add("escape", filter=typing)
    def _(event: KeyPressEvent) -> None:
        actions.escape()

    @keys.add("c-c", filter=~is_searching & typing)
    def _(event: KeyPressEvent) -> None:
        actions.interrupted()

    @keys.add("c-d", filter=typing & Condition(lambda: not buffer.text))
    def _(event: KeyPressEvent) -> None:
        actions.tell(ChatClosed())

    @keys.add("escape", "up", filter=typing)
    def _(event: KeyPressEvent) -> None:
        actions.tell(TakeBack())

    @keys.add("c-g", filter=typing)
    @keys.add("c-x", "c-e", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer.open_in_editor()

    @keys.add(Keys.BracketedPaste, filter=typing)
    def _(event: KeyPressEvent) -> None:
        # Terminals send pasted line ends as carriage returns, which would be shown as ^M.
        buffer.insert_text(event.data.replace("\r\n", "\n").replace("\r", "\n"))

    @buffer.on_text_changed.add_handler
    def _(_: Any) -> None:
        actions.text_changed()


def _completion_keys(keys: KeyBindings, actions: KeyActions, typing: Any) -> None:
    buffer = actions.buffer

    @keys.add("tab", filter=typing)
    def _(event: KeyPressEvent) -> None:
        if buffer.complete_state is not None:
            buffer.complete_next()
        else:
            buffer.start_completion(select_first=True)

    @keys.add("s-tab", filter=typing)
    def _(event: KeyPressEvent) -> None:
        if buffer.complete_state is not None:
            buffer.complete_previous()
        else:
            actions.tell(NextMode())


def _question_keys(keys: KeyBindings, actions: KeyActions, open_: Any) -> None:
    @keys.add("up", filter=open_)
    @keys.add("c-p", filter=open_)
    def _(event: KeyPressEvent) -> None:
        actions.move(-1)

    @keys.add("down", filter=open_)
    @keys.add("c-n", filter=open_)
    @keys.add("tab", filter=open_)
    def _(event: KeyPressEvent) -> None:
        actions.move(1)

    @keys.add("enter", filter=open_)
    def _(event: KeyPressEvent) -> None:
        actions.take_picked()

    @keys.add("escape", filter=open_)
    @keys.add("c-c", filter=open_)
    def _(event: KeyPressEvent) -> None:
        actions.give(None)

    @keys.add("backspace", filter=open_)
    def _(event: KeyPressEvent) -> None:
        actions.erase_letter()

    @keys.add(Keys.BracketedPaste, filter=open_)
    def _(event: KeyPressEvent) -> None:
        # Never an answer: a paste belongs to the input line, whatever digits are in it.
        actions.buffer.insert_text(event.data)

    @keys.add(Keys.Any, filter=open_)
    def _(event: KeyPressEvent) -> None:
        actions.typed_at_question(event.data)
