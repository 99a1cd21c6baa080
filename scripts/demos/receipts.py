"""Claims beside the record: a model that says that all tests pass, and what Weft shows of it.

    python -m scripts.demos.receipts [--svg FILE]

A scripted model claims it without a run, then after one; then the user edits a file, and takes the
edit back.  The commands are those of the command line, and the runs are real.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scripts.demos.demo_screen import AMBER, BOLD, DIM, GREEN, PLAIN, DemoScreen

CLAIM: Final = "All 2 tests pass."
ANSWERS: Final = [
    f"I fixed the rounding. {CLAIM}",
    [{"do": "call", "name": "shell", "args": {"command": "make test"}}],
    CLAIM,
]
TINTS: Final = {"✓": GREEN, "!": AMBER, "○": DIM}
COUNTED: Final = "sum = 2 + 2\n"


def project(folder: Path) -> None:
    """A project whose tests take no time."""
    folder.mkdir()
    (folder / "Makefile").write_text("test:\n\t@grep -q 'sum = 2 + 2' sums.txt && echo 2 passed\n")
    (folder / "sums.txt").write_text(COUNTED)


class DemoSession:
    """One session of the command line, in a home of its own."""

    def __init__(self, root: Path, screen: DemoScreen) -> None:
        self.folder, self._screen = root / "project", screen
        project(self.folder)
        script = root / "model.json"
        script.write_text(json.dumps({"by": "content", "answers": ANSWERS}))
        self._model = f"scripted:{script}"
        self._environ = {"HOME": str(root), "PATH": os.environ["PATH"], "PYTHONUTF8": "1"}

    def say(self, prompt: str, *options: str) -> None:
        """Send a message, and show the answer."""
        self._screen.show(f"{BOLD}› {prompt}{PLAIN}")
        asked = ("-m", self._model, "--permission-mode", "auto", *options, "-p", prompt)
        self._screen.show(f"  {self._run(*asked).strip()}")

    def receipts(self) -> str:
        """Show what is on record for the last answer; returns its color's mark."""
        [line] = self._run("receipts").strip().splitlines()
        self._screen.show(f"  {TINTS.get(line[0], '')}{line}{PLAIN}")
        self._screen.show()
        return line[0]

    def _run(self, *words: str) -> str:
        command = (sys.executable, "-m", "weft", *words)
        done = subprocess.run(
            command, cwd=self.folder, env=self._environ, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        return done.stdout


def main(argv: Sequence[str]) -> int:
    """Show it; 1 where a claim is shown otherwise than it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svg", default="")
    chosen = parser.parse_args(argv)
    screen = DemoScreen()
    screen.show(f"{BOLD}What the model claims, beside what was run{PLAIN}")
    screen.show()
    with tempfile.TemporaryDirectory(prefix="weft-demo-") as name:
        session = DemoSession(Path(name), screen)
        session.say("Fix the rounding.")
        marks = session.receipts()
        session.say("Did you run them?", "-c")
        marks += session.receipts()
        screen.show(f"{DIM}The user edits sums.txt, then takes the edit back.{PLAIN}")
        (session.folder / "sums.txt").write_text("sum = 5\n")
        marks += session.receipts()
        (session.folder / "sums.txt").write_text(COUNTED)
        marks += session.receipts()
    screen.save(chosen.svg, "Claims of a model beside the record of what was run")
    return int(marks != "!✓○✓")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
