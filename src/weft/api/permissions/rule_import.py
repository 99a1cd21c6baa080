"""Import of the rules of other agents: Claude Code's settings and codex's rule files.

Only the user's own files are looked for, and nothing of a file is run.  A rule is taken in the
words that it was written with, where they mean the same here; what would mean something else, or
nothing, is left out with the reason.
"""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from weft.errors import UsageError
from weft.permissions import Verdict, example_problem, our_tool_name, rule_problem
from weft.permissions.tool_names import FILE_TOOLS

ImportState: TypeAlias = Literal["new", "there", "left out"]
LARGEST: Final = 1024 * 1024
_MOST_FORMS: Final = 64
"""Rules that one codex rule with alternatives may become."""
_VERDICTS: Final[tuple[Verdict, ...]] = ("deny", "ask", "allow")
_KEYWORDS: Final = frozenset({"pattern", "decision", "match", "not_match", "justification", None})
_DECISIONS: Final[dict[str, Verdict]] = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}


class ImportedRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of another agent."""

    verdict: Verdict
    rule: str
    """As it is written here."""
    source: str
    """The file that has it."""
    state: ImportState = "new"
    why: str = ""
    """Why it is left out."""
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


def usual_files(home: Path) -> list[Path]:
    """The user's own files with rules: those of a project are named by the user, or not taken."""
    claude = [home / ".claude" / name for name in ("settings.json", "settings.local.json")]
    codex = sorted((home / ".codex" / "rules").glob("*.rules"))
    return [path for path in (*claude, *codex) if path.is_file()]


def read_foreign_rules(path: Path) -> list[ImportedRule]:
    """The rules of a file, those that cannot be taken among them.

    Raises:
        UsageError: it cannot be read, or is none of these kinds.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise UsageError(f"{path} is larger than {LARGEST:,} bytes")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    rules = _of_settings(text, path) if path.suffix == ".json" else _of_codex(text, path)
    return [_checked(rule) for rule in rules]


def _checked(rule: ImportedRule) -> ImportedRule:
    why = rule.why or rule_problem(rule.rule)
    if not why:
        why = example_problem(rule.verdict, rule.rule, rule.match, rule.not_match)
    return msgspec.structs.replace(rule, state="left out", why=why) if why else rule


# -- Claude Code: settings.json


def _of_settings(text: str, path: Path) -> Iterator[ImportedRule]:
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    permissions = settings.get("permissions", {}) if isinstance(settings, dict) else None
    if not isinstance(permissions, dict):
        raise UsageError(f"{path} has no permissions as an object")
    for verdict in _VERDICTS:
        rules = permissions.get(verdict, [])
        if not isinstance(rules, list):
            raise UsageError(f"{path}: permissions.{verdict} is not a list")
        for rule in rules:
            yield _of_setting(verdict, rule, str(path))


def _of_setting(verdict: Verdict, rule: object, source: str) -> ImportedRule:
    if not isinstance(rule, str):
        why = "a rule is a text"
        return ImportedRule(verdict=verdict, rule=json.dumps(rule), source=source, why=why)
    tool = rule.strip().partition("(")[0]
    is_wide = verdict == "allow" and (tool == "mcp__*" or "*" in tool.removesuffix("__*"))
    why = "it would allow tools without a name; write a rule for each" if is_wide else ""
    return ImportedRule(verdict=verdict, rule=_ours(verdict, rule.strip()), source=source, why=why)


def _ours(verdict: Verdict, rule: str) -> str:
    """A rule for every use of a tool is written without a pattern here."""
    tool, _, pattern = rule.partition("(")
    if pattern not in ("*)", ":*)", "**)"):
        return rule
    # Every file of the project: the tool alone would allow those outside as well.
    keeps = verdict == "allow" and our_tool_name(tool) in FILE_TOOLS
    return rule if keeps else tool


# -- codex: *.rules, a subset of Python


def _of_codex(text: str, path: Path) -> Iterator[ImportedRule]:
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise UsageError(f"{path}, line {error.lineno}: it is no rule file of codex") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{path} is no rule file of codex") from error
    for statement in module.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Constant):
            continue  # a text that stands alone is a comment
        try:
            yield from _of_call(call, path)
        except (ValueError, TypeError) as error:
            shown = ast.unparse(statement)
            why = f"line {statement.lineno}: {error}"
            yield ImportedRule(verdict="ask", rule=shown, source=str(path), why=why)


def _of_call(call: ast.expr | None, path: Path) -> Iterator[ImportedRule]:
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError("only prefix_rule(…) with plain values is understood")
    if call.func.id != "prefix_rule" or call.args:
        raise ValueError(f"{call.func.id} has no counterpart here")
    if odd := next((word.arg for word in call.keywords if word.arg not in _KEYWORDS), ""):
        raise ValueError(f"{odd} of a rule is not known here")  # it may narrow the rule
    given = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
    if len(given) < len(call.keywords):
        raise ValueError("only prefix_rule(…) with plain values is understood")
    decision = given.get("decision", "allow")
    if not isinstance(decision, str) or decision not in _DECISIONS:
        raise ValueError(f"the decision {decision!r} is not known")
    for words in _forms(given.get("pattern")):
        yield ImportedRule(
            verdict=_DECISIONS[decision],
            rule=f"shell({shlex.join(words)} *)",
            source=str(path),
            match=tuple(_examples(given.get("match"), words)),
            # What no form may cover, none of them may.
            not_match=tuple(_examples(given.get("not_match"), ())),
        )


def _forms(pattern: Any) -> list[tuple[str, ...]]:
    """The words of a prefix; a list stands for one of several words."""
    if not isinstance(pattern, list | tuple) or not pattern:
        raise ValueError("a pattern is a list of words")
    choices = [[each] if isinstance(each, str) else each for each in pattern]
    if not all(isinstance(word, str) and word for words in choices for word in words):
        raise ValueError("a pattern is a list of words")
    if prod(map(len, choices)) > _MOST_FORMS:
        raise ValueError(f"it stands for more than {_MOST_FORMS} rules")
    return [tuple(words) for words in product(*choices)]


def _examples(given: Any, words: Sequence[str]) -> Iterator[str]:
    """Examples as lines, of those that begin with these words."""
    for each in given if isinstance(given, list | tuple) else ():
        line = each if isinstance(each, str) else shlex.join(each)
        try:
            begin = shlex.split(line)[: len(words)]
        except ValueError:
            continue
        if begin == list(words):
            yield line
