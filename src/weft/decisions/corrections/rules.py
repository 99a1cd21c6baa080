"""Rules for clear corrections: "no, not that; use X".

The answer is cut into clauses.  It corrects if one of them turns something down (and, where that
alone could mean anything, names what the proposal is about) and another says what is wanted.  Told
apart are polite forms ("no problem"), agreement, questions and reports of errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from weft.decisions.words import words_of

LONGEST_REPLY: Final = 1_200
"""Characters of a text that is looked at."""
SHORT_ORDER: Final = 12
"""Words of an order that corrects by itself, without a no."""
LONGEST_REMARK: Final = 12
"""Words of a clause that finds fault with a proposal."""

_AGREES: Final = re.compile(
    r"(?:oh |ah )?(?:yes|yep|yeah|yup|ok|okay|sure|great|perfect|fine|sounds good|good|cool|nice|"
    r"thanks?|thank you|go ahead|go on|looks good|lgtm|exactly|right|correct|agreed|"
    r"i (?:really )?like (?:it|that)|alright|go for it|fair enough|makes sense|no objections?)\b",
    re.I,
)
_ACCEPTS: Final = re.compile(
    r"(?:(?:yes|ok(?:ay)?|sure|well|then|and|so|please|just|cool|great|all)[, ]+)*(?:"
    r"(?:do|try) (?:it|that|this|so)|go(?: ahead| for it| on)?|proceed|carry on|"
    r"please do|"
    r"(?:that|this|it|which|they|these|those)(?:'s|'re| is| are|'ll be| will be| would be)"
    r"(?: all| quite| totally| perfectly| exactly| absolutely)?"
    r" (?:right|fine|ok(?:ay)?|good|great|safe|correct|true|perfect|expected|what i'?d do)|"
    r"(?:that |it |this )?(?:makes|made)(?: \w+)? sense|"
    r"(?:that |it |this )?sounds (?:good|great|fine|right|reasonable|like a plan)|"
    r"(?:that|this|it)(?:'ll| will| should) (?:do|work)|"
    r"(?:no|not an?) (?:problem|objections?|complaints?|worries|issue|concerns?)|"
    r"i(?:'d| would)? (?:totally |fully )?(?:agree|like (?:it|that|this)|love (?:it|that))|"
    r"i (?:don'?t|do not) (?:care|mind)|i'?m (?:fine|ok(?:ay)?|happy) with (?:it|that|this)|"
    r"\+1|i (?:also )?think so(?: too)?|"
    r"(?:i )?(?:would|'d) have done (?:it |that )?the same(?: way)?|that'?s what i would do|"
    r"i thought the same|works for me|fair enough|(?:let'?s )?(?:try it|wait) and see|"
    r"fine (?:by|with) me|(?:whatever|whichever)\b.*|lgtm|up to you"
    r")(?: (?:then|now|for now|please|anyway|too|here|with me|by me|from me|to me|either way))*",
    re.I,
)
"""A clause that takes a proposal as it is."""
_ALSO: Final = re.compile(r"(?:(?:please|and|then|ok(?:ay)?|now|you can),? )*also\b", re.I)
_SIGNS: Final = " .,;!?-–—"
_EXCEPTS: Final = re.compile(r"\b(?:but|except|though|however|only if|unless)\b", re.I)
_POLITE: Final = re.compile(
    r"no (?:idea|problem|worries|need|rush|thanks|changes|more|objection|doubt)\b|no,? thank|"
    r"never ?mind|let me (?:think|check|see|look|know)|nothing\b|"
    r"not (?:yet|sure|bad|now|at all|really|necessarily)\b|"
    r"why not\b|don'?t (?:know|understand|see|mind|worry|forget|remember|bother|push)|"
    r"do not (?:know|understand|see|mind|worry|forget|remember)|"
    r"i (?:don'?t|do not) (?:know|understand|see|mind|remember|think so)",
    re.I,
)
_REPORT: Final = re.compile(
    r"\b\w*(?:Error|Exception):|\berror:|traceback|fails? with\b|stack trace|"
    r"\balready (?:taken|in use|running)\b|"
    r"^i(?:'ve| have)? (?:just )?(?:pushed|merged|rebased|deployed|updated|released)\b",
    re.I,
)
_BARE: Final = re.compile(
    r"(?:hmm+,? |uh,? |oh |well,? |please )?"
    r"(?:no|nope|nah|no no|stop|wrong|don'?t|do not|undo(?: that| it)?|"
    r"revert(?: that| it| this)?|absolutely not|definitely not|no way|we can'?t|we cannot|"
    r"not (?:that|this|like that|like this)|hold on|wait)",
    re.I,
)
_JUDGED: Final = re.compile(
    r"(?:that'?s|that is|this is|it'?s|it is)? ?(?:the |a |far |much |way )*"
    r"(?:wrong(?: \w+)?|(?:\w+ )?too \w+|overkill|over-?engineered|nonsense|bad idea|yagni|"
    r"not (?:a )?(?:good|great)(?: idea)?|not what i (?:meant|want(?:ed)?|asked(?: for)?))|"
    r"(?:that|this|it) (?:isn'?t|is not) (?:what i (?:meant|want(?:ed)?|asked(?: for)?)|right|it)",
    re.I,
)
_TURNS_DOWN: Final = re.compile(
    r"(?:please |and |but |actually,? |again,? )*(?:"
    r"(?:don'?t|do not|never|stop|avoid|no more) (?P<order>.+)|"
    r"(?:we|i|you|they|one) (?:really )?(?:don'?t|do not|can'?t|cannot|never|shouldn'?t|should not|"
    r"won'?t|must ?n[o']t|decided against|(?:'d|would) rather not) (?P<habit>.+)|"
    r"(?:we |you |i |let'?s )?(?:can |could )?(?:do|live|go|get by|manage) without (?P<without>.+)|"
    r"(?:skip|forget(?: about)?|no need for|leave out|ditch|scrap) (?P<skip>.+)|"
    r"i'?d rather not (?P<rather>.+)|let'?s not (?P<lets>.+)|i said no (?P<said>.+)|"
    r"(?:absolutely |definitely |certainly )?(?:no|not|nope|nah) (?P<thing>.+)|"
    r"(?:undo|revert|remove|drop|get rid of) (?P<gone>.+)"
    r")",
    re.I,
)
_IS_BAD: Final = re.compile(
    r"(?P<what>.+?) (?:is|are|was|were|gets?|got|has been|have been|looks?|feels?|seems?) "
    r"(?:.*\b)?(?:out|no-?go|off the table|overkill|too|deprecated|dead|gone|legacy|wiped|slow|"
    r"broken|bad|ugly|evil|dangerous|unsafe|insecure|fragile|flaky|wrong|heavy|banned|forbidden|"
    r"obsolete|unmaintained|expensive|confusing|not|never)\b.*|"
    r"(?P<what2>.+?) (?:breaks?|will|blows?|shouldn'?t|should not|can'?t|cannot|won'?t|don'?t|"
    r"do(?:es)? not|doesn'?t|belongs? elsewhere|hides?|leaks?|hurts?|fails?|conflicts?|costs?|adds|"
    r"scares?|annoys?|confuses?)\b ?.*",
    re.I,
)
_CHANGES_COURSE: Final = re.compile(
    r"(?:no,? |actually,? |please |just |i'?d |i would |let'?s |we |hmm,? )*"
    r"(?:(?:keep|stay|leave)(?! (?:going|me|up|on|in mind|an eye|posted|working|trying|out|"
    r"(?:it|them|this|that) (?:under|below|within|short|small|simple|brief|clean|readable)))\b.+|"
    r"(?:rather|better|prefer(?:ably)?|i'?d prefer|i would prefer)\b.+|"
    r"(?:it|that|this|they) (?:has to|have to|must|should|needs? to)? ?"
    r"(?:stays?|remains?|keeps?)\b.+|"
    r"only \w+ .+|\w+ (?:just|only) (?:the|a|an|those|these|what) .+|"
    r"(?!(?:now|then|also|and|what|how|why|is|are|can|could|does|do you)\b)\w+.*"
    r"\b(?:instead|only))",
    re.I,
)
_BETTER: Final = re.compile(
    r"(?P<want>.*?)(?:\binstead of|\brather than|\bin place of) (?P<than>.+)|"
    r"(?:actually,? )?(?:i |i'?d |i would |we )?prefer (?P<want2>.+?) (?:over|to) (?P<than2>.+)",
    re.I,
)
_WANTS: Final = re.compile(
    r"(?:and |so |just |only |please |then |but |rather |actually |always |we |let'?s |"
    r"i want (?:you to )?|i'?d prefer |i would prefer |better |simply |it |they |that |you )*"
    r"(?:use|uses|take|keep|stay|go with|go back|go through|go via|switch|prefer|"
    r"make(?! sure)|put|move|call|do|"
    r"write|install|pass|link|open|fix|wait(?! (?:a|for me|until i))|subscribe|run|let|add|rewrite|"
    r"leave|ship|want|belongs?|have|already have|should|must|needs? to|read|return|raise|try|reuse|"
    r"extend|replace|set|store|name|rename|inject|pin|import|format|bind|hard-?code|list|copy|build|"
    r"split|merge|inline|wrap|throw|catch|check|validate|parse|convert|map|sort|filter|group|query|"
    r"select|insert|update|delete|remove|drop|create|define|declare|export|expose|hide|encrypt|"
    r"hash|sign|cache|load|fetch|send|post|emit|publish|log|print|schedule|queue|lock|retry|limit|"
    r"cap|round|compute|calculate|count|measure|test|cover|mock|document|describe|explain|mark|tag|"
    r"turn|start|stop|configure|enable|disable|depend|rely|stick|follow|draw|render|serve|host|"
    r"deploy|release|push|pull|rebase|squash|commit|branch|revert)\b",
    re.I,
)
_LIKES: Final = re.compile(
    r"\b(?:good|great|nice|fine|works?|ok|okay|like|love|perfect|sense|right|yes|sure|cool)\b", re.I
)
_PROPOSES: Final = re.compile(
    r"\b(?:i'?ll|i will|i'?m going to|i am going to|i plan to|i'?d|i would|"
    r"let me|we could|i can|"
    r"i propose|i suggest|i recommend|my plan|the plan is|i intend|i want to|we should|"
    r"next,? i|next step|i'?m (?:now )?(?!doing|going|looking|trying|working)\w{2,}ing|"
    r"(?:plan|design|approach|proposal)(?=:))\b",
    re.I,
)
_LEAD: Final = re.compile(
    r"^(?:next,? |now,? |so,? |first,? )?"
    r"(?:i'?ll|i will|i'?m going to|i am going to|i plan to|i'?d|i would|"
    r"let me|we could|i can|i propose|i suggest|i recommend|i'?ve|i have|"
    r"i(?= (?:also |just |now )?(?!need|feed|am\b|was\b)[a-z]+ed\b)|"
    r"i(?= (?:put|set|made|wrote|took|chose|built|split|did)\b))\s+(?:to |by )?",
    re.I,
)
_CLAUSE: Final = re.compile(
    r"(?:[.;!?](?=\s|$)|,(?=\s)|\s[–—-]\s|:\s|\n|\s(?:so(?! that\b)|but)\s)+"
)
_TAKEN_BACK: Final = re.compile(r"^((?:please )?(?:undo|revert)(?: that| it| this)?) and ", re.I)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_PRONOUNS: Final = frozenset(["that", "it", "this", "them", "those", "so", "here", "these"])
_DISPUTES: Final = re.compile(
    r"(?:no|nope),? (?:it|they|that|this|there|you|he|she|we|i) ?"
    r"(?:is|are|was|were|do|does|did|has|have|'s|isn'?t|aren'?t|doesn'?t|didn'?t|hasn'?t)\b",
    re.I,
)
_NAMES: Final = re.compile(r"\b(?:name|rename|call)\b", re.I)
_IS_NAMED: Final = re.compile(r"(?:please )?(?:name|call) it \S+(?: please)?[.!]?", re.I)
_ASKS_FOR_ANOTHER: Final = re.compile(
    r"(?:\w+,? )?(?:(?:could|can|shall|should|why don'?t) (?:we|you)|couldn'?t (?:we|you)|"
    r"how about|what about|why not)\b.*\b(?:instead|rather|better|not|without)\b",
    re.I,
)
"""A question that asks for another way, and not about this one."""


def clear_correction(proposal: str, reply: str) -> tuple[str, set[str]] | None:
    """What a reply to a proposal wants, and the words of what it turns down; None where it is not
    clear that it corrects something.
    """
    text = " ".join(reply.split())
    if not text or len(text) > LONGEST_REPLY:
        return None
    if _AGREES.match(text) or _POLITE.match(text) or _DISPUTES.match(text):
        return None
    if _REPORT.search(text):
        return None
    pieces = _CLAUSE.split(_TAKEN_BACK.sub(r"\1, ", text))
    clauses = [piece.strip(" .,;!?-–—") for piece in pieces]
    clauses = [clause for clause in clauses if clause and clause.lower() != "please"]
    if text.endswith("?") and not _is_answered_question(text):
        return None
    if _ALSO.match(text) or accepts(clauses, text):
        return None
    found = _turned_down(clauses, proposal)
    if (found is None or not found[0]) and is_plan(proposal):
        from weft.decisions.corrections.counter_proposal import find_counter  # patterns take 15 ms

        found = find_counter(clauses, " ".join(plans_of(proposal))) or found
    if found is None and _NAMES.search(proposal) and _IS_NAMED.fullmatch(text):
        found = text, set()
    return found


def accepts(clauses: Iterable[str], text: str) -> bool:
    """Whether a clause takes the proposal as it is, and nothing is excepted."""
    if _EXCEPTS.search(text) is not None:
        return False
    return any(_ACCEPTS.fullmatch(clause, *_inside(clause)) for clause in clauses)


def _inside(clause: str) -> tuple[int, int]:
    """Where a clause begins and ends without the signs around it."""
    begin = len(clause) - len(clause.lstrip(_SIGNS))
    return begin, max(begin, len(clause.rstrip(_SIGNS)))


def _is_answered_question(text: str) -> bool:
    """Whether a text that ends with a question has an order before it."""
    first = text.split(",")[0].strip(" .,!")
    return bool(_BARE.fullmatch(first) or _ASKS_FOR_ANOTHER.match(text))


def _turned_down(clauses: list[str], proposal: str) -> tuple[str, set[str]] | None:
    """What is wanted, and the words of what was turned down; None where nothing was."""
    proposed, planned = set(words_of(proposal)), is_plan(proposal)
    reply = _ReadReply()
    for number, clause in enumerate(clauses):
        _read_clause(clause, number, proposed, reply, is_plan=planned)
    orders = [clause for clause in reply.rest if _WANTS.match(clause)]
    if reply.down == "certain":
        return ", ".join(reply.rest), reply.words
    # What could mean anything needs an order beside it, and counts against a plan alone.
    if reply.down == "likely" and (orders or (planned and reply.rest)):
        return ", ".join(reply.rest), reply.words
    if reply.down in ("criticism", "weak") and planned and orders:
        return ", ".join(orders), reply.words
    is_short = number_of_words(reply.rest) in (1, 2, 3)
    if reply.down == "criticism" and reply.is_named and planned and is_short:
        return ", ".join(reply.rest), reply.words
    if not reply.down and planned and number_of_words(clauses) <= SHORT_ORDER:
        courses = [clause for clause in clauses if _CHANGES_COURSE.fullmatch(clause)]
        if courses:
            return ", ".join(courses), set()
    return None


class _ReadReply:
    """What was made of the clauses so far."""

    def __init__(self) -> None:
        self.rest: list[str] = []
        self.words: set[str] = set()
        self.is_named = False
        """Fault was found with something that the proposal names."""
        self.down: str = ""
        """How sure it is that something is turned down: `criticism`, `weak`, `likely`,
        `certain`."""

    def turn_down(self, how: str, words: Iterable[str] = ()) -> None:
        order = ("", "criticism", "weak", "likely", "certain")
        self.down = max(self.down, how, key=order.index)
        self.words.update(words)


def _read_clause(
    clause: str, number: int, proposed: set[str], reply: _ReadReply, *, is_plan: bool
) -> None:
    better = _BETTER.fullmatch(clause)
    if better is not None:
        than = set(words_of(better["than"] or better["than2"] or ""))
        if than & proposed:
            reply.turn_down("certain", than)
            reply.rest.append(better["want"] or better["want2"] or "")
            return
    if number < 2 and (_BARE.fullmatch(clause) or _JUDGED.fullmatch(clause)):
        reply.turn_down("likely")
        return
    down = _object_of(clause)
    if down is not None:
        is_named = bool(down & proposed)
        is_about_it = clause.lower().split()[-1] in _PRONOUNS or len(clause.split()) <= 4
        if is_named or reply.down or is_about_it:
            is_sure = "certain" if is_plan else "likely"
            reply.turn_down(is_sure if is_named else reply.down or "weak", down)
            return
    bad = _bad_subject(clause)
    if bad is not None and (bad & proposed or clause.lower().split()[0] in _PRONOUNS):
        reply.turn_down("criticism", bad)
        reply.is_named = reply.is_named or bool(bad & proposed)
        return
    if is_plan and reply.down in ("", "criticism") and _is_remark(clause, proposed):
        reply.turn_down("criticism", set(words_of(clause)))
        return
    reply.rest.append(clause)


def _is_remark(clause: str, proposed: set[str]) -> bool:
    """Whether a clause says something about what was proposed, and orders nothing."""
    words = [word.removesuffix("'s") for word in clause.lower().split()]
    if _WANTS.match(clause) or _CHANGES_COURSE.fullmatch(clause):
        return False
    if _LIKES.search(clause) or len(words) > LONGEST_REMARK:
        return False
    return bool(set(words_of(clause)) & proposed) or bool({*words[:2]} & _PRONOUNS)


def is_plan(proposal: str) -> bool:
    """Whether something is proposed, and not asked, reported or left to the user's choice."""
    plans = plans_of(proposal)
    return bool(plans) and not all(re.search(r"\beither\b|\bor\b", each) for each in plans)


def plans_of(proposal: str) -> list[str]:
    """The sentences that propose something."""
    sentences = [each for each in _SENTENCE.split(proposal) if each.strip()]
    return [each for each in sentences if _PROPOSES.search(each) and "?" not in each]


def _object_of(clause: str) -> set[str] | None:
    """The words of what a clause turns down; None where it does not."""
    if _POLITE.match(clause) or _DISPUTES.match(clause):
        return None
    why = re.fullmatch(r"why (?:use |a |an )?(?P<what>[\w.-]+)", clause, re.I)
    if why is not None:
        return set(words_of(why["what"]))
    turned = _TURNS_DOWN.fullmatch(clause)
    return set(words_of(turned[turned.lastgroup or 0])) if turned is not None else None


def _bad_subject(clause: str) -> set[str] | None:
    """The words of what a clause finds fault with; None where it does not."""
    bad = _IS_BAD.fullmatch(clause)
    return None if bad is None else set(words_of(bad["what"] or bad["what2"] or ""))


def number_of_words(clauses: list[str]) -> int:
    """How long an answer is."""
    return sum(len(clause.split()) for clause in clauses)


def gist(proposal: str, words: set[str]) -> str:
    """The sentence of a proposal that was turned down, without its beginning."""
    sentences = [each.strip() for each in _SENTENCE.split(proposal) if each.strip()]
    best = max(
        sentences,
        key=lambda each: (len(words & set(words_of(each))), bool(_PROPOSES.search(each))),
    )
    plain = _LEAD.sub("", best.strip("-*# ")).rstrip(".:!")
    return plain[:1].upper() + plain[1:] if plain else best
