"""Reach of a command: files that it finds by itself and reads or changes, as globs.

`grep -r x src` names no file below `src`, and reads every one; `find . -exec rm {} +` and `git ls-
files | xargs rm` change what is named nowhere on the line.  Rules that forbid files ask about such
commands when a file of theirs may be among those.  What a program decides alone (a test, a build)
is not seen here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from weft.permissions.shell.parts import ShellPart, without_git_options
from weft.permissions.shell.read_only import NotReadOnly, read_only_use, row_of
from weft.permissions.shell.tables import CHANGING_PROGRAMS, ReadOnlyRow, is_known
from weft.permissions.shell.words import ShellWord

_EVERYTHING: Final = ("*",)
_GREPS: Final = frozenset(
    {"grep", "egrep", "fgrep", "zgrep", "bzgrep", "xzgrep", "pcregrep", "pcre2grep", "ugrep", "ug"}
)
_FINDERS: Final = frozenset({"rg", "ag", "ack", "rgrep"})
"""Searches that look into folders unasked."""
_PASS_OVER: Final = frozenset({"rg", "ag"})
"""Those of them that pass over hidden files."""
_TREES: Final = frozenset({"tar", "zip", "7z", "rsync", "mv", "scp", "bsdtar", "cpio", "pax"})
"""Programs that take folders with all in them."""
_BY_OPTION: Final = {
    **dict.fromkeys(("chmod", "chown", "chgrp"), "R"),
    **dict.fromkeys(("diff", "gzip", "gunzip", "zstd"), "r"),
    "cp": "rRa",
}
"""Programs that do so with one of these letters."""
_RECURSIVE: Final = ("--recursive", "--dereference-recursive", "--archive")
_PACKERS: Final = frozenset({"gzip", "gunzip", "zstd"})
"""Programs that put another file into the place of each."""
_UNPACKS: Final = frozenset({"patch", "unzip", "tar", "bsdtar", "cpio", "pax", "7z"})
_PACK_OR_LIST: Final = ("--list", "--create", "--append", "--update", "--catenate", "--diff")
_LISTS_ZIP: Final = ("-l", "-p", "-t", "-v", "-z")
_GIT_CHANGES: Final = frozenset(
    """
    apply am clean reset checkout switch restore stash pull merge rebase revert cherry-pick
    read-tree checkout-index sparse-checkout
    """.split()  # noqa: SIM905  # a list of words
)
_GIT_LOOKS: Final = {
    "stash": frozenset({"list", "show", "drop", "clear", "branch", "create", "store"}),
    "bisect": frozenset({"log", "view", "visualize", "help", "terms"}),
}
"""Words behind a subcommand with which it leaves the files of the project alone."""
_GIT_HARMLESS: Final = {
    "apply": (("--stat", "--check", "--numstat", "--summary"), ""),
    "clean": (("--dry-run",), "n"),
    "restore": (("--staged",), "S"),
    "merge": (("--quit",), ""),
}
"""Options with which it does so, long ones and letters."""
_GIT_ALL_THE_SAME: Final = {
    "apply": (("--apply",), ""),
    "clean": (("--exclude",), "e"),
    "restore": (("--worktree",), "W"),
}
"""Options with which it changes them even so, or which may take those for their value."""
_FORCES: Final = ("--force", "--discard-changes", "--ours", "--theirs", "--merge", "--patch")
"""Options with which `git checkout` and `git switch` change files and not the commit."""
_SHOWING: Final = ("--hidden", "--unrestricted", "--iglob")
_GIVES_PATTERN: Final = frozenset({"--regexp", "--file", "--files"})
_WITH_VALUE: Final = frozenset({"text", "path", "two"})
_GIVES_WORDS: Final = frozenset({"xargs", "parallel"})
_TESTS_NAMES: Final = frozenset({"-name", "-path", "-wholename"})
_WIDENS: Final = frozenset({"-o", "-or", "!", "-not", ",", "-iname", "-ipath", "-regex"})


class FileReach(msgspec.Struct, frozen=True):
    """What a command may read and change without naming it: globs whose star crosses folders."""

    reads: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    skips_hidden: bool = False
    """Files and folders whose name begins with a dot are passed over."""
    is_narrowed: bool = False
    """Only files of some names are read or changed."""
    why: str = ""


def reach_of(part: ShellPart, root: str = "") -> FileReach:
    """The reach of one command."""
    name = part.name
    if part.opaque and not _only_reads(part, root):
        return FileReach(_EVERYTHING, _EVERYTHING, why=part.opaque)
    if name == "find":
        return _of_find(part, root)
    if name in _GIVES_WORDS:
        return _of_inner(part, _EVERYTHING, root)
    if name in ("fd", "fdfind"):
        texts = [word.text for word in part.words[1:]]
        runs = _has_letter(texts, "xX") or any(_shortens(text, "--exec-batch") for text in texts)
        why = f"{name} runs a program with what it finds"
        return FileReach(_EVERYTHING, _EVERYTHING, why=why) if runs else FileReach()
    if name == "git":
        return _of_git(part)
    return _of_program(part)


def _of_program(part: ShellPart) -> FileReach:
    name, words = part.name, part.words[1:]
    texts = [word.text for word in words]
    why = f"{name} takes the files of a folder"
    if name in _GREPS:
        if not (_has_letter(texts, "rR") or _is_recursive(texts)):
            return FileReach()
        names = _values(texts, "--include")
        found = _narrowed(_searched(part), names)
        return FileReach(found, is_narrowed=bool(names), why=why)
    if name in _FINDERS:
        return _of_finder(part, texts, why)
    found = _below(_folders(words, 0)) if name in _TREES else ()
    if _has_letter(texts, _BY_OPTION.get(name, "")) or _is_recursive(texts):
        found = _below(_folders(words, 0))
    changes = found if name in CHANGING_PROGRAMS | _PACKERS else ()
    if name in _UNPACKS and not _only_lists(name, texts):
        changes = _EVERYTHING
    return FileReach(found, changes, why=why) if found or changes else FileReach()


def _of_finder(part: ShellPart, texts: Sequence[str], why: str) -> FileReach:
    folders = _searched(part)
    # What a filter names is searched though it is hidden.
    names = _filters(texts) if part.name == "rg" else []
    is_plain = not any(set("{[\\/") & set(name) for name in names)
    skips = part.name in _PASS_OVER and not names and not _shows_hidden(texts)
    if names and is_plain and not any(text.startswith("--iglob") for text in texts):
        return FileReach(_narrowed(folders, names), is_narrowed=True, why=why)
    return FileReach(_below(folders), skips_hidden=skips, why=why)


def _filters(texts: Sequence[str]) -> list[str]:
    """The names that `rg` is to search, of all of its filters."""
    found = _values(texts, "--glob")
    for text, value in pairwise([*texts, ""]):
        if text[:1] == "-" and text[:2] != "--" and "g" in text:
            found.append(text.partition("g")[2].removeprefix("=") or value)
    return [name for name in found if name[:1] != "!"]


def _searched(part: ShellPart) -> list[str]:
    """The folders that a search looks into: its words without the pattern and options' values."""
    row = row_of(part.words)
    words = without_git_options(part.words)[2:] if part.name == "git" else part.words[1:]
    if row is None:
        return _folders(words, 1)
    plain: list[str] = []
    has_pattern = takes = False
    for text in (word.text for word in words):
        if takes or text == "--":
            takes = False
        elif text[:1] != "-" or text == "-":
            plain.append(text)
        else:
            has_pattern |= text.partition("=")[0] in _GIVES_PATTERN or (
                text[:2] != "--" and not {"e", "f"}.isdisjoint(text[1:])
            )
            takes = _takes_next(row, text)
    return (plain if has_pattern else plain[1:]) or ["."]


def _takes_next(row: ReadOnlyRow, text: str) -> bool:
    """Whether the next word is the value of an option; it may be that of one that is not known."""
    if text[:2] == "--":
        return "=" not in text and row.options.get(text, "text") in _WITH_VALUE
    for place, letter in enumerate(text[1:], 2):
        if not letter.isdecimal() and row.options.get(f"-{letter}", "text") in _WITH_VALUE:
            return place == len(text)
    return False


def _shows_hidden(texts: Sequence[str]) -> bool:
    """Whether a search that passes over hidden files does not: it is told so, a filter names them,
    or it begins in such a folder.
    """
    if _has_letter(texts, "u.") or any(text.startswith(_SHOWING) for text in texts):
        return True
    places = (piece for text in texts if text[:1] != "-" for piece in text.split("/"))
    return any(piece[:1] == "." and piece.strip(".") for piece in places)


def _only_lists(name: str, texts: Sequence[str]) -> bool:
    """Whether a program that unpacks does not: it lists, or it packs."""
    first = texts[0] if texts else ""
    if name in ("tar", "bsdtar"):
        given = [f"-{first.removeprefix('-')}" if first[:2] != "--" else first, *texts[1:]]
        # Letters behind an `f` are a name: only without any `x` it is certain.
        unpacks = _has_option(given, ("--extract", "--get"), "x")
        return not unpacks and _has_option(given, _PACK_OR_LIST, "tcru")
    if name == "unzip":
        return any(f"-{text.lstrip('-q')}".startswith(_LISTS_ZIP) for text in texts[:1])
    return (name == "7z" and first in ("a", "l", "t")) or "--dry-run" in texts


def _of_git(part: ShellPart) -> FileReach:
    words = without_git_options(part.words)[1:]
    texts = [word.text for word in words]
    subcommand = texts[0] if texts else ""
    if subcommand == "grep":
        return FileReach(_below(_searched(part)), why="git grep searches in all files")
    if subcommand not in _GIT_CHANGES:
        return FileReach()
    if _git_leaves_files(subcommand, texts[1:]):
        return FileReach()
    return FileReach((), _EVERYTHING, why=f"git {subcommand} may change any file of the project")


def _git_leaves_files(subcommand: str, texts: Sequence[str]) -> bool:
    """Whether a subcommand that may change any file changes none."""
    if subcommand in ("checkout", "switch"):
        # To another commit, whose files the user keeps in git; what else is named are files.
        names = [text for text in texts if text[:1] != "-"]
        forces = _has_option(texts, _FORCES, "fmp") or "--" in texts
        return not forces and not any(name.startswith((".", ":/")) for name in names)
    if subcommand == "reset":
        return not _has_option(texts, ("--hard", "--merge", "--keep"), "")
    if subcommand in _GIT_LOOKS:
        return next(iter(texts), "") in _GIT_LOOKS[subcommand]
    harmless = _has_option(texts, *_GIT_HARMLESS.get(subcommand, ((), "")))
    return harmless and not _has_option(texts, *_GIT_ALL_THE_SAME.get(subcommand, ((), "")))


def _has_option(texts: Sequence[str], names: Sequence[str], letters: str) -> bool:
    long = [text for text in texts if text[:2] == "--"]
    return _has_letter(texts, letters) or any(
        _shortens(text, name) for text in long for name in names
    )


def _shortens(text: str, option: str) -> bool:
    """Whether a word is this long option, which may be shortened and have a value."""
    name = text.partition("=")[0]
    return len(name) > 2 and name.startswith("--") and option.startswith(name)


def _of_find(part: ShellPart, root: str) -> FileReach:
    texts = [word.text for word in part.words[1:]]
    folders: list[str] = []
    for text in texts:
        if text.startswith(("-", "(", "!", ",")):
            break
        folders.append(text)
    names = [value for test, value in pairwise(texts) if test in _TESTS_NAMES and "/" not in value]
    found = _below(folders)
    is_narrowed = bool(names) and not _WIDENS & set(texts)
    if is_narrowed:
        found = _narrowed(folders, names[:1])
    deletes = any(text in ("-delete", "-fprint", "-fprintf", "-fls", "-fprint0") for text in texts)
    inner = _of_inner(part, found, root)
    why = "find takes the files of a folder"
    changes = found if deletes else inner.changes
    return FileReach(inner.reads, changes, is_narrowed=is_narrowed, why=why)


def _of_inner(part: ShellPart, globs: tuple[str, ...], root: str) -> FileReach:
    """What commands do that are given names of files."""
    reads = any(_may_read(each) for each in part.inner)
    changes = any(_may_change(each, root) for each in part.inner)
    why = f"{part.name} gives names of files to a program"
    return FileReach(globs if reads else (), globs if changes else (), why=why)


def _may_read(part: ShellPart) -> bool:
    row = row_of(part.words)
    if row is not None:
        return row.words not in ("none", "text", "echo", "printf", "ps", "date", "test")
    return part.name not in ("rm", "rmdir", "touch", "mkdir", "chmod", "chown", "unlink")


def _may_change(part: ShellPart, root: str) -> bool:
    may = part.name in CHANGING_PROGRAMS or not is_known(part.name) or bool(part.opaque)
    return may and not _only_reads(part, root)


def _only_reads(part: ShellPart, root: str) -> bool:
    try:
        read_only_use(part.words, root)
    except NotReadOnly:
        return False
    return True


def _is_recursive(texts: Sequence[str]) -> bool:
    # Long lines have thousands of words, and few of them are long options.
    long = [text for text in texts if text[:2] == "--"]
    if any(_shortens(text, option) for text in long for option in _RECURSIVE):
        return True
    # The value of `-d` and `--directories`, which may be shortened as well.
    values = [text.partition("=")[2] for text in long]
    return "recurse" in texts or "-drecurse" in texts or "recurse" in values


def _has_letter(texts: Iterable[str], letters: str) -> bool:
    """Whether a short option, alone or among others, is one of these letters."""
    if not letters:
        return False
    short = [text for text in texts if text[:1] == "-" and text[:2] != "--"]
    return any(letter in text[1:] for text in short for letter in letters)


def _values(texts: Sequence[str], option: str) -> list[str]:
    """The values of an option that narrows a search."""
    found = [text.partition("=")[2] for text in texts if text.startswith(f"{option}=")]
    return [*found, *(texts[at + 1] for at, text in enumerate(texts[:-1]) if text == option)]


def _folders(words: Sequence[ShellWord], skipped: int) -> list[str]:
    """The words that may be folders, behind those that are patterns."""
    plain = [word.text for word in words if not word.text.startswith("-") or word.text == "-"]
    return plain[skipped:] or (["."] if skipped else [])


def _below(folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{folder.rstrip('/') or '/'}/*" for folder in folders or ["."])


def _narrowed(folders: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """What lies below folders, or only what is called so."""
    if not names:
        return _below(folders)
    each = [folder.rstrip("/") for folder in folders or ["."]]
    return tuple(f"{folder}/{way}{name}" for folder in each for name in names for way in ("", "*/"))
