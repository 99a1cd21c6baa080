"""How much an answer to a plan looks like a correction of it: a weighted sum of features.

A feature is something that an answer on any subject can have: it turns something down, it names a
thing of which a plan takes one in place of another, it weighs, it asks, it agrees, it begins with
an order; what its clauses do, and which of that comes together.  How much each counts is not set
by hand: `reply_weights.tsv` is what `python -m scripts.reply_weights` finds on the answers in
`tests/decisions/data`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

import msgspec

from weft.data_tables import read_table
from weft.decisions.corrections.counter_proposal import alternatives_by_word, singular, words_that
from weft.decisions.corrections.rules import accepts
from weft.decisions.corrections.speech_acts import (
    CAUTIONS,
    TAKES_AWAY,
    acts_of,
    codes_of,
    kind_of_turn,
)
from weft.decisions.words import stem

_TOKEN: Final = re.compile(r"[^\W_]\w*(?:[-'’.+#/]\w+)*")
_SOMEBODY: Final = re.compile(r"\w+body")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)?")
_QUOTED: Final = re.compile(r"\{[^{}]{6,400}\}|[\"“][^\"”]{12,400}[\"”]")
"""What others said."""
_CLAUSE: Final = re.compile(
    r"[.;!?](?=\s|$)|,(?=\s)|\s[–—-]+\s|:\s|\n|"
    r"(?<!think)\s(?:so|but|because|since|although|though|while|which)\s"
)
_DONE: Final = re.compile(r"\s*(?:i'?ve|i have|i |the |all |done|now )", re.I)
_NAMED: Final = re.compile(r"\b(?:is|are) (?:called|named)\b")
_OURS: Final = re.compile(r"\b(?:we|our|this project|the (?:team|rest|others?))\b", re.I)
_REPORTS: Final = re.compile(
    r"\b(?:already (?:taken|in use|running|exists?|there)|not found|no such|(?:refused|timed out)|"
    r"(?:didn'?t|doesn'?t|did not|does not) (?:work|build|compile|start|help|run)|"
    r"still (?:fails?|failing|red|broken|get|gets)|fails? (?:now|with|on|in)|here'?s (?:the|what)|"
    r"i(?:'ve| have)? (?:just )?(?:pushed|merged|checked|deployed|updated|ran|renamed|rebased))\b",
    re.I,
)
_QUESTION: Final = re.compile(r"[^.!?;\n]+\?")
_ASKED: Final = re.compile(
    r"\W*(?:and |but |so )?(?:have|has|do|does|did|is|are|was|were|will|who|what|when|where|how)\b",
    re.I,
)
"""A question about a plan, not one that asks for another."""
_SHAPES: Final = re.compile(r"(?:the|its?|they|this|that)\b.{0,40}\b(?:should|must) \w+", re.I)
"""What the thing that is planned shall be like."""
_ADDS: Final = re.compile(
    r"^(?:please |and |ok,? |then |but )*also\b|\b(?:as well|while you'?re|too)\b|\bnext:|"
    r"\bdon'?t forget\b|\bmake sure\b|\band (?:link|rename|add|remove|write|tell|update)\b",
    re.I,
)
_COUNTED: Final = {
    "one": "1",
    "once": "1",
    "two": "2",
    "twice": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "eight": "8",
    "ten": "10",
}
_WANTS: Final = frozenset(["other-way", "order", "fragment", "weighs new", "obliges", "custom"])
"""What a clause does that says what is wanted."""
_ORDERS: Final = frozenset(["other-way", "order"])


class JudgedPlan:
    """What was proposed, as answers to it are compared with it."""

    def __init__(self, text: str, *, is_plan: bool, asks: bool) -> None:
        self.is_plan, self.asks = is_plan, asks
        self._stems: dict[str, str] = {}
        self.is_done = not is_plan and _DONE.match(text) is not None
        self.turn = kind_of_turn(text)
        self.takes_away = TAKES_AWAY.search(text) is not None
        self.codes = codes_of(text)
        self.words = tokens(text)
        self.stems = {stem(word) for word in self.words if not _is("function", word)}
        self.verbs = [word for word in self.words if word in words_that("verb")][:2]
        self.numbers = _numbers(self.words)
        self.singulars = {singular(word) for word in self.words}
        known = alternatives_by_word()
        self.groups = {group for word in self.singulars for group in known.get(word, ())}

    def has(self, word: str) -> bool:
        """Whether a word of an answer is one of the plan's."""
        known = self._stems.get(word)
        return (self._stem_of(word) if known is None else known) in self.stems

    def new_stems(self, words: Sequence[str]) -> set[str]:
        """The stems of the words that say something and are not the plan's."""
        for word in words:
            if word not in self._stems:
                self._stem_of(word)
        return {self._stems[word] for word in words} - self.stems - {""}

    def _stem_of(self, word: str) -> str:
        known = self._stems.get(word)
        if known is None:
            is_little = _is("function", word) or _SOMEBODY.fullmatch(word) is not None
            known = self._stems[word] = "" if is_little else stem(word)
        return known


class ReplyWindow(msgspec.Struct, frozen=True):
    """Some sentences of an answer that are judged together."""

    text: str
    english: str
    """The text with its small words in English, which is what is judged."""
    opening: str
    """How the whole answer begins, in English, too."""
    is_part: bool
    """The answer has more than these."""
    is_pasted: bool
    """The answer has code, logs or quotes, too."""
    is_taken: bool = False
    """Some sentence of the answer takes the plan as it is."""


def score(plan: JudgedPlan, window: ReplyWindow) -> float:
    """More than nothing: it is rather a correction than not."""
    weights = _weights()
    counted = weights.keys() & features(plan, window)
    return weights.get("bias", 0.0) + sum([weights[feature] for feature in counted])


def features(plan: JudgedPlan, window: ReplyWindow) -> set[str]:
    """All that is found in a window."""
    own = _QUOTED.sub(" ", window.english)
    text = CAUTIONS.sub(" careful ", own)
    words = tokens(text)
    if not words:
        return set()
    found = _true({"quote": own != window.english, "cautions": text != own})
    found |= _of_form(text, words, window)
    found |= _of_plan(plan, words)
    found |= _of_words(plan, text, words)
    found |= _of_clauses(plan, text)
    found |= _of_assent(plan, text, words)
    found |= acts_of(text)
    found |= _of_code(plan, text, words)
    found |= _together(plan, found)
    # An order means another thing after a question than after something that was done.
    found |= {f"{plan.turn}: {each}" for each in found}
    found |= {f"w:{word}" for word in _kinds()["function"].intersection(words)}
    return found | _pairs(plan, words) | {f"u:{each}" for each in plan.new_stems(words)}


def signs(plan: JudgedPlan, text: str) -> int:
    """How many different signs of a correction a text has, at a first look."""
    words, kinds = set(tokens(text)), _kinds()
    numbers = _numbers(words)
    return sum(
        (
            not kinds["deny"].isdisjoint(words),
            not words_that("fault").isdisjoint(words),
            2 * (not kinds["weigh"].isdisjoint(words)),
            not kinds["oblige"].isdisjoint(words),
            not {"but", "though", "however", "let's", "so", "then", "too", "use"}.isdisjoint(words),
            2 * bool(_other_words(plan, words)),
            bool(plan.numbers and numbers and not plan.numbers & numbers),
            any(plan.has(word) for word in words),
        )
    )


def wanted_clauses(plan: JudgedPlan, text: str) -> list[str]:
    """The clauses that say what is wanted; all of them where none does by itself."""
    clauses = [clause.strip(" .,;!?-–—") for clause in clauses_of(text)]
    named = [
        clause
        for clause in clauses
        if clause_acts(plan, tokens(clause)) & _WANTS or _other_words(plan, tokens(clause))
    ]
    return [clause for clause in named or clauses if clause]


def tokens(text: str) -> list[str]:
    """The words of a text, in small letters."""
    return _TOKEN.findall(text.lower().replace("’", "'"))


def clauses_of(text: str) -> list[str]:
    """The clauses of a text."""
    return [clause for clause in _CLAUSE.split(text) if clause and clause.strip()]


# --- features of the whole --------------------------------------------------------------


def _of_form(text: str, words: Sequence[str], window: ReplyWindow) -> set[str]:
    length = len(words)
    size = "2" if length <= 2 else "6" if length <= 6 else "15" if length <= 15 else "more"
    begins, kinds = tokens(window.opening[:40])[:1], _kinds()
    return _true(
        {
            f"length {size}": True,
            "asks at the end": text.rstrip().endswith("?"),
            "asks": "?" in text,
            "exclaims": "!" in text,
            "colon": ":" in text,
            "answer agrees": not kinds["agree"].isdisjoint(begins),
            "agrees first": not kinds["agree"].isdisjoint(words[:3]),
            "agrees": not kinds["agree"].isdisjoint(words),
            "part": window.is_part,
            "pasted": window.is_pasted,
            "taken": window.is_taken,
        }
    )


def _of_assent(plan: JudgedPlan, text: str, words: Sequence[str]) -> set[str]:
    """What tells that the plan goes on: it is taken, it is added to, or something has happened."""
    clauses = clauses_of(text)
    places = [n for n, word in enumerate(words) if word in ("fine", "ok", "okay", "alright")]
    before = {word for n in places for word in words[max(0, n - 3) : n]}
    is_fine = "is" in before or "are" in before
    return _true(
        {
            "accepts": accepts(clauses, text),
            "plan is fine": is_fine and any(plan.has(word) for word in before),
            "reports": _REPORTS.search(text) is not None,
            "adds": _ADDS.search(text) is not None,
            "asks one": any(_ASKED.match(each) for each in _QUESTION.findall(text)),
            "shapes it": len(words) > 3
            and (plan.has(words[1]) or _is("point", words[0]))
            and _SHAPES.match(text) is not None,
        }
    )


def _pairs(plan: JudgedPlan, words: Sequence[str]) -> set[str]:
    """Which words come side by side; those that say what it is about stand for their kind."""
    kinds = {word: _kind_of(plan, word) for word in set(words)}
    row = ["^", *(kinds[word] for word in words), "$"]
    return {f"{first} {second}" for first, second in itertools.pairwise(row)}


def _kind_of(plan: JudgedPlan, word: str) -> str:
    if plan.has(word):
        return "PLANNED"
    if _is("function", word) or word in words_that("verb"):
        return word
    if word in words_that("fault"):
        return "FAULT"
    return "NUMBER" if word[0].isdigit() else "NEW"


def _of_code(plan: JudgedPlan, text: str, words: Sequence[str]) -> set[str]:
    """What a program has in an answer, and whether the plan has another of the same kind."""
    codes = codes_of(text)
    new = codes - plan.codes
    kinds = {kind for kind, _ in new}
    planned = {kind for kind, _ in plan.codes}
    is_same = bool(kinds & planned)
    return _true(
        {
            "code": bool(codes),
            "new code": bool(new),
            "same kind of code": is_same,
            "same kind of code alone": is_same and len(words) <= 5,
            "other code": bool(new) and bool(plan.codes),
            "other code alone": bool(new) and bool(plan.codes) and len(words) <= 5,
            "same code": bool(codes & plan.codes),
        }
    )


def _of_plan(plan: JudgedPlan, words: Sequence[str]) -> set[str]:
    content = _content(words)
    named = [word for word in content if plan.has(word)]
    numbers = _numbers(words)
    is_other = bool(plan.numbers and numbers and not plan.numbers & numbers)
    others = _other_words(plan, words)
    return _true(
        {
            "plan": plan.is_plan,
            "asked": plan.asks,
            "done": plan.is_done,
            "names": bool(named),
            "names first": any(plan.has(word) for word in words[:3]),
            "new": len(named) < len(content),
            "nothing new": len(named) == len(content),
            "mostly new": len(content) > 2 * len(named),
            "other": bool(others),
            "other first": any(singular(word) in others for word in words[:4]),
            "other alone": bool(others) and len(words) <= 6,
            "number": bool(numbers),
            "other number": is_other,
            "other number alone": is_other and len(words) <= 4,
        }
    )


def _of_words(plan: JudgedPlan, text: str, words: Sequence[str]) -> set[str]:
    denials = [place for place, word in enumerate(words) if _denies(word)]
    is_bad = not words_that("fault").isdisjoint(words)
    is_new = any(not _is("function", word) and not plan.has(word) for word in words)
    is_named = any(plan.has(word) for word in words)
    obliges = any(word in ("should", "must", "has", "needs", "shall", "ought") for word in words)
    has_verb = words[0] in words_that("verb")
    second = words[1] if len(words) > 1 else ""
    return {f"first {_class_of(plan, words[0])}"} | _true(
        {
            "fault": is_bad,
            "fault named": is_bad and is_named,
            "better": not words_that("better").isdisjoint(words),
            "denies": bool(denials),
            "denies plan": any(plan.has(w) for k in denials for w in words[k + 1 : k + 5]),
            "plan denied": any(plan.has(w) for k in denials for w in words[max(0, k - 4) : k]),
            "denies, new": bool(denials) and is_new,
            "but": not {"but", "though", "however"}.isdisjoint(words),
            "verb soon": any(word in words_that("verb") for word in words[:4]),
            "same verb": words[0] in plan.verbs
            or (words[0] in ("please", "just", "then") and second in plan.verbs),
            "verb it": has_verb and (_is("point", second) or second in ("them", "it")),
            "verb new": has_verb and is_new,
            "than": "than" in words or "instead" in words,
            "too much": "too" in words[:-1],
            "too": words[-1] == "too",
            "bare": len(words) <= 5 and _kinds()["function"].isdisjoint(words),
            "bare new": len(words) <= 5 and not is_named and _kinds()["function"].isdisjoint(words),
            "ours": is_new and _OURS.search(text) is not None,
            "obliges": obliges,
            "obliges new": obliges and is_new,
        }
    )


def _class_of(plan: JudgedPlan, word: str) -> str:
    """What kind of word an answer begins with."""
    for kind in ("agree", "ask", "deny", "point"):
        if _is(kind, word):
            return kind
    if word in words_that("verb"):
        return "verb"
    if _is("begin-question", word):
        return "question"
    if word in ("i", "i'm", "i'd", "i'll"):
        return "i"
    for kind in ("add", "place"):
        if _is(kind, word):
            return kind
    if word in ("we", "the") or word[0].isdigit():
        return "number" if word[0].isdigit() else word
    return "article" if word in ("a", "an") else "planned" if plan.has(word) else "else"


# --- features of the clauses ------------------------------------------------------------


def _of_clauses(plan: JudgedPlan, text: str) -> set[str]:
    acts = [clause_acts(plan, tokens(clause)) for clause in clauses_of(text)]
    if not acts:
        return set()
    found = {f"some {act}" for each in acts for act in each}
    found |= {f"begins {act}" for act in acts[0]} | {f"ends {act}" for act in acts[-1]}
    return found | ({"one clause"} if len(acts) == 1 else set())


def clause_acts(plan: JudgedPlan, words: Sequence[str]) -> set[str]:
    """What a clause does: it agrees, finds fault, denies, orders, weighs, names, asks, …"""
    if not words:
        return set()
    content = _content(words)
    new = [word for word in content if not plan.has(word)]
    is_named = len(new) < len(content)
    points = _is("point", words[0])
    denials = [place for place, word in enumerate(words) if _denies(word)]
    is_polite = words[0] == "no" and _is("polite", "".join(words[1:2]))
    weighs = not _kinds()["weigh"].isdisjoint(words)
    acts = _true(
        {
            "agrees": _is("agree", words[0]) or is_polite,
            "denies": bool(denials) and (is_named or points or len(words) <= 3),
            "denies else": bool(denials) and not is_named,
            "weighs": weighs,
            "weighs new": weighs and bool(new),
            "custom": bool(new) and (words[0] == "our" or "we" in words[:3]),
            "asks": _is("ask", words[0]),
            "requests": _is("request", words[0])
            and any(_is("requested", word) for word in words[1:3]),
            "says its name": _NAMED.search(" ".join(words)) is not None,
            "of it": words[0] in ("the", "a") and any(plan.has(word) for word in words[1:2]),
        }
    )
    acts |= set(_faults(words, denials, is_named=is_named or points))
    acts |= set(_orders(plan, words, has_new=bool(new)))
    acts |= set(_states(plan, words, has_new=bool(new)))
    if not acts and words[0] in ("i", "i'm", "i've", "it", "there", "now"):
        acts.add("tells")
    return acts


def _faults(words: Sequence[str], denials: Sequence[int], *, is_named: bool) -> Iterator[str]:
    is_bad = (
        not words_that("fault").isdisjoint(words)
        or "too" in words[:-1]
        or any(_is("praise", word) for place in denials for word in words[place + 1 : place + 2])
    )
    if is_bad:
        yield "fault"
        yield "fault named" if is_named else "fault else"


def _orders(plan: JudgedPlan, words: Sequence[str], *, has_new: bool) -> Iterator[str]:
    start = 0
    while start < len(words) - 1 and _is("opening", words[start]):
        start += 1
    verb = words[start]
    if verb not in words_that("verb") and verb != "using":
        return
    if has_new:
        is_other, is_more = _is("other-way", verb), _is("more-work", verb)
        yield "other-way" if is_other else "more work" if is_more else "order"
    if len(words) - start <= 3 and words[-1] in ("it", "them", "that", "this"):
        yield "orders it"
    if stem(verb) in plan.stems:
        yield "same order"


def _states(plan: JudgedPlan, words: Sequence[str], *, has_new: bool) -> Iterator[str]:
    has_to = any(_is("oblige", word) for word in words[1:4]) and "to" in words[2:6]
    if has_to or any(word in ("should", "must") for word in words[1:5]):
        yield "obliges"
        is_planned = any(plan.has(word) for word in words[:3]) or _is("point", words[0])
        yield "obliges planned" if is_planned else "obliges else"
    is_bare = not any(_is("function", word) and not _is("fragment", word) for word in words)
    if has_new and is_bare and len(words) <= 6 and words[0] not in words_that("verb"):
        yield "fragment"
    if has_new and plan.has(words[0]) and not {"is", "are", "was"}.isdisjoint(words[1:5]):
        yield "is new"


# --- what comes together ----------------------------------------------------------------


def _together(plan: JudgedPlan, found: set[str]) -> set[str]:
    acts = {each.removeprefix("some ") for each in found if each.startswith("some ")}
    is_bad, wants = bool(acts & {"fault", "denies"}), bool(acts & _WANTS)
    is_other, is_order = "other" in found, bool(acts & _ORDERS)
    return _true(
        {
            "bad + wants": is_bad and wants,
            "bad + order": is_bad and is_order,
            "bad + fragment": is_bad and "fragment" in acts,
            "bad + weighs": is_bad and "weighs new" in acts,
            "bad + other": is_bad and is_other,
            "fault named + wants": "fault named" in acts and wants,
            "denies + wants": "denies" in acts and wants,
            "wants + other": wants and is_other,
            "requests + other": "requests" in acts and is_other,
            "requests + weighs": "requests" in acts and "weighs" in acts,
            "plan + fragment": plan.is_plan and "fragment" in acts,
            "plan + order": plan.is_plan and is_order,
            "plan + bad": plan.is_plan and is_bad,
            "plan + other": plan.is_plan and is_other,
            "asked + other": plan.asks and is_other,
            "no plan + bad": not plan.is_plan and is_bad,
            "asks, wants nothing": "asks at the end" in found and not wants,
            "agrees + but": {"agrees first", "but"} <= found,
            "takes away": plan.takes_away,
            "takes away + bad": plan.takes_away and is_bad,
            "takes away + wants": plan.takes_away and wants,
            "takes away + undoes": plan.takes_away and "undoes" in found,
            "done + undoes": not plan.is_plan and "undoes" in found,
            "done + wants": plan.is_done and wants,
            "done + bad + wants": plan.is_done and is_bad and wants,
            "asks plainly, wants nothing": "asks plainly" in found and not wants,
            "pauses, wants nothing": "pauses" in found and not wants,
        }
    )


# --- words ------------------------------------------------------------------------------


def _other_words(plan: JudgedPlan, words: Iterable[str]) -> set[str]:
    """The words of an answer that a plan could have in the place of one that it has."""
    known = alternatives_by_word()
    named = {singular(word) for word in words} - plan.singulars - words_that("little")
    return {
        word
        for word in named
        if not plan.groups.isdisjoint(known.get(word, ()))
        # A kind of what was planned is no other thing: a ValueError is an error.
        and not any(len(old) > 2 and word.endswith(old) for old in plan.singulars if old in known)
    }


def _denies(word: str) -> bool:
    return _is("deny", word) or word.endswith("n't")


def _numbers(words: Iterable[str]) -> set[str]:
    found = {number for word in words for number in _NUMBER.findall(word)}
    return found | {_COUNTED[word] for word in words if word in _COUNTED}


def _content(words: Sequence[str]) -> list[str]:
    """The words that say what it is about."""
    kinds = _kinds()
    little, agree = kinds["function"], kinds["agree"]
    return [word for word in words if word not in little and word not in agree]


def _true(found: dict[str, bool]) -> set[str]:
    return {name for name, is_there in found.items() if is_there}


def _is(kind: str, word: str) -> bool:
    return word in _kinds()[kind]


@cache
def _kinds() -> dict[str, frozenset[str]]:
    found: dict[str, list[str]] = {}
    for kind, words in read_table(__file__, "reply_words.tsv", 2):
        found.setdefault(kind, []).extend(words.split())
    return {kind: frozenset(words) for kind, words in found.items()}


@cache
def _weights() -> dict[str, float]:
    return {name: float(weight) for name, weight in read_table(__file__, "reply_weights.tsv", 2)}
