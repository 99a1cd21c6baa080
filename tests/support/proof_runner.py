"""The long proofs, whole: `python -m tests.support.proof_runner [claim …]`.

Each claim is a module with `main(argv) -> int` that prints one JSON line:

    {"claim": "kill9", "n": 1000, "violations": 0, "seed": 1, "seconds": 812.4}

It runs in a process of its own, because a proof arms fail-points, swaps the disk and kills; what it
writes to stderr goes through.  A claim holds when its process ends with 0, its one line names it,
and it counts no violation in at least one try.  Exit: 0 when all asked for hold, 1 when one does
not, 2 when the only trouble is that one does not exist yet.  Words after `--` go to every claim.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

CLAIMS: Mapping[str, str] = {
    name: f"tests.crash.{name}"
    for name in (
        "kill9",
        "failpoints",
        "powercut",
        "races",
        "subscribers",
        "joins",
        "families",
        "interrupts",
        "interrupts12",
        "rewinds",
        "faults",
        "long",
        "rows",
        "history",
        "hostile",
        "shell_words",
        "commands",
        "shells",
        "snapshots",
        "bisect",
        "blame",
        "waits",
        "goals",
        "sent_requests",
        "branches",
        "rivals",
        "compaction",
        "properties",
        "fan",
        "leftovers",
        "floods",
        "plug",
        "soak",
    )
}
"""Name of each claim → the module that proves it."""

FIELDS = {"claim", "n", "violations", "seed", "seconds"}
"""What each line must say; it may say more."""

FAILED, MISSING = 1, 2

_RUN = "import importlib, sys; sys.exit(importlib.import_module(sys.argv[1]).main(sys.argv[2:]))"


def main(argv: Sequence[str], claims: Mapping[str, str] = CLAIMS) -> int:
    """Prove the claims that are named, or all; print one line each."""
    names, passed_on = _split(argv)
    if unknown := [name for name in names if name not in claims]:
        print(f"no claim {', '.join(unknown)}; there are {', '.join(claims)}", file=sys.stderr)
        return FAILED
    codes = [prove(name, claims[name], passed_on) for name in names or claims]
    return FAILED if FAILED in codes else max(codes)


def prove(name: str, module: str, argv: Sequence[str] = ()) -> int:
    """Run one claim, print its line, and return the exit code it stands for."""
    line, code = _run(name, module, argv) if _exists(module) else ({"missing": True}, MISSING)
    print(json.dumps({"claim": name} | line), flush=True)
    return code


def _run(name: str, module: str, argv: Sequence[str]) -> tuple[dict[str, Any], int]:
    done = subprocess.run(
        [sys.executable, "-c", _RUN, module, *argv], stdout=subprocess.PIPE, text=True, check=False
    )
    try:
        line = _the_line(name, done.stdout)
    except ValueError as error:
        return {"error": str(error), "exit": done.returncode}, FAILED
    holds = done.returncode == 0 and line["violations"] == 0 and line["n"] > 0
    return line | ({} if done.returncode == 0 else {"exit": done.returncode}), int(not holds)


def _the_line(name: str, printed: str) -> dict[str, Any]:
    """The one line that a claim printed; a claim that prints none, or several, proves nothing."""
    lines = printed.splitlines()
    if len(lines) != 1:
        raise ValueError(f"printed {len(lines)} lines instead of one")
    line = json.loads(lines[0])
    if not isinstance(line, dict) or not line.keys() >= FIELDS or line["claim"] != name:
        raise ValueError(f"its line is not the line of {name!r}: {lines[0]}")
    return line


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The claims that are named, and the words after `--`."""
    words = list(argv)
    cut = words.index("--") if "--" in words else len(words)
    return words[:cut], words[cut + 1 :]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
