"""What the settings of opencode deny, as rules of ours: the same, or more, and never less."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from weft.export.agents.foreign_tree import one_line, table
from weft.permissions import rule_problem

OPENCODE_SETTINGS: Final = ("config.json", "opencode.json", "opencode.jsonc")
"""Its files, each over the one before."""
_TOOLS: Final = {
    "bash": "shell",
    "edit": "edit",
    "write": "write",
    "read": "read",
    "patch": "apply_patch",
    "glob": "find",
    "grep": "grep",
    "list": "list",
    "lsp": "lsp",
    "webfetch": "fetch",
    "websearch": "web_search",
    "task": "agent",
    "skill": "skill",
    "question": "ask",
    "todowrite": "todo",
}
_WORDS: Final = re.compile(r"([A-Za-z0-9_./-]+(?: [A-Za-z0-9_./-]+)*)( \*)?")
"""Words of a command, and whatever follows."""
_PARTLY: Final = re.compile(r"([A-Za-z0-9_./-]+(?: [A-Za-z0-9_./-]+)+)\*")
"""The last word may go on: with one before it, a rule of ours can say that."""
_SERVER: Final = re.compile(r"([A-Za-z0-9-]+)_\*")
_NOT_ALLOWED: Final = "what another agent may do without asking is not taken"


class ForeignDenial(msgspec.Struct, frozen=True):
    """What is said of a tool there, and the rules that deny it here."""

    name: str
    why: str
    rules: tuple[str, ...] = ()


def opencode_denials(settings: Mapping[str, Any]) -> Iterator[ForeignDenial]:
    """What a file of settings says of each tool; without rules it is left out."""
    given = settings.get("permission")
    rules = {"*": given} if isinstance(given, str) else table(given)
    switched = {tool: "deny" for tool, is_on in table(settings.get("tools")).items() if not is_on}
    for said in (rules, switched):
        for tool, verdict in said.items():
            yield _one(tool, verdict, said)


def _one(tool: str, said: Any, others: Mapping[str, Any]) -> ForeignDenial:
    shown = one_line(tool, 60)
    if "deny" not in _verdicts(said):
        return ForeignDenial(shown, _NOT_ALLOWED)
    if rules := tuple(_rules(tool, said, others)):
        return ForeignDenial(shown, f"for its rule about {shown}", rules)
    return ForeignDenial(f"deny {shown}", "there is no tool of ours that this is about")


def _rules(tool: str, said: Any, others: Mapping[str, Any]) -> Iterator[str]:
    server = _SERVER.fullmatch(tool)
    if server and not rule_problem(rule := f"mcp__{server[1]}"):
        yield rule
    for theirs, ours in _TOOLS.items():
        if theirs == tool:
            yield from _commands(said) if tool == "bash" else (ours,)
        elif "*" in tool and theirs not in others and fnmatchcase(theirs, tool):
            yield ours


def _commands(said: Any) -> Iterator[str]:
    """Commands by their words, else all of them."""
    denied = [key for key, verdict in table(said).items() if verdict == "deny"]
    found = [_WORDS.fullmatch(key) or _PARTLY.fullmatch(key) for key in denied]
    if not found or not all(found):
        yield "shell"
        return
    for each in found:
        if each is not None:
            yield f"shell({each[1]} *)"
            if each.re is _PARTLY:  # `git p*` is `git push`, too
                yield f"shell({each[0]})"


def _verdicts(said: Any) -> list[Any]:
    return list(said.values()) if isinstance(said, dict) else [said]
