"""A goal that fails twice, is killed, and succeeds; and one that does not come on, and says so.

    python -m scripts.demos.goal [--svg FILE]

A scripted model works for it, turn after turn; its check is a command that is really run.  In the
second round the program is killed (`kill -9`); `weft goal resume` goes on in the round that was cut
off.
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

CHECK: Final = "make test"
MAKEFILE: Final = """\
test:
\t@grep -q 'round half up' sums.txt || { echo 'FAILED: rounding'; exit 1; }
\t@grep -q 'sum = 2 + 2' sums.txt || { echo 'FAILED: addition'; exit 1; }
\t@echo 2 passed
"""
TRIES: Final = (
    ("Goal:", "sum = 2 + 2\n", "The addition is right now."),
    ("Round 2 of", "round half up\n", "The rounding is right now."),
    ("Round 3 of", "sum = 2 + 2\nround half up\n", "Both are right now."),
)
KILLED_AT: Final = "round 2"


def played(tries: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """A model that tries these one after the other, by the message of each round."""
    answers: list[object] = []
    for since, text, said in tries:
        call = {"do": "call", "name": "write", "args": {"path": "sums.txt", "content": text}}
        first: dict[str, object] = {"user_says": since, "since": since, "rounds": 0}
        answers[:0] = [
            {"when": first, "steps": [call]},
            {"when": first | {"rounds": 1}, "steps": [{"do": "text", "text": said}]},
        ]
    return {"answers": answers, "loop": True}


class GoalDemo:
    """The command line, in a home of its own."""

    def __init__(self, root: Path, screen: DemoScreen) -> None:
        self._root, self._screen = root, screen
        self._folder = root / "project"
        self._folder.mkdir()
        (self._folder / "Makefile").write_text(MAKEFILE)
        self._environ = {"HOME": str(root), "PATH": os.environ["PATH"], "PYTHONUTF8": "1"}

    def begin(self, text: str, model: dict[str, Any], *, kill_at: str = "") -> int:
        """Work for a goal, and show it; returns the exit code."""
        script = self._root / "model.json"
        script.write_text(json.dumps(model))
        self._screen.show(f"{BOLD}$ weft goal '{text}' --check '{CHECK}'{PLAIN}")
        words = ("goal", text, "--check", CHECK, "--outside-sandbox")
        return self._run(
            *words, "-m", f"scripted:{script}", "--permission-mode", "auto", kill_at=kill_at
        )

    def resume(self) -> int:
        """Go on with it in another process."""
        self._screen.show(f"{BOLD}$ weft goal resume{PLAIN}")
        return self._run("goal", "resume", "--outside-sandbox")

    def _run(self, *words: str, kill_at: str = "") -> int:
        process = subprocess.Popen(
            (sys.executable, "-m", "weft", *words),
            cwd=self._folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            self._screen.show(f"  {_tint(line)}{line.rstrip()}{PLAIN}")
            if kill_at and line.strip() == kill_at:
                process.kill()
                self._screen.show(f"  {RED}kill -9{PLAIN}")
                break
        code = process.wait()
        self._screen.show(f"  {DIM}exit code {code}{PLAIN}" if code >= 0 else "")
        return code


def _tint(line: str) -> str:
    if "is reached" in line or line.rstrip().endswith(": reached"):
        return GREEN
    return RED if "not reached" in line or "ended" in line else ""


def main(argv: Sequence[str]) -> int:
    """Show it; 1 where it does not end as it is to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svg", default="")
    chosen = parser.parse_args(argv)
    screen = DemoScreen()
    screen.show(f"{BOLD}Turn after turn, until a command says that it is done{PLAIN}")
    screen.show()
    with tempfile.TemporaryDirectory(prefix="weft-demo-") as name:
        demo = GoalDemo(Path(name), screen)
        killed = demo.begin("make the tests pass", played(TRIES), kill_at=KILLED_AT)
        done = demo.resume()
        screen.show()
        screen.show(f"{DIM}Another model, which only changes a comment:{PLAIN}")
        (Path(name) / "project" / "sums.txt").unlink()
        comments = [
            (since, f"# try {place}\n", "Done.") for place, (since, _, _) in enumerate(TRIES)
        ]
        never = demo.begin("make the tests pass", played(comments))
    screen.save(chosen.svg, "A goal that is worked for turn after turn, killed, and reached")
    return int((killed, done, never) != (-9, 0, 1))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
