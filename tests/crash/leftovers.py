"""Commands that leave processes behind, half of them aborted: none lives, none is a zombie.

`python -m tests.crash.leftovers` prints one JSON line; `--runs 40 --seed 7` tries fewer, others.
Each command sleeps under a number of its own, by which `/proc` is searched: in sessions of their
own, after double forks, with SIGTERM ignored, with the pipes held open, with an empty environment.
Half run in the sandbox, half as they are below the keeper; about half of all are aborted at an
instant that the seed chooses.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import anyio

from tests.support.sandboxed_project import sandboxed_project
from weft.workspace import COMMAND_KEEPER, LocalRunner, ProcessCommand, Runner

GRACE_SECONDS: Final = 2.0
REAPED_SECONDS: Final = 10.0
AT_ONCE: Final = 4
KINDS: Final = (
    "setsid sleep {n} & sleep {n}",
    "(setsid sh -c 'sleep {n} & exec sleep {n}' &) ; sleep {t}",
    "setsid sh -c 'trap \"\" TERM HUP INT; sleep {n}; sleep {n}' & trap '' TERM; sleep {t}",
    "sleep {n} & disown -a; exec true",
    "nohup setsid sleep {n} >/dev/null 2>&1 & exit 0",
    "env -i setsid sleep {n} </dev/null >/dev/null 2>&1 & sleep {t}",
    "python3 -c 'import os, time\nfor _ in 1, 2:\n if os.fork(): os._exit(0)\n os.setsid()\n"
    'os.execvp("sleep", ["sleep", "{n}"])\'; sleep {t}',
    "while :; do (setsid sleep {n} &); sleep 0.02; done",
)


class Leftovers:
    """The runs, and what they left."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.aborted = 0
        self.wrong: list[str] = []
        self._number = 900_000_000 + os.getpid() % 10_000 * 10_000

    async def run(self, runner: Runner, folder: Path) -> None:
        """One command."""
        self._number += 1
        number, kind = self._number, self._random.choice(KINDS)
        # More than half: some kinds end at once, and are over before the abort.
        stops = self._random.random() < 0.8
        line = kind.replace("{n}", str(number)).replace("{t}", "0.6" if stops else "0.1")
        after = self._random.uniform(0, 0.3) if stops else 3.0
        command = ProcessCommand(
            argv=("/bin/bash", "-c", line), cwd=str(folder), timeout_seconds=1.0
        )
        with anyio.move_on_after(after) as scope:
            await runner.run(command)
        self.aborted += scope.cancelled_caught
        if left := await survivors(number):
            self.wrong.append(f"{left} processes of {line!r}")


async def survivors(number: int) -> int:
    """How many processes with this number live, once they had time to go."""
    word, until = str(number).encode(), time.monotonic() + GRACE_SECONDS
    while True:
        left = _with_word(word)
        if not left or time.monotonic() > until:
            return left
        await anyio.sleep(0.05)


def _with_word(word: bytes) -> int:
    count = 0
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            count += word in Path("/proc", name, "cmdline").read_bytes()
        except OSError:
            continue  # it has gone meanwhile
    return count


def zombies() -> list[str]:
    """Zombies among our own children and below."""
    rows = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            state, parent = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        rows[name] = (state, parent)
    found = []
    for name, (state, parent) in rows.items():
        above = parent
        while above in rows and above != str(os.getpid()):
            above = rows[above][1]
        if state == "Z" and above == str(os.getpid()):
            found.append(name)
    return found


async def prove(runs: int, seed: int, folder: Path) -> Leftovers:
    """Run the commands, a few at once."""
    work = Leftovers(seed)
    plain = LocalRunner(dict(os.environ), keeper=COMMAND_KEEPER)
    slots = anyio.Semaphore(AT_ONCE)
    async with sandboxed_project(folder) as there:
        await there.shell("true")
        await plain.run(ProcessCommand(argv=("/bin/true",), cwd=str(there.project)))
        files, before = len(os.listdir("/proc/self/fd")), {*zombies()}  # of others in this process

        async def one(runner: Runner) -> None:
            async with slots:
                await work.run(runner, there.project)

        async with anyio.create_task_group() as group:
            for number in range(runs):
                group.start_soon(one, there.runner if number % 2 else plain)
        with anyio.move_on_after(REAPED_SECONDS):  # a zombie that stays is nobody's
            while {*zombies()} - before:  # noqa: ASYNC110 - the kernel has no event for it
                await anyio.sleep(0.02)
        if left := {*zombies()} - before:
            work.wrong.append(f"{len(left)} zombies")
        if (now := len(os.listdir("/proc/self/fd"))) > files + 2 * AT_ONCE:
            work.wrong.append(f"{now - files} more open files")
    return work


def main(argv: Sequence[str]) -> int:
    """Prove it, and print one line."""
    parser = argparse.ArgumentParser(prog="tests.crash.leftovers")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(argv)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = anyio.run(prove, given.runs, given.seed, Path(folder))
    for each in found.wrong[:20]:
        print(each, file=sys.stderr)
    told: dict[str, Any] = {"claim": "leftovers", "n": given.runs, "violations": len(found.wrong)}
    seconds = round(time.monotonic() - begun, 1)
    print(json.dumps({**told, "seed": given.seed, "seconds": seconds, "aborted": found.aborted}))
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
