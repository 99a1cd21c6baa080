"""A line editor: text of one or more lines with a cursor, undo and a kill ring.  No screen, no
keys.

A folded paste is one character of a private plane in the text, so that it moves, is deleted and is
undone as one; `whole_text` puts the pasted text in its place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from weft.cli.chat.paint.text_cells import next_grapheme, previous_grapheme
from weft.cli.chat.screens.line_input.word_places import FIRST_TOKEN, is_dark, is_letter

_TOKENS = 0xFFF0
FOLDED_LINES = 8
"""A paste of more lines is folded,"""
FOLDED_CHARACTERS = 1000
"""or of more characters."""
LONGEST_UNFOLDED = 100
"""Lines of a text that comes back from an earlier chat, where it is not known what was pasted."""
KNOWN_PASTES = 30
UNDO_STEPS = 500
KILL_RING = 30


class StashedInput(NamedTuple):
    """A line that was put aside, with its pastes and files."""

    text: str
    cursor: int
    pastes: list[str]
    files: dict[str, tuple[str, str]]


class LineEditor:
    """What is being typed."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self._pastes: list[str] = []
        self._known: list[str] = []
        """What was folded, also in messages that are sent; the newest last."""
        self._files: dict[str, tuple[str, str]] = {}
        """By the character that stands for it: the label of a dropped file, and its path."""
        self._undo: list[tuple[str, int]] = []
        self._redo: list[tuple[str, int]] = []
        self._ring: list[str] = []
        self._ring_place = -1
        """Which piece of the ring was put in last."""
        self._yanked: tuple[int, int] | None = None
        self._joins = ""
        """The kind of the last change; typing on, and killing on, is one step."""

    # -- the text

    @property
    def whole_text(self) -> str:
        """The text as it is sent: with every paste in full."""
        return "".join(
            # A mention right behind a word is none: it could be part of an address.
            f" {self.pasted(each)}"
            if each in self._files and place and not self.text[place - 1].isspace()
            else self.pasted(each) or each
            for place, each in enumerate(self.text)
        )

    def pasted(self, character: str) -> str | None:
        """The paste that a character stands for; None for an ordinary one."""
        number = ord(character) - FIRST_TOKEN
        return self._pastes[number] if 0 <= number < len(self._pastes) else None

    def label(self, character: str) -> str | None:
        """What is shown of a paste that is folded."""
        if character in self._files:
            return self._files[character][0]
        pasted = self.pasted(character)
        if pasted is None:
            return None
        lines = line_count(pasted)
        size = f"{lines} lines" if lines > 1 else f"{len(pasted):,} characters"
        return f"[Pasted {size}]"

    def set_text(self, text: str, cursor: int | None = None) -> None:
        """Another text; the cursor behind it."""
        self._remember("set")
        self.text = _without_tokens(text)
        self.cursor = len(self.text) if cursor is None else min(cursor, len(self.text))

    def clear(self) -> None:
        """Nothing; the pastes are forgotten with it."""
        self._remember("clear")
        self.text, self.cursor = "", 0

    def reset(self) -> None:
        """Begin again, with nothing to undo."""
        self.text, self.cursor = "", 0
        self._pastes.clear()
        self._files.clear()
        self._undo.clear()
        self._redo.clear()
        self._joins = ""

    def take_out(self) -> StashedInput:
        """All of the text, to be put back later; nothing is left."""
        taken = StashedInput(self.text, self.cursor, [*self._pastes], {**self._files})
        self.reset()
        return taken

    def put_in(self, taken: StashedInput) -> None:
        """What was taken out, in place of what is there."""
        self.reset()
        self.text, self.cursor = taken.text, taken.cursor
        self._pastes += taken.pastes
        self._files |= taken.files

    def insert(self, text: str) -> None:
        """Type."""
        text = _without_tokens(text)
        # A word is one step to undo; a space begins the next.
        self._remember("space" if text.isspace() else "type", joins=len(text) == 1)
        self._put(text)

    def paste(self, text: str) -> None:
        """Text that was pasted.  A long one is folded; the same again is unfolded."""
        text = _without_tokens(text)
        self._remember("paste")
        for place, character in enumerate(self.text):
            if text and self.pasted(character) == text:
                self.text = self.text[:place] + text + self.text[place + 1 :]
                self.cursor = place + len(text)
                return
        is_long = text.count("\n") >= FOLDED_LINES or len(text) > FOLDED_CHARACTERS
        self._put(self._fold(text) if is_long else text)

    def bring_back(self, text: str) -> None:
        """Text that was sent or put aside before: what was folded in it is folded again."""
        text = _without_tokens(text)
        self._remember("back")
        for known in reversed(self._known):
            if known in text:
                text = text.replace(known, self._fold(known), 1)
        head, _, rest = text.partition("\n")
        if rest.count("\n") >= LONGEST_UNFOLDED:
            text = f"{head}\n{self._fold(rest)}"
        self._put(text)

    def _fold(self, text: str) -> str:
        """The one character that stands for a text from now on."""
        if len(self._pastes) >= _TOKENS:
            return text
        self._pastes.append(text)
        if text not in self._known:
            self._known.append(text)
            del self._known[:-KNOWN_PASTES]
        return chr(FIRST_TOKEN + len(self._pastes) - 1)

    def drop(self, path: str, label: str) -> None:
        """A file that was dropped: one token, which is sent as a mention of its path."""
        if len(self._pastes) >= _TOKENS:
            return
        self._remember("paste")
        self._pastes.append(f'@"{path}"')
        token = chr(FIRST_TOKEN + len(self._pastes) - 1)
        self._files[token] = (label, path)
        self._put(token)

    @property
    def dropped(self) -> tuple[str, ...]:
        """The paths of the dropped files that are still in the text."""
        return tuple(self._files[each][1] for each in self.text if each in self._files)

    @property
    def shown_text(self) -> str:
        """As `whole_text`, with the labels of dropped files instead of their paths."""
        return "".join(self._shown(each) for each in self.text)

    def _shown(self, character: str) -> str:
        if character in self._files:
            return self._files[character][0]
        return self.pasted(character) or character

    @property
    def folded(self) -> tuple[tuple[int, int], ...]:
        """Where in `shown_text` the folded pastes begin and end."""
        places, place = [], 0
        for each in self.text:
            length = len(self._shown(each))
            if self.pasted(each) and each not in self._files:
                places.append((place, place + length))
            place += length
        return tuple(places)

    def _put(self, text: str) -> None:
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    # -- undo

    def _remember(self, kind: str, *, joins: bool = False) -> None:
        self._redo.clear()
        if not (joins and kind == self._joins):
            self._undo.append((self.text, self.cursor))
            del self._undo[:-UNDO_STEPS]
        self._joins = kind if joins else ""
        self._yanked = None

    def undo(self) -> None:
        """Take the last change back."""
        self._step(self._undo, self._redo)

    def redo(self) -> None:
        """Make the change again that was taken back."""
        self._step(self._redo, self._undo)

    def _step(self, back: list[tuple[str, int]], forth: list[tuple[str, int]]) -> None:
        while back:
            state = back.pop()
            if state[0] == self.text:
                continue
            forth.append((self.text, self.cursor))
            self.text, self.cursor = state
            break
        self._joins = ""

    def begin_step(self) -> int:
        """From here on changes are another step to undo; returns a mark for `join_steps`."""
        self._joins = ""
        return len(self._undo)

    def join_steps(self, mark: int) -> None:
        """Have everything since the mark be one step to undo."""
        del self._undo[mark + 1 :]
        self._joins = ""

    # -- moving

    def move_to(self, place: int) -> None:
        """Put the cursor somewhere."""
        self.cursor = max(0, min(place, len(self.text)))
        self._joins = ""
        self._yanked = None

    def left(self) -> None:
        """One character back."""
        self.move_to(previous_grapheme(self.text, self.cursor))

    def right(self) -> None:
        """One character on."""
        self.move_to(next_grapheme(self.text, self.cursor))

    def word_left(self) -> None:
        """To the beginning of a word."""
        self.move_to(self._word_before(is_letter))

    def word_right(self) -> None:
        """Behind the end of a word."""
        self.move_to(self._word_after())

    def line_start(self) -> None:
        """To the beginning of the line; from there, of the text."""
        start = self.text.rfind("\n", 0, self.cursor) + 1
        self.move_to(start)

    def line_end(self) -> None:
        """To the end of the line."""
        end = self.text.find("\n", self.cursor)
        self.move_to(len(self.text) if end < 0 else end)

    def start(self) -> None:
        """To the beginning of the text."""
        self.move_to(0)

    def end(self) -> None:
        """Behind the text."""
        self.move_to(len(self.text))

    def line_up(self) -> bool:
        """To the line above; False where there is none."""
        start = self.text.rfind("\n", 0, self.cursor) + 1
        if start == 0:
            return False
        above = self.text.rfind("\n", 0, start - 1) + 1
        self.move_to(min(above + self.cursor - start, start - 1))
        return True

    def line_down(self) -> bool:
        """To the line below; False where there is none."""
        start = self.text.rfind("\n", 0, self.cursor) + 1
        end = self.text.find("\n", self.cursor)
        if end < 0:
            return False
        below = self.text.find("\n", end + 1)
        last = len(self.text) if below < 0 else below
        self.move_to(min(end + 1 + self.cursor - start, last))
        return True

    def find(self, character: str, count: int) -> None:
        """To the next such character; backwards with a negative count.  Nowhere without one."""
        place = self.cursor
        for _ in range(abs(count)):
            if count > 0:
                place = self.text.find(character, place + 1)
            else:
                place = self.text.rfind(character, 0, place)
            if place < 0:
                return
        self.move_to(place)

    def _word_before(self, belongs: Callable[[str, int], bool]) -> int:
        at = self.cursor
        while at > 0 and not belongs(self.text, at - 1):
            at -= 1
        while at > 0 and belongs(self.text, at - 1):
            at -= 1
        return at

    def _word_start(self) -> int:
        """Where the word at the cursor, or the next one, begins."""
        at = self.cursor
        while at < len(self.text) and not is_letter(self.text, at):
            at += 1
        return at

    def _word_after(self) -> int:
        at = self._word_start()
        while at < len(self.text) and is_letter(self.text, at):
            at += 1
        return at

    # -- deleting

    def backspace(self) -> None:
        """Delete the character before the cursor."""
        # By code points where the last one is a mark that was typed by itself (an accent, a vowel
        # sign): a typing mistake in it should not cost the whole syllable.
        self._delete(previous_grapheme(self.text, self.cursor), self.cursor, "backspace")

    def delete(self) -> None:
        """Delete the character at the cursor."""
        self._delete(self.cursor, next_grapheme(self.text, self.cursor), "delete")

    def _delete(self, first: int, last: int, kind: str) -> None:
        if first == last:
            return
        self._remember(kind, joins=True)
        self.text = self.text[:first] + self.text[last:]
        self.cursor = first

    def kill_line_end(self) -> None:
        """Cut to the end of the line, or the line's end itself."""
        end = self.text.find("\n", self.cursor)
        last = len(self.text) if end < 0 else max(end, self.cursor + (end == self.cursor))
        self.kill(self.cursor, last)

    def kill_line_start(self) -> None:
        """Cut to the beginning of the line, or the end of the line before."""
        start = self.text.rfind("\n", 0, self.cursor) + 1
        self.kill(start if start < self.cursor else max(0, start - 1), self.cursor, before=True)

    def kill_word_left(self) -> None:
        """Cut the word before the cursor, up to a space."""
        self.kill(self._word_before(is_dark), self.cursor, before=True)

    def kill_word_back(self) -> None:
        """Cut the letters and digits before the cursor."""
        self.kill(self._word_before(is_letter), self.cursor, before=True)

    def kill_word_right(self) -> None:
        """Cut the word behind the cursor."""
        self.kill(self.cursor, self._word_after())

    def kill(self, first: int, last: int, *, before: bool = False) -> None:
        """Cut a part into the ring; one cut after the other is one piece."""
        if first >= last:
            return
        piece = self.text[first:last]
        # One piece in the ring, but as many steps to undo as there were keys.
        goes_on = self._joins == "kill" and self._ring
        self._remember("kill")
        if goes_on:
            self._ring[-1] = piece + self._ring[-1] if before else self._ring[-1] + piece
            self._ring_place = -1
        else:
            self.keep(piece)
        self._joins = "kill"
        self.text = self.text[:first] + self.text[last:]
        self.cursor = first

    def keep(self, piece: str) -> None:
        """Put a piece into the ring; `yank` puts it in."""
        self._ring.append(piece)
        del self._ring[:-KILL_RING]
        self._ring_place = -1

    @property
    def kept(self) -> str:
        """What `yank` puts in."""
        return self._ring[self._ring_place] if self._ring else ""

    def replace(self, first: int, last: int, text: str) -> None:
        """Other text in place of a part; the cursor behind it."""
        self._remember("replace")
        text = _without_tokens(text)
        self.text = self.text[:first] + text + self.text[last:]
        self.cursor = first + len(text)

    def delete_spaces(self) -> None:
        """Delete the spaces around the cursor."""
        first = len(self.text[: self.cursor].rstrip(" \t"))
        last = len(self.text) - len(self.text[self.cursor :].lstrip(" \t"))
        if first < last:
            self._remember("spaces")
            self.text, self.cursor = self.text[:first] + self.text[last:], first

    def revert(self, kept: int = 0) -> None:
        """Undo everything, but for so many of the first steps."""
        while len(self._undo) > kept:
            self.undo()

    def yank(self) -> None:
        """Put in what was cut last."""
        if not self._ring:
            return
        self._remember("yank")
        start = self.cursor
        self._put(self._ring[self._ring_place])
        self._yanked = (start, self.cursor)

    def yank_older(self) -> None:
        """Right after `yank`: put in what was cut before that instead."""
        if self._yanked is None or len(self._ring) < 2:
            return
        self._ring_place = max(-len(self._ring), self._ring_place) - 1
        if self._ring_place < -len(self._ring):
            self._ring_place = -1
        piece = self._ring[self._ring_place]
        first, last = self._yanked
        self.text = self.text[:first] + piece + self.text[last:]
        self.cursor = first + len(piece)
        self._yanked = (first, self.cursor)

    def transpose(self) -> None:
        """Swap the two characters around the cursor."""
        at = (
            self.cursor
            if self.cursor < len(self.text)
            else previous_grapheme(self.text, len(self.text))
        )
        before = previous_grapheme(self.text, at)
        after = next_grapheme(self.text, at)
        if before == at or after == at:
            return
        self._remember("transpose")
        swapped = self.text[at:after] + self.text[before:at]
        self.text = self.text[:before] + swapped + self.text[after:]
        self.cursor = after

    def change_case(self, change: Callable[[str], str]) -> None:
        """Change the word behind the cursor."""
        first, last = self._word_start(), self._word_after()
        self._remember("case")
        changed = change(self.text[first:last])
        self.text = self.text[:first] + changed + self.text[last:]
        self.cursor = first + len(changed)


def line_count(text: str) -> int:
    """Lines as people count them: a line break at the end begins no other."""
    return text.count("\n") + (not text.endswith("\n"))


def _without_tokens(text: str) -> str:
    """Foreign characters of the plane that our tokens are in would stand for a paste."""
    if text.isascii():
        return text
    return "".join(each for each in text if not FIRST_TOKEN <= ord(each) < 0xFFFFE)
