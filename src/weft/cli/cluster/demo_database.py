"""A Postgres server of its own, for as long as several servers are tried out."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from weft.cli.cluster.bound_program import end_program, start_program
from weft.cli.exit_codes import FAILED, CommandExit

START_SECONDS: Final = 30.0
END_SECONDS: Final = 10.0
_USER: Final = "weft"
_CONFIG: Final = """
listen_addresses = ''
unix_socket_directories = '{folder}'
max_connections = 200
shared_buffers = 64MB
"""
_SERVERS: Final = "/usr/lib/postgresql"


class DemoDatabase:
    """Postgres in a folder of its own, reached by a unix socket there."""

    def __init__(self) -> None:
        """Raises:
        CommandExit: Postgres is not installed.
        """
        self._programs = _programs()
        self._account = _account()
        self.folder = Path(tempfile.mkdtemp(prefix="weft-demo-pg-"))
        self._process: subprocess.Popen[bytes] | None = None

    def address(self, slot: str) -> str:
        """The address of the database for one server."""
        return f"postgresql://{_USER}@/postgres?host={self.folder}&slot={slot}"

    def start(self) -> None:
        """Make its data and start it.

        Raises:
            CommandExit: it does not start.
        """
        if self._account is not None:
            os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
        data = self.folder / "data"
        self._run("initdb", "-D", str(data), "-U", _USER, "-A", "trust", "-E", "UTF8")
        with (data / "postgresql.conf").open("a") as file:
            file.write(_CONFIG.format(folder=self.folder))
        with (self.folder / "log").open("wb") as log:
            self._process = start_program(
                [str(self._programs / "postgres"), "-D", str(data)],
                # It ends like this at once, and breaks no connection that it could keep.
                at_our_end=signal.SIGINT,
                stdout=log,
                account=self._account,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise CommandExit(FAILED, f"Postgres does not start: {self._last_words()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End it and remove its data."""
        if self._process is not None:
            end_program(self._process, signal.SIGINT, END_SECONDS)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _answers(self) -> bool:
        asked = ["-q", "-h", str(self.folder), "-U", _USER, "-d", "postgres"]
        return not subprocess.run([self._programs / "pg_isready", *asked], check=False).returncode

    def _last_words(self) -> str:
        return (self.folder / "log").read_text(errors="replace").strip()[-500:]

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [self._programs / program, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            check=False,
            user=None if self._account is None else self._account.pw_uid,
            group=None if self._account is None else self._account.pw_gid,
            extra_groups=None if self._account is None else [],
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-500:]
            raise CommandExit(FAILED, f"{program} failed: {said}")


def _programs() -> Path:
    """The folder of the server's programs, the newest there are."""
    found = sorted(
        Path(_SERVERS).glob("*/bin/postgres"),
        key=lambda path: int(path.parts[-3]) if path.parts[-3].isdecimal() else 0,
    )
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    if on_path is None:
        raise CommandExit(
            FAILED,
            "no Postgres server is installed (apt-get install postgresql), or its programs are "
            "not on PATH",
        )
    return Path(on_path).resolve().parent


def _account() -> pwd.struct_passwd | None:
    """Whom Postgres runs as, where that cannot be the user: it refuses root."""
    if os.geteuid():
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise CommandExit(FAILED, "Postgres refuses to run as root, and there is no user for it")
