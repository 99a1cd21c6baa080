"""Rules about files, as they concern the words of commands: what `deny read(.env)` says of `.env`.

A word may name a file in several ways (`HEAD:.env`, `if=x`, below a folder that the line changes
to), and a long line has many words.  So all ways are tried against one expression for all rules
first, and only what fits it is looked at rule by rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from posixpath import normpath
from typing import Final, Literal, NamedTuple, TypeAlias

from weft.permissions.policy import PermissionRule, PolicyDecision, Verdict, rule_text
from weft.permissions.shell.file_reach import FileReach
from weft.permissions.shell.paths import as_glob, is_file_name, may_meet, paths_in
from weft.permissions.shell.words import ShellWord
from weft.permissions.tool_names import EDITING_TOOLS

FileUse: TypeAlias = Literal["read", "edit"]
_HIDDEN: Final = re.compile(r"(^|/)\.[^/.]")
ANY: Final = "any"
"""The command may mean any file by a word that is not known."""
DESTROYS: Final = "destroys"
"""The command takes folders with all that lies in them."""


class _Place(NamedTuple):
    """A path as rules see it: from the project, and from the root of the disk."""

    target: str
    absolute: str


class FileRules:
    """The rules about files that ask or deny, for a line that runs in `folder` of the project at
    `root`."""

    def __init__(self, rules: Sequence[PermissionRule], root: str, folder: str) -> None:
        self._root = root.rstrip("/")
        self._folder = folder
        self._said: dict[tuple[str, str, str], tuple[PolicyDecision, ...]] = {}
        """Long lines have the same words often."""
        restricting = [rule for rule in rules if rule.verdict != "allow" and rule.pattern]
        self._rules: dict[str, list[PermissionRule]] = {
            "read": _unlike(rule for rule in restricting if rule.tool == "read"),
            "edit": _unlike(rule for rule in restricting if rule.tool in EDITING_TOOLS),
        }
        self._folders: tuple[str, ...] = ()

    def enter(self, folders: tuple[str, ...]) -> None:
        """Count with the folders that the line changes to."""
        self._folders = folders

    def __bool__(self) -> bool:
        return any(self._rules.values())

    def of_word(self, word: ShellWord, use: FileUse, how: str = "") -> tuple[PolicyDecision, ...]:
        """What is said of a word that names a file; `how` is what else the command may mean."""
        if not self._rules[use]:
            return ()
        key = (word.raw, use, how)
        if key not in self._said:
            self._said[key] = tuple(self._by_rules(word, use, how))
        return self._said[key]

    def of_any(self, why: str) -> Iterator[PolicyDecision]:
        """What is said of a line whose words are not known."""
        for rules in self._rules.values():
            yield from (of_rule(rule, "ask", why) for rule in rules)

    def of_reach(self, reach: FileReach) -> Iterator[PolicyDecision]:
        """What is said of the files that a command finds by itself."""
        for use, globs in (("read", reach.reads), ("edit", reach.changes)):
            for rule in self._rules[use] if globs else ():
                if reach.skips_hidden and _HIDDEN.search(rule.pattern):
                    continue
                if reach.is_narrowed and _is_below_file(rule.pattern):
                    continue
                if any(may_meet(each, rule.pattern, crosses=True) for each in self._reached(globs)):
                    yield of_rule(rule, "ask", reach.why)

    def _reached(self, globs: Sequence[str]) -> list[str]:
        """Globs as rules see them, with those from the root of the disk."""
        places = [self._place(text) for each in globs for text in self._from_here(each)]
        return list(dict.fromkeys(path for each in places for path in each))

    def _by_rules(self, word: ShellWord, use: FileUse, how: str) -> Iterator[PolicyDecision]:
        rules = self._rules[use]
        is_known = word.kind == "literal" and how != DESTROYS
        if is_known and not self._may_name(tuple(rule.pattern for rule in rules), word.text):
            return
        texts = paths_in(word.text)
        if use == "edit":
            texts |= {f"{text.rstrip('/')}/x" for text in texts}  # a folder to write into
        places = [self._place(each) for text in texts for each in self._from_here(text)]
        glob = as_glob(word.raw) if word.kind == "dynamic" else word.text
        is_open = word.kind == "glob" or (word.kind == "dynamic" and (how == ANY or glob != "*"))
        may_fit = _any_of(tuple(rule.pattern for rule in rules))
        fits_one = any(may_fit(each.target) or may_fit(each.absolute) for each in places)
        if not (fits_one or is_open or how == DESTROYS):
            return
        globs = self._globs(glob) if is_open else []
        if word.kind == "glob" and how == DESTROYS:
            globs += [f"{each}/*" for each in globs]
        above = _below(word.text) if how == DESTROYS else "\0"
        for rule in rules:
            crosses = word.kind == "dynamic"
            if any(may_meet(each, rule.pattern, crosses=crosses) for each in globs):
                yield of_rule(rule, "ask", f"`{word.raw}` may be such a file")
            elif fits_one and any(_covers(rule, each) for each in places):
                yield of_rule(rule, rule.verdict)
            elif rule.pattern.startswith(above):
                yield of_rule(rule, "ask", f"`{word.raw}` holds such files")

    def _may_name(self, patterns: tuple[str, ...], text: str) -> bool:
        """False for nearly every word: what a pattern names stands nowhere in it, nor in what
        could stand before and behind it."""
        around = (self._root, self._folder, *self._folders, text, "x")
        return _needles(patterns).search("\n".join(around)) is not None

    def _globs(self, glob: str) -> list[str]:
        texts = (text for each in paths_in(glob) for text in self._from_here(each))
        return list(dict.fromkeys(self._place(text).target for text in texts))

    def _from_here(self, text: str) -> list[str]:
        return [text, *(f"{folder}/{text}" for folder in self._folders)]

    def _place(self, text: str) -> _Place:
        path = place_of(text, self._root, self._folder)
        return _Place(path, path if path.startswith("/") else f"{self._root}/{path}")


def _below(folder: str) -> str:
    """What the patterns of all files in a folder begin with."""
    path = normpath(folder)
    return "" if path == "." else f"{path}/"


def place_of(text: str, root: str, folder: str) -> str:
    """A path as rules name it: relative to the project where it lies in it."""
    path = normpath(text)
    if not path.startswith("/"):
        return f"{folder}/{path}" if folder else path
    path = f"/{path.lstrip('/')}"
    root = root.rstrip("/")
    return path[len(root) + 1 :] if root and path.startswith(f"{root}/") else path


def of_rule(rule: PermissionRule, verdict: Verdict, why: str = "") -> PolicyDecision:
    """What a rule that restricts decides; with a reason where that is not certain."""
    text = rule_text(rule)
    reason = f"the rule `{text}` says so"
    if verdict != rule.verdict or why:
        reason = f"it may be what the rule `{text}` means: {why}"
    return PolicyDecision(verdict, reason, verdict == "ask", by="rule", text=text)


def _unlike(rules: Iterator[PermissionRule]) -> list[PermissionRule]:
    """The rules without those that differ in the tool alone: a veto on edits is one for each."""
    found: dict[tuple[str, str, bool], PermissionRule] = {}
    for rule in rules:
        found.setdefault((rule.verdict, rule.pattern, rule.is_exact), rule)
    return list(found.values())


def _is_below_file(pattern: str) -> bool:
    """Whether a pattern is about what would lie below a file, were it a folder: a rule for `.env`
    also means that."""
    name = pattern.removesuffix("/*").rpartition("/")[2] if pattern.endswith("/*") else ""
    return bool(name) and not set("*?[") & set(name) and is_file_name(name)


def _covers(rule: PermissionRule, place: _Place) -> bool:
    if place.target == rule.pattern:
        return True
    if rule.is_exact:
        return False
    fits = _any_of((rule.pattern,))
    return fits(place.target) or (rule.pattern.startswith("/") and fits(place.absolute))


@lru_cache(maxsize=64)
def _needles(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Of each pattern a piece of a name that all paths have which fit it."""
    found = {max(re.split(r"[*?/]|\[.*\]?", each), key=len) for each in patterns}
    return re.compile("|".join(map(re.escape, sorted(found))))


class _AnyOf:
    """Whether a path fits one of several patterns."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._texts = frozenset(patterns)
        whole = "|".join(f"(?:{translate(each)})" for each in dict.fromkeys(patterns))
        self._fits = re.compile(whole or r"(?!)").match

    def __call__(self, path: str) -> bool:
        return path in self._texts or self._fits(path) is not None


@lru_cache(maxsize=1024)
def _any_of(patterns: tuple[str, ...]) -> _AnyOf:
    return _AnyOf(patterns)
