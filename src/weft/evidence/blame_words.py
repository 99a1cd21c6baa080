"""A blame in one sentence.  Pure."""

from __future__ import annotations

from typing import Final

from weft.evidence.blame import BlamedCall, LineCommit, LineTurn, LineWriter

_ALLOWED: Final = {
    "user": "the user allowed it",
    "grant": "a grant of the user allowed it",
    "rule": "a rule allowed it",
    "mode": "the permission mode allowed it",
    "hook": "a hook allowed it",
    "plan": "an approved plan allowed it",
    "goal": "the check of a goal, which the user allowed",
    "auto_approve": "the session asks for no permission",
}


def sentence_of(
    made_by: LineWriter,
    turn: LineTurn | None,
    call: BlamedCall | None,
    commit: LineCommit | None,
    *,
    candidate: int | None = None,
    is_first: bool = False,
    has_versions: bool = True,
    elsewhere: str = "",
) -> str:
    """Who or what wrote the line; `elsewhere` is another folder whose sessions changed the file."""
    if made_by == "session":
        return _by_session(turn, call, candidate)
    committed = "" if commit is None else f", in commit {commit.commit[:12]} of {commit.author}"
    if elsewhere:
        return (
            f"no session of this folder wrote it, but sessions of {elsewhere} changed this file: "
            "ask there"
        )
    if made_by == "unknown":
        ran = "" if call is None else f" while `{call_words(call)}` ran"
        return f"it is not known who wrote it{ran}: a session's command, or you{committed}"
    if call is not None:
        return f"you wrote it with your command `{call.target}`{committed}"
    if commit is not None and (is_first or not has_versions):
        # It may be of any author: the sessions of theirs are not here.
        came = f"it came with commit {commit.commit[:12]} of {commit.author}"
        if has_versions:
            return f"{came}, before a session first changed the file"
        return f"no session has ever changed this file: {came}"
    if not has_versions:
        return f"no session has ever changed this file: the line is yours{committed}"
    if is_first:
        return f"you wrote it, before a session first changed the file{committed}"
    return f"you wrote it, or a program that no session ran{committed}"


def allowed_words(call: BlamedCall) -> str:
    """Who or what allowed a call."""
    if call.allowed_by == "not recorded":
        return "who allowed it is not on record: the log is older than that record"
    said = _ALLOWED.get(call.allowed_by, f"{call.allowed_by} allowed it")
    return f"{said}: {call.allowed_why}" if call.allowed_why else said


def call_words(call: BlamedCall) -> str:
    """A call as it is named: `edit auth.py`, or the command itself."""
    if call.tool_name == "shell":
        return call.target
    return f"{call.tool_name} {call.target}".strip()


def _by_session(turn: LineTurn | None, call: BlamedCall | None, candidate: int | None) -> str:
    what = "a session" if call is None else f"`{call_words(call)}`"
    kept = "" if candidate is None else f" of candidate {candidate}"
    asked = f", asked for with “{turn.prompt}”" if turn is not None and turn.prompt else ""
    return f"{what}{kept} wrote it{asked}"
