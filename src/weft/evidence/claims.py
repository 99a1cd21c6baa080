"""Claims of an answer about what was run: that tests pass, that it builds, that nothing else uses a
name.

Sentences are judged by their words, in English.  What is hoped, planned, asked, denied or told of
an earlier time is no claim.  A claim that no command can show (`it works`) has the kind `other`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from weft.evidence.claim_hints import LONGEST_ANSWER
from weft.evidence.command_kinds import checks_in
from weft.evidence.receipt import ClaimKind

MOST_CLAIMS: Final = 20
LONGEST_LINE: Final = 4_000
LONGEST_SENTENCE: Final = 1_000
"""Characters of what may claim something: the patterns take the square of its length."""


def _words(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{text})\b", re.I)


_GOOD: Final = _words(
    r"pass(?:es|ed|ing)?|green|succeed(?:s|ed)?|succeeding|success(?:ful|fully)?|clean(?:ly)?|"
    r"(?:are|is|all|came back|comes back) (?:also |all |now |still )?(?:ok|okay|good|fine|happy)|"
    r"success|shows? nothing|finds? nothing|reports? nothing|without (?:any )?"
    r"(?:errors?|failures?|warnings?|problems?|issues?|complaints?)|"
    r"(?:no|zero|0) (?:\w+ )?(?:errors?|failures?|warnings?|problems?|issues?|complaints?|"
    r"failed|failing)|complains? of nothing|happy"
)
_SUBJECTS: Final[tuple[tuple[ClaimKind, re.Pattern[str]], ...]] = (
    (
        "types",
        _words(
            r"mypy|pyright|basedpyright|tsc|type[- ]?check(?:s|er|ing|ed)?|types|typing|"
            r"type errors?|`ty check`|`ty`"
        ),
    ),
    (
        "lint",
        _words(
            r"lint(?:er|ing|s|ed)?|ruff|eslint|flake8|pylint|clippy|golangci-lint|go vet|biome|"
            r"rubocop|oxlint|stylelint|shellcheck"
        ),
    ),
    ("format", _words(r"format(?:ter|ting|ted|s)?|prettier|black|gofmt|rustfmt|cargo fmt")),
    (
        "test",
        _words(
            r"tests?|test[- ]?suites?|suite|specs?|test cases?|pytest|jest|vitest|mocha|rspec|"
            r"phpunit|ctest|tox|nox|unittest|testsuite"
        ),
    ),
    (
        "build",
        _words(r"builds?|built|compil(?:e|es|ed|ing|ation)|bundles?"),
    ),
)
_EXAMPLES: Final = re.compile(r"\b\d+ examples?, (?:0|no) failures\b", re.I)
_PASSED: Final = re.compile(r"\b(\d[\d,]*)\s+(?:of\s+\d+\s+)?(?:tests?\s+)?pass(?:ed|ing)?\b", re.I)
_OF_ALL: Final = re.compile(r"\b(\d+)\s*/\s*(\d+)\b")
_COUNT: Final = re.compile(
    r"\b(?:all\s+)?(\d[\d,]*)\s+(?:\w+\s+)?(?:tests?|specs?|test cases)\b|"
    r"\b(\d[\d,]*)\s+pass(?:ed|ing)?\b",
    re.I,
)
_EVERYTHING: Final = re.compile(
    r"\b(?:everything(?: is|'s| now)?|all checks?|all of (?:it|them)|the whole pipeline|ci|"
    r"all (?:is )?)\s*(?:now\s+)?(?:pass(?:es|ed|ing)?|green|succeeds?)\b|\ball green\b",
    re.I,
)
_BUILDS: Final = re.compile(
    r"\b(?:it|project|code|crate|package|app|application|program|binary|everything|workspace|"
    r"site|bundle|that|this)\s+(?:now\s+|still\s+|also\s+)?(?:builds|compiles|built|compiled)\b",
    re.I,
)
_TYPE_CHECKS: Final = re.compile(r"\btype-?checks\b|\btypescript compiles\b", re.I)
_FORMATTED: Final = re.compile(
    r"\b(?:is|are|files?) (?:now |all |already |auto-?)?formatted\b", re.I
)
_WORKS: Final = re.compile(
    r"\b(?:works?|completes?d?|finish(?:es|ed)?|(?:ends?|exits?) (?:with )?0|exit code 0|"
    r"nothing to say|already formatted)\b",
    re.I,
)
_MARKED: Final = re.compile(r"[✅✔✓🟢☑]|:\s*(?:ok|okay|good|fine|done)\b", re.I)
_DESCRIBES: Final = re.compile(
    r"\bpass(?:es|ed|ing)?\s+(?:`x`|\w+|the \w+|an? \w+)?\s*(?:in|into|to|through|along|down|as|"
    r"around)\b(?! (?:ci|green|all|every|each|both|\d))|\bpass(?:es|ed|ing)?\s+`x`|"
    r"\b(?:build|compile)s? (?:a|an|the|its|up|on)\b",
    re.I,
)
"""`pass` and `build` with an object: what code does, not what a check said."""
_SEARCH: Final = re.compile(
    r"\bno (?:other |more |further |remaining |leftover )+(?:\w+ )?(?:callers?|call sites?|usages?|"
    r"uses?|users?|references?|occurrences?|places?|imports?|importers?|mentions?)\b|"
    r"\bno (?:callers?|call sites?|usages?|references?|occurrences?|mentions?)\b|"
    r"\bnothing else (?:\w+ ){0,4}(?:uses?|calls?|references?|imports?|depends|mentions?|reads?)\b|"
    r"\bno(?:body| one) else (?:uses?|calls?|references?|imports?)\b|"
    r"\bthe only (?:caller|call site|usage|use|user|reference|occurrence|place|importer|import)\b|"
    r"\b(?:is|was|are)(?: not|n't) (?:\w+ )?(?:used|called|referenced|imported|mentioned) "
    r"(?:anywhere|any ?where else|elsewhere)\b|"
    r"\b(?:used|called|referenced|imported|mentioned) nowhere\b|"
    r"\bnot (?:used|called|referenced|imported|mentioned) (?:anywhere|elsewhere)\b",
    re.I,
)
_OTHER: Final = re.compile(
    r"\b(?:i(?:'ve| have)? (?:verified|confirmed|checked|double-checked|validated)|verified that|"
    r"confirmed that|works (?:correctly|as expected|now|fine|end[- ]to[- ]end)|"
    r"(?:bug|issue|problem|crash|leak|race) is (?:now )?(?:fixed|gone|resolved)|"
    r"no regressions?|fully tested|tested manually|manually tested)\b",
    re.I,
)
_NOT: Final = re.compile(
    r"\b(?:not|never|cannot|neither|nor|without running|unable|couldn't|can't|hardly|barely|"
    r"only \w+ of|no longer|stopped|some|most|many|few|several|half|except|other than|apart from|"
    r"besides|aside from|excluding|but (?!all)\w+)\b|n't\b|\bno tests?\b|\bno (?:test )?suite\b",
    re.I,
)
_FAILED: Final = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure|ures)?|broken|red|errors?|crash(?:es|ed)?|"
    r"timed out|timeout|warnings?)\b",
    re.I,
)
_NO_FAILURE: Final = re.compile(
    r"\b(?:no|zero|0|without(?: any)?)\s+(?:\w+\s+)?(?:fail(?:s|ed|ing|ures?)?|errors?|warnings?|"
    r"problems?|issues?|skipped|regressions?|complaints?)\b(?:\s*(?:or|and|,)\s*(?:no\s+)?"
    r"(?:fail\w*|errors?|warnings?|issues?))?",
    re.I,
)
_FIXED: Final = re.compile(
    r"\b(?:the |that |this |which |a |your |previously[- ])?(?:failing|broken|failed|red) "
    r"(?:\w+ )?(?:tests?|build|specs?|suite|case|check)\b(?= .*\b(?:now|pass))|"
    r"\b(?:that|which) (?:was|were|had been|used to be) (?:failing|broken|red)\b",
    re.I,
)
_UNREAL: Final = re.compile(
    r"\b(?:should|shall|will|would|could|may|might|must|expect(?:ed|s)?|hopefully|probably|likely|"
    r"presumably|assum(?:e|es|ed|ing)|believe|think|hope|if|unless|until|once|when|whenever|"
    r"before|after you|ensure|ensures|make sure|makes sure|making sure|so that|in order|to make|"
    r"to get|to be|to pass|needs? to|have to|has to|want|wants|try|please|let me|let's|going to|"
    r"plan|next step|next,|todo|can you|could you|you can|run (?:the|your|this|it)|"
    r"verify that|confirm that|check that|previously|earlier|yesterday|last time|used to|"
    r"originally|in theory|supposed|appears? to|seems? to|seem|looks? like|were passing|"
    r"was passing|i'd|i'll|we'll|it'll|they'll|recommend|suggest|consider|instead of|rather than|"
    r"claims?|says?|said|according to|example|e\.g)\b|\?\s*$|^\s*(?:run|execute|use|call)\b",
    re.I,
)
_AFTER_EDITS: Final = re.compile(r"\bafter (?:that|this|the|my|these|all|both|each|every)\b", re.I)
_SOME: Final = re.compile(
    r"\b(?:new|added|that|this|the (?:failing|broken|new|added|relevant|related|affected|"
    r"regression|reproduction|reproducing|existing \w+|unit|integration|e2e|end-to-end|one|two|"
    r"three|\d+)|a|an|my|its|their|both|targeted|relevant|related|affected|focused|regression|"
    r"unit|integration|smoke|e2e)\s+(?:\w+\s+){0,2}?(?:tests?|specs?|test cases?)\b|"
    r"\btests? (?:for|of|in|under|around|covering|about)\b|\b(?:test|spec) (?:now )?pass",
    re.I,
)
_ALL: Final = re.compile(r"\b(?:all|whole|full|entire|complete|every|everything)\b", re.I)
_ALONG: Final = re.compile(
    r"\b(?:including|includes?|incl|also|as well as|among|amongst|plus|especially|notably|such as|"
    r"together with|with|and the)\b",
    re.I,
)
"""What is named behind one of these is a part of what is spoken of, and not all of it."""
_LIMITS: Final = (
    r"\b(?:in|of|under|from|for|inside|within|below|all|every)\s+"
    r"(?:(?:the|my|our|new|file|files|folder|module|package|class|suite)\s+)*[`'\"]?$"
)
"""What stands before a name that says of which all is spoken."""
_FENCE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
_NAMED: Final = re.compile(
    r"`([^`\n]{1,200})`|((?:[\w.-]+/)+[\w.-]+|\b\w+\.(?:py|ts|tsx|js|jsx|go|rs|rb|java|c|cc|cpp|h|"
    r"php|ex|exs|cs|kt|swift|zig|scala)\b|\btest_\w+\b|\b\w+_test\b|\bTest[A-Z]\w+\b)"
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+|\n+|;\s+|\s+—\s+|\s+-\s+(?=[A-Z])")
_LIST_MARK: Final = re.compile(r"^\s*(?:[-*+•]|\d+[.)])?\s*(?:\[[ xX]\]\s*)?[✅✔✓🟢☑]?️?\s*")
_BARE: Final = re.compile(r"[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}")
_CLAUSE: Final = re.compile(
    r",?\s+(?:and|while|but)\s+(?=(?:the|all|it|no|nothing|`|\w+ is)\b)", re.I
)


class AnswerClaim(msgspec.Struct, frozen=True, kw_only=True):
    """Something that an answer says was so."""

    kind: ClaimKind
    text: str
    """The sentence, or the clause, as it stands."""
    is_whole: bool = True
    """It speaks of all there is, not of some tests."""
    named: tuple[str, ...] = ()
    """Files, tests and names in it."""
    limits: tuple[str, ...] = ()
    """Those of them that say of what it speaks, and do not stand beside all the rest."""
    count: int | None = None
    """How many it says passed."""


def claims_in(text: str) -> tuple[AnswerClaim, ...]:
    """The claims of an answer, in order, each sentence once."""
    found: dict[tuple[ClaimKind, str], AnswerClaim] = {}
    for sentence in _sentences(text[-LONGEST_ANSWER:]):
        for claim in _claims(sentence.rstrip(" .!")):
            found.setdefault((claim.kind, claim.text), claim)
    return tuple(found.values())[:MOST_CLAIMS]


def _sentences(text: str) -> Iterator[str]:
    prose = _FENCE.sub("\n", text)
    for line in prose.split("\n"):
        if len(line) > LONGEST_LINE:
            continue
        # Quotations, and what a program printed.
        if line.lstrip().startswith((">", "$ ", "#!")) or line.startswith(("    ", "\t")):
            continue
        if line.lstrip().startswith("|"):
            yield from _of_row(line)
            continue
        bare = _LIST_MARK.sub("", line.strip(" |").lstrip("#"))
        for sentence in _SENTENCE.split(_unstarred(bare)):
            if 0 < len(sentence.strip()) <= LONGEST_SENTENCE:
                yield sentence.strip()


def _of_row(line: str) -> Iterator[str]:
    """A row of a table whose cells say that something passed, as it stands."""
    cells = [_unstarred(cell.strip()) for cell in line.strip().strip("|").split("|")]
    said = " ".join(cells[1:])
    if len(cells) > 1 and (_MARKED.search(said) or _GOOD.search(said)):
        yield " | ".join(cells)


def _unstarred(line: str) -> str:
    """A line without the marks of emphasis; those inside code stay."""
    parts = line.split("`")
    parts[::2] = [_BARE.sub("", part) if "*" in part else part for part in parts[::2]]
    return "`".join(parts)


def _claims(sentence: str) -> Iterator[AnswerClaim]:
    if _is_unreal(sentence):
        return
    found = False
    for clause in _clauses(sentence):
        for claim in _of_clause(clause):
            found = True
            yield claim
    if not found and _OTHER.search(sentence) and not _NOT.search(sentence):
        yield AnswerClaim(kind="other", text=sentence, named=_named(sentence))


def _clauses(sentence: str) -> Iterator[str]:
    """The parts of a sentence that say something each: `a` and `b` succeed is one."""
    held = ""
    for part in _CLAUSE.split(sentence):
        held = f"{held} and {part}" if held else part
        if _GOOD.search(_bare(part)) or _SEARCH.search(part) or _WORKS.search(part):
            yield held if held in sentence else part
            held = ""
    if held:
        yield held if held in sentence else held.rsplit(" and ", 1)[-1]


def _bare(clause: str) -> str:
    """A clause without what stands in it as code."""
    return re.sub(r"`[^`]*`", "`x`", clause)


def _of_clause(clause: str) -> Iterator[AnswerClaim]:
    if _SEARCH.search(clause):
        yield AnswerClaim(kind="search", text=clause, named=_named(clause))
        return
    plain = _NO_FAILURE.sub(" passes ", _FIXED.sub(" test that ", clause))
    if _NOT.search(_bare(plain)) or _FAILED.search(_bare(plain)):
        return
    if _DESCRIBES.search(_bare(clause)):
        return
    commands = [check.kind for name in _named(clause) for check in checks_in(name)]
    words = _bare(clause) if commands else clause
    is_good = bool(_GOOD.search(words) or _NO_FAILURE.search(words) or _MARKED.search(words))
    is_good |= bool(commands and (_WORKS.search(words) or _TYPE_CHECKS.search(words)))
    if _EVERYTHING.search(clause) and not any(subject.search(clause) for _, subject in _SUBJECTS):
        yield AnswerClaim(kind="all", text=clause, named=_named(clause))
        return
    kinds = [kind for kind, subject in _SUBJECTS if subject.search(clause)]
    if commands:
        kinds = list(dict.fromkeys(commands))
    elif _FORMATTED.search(clause):
        is_good, kinds = True, ["format"]
    elif _TYPE_CHECKS.search(clause):
        is_good, kinds = True, ["types"]
    elif _BUILDS.search(clause):
        is_good, kinds = True, ["build"]
    if not kinds and (_PASSED.search(clause) or _EXAMPLES.search(clause)):
        kinds = ["test"]
    if is_good:
        for kind in kinds:
            yield _checked(kind, clause)


def _checked(kind: ClaimKind, clause: str) -> AnswerClaim:
    named = _named(clause)
    is_some = kind == "test" and bool(_SOME.search(clause)) and not _ALL.search(clause)
    return AnswerClaim(
        kind=kind,
        text=clause,
        is_whole=not is_some,
        named=named,
        limits=_limits(clause, named),
        count=_counted(clause) if kind == "test" else None,
    )


def _limits(clause: str, named: tuple[str, ...]) -> tuple[str, ...]:
    """The names without those that stand beside the rest: `all tests, including x`."""
    is_all, along = bool(_ALL.search(clause)), _ALONG.search(clause)
    found: list[str] = []
    for name in named:
        at = clause.find(name)
        if along is not None and along.end() <= at:
            continue
        is_of = re.search(_LIMITS, clause[:at], re.I) is not None
        is_subject = re.match(r"`?\s+(?:tests?|suite|specs?)\b", clause[at + len(name) :], re.I)
        if not is_all or is_of or is_subject:
            found.append(name)
    return tuple(found)


def _counted(clause: str) -> int | None:
    if (part := _OF_ALL.search(clause)) and part[1] == part[2]:
        return int(part[1])
    found = _COUNT.search(clause)
    if found is None:
        return None
    return int((found[1] or found[2]).replace(",", ""))


def _is_unreal(sentence: str) -> bool:
    # "after these edits all tests pass" tells of now.
    told = _AFTER_EDITS.sub(" ", sentence)
    code = re.sub(r"`[^`]*`", "`x`", told)
    return bool(_UNREAL.search(code))


def _named(clause: str) -> tuple[str, ...]:
    found = (code.strip() or name.rstrip(".,:") for code, name in _NAMED.findall(clause))
    return tuple(dict.fromkeys(found))
