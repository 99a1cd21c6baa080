"""`weft doctor`: what this machine has, found out by trying."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import anyio

from weft import __version__
from weft.app import App
from weft.cli.commands.auth import sources
from weft.cli.exit_codes import FAILED, OK, sentence_of
from weft.cli.parse import ParsedArguments
from weft.cli.session_options import make_app
from weft.cli.stdio import write_line, write_pretty
from weft.config.api_keys import KeyFile
from weft.errors import WeftError

SECONDS = 10.0


class DoctorFinding(NamedTuple):
    """One thing that was tried."""

    what: str
    state: Literal["ok", "missing", "wrong"]
    detail: str


def run(arguments: ParsedArguments) -> int:
    """Try everything and say what came of it.

    Fails when something is wrong, not when something is missing.
    """
    findings = list(examine(arguments))
    if arguments.flag("json"):
        write_pretty([finding._asdict() for finding in findings])
    else:
        marks = {"ok": "✓", "missing": "–", "wrong": "✗"}
        width = max(len(finding.what) for finding in findings)
        for what, state, detail in findings:
            write_line(f"{marks[state]} {what:{width}}  {detail}")
    return FAILED if any(finding.state == "wrong" for finding in findings) else OK


def examine(arguments: ParsedArguments) -> Iterable[DoctorFinding]:
    """All findings."""
    yield DoctorFinding("weft", "ok", f"{__version__} in {Path(__file__).parents[2]}")
    yield DoctorFinding("python", "ok", f"{platform.python_version()} on {platform.platform()}")
    try:
        app = make_app(arguments)
    except WeftError as error:
        yield DoctorFinding("settings", "wrong", sentence_of(error))
        return
    for problem in app.config.problems:
        yield DoctorFinding("settings", "wrong", f"left out: {problem}")
    yield DoctorFinding("settings", "ok", str(app.places.config / "config.toml"))
    yield _data(app)
    yield _sqlite(app)
    yield _keys(app)
    yield _terminal()
    yield _program("git", "--version", "version control")
    yield _program("rg", "--version", "fast search; grep works without it")
    yield _sandbox(app)
    yield _keeper(app)
    yield _local_model()


def _tried(what: str, attempt: Callable[[], str]) -> DoctorFinding:
    try:
        return DoctorFinding(what, "ok", attempt())
    except (WeftError, OSError) as error:
        return DoctorFinding(what, "wrong", sentence_of(error))


def _data(app: App) -> DoctorFinding:
    def attempt() -> str:
        app.places.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=app.places.home, prefix=".doctor-") as file:
            file.write(b"x")
            file.flush()
            # A full or failing disk is often noticed only here: a write goes to the cache first.
            os.fsync(file.fileno())
        free = shutil.disk_usage(app.places.home).free
        if free < 100 * 2**20:
            raise OSError(28, f"only {free // 2**20} MB are free", str(app.places.home))
        return f"{app.places.home} can be written, {free // 2**30} GB free"

    return _tried("data", attempt)


def _sqlite(app: App) -> DoctorFinding:
    def attempt() -> str:
        import apsw

        version = apsw.sqlite_lib_version()
        path = app.places.database
        if address := str(app.config.get("store.address")):
            from urllib.parse import urlsplit

            host = urlsplit(address).hostname or "this machine"
            return f"SQLite {version}; sessions are kept in Postgres on {host}"
        if not path.exists():
            return f"SQLite {version}; no sessions yet"
        # Read only: a check must not create, migrate or recover anything.  A file that was closed
        # in order is read as it is: beside it SQLite would make others, and cannot where the disk
        # is full or read-only.
        beside = [Path(f"{path}{end}") for end in ("-wal", "-shm")]
        is_at_rest = not any(each.exists() and each.stat().st_size for each in beside)
        connection = apsw.Connection(
            f"{path.as_uri()}{'?immutable=1' if is_at_rest else ''}",
            flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
        )
        try:
            found = connection.execute("pragma quick_check(1)").fetchall()[0][0]
        except apsw.Error as error:
            raise OSError(5, str(error), str(path)) from error
        finally:
            connection.close()
        if found != "ok":
            raise OSError(5, f"damaged: {found}", str(path))
        return f"SQLite {version}; {path} is intact, {path.stat().st_size / 2**20:.1f} MB"

    return _tried("store", attempt)


def _keys(app: App) -> DoctorFinding:
    keys = KeyFile(app.places.config, app.config.get("profile"))
    try:
        found = sources(keys)
    except WeftError as error:
        return DoctorFinding("keys", "wrong", sentence_of(error))
    if not keys.is_private():
        return DoctorFinding(
            "keys", "wrong", f"{keys.path} can be read by others: chmod 600 {keys.path}"
        )
    if not found:
        said = "no provider has a key: `weft auth login anthropic` (or openai, google, …) saves one"
        return DoctorFinding("keys", "missing", said)
    return DoctorFinding(
        "keys", "ok", ", ".join(f"{name} ({source})" for name, source in found.items())
    )


def _terminal() -> DoctorFinding:
    if sys.stdout is None or not sys.stdout.isatty():
        return DoctorFinding("terminal", "missing", "standard output is not a terminal")
    size = os.get_terminal_size(1)
    parts = [os.environ.get("TERM", "no TERM"), f"{size.columns}x{size.lines}", sys.stdout.encoding]
    if os.environ.get("NO_COLOR"):
        parts.append("NO_COLOR")
    return DoctorFinding("terminal", "ok", ", ".join(parts))


def _program(name: str, flag: str, why: str) -> DoctorFinding:
    path = _which(name)
    if path is None:
        return DoctorFinding(name, "missing", f"not found ({why})")
    done = _ran([path, flag])
    if done is None or done.returncode:
        return DoctorFinding(name, "wrong", f"{path} does not work")
    return DoctorFinding(name, "ok", (done.stdout.splitlines() or [path])[0])


def _sandbox(app: App) -> DoctorFinding:
    """Does it hold?  A write outside must fail, one inside must not, and a command must be held in
    its overlay.
    """
    if app.config.get("sandbox.mode") == "off":
        return DoctorFinding("sandbox", "missing", f"switched off (sandbox.mode); {_UNCONFINED}")
    path = _which("bwrap")
    if path is None:
        return DoctorFinding("sandbox", "missing", f"bubblewrap is not installed; {_UNCONFINED}")
    with tempfile.TemporaryDirectory() as inside, tempfile.TemporaryDirectory() as outside:
        wall = [
            *(path, "--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--new-session"),
            *("--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *("--bind", inside, inside),
        ]
        # Inside first: where even this fails, bubblewrap does not work here at all, and the test of
        # the wall below would pass for the wrong reason.
        done = _ran([*wall, "touch", f"{inside}/x"])
        if done is None or done.returncode:
            why = (done.stderr.strip() if done is not None else "") or "it cannot be started"
            return DoctorFinding(
                "sandbox", "missing", f"bubblewrap does not work here: {why}; {_UNCONFINED}"
            )
        _ran([*wall, "touch", f"{outside}/x"])
        # The exit code is not asked: what counts is whether the file is there.
        if os.path.exists(f"{outside}/x"):
            return DoctorFinding("sandbox", "wrong", "bubblewrap let a write out")
    return _overlay(app)


_UNCONFINED = "commands run with all your rights, and what they change is reported afterwards"


def _overlay(app: App) -> DoctorFinding:
    """Run a command as sessions do."""

    async def tried() -> DoctorFinding:
        report = await app.probe_sandbox()
        if not report.is_available:
            why = f"no overlay over this folder: {report.reason}; {_UNCONFINED}"
            return DoctorFinding("sandbox", "missing", why)
        return DoctorFinding("sandbox", "ok", f"working: {_sandbox_text(report.layers)}")

    return anyio.run(tried)


def _keeper(app: App) -> DoctorFinding:
    """Start the keeper as the first command outside the sandbox does."""
    if why := anyio.run(app.probe_keeper):
        return DoctorFinding(
            "keeper",
            "missing",
            f"{why}; if Weft is killed, what commands outside the sandbox left running is found by "
            "its marks at the next start",
        )
    return DoctorFinding(
        "keeper", "ok", "working: commands outside the sandbox end with Weft, however it ends"
    )


class _Layer(Protocol):
    """One mechanism of the sandbox."""

    @property
    def name(self) -> str: ...
    @property
    def works(self) -> bool: ...
    @property
    def detail(self) -> str: ...


def _sandbox_text(layers: Sequence[_Layer]) -> str:
    """`bubblewrap, overlay, seccomp; unix sockets blocked, network blocked`"""
    *layers, network = layers
    working = ", ".join(layer.name for layer in layers if layer.works)
    details = [
        layer.detail if layer.works else f"{layer.name} {layer.detail}"
        for layer in layers
        if layer.detail
    ]
    return f"{working}; {', '.join([*details, f'network {network.detail}'])}"


def _local_model() -> DoctorFinding:
    if importlib.util.find_spec("xllamacpp") is None:
        return DoctorFinding(
            "local models", "missing", "xllamacpp is not installed (pip install 'weft[local]')"
        )
    return DoctorFinding("local models", "ok", "xllamacpp is installed")


def _which(name: str) -> str | None:
    """A program as sessions find it: never one from this folder, which may be untrusted."""
    here = os.path.join(os.path.realpath(os.getcwd()), "")
    folders = [
        folder
        for folder in os.get_exec_path()
        if os.path.isabs(folder) and not os.path.join(os.path.realpath(folder), "").startswith(here)
    ]
    return shutil.which(name, path=os.pathsep.join(folders))


def _ran(argv: list[str]) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
