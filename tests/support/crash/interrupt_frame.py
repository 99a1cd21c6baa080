"""What both proofs of interrupts share: a case runs in a process that may be killed, is judged,
counted and reported in one line.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar

import anyio

from tests.support.crash.journey_process import (
    A_LIFE_TAKES_AT_MOST_SECONDS,
    import_everything,
    side_by_side,
)


class AnyCase(Protocol):
    """One way to be interrupted."""

    @property
    def kind(self) -> str:
        """`kill`, or what happens within the process."""
        ...


_Case = TypeVar("_Case", bound=AnyCase)


class Lives(NamedTuple, Generic[_Case]):
    """What is done with a case; the two that come back say what is wrong."""

    interrupt_and_go_on: Callable[[Path, _Case], Awaitable[list[str]]]
    be_killed: Callable[[Path, _Case], Awaitable[None]]
    come_back: Callable[[Path, _Case], Awaitable[list[str]]]


def judge_case(lives: Lives[_Case], case: _Case) -> list[str]:
    """What is wrong about one case.  Forks where a process has to be killed."""
    folder = Path(tempfile.mkdtemp(prefix="stop-"))
    try:
        if case.kind != "kill":
            found = _live(lives.interrupt_and_go_on, folder, case)
        else:
            found = _kill_and_come_back(lives, folder, case)
    finally:
        shutil.rmtree(folder)
    return [f"{case}: {wrong}" for wrong in dict.fromkeys(found)]


def _kill_and_come_back(lives: Lives[_Case], folder: Path, case: _Case) -> list[str]:
    pid = os.fork()
    if pid == 0:
        try:
            anyio.run(lives.be_killed, folder, case)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != -signal.SIGKILL:
        return [f"the process was not killed, it ended with {status}"]
    return side_by_side([partial(_live, lives.come_back, folder, case)], list[str])[0]


def _live(
    life: Callable[[Path, _Case], Awaitable[list[str]]], folder: Path, case: _Case
) -> list[str]:
    async def in_time() -> list[str]:
        with anyio.fail_after(A_LIFE_TAKES_AT_MOST_SECONDS):
            return await life(folder, case)

    return asyncio.run(in_time())


def judge_cases(lives: Lives[_Case], cases: Sequence[_Case]) -> dict[str, list[str]]:
    """What is wrong about each case."""
    return {str(case): judge_case(lives, case) for case in cases}


def prove(
    claim: str,
    argv: Sequence[str],
    lives: Lives[_Case],
    *,
    every: Sequence[_Case],
    sampled: Sequence[_Case],
    counts: Mapping[str, int],
) -> int:
    """Prove it and print the line; `counts` is said in it too."""
    parser = argparse.ArgumentParser(prog=f"tests.crash.{claim}")
    parser.add_argument(
        "--seed", type=int, default=1, help="means nothing here: nothing is left to chance"
    )
    parser.add_argument(
        "--sampled-kills", action="store_true", help="only these; print all verdicts"
    )
    chosen = parser.parse_args(argv)
    import_everything()
    if chosen.sampled_kills:
        print(json.dumps(judge_cases(lives, [case for case in sampled if case.kind == "kill"])))
        return 0
    start = time.monotonic()
    verdicts = judge_cases(lives, every)
    wrong = [each for found in verdicts.values() for each in found]
    for each in wrong:
        print(each, file=sys.stderr)
    line = {
        "claim": claim,
        "n": len(verdicts),
        "violations": sum(bool(found) for found in verdicts.values()),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
        **counts,
    }
    print(json.dumps(line))
    return int(bool(wrong))
