"""Counter-proposals: answers to a plan that name another way, without saying no.

What tells them from a detail that is added ("call it dates.py", "and write a test") is that they
weigh ("a named function is clearer"), place ("blobs belong in S3"), speak of custom ("we use
spaces here"), name something that a plan takes in place of what it has ("SSE" for "WebSockets"),
or find fault with the plan beside an order.  The words are data.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from weft.data_tables import read_table

LONGEST: Final = 40
"""Words of an answer that is looked at: who writes more explains a task."""
LONGEST_FRAGMENT: Final = 8
"""Words of an answer without a verb that names what is wanted."""

_TOKEN: Final = re.compile(r"[a-z0-9_]+(?:[-'’][a-z0-9_]+)*")
_OPENING: Final = re.compile(
    r"^(?:(?:oh|ah|uh|um|hmm*|eh|ugh|god|gosh|hell|wow|whoa|well|hey|wait|actually|honestly|sorry|"
    r"please|just|so|but|rather|i think|i guess|i'?d say|imo|maybe|let'?s|only|simply|you can|"
    r"could you|can you|could we|can we|would you|we could|you could|why not|how about|"
    r"what about)[ ,]+)+",
    re.I,
)
_ADDS: Final = re.compile(
    r"^(?:and|also|then|next|now|once|when|while|after|before|remember|make sure|careful|don'?t "
    r"forget|let me|if|because|since|as|there(?: is| are|'s)|you'?ll (?!have|need)|which|what|how|"
    r"who|where|i'?ll|"
    r"i (?:don'?t|do not) (?:know|care|mind|see|understand))\b",
    re.I,
)
_WEIGHS: Final = re.compile(
    r"(?P<what>.+?) (?:is|are|was|would be|will be|does|do|reads?|looks?|works?|fits?|feels?|"
    r"seems?|will|would|makes?) (?:\w+ ){0,3}?(?P<how>[\w-]+|the job|more sense)(?: .*)?",
    re.I,
)
_COMPARES: Final = re.compile(
    r"(?P<what>.+?) (?:(?:\w+ )?(?:much |far |way |a lot |a bit )?(?:better|worse)|"
    r"(?:is|are|looks?|reads?|feels?|works?|runs?|seems?|would be) "
    r"(?:much |far |way |a lot |a bit )?(?:more \w+|less \w+|(?!serv|us|oth|ov|und|aft|nev)"
    r"\w{3,}[^aeiou\W]er))(?: .*)?",
    re.I,
)
_COVERS: Final = re.compile(
    r"(?P<what>.+?) (?:is|are) (?:all|what|exactly what|how|the way|the one)\b.*|"
    r"(?P<what2>.+?) (?:exists?|generates?|does|do|handles?|covers?|has|have|can|provides?|gives?|"
    r"offers?|already \w+|\w+s) (?:\w+ ){0,3}?(?:it|that|this|them|those|all of (?:it|that|this)|"
    r"all that)\b.*",
    re.I,
)
_OBLIGES: Final = re.compile(
    r"^(?:you(?:'ll| will)? (?:have|need|ought) to|you must|you should|it (?:has|needs) to)\b", re.I
)
_REPLACES: Final = re.compile(r"\b(?:instead|only)$|^only\b|\b(?:instead of|rather than)\b", re.I)
_JUST: Final = re.compile(r"^(?:\w+ )?just (?:use|do|take|call|make|write|go|put|keep)\b", re.I)
_BESIDE: Final = re.compile(
    r"^(?:in|on|at|with|by|of|to|from|under|over|for|after|before|as|and|or|\d+|\w+ly)\b", re.I
)
"""How a detail begins, and nothing that is wanted in the place of something."""
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_PREFERS: Final = re.compile(
    r"(?:i (?:really )?(?:want|prefer|'?d like|would like|'?d rather|'?d want|'?d do|would do|"
    r"would use|'?d use|would go|'?d go)|we (?:want|prefer)|prefer|better|rather|stick (?:with|to)|"
    r"stay (?:with|on|at)|(?:keep|leave)(?! (?:it|them|that|this|these|those)\b)|"
    r"go (?:with|for))\b(?! (?:it|that|this|going|on|up|me)$)",
    re.I,
)
_PLACES: Final = re.compile(
    r"(?P<what>.+?) (?:(?:must|has to|have to|should|needs? to|ought to|may only|can only) "
    r"\w+|belongs?|goes?|lives?|go|stays?)\b"
    r"(?P<where>.*)",
    re.I,
)
_CUSTOM: Final = re.compile(
    r"(?:for \w+ )?(?:we|all our|our|this (?:project|repo|repository|code ?base|package|service|"
    r"team|file|module)|every(?:body|one|thing(?: else)?)|people here|the team|"
    r"the (?:rest|others?)|all (?:the )?others?)\b(?: \w+){0,4}? (?:use|uses|run|runs|do|does|"
    r"write|writes|put|puts|keep|keeps|name|names|follow|follows|collect|collects|are|is|have|has|"
    r"got|want|wants|speak|speaks|live|lives|stick|import|call|store|stores|\w+ed on)\b|"
    r"we (?!could|should|can|need|may|might|will|want|have|'ll)[\w-]+ .*"
    r"\b(?:here|always|everywhere|years ago|by convention)\b|.*\bin this (?:repo|repository|"
    r"project|code ?base|package|team)$",
    re.I,
)
_LIKE_THE_REST: Final = re.compile(
    r"(?:,| )(?:like|as|as in|same as) (?:in )?(?:the (?:rest|others?|other \w+)|everywhere|"
    r"elsewhere|everything else|all (?:the )?others?|always|usual)\b",
    re.I,
)
_OVER: Final = re.compile(
    r"(?P<want>.+?) (?:over|before|instead of|rather than) (?P<than>.+)", re.I
)
_DENIES: Final = re.compile(r"\b(?:not|never|no|too|without)\b|n't\b", re.I)
_PREPOSITION: Final = re.compile(
    r"^ ?(?:\w+ )?(?:in|into|on|onto|under|through|to|at|behind|next to|inside|via|with|by)\b", re.I
)
_TELLS: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|had|i|you|it|they|we)\b|'(?:s|m|re)\b", re.I
)
"""What a clause has that states something, and no fragment that names what is wanted."""
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|would|can|could|get|gets|got|makes?|means?|needs?|"
    r"takes?|goes|does|do|did|\w{3,}(?:ed|[^s\W]s))\b",
    re.I,
)
"""What may be the verb of a sentence: its forms are many, and a list of all is not needed."""
_WITH: Final = re.compile(r"\b(?:with|first|too|also|again|now)\b", re.I)
_DETAIL: Final = re.compile(
    r"\b(?:is|are) (?:called|named|at|in|from)\b|\b(?:have|has|got) [\w.-]+ v?\d", re.I
)
"""A detail of what was planned."""
_PRAISES: Final = re.compile(
    r"\b(?:nice|great|love|perfect|thanks?|thank you|good (?:call|idea|point)|go (?:for it|ahead)|"
    r"no objections?|you'?re the best)\b",
    re.I,
)


def find_counter(clauses: list[str], plan: str) -> tuple[str, set[str]] | None:
    """What is wanted in the place of a plan, and the words of the plan that it turns down; None
    where an answer names no other way.
    """
    text = " ".join(clauses)
    if not 0 < len(text.split()) <= LONGEST or _PRAISES.search(text):
        return None
    reply = _Reading(_tokens(plan))
    for clause in clauses:
        reply.take(clause)
    return reply.result()


class _Reading:
    """What was made of the clauses so far."""

    def __init__(self, planned: set[str]) -> None:
        self._planned = planned
        self._wanted: list[str] = []
        self._orders: list[str] = []
        self._fragments: list[str] = []
        self._down: set[str] = set()
        self._has_fault = False
        self._has_reason = False
        """Something is said against the plan, or for the answer, without naming either."""

    def take(self, clause: str) -> None:
        """One more clause."""
        plain = _OPENING.sub("", clause).strip()
        words = _TOKEN.findall(plain.lower())
        if not words or _DETAIL.search(plain):
            return
        is_added = bool(_ADDS.match(plain)) or bool({words[0], words[-1]} & words_that("added"))
        if is_added and not _others(words, self._planned):
            return
        if self._names_other_way(plain, words) or _JUST.match(clause):
            self._wanted.append(clause)
            return
        if self._finds_fault(plain, words):
            self._has_fault = True
            self._down |= set(words) & self._planned
        elif words[0] in words_that("verb"):
            self._take_order(clause, plain, words[1:])
        elif self._is_new(words) and not _TELLS.search(plain):
            self._fragments.append(clause)
        elif words[0] in ("we", "this", "that", "that's", "people"):
            self._has_reason = True

    def _take_order(self, clause: str, plain: str, words: list[str]) -> None:
        verb = plain.lower().split()[0]
        named = [
            word
            for word in words
            if word not in words_that("pronoun") and word not in words_that("little")
        ]
        if all(singular(word) in self._planned for word in named):
            return
        # The same act done in another way is no detail of it.
        is_same_act = verb in self._planned and words[0] not in words_that("pronoun")
        (self._wanted if is_same_act and not _WITH.search(plain) else self._orders).append(clause)

    def result(self) -> tuple[str, set[str]] | None:
        """What it comes to."""
        if self._wanted:
            return ", ".join([*self._wanted, *self._orders]), self._down
        short = [each for each in self._fragments if len(each.split()) <= LONGEST_FRAGMENT]
        named = [each for each in short if not _BESIDE.match(each)]
        if not self._has_fault and not (self._has_reason and named):
            return None
        wanted = self._orders or short
        return (", ".join(wanted), self._down) if wanted else None

    def _is_new(self, words: list[str]) -> bool:
        """Whether a clause names something that the plan does not, and is no remark on it."""
        return words[0] not in words_that("pronoun") and any(
            singular(word) not in self._planned and word not in words_that("little")
            for word in words
        )

    def _names_other_way(self, plain: str, words: list[str]) -> bool:
        others = _others(words, self._planned)
        if others:
            self._down |= others
            return True
        if self._is_weighed(plain) or self._is_placed(plain) or self._is_compared(plain):
            return True
        if self._has_other_number(words) or (_OBLIGES.match(plain) and self._is_new(words[2:])):
            return True
        if (
            _REPLACES.search(plain)
            and words[0] not in words_that("pronoun")
            and self._is_new(words)
        ):
            return True
        if _PREFERS.match(plain) and self._is_new(words[1:] or words):
            return True
        over = _OVER.fullmatch(plain)
        if over is not None and _tokens(over["than"]) & self._planned:
            self._down |= _tokens(over["than"]) & self._planned
            return True
        is_custom = bool(_CUSTOM.match(plain) or _LIKE_THE_REST.search(plain))
        is_custom = is_custom or (words[0] == "we" and bool({*words[1:2]} & self._planned))
        return is_custom and self._is_new(words)

    def _is_weighed(self, plain: str) -> bool:
        """Whether something that the plan does not have is called good enough, or better."""
        found = _WEIGHS.fullmatch(plain)
        if found is None:
            return False
        what = _TOKEN.findall(found["what"].lower())
        good = {"job", "sense", "do", *words_that("better")}
        said = set(_TOKEN.findall(plain.lower()[len(found["what"]) :]))
        is_other = bool(what) and what[0] not in words_that("pronoun")
        is_other = is_other and not any(
            word.endswith(plan) for word in map(singular, what) for plan in self._planned
        )
        is_other = is_other and not (_NUMBER.fullmatch(what[0]) or what[0] in words_that("count"))
        return is_other and bool(said & good) and not _DENIES.search(found["what"])

    def _is_compared(self, plain: str) -> bool:
        """Whether something else is better, or does the work."""
        for pattern in (_COMPARES, _COVERS):
            found = pattern.fullmatch(plain)
            if found is None:
                continue
            what = next(word for word in found.groups() if word).lower()
            first = _TOKEN.findall(what)[:1]
            is_other = not first or first[0] not in {
                *words_that("pronoun"),
                "i",
                "we",
                *words_that("verb"),
            }
            if is_other and _tokens(what) - self._planned and not _DENIES.search(what):
                return True
        return False

    def _has_other_number(self, words: list[str]) -> bool:
        """Whether an answer names a number at its beginning, and the plan has another one."""
        planned = {word for word in self._planned if _NUMBER.fullmatch(word)}
        named = {word for word in words[:3] if _NUMBER.fullmatch(word)}
        # 2.4.1 is a kind of 2.4.
        is_other = bool(planned) and bool(named) and not planned & named
        self._down |= planned if is_other else set()
        return is_other

    def _is_placed(self, plain: str) -> bool:
        """Whether it is said where something belongs, and that is not where the plan puts it."""
        found = _PLACES.fullmatch(plain)
        if found is None or _DENIES.search(plain):
            return False
        what, where = _tokens(found["what"]), _tokens(found["where"])
        is_about_it = bool(what & self._planned) or (
            plain.lower().split()[0] in words_that("pronoun")
            and _PREPOSITION.match(found["where"]) is not None
        )
        return is_about_it and bool(where - self._planned) and len(where) <= 8

    def _finds_fault(self, plain: str, words: list[str]) -> bool:
        if words[0] in words_that("verb"):
            return False
        subject = {*map(singular, words[:3])} & self._planned
        is_named = bool({*map(singular, words)} & self._planned) or words[0] in words_that(
            "pronoun"
        )
        is_bad = bool(set(words) & words_that("fault")) and not set(words) & words_that("better")
        # What the user cannot do is no fault of the plan.
        is_denied = is_named and words[0] != "i" and bool(_DENIES.search(plain))
        # Who says something about a thing in a plan, and orders another one, finds fault with it.
        is_remark = bool(subject) and (len(words) == 2 or _VERB.search(plain) is not None)
        is_remark = is_remark and words[-1] not in ("please", *subject)
        is_refused = words[-1] in ("no", "nope", "nah") and len(words) <= 2
        return (
            is_bad
            or is_denied
            or is_refused
            or (is_remark and not set(words) & words_that("better"))
        )


def _others(words: list[str], planned: set[str]) -> set[str]:
    """The words of a plan in whose place an answer names another one."""
    named = {singular(word) for word in words} - planned - words_that("little")
    return {
        old
        for group in _alternatives()
        for new in group & named
        for old in group & planned
        # A kind of what was planned is no other thing: a ValueError is an error.
        if not new.endswith(old)
    }


def _tokens(text: str) -> set[str]:
    """The words of a text that say something, without their plural."""
    return {
        singular(word) for word in _TOKEN.findall(text.lower()) if word not in words_that("little")
    }


def singular(word: str) -> str:
    """A word without the ending of its plural."""
    is_plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if is_plural else word


@cache
def alternatives_by_word() -> dict[str, frozenset[int]]:
    """A word → the groups of things, of which a plan takes one, that it belongs to."""
    found: dict[str, set[int]] = {}
    for number, group in enumerate(_alternatives()):
        for word in group:
            found.setdefault(word, set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


@cache
def _alternatives() -> tuple[frozenset[str], ...]:
    rows = read_table(__file__, "alternatives.tsv", 2)
    return tuple(frozenset(map(singular, words.split())) for _, words in rows)


@cache
def words_that(kind: str) -> frozenset[str]:
    """The words of a kind in the table: `fault`, `better`, `verb`, …"""
    rows = read_table(__file__, "counter_words.tsv", 2)
    return frozenset(word for name, words in rows if name == kind for word in words.split())
