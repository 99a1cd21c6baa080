"""Corrections: a user who answers a proposal with "no, not that; use X", or only with "X".

An answer is judged in windows of sentences, so that a correction is found in the middle of a long
message.  What was pasted (code, logs, mails) is not the user's word.  A window is judged by its
features (`reply_score`), and by the rules for what is clear (`rules`); what is wanted is taken from
the rules where they found it, else from its clauses.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from weft.decisions.corrections.foreign_words import in_english
from weft.decisions.corrections.reply_score import (
    JudgedPlan,
    ReplyWindow,
    clauses_of,
    score,
    signs,
    wanted_clauses,
)
from weft.decisions.corrections.rules import accepts, clear_correction, gist, is_plan, plans_of
from weft.decisions.entry import shortened
from weft.decisions.words import words_of

LONGEST_REPLY: Final = 2_500
"""Characters of an answer that is looked at: a longer one is a task, not a correction."""
SHORT_REPLY: Final = 3
"""Sentences of an answer that is judged as a whole."""
WINDOW: Final = 2
"""Sentences that are judged together in a longer one."""
MOST_WINDOWS: Final = 3
"""Windows of a longer one that are judged: those with most signs."""
LEAST_SCORE: Final = 0.35
"""What makes a correction: chosen so that less than one of twenty other answers is taken for one,
each table of them judged by weights that were found on the others."""
RULES_COUNT: Final = 1.0
"""What it counts that the rules find one, too."""
FEW_WORDS: Final = 6
FEW_WORDS_COUNT: Final = 2.2
"""What it counts in an answer of a few words, which has few features."""

_FENCED: Final = re.compile(r"^```.*?(?:^```|\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_PASTED: Final = re.compile(
    r"^\s*(?:>|\$ |at |File \"|Traceback|\d{4}-\d\d-\d\d[ T]\d\d:|"
    r"\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG)\b)|\w{0,40}(?:Error|Exception): |\berror: |"
    r"^(?: {4}|\t)|\bdef \w+\(|[{};]\s*$|^\w+\([^)]*\)$"
)
"""A line that a program or another person wrote."""
_THANKS: Final = re.compile(
    r"(?:oh |ah |ok(?:ay)?,? |hi,? |hey,? )*"
    r"(?:thanks?|thank you|thx|ty|great|good|nice|cool|perfect|awesome|"
    r"looks (?:good|great|nice)|well done|love)\b(?!.*\b(?:but|not|only|except|though)\b)"
    r"(?: [\w,'-]+){0,7}[.!]*",
    re.I,
)
"""A sentence of thanks or praise before what is said."""
_DATA: Final = re.compile(r"\s*[\[{]\s*[\"'\[{\]}\d-]")
"""The beginning of JSON, and of what looks like it."""
_STANDING: Final = re.compile(r"\b(?:never|always|everywhere)\b", re.I)


class UserCorrection(msgspec.Struct, frozen=True, kw_only=True):
    """What a user turned down, and what they want."""

    rejected: str
    """What was proposed, in one line."""
    chosen: str
    """What is wanted instead; empty where it was not said."""
    quote: str
    """The user's own words."""
    is_standing: bool = False
    """They said that it holds always, or never."""


def find_correction(proposal: str, reply: str) -> UserCorrection | None:
    """The correction in a reply to a proposal; None where it corrects nothing."""
    if not proposal.strip() or not reply.strip() or len(reply) > LONGEST_REPLY:
        return None
    if _DATA.match(reply):
        return None
    plan = judged_plan(proposal)
    parts = windows(reply)
    if not parts or parts[0].is_taken:
        return None
    likely = _likeliest(plan, parts)
    if not likely:
        return None
    total, best = max((score(plan, each), -n) for n, each in enumerate(likely))
    text, english = likely[-best].text, likely[-best].english
    if accepts(clauses_of(english), english):
        return None
    # The rules cost more than the features: asked of one window only, and where they matter.
    counts = rules_count(english)
    clear = is_clear(proposal, english) if total + counts > LEAST_SCORE else None
    if total + (counts if clear else 0.0) <= LEAST_SCORE:
        return None
    if clear is None or english != text:
        clear = ", ".join(wanted_clauses(plan, text)), set(words_of(text))
    wanted, words = clear
    return UserCorrection(
        rejected=shortened(gist(proposal, words)),
        chosen=shortened(wanted.strip(" ,")),
        quote=shortened(text, 600),
        is_standing=_STANDING.search(text) is not None,
    )


def is_clear(proposal: str, english: str) -> tuple[str, set[str]] | None:
    """What the rules find in an answer."""
    return clear_correction(in_english(proposal), english)


def rules_count(text: str) -> float:
    """What it counts that the rules find a correction in a text."""
    return FEW_WORDS_COUNT if len(text.split()) <= FEW_WORDS else RULES_COUNT


def judged_plan(proposal: str) -> JudgedPlan:
    """What an answer is compared with: the sentences that propose something, or all of it."""
    english = in_english(proposal)
    text = " ".join(plans_of(english)) or english
    return JudgedPlan(text, is_plan=is_plan(english), asks="?" in english)


def windows(reply: str) -> list[ReplyWindow]:
    """The parts of an answer that are judged."""
    own = _own_words(reply)
    said = [each.strip() for each in _SENTENCE.split(own) if each and each.strip()]
    english = [in_english(each) for each in said]
    opening = "".join(english[:1])
    while len(said) > 1 and _THANKS.fullmatch(english[0]) is not None:
        said, english = said[1:], english[1:]
    is_part = len(said) > SHORT_REPLY
    is_taken = is_part and any(accepts(clauses_of(each), each) for each in english)
    size = WINDOW if is_part else SHORT_REPLY
    starts = range(len(said) - WINDOW + 1) if is_part else range(min(1, len(said)))
    return [
        ReplyWindow(
            text=" ".join(" ".join(said[start : start + size]).split()),
            english=" ".join(" ".join(english[start : start + size]).split()),
            opening=opening,
            is_part=is_part,
            is_pasted=own != reply,
            is_taken=is_taken,
        )
        for start in starts
    ]


def _likeliest(plan: JudgedPlan, parts: list[ReplyWindow]) -> list[ReplyWindow]:
    """The windows that are worth a look."""
    if len(parts) <= MOST_WINDOWS:
        return parts
    counted = sorted(((-signs(plan, each.english), n) for n, each in enumerate(parts)))
    return [parts[n] for count, n in counted[:MOST_WINDOWS] if count]


def _own_words(reply: str) -> str:
    """An answer without what was pasted into it."""
    lines = _FENCED.sub("\n", reply).split("\n")
    if len(lines) == 1:
        return reply
    return "\n".join(line for line in lines if _PASTED.search(line) is None)
