"""What a run that ended with 0 printed, and why that is less than what is claimed.

A script may swallow an exit code, a selection may hide in a file of settings, and a run of nothing
ends well, too.
"""

from __future__ import annotations

import re
from typing import Final

from weft.evidence.claims import AnswerClaim
from weft.evidence.command_runs import CommandRun

_FAILED: Final = re.compile(
    r"\b[1-9]\d*\s+(?:tests?\s+|specs?\s+)?(?:failed|failing|failures?|broken)\b|"
    r"\bfail(?:ed|ures?)\s*[:=]\s*[1-9]|\bError \d+ \(ignored\)|^not ok \d|"
    r"^(?:FAILED|FAIL|---\s*FAIL|BUILD FAILED)\b",
    re.M | re.I,
)
_PROBLEMS: Final = re.compile(
    r"\b[1-9]\d*\s+(?:problems?|errors?|warnings?|offenses|issues?)\b|^(?:\S+:\s+)?"
    r"(?:warning|error)(?:\[\w+\])?:",
    re.M | re.I,
)
_ERRORS: Final = re.compile(r"\b[1-9]\d*\s+errors?\b|^(?:\S+:\s+)?error(?:\[\w+\])?:", re.M | re.I)
_LEFT_OUT: Final = re.compile(r"\b([1-9]\d*) deselected\b|^\s*(\S+): SKIP\b", re.M)
_NOTHING: Final = re.compile(
    r"\bno tests? (?:ran|found|were found|to run|files?)\b|\[no test files\]|:test NO-SOURCE\b|"
    r"\bis up to date\b|\bnothing to be done\b|\bcollected 0 items\b|\b(?:ran|running) 0 tests\b|"
    r"\bmissing script\b|\bno spec files found\b|\b\d+ tests? collected\b|"
    r"\bcollected \d+ items?\b|\b[1-9]\d* (?:skipped|xfailed|pending|todo)\b",
    re.I,
)
_ALL_SKIPPED: Final = re.compile(r"\bran (\d+) tests?\b.*\bskipped=\1\b", re.I | re.S)
_RAN: Final = re.compile(
    r"\b[1-9]\d*\s+(?:tests?\s+)?(?:passed|passing|ok|examples?)\b|^ok\s+\S+\s+[\d(]|"
    r"\bran [1-9]\d* tests?\b|\btests run: [1-9]",
    re.M | re.I,
)
_COUNTS: Final = re.compile(
    r"(?<![\d.])(\d+(?:,\d{3})*)\s+(?:tests?\s+)?(?:passed|passing)\b|\bran (\d+) tests?\b|"
    r"\btests run:\s*(\d+)|\bpassed:\s*(\d+)|(?<![\d.])(\d+)/\5\b|(?<![\d.])(\d+) (?:examples|"
    r"tests?),\s*0 failures|\ball (\d+) tests? passed|#\s*pass\s+(\d+)",
    re.I,
)
_VERSIONS: Final = (
    r"\b(?:every|all|each|both) (?:supported |python |node |tox )*(?:versions?|environments?|"
    r"interpreters?|platforms?|browsers?|configurations?)\b|"
    r"\b(?:python|node|go|ruby|php|java|jdk)\s*v?\d|\b(?:windows|macos|linux|docker|container)\b"
)
_OFTEN: Final = r"\b(?:times|repeatedly|twice|(?:every|each) time|in a row|stable|flak)"
_BY_VERSION: Final = re.compile(_VERSIONS, re.I)
_QUALIFIERS: Final = tuple(
    (re.compile(pattern, re.I), word)
    for pattern, word in (
        (r"\brace[- ](?:detector|condition|free)|\b-race\b", "race"),
        (r"\bfeatures?\b", "features"),
        (r"\brelease\b", "release"),
        (_OFTEN, ""),
        (r"\be2e\b|\bend[- ]to[- ]end\b|\bintegration\b|\bbrowser\b", "e2e"),
        (r"\bcoverage\b", "cov"),
    )
)
"""What a claim may add, and the word that a command must have for it; empty: no word shows it."""


def why_not_shown(run: CommandRun, claim: AnswerClaim) -> str:
    """Why a run that ended with 0 does not show a claim; empty where it does."""
    if why := _why_contradicted(run):
        return why
    if claim.count is not None and not _says(run.output, claim.count):
        return f"its output does not say {claim.count}"
    plain = re.sub(r"`[^`]*`", "`x`", claim.text)
    # They run all versions, and say which they left out.
    runs_versions = run.check.program in ("tox", "nox")
    if not runs_versions and (found := _BY_VERSION.search(plain)):
        return f"nothing in it shows “{found[0].strip()}”"
    for pattern, word in _QUALIFIERS:
        found = pattern.search(plain)
        if found and not (word and word in run.command):
            return f"nothing in it shows “{found[0].strip()}”"
    return ""


def _why_contradicted(run: CommandRun) -> str:
    if run.kind == "test":
        if found := _FAILED.search(run.output):
            return f"its output says “{found[0].strip()}”"
        if (nothing := _NOTHING.search(run.output)) and not _RAN.search(run.output):
            return f"its output says “{nothing[0].strip()}”"
        if _ALL_SKIPPED.search(run.output):
            return "its output says that all of them were skipped"
    else:
        problems = _PROBLEMS if run.kind == "lint" else _ERRORS
        if found := problems.search(run.output):
            return f"its output says “{found[0].strip()}”"
        if found := _NOTHING.search(run.output):
            return f"its output says “{found[0].strip()}”"
    if left := _LEFT_OUT.search(run.output):
        return f"its output says “{left[0].strip()}”"
    return ""


def _says(output: str, count: int) -> bool:
    """Whether an output counts so many that passed, in one place or in all together."""
    found = [
        int(next(number for number in match.groups() if number).replace(",", ""))
        for match in _COUNTS.finditer(output)
    ]
    if found:
        return count in found or count == sum(found)
    return re.search(rf"(?<![\d.]){count}(?![\d.])", output.replace(",", "")) is not None
