"""Decisions about a million random command lines, and what those that only read do to a folder.

`python -m tests.crash.commands` prints one JSON line; `--lines 2000 --read-only 50 --seed 7` tries
fewer, others.  No line may end in an exception or take 100 ms of processor time, and of a hundred
lines 99 must take less than 5 ms; a rule that restricts and a command that is added may never
loosen a decision; and lines that are judged to only read are run in a sandbox without a network,
over a folder, a home and temporary files of which nothing may change.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.support.attack_corpus import BENIGN, KINDS, action_of, cases, rules_of
from tests.support.read_only_lines import changing, only_reads, read_only_line
from tests.support.shell_lines import grammar_line, literal_line, mutated_line
from weft.permissions import Mode, PermissionRule, decide
from weft.permissions.shell import judge, parse_line

MODES: Final[tuple[Mode, ...]] = ("plan", "default", "accept_edits", "auto", "bypass")
SEVERITY: Final = {"allow": 0, "ask": 1, "deny": 2}
RULES: Final = (
    *("allow shell(git diff *)", "allow shell(ls:*)", "allow shell", "allow edit(src/**)"),
    *("deny shell(rm *)", "ask shell(git push *)", "deny read(.env)", "deny edit(.git/**)"),
)
ADDED: Final = (
    *("deny shell(rm *)", "ask shell(git diff *)", "deny shell(ls)", "ask shell", "deny shell"),
    *("deny read(a.txt)", "deny edit(src/**)", "deny shell(find * -delete)", "ask read(.env)"),
)
JOINTS: Final = ("; ", " && ", " || ", " | ", " & ", "\n")
BATCH: Final = 250
SLOW, SLOWEST = 0.005, 0.1

Judge = Callable[[str, Mode, tuple[PermissionRule, ...]], str]


def verdict(line: str, mode: Mode, rules: tuple[PermissionRule, ...]) -> str:
    """What is decided of a line."""
    return decide(action_of("shell", line), mode=mode, rules=rules).verdict


class Fuzz:
    """Random lines, judged; and what must not be of them."""

    def __init__(self, seed: int, judged: Judge = verdict) -> None:
        self._chance = random.Random(seed)
        self._judged = judged
        every = {case.text for kind in (*KINDS, BENIGN) for case in cases(kind)}
        self._known = sorted(text for text in every if len(text) < 2_500)
        self._whole = [text for text in self._known if _stands_alone(text)]
        self.seconds: list[float] = []
        self.wrong: list[str] = []

    def line(self) -> str:
        """One from the grammar, or a real one that is changed."""
        what, chance = self._chance.random(), self._chance
        if what < 0.4:
            return mutated_line(chance, chance.choice(self._known))
        if what < 0.7:
            return grammar_line(chance)
        return literal_line(chance) if what < 0.85 else read_only_line(chance)

    def run(self, count: int) -> None:
        """Judge as many lines; a tenth of them also with a rule, and with a command, more."""
        for at in range(count):
            line, mode = self.line(), self._chance.choice(MODES)
            rules = rules_of(tuple(self._chance.sample(RULES, self._chance.randint(0, 5))))
            try:
                began = time.thread_time()
                before = self._judged(line, mode, rules)
                self.seconds.append(time.thread_time() - began)
                if self.seconds[-1] > SLOWEST and self._is_slow(line, mode, rules):
                    self.wrong.append(f"takes {self.seconds[-1]:.3f} s: {line!r}")
                if not at % 10:
                    self._restrict(line, mode, rules, before)
                    self._join(mode, rules)
            except Exception as error:
                self.wrong.append(f"{type(error).__name__} for {line!r}")

    def _is_slow(self, line: str, mode: Mode, rules: tuple[PermissionRule, ...]) -> bool:
        """Whether it is so again, for a collection of garbage may have come between."""
        took = []
        for _ in range(3):
            judge._program.cache_clear()
            began = time.thread_time()
            self._judged(line, mode, rules)
            took.append(time.thread_time() - began)
        return min(took) > SLOWEST

    def _restrict(
        self, line: str, mode: Mode, rules: tuple[PermissionRule, ...], before: str
    ) -> None:
        added = self._chance.choice(ADDED)
        after = self._judged(line, mode, (*rules, *rules_of((added,))))
        if SEVERITY[after] < SEVERITY[before]:
            self.wrong.append(f"{added} loosens {before} to {after}: {line!r}")

    def _join(self, mode: Mode, rules: tuple[PermissionRule, ...]) -> None:
        one, other = self._chance.choice(self._whole), self._chance.choice(self._whole)
        line = f"{one}{self._chance.choice(JOINTS)}{other}"
        both = SEVERITY[self._judged(line, mode, rules)]
        for each in (one, other):
            if both < SEVERITY[self._judged(each, mode, rules)]:
                self.wrong.append(f"more commands loosen the decision: {line!r}, {each!r}")

    def slowest(self) -> float:
        """The time within which 99 of 100 decisions were made."""
        return sorted(self.seconds)[len(self.seconds) * 99 // 100]


def _stands_alone(line: str) -> bool:
    """Whether what follows a line is a command of its own."""
    if "#" in line or "<<" in line or line.rstrip().endswith(("&", ";", "|", "\\", "\n")):
        return False
    parsed = parse_line(line)
    return not parsed.is_broken and not parsed.refused


def read_only_lines(count: int, seed: int) -> list[str]:
    """As many different lines that are judged to only read."""
    chance = random.Random(seed)
    found: dict[str, None] = {}
    for case in cases(BENIGN):
        if case.tool == "shell" and not case.text.startswith("sleep") and only_reads(case.text):
            found[case.text] = None
    while len(found) < count:
        line = read_only_line(chance)
        if "\0" not in line and only_reads(line):
            found[line] = None
    return list(found)[:count]


def effects_of(lines: Sequence[str], place: Path) -> list[str]:
    """The lines that change something."""
    batches = (lines[at : at + BATCH] for at in range(0, len(lines), BATCH))
    return [each for batch in batches for each in changing(batch, place)]


def main(argv: Sequence[str]) -> int:
    """Prove it, and print the line."""
    options = argparse.ArgumentParser()
    options.add_argument("--lines", type=int, default=1_000_000)
    options.add_argument("--read-only", type=int, default=5_000)
    options.add_argument("--seed", type=int, default=18)
    given = options.parse_args(argv)
    began = time.monotonic()
    fuzz = Fuzz(given.seed)
    fuzz.run(given.lines)
    if fuzz.slowest() >= SLOW:
        fuzz.wrong.append(f"one of a hundred takes {fuzz.slowest() * 1000:.1f} ms")
    lines = read_only_lines(given.read_only, given.seed)
    with tempfile.TemporaryDirectory() as place:
        effects = effects_of(lines, Path(place))
    for each in (*fuzz.wrong, *(f"changes something: {line!r}" for line in effects)):
        print(each, file=sys.stderr)
    violations = len(fuzz.wrong) + len(effects)
    told = {"claim": "commands", "n": given.lines, "violations": violations, "seed": given.seed}
    told |= {"seconds": round(time.monotonic() - began, 1), "read_only": len(lines)}
    ordered = sorted(fuzz.seconds)
    told |= {"median_ms": round(ordered[len(ordered) // 2] * 1000, 3)}
    told |= {"p99_ms": round(fuzz.slowest() * 1000, 3), "most_ms": round(ordered[-1] * 1000, 1)}
    print(json.dumps(told))
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
