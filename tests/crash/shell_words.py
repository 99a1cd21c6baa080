"""Words of command lines: for lines whose words we call literal, a real bash makes the same words.

`python -m tests.crash.shell_words` prints one JSON line; `--lines 200 --seed 7` tries fewer,
others.  What `bash -n` refuses must not be understood either, and no line may be judged with an
exception.  Bash runs in an empty sandbox without a network, and every command is a function that
prints its words.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.attack_corpus import BENIGN, action_of, cases, rules_of
from tests.support.bash_words import bash_words, command_words, is_comparable, refused_by_bash
from tests.support.shell_lines import grammar_line, literal_line, mutated_line
from weft.permissions import decide
from weft.permissions.shell import parse_line

_PARTLY_RUN = ("||", "&&", "if ", "!", "while", "for ", "until")
"""With one of these, some commands of a line may not be run."""


def some_lines(count: int, chance: random.Random) -> list[str]:
    """Lines that are comparable, and as many others as came up on the way."""
    known = [case.text for case in cases(BENIGN) if case.tool == "shell"]
    found: list[str] = []
    comparable = 0
    while comparable < count:
        what = chance.random()
        if what < 0.5:
            line = literal_line(chance)
        elif what < 0.8:
            line = grammar_line(chance)
        else:
            line = mutated_line(chance, chance.choice(known))
        if "\0" in line or any(0xD800 <= ord(letter) < 0xE000 for letter in line):
            continue
        found.append(line)
        comparable += is_comparable(parse_line(line))
    return found


def differing(lines: Sequence[str], folder: Path) -> list[str]:
    """Lines of which bash makes other words."""
    wrong = []
    for line, seen in zip(lines, bash_words(lines, folder), strict=True):
        read = command_words(parse_line(line))
        is_partly = any(each in line for each in _PARTLY_RUN) or "<" in line or ">" in line
        if not (set(seen) <= set(read) if is_partly else sorted(seen) == sorted(read)):
            wrong.append(line)
    return wrong


def main(argv: Sequence[str]) -> int:
    """Prove it, and print the line."""
    options = argparse.ArgumentParser()
    options.add_argument("--lines", type=int, default=2_000)
    options.add_argument("--seed", type=int, default=18)
    given = options.parse_args(argv)
    began = time.monotonic()
    every = some_lines(given.lines, random.Random(given.seed))
    comparable = [line for line in every if is_comparable(parse_line(line))]
    rules = rules_of(("allow shell(git diff *)", "deny shell(rm *)"))
    for line in every:
        decide(action_of("shell", line), mode="default", rules=rules)
    with tempfile.TemporaryDirectory() as place:
        wrong = differing(comparable, Path(place) / "words")
        refused = refused_by_bash(every, Path(place) / "syntax")
    taken = [
        line
        for line, is_refused in zip(every, refused, strict=True)
        if is_refused and not parse_line(line).doubt
    ]
    for line in (*wrong, *taken):
        print(f"differs: {line!r}", file=sys.stderr)
    told = {"claim": "shell_words", "n": len(comparable), "violations": len(wrong) + len(taken)}
    told |= {"seed": given.seed, "seconds": round(time.monotonic() - began, 1)}
    print(json.dumps(told | {"judged": len(every), "refused": sum(refused)}))
    return int(bool(wrong or taken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
