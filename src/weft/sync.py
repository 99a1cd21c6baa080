"""The same API, blocking: for scripts and notebooks.

    with weft.sync.open() as app:
        session = app.sessions.start_session(model="anthropic:claude-sonnet-5-5")
        print(session.send_message("Why does the test fail?").text)

One background thread with one loop serves the whole process, so it works inside a running loop (a
notebook) and from any number of threads. Every class here stands for one of `weft.api` and has its
names: a call is sent to the loop and waited for, an async iterator is a plain one, `async with` is
`with`.  The classes are made from the async ones when they are first met, so that nothing can be
missing; `sync.pyi` declares them for type checkers.

An interrupt (Ctrl-C) ends the wait, as a cancel does: what was accepted goes on, `run` and `query`
close everything they opened.  An iterator loses nothing by it.  After a fork the child has no loop
and no app of its parent's; it opens its own.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import functools
import inspect
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

import weft
from weft import api as _api
from weft import app as _app
from weft.errors import UsageError

if TYPE_CHECKING:
    from weft.loom import GenerationStore

__all__ = [
    "App",
    "Session",
    "SessionManager",
    "connect",
    "loom",
    "open",
    "query",
    "run",
    "stream",
]

SETTLE_SECONDS: Final = 5.0
"""How long an interrupted call, or the end of the process, waits for things to be closed."""


# --- the thread --------------------------------------------------------------------------


class _Bridge:
    """One thread with one event loop, and the calls into it."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        # A daemon: a thread that is not one would be joined before `atexit` runs, and never end.
        self._thread = threading.Thread(target=self._run, name="weft.sync", daemon=True)
        self._entered: dict[int, Any] = {}
        """What is open and has to be closed before the process ends."""
        self._is_closing = False
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._is_closing:
            # A task that asks the process to exit stops the loop; the others go on.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()

    def submit(self, work: Callable[[], Any]) -> concurrent.futures.Future[Any]:
        """Have `work` done in the loop; what it returns is awaited if that can be.

        Raises:
            UsageError: the loop is another process's, or this is the loop's own thread, which would
                wait for itself.
        """
        self._check()
        # `work` is called in the loop too and not here: what it touches belongs to the loop's
        # thread.
        return asyncio.run_coroutine_threadsafe(_carried(work), self._loop)

    def call(self, work: Callable[[], Any]) -> Any:
        """Have `work` done in the loop, and wait for it.

        An interrupt cancels it and waits until it is gone.
        """
        settled = threading.Event()
        future = self.submit(functools.partial(_then, work, settled.set))
        try:
            return future.result()
        except BaseException:
            if not future.done():
                future.cancel()
                # A cancelled coroutine still runs its `finally` blocks in the loop; leaving before
                # they are done would close the app under them.
                settled.wait(SETTLE_SECONDS)
            raise

    def soon(self, work: Callable[[], object]) -> None:
        """Have something done in the loop some time, if the loop still runs.

        For those who cannot wait.
        """
        if self._pid == os.getpid():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(work)

    def _check(self) -> None:
        if self._pid != os.getpid():
            raise UsageError(
                "this belongs to the process that this one was forked from; open an app of your own"
            )
        if threading.current_thread() is self._thread:
            raise UsageError(
                "weft.sync cannot be used in its own loop (in a callback or an async "
                "tool); use weft's async API there"
            )

    def keep(self, inner: Any) -> None:
        """Remember that something was opened."""
        self._entered[id(inner)] = inner

    def forget(self, inner: Any) -> None:
        """It was closed."""
        self._entered.pop(id(inner), None)

    def close(self) -> None:
        """Close what is still open, and end the thread; best effort, for the process is ending."""
        # One that fails to close must not keep the others open.
        for inner in list(self._entered.values()):
            with contextlib.suppress(Exception):
                self.submit(inner.aclose).result(SETTLE_SECONDS)
        self._is_closing = True
        self.soon(self._loop.stop)
        self._thread.join(SETTLE_SECONDS)


async def _carried(work: Callable[[], Any]) -> Any:
    result = work()
    return await result if inspect.isawaitable(result) else result


async def _then(work: Callable[[], Any], done: Callable[[], None]) -> Any:
    try:
        return await _carried(work)
    finally:
        done()


_bridge: _Bridge | None = None
_making = threading.Lock()


def _the_bridge() -> _Bridge:
    """The one bridge of this process, made when it is first needed."""
    global _bridge
    # Two threads may call for the first time at once; two bridges would mean two loops.
    with _making:
        if _bridge is None:
            _bridge = _Bridge()
        return _bridge


def _forget_parent() -> None:
    """In a forked child: the parent's thread is not here, and its lock may be held for ever."""
    global _bridge, _making
    _bridge, _making = None, threading.Lock()


@atexit.register
def _close_bridge() -> None:
    if _bridge is not None:
        _bridge.close()


os.register_at_fork(after_in_child=_forget_parent)


# --- standing for an object --------------------------------------------------------------


_ASYNC_ONLY = frozenset({"host"})
"""The runtime beneath the API hands out ports, which only make sense in the loop."""


class _Blocking:
    """Stands for an object of the async API."""

    _inner: Any
    _bridge: _Bridge
    _next: concurrent.futures.Future[Any] | None = None
    _is_closed = False

    def __init__(self, inner: Any, bridge: _Bridge) -> None:
        self._inner = inner
        self._bridge = bridge

    def __repr__(self) -> str:
        return f"<weft.sync {self._inner!r}>"

    def __getattr__(self, name: str) -> Any:
        """Attributes of the object itself: what is not on its class."""
        if name.startswith("_") or name in _ASYNC_ONLY:
            raise AttributeError(name)
        value = getattr(self._inner, name)
        if inspect.isroutine(value):
            return functools.partial(_called, self._bridge, value)
        return _blocking(value, self._bridge)

    def __del__(self) -> None:
        # The last hold on the object is let go in the loop's thread, where it may clean up after
        # itself.
        if "_bridge" in self.__dict__:
            self._bridge.soon(functools.partial(id, self._inner))


def _called(bridge: _Bridge, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call something of the async API in the loop."""
    args = tuple(_plain(each) for each in args)
    options = {name: _plain(each) for name, each in options.items()}
    result = bridge.call(functools.partial(function, *args, **options))
    return _blocking(result, bridge)


def _plain(given: Any) -> Any:
    """What the async API takes for something of ours."""
    return given._inner if isinstance(given, _Blocking) else given


def _blocking(value: Any, bridge: _Bridge) -> Any:
    """What stands for a value of the async API; the value itself where nothing in it waits."""
    kind: Any = type(value)
    # Only where something in it waits: other lists are handed on as they are, not copied.
    if isinstance(value, list | tuple) and any(_waits(each.__class__) for each in value):
        return kind(_blocking(each, bridge) for each in value)
    # An import's report and a joined session, of this process or of a server.
    if isinstance(value, msgspec.Struct):
        kinds: dict[str, Any] = {
            name: getattr(value, name, None).__class__ for name in ("session", "events")
        }
        inner = {name: getattr(value, name) for name, kind in kinds.items() if _waits(kind)}
        if inner:
            made = {name: _blocking(each, bridge) for name, each in inner.items()}
            return msgspec.structs.replace(value, **made)
    return _class_for(kind)(value, bridge) if _waits(kind) else value


@functools.cache
def _waits(cls: type) -> bool:
    """True for classes whose objects cannot be used without a loop: iterators that are async, and
    ours with async methods.
    """
    if hasattr(cls, "__anext__"):
        return True
    ours = cls.__module__.partition(".")[0] == "weft"
    return ours and any(
        inspect.iscoroutinefunction(inspect.getattr_static(cls, name)) for name in dir(cls)
    )


# --- standing for a class ----------------------------------------------------------------


@functools.cache
def _class_for(cls: type) -> type[_Blocking]:
    """The class that stands for `cls`: the same public names, each a blocking one."""
    body: dict[str, Any] = {"__doc__": cls.__doc__, "__module__": __name__}
    for name in dir(cls):
        if not name.startswith("_") and name not in _ASYNC_ONLY:
            body[name] = _member(cls, name)
    if hasattr(cls, "__anext__"):
        body |= {"__iter__": lambda self: self, "__next__": _next}
    if hasattr(cls, "__aenter__"):
        body |= {"__enter__": _enter, "__exit__": _exit}
    if hasattr(cls, "aclose"):
        body["aclose"] = body["close"] = _close
    return type(cls.__name__, (_Blocking,), body)


def _member(cls: type, name: str) -> Any:
    member = inspect.getattr_static(cls, name)
    if isinstance(member, staticmethod):
        return member
    if inspect.isfunction(member):
        return _method(member)
    return property(
        lambda self: _blocking(getattr(self._inner, name), self._bridge), doc=member.__doc__
    )


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def method(self: _Blocking, *args: Any, **options: Any) -> Any:
        return _called(self._bridge, function, self._inner, *args, **options)

    # `wraps` says that it is a coroutine function still, by the one it remembers.
    del method.__wrapped__
    # Read by `inspect`.
    method.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return method


def _enter(self: _Blocking) -> _Blocking:
    self._bridge.call(self._inner.__aenter__)
    self._bridge.keep(self._inner)
    return self


def _exit(self: _Blocking, *error: Any) -> None:
    self._bridge.forget(self._inner)
    self._bridge.call(functools.partial(self._inner.__aexit__, *error))


def _close(self: _Blocking) -> None:
    """Close it."""
    self._is_closed = True
    self._bridge.forget(self._inner)
    if self._next is not None:
        self._next.cancel()
        self._next = None
    self._bridge.call(self._inner.aclose)


def _next(self: _Blocking) -> Any:
    """The next item.  One that comes while the wait is interrupted is kept for the next call."""
    if self._is_closed:
        raise StopIteration
    # Kept across an interrupt: a second `__anext__` would lose the item that the first one gets.
    if self._next is None:
        self._next = self._bridge.submit(self._inner.__anext__)
    concurrent.futures.wait([self._next])
    future, self._next = self._next, None
    try:
        return _blocking(future.result(), self._bridge)
    except (StopAsyncIteration, concurrent.futures.CancelledError):
        raise StopIteration from None


# --- the face ----------------------------------------------------------------------------

App = _class_for(_app.App)
SessionManager = _class_for(_api.SessionManager)
Session = _class_for(_api.Session)


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def blocking(*args: Any, **options: Any) -> Any:
        return _called(_the_bridge(), function, *args, **options)

    del blocking.__wrapped__
    blocking.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # as above
    return blocking


def loom(
    path: str | os.PathLike[str] | None = None,
    *,
    project_path: str | os.PathLike[str] = ".",
    **options: Any,
) -> GenerationStore:
    """All text trees of a store (the user's own), blocking; `close()` lets go of them.

    `options` are those of `open`.
    """
    bridge = _the_bridge()
    opened: Any = _called(bridge, _open_loom, path, project_path, options)
    bridge.keep(opened._inner)
    return opened  # type: ignore[no-any-return]  # the blocking one


async def _open_loom(path: Any, project_path: Any, options: dict[str, Any]) -> Any:
    app = _app.open_app(project_path, store=path, **options)
    await app.__aenter__()
    app.loom.closes = app.aclose
    return app.loom


def connect(url: str = "http://127.0.0.1:7717", token: str | None = None) -> Any:
    """A server's sessions, blocking; see `weft.connect`."""
    # Through the face: the server stands above this module, and few connect.
    return _called(_the_bridge(), weft.connect, url, token)


open = _function(_app.open_app)
run = _function(_app.run)
query = _function(_api.query)
stream = _function(_api.stream)
