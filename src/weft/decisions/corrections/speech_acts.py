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
        r"(?:do|have|can|could|should|shall|would|don'?t|doesn'?t|didn'?t|isn'?t|aren'?t|won'?t) "
        r"(?:i|we|you|they|it|there|that|this)\b)",
        re.I,
    ),
    # Not now: that says nothing about what was planned.
    "pauses": re.compile(
        r"\b(?:hold on|hang on|not yet|(?:one|a|just a) (?:moment|sec|second|minute)|"
        r"wait(?: a|,|$)|give me|let me|before you (?:go|start|begin|do)|"
        r"i(?:'ll| will| need to| have to| want to|'d like to) "
        r"(?:send|look|check|ask|push|discuss|think|talk|see|read|finish|come|test|try|tell)|"
        r"tomorrow|tonight|this (?:afternoon|evening|week)|next (?:week|sprint|month|time)|"
        r"later|after lunch|some day|"
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
        r"\b(?:undo|revert|restore|reopen|roll(?:ed)? (?:\S+ ){0,2}back|back (?:to|in|into|out)|"
        r"hands off|(?:leave|keep) (?:\S+ ){1,4}(?:alone|as (?:it|they|is|was))|like before|"
        r"(?:put|bring|change|move|turn|give|switch|set) (?:\S+ ){0,4}back|"
        r"(?:take|leave|keep) (?:\S+ ){1,3}out|take out|"
        r"(?:remove|drop|delete|lose) (?:the|that|those|these|this|it|them|all)|"
        r"must stay|has to stay|have to stay|stays?)\b",
        re.I,
    ),
    # They had said so.
    "reminds": re.compile(
        r"\b(?:i|we) (?:said|asked|told|wanted|agreed|decided|meant|only asked|just wanted)\b|"
        r"\b(?:did ?n'?t|didnt|did not|never|\w+body|no one|who) (?:ask(?:ed)?|told|want(?:ed)?)\b|"
        r"\bnot what (?:i|we)\b|\bsupposed to\b|\bout of scope\b|\bagain[.!]|\bas (?:i|we) said\b",
        re.I,
    ),
    # A rule of the project.
    "rules": re.compile(
        r"\b(?:never|always|must ?n[o']?t|may not|not allowed|banned|forbidden|on purpose|by "
        r"convention|policy|everywhere else|in (?:this|our) \w+|not an option|(?:we|you|i) "
        r"(?:do ?n'?t|dont|do not|never|only|always|use|keep|can'?t|cannot) \w+|"
        r"(?:stays?|remains?|must be|has to be|have to be|needs? to be))\b",
        re.I,
    ),
    # Something does it already.
    "exists": re.compile(
        r"\b(?:already (?:have|has|got|exists?|there|in|a|does|do|comes?)|there(?:'?s| is| are) "
        r"(?:already|an?|our|one)|built[- ]in|stdlib|standard library|comes with|"
        r"(?:we|you) (?:have|'ve got|got) (?:an?|our|one|the)\b|for a reason|for (?:that|this)$|"
        r"can do (?:that|this|it)\b|(?:has|have) (?:its own|their own|\w+_\w+)|reinvent)",
        re.I,
    ),
    # Less, or something plainer, is enough.
    "suffices": re.compile(
        r"\b(?:enough|plenty|will do\b|does (?:it|that|the job|this)|do the (?:job|trick)|"
        r"suffic\w+|all (?:you|we|it|i) needs?|works? (?:fine|too|as well|just)|is fine|simpler|"
        r"simplest|no need (?:for|to)|not needed|isn'?t needed|too (?:much|big|heavy|complex|many|"
        r"long|slow|short|early|late)|overkill|a bit (?:much|heavy)|without)\b",
        re.I,
    ),
    # What a program wrote, in one line.
    "prints": re.compile(
        r"\b(?:E(?:RR|rr|RROR)\w*[:! ]|[A-Z]{2,}\d{3,}:|\w+(?:Error|Exception)\b|\*\*\*|error\[|"
        r"[Ff]ailed (?:to|with)|[Cc]annot (?:read|find)|No such|not found|refused|"
        r"npm ERR|Traceback|exit (?:code|status)|\d+ (?:passed|failed))|\b\w+\.\w{1,4}:\d+",
    ),
    # What was seen: a report, and no order.
    "reports what is seen": re.compile(
        r"\b(?:i(?:'m| am)? (?:still |just |now )*(?:get|got|see|saw|have|tried|getting|seeing)|"
        r"still (?:\w+ )?(?:the same|fails?|red|flaky|broken|there|shows?|see|get|not)|"
        r"(?:shows?|gives?|says?|returns?) (?:nothing|me|an?|only|\d)|"
        r"(?:does ?n'?t|doesnt|did ?n'?t|won'?t|isn'?t) "
        r"(?:work|help|show|do anything|close|open|match)|"
        r"is (?:gone|green|red|empty|invisible|missing|happy|failing|broken|down)|"
        r"(?:went|goes) (?:up|down)|works (?:now|for|on|here)|it works|^works$)",
        re.I,
    ),
    # Joy, and surprise that is none.
    "cheers": re.compile(
        r"\b(?:amazing|awesome|impressive|wow|whoa|haha|lol|hehe|love it|beautiful|brilliant|"
        r"phew|yay|well done|good (?:job|work|catch|find|call)|nice (?:find|catch|job|work|one)|"
        r"great (?:find|catch|job|work)|much better|so much (?:better|simpler|faster)|"
        r"i like|reads (?:well|great)|looks (?:good|great|nice|right|fine))\b|[:;]-?[)D]|"
        r"[\U0001f389\U0001f44d\U0001f64f\U0001f44c\u2764]|:\+1:|:ok",
        re.I,
    ),
    # The next thing that is asked for.
    "goes on": re.compile(
        r"\b(?:next(?: thing| ticket| step| up)?[:,]|(?:move|moving|pass) on|one more thing|"
        r"now (?:do|add|the|let'?s|please|rename|write|make|can|also|implement)|"
        r"the same (?:for|in|with|thing)|let'?s (?:also|now|move)|after that|then (?:do|let))\b",
        re.I,
    ),
}
_OFFERS: Final = re.compile(
    r"\?|\b(?:either|(?:two|three|several) (?:ways|options)|i (?:can|could) also|options:)\b", re.I
)
_ACTS_ITSELF: Final = re.compile(
    r"\b(?:i(?:'ve|'ll|'m|'d| have| will| am| would)?|let me|plan:?)\s(?!(?:fixed|found|"
    r"finished|done|need|think|know|see|looked|checked|can|could|couldn|assume|cannot|don|not)\b"
    r"(?! (?:in|an?|it as|the)\b))\w+",
    re.I,
)
"""A model that says what it does, did or will do."""


def kind_of_turn(proposal: str) -> str:
    """What a model did in the turn that is answered: it offered a choice, acted, or told."""
    if _OFFERS.search(proposal) is not None:
        return "offered"
    return "acted" if _ACTS_ITSELF.search(proposal) is not None else "told"


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
