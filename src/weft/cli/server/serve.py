"""`weft serve` and `weft web`: start the HTTP server, show it, stop it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from weft.app import App
from weft.cli.exit_codes import FAILED, OK, CommandExit, first_of
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import make_app
from weft.cli.signals import StopSignal
from weft.cli.stdio import tell, write_line, write_pretty
from weft.errors import UsageError, WeftError
from weft.server import (
    NOT_BUILT,
    RecordLock,
    ServerAddress,
    ServerRecord,
    WeftServer,
    has_page,
    new_code_from,
    running_servers,
    stop_server,
)

if TYPE_CHECKING:  # loaded where there are several servers
    from weft.server import ClusterSettings

DEFAULT_PORT: Final = 7717
_LAST_PORT: Final = 65_535
READY: Final = "weft serves "
"""Begins the first line of a server; a process that started it in the background waits for it."""
MOST_FILES: Final = 8_192
"""Files that a server may have open: its connections, stores, watches and the programs it runs."""
PASSWORD: Final = "WEFT_SERVER_PASSWORD"
SECRET: Final = "WEFT_CLUSTER_SECRET"


def run(arguments: ParsedArguments) -> int:
    """Carry out a `serve` or `web` command."""
    app = make_app(arguments, wakes_due=True, serves=_secret(arguments) is not None)
    folder = app.places.servers
    match arguments.verb:
        case "serve status":
            return _status(folder, arguments)
        case "serve stop":
            return _stop(folder, arguments)
        case "web":
            return _web(app, folder, arguments)
        case _ if arguments.flag("detach"):
            return _detach(arguments)
    return _serve(app, arguments)


def _serve(app: App, arguments: ParsedArguments, *, opens: bool = False) -> int:
    if arguments.text("log_format") == "json":
        from weft.cli.server.json_log import log_json  # few collect it

        log_json()
    _allow_files(MOST_FILES)
    program = _ServerProgram(app, arguments, opens=opens)
    try:
        return anyio.run(program.main)
    except* (WeftError, CommandExit, OSError) as errors:
        raise first_of(errors) from None


def _allow_files(wanted: int) -> None:
    """Let this process open so many files, as far as the system lets it: each connection is one,
    and with none left the store cannot be opened either.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _ServerProgram:
    """A server in this process, from its first line to its end."""

    def __init__(self, app: App, arguments: ParsedArguments, *, opens: bool) -> None:
        self._app = app
        self._arguments = arguments
        self._opens = opens
        self._cluster: ClusterSettings | None = None

    async def main(self) -> int:
        address, password = server_address(self._arguments)
        self._cluster = cluster_settings(self._arguments)
        stop = StopSignal()
        if self._cluster is not None:
            stop.deadline_seconds += self._cluster.drain_seconds
        async with self._app:
            if self._cluster is not None and self._app.store.liveness != "time":
                raise UsageError(
                    "a cluster needs a store that its servers share: set store.address to a "
                    "Postgres database"
                )
            server = WeftServer(
                self._app,
                self._open_other,
                address,
                password=password,
                forget=self._arguments.flag("forget"),
                cluster=self._cluster,
            )
            if self._arguments.flag("otel"):
                from weft.server import open_telemetry  # an extra, which few have

                server.spans = open_telemetry(import_module)
            record = RecordLock(self._app.places.servers, server.name)
            try:
                record.hold(self._record(server))
                async with anyio.create_task_group() as group:
                    await group.start(stop.watch, server.begin_stop)
                    await group.start(self._say_when_ready, server)
                    await server.run()
                    group.cancel_scope.cancel()
            finally:
                record.release()
        return stop.code

    def _open_other(self, folder: str) -> App:
        # The servers of a cluster know one another by one process each, so by one store.
        lent = self._app if self._cluster is not None else None
        return make_app(
            self._arguments, folder=folder, wakes_due=True, serves=lent is not None, lent=lent
        )

    def _record(self, server: WeftServer) -> ServerRecord:
        return ServerRecord(
            pid=os.getpid(),
            url=server.url,
            project_path=self._app.project_path,
            started=time.time(),
            token_file=str(server.tokens.program_file),
        )

    async def _say_when_ready(
        self, server: WeftServer, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        task_status.started()
        await server.is_ready.wait()
        lines = [
            f"{READY}{self._app.project_path} at {server.url}",
            f"token for programs: {server.tokens.program_file}",
        ]
        page = "" if server.address.unix else server.pairing_url
        if page:
            lines.append(f"page (this link works once, for a minute): {page}")
        # At once: the process that started this one in the background reads no further.
        write_line("\n".join(lines))
        if self._opens and page:
            _open_page(page)


def server_address(arguments: ParsedArguments) -> tuple[ServerAddress, str]:
    """Where to listen, and the password of a server that others can reach.

    Raises:
        UsageError: the options do not go together.
    """
    host = arguments.text("host") or "127.0.0.1"
    is_public = arguments.flag("public")
    unix = arguments.text("unix") or ""
    if unix and (is_public or arguments.text("host") or arguments.whole("port")):
        raise UsageError("--unix takes no --host, --port and --public")
    port = arguments.whole("port") or DEFAULT_PORT
    if port > _LAST_PORT:
        raise UsageError(f"--port needs a number up to {_LAST_PORT}, not {port}")
    if bool(arguments.text("cert")) != bool(arguments.text("key")):
        raise UsageError("--cert and --key go together: give both, or neither")
    address = ServerAddress(
        host=host,
        port=port,
        unix=os.path.abspath(unix) if unix else "",
        names=arguments.many("name"),
        certificate=arguments.text("cert") or "",
        key=arguments.text("key") or "",
    )
    if is_public and not (arguments.text("host") or address.certificate):
        raise UsageError(
            "--public needs --host, the address that other machines reach (0.0.0.0: all), "
            "and --cert, --key and a password"
        )
    if not address.is_loopback and not is_public:
        raise UsageError(
            f"{host!r} can be reached from other machines: say --public, "
            "which needs --cert, --key and a password"
        )
    password = _password(arguments) if is_public else ""
    if is_public and address.is_loopback:
        raise UsageError(
            f"--public lets other machines in, and {host} is reached from this one alone: "
            "name an address, as in --host 0.0.0.0"
        )
    return address, password


def _password(arguments: ParsedArguments) -> str:
    path = arguments.text("password_file")
    return os.environ.get(PASSWORD, "") if path is None else _text_of(path)


def cluster_settings(arguments: ParsedArguments) -> ClusterSettings | None:
    """How this server is one of several; None for one that is alone.

    Raises:
        UsageError: the options are not right, or there is no secret for them.
    """
    secret, drain = _secret(arguments), arguments.number("drain")
    address = arguments.text("advertise") or ""
    authorities = arguments.text("cluster_ca") or ""
    if secret is None:
        if address or authorities or drain is not None:
            raise UsageError(
                "--advertise, --cluster-ca and --drain are for one of several servers, which needs "
                f"{SECRET} or --cluster-secret-file"
            )
        return None
    from weft.server import ClusterSecret, ClusterSettings  # few servers are of several

    return ClusterSettings(
        secret=ClusterSecret(secret.encode()),
        address=_server_url(address),
        authorities=authorities,
        drain_seconds=1.0 if drain is None else drain,
    )


def _server_url(address: str) -> str:
    """Where other servers reach this one.

    Raises:
        UsageError: they could not, or not safely.
    """
    if not address:
        return ""
    is_local = address.startswith(("http://127.0.0.1:", "http://localhost:", "http://[::1]:"))
    place = address.partition("://")[2]
    if not (is_local or address.startswith("https://")) or "/" in place or not place:
        raise UsageError(
            f"--advertise takes https://HOST:PORT, or http://127.0.0.1:PORT, not {address!r}"
        )
    return address


def _secret(arguments: ParsedArguments) -> str | None:
    path = arguments.text("cluster_secret_file")
    return os.environ.get(SECRET) if path is None else _text_of(path)


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def _status(folder: Path, arguments: ParsedArguments) -> int:
    found = running_servers(folder)
    if arguments.flag("json"):
        write_pretty([msgspec.to_builtins(record) for record in found])
        return OK
    for record in found:
        write_line(f"{record.url}  process {record.pid}  {record.project_path}")
    if not found:
        tell("no server runs")
    return OK if found else FAILED


def _stop(folder: Path, arguments: ParsedArguments) -> int:
    port = arguments.whole("port")
    found = [
        record
        for record in running_servers(folder)
        if port is None or record.url.endswith(f":{port}")
    ]
    if not found:
        raise CommandExit(FAILED, "no server runs")
    if len(found) > 1:
        raise UsageError("several servers run; `weft serve stop --port N` stops one of them")
    if not stop_server(folder, found[0]):
        raise CommandExit(FAILED, f"process {found[0].pid} does not stop")
    tell(f"stopped {found[0].url}")
    return OK


def _web(app: App, folder: Path, arguments: ParsedArguments) -> int:
    running = [each for each in running_servers(folder) if each.url.startswith("http://")]
    if not has_page():
        tell(NOT_BUILT)
    opens = has_page() and not arguments.flag("no_open")
    if not running:
        return _serve(app, arguments, opens=opens)
    page = f"{running[0].url}/#code={new_code_from(running[0])}"
    write_line(f"page (this link works once, for a minute): {page}")
    if opens:
        _open_page(page)
    return OK


def _open_page(url: str) -> None:
    import webbrowser  # only here

    if not webbrowser.open(url):
        tell("no browser could be opened; open the link yourself")


def _detach(arguments: ParsedArguments) -> int:
    """Start the same command in the background, and wait until it serves."""
    words = [word for word in sys.argv[1:] if word != "--detach"]
    write_line(start_detached(words, logs=arguments.text("log_format") == "json"))
    return OK


def start_detached(words: list[str], *, logs: bool = False) -> str:
    """Start a server in the background with these arguments, and wait until it serves; returns its
    first line.  With `logs` it writes to our standard error for as long as it runs.

    Raises:
        CommandExit: it did not start.
    """
    with tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(
            [sys.executable, "-m", "weft", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            # A log in the unnamed file could not be read, and would fill the disk.
            stderr=None if logs else complaints,
            start_new_session=True,
        )
        assert child.stdout is not None
        with child.stdout:
            said = child.stdout.readline().decode(errors="replace")
        if not said.startswith(READY):
            child.wait()
            complaints.seek(0)
            why = complaints.read().decode(errors="replace").strip().removeprefix("weft: ")
            raise CommandExit(FAILED, why or "the server did not start")
    return said.rstrip()
