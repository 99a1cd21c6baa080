"""Boundary repair ("healing"): the seams that generated text shows, mended while it streams.

Chat models are shown a text and answer with a new one, so the two meet with a space too many or too
few, in the middle of a word, or with lines broken as in a mail.  `StreamRepair` takes the raw
pieces and gives text that joins.  It holds back the white space in front of a word until the word
is whole, at most `LAG` characters, and never takes back what it gave: what was streamed is what is
stored.  `RepairedText.edits` says where raw and repaired text differ, so that the tokens of an
answer keep their places.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

import msgspec

from weft.loom.continuation import Strategy
from weft.loom.short_words import COMPOUNDS, SECOND_HALVES, SHORT_WORDS

LAG: Final = 32
"""Characters that are held back at most."""
LOOK_BEHIND: Final = 80
"""Characters before a gap that decide about it; the words there are shorter."""
FRAGMENT_LENGTH: Final = 3
"""Letters of a cut word that a rewind takes back, and that a tail may have to be dropped."""
_WHOLE_WORD: Final = 16
"""A word this long is in no list, so it need not be waited for."""
_HISTORY: Final = 2_000
"""Characters of the text that show how its lines are set."""
_LONG_LINE: Final = 50
_SHORT_LINE: Final = 48


class TextEdit(msgspec.Struct, frozen=True):
    """One repair: the raw text from `start` to `end` became `text`."""

    start: int
    end: int
    text: str


class RepairedText(msgspec.Struct, frozen=True):
    """A whole continuation after its repairs."""

    text: str
    edits: tuple[TextEdit, ...] = ()

    @property
    def is_healed(self) -> bool:
        """True where it is not what the model wrote, letter for letter."""
        return bool(self.edits)

    def offset(self, raw: int) -> int:
        """The place in `text` of a place in the raw text; inside a repair, where it begins."""
        shift = 0
        for edit in self.edits:
            if raw < edit.end:
                return min(raw, edit.start) + shift
            shift += len(edit.text) - (edit.end - edit.start)
        return raw + shift


class RepairRules(msgspec.Struct, frozen=True, kw_only=True):
    """Which repairs a strategy needs."""

    joins: bool = False
    """The first word may have a space too many."""
    inserts_space: bool = False
    """The first word never has one."""
    words: bool = False
    """Spaces before punctuation and inside words are mended further in, too."""
    newlines: bool = False
    """Lines that are broken as in a mail are joined."""
    trims_tail: bool = False
    """Half a word at the end goes, where the limit cut it off."""


_CHAT: Final = RepairRules(
    joins=True, inserts_space=True, words=True, newlines=True, trims_tail=True
)
_RULES: Final[dict[Strategy, RepairRules]] = {
    # Raw text is continued by the token: its boundary is as the model wants it.
    "completion": RepairRules(newlines=True, trims_tail=True),
    "prefill": RepairRules(joins=True, words=True, newlines=True, trims_tail=True),
    "system": _CHAT,
    "few_shot": _CHAT,
    "fim": RepairRules(),
}


def rules_for(strategy: Strategy) -> RepairRules:
    """The repairs that continuations by a strategy need."""
    return _RULES[strategy]


def rewound(text: str) -> tuple[str, str]:
    """The text without a cut word at its end, and the cut word: three letters at most.

    Chat models write a word from its beginning; what they repeat of it is then taken out.
    """
    found = re.search(r"(?:^|(?<=\s))[a-z]{1,3}$", text[-LOOK_BEHIND:])
    if found is None or found[0] in SHORT_WORDS:
        return text, ""
    return text[: -len(found[0])], found[0]


class StreamRepair:
    """Repairs one continuation of `before` as it comes."""

    def __init__(self, before: str, rules: RepairRules, *, fragment: str = "") -> None:
        """`fragment` is what `rewound` took off the text that the model was shown."""
        self._rules = RepairRules() if looks_like_code(before) else rules
        self._fragment = fragment
        self._seen = before[-_HISTORY:]
        self._spaces_punctuation = bool(_SPACED.search(self._seen))
        self._pending = ""
        self._at = 0
        """Where `_pending` begins in the raw text."""
        self._is_joined = False
        self._text: list[str] = []
        self._edits: list[TextEdit] = []

    def feed(self, piece: str) -> str:
        """The text that is certain now."""
        self._pending += piece
        return self._flow(is_over=False)

    def finish(self, *, was_cut: bool = False) -> str:
        """The rest; `was_cut` where a limit ended it and not the model."""
        end = self._tail() if was_cut and self._rules.trims_tail else len(self._pending)
        dropped, self._pending = self._pending[end:], self._pending[:end]
        given = self._flow(is_over=True)
        if dropped:
            self._edits.append(TextEdit(self._at, self._at + len(dropped), ""))
        return given

    def result(self) -> RepairedText:
        """All that was given, and how it differs from the raw text."""
        return RepairedText("".join(self._text), tuple(self._edits))

    def _flow(self, *, is_over: bool) -> str:
        given: list[str] = []
        while self._pending:
            if self._is_joined and (word := _WORD.match(self._pending)):
                given.append(self._give(word.end(), word[0]))
                continue
            found = _GAP.match(self._pending)
            gap, behind = found.groups() if found else ("", "")
            is_whole = len(behind) >= _WHOLE_WORD or len(gap) + len(behind) < len(self._pending)
            # White space without end is given as it is; there is nothing to decide about it.
            if not (is_over or is_whole or len(self._pending) > LAG):
                break
            given.append(self._give(*self._mended(gap, behind)))
            self._is_joined = True
        return "".join(given)

    def _give(self, size: int, text: str) -> str:
        """Hand out `text` for the next `size` raw characters."""
        raw = self._pending[:size]
        if text != raw:
            self._edits.append(TextEdit(self._at, self._at + size, text))
        self._pending = self._pending[size:]
        self._at += size
        self._text.append(text)
        self._seen += text
        if len(self._seen) > 2 * _HISTORY:
            self._seen = self._seen[-_HISTORY:]
        return text

    # --- decisions -----------------------------------------------------------------------

    def _mended(self, gap: str, word: str) -> tuple[int, str]:
        """How many raw characters go, and what comes for them."""
        if not self._is_joined:
            is_repeated = self._fragment and word.lower().startswith(self._fragment)
            if is_repeated and self._rules.joins:
                return len(gap) + len(self._fragment), ""
            return len(gap), self._joint(gap, word)
        if word and gap == " " and self._rules.words and self._belongs(word):
            return 1, ""
        is_break = self._rules.newlines and word and _ONE_BREAK.fullmatch(gap)
        return len(gap), " " if is_break and is_wrapped(self._seen, word) else gap

    def _joint(self, gap: str, word: str) -> str:
        """What stands between the text and the first word of its continuation."""
        before = self._seen
        if not (self._rules.joins and before and word):
            return gap
        if before[-1].isspace():
            return self._behind_space(gap)
        if gap == " " and (self._belongs(word) or _is_cut(before, word)):
            return ""
        needs_space = self._rules.inserts_space and not gap and _wants_space(before, word)
        return " " if needs_space and not self._belongs(word) else gap

    def _behind_space(self, gap: str) -> str:
        # A begun answer cannot end in white space, so the model writes it a second time.
        there = self._seen[len(self._seen.rstrip()) :]
        if "\n" in gap:
            same = min(there.count("\n"), len(gap) - len(gap.lstrip("\n")))
            return gap[same:]
        return "" if there.endswith(" ") else gap

    def _belongs(self, word: str) -> bool:
        """Whether the word goes right behind the one before it, without a space."""
        if word[0] in _MARKS:
            is_after_word = self._seen[-1:].isalnum()
            if _PUNCTUATION.fullmatch(word):
                return is_after_word and (not self._spaces_punctuation or word[0] in ".,")
            return is_after_word and _CONTRACTION.fullmatch(word) is not None
        right = _FIRST_WORD.match(word)
        # Nearly every word is no second half, and need not be looked at with the one before it.
        if right is None or right[0].lower() not in SECOND_HALVES:
            return False
        left = _LAST_WORD.search(self._seen[-LOOK_BEHIND:])
        return left is not None and f"{left[0]}{right[0]}".lower() in COMPOUNDS

    def _tail(self) -> int:
        """Where half a word at the end begins, with the white space before it."""
        found = _TAIL.search(self._pending)
        if found is None or found[1] in SHORT_WORDS:
            found = _SPACES.search(self._pending)
        # The first word stays, whatever it is: without it the branch would be empty.
        is_first = found is not None and not self._is_joined and not self._pending[: found.start()]
        return len(self._pending) if found is None or is_first else found.start()


_WORD: Final = re.compile(r"\S+")
_GAP: Final = re.compile(r"(\s*)(\S*)")
_LAST_WORD: Final = re.compile(r"\w+$")
_FIRST_WORD: Final = re.compile(r"[^\W\d_]+")
_ONE_BREAK: Final = re.compile(r"[ \t]*\n[ \t]*")
_MARKS: Final = frozenset(",.;:!?'’")
_PUNCTUATION: Final = re.compile(r"[,.;:!?][\"'”’)\]]*")
_CONTRACTION: Final = re.compile(r"['’](?:s|t|re|ve|ll|d|m)[,.;:!?\"”)]*", re.IGNORECASE)
_SPACED: Final = re.compile(r"\w[ \u00a0\u202f][;:!?](?:\s|$)")
"""As in French, where a space belongs before these."""
_TAIL: Final = re.compile(r"\s+([a-z]{1,3}|\w+-)$")
_SPACES: Final = re.compile(r" +$")
_MARKER: Final = re.compile(r"[#>*+`|•–—-]|\d+[.)]")
"""Begins a line of a list, a table, a quotation or a heading."""
_ENDS_SENTENCE: Final = re.compile(r"[.!?:…][\"'”’)\]]*$")
_CODE_LINE: Final = re.compile(
    r"^(?: {4}|\t)\s*\S|[{};]\s*$|^(?:def|class|import|from|fn|func|function|const|let|var|return"
    r"|public|private|package|using|#include|//|/\*)\b|^#!|\)\s*:\s*$|=>"
)
# Scripts that put no space between words: Thai to Khmer, kana, Han, and full-width forms.
_UNSPACED: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u9fff\uf900-\uffef]"
)


def looks_like_code(text: str) -> bool:
    """Whether the end of a text is source code, where every space may mean something."""
    recent = text[-_HISTORY:]
    if len(re.findall(r"^```", text[-20 * _HISTORY :], re.MULTILINE)) % 2:
        return True
    lines = [line for line in recent.splitlines() if line.strip()][-8:]
    found = sum(_CODE_LINE.search(line) is not None for line in lines)
    return len(lines) > 1 and found * 2 > len(lines)


def is_wrapped(text: str, word: str) -> bool:
    """Whether a single line end between `text` and `word` only breaks a long line of prose."""
    *lines, last = text[-_HISTORY:].split("\n")
    if len(last) < _LONG_LINE or _MARKER.match(word) or _MARKER.match(last.lstrip()):
        return False
    # Behind a whole sentence a capital letter may begin a paragraph.
    if _ENDS_SENTENCE.search(last) and not word[0].islower():
        return False
    return not _is_set_in_lines(lines)


def _is_set_in_lines(lines: list[str]) -> bool:
    """Whether the lines before are verse, a list, or prose that its writer breaks by hand."""
    recent = [line.strip() for line in lines if line.strip()][-4:]
    if any(_MARKER.match(line) for line in recent):
        return True
    broken = sum(
        len(line) >= _LONG_LINE and bool(following.strip()) for line, following in pairwise(lines)
    )
    if broken > 1:
        return True
    open_ended = sum(_ENDS_SENTENCE.search(line) is None for line in recent)
    is_short = sum(map(len, recent)) < _SHORT_LINE * len(recent)
    return len(recent) > 1 and is_short and open_ended * 2 >= len(recent)


def _is_cut(before: str, word: str) -> bool:
    """Whether the text ends in the beginning of a word that `word` goes on with."""
    if re.search(r"\w-$", before[-LOOK_BEHIND:]):
        return word[:1].isalpha()
    found = re.search(r"(?:^|(?<=\s))[a-z]{2,3}$", before[-LOOK_BEHIND:])
    # Without a vowel it is no word; with one it may be a name or a word that no list has.
    return (
        found is not None
        and found[0] not in SHORT_WORDS
        and not re.search(r"[aeiouy]", found[0])
        and re.match(r"[a-z]{2,}", word) is not None
    )


def _wants_space(before: str, word: str) -> bool:
    """Whether two words that meet without a space are two."""
    last, first = before[-1], word[0]
    if _UNSPACED.match(last) or _UNSPACED.match(first) or _is_cut(before, word):
        return False
    begins = first.isalnum() or first in "\"“‘'([{$€£#&*–—"
    return begins and (last.isalnum() or last in ',.;:!?)]}%"”’…*')
