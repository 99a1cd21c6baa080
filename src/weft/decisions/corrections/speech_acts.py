"""What somebody does with an answer, whatever it is about: they ask, wait, warn, excuse, undo, say
what a plan is good for, or name something that only a program has.

None of it says by itself that an answer corrects a plan; `reply_score` weighs it with the rest.
"""

from __future__ import annotations

import re
from typing import Final

CAUTIONS: Final = re.compile(
    r"\b(?:don'?t|do not|never|no need to|not to)(?: \w+ly)? (?:you )?"
    r"(?:forget|worry|expect|be|hesitate|hurry|spend|wait|mind|panic|bother|rush|ask|think|know|"
    r"care|see|understand|remember|need)\b",
    re.I,
)
"""A ban on what somebody thinks or feels is none on what was planned."""
TAKES_AWAY: Final = re.compile(
    r"\b(?:drop|remove|delete|stop|avoid|revert|undo|undone|dropped|removed|deleted|get rid of|"
    r"won'?t|will not|not|never|leave|without|replace|replaced|switch from|clean up|disable)\b",
    re.I,
)
"""A plan that ends something: who finds fault with that agrees."""

_ACTS: Final = {
    # A question, with its sign or without.
    "asks plainly": re.compile(
        r"(?:^|[.!;,]\s+|\n)(?:and |but |so |then |or |hm+,? |oh,? )*"
        r"(?:(?:does|is|are|was|were|did|will|has|which|what|who|where|when|how)\b|"
        r"(?:do|have|can|could|should|shall|would) (?:i|we|you|they|it|there)\b)",
        re.I,
    ),
    # Not now: that says nothing about what was planned.
    "pauses": re.compile(
        r"\b(?:hold on|hang on|not yet|(?:one|a|just a) (?:moment|sec|second|minute)|"
        r"wait(?: a|,|$)|give me|let me|before you (?:go|start|begin|do)|"
        r"i(?:'ll| will| need to| have to| want to|'d like to) "
        r"(?:send|look|check|ask|push|discuss|think|talk|see|read|finish|come)|tomorrow|"
        r"(?:until|on) (?:mon|tues|wednes|thurs|fri|satur|sun)day)\b",
        re.I,
    ),
    # What was planned is good for something, or what it ends was bad.
    "helps": re.compile(
        r"\b(?:this|that|it|which|they)(?:'?ll| will| would| should| does)? "
        r"(?:really |certainly )?(?:helps?|fix(?:es)?|solves?|explains?|saves?|made|"
        r"makes? (?:it|this|that|things) (?:\w+ )?(?:easier|better|faster|clearer))\b|"
        r"\bwas (?:only |so |a |an |really |just )*"
        r"(?:bad|slow|noise|noisy|ugly|wrong|mess|pain|trouble|broken)\b",
        re.I,
    ),
    # An order that belongs to the plan, or to what comes after it.
    "next": re.compile(
        r"^(?:ok(?:ay)?,? |please |and |then |great,? |so )*"
        r"(?:start|begin|go on|continue|tell|show|send|give|let|ping|remind|explain|mind|note|"
        r"look|see|document|mention|count|check)\b",
        re.I,
    ),
    # What is said against a plan does not count.
    "excuses": re.compile(
        r"\b(?:but|though|although|anyway),? (?:ok|okay|fine|yes|sure|good|great|go|do it|why not|"
        r"who cares|(?:that|it|this)(?:'?s| is| will be)? (?:ok|okay|fine|good|enough|only|"
        r"doesn'?t matter|does not matter|won'?t matter)|i (?:like|love|don'?t mind)|"
        r"let'?s (?:see|try|go)|you only)\b|\bwhy not$",
        re.I,
    ),
    # What was there before comes back.
    "undoes": re.compile(
        r"\b(?:undo|revert|restore|back (?:to|in|into|out)|hands off|"
        r"(?:put|bring|change|move|turn|give) (?:\S+ ){1,4}back|"
        r"(?:take|leave|keep) (?:\S+ ){1,3}out|"
        r"(?:remove|drop|delete|lose) (?:the|that|those|these|this|it|them|all)|"
        r"must stay|has to stay|have to stay|stays?)\b",
        re.I,
    ),
}
_CODE: Final = re.compile(
    r"(?P<flag>(?<![\w-])--?[a-z][\w-]+)|"
    r"(?P<path>(?:~|[\w.-]*)/[\w./~-]+|"
    r"[\w-]+\.(?:py|ts|js|tsx|vue|json|toml|ya?ml|md|rs|go|sql|txt|cfg|conf|html|css)\b)|"
    r"(?P<address>\b\d+\.\d+\.\d+(?:\.\d+)?\b)|"
    r"(?P<call>\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\()|(?P<dotted>\b[A-Za-z_]\w+\.[A-Za-z_]\w+)|"
    r"(?P<camel>\b[A-Za-z]+[a-z0-9][A-Z]\w*)|(?P<snake>\b[A-Za-z]+_\w+)|"
    r"(?P<quoted>`[\w ]{1,80}`)"
)


def acts_of(text: str) -> set[str]:
    """What a text does."""
    return {name for name, pattern in _ACTS.items() if pattern.search(text) is not None}


def codes_of(text: str) -> set[tuple[str, str]]:
    """What only a program has in a text, each with its kind."""
    return {(found.lastgroup or "", found.group().lower()) for found in _CODE.finditer(text)}
