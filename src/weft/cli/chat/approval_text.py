"""The words of a request for approval: what it is, where it runs, and what each answer covers.

What an answer covers is never cut: a row that says less than it grants would be a lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from weft.cli.chat.paint.card_text import relative
from weft.cli.chat.paint.diff_rows import read_diff
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow
from weft.cli.sanitize import clean_line, visible
from weft.events import PermissionRequest
from weft.permissions import EDITING_TOOLS, PermissionRule, split_rule
from weft.view import PermissionBlock, count_of

NO_LABEL = "What should it do instead? (Enter for no reason)"
NOTE_LABEL = "Yes, and a note for it:"
NOTE_KEY, EDIT_KEY = "tab", "e"
OTHER_HINT = "Tab adds a note to yes · e opens it in your editor"
_COMMANDS = ("shell", "check")
_OUTSIDE = "# outside the sandbox\n"
_REACHES = "# may reach "
_UNCONFINED = "# without a sandbox: "
_BACKGROUND = "# goes on in the background\n"


class ApprovalPlace(NamedTuple):
    """Where the chat is: what a request's texts are relative to."""

    folder: str = ""
    has_network: bool = False
    """Commands in the sandbox have the network."""
    allows_hosts: bool = False
    """A rule lets them reach some hosts."""

    @property
    def network(self) -> str:
        """What they have of the network where a command names no host."""
        return "allowed hosts only" if self.allows_hosts else "no network"


class _Asked(NamedTuple):
    """A request, taken apart."""

    tool: str
    agent: str
    target: str
    preview: str
    danger: str = ""
    notes: tuple[str, ...] = ()
    hosts: str = ""
    """What a command in the sandbox may reach."""


def permission_question(
    request: PermissionRequest,
    place: ApprovalPlace | None = None,
    *,
    number: int = 1,
    count: int = 1,
    args: dict[str, Any] | None = None,
    task: str = "",
) -> ChoiceQuestion:
    """The question about a tool call, with all that it is about; `args` is its input, where that is
    known, and `task` what the agent works on that asks.
    """
    place = place or ApprovalPlace()
    asked = _taken_apart(request, place)
    whose = (f"Asked by the agent: {clean_line(task)}",) if task else ()
    said = (*_own_reason(asked, args), *whose)
    # An agent's call waits in its own session: what is said here would not reach it.
    others = (NOTE_KEY, EDIT_KEY) if args is not None and request.child is None else ()
    of = f" ({number} of {count})" if count > 1 else ""
    is_plain = not asked.danger and asked.tool in (*EDITING_TOOLS, *_COMMANDS) and not asked.agent
    return ChoiceQuestion(
        title=f"{_title(asked)}{of}",
        rule=_rule(asked, place),
        danger=asked.danger,
        preview=(
            PermissionBlock(
                tool=request.tool_name,
                target=asked.target,
                preview=asked.preview,
                reason="\n".join((*said, *asked.notes)),
            ),
        ),
        rows=_rows(request, asked),
        hint=f"{OTHER_HINT} · Esc stops the turn" if others else "Esc stops the turn",
        other_keys=others,
        # Enter says yes only to what stays in the project or in the sandbox.
        picked=0 if is_plain else -1,
    )


def always_question(
    request: PermissionRequest, rules: Sequence[PermissionRule], history: str
) -> ChoiceQuestion:
    """What "always" is to mean: the very command, or rules for commands like it, and where they are
    kept; `history` says what they would have covered."""
    shown = _on_one_line(", ".join(map(_shown_rule, rules)))
    exact = _on_one_line(split_rule(request.always_pattern)[1])
    return ChoiceQuestion(
        title="What may run again without asking?",
        rule=f"A rule ─ {_on_one_line(history)}",
        rows=(
            ChoiceRow("Only this command, in this session:", exact, key="o"),
            ChoiceRow("In this session:", shown, key="s"),
            ChoiceRow("In every session of yours (your settings):", shown, key="e"),
        ),
        hint="Esc goes back",
    )


def _shown_rule(rule: PermissionRule) -> str:
    return rule.pattern if rule.tool == "shell" else f"{rule.tool}({rule.pattern})"


def answer_actions(request: PermissionRequest) -> tuple[str, ...]:
    """What each row of the question means, in their order."""
    if _tool_of(request)[0] in EDITING_TOOLS:
        # Of several files at once, no grant can name exactly these.
        again = ("allow_always",) if request.always_pattern else ()
        return "allow_once", *again, "all_edits", "deny"
    return "allow_once", "allow_always", "deny"


def _tool_of(request: PermissionRequest) -> tuple[str, str]:
    """The tool, and the agent that asks, if one does: `reviewer ▸ shell`."""
    agent, _, tool = clean_line(request.tool_name).rpartition("▸ ")
    return tool, agent.strip()


def _taken_apart(request: PermissionRequest, place: ApprovalPlace) -> _Asked:
    tool, agent = _tool_of(request)
    preview, target = request.preview or request.tool_path, request.tool_path
    danger, notes, hosts = "", [], ""
    if preview.startswith(_BACKGROUND):
        preview = preview.removeprefix(_BACKGROUND)
        notes.append("It goes on in the background.")
    if preview.startswith(_OUTSIDE):
        preview, danger = preview.removeprefix(_OUTSIDE), "OUTSIDE the sandbox"
    elif preview.startswith(_UNCONFINED):
        why, _, preview = preview.removeprefix(_UNCONFINED).partition("\n")
        danger = "OUTSIDE the sandbox"
        notes.append(f"There is no sandbox: {why}.")
    elif tool in _COMMANDS and preview.startswith(_REACHES):
        hosts, _, preview = preview.removeprefix(_REACHES).partition("\n")
    elif tool not in _COMMANDS and target.startswith("/"):
        inside = relative(target, place.folder)
        target = inside
        danger = f"outside this folder: {visible(target)}" if inside.startswith("/") else ""
    if request.reason and not danger:
        notes.append(f"{request.reason[:1].upper()}{request.reason[1:]}.")
    if hosts and not request.reason.endswith(f" reach {hosts}"):
        notes.append(f"It may reach {hosts}.")  # the rule above is cut where it is too long
    return _Asked(tool, agent, target, preview, danger, tuple(notes), hosts)


def _own_reason(asked: _Asked, args: dict[str, Any] | None) -> tuple[str, ...]:
    """What the model says a command is for, in quotes: they are its words, not ours."""
    said = args.get("description") if args is not None and asked.tool in _COMMANDS else None
    return (f'"{clean_line(said)}"',) if isinstance(said, str) and said.strip() else ()


def _title(asked: _Asked) -> str:
    if asked.tool in _COMMANDS:
        return "Allow this command?"
    if asked.tool in EDITING_TOOLS:
        return "Allow this edit?"
    return {"agent": "Allow this agent?", "read": "Allow reading it?"}.get(
        asked.tool, f"Allow {asked.tool}?"
    )


def _rule(asked: _Asked, place: ApprovalPlace) -> str:
    what, more = _what(asked, place)
    whose = f"{asked.agent}: " if asked.agent else ""
    return " ─ ".join(part for part in (f"{whose}{what}", more) if part)


def _what(asked: _Asked, place: ApprovalPlace) -> tuple[str, str]:
    target = clean_line(asked.target)
    # Where the place is the danger, it is said once, in red.
    named = "" if asked.danger.startswith("outside this folder") else f" {target}"
    if asked.tool in _COMMANDS:
        network = "with the network" if place.has_network else place.network
        if asked.hosts:
            besides = " and allowed hosts" if place.allows_hosts else ""
            network = f"may reach {asked.hosts}{besides}"
        return "Run a command", "" if asked.danger else f"in the sandbox, {network}"
    if asked.tool in EDITING_TOOLS:
        diff = read_diff(asked.preview)
        if diff.is_new and not diff.removed:
            return f"Create{named}", count_of(diff.added + diff.left_out, "line")
        return f"Edit{named}", diff.counts if diff.rows else ""
    words = {"delete": "Delete", "fetch": "Fetch", "agent": "Use agent", "read": "Read"}
    return f"{words.get(asked.tool, f'Use {asked.tool}')}{named}", ""


def _rows(request: PermissionRequest, asked: _Asked) -> tuple[ChoiceRow, ...]:
    yes = ChoiceRow("Yes", key="y")
    no = ChoiceRow("No, and say what to do instead", key="n")
    if asked.tool in EDITING_TOOLS:
        every = f"Yes, and every edit of {_on_one_line(asked.target)} in this session"
        named = (ChoiceRow(every, key="a"),) if request.always_pattern else ()
        return yes, *named, ChoiceRow("Yes, and all edits in this session", key="s-tab"), no
    # Whole, whatever its length: this is what the answer covers.
    target = split_rule(request.always_pattern)[1] or asked.target
    if target.startswith(_OUTSIDE):
        target = f"outside the sandbox: {target.removeprefix(_OUTSIDE)}"
    if asked.hosts:
        _, _, command = target.partition("\n")
        target = f"reaching {asked.hosts}: {command}"
    scope = _on_one_line(target)
    scope = f"any task for the agent {scope}" if asked.tool == "agent" else scope
    again = ChoiceRow("Yes, and again in this session:", scope, key="a")
    return yes, again, no


def _on_one_line(target: str) -> str:
    """All of a target, with nothing that could hide in it."""
    return " ⏎ ".join(visible(target).split("\n"))
