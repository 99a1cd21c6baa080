"""The real `weft` program in a folder and a home of its own, and what it prints."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tests.support.source_code import SRC
from weft.cli import main


class WeftProgram:
    """Runs `weft` as a user or a program would."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.home = root / "home"
        self.data = self.home / ".local" / "share" / "weft"
        self.config = self.home / ".config" / "weft"
        self.project.mkdir()
        self.home.mkdir()
        self._scripts = 0
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def environment(self) -> dict[str, str]:
        """A plain environment: no keys, no settings but that no indexer is started, no colours."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.home),
            "PYTHONPATH": str(SRC.parent),
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
            "WEFT_REPO_INDEX": "off",
        }

    def script(self, *answers: Any, **fields: Any) -> str:
        """A model that gives these answers; returns the name for `-m`."""
        self._scripts += 1
        path = self.home / f"script{self._scripts}.json"
        path.write_text(json.dumps({"by": "content", "answers": answers, **fields}))
        return f"scripted:{path}"

    def plant(self, code: str) -> dict[str, str]:
        """A fault: code that runs when the interpreter starts.

        Returns the environment that plants it.
        """
        (self.home / "sitecustomize.py").write_text(code)
        return {"PYTHONPATH": f"{self.home}:{self.environment['PYTHONPATH']}"}

    def argv(self, *arguments: str) -> list[str]:
        """The command line that runs the program."""
        return [sys.executable, "-m", "weft", *arguments]

    def run(
        self,
        *arguments: str,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run to the end."""
        done = subprocess.run(
            self.argv(*arguments),
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            cwd=cwd or self.project,
            env={**self.environment, **(env or {})},
            timeout=60,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    def call(
        self,
        *arguments: str,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """As `run`, but in this process: for what `main()` decides, a start of Python is
        too dear.
        """
        environment = {**self.environment, **(env or {})}
        given = stdin.encode() if isinstance(stdin, str) else stdin
        with in_process(environment, cwd or self.project, given) as (output, error):
            code = main(list(arguments))
            sys.stdout.flush()
            sys.stderr.flush()
            said = [os.pread(file.fileno(), 1 << 24, 0).decode() for file in (output, error)]
        return subprocess.CompletedProcess(arguments, code, *said)

    def start(
        self, *arguments: str, env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[bytes]:
        """Start it and go on."""
        running = subprocess.Popen(
            self.argv(*arguments),
            cwd=self.project,
            env={**self.environment, **(env or {})},
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **options,
            },
        )
        self._started.append(running)
        return running

    def close(self) -> None:
        """End what a failed test left running."""
        for running in self._started:
            if running.poll() is None:
                running.kill()
            running.wait()
            for stream in (running.stdin, running.stdout, running.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()

    def sessions(self) -> list[dict[str, Any]]:
        """What `session list` knows of this project."""
        listed: list[dict[str, Any]] = json.loads(self.call("session", "list", "--json").stdout)
        return listed


@contextlib.contextmanager
def in_process(
    environment: Mapping[str, str], cwd: Path, stdin: bytes
) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The world of a program, for code of ours that runs here; puts everything back afterwards.

    Standard streams are real files, because the program looks at their numbers, too.
    """
    streams, root = (sys.stdin, sys.stdout, sys.stderr), logging.getLogger()
    before, folder, piped = dict(os.environ), os.getcwd(), os.dup(0)
    handlers, level = root.handlers[:], root.level
    # A program begins without what another one has set up for its log.
    root.handlers[:] = [each for each in handlers if type(each).__module__ != "weft.cli.logs"]
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as error,
    ):
        given.write(stdin)
        given.seek(0)
        os.dup2(given.fileno(), 0)
        try:
            os.environ.clear()
            os.environ.update(environment)
            os.chdir(cwd)
            sys.stdin = open(given.fileno(), encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stdout = open(output.fileno(), "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            sys.stderr = open(error.fileno(), "w", encoding="utf-8", closefd=False)  # noqa: SIM115
            yield output, error
        finally:
            for stream in (sys.stdin, sys.stdout, sys.stderr):
                stream.close()
            sys.stdin, sys.stdout, sys.stderr = streams
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(before)
            os.dup2(piped, 0)
            os.close(piped)
            root.handlers[:] = handlers
            root.setLevel(level)
            # `main` starts without garbage collection and freezes what it has made.  That stays:
            # `gc.unfreeze` would also release the modules and tests that were frozen when
            # collecting ended, and every collection in the tests that follow would visit them.
            gc.enable()


def text(said: str, chunk: int = 0) -> dict[str, Any]:
    """A step of a script: say this."""
    return {"do": "text", "text": said, "chunk": chunk}


def call(name: str, **args: Any) -> dict[str, Any]:
    """A step of a script: call this tool."""
    return {"do": "call", "name": name, "args": args}


def lines(output: str) -> list[dict[str, Any]]:
    """The objects of a stream of JSON lines."""
    return [json.loads(line) for line in output.split("\n") if line]


def kinds(output: Sequence[Mapping[str, Any]]) -> list[str]:
    """The type (and subtype) of each line."""
    return [
        f"{each['type']}/{each['subtype']}" if "subtype" in each else each["type"]
        for each in output
    ]
