"""Why is this line so: a project in which a session, a later one and the user wrote one file, and
`weft blame` on some of its lines.

    python -m scripts.demos.blame [--svg FILE]

A scripted model works in two sessions; the file is renamed and rewound in between, and the user
edits and commits.  The commands are those of the command line.
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

from scripts.demos.demo_screen import BOLD, DIM, GREEN, PLAIN, DemoScreen

FIRST: Final = "Cap the retries, and test it."
SECOND: Final = "Rename it to retry.conf."
REASON: Final = "Endless retries kept the queue blocked in last week's outage."
BEGUN: Final = "# how calls are retried\nretries = forever\nwait = 1s\n"
SHOWN: Final = frozenset(
    {"line", "message", "reason", "decision", "rejected", "allowed", "first check", "commit"}
    | {"name"}
)


def project(folder: Path) -> None:
    """A project with a test that takes no time."""
    folder.mkdir()
    (folder / "calls.conf").write_text(BEGUN)
    (folder / "Makefile").write_text("test:\n\t@grep -q 'retries = 5' *.conf\n")
    _git(folder, "init", "-q", ".")
    _git(folder, "add", "-A")
    _git(folder, "commit", "-qm", "Begin")


def _git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True)


def _call(name: str, **args: Any) -> dict[str, Any]:
    return {"do": "call", "name": name, "args": args}


def answers() -> list[Any]:
    """What the model does: a change with its decision and its test, and a rename."""
    log = _call(
        "decision_log",
        kind="decision",
        title="Five retries, then give up",
        why="an outage blocked the queue",
        options=[{"title": "back off without an end", "verdict": "rejected", "why": "it hides"}],
    )
    edit = {"path": "calls.conf", "old_string": "retries = forever", "new_string": "retries = 5"}
    return [
        [_call("read", path="calls.conf")],
        [{"do": "text", "text": REASON}, log, _call("edit", **edit)],
        [_call("shell", command="make test")],
        "Capped, and the test passes.",
        [_call("shell", command="git mv calls.conf retry.conf")],
        "Renamed.",
    ]


class DemoProject:
    """A project and a home of its own, and the command line in it."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "project"
        project(self.folder)
        script = root / "model.json"
        script.write_text(json.dumps({"by": "content", "answers": answers()}))
        self._model = f"scripted:{script}"
        self._environ = {"HOME": str(root), "PATH": os.environ["PATH"], "PYTHONUTF8": "1"}

    def talk(self) -> None:
        """One session, and the user between and after its turns."""
        self._say(FIRST)
        path = self.folder / "calls.conf"
        path.write_text(path.read_text().replace("wait = 1s", "wait = 3s"))
        _git(self.folder, "commit", "-qam", "Wait longer")
        self._say(SECOND, "-c")

    def _say(self, prompt: str, *flags: str) -> None:
        asked = ("-m", self._model, "--permission-mode", "auto", "-p", prompt)
        done = self.run(*flags, *asked)
        if done.returncode:
            raise SystemExit(done.stderr or done.stdout[-2_000:])

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return subprocess.run(
            [sys.executable, "-m", "weft", *words],
            cwd=self.folder,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


def main(argv: Sequence[str]) -> int:
    """Show it; 1 where a line is blamed on another writer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svg", default="")
    chosen = parser.parse_args(argv)
    screen = DemoScreen()
    screen.show(f"{BOLD}Who wrote this line, and why? After an edit, a rename and a commit.{PLAIN}")
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="weft-demo-") as name:
        demo = DemoProject(Path(name))
        demo.talk()
        for line, expected in ((2, "edit calls.conf"), (3, "you wrote it")):
            screen.show()
            screen.show(f"$ weft blame retry.conf:{line}")
            shown = demo.run("blame", f"retry.conf:{line}").stdout.rstrip().splitlines() or [""]
            wrong += expected not in shown[0]
            tint = GREEN if expected.startswith("edit") else BOLD
            screen.show(f"{tint}{shown[0]}{PLAIN}")
            for row in shown[1:]:
                if any(row.startswith(word) for word in SHOWN):
                    screen.show(f"{DIM}{row}{PLAIN}")
        trailers = demo.run("blame", "retry.conf:2", "--trailers").stdout.rstrip().splitlines()
        screen.show()
        screen.show("$ weft blame retry.conf:2 --trailers")
        for row in trailers:
            screen.show(f"{DIM}{row}{PLAIN}")
        wrong += len(trailers) != 2
    screen.save(chosen.svg, "What wrote a line, and why")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
