"""Ignore files: which names of a project are left out.

The rules are git's: nested files, the nearer one wins, the last matching line of a file wins, `!`
takes a line back, and nothing below an ignored folder is looked at.  They are read by us, not by
asking git: a repository's own settings can make git run programs.

A folder with a `.git` of its own is another repository, and the rules above it end there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from weft.text_cache import TextCache
from weft.workspace.skipped_folders import skipped_for

NAME: Final = ".gitignore"
"""How ignore files are called."""
NEVER: Final = frozenset(skipped_for("version control"))
"""Folders and files of version control itself: never looked at, whatever the rules say."""
_MAX_BYTES = 256 * 1024
_MOST_FOLDERS = 20_000
_NAMED = 1_000
# Not the build output: `build/` is a source folder in many projects, and its own ignore file can
# tell.
_USUAL = "".join(f"{name}/\n" for name in skipped_for("dependencies", "cache"))
"""What is left out unless a project's own file takes it back."""


class _Line:
    """One line of an ignore file."""

    __slots__ = ("_compiled", "by_path", "expression", "negated", "only_folders")

    def __init__(self, pattern: str) -> None:
        self.negated = pattern.startswith("!")
        # A slash at the beginning or in the middle ties a pattern to its file's folder; one at the
        # end only says "folders".  So the end is cut off before the test.
        pattern = pattern[self.negated :]
        self.only_folders = pattern.endswith("/")
        pattern = pattern.rstrip("/")
        self.by_path = "/" in pattern
        self.expression = _regex(pattern.removeprefix("/"))
        self._compiled: re.Pattern[str] | None = None
        # Only brackets can be wrong.  The others wait for a name that some line fits, for compiling
        # them takes longer than the rest of a look at a small project.
        if "[" in pattern:
            self._compiled = re.compile(self.expression, re.DOTALL)

    def matches(self, text: str) -> bool:
        """Whether a path, or a name, fits."""
        if self._compiled is None:
            self._compiled = re.compile(self.expression, re.DOTALL)
        return self._compiled.fullmatch(text) is not None


class IgnoreFile:
    """The lines of one ignore file."""

    def __init__(self, text: str) -> None:
        patterns = _patterns(_as_bytes(text.removeprefix("\ufeff")))
        self._lines = [line for each in patterns if (line := _parsed(each)) is not None]
        self._lines.reverse()  # the last one wins
        # Most names match nothing: one expression for all lines says so at once.
        self._name = _any_of(line.expression for line in self._lines if not line.by_path)
        self._path = _any_of(line.expression for line in self._lines if line.by_path)

    def judge(self, prefix: str, name: str, *, is_folder: bool) -> bool | None:
        """Whether `prefix + name`, relative to the file's folder, is ignored.

        None when no line speaks of it.
        """
        path = prefix + name
        if not path.isascii():
            path, name = _as_bytes(path), _as_bytes(name)
        if not (self._name and self._name(name)) and not (self._path and self._path(path)):
            return None
        for line in self._lines:
            if line.only_folders and not is_folder:
                continue
            if line.matches(path if line.by_path else name):
                return not line.negated
        return None


class IgnoreRules:
    """The rules in force in one folder: each ignore file with the way from it to here."""

    __slots__ = ("_chain",)

    def __init__(self, chain: tuple[tuple[IgnoreFile, str], ...]) -> None:
        self._chain = chain

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IgnoreRules) and self._chain == other._chain

    __hash__ = None  # type: ignore[assignment]  # compared, never looked up

    def ignores(self, name: str, *, is_folder: bool) -> bool:
        """True when the entry called `name` in this folder is left out."""
        if name in NEVER:
            return True
        # The nearest file first; the first that has something to say decides, as in git.
        for rules, prefix in reversed(self._chain):
            verdict = rules.judge(prefix, name, is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False

    def below(self, name: str, folder: str, over: str = "") -> IgnoreRules:
        """The rules in force in the folder called `name`, whose absolute path is `folder`.

        `over` as in `ignore_of`.
        """
        # `lexists`: in a worktree or submodule `.git` is a file, and a broken link still marks one.
        if os.path.lexists(f"{folder}/.git") or (over and os.path.isdir(f"{over}/.git")):
            return _repository(folder, over)
        chain = tuple((rules, f"{prefix}{name}/") for rules, prefix in self._chain)
        return IgnoreRules(_with_file(chain, folder, over))


def ignore_of(root: str, over: str = "") -> IgnoreRules:
    """The rules in force in the project `root`: its own, and those above it when it lies inside a
    repository.

    `over` is a folder whose ignore file takes the place of the project's, where it has one: the
    upper layer of an overlay.
    """
    above: list[str] = []
    top = root
    while not os.path.lexists(f"{top}/.git"):
        parent = os.path.dirname(top)
        if parent == top:
            return IgnoreRules(
                _with_file(((_usual(), ""),), root, over)
            )  # no repository: nothing above counts
        above.append(os.path.basename(top))
        top = parent
    ignore = _repository(top, over if top == root else "")
    for name in reversed(above):
        top = f"{top.rstrip('/')}/{name}"
        ignore = ignore.below(name, top, over if top == root else "")
    return ignore


def read_ignore_file(path: str) -> IgnoreFile | None:
    """The rules of one ignore file, whatever its name; None where there is none.  Blocks."""
    text = _read(path)
    return None if text is None else _rules(text)


def ignored_in(root: str) -> dict[str, str]:
    """What the rules leave out of a project, with the reason.

    As much as is worth naming.  Blocks.
    """
    found: dict[str, str] = {}
    waiting = [("", ignore_of(root))]
    for looked in range(_MOST_FOLDERS):
        if looked >= len(waiting) or len(found) >= _NAMED:
            break
        path, ignore = waiting[looked]
        with suppress(OSError), os.scandir(f"{root}/{path}") as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                is_folder = entry.is_dir(follow_symlinks=False)
                if ignore.ignores(entry.name, is_folder=is_folder):
                    shown = f"{path}{entry.name}{'/' if is_folder else ''}"
                    found[os.fsencode(shown).decode(errors="replace")] = "ignored"
                elif is_folder:
                    below = ignore.below(entry.name, entry.path)
                    waiting.append((f"{path}{entry.name}/", below))
    return found


def _repository(folder: str, over: str = "") -> IgnoreRules:
    chain: tuple[tuple[IgnoreFile, str], ...] = ((_usual(), ""),)
    exclude = _read(f"{folder}/.git/info/exclude")
    if exclude is not None:
        chain = (*chain, (_rules(exclude), ""))
    return IgnoreRules(_with_file(chain, folder, over))


def _with_file(
    chain: tuple[tuple[IgnoreFile, str], ...], folder: str, over: str = ""
) -> tuple[tuple[IgnoreFile, str], ...]:
    is_replaced = bool(over) and os.path.lexists(f"{over}/{NAME}")
    text = _read(f"{over if is_replaced else folder}/{NAME}")
    return chain if text is None else (*chain, (_rules(text), ""))


def _read(path: str) -> str | None:
    """The text of an ignore file; None where there is none.  A link is not followed, as in git."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    try:
        fd = os.open(path, flags)
    except OSError:
        return None
    try:
        return os.read(fd, _MAX_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    finally:
        os.close(fd)


# The same text gives the same object, so that unchanged ones compare equal.
_rules = TextCache(IgnoreFile, 1024 * 1024)


def _usual() -> IgnoreFile:
    return _rules(_USUAL)


# --- patterns ----------------------------------------------------------------------------------


_NAMED_CLASS: Final = re.compile(r"\[:(\w*):\]")
_IN_CLASS: Final = re.compile(rf"{_NAMED_CLASS.pattern}(-?)|\\?(.)", re.DOTALL)
_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r"\x09-\x0d\x20",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
"""What stands for `[:alpha:]` in brackets: letters of ASCII, as in git."""
_STAR = "[^/]*"
_FOLDERS = "(?:.*/)?"


def _as_bytes(text: str) -> str:
    """A letter for each byte: git's `?` is one byte, not one letter."""
    return os.fsencode(text).decode("latin-1")


def _patterns(text: str) -> list[str]:
    trimmed = (_trimmed(line.removesuffix("\r")) for line in text.split("\n"))
    return [line for line in trimmed if line and not line.startswith("#") and line.strip("!/")]


def _trimmed(line: str) -> str:
    """Without the blanks at its end, unless a backslash keeps them."""
    while line.endswith((" ", "\t")) and not line.endswith(("\\ ", "\\\t")):
        line = line[:-1]
    return line


def _parsed(pattern: str) -> _Line | None:
    try:
        return _Line(pattern)
    except re.error:
        return None  # a line that means nothing, such as an open bracket


def _any_of(expressions: Iterable[str]) -> Callable[[str], re.Match[str] | None] | None:
    joined = "|".join(expressions)
    return re.compile(joined, re.DOTALL).fullmatch if joined else None


def _regex(pattern: str) -> str:
    """The pattern as a regular expression for a whole path, without exponential backtracking.

    The project writes the pattern, and `*a*a*a*b` fits `aaaaaaa…` in very many ways, all of which a
    plain expression would try.  So what stands between two stars is matched where it comes first,
    for good (`(?>…)`): no later place could do better, because the next star takes whatever lies
    between.  The same holds for what stands between two `**/`.
    """
    tokens: list[str] = []
    place = 0
    while place < len(pattern):
        found, place = _next(pattern, place)
        tokens.append(found)
    first, *others = _split(tokens, _FOLDERS)
    if not others:
        return _span(first)
    between = "".join(f"(?>(?:.*?/)??{_span(each)})" for each in others[:-1])
    return f"{_span(first)}{between}{_FOLDERS}{_span(others[-1])}"


def _span(tokens: list[str]) -> str:
    return "/".join(_component(each) for each in _split(tokens, "/"))


def _component(tokens: list[str]) -> str:
    first, *others = ("".join(each) for each in _split(tokens, _STAR))
    if not others:
        return first
    between = "".join(f"(?>[^/]*?{each})" for each in others[:-1])
    return f"{first}{between}{_STAR}{others[-1]}"


def _split(tokens: Iterable[str], at: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for token in tokens:
        if token == at:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _next(pattern: str, place: int) -> tuple[str, int]:
    """The expression for what stands at `place`, and the place after it."""
    at_start = place == 0 or pattern[place - 1] == "/"
    letter = pattern[place]
    if letter == "*":
        end = place
        # A run of stars is one star: each more would multiply the ways to match.
        while end < len(pattern) and pattern[end] == "*":
            end += 1
        # As in git, two or more mean folders only as a whole part of the path: `**/` at the
        # beginning or behind a slash, `/**` at the end. Anywhere else they are one.
        if at_start and end > place + 1:
            if pattern.startswith("/", end):
                return _FOLDERS, end + 1
            if place and end == len(pattern):
                return ".+", end
        return _STAR, end
    if letter == "?":
        return "[^/]", place + 1
    if letter == "[":
        return _bracket(pattern, place)
    if letter == "\\" and place + 1 < len(pattern):
        return re.escape(pattern[place + 1]), place + 2
    return re.escape(letter), place + 1


def _bracket(pattern: str, place: int) -> tuple[str, int]:
    start = place + 1
    negated = pattern[start : start + 1] in ("!", "^")
    start += negated
    # A bracket right at the start is a letter of the class, not its end.
    end = start + 1 if pattern[start : start + 1] == "]" else start
    while end < len(pattern) and pattern[end] != "]":
        named = _NAMED_CLASS.match(pattern, end)
        end = named.end() if named else end + 1 + (pattern[end] == "\\")
    if end >= len(pattern):
        raise re.error("an open bracket")
    inside = _IN_CLASS.sub(_in_class, pattern[start:end])
    # A negated class would match a slash, which no class does in git.
    return f"(?!/)[{'^' if negated else ''}{inside}]", end + 1


def _in_class(found: re.Match[str]) -> str:
    named, dash, letter = found.groups()
    if named is not None:
        if named not in _CLASSES:
            raise re.error("an unknown class")
        return f"{_CLASSES[named]}{re.escape(dash)}"  # no class begins a range
    is_range = letter == "-" and not found[0].startswith("\\")
    return letter if is_range else re.escape(letter)
