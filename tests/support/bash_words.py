"""Bash as the judge of words: a real bash prints the words of every command of a line.

Every command is a function that prints its words; the shell has no programs, an empty folder, no
network, and ends with its sandbox.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from weft.permissions.shell import CommandLine, parse_line

_NAME = re.compile(r"[A-Za-z0-9_:@+,.^-]+")
_SCRIPT = r"""
__words() {
  builtin local words
  builtin printf -v words '\1%s' "$@"
  # In one write: two parts of a pipeline print at once.
  builtin printf 'C%s\2' "$words" >&9
}
command_not_found_handle() { __words "$@"; return 0; }
exec 9> "$1/words"
while IFS= read -r -d '' names && IFS= read -r -d '' line; do
  ( cd "$1/empty" || exit 9; eval -- "$names"; eval -- "$line"; wait ) > /dev/null 2>&1 < /dev/null
  printf '\3' >&9
done < "$1/lines"
"""
_REFUSED = r"""
while IFS= read -r -d '' line; do
  /bin/bash -n -c -- "$line" 2> /dev/null && echo 0 || echo 1
done < "$1/lines"
"""
SANDBOX = (
    *("bwrap", "--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--die-with-parent"),
    *("--new-session", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
)


def command_words(parsed: CommandLine) -> list[tuple[str, ...]]:
    """The words that we read, command by command; `time` is a word of the syntax for bash."""
    found = []
    for command in parsed.commands:
        words = [word.text for word in command.words]
        while words and words[0] == "time":
            words = words[1:]
            while words and words[0] in ("-p", "--"):
                words = words[1:]
        if words:
            found.append(tuple(words))
    return found


def is_comparable(parsed: CommandLine) -> bool:
    """Whether every word is literal, and bash can be made to print all of them."""
    if parsed.doubt or parsed.is_broken or parsed.refused or not parsed.commands:
        return False
    for command in parsed.commands:
        if command.assignments or any(word.kind != "literal" for word in command.words):
            return False
        # A name with a slash is a path for bash, and an empty one is no name: no function has it.
        if command.words and ("/" in command.words[0].text or not command.words[0].text):
            return False
    return bool(command_words(parsed))


def bash_words(lines: Sequence[str], folder: Path) -> list[list[tuple[str, ...]]]:
    """What bash makes of each line."""
    (folder / "empty" / "src").mkdir(parents=True)
    for name in ("f", "a.py"):  # files that lines read from
        (folder / "empty" / name).touch()
    pairs = b"".join(_functions(line).encode() + b"\0" + line.encode() + b"\0" for line in lines)
    (folder / "lines").write_bytes(pairs)
    _run(_SCRIPT, folder)
    printed = (folder / "words").read_bytes().decode()
    return [_read(each) for each in printed.split("\3")[:-1]]


def _read(printed: str) -> list[tuple[str, ...]]:
    return [tuple(each.split("\1")[1:]) for each in printed.split("\2") if each]


def _functions(line: str) -> str:
    """Definitions that stand in for every builtin and program that the line may name."""
    names = {words[0] for words in command_words(parse_line(line))}
    usable = [name for name in sorted(names) if _NAME.fullmatch(name)]
    return "".join(f'function {name} {{ __words {name} "$@"; }}\n' for name in usable)


def refused_by_bash(lines: Sequence[str], folder: Path) -> list[bool]:
    """Of which lines `bash -n` says that they are no bash."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lines").write_bytes(b"".join(line.encode() + b"\0" for line in lines))
    return [each == b"1" for each in _run(_REFUSED, folder).split()]


def _run(script: str, folder: Path) -> bytes:
    place = ("--bind", str(folder), str(folder), "--clearenv", "--setenv", "LC_ALL", "C.UTF-8")
    shell = ("/bin/bash", "--norc", "-c", script, "bash", str(folder))
    done = subprocess.run(
        [*SANDBOX, *place, "--setenv", "PATH", "/none", *shell],
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    return done.stdout
