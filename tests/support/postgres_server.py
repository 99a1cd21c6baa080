"""A real Postgres server, started from the system's programs for the time of a test run.

It listens on a unix socket in a folder of its own, and on loopback where a test needs to cut the
way to it.  As root it runs as the user `nobody` or `postgres`, because Postgres refuses root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

START_SECONDS = 60
_CONFIG = """
listen_addresses = '{addresses}'
port = {port}
unix_socket_directories = '{folder}'
max_connections = 200
shared_buffers = 64MB
fsync = on
logging_collector = off
log_min_messages = fatal
autovacuum_naptime = 10s
{more}
"""


def programs() -> Path:
    """The folder of the server's programs, the newest there are.

    Raises:
        FileNotFoundError: Postgres is not installed.
    """
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3])
    )
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    if on_path is None:
        raise FileNotFoundError("no Postgres server is installed (apt-get install postgresql)")
    return Path(on_path).resolve().parent


class PostgresServer:
    """One server and its data; `stop` removes both."""

    def __init__(self, *, port: int = 5432, addresses: str = "", more: Sequence[str] = ()) -> None:
        self._bin = programs()
        self.folder = Path(tempfile.mkdtemp(prefix="weft-pg-"))
        self.port = port
        self._addresses = addresses
        self._more = list(more)
        self._data = self.folder / "data"
        self._user = _server_user()
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PostgresServer:
        self.make()
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    @property
    def name(self) -> str:
        """The superuser of the database."""
        return "postgres"

    def dsn(self, database: str = "postgres", user: str = "postgres") -> str:
        """The address of a database, over the unix socket."""
        return f"postgresql://{user}@/{database}?host={self.folder}&port={self.port}"

    def tcp_dsn(self, port: int, database: str = "postgres") -> str:
        """The same over loopback, through whatever listens on `port`."""
        return f"postgresql://postgres@127.0.0.1:{port}/{database}"

    def make(self) -> None:
        """Make the data folder."""
        self._run("initdb", "-D", str(self._data), "-U", self.name, "-A", "trust", "-E", "UTF8",
                  "--no-sync", "--locale=C")  # fmt: skip
        config = _CONFIG.format(
            addresses=self._addresses,
            port=self.port,
            folder=self.folder,
            more="\n".join(self._more),
        )
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(config)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._run("pg_ctl", "start", "-D", str(self._data), "-w", "-t", str(START_SECONDS),
                  "-l", str(self.folder / "log"), "-s")  # fmt: skip

    def restart(self, *, crash: bool = False) -> None:
        """Stop it, cleanly or like a crash, and start it again."""
        self.halt("immediate" if crash else "fast")
        self.start()

    def halt(self, mode: str = "fast") -> None:
        """Stop it; the data stays."""
        self._run("pg_ctl", "stop", "-D", str(self._data), "-m", mode, "-w", "-s")

    def stop(self) -> None:
        """Stop it for good and remove its data."""
        if (self._data / "postmaster.pid").exists():
            self.halt("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def signal_postmaster(self, number: signal.Signals) -> None:
        """Send a signal to the server."""
        pid = int((self._data / "postmaster.pid").read_text().splitlines()[0])
        os.kill(pid, number)

    def _run(self, program: str, *words: str) -> None:
        user = self._user
        done = subprocess.run(
            [self._bin / program, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            check=False,
            user=user.pw_uid if user is not None else None,
            group=user.pw_gid if user is not None else None,
            extra_groups=[] if user is not None else None,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.decode(errors='replace')}")


def _server_user() -> pwd.struct_passwd | None:
    """Whom the server runs as, where that cannot be the user of the tests."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return None
