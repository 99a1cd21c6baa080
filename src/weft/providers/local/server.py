"""The llama.cpp child processes, from our side: started when asked for, watched, and taken down."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import anyio
import anyio.abc
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from weft.errors import ProviderUnavailable, RequestRefused
from weft.providers.local.token_pool import TokenPool

CHILD: Final = Path(__file__).with_name("child.py")
_PREFIX: Final = "weft-local-"
_SOCKET: Final = "s.sock"
"""llama.cpp takes a host for a unix socket by this ending."""
_LOAD_SECONDS: Final = 180.0
_STOP_SECONDS: Final = 2.0
_LONGEST_SOCKET: Final = 100
"""Characters that a socket's path may have; the system's limit is 108 bytes."""


class RunningServer(msgspec.Struct, frozen=True, kw_only=True):
    """How a model that runs is reached."""

    socket: str
    key: str

    def __repr__(self) -> str:
        """Without the key."""
        return f"RunningServer(socket={self.socket!r})"


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How models are run."""

    threads: int
    slots: int = 8
    """Requests that are answered at once; more wait."""
    contexts: int = 2
    """Whole contexts that there is memory for; the slots share it."""
    memory_bytes: int | None = None
    """Most memory that a child may take beside the weights.

    By default their size and two gigabytes.
    """


class LlamaServer:
    """One model's child process.  Used by one event loop."""

    def __init__(
        self,
        weights: Path,
        context: int,
        settings: ServerSettings,
        runtime_dir: Path,
        *,
        child: Path = CHILD,
    ) -> None:
        self._child = child
        self._weights = weights
        self._context = context
        self._settings = settings
        self._runtime_dir = runtime_dir
        self._lock = anyio.Lock()
        self.pool = TokenPool(settings.contexts * context)
        """Room for what requests hold while they run."""
        self._process: anyio.abc.Process | None = None
        self._running: RunningServer | None = None
        self._place: Path | None = None

    async def ready(self) -> RunningServer:
        """Start the child unless it runs.

        A cancel while it loads takes it down again.

        Raises:
            RequestRefused: it cannot be started here.
            ProviderUnavailable: it died while it loaded, or took too long.
        """
        async with self._lock:
            if self._running is not None and self._process is not None:
                if self._process.returncode is None and _is_alive(self._process.pid):
                    return self._running
                await self._take_down()
            try:
                self._running = await self._start()
            # Also at a cancel: a child that is still loading has no other owner.
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self._take_down(patience=0.0)
                raise
            return self._running

    async def stop(self) -> None:
        """End the child and wait for it."""
        with anyio.CancelScope(shield=True):
            async with self._lock:
                await self._take_down()

    async def _start(self) -> RunningServer:
        self._place = _private_folder(self._runtime_dir)
        running = RunningServer(socket=str(self._place / _SOCKET), key=secrets.token_urlsafe(24))
        with (self._place / "log").open("wb") as log:
            self._process = await anyio.open_process(
                # Isolated: neither variables nor the user's site folder can add code to the
                # process.
                [sys.executable, "-I", str(self._child)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._place,
                # Not our environment: it holds the user's API keys.
                env={
                    "PATH": os.defpath,
                    "LANG": "C.UTF-8",
                    # Threads that wait sleep instead of spinning; a crash does not start a
                    # debugger.
                    "OMP_WAIT_POLICY": "passive",
                    "GGML_NO_BACKTRACE": "1",
                },
                # A group of its own, so that it can be killed with all its children, and Ctrl-C in
                # the terminal does not reach it.
                start_new_session=True,
            )
        assert self._process.stdin is not None
        with anyio.move_on_after(_LOAD_SECONDS):
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                # A child that is gone already reads nothing; its first line says why.
                await self._process.stdin.send(self._settings_line(running))
            said = await self._first_line()
            if said == "ready":
                return running
            raise self._why(said)
        raise ProviderUnavailable(
            f"{self._weights.name} did not load within {_LOAD_SECONDS:g} seconds"
        )

    def _settings_line(self, running: RunningServer) -> bytes:
        size = self._weights.stat().st_size
        settings = {
            "model": str(self._weights),
            "socket": running.socket,
            "key": running.key,
            "slots": self._settings.slots,
            "context": self._settings.contexts * self._context,
            "threads": self._settings.threads,
            "memory_bytes": self._settings.memory_bytes or size + 2 * 1024**3,
        }
        return msgspec.json.encode(settings) + b"\n"

    async def _first_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        lines = BufferedByteReceiveStream(self._process.stdout)
        try:
            line = await lines.receive_until(b"\n", 4096)
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound):
            return ""
        return line.decode("utf-8", "replace").strip()

    def _why(self, said: str) -> Exception:
        if "No module named 'xllamacpp'" in said:
            return RequestRefused("local models need llama.cpp: run `pip install 'weft[local]'`")
        reason = (
            said.removeprefix("error ") or self._last_words() or "it ended without an error message"
        )
        return ProviderUnavailable(f"{self._weights.name} could not be loaded: {reason[:300]}")

    def _last_words(self) -> str:
        if self._place is None:
            return ""
        text = (self._place / "log").read_bytes()[-2000:].decode("utf-8", "replace").strip()
        return text.splitlines()[-1] if text else ""

    async def _take_down(self, patience: float = _STOP_SECONDS) -> None:
        process, self._process = self._process, None
        self._running = None
        if process is not None:
            await _end(process, patience)
        if self._place is not None:
            shutil.rmtree(self._place, ignore_errors=True)
            self._place = None


async def _end(process: anyio.abc.Process, patience: float) -> None:
    """Close its input, which it takes as the end.

    What does not listen is killed with all its children.
    """
    if process.stdin is not None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.aclose()
    # The end of its input is how the child is asked to stop; it answers within milliseconds unless
    # it is stuck in a computation.
    with anyio.move_on_after(patience):
        await process.wait()
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    await process.aclose()


def _private_folder(runtime_dir: Path) -> Path:
    """A new folder that only we can enter, for socket and log.

    Folders of processes that are gone are removed.
    """
    runtime_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in runtime_dir.glob(f"{_PREFIX}*"):
        owner = old.name.removeprefix(_PREFIX).partition("-")[0]
        # A pid that was given to another process keeps an old folder a while longer; a folder in
        # use is never removed.
        if owner.isdigit() and not _is_alive(int(owner)):
            shutil.rmtree(old, ignore_errors=True)
    place = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=runtime_dir))
    if len(str(place / _SOCKET)) > _LONGEST_SOCKET:
        place.rmdir()
        place = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    return place


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # It exists, but belongs to another user.
    except PermissionError:
        return True
    return True
