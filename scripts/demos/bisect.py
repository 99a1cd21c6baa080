"""Which turn broke it: a session of forty turns with a planted break, and `weft bisect` on it.

    python -m scripts.demos.bisect [--svg FILE]

A scripted model works on a small program for forty turns; in one of them it breaks the login.  The
commands are those of the command line, and the checks run for real, each in an overlay of its own.
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
from typing import Any, Final

from scripts.demos.demo_screen import BOLD, DIM, GREEN, PLAIN, RED, DemoScreen

TURNS: Final = 40
BREAKS: Final = 23
MOST_CHECKS: Final = 8
CHECK: Final = "sh test.sh"
TEST: Final = "grep -q allow auth.conf || { echo 'login: denied, expected allowed'; exit 1; }\n"
REASON: Final = "Guests should not get in without a session, so I deny by default."
TINTS: Final = {"✓": GREEN, "✗": RED, "?": DIM}


def project(folder: Path) -> None:
    """A project with a test that takes no time."""
    folder.mkdir()
    (folder / "test.sh").write_text(TEST)
    (folder / "auth.conf").write_text("# who gets in\nlogin = allow\nguests = off\n")
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)


def answers() -> list[Any]:
    """What the model does, turn by turn."""
    found: list[Any] = []
    for number in range(1, TURNS + 1):
        call = {"path": f"notes/{number}.md", "content": f"# Step {number}\n"}
        steps: list[Any] = [{"do": "call", "name": "write", "args": call}]
        if number == BREAKS:
            read = {"do": "call", "name": "read", "args": {"path": "auth.conf"}}
            edit = {
                "path": "auth.conf",
                "old_string": "login = allow",
                "new_string": "login = deny",
            }
            log = {"title": "Deny by default", "why": "guests got in without a session"}
            found += [[*steps, read]]
            steps = [
                {"do": "text", "text": REASON},
                {"do": "call", "name": "decision_log", "args": log},
                {"do": "call", "name": "edit", "args": edit},
            ]
        found += [steps, "done"]
    return found


class DemoSession:
    """One session of the command line, in a home of its own."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "project"
        project(self.folder)
        script = root / "model.json"
        script.write_text(json.dumps({"by": "content", "answers": answers()}))
        self._model = f"scripted:{script}"
        self._environ = {"HOME": str(root), "PATH": os.environ["PATH"], "PYTHONUTF8": "1"}

    def talk(self) -> None:
        """Forty turns, sent by one program."""
        lines = [
            {"type": "user", "message": {"role": "user", "content": f"Step {number}."}}
            for number in range(1, TURNS + 1)
        ]
        given = "\n".join(map(json.dumps, lines)) + "\n"
        asked = ("-m", self._model, "--permission-mode", "auto", "-p")
        streams = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
        done = self.run(*asked, *streams, given=given)
        if done.returncode:
            raise SystemExit(done.stderr or done.stdout[-2_000:])

    def run(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return subprocess.run(
            [sys.executable, "-m", "weft", *words],
            cwd=self.folder,
            env=self._environ,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )


def main(argv: Sequence[str]) -> int:
    """Show it; 1 where another turn is found, or by more than eight checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svg", default="")
    chosen = parser.parse_args(argv)
    screen = DemoScreen()
    screen.show(f"{BOLD}Forty turns later the login is broken. Which turn was it?{PLAIN}")
    screen.show()
    with tempfile.TemporaryDirectory(prefix="weft-demo-") as name:
        session = DemoSession(Path(name))
        session.talk()
        screen.show(f"$ weft bisect -- {CHECK}")
        done = session.run("bisect", "--", CHECK)
        checked = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        for line in checked:
            screen.show(f"{TINTS.get(line[0], DIM)}{line}{PLAIN}")
        screen.show()
        sentence, *rest = done.stdout.rstrip().splitlines() or [""]
        screen.show(f"{BOLD}{sentence}{PLAIN}")
        for line in rest:
            screen.show(f"{DIM}{line}{PLAIN}")
    screen.save(chosen.svg, "The turn of a session at which a check began to fail")
    states = [line for line in checked if "again" not in line and "inside" not in line]
    is_right = sentence.startswith(f"turn {BREAKS} broke it: `edit auth.conf:2`")
    return int(not is_right or len(states) > MOST_CHECKS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
