"""The keyboard of the chat: who gets a key, and what it does.

A line that is asked for, a question, a list, a search in the history, or the input line: exactly
one of them has the keys at any time, in this order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import anyio
import anyio.to_thread

from weft.cli.chat.paint.text_cells import cells, word_wrap
from weft.cli.chat.screens.completion import ChatCompleter
from weft.cli.chat.screens.line_input.editing_keys import ShellKeys, edit
from weft.cli.chat.screens.line_input.history_search import HistorySearch
from weft.cli.chat.screens.line_input.input_rows import PLACEHOLDER, InputRows, input_rows
from weft.cli.chat.screens.line_input.line_editor import LineEditor, StashedInput
from weft.cli.chat.screens.line_input.line_history import LineHistory
from weft.cli.chat.screens.line_input.vi_keys import ViKeys
from weft.cli.chat.screens.list_question import ListAnswer
from weft.cli.chat.screens.screen import (
    BACK_HINT,
    CLEAR_HINT,
    LEAVE_HINT,
    ChatClosed,
    DoublePress,
    GoBack,
    Input,
    InterruptPressed,
    KeepNoted,
    LineSubmitted,
    NextMode,
    TakeBack,
)
from weft.cli.chat.screens.terminal.completion_menu import CompletionMenu
from weft.cli.chat.screens.terminal.key_bindings import KeyBindings
from weft.cli.chat.screens.terminal.key_help import key_rows
from weft.cli.chat.screens.terminal.list_panel import ListPanel
from weft.cli.chat.screens.terminal.question_panel import QuestionPanel
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.clock import Clock
from weft.view import LiveArea

QUEUE_HINTS = 3
"""How often the queue says which key edits it."""


class InputHost(Protocol):
    """The screen, as the keys see it."""

    @property
    def live(self) -> LiveArea:
        """What is in flight."""
        ...

    def tell(self, happened: Input) -> None:
        """Hand an input to the chat."""
        ...

    def notify(self, text: str) -> None:
        """Say something in passing."""
        ...

    def redraw(self) -> None:
        """Something changed that the user did."""
        ...

    def start_editor(self, text: str, done: Callable[[str], None]) -> None:
        """Have the user change a text in their own editor."""
        ...

    def open_viewer(self) -> None:
        """Show everything unfolded."""
        ...

    def paste_picture(self) -> None:
        """Take the picture in the clipboard into the input."""
        ...

    def suspend(self) -> None:
        """Back to the shell."""
        ...

    def clear_screen(self) -> None:
        """Clear the window."""
        ...


class ChatInput:
    """What is typed, and what is asked."""

    def __init__(
        self,
        host: InputHost,
        *,
        completer: ChatCompleter,
        history: LineHistory,
        clock: Clock,
        vi: bool = False,
        bindings: KeyBindings | None = None,
    ) -> None:
        self._host = host
        self._completer = completer
        self.history = history
        self._twice = DoublePress(clock)
        self.editor = LineEditor()
        self._shell = ShellKeys(self.editor)
        self._labels: dict[str, str] = {}
        """By the path of a file that was dropped: what stands for it."""
        self._vi = ViKeys(self.editor) if vi else None
        self.panel: QuestionPanel | None = None
        self.list: ListPanel | None = None
        self.label: str | None = None
        """What is asked for, when a line is."""
        self._line = LineEditor()
        self._is_secret = False
        """What is asked for is not shown."""
        self._pasted_early = ""
        """What was pasted into the choice before the line that is asked for next."""
        self._stashed: StashedInput | None = None
        """What was put aside for a message in between."""
        self._search: HistorySearch | None = None
        self._menu: CompletionMenu | None = None
        self._wants_menu = anyio.Event()
        self._shows_keys = False
        self.unfolds_todo = False
        self._is_first = True
        self._prefix = ""
        self._hints = 0
        self._had_queue = False
        self._answer: int | str | ListAnswer | None = None
        self._answered = anyio.Event()
        self._bindings = bindings or KeyBindings()
        self._actions = self._input_actions()
        # `j` and `k` at the edge of the text go through the history, as the arrows do.
        self._vi_actions = {
            **dict.fromkeys(("j", "down"), self._down),
            **dict.fromkeys(("k", "up"), self._up),
            "/": self._begin_search,
            "v": self._edit_outside,
        }

    def _input_actions(self) -> dict[str, Callable[[], None]]:
        """What each key does: those that stay what they are, and those that the user may set."""
        does = self._bound_actions()
        bound = {key: does[name] for key, name in self._bindings.actions.items()}
        return {
            "enter": self._enter,
            "escape": self._escape,
            "c-c": self.interrupted,
            "up": self._up,
            "down": self._down,
            "c-p": self._up,
            "c-n": self._down,
            "tab": self._tab,
            "c-l": self._host.clear_screen,
            "c-z": self._host.suspend,
            **bound,
        }

    def _bound_actions(self) -> dict[str, Callable[[], None]]:
        return {
            "new_line": lambda: self.editor.insert("\n"),
            "send_later": self._send_later,
            "take_back": lambda: self._host.tell(TakeBack()),
            "next_mode": lambda: self._host.tell(NextMode()),
            "search": self._begin_search,
            "editor": self._edit_outside,
            "unfold": self._host.open_viewer,
            "todo": self._fold_todo,
            "model": lambda: self._host.tell(LineSubmitted("/model")),
            "keep": lambda: self._host.tell(KeepNoted()),
            "effort": lambda: self._host.tell(LineSubmitted("/effort")),
            "picture": self._host.paste_picture,
            "stash": self._stash,
        }

    # -- keys

    def press(self, key: str) -> None:
        """One key."""
        if key in ("c-z", "c-l"):
            self._actions[key]()
        elif self.label is not None:
            self._press_line(key)
        elif self.panel is not None:
            self._press_question(self.panel, key)
        elif self.list is not None:
            self._press_list(self.list, key)
        elif self._search is not None:
            self._press_search(self._search, key)
        else:
            self._press_input(key)

    def paste(self, text: str) -> None:
        """A paste is text wherever it comes, never an answer, whatever digits are in it."""
        if self.label is not None:
            self._line.insert(" ".join(text.split("\n")))
            return
        if self.list is not None:
            self.list.picker.filter(self.list.picker.words + " ".join(text.split()))
            return
        if self.panel is not None and text and self.panel.question.paste_row >= 0:
            self._pasted_early = " ".join(text.split("\n"))
            self.give(self.panel.question.paste_row)
            return
        if not text:
            # What terminals send when there is no text in the clipboard, but a picture.
            self._host.paste_picture()
            return
        if not self.drop(_dropped(text)):
            self.editor.paste(text)
        self._changed()

    def drop(self, paths: list[str], label: str = "") -> bool:
        """Take files that were dropped or pasted into the input; False without any."""
        if not paths:
            return False
        from weft.cli.chat.screens.dropped_files import picture_label  # with the first of them

        for path in paths:
            self._labels[path] = label or picture_label(path)
            self.editor.drop(path, self._labels[path])
        return True

    def _insert(self, text: str) -> None:
        """Text that was sent or typed before, with files that were dropped as what they were."""
        while text:
            places = {text.find(f'@"{path}"'): path for path in self._labels}
            at = min((place for place in places if place >= 0), default=len(text))
            if at:
                self.editor.bring_back(text[:at])
            if at < len(text):
                path = places[at]
                self.editor.drop(path, self._labels[path])
                at += len(path) + 3
            text = text[at:]

    def _press_line(self, key: str) -> None:
        if key == "enter":
            self.give(self._line.whole_text)
        elif key in ("escape", "c-c"):
            self.give(None)
        else:
            edit(self._line, key)

    def _press_question(self, panel: QuestionPanel, key: str) -> None:
        if key in ("escape", "c-c") and not panel.is_fresh:
            self.give(None)
        elif not panel.takes_keys():
            return
        elif key in ("up", "c-p"):
            panel.picker.move(-1)
        elif key in ("down", "c-n") or (key == "tab" and key not in panel.question.other_keys):
            panel.picker.move(1)
        elif key == "backspace":
            panel.picker.erase()
        else:
            letter = " " if key == "space" else key
            chosen = panel.entered() if key == "enter" else panel.typed(letter)
            if chosen is not None:
                self.give(chosen)

    def _press_list(self, panel: ListPanel, key: str) -> None:
        panel.picker.press(key)
        if panel.picker.is_over:
            self.give(panel.picker.answer)

    def _press_search(self, search: HistorySearch, key: str) -> None:
        if key in ("escape", "c-c", "c-g"):
            self._end_search(search.draft)
        elif key in ("c-r", "c-s"):
            (search.older if key == "c-r" else search.newer)()
        elif key == "backspace":
            search.erase()
        elif key == "space" or (len(key) == 1 and key >= " "):
            search.type(" " if key == "space" else key)
        else:
            # Any other key takes what was found and then does what it does; Enter only takes it.
            self._end_search(search.match or search.draft)
            if key != "enter":
                self._press_input(key)

    def _end_search(self, text: str) -> None:
        self._search = None
        self.editor.set_text(text)

    def _press_input(self, key: str) -> None:
        was_shown, self._shows_keys = self._shows_keys, False
        if was_shown and key in ("escape", "?"):
            return
        if key == "?" and not self.editor.text:
            self._shows_keys = True
            return
        if self._takes_vi(key):
            return
        if self._prefixed(key):
            return
        menu = self._current_menu()
        if menu is not None and self._press_menu(menu, key):
            return
        if key == "c-d" and not self.editor.text:
            self._host.tell(ChatClosed())
        elif key in self._actions:
            self._shell.forget()
            before = self.editor.text
            self._actions[key]()
            if self.editor.text != before:
                self._changed()
        elif self._shell.press(key):
            self._changed()

    def _takes_vi(self, key: str) -> bool:
        """A key of vi's; Esc in normal mode, and while a turn runs, is the chat's."""
        vi = self._vi
        if vi is None or (key == "escape" and self._host.live.can_stop):
            return False
        # Esc and a letter that came at once look like Alt with that letter.
        if key.startswith("m-") and len(key) == 3 and key not in self._actions:
            vi.press("escape")
            key = key[2]
        if vi.is_normal and not vi.is_pending and key in self._vi_actions:
            self._vi_actions[key]()
            vi.settle()
            return True
        before = self.editor.text
        is_taken = vi.press(key)
        if is_taken and self.editor.text != before:
            self._changed()
        return is_taken

    def _prefixed(self, key: str) -> bool:
        """Ctrl+X Ctrl+E: the editor, as in a shell."""
        prefix, self._prefix = self._prefix, key if key == "c-x" else ""
        if prefix == "c-x" and key == "c-e":
            # The prefix has had its key: the next Ctrl+U is not that of Ctrl+X Ctrl+U.
            self._shell.forget()
            self._edit_outside()
            return True
        return False

    def _changed(self) -> None:
        """Typing goes on: Esc, typing, Esc is not Esc Esc, and other completions fit."""
        self._twice.forget()
        if not self._completer.applies(self._before_cursor):
            self._menu = None
        self._wants_menu.set()

    # -- what the keys of the input do

    def _enter(self) -> None:
        editor = self.editor
        if editor.text[: editor.cursor].endswith("\\") and editor.cursor == len(editor.text):
            editor.backspace()
            editor.insert("\n")
        elif editor.text.strip():
            self._send()
        elif not editor.text and not self._host.live.can_stop:
            self._host.tell(LineSubmitted(""))  # tries again, where the last turn failed

    def _send(self, *, later: bool = False) -> None:
        text, picked, pasted = self.editor.whole_text, self.editor.dropped, self.editor.folded
        typed = self.editor.shown_text if picked else ""
        self.history.add(text)
        if text.startswith("/"):
            self._completer.used(text.split()[0])
        self.editor.reset()
        if self._stashed is not None:
            self.editor.put_in(self._stashed)
            self._stashed = None
        self._menu, self._is_first = None, False
        if self._vi is not None:
            self._vi.insert_mode()
        self._host.notify("")
        self._host.tell(LineSubmitted(text, later, picked, pasted, typed))

    def _send_later(self) -> None:
        """Send after this turn; where no turn runs, a new line."""
        if self._host.live.is_busy and self.editor.text.strip():
            self._send(later=True)
        else:
            self.editor.insert("\n")

    def _stash(self) -> None:
        """Put the line aside, or bring it back; what stood aside changes places with it."""
        before, self._stashed = self._stashed, None
        if self.editor.text.strip():
            # It is found there if the chat ends before it was brought back.
            self.history.add(self.editor.whole_text)
            self._stashed = self.editor.take_out()
        if before is not None:
            self.editor.put_in(before)
            self._host.notify("")
        elif self._stashed is None:
            self._host.notify("nothing to put aside")
        else:
            self._host.notify("put aside until the next message")

    def _escape(self) -> None:
        """Stop the turn, else count towards Esc Esc."""
        if self._host.live.can_stop:
            self._host.tell(InterruptPressed())
            return
        has_text = bool(self.editor.text)
        if not self._twice.now("clear" if has_text else "back"):
            self._host.notify(CLEAR_HINT if has_text else BACK_HINT)
            return
        self._twice.forget()
        self._host.notify("")
        if has_text:
            self._clear()
        else:
            self._host.tell(GoBack())

    def interrupted(self) -> None:
        """Ctrl-C: stops the turn; else clears the line; twice leaves."""
        if self.is_held:
            self.give(None)
        elif self._host.live.can_stop:
            # The second one while it still stops leaves; one after it has stopped is the first of
            # two.
            is_second = self._twice.now("stop")
            self._host.tell(ChatClosed() if is_second else InterruptPressed())
        elif self.editor.text:
            self._clear()
        elif self._twice.now("leave"):
            self._host.tell(ChatClosed())
        else:
            self._host.notify(LEAVE_HINT)

    def _clear(self) -> None:
        self.history.add(self.editor.whole_text)
        self.editor.reset()
        self._menu = None

    def _up(self) -> None:
        live = self._host.live
        if not self.editor.text and live.is_busy and live.queue:
            self._host.tell(TakeBack())
        elif not self.editor.line_up():
            self._recall(self.history.back(self.editor.whole_text))

    def _down(self) -> None:
        if not self.editor.line_down():
            self._recall(self.history.forth())

    def _recall(self, text: str | None) -> None:
        if text is not None:
            mark = self.editor.begin_step()
            self.editor.set_text("")
            self._insert(text)
            self.editor.join_steps(mark)

    def _fold_todo(self) -> None:
        if not self._host.live.todos:
            self._host.notify("no to-do list yet")
        self.unfolds_todo = not self.unfolds_todo

    def _begin_search(self) -> None:
        self._search = HistorySearch(self.history, self.editor.whole_text)

    def _edit_outside(self) -> None:
        self._host.start_editor(self.editor.whole_text, self._recall)

    def put_back(self, text: str) -> None:
        """Text before what stands in the line."""
        if not text:
            return
        draft = self.editor.text
        # Through `insert`, so that folded pastes in the draft stay what they are.
        self.editor.start()
        self._insert(f"{text}\n" if draft.strip() else text)
        self.editor.end()

    # -- completions

    def _tab(self) -> None:
        self._wants_menu.set()

    def _current_menu(self) -> CompletionMenu | None:
        """The completions for what is typed, as far as they are known without looking for them.

        The shown list lags behind the keys: several can come in one read, before the next look.
        To take from it then would replace other characters than those it was made for.
        """
        menu, before = self._menu, self._before_cursor
        if menu is not None and menu.before != before and before.startswith("/"):
            items = self._completer.known_commands(before)
            self._menu = menu = CompletionMenu(before, items) if items else None
        return menu

    @property
    def _before_cursor(self) -> str:
        return self.editor.text[: self.editor.cursor]

    def _press_menu(self, menu: CompletionMenu, key: str) -> bool:
        """A key while completions are shown; False when it is not for them."""
        if key in ("tab", "enter") and menu.before != self._before_cursor:
            self._menu = None
            return False
        if key in ("up", "c-p", "down", "c-n"):
            menu.move(-1 if key in ("up", "c-p") else 1)
        elif key == "tab":
            self._accept(menu)
        elif key == "enter":
            return self._enter_menu(menu)
        elif key == "escape":
            self._menu = None
        else:
            return False
        return True

    def _enter_menu(self, menu: CompletionMenu) -> bool:
        """Enter takes the picked one.  A command is sent with it; a file that was typed whole does
        not need to be taken.
        """
        typed = menu.before[len(menu.before) - menu.picked.replaced :]
        if menu.picked.text.startswith("/"):
            self._accept(menu)
            return False
        if menu.picked.text.strip() == typed:
            return False
        self._accept(menu)
        return True

    def _accept(self, menu: CompletionMenu) -> None:
        item = menu.picked
        self._completer.used(item.text)
        self._menu = None
        start = self.editor.cursor - item.replaced
        text = self.editor.text
        self.editor.set_text(
            text[:start] + item.text + text[self.editor.cursor :], start + len(item.text)
        )

    async def complete(self) -> None:
        """Look for completions of what is typed, for ever; in a thread, because listing a large
        project takes longer than a key press may.
        """
        while True:
            await self._wants_menu.wait()
            self._wants_menu = anyio.Event()
            before = self._before_cursor
            if self.is_held or not self._completer.applies(before):
                continue
            items = await anyio.to_thread.run_sync(self._completer.items, before)
            # What was typed in the meantime asks for others.
            if before == self._before_cursor:
                self._menu = CompletionMenu(before, items) if items else None
                self._host.redraw()

    # -- questions

    @property
    def is_held(self) -> bool:
        """Something else than the input line has the keys."""
        return self.label is not None or self.panel is not None or self.list is not None

    async def ask_list(self, panel: ListPanel) -> ListAnswer | None:
        """Have the user pick from a list; a cancel takes it away."""
        self.list, self._menu, self._shows_keys = panel, None, False
        try:
            await self._wait_for_answer()
        finally:
            self.list = None
            self._host.redraw()
        return panel.picker.answer

    async def ask(self, panel: QuestionPanel) -> int | str | ListAnswer | None:
        """Put a question; a cancel takes it away."""
        self.panel, self._menu, self._shows_keys = panel, None, False
        try:
            return await self._wait_for_answer()
        finally:
            self.panel = None
            self._host.redraw()

    async def ask_line(
        self, label: str, text: str, *, is_secret: bool
    ) -> int | str | ListAnswer | None:
        """Ask for a line; a cancel takes the question away."""
        self.label, self._is_secret = label, is_secret
        self._line.reset()
        self._line.set_text(text or self._pasted_early)
        self._pasted_early = ""
        try:
            return await self._wait_for_answer()
        finally:
            self.label = None
            # A secret is not kept for undo.
            self._line.reset()
            self._host.redraw()

    async def _wait_for_answer(self) -> int | str | ListAnswer | None:
        self._answered, self._answer = anyio.Event(), None
        self._host.notify("")
        self._host.redraw()
        await self._answered.wait()
        return self._answer

    def give(self, answer: int | str | ListAnswer | None) -> None:
        """Answer what is asked; None dismisses it."""
        self._answer = answer
        self._answered.set()

    @property
    def is_asked(self) -> bool:
        """Something waits for the user that they did not ask for."""
        return self.panel is not None

    @property
    def is_fresh(self) -> bool:
        """A question has just come up."""
        return self.panel is not None and self.panel.is_fresh

    # -- rows

    @property
    def shows_queue_hint(self) -> bool:
        """Whether the queue says which key edits it: the first times that there is one."""
        has_queue = bool(self._host.live.queue)
        if has_queue and not self._had_queue:
            self._hints += 1
        self._had_queue = has_queue
        return self._hints <= QUEUE_HINTS

    def search_notice(self, width: int) -> str:
        """What the status line says of a search; only the keys where room is short."""
        if self._search is None:
            return ""
        found = "" if self._search.match is not None else " · no match"
        said = f"search: {self._search.words}{found}"
        whole = f"{said} · Ctrl+R older · Enter takes it · Esc"
        return whole if cells(whole) < width else f"{said} · Ctrl+R · Enter · Esc"

    @property
    def mode_notice(self) -> str:
        """What the status line says of vi's mode, or of a count that is typed."""
        is_normal = self._vi is not None and self._vi.is_normal
        return "-- NORMAL --" if is_normal else self._shell.notice

    def rows(self, *, width: int, limit: int, styles: RowStyles) -> InputRows | None:
        """The input line; dim while a question or a list has the keyboard, and away when it is
        empty then.
        """
        if self.label is not None:
            line = _masked(self._line) if self._is_secret else self._line
            return input_rows(line, width=width, limit=limit, styles=styles)
        if self.panel is not None or self.list is not None:
            if not self.editor.text:
                return None
            return input_rows(self.editor, width=width, limit=limit, styles=styles, dim=True)
        if self._search is not None:
            found = LineEditor()
            found.set_text(self._search.match or "")
            return input_rows(found, width=width, limit=limit, styles=styles)
        hint = PLACEHOLDER if self._is_first else ""
        return input_rows(self.editor, width=width, limit=limit, styles=styles, placeholder=hint)

    def label_rows(self, *, width: int, styles: RowStyles) -> list[str]:
        """What is asked for."""
        return [styles("bold", row) for row in word_wrap(self.label or "", width)]

    def below(self, *, width: int, limit: int, styles: RowStyles) -> list[str]:
        """Completions or keys, below the input."""
        if self._shows_keys:
            return key_rows(width=width, limit=limit, styles=styles, names=self._bindings.names)
        if self._menu is not None and not self.is_held:
            return self._menu.rows(width=width, limit=limit, styles=styles)
        return []


def _masked(line: LineEditor) -> LineEditor:
    """A line in which only the number of characters can be seen."""
    shown = LineEditor()
    shown.set_text("•" * len(line.text), line.cursor)
    return shown


def _dropped(text: str) -> list[str]:
    # A quick look, because few pastes are paths and this loads how they are quoted.
    if not text.lstrip().startswith(("/", "~", "'", '"', "file:")):
        return []
    from weft.cli.chat.screens.dropped_files import dropped_files

    return dropped_files(text)
