"""A real terminal: tmux, driven by keys and read as a screen."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.weft_program import WeftProgram

SECONDS = 20.0
"""How long a screen may take to show what is waited for; only a broken program needs that long."""

needs_tmux = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed; `make test` installs it"
)


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for something that another program does."""
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)  # another program has to come there


class TmuxTerminal:
    """One window of a tmux server of its own."""

    def __init__(self, weft: WeftProgram, root: Path, *, width: int = 80, height: int = 24) -> None:
        self._weft = weft
        self._socket = str(root / "tmux")
        self._size = (width, height)
        self._exit = root / "exit"

    def start(self, *arguments: str, **env: str) -> None:
        """Run `weft` in a new window; its exit code is in `exit_code` when it is over."""
        width, height = self._size
        self._tmux(
            *("new-session", "-d", "-s", "main", "-x", str(width), "-y", str(height)),
            *("-c", str(self._weft.project), self._command(arguments, env)),
        )

    def again(self, *arguments: str, **env: str) -> None:
        """The next day: a clean window, a new program."""
        self._tmux("respawn-pane", "-k", "-t", "main", self._command(arguments, env))
        self._tmux("clear-history", "-t", "main")

    def start_shell(self) -> None:
        """A shell with job control, in which `weft` can be typed."""
        width, height = self._size
        setting = " ".join(f"{n}={shlex.quote(v)}" for n, v in self._variables({}).items())
        self._tmux(
            *("new-session", "-d", "-s", "main", "-x", str(width), "-y", str(height)),
            *("-c", str(self._weft.project), f"env -i {setting} PS1='$ ' bash --norc -i"),
        )

    def _variables(self, env: dict[str, str]) -> dict[str, str]:
        return {**self._weft.environment, "TERM": "screen-256color", **env}

    def _command(self, arguments: tuple[str, ...], env: dict[str, str]) -> str:
        setting = " ".join(f"{n}={shlex.quote(v)}" for n, v in self._variables(env).items())
        command = f"env -i {setting} {shlex.join(self._weft.argv(*arguments))}"
        self._exit.unlink(missing_ok=True)
        script = (
            f"{command}; echo $? > {self._exit}.new; mv {self._exit}.new {self._exit}; sleep 1000"
        )
        return f"bash --norc -c {shlex.quote(script)}"

    def keys(self, *keys: str) -> None:
        """Press keys, by tmux's names."""
        self._tmux("send-keys", "-t", "main", *keys)

    def type(self, text: str) -> None:
        """Type text as it is."""
        self._tmux("send-keys", "-t", "main", "-l", "--", text)

    def paste(self, text: str) -> None:
        """Paste text, in brackets as terminals do."""
        # From a file: a command of tmux is a few kilobytes at most.
        pasted = Path(f"{self._socket}.pasted")
        pasted.write_text(text)
        self._tmux("load-buffer", "-b", "pasted", str(pasted))
        self._tmux("paste-buffer", "-p", "-b", "pasted", "-t", "main")

    def resize(self, width: int, height: int) -> None:
        """Change the size of the window."""
        self._tmux("resize-window", "-t", "main", "-x", str(width), "-y", str(height))

    def screen(self, *, history: bool = False, styles: bool = False) -> str:
        """What is on the screen, or all that was ever."""
        flags = [*(["-S", "-"] if history else []), *(["-e"] if styles else [])]
        captured = self._tmux("capture-pane", "-p", "-t", "main", *flags)
        return "\n".join(line.rstrip() for line in captured.split("\n"))

    def wait_for(self, *texts: str, history: bool = False) -> str:
        """Wait until all these texts are on the screen; returns it."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            screen = self.screen(history=history)
            if all(text in screen for text in texts):
                return screen
            time.sleep(0.03)  # another program draws; there is nothing to wait on
        raise AssertionError(f"{texts!r} did not come up:\n{self.screen(history=True)}")

    def wait_gone(self, text: str) -> str:
        """Wait until a text has left the screen."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            screen = self.screen()
            if text not in screen:
                return screen
            time.sleep(0.03)  # as above
        raise AssertionError(f"{text!r} did not go away:\n{self.screen()}")

    def exit_code(self) -> int:
        """Wait for the end of the program."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            if self._exit.exists():
                return int(self._exit.read_text())
            time.sleep(0.03)  # as above
        raise AssertionError(f"it did not end:\n{self.screen()}")

    def pid(self) -> int:
        """The process of the program."""
        shell = int(self._tmux("display-message", "-p", "-t", "main", "#{pane_pid}"))
        found = subprocess.run(
            ["pgrep", "-P", str(shell)], capture_output=True, text=True, check=True
        )
        return int(found.stdout.split()[0])

    def tty(self) -> str:
        """The settings of the window's terminal."""
        name = self._tmux("display-message", "-p", "-t", "main", "#{pane_tty}").strip()
        return subprocess.run(
            ["stty", "-a", "-F", name], capture_output=True, text=True, check=True
        ).stdout

    def close(self) -> None:
        """End the server and everything in it."""
        self._tmux("kill-server", check=False)

    def _tmux(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, "-f", "/dev/null", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        if check and done.returncode:
            raise AssertionError(f"tmux {arguments[0]}: {done.stderr}")
        return done.stdout
