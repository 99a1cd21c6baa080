"""Receipts: each claim of an answer beside what is on record.

Green is only what the record shows: the check that was claimed, whole, ended with 0 on the very
files that are there now, and no later one says otherwise.  Grey: it did, but files have changed
since, or it is not known on which it ran.  Amber: there is no such run, it failed, or it covered a
part.  What no command can show has no colour.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from weft.evidence.claims import AnswerClaim
from weft.evidence.command_kinds import CheckCommand, checks_in
from weft.evidence.command_runs import CommandRun, EvidenceRuns, TextSearch, WrittenText
from weft.evidence.receipt import Receipt, ReceiptColor
from weft.evidence.run_output import why_not_shown

_CHECKS: Final = ("test", "build", "lint", "types", "format")
_WRAPPERS: Final = frozenset({"make", "just", "task", "tox", "nox", "pre-commit"})
"""Programs that run the checks of others: which, their files say."""
_WHAT: Final = {
    "test": "no known test runner was run",
    "build": "no known build command was run",
    "lint": "no known linter was run",
    "types": "no known type checker was run",
    "format": "no known formatter was asked",
    "all": "no known check was run",
}
"""A script of the project's own may be one: which commands are, is only known of the usual ones."""
_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$./-]*")
_DEFINES: Final = re.compile(
    r"^\s*(?:export\s+|default\s+|pub(?:\([\w:]+\))?\s+|public\s+|private\s+|protected\s+|static\s+|"
    r"async\s+|abstract\s+|final\s+|unsafe\s+|inline\s+)*"
    r"(?:def|class|function|func|fn|struct|enum|trait|interface|type|const|let|var|val|module)\s+"
    r"(?:\([^)]*\)\s*)?([A-Za-z_$][\w$]*)"
)
_LONGEST_SHOWN: Final = 100


def judged_claims(
    claims: Iterable[AnswerClaim], runs: EvidenceRuns, tree: str | None
) -> tuple[Receipt, ...]:
    """Each claim beside the runs, the files being those of this tree now; None: not known."""
    return tuple(_judged(claim, runs, tree) for claim in claims)


def _judged(claim: AnswerClaim, runs: EvidenceRuns, tree: str | None) -> Receipt:
    if claim.kind == "other":
        return _receipt(claim, "none", "not verified: no command can show it")
    if claim.kind == "search":
        return _judged_search(claim, runs, tree)
    if claim.kind == "all":
        return _judged_all(claim, runs, tree)
    return _judged_check(claim, claim.kind, runs, tree)


def _judged_all(claim: AnswerClaim, runs: EvidenceRuns, tree: str | None) -> Receipt:
    """Everything that was checked, kind by kind: the worst one counts."""
    kinds = [kind for kind in _CHECKS if any(run.kind == kind for run in _all_of(runs))]
    if not kinds:
        return _receipt(claim, "amber", _WHAT["all"])
    if "test" not in kinds:  # a linter that is content says nothing of the rest
        return _receipt(claim, "amber", _WHAT["test"])
    found = [_judged_check(claim, kind, runs, tree) for kind in kinds]
    order: dict[ReceiptColor, int] = {"amber": 0, "grey": 1, "green": 2, "none": 3}
    return min(found, key=lambda receipt: order[receipt.color])


def _judged_check(claim: AnswerClaim, kind: str, runs: EvidenceRuns, tree: str | None) -> Receipt:
    known = sorted((run for run in _all_of(runs) if run.kind == kind), key=lambda run: run.at)
    if not known:
        return _receipt(claim, "amber", _WHAT[kind])
    last = known[-1]
    covering = [run for run in known if run.has_passed and not _why_not_covered(run, claim, runs)]
    if not covering:
        return _without_cover(claim, last, runs)
    best = covering[-1]
    if (against := _against(best, known, tree)) is not None:
        return _receipt(claim, "amber", _ended(against), against)
    if why := why_not_shown(best, claim):
        return _receipt(claim, "amber", f"{_ended(best)}, but {why}", best)
    if claim.is_whole and (other := _not_again(best, known)) is not None:
        return _receipt(claim, "grey", f"{_shown(other)} was not run again since", other)
    return _by_tree(claim, best, tree)


def _by_tree(claim: AnswerClaim, run: CommandRun, tree: str | None) -> Receipt:
    if not run.tree or tree is None:
        return _receipt(claim, "grey", f"{_ended(run)}; on which files is not known", run)
    if run.tree != tree:
        return _receipt(claim, "grey", f"{_ended(run)}; files have changed since", run)
    return _receipt(claim, "green", f"{_ended(run)}, on the files as they are", run)


def _without_cover(claim: AnswerClaim, last: CommandRun, runs: EvidenceRuns) -> Receipt:
    if last in runs.unclear:
        return _receipt(claim, "amber", "its exit code may be another program's", last)
    if last.exit_code is None:
        return _receipt(claim, "amber", f"{_shown(last)} did not come to its end", last)
    if last.exit_code:
        return _receipt(claim, "amber", _ended(last), last)
    return _receipt(claim, "amber", _why_not_covered(last, claim, runs), last)


def _against(best: CommandRun, known: Sequence[CommandRun], tree: str | None) -> CommandRun | None:
    """A run that says otherwise: one that failed on the same files or on those that are there now,
    or a later one that failed on files that are not known.
    """
    for run in known:
        is_same = bool(run.tree) and run.tree in (best.tree, tree)
        if run.exit_code != 0 and (is_same or (not run.tree and run.at > best.at)):
            return run
    return None


def _not_again(best: CommandRun, known: Sequence[CommandRun]) -> CommandRun | None:
    """A whole check by another program whose last run was on other files, or failed."""
    if best.check.program in _WRAPPERS:
        return None
    last = {run.check.program: run for run in known if not run.check.narrow}
    others = (last[each] for each in last.keys() - _WRAPPERS - {best.check.program})
    return next((run for run in others if run.tree != best.tree or not run.has_passed), None)


def _why_not_covered(run: CommandRun, claim: AnswerClaim, runs: EvidenceRuns) -> str:
    """Why a run does not cover what is claimed; empty where it does."""
    if run in runs.unclear:
        return "its exit code may be another program's"
    narrow = run.check.narrow
    spoken = [each for name in claim.named for each in checks_in(name) if each.kind == run.kind]
    if spoken:
        is_same = any(_is_the_same(run.check, each, claim.named) for each in spoken)
        return "" if is_same else f"{_shown(run)} ended with 0, which is another command"
    if not narrow:
        return ""
    written = () if claim.is_whole else runs.written_in_turn
    if _is_about(narrow, claim.limits, written):
        return ""
    return f"{_shown(run)} ended with 0, but it may cover a part only"


def _is_the_same(run: CheckCommand, spoken: CheckCommand, named: Collection[str]) -> bool:
    """Whether a run is the command that an answer speaks of, or more than that."""
    if run.program != spoken.program or not set(spoken.text.split()) <= set(run.text.split()):
        return False
    extra = set(run.narrow) - set(spoken.narrow)
    return all(any(word == name or word.endswith(f"/{name}") for name in named) for word in extra)


def _is_about(
    narrow: Sequence[str], named: Collection[str], written: Sequence[WrittenText]
) -> bool:
    """Whether each word that narrows a run is spoken of, or is a file that was just written."""
    files = {each.path.removeprefix("./") for each in written}
    places = [word for word in narrow if not word.startswith("-")]
    if not places or any(word.startswith("-") and word not in ("-k", "-t") for word in narrow):
        return False
    for word in places:
        bare = word.removeprefix("./")
        stems = {bare, bare.partition("::")[0], *bare.split("::"), bare.rsplit("/", 1)[-1]}
        if stems.isdisjoint(named) and bare.partition("::")[0] not in files:
            return False
    return True


def _judged_search(claim: AnswerClaim, runs: EvidenceRuns, tree: str | None) -> Receipt:
    names = {name.removesuffix("()") for name in claim.named}
    about = [
        found
        for found in runs.searches
        for name in names
        if _IDENTIFIER.fullmatch(name) and _looks_for(found.pattern, name)
    ]
    if not about:
        return _receipt(claim, "amber", "no search for it is on record")
    last = about[-1]
    if not last.is_complete:
        return _of_search(claim, "amber", "it did not look at all of the project", last)
    written = runs.written_in_turn
    open_hits = [hit for hit in last.hits if not _is_accounted(hit, claim, names, written)]
    if open_hits:
        path, line, _ = open_hits[0]
        more = f" and {len(open_hits) - 1} more" if len(open_hits) > 1 else ""
        return _of_search(claim, "amber", f"it found {path}:{line}{more}", last)
    if why := _why_stale(last, runs, tree):
        return _of_search(claim, "grey", why, last)
    what = "it found no other" if last.hits else "it found none"
    return _of_search(claim, "green", f"{what}, in the whole project", last)


def _why_stale(found: TextSearch, runs: EvidenceRuns, tree: str | None) -> str:
    """Why the files may not be those that were searched; empty where they are."""
    is_before_end = runs.files_changed < found.at
    searched = found.tree or (runs.last_tree if is_before_end else "")
    if not is_before_end or (searched and tree and searched != tree):
        return "files have changed since"
    return "" if searched and tree else "in which files is not known"


def _looks_for(pattern: str, name: str) -> bool:
    """Whether a search finds every place where a name stands."""
    bare = pattern.removesuffix(r"\(").removesuffix("(")
    return bare in (name, rf"\b{name}\b", rf"\b{name}", rf"\<{name}\>", name.rsplit(".", 1)[-1])


def _is_accounted(
    hit: tuple[str, int, str],
    claim: AnswerClaim,
    names: Collection[str],
    written: Sequence[WrittenText],
) -> bool:
    """A hit that the answer names, that the turn wrote itself, or that is the definition."""
    path, line, text = hit
    if path in claim.named or f"{path}:{line}" in claim.named or _only_defines(text, names):
        return True
    bare = text.strip()
    return any(each.path.endswith(path) and bare and bare in each.text for each in written)


def _only_defines(line: str, names: Collection[str]) -> bool:
    """Whether a line defines what is looked for, and does not use it: `const x = name()` does."""
    found = _DEFINES.match(line)
    if found is None or found[1] not in {name.rsplit(".", 1)[-1] for name in names}:
        return False
    return re.search(rf"(?<![\w$]){re.escape(found[1])}(?![\w$])", line[found.end() :]) is None


def _all_of(runs: EvidenceRuns) -> list[CommandRun]:
    return [*runs.checks, *runs.unclear]


def _ended(run: CommandRun) -> str:
    if run.exit_code is None:
        return f"{_shown(run)} did not come to its end"
    return f"{_shown(run)} ended with {run.exit_code}"


def _shown(run: CommandRun) -> str:
    text = " ".join((run.check.text or run.command).split())
    cut = text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"
    return f"`{cut}`"


def _receipt(
    claim: AnswerClaim, color: ReceiptColor, why: str, run: CommandRun | None = None
) -> Receipt:
    if run is None:
        return Receipt(claim=claim.text, kind=claim.kind, color=color, why=why)
    return Receipt(
        claim=claim.text,
        kind=claim.kind,
        color=color,
        why=why,
        command=run.command,
        exit_code=run.exit_code,
        tree=run.tree,
        call=run.call,
    )


def _of_search(claim: AnswerClaim, color: ReceiptColor, why: str, found: TextSearch) -> Receipt:
    text = f"`{found.words[:_LONGEST_SHOWN]}`: {why}"
    return Receipt(
        claim=claim.text, kind=claim.kind, color=color, why=text, command=found.words,
        call=found.call,
    )  # fmt: skip
