"""Modules of others that are loaded when they are first used.

What we need imports modules that it uses only in rare functions: to print a traceback, to ask for
the locale, to describe a type.  Loading those takes milliseconds and almost half a megabyte of
every start; TLS takes four megabytes, and a model on this machine is spoken to without.  A deferred
module stands in `sys.modules` without having run; the first name that is read from it runs it.
"""

from __future__ import annotations

import sys
from importlib import _bootstrap
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

# By hand: `typing` takes as long to load as the interpreter itself.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DEFERRED = (
    "anyio._core._sockets",
    "asyncio.sslproto",
    "base64",
    "httptools",
    "ipaddress",
    "locale",
    "msgspec.inspect",
    "ssl",
)
FORWARDED = {("anyio._core._sockets", "convert_ipv6_sockaddr")}
"""Functions that another module imports by name at its top.  It gets one that calls the real one,
which for a function is no difference; for a class it would be one.
"""
_running: set[str] = set()


class DeferredModule(ModuleType):
    """A module that runs when a name of it is first read."""

    def __getattribute__(self, name: str) -> Any:
        read = ModuleType.__getattribute__
        # The import system reads `__spec__` at each `import`, and tools look at what every module
        # has (`__file__`, `__warningregistry__`): those are no use of it.
        if name.startswith("__"):
            return read(self, name)
        spec = read(self, "__spec__")
        if spec.name not in _running:
            if (spec.name, name) in FORWARDED:
                return _forwarding(self, spec, name)
            if (spec.name, name) == ("ssl", "SSLSocket") and _asyncio_asks():
                return ()
        _run(self, spec)
        return read(self, name)


def _forwarding(module: DeferredModule, spec: ModuleSpec, name: str) -> Callable[..., Any]:
    def forward(*given: Any, **named: Any) -> Any:
        _run(module, spec)
        return getattr(module, name)(*given, **named)

    return forward


def _asyncio_asks() -> bool:
    """asyncio asks of each socket whether it is one of TLS's: none is, while `ssl` has not run."""
    # The frame above is the one of `__getattribute__`, and that of who reads the name is above it.
    return sys._getframe(2).f_globals.get("__name__") == "asyncio.base_events"


def defer_modules(names: tuple[str, ...] = DEFERRED) -> None:
    """Defer those of these modules that nothing has loaded yet."""
    for name in names:
        spec = None if name in sys.modules else _spec_of(name)
        # Another finder (of a frozen program) may know it: the import finds it as always.
        if spec is not None and spec.loader is not None:
            module = DeferredModule(name)
            module.__spec__ = spec
            module.__loader__ = spec.loader
            module.__package__ = spec.parent
            module.__file__ = spec.origin
            if spec.submodule_search_locations is not None:
                module.__path__ = spec.submodule_search_locations
            sys.modules[name] = module


def _spec_of(name: str) -> ModuleSpec | None:
    package, _, _ = name.rpartition(".")
    if not package:
        return PathFinder.find_spec(name)
    above = _spec_of(package)
    return above and PathFinder.find_spec(name, above.submodule_search_locations)


def _run(module: DeferredModule, spec: ModuleSpec) -> None:
    """Run a module.  Another thread waits meanwhile, until all its names are there; what the module
    reads from itself while it runs comes from this thread, and must not run it again.
    """
    # The import system's own lock of this one module: while it runs, it imports others, which other
    # threads may be importing, and they may need this one.  That lock knows who waits for whom.
    lock = _bootstrap._get_module_lock(spec.name)  # type: ignore[attr-defined]
    try:
        lock.acquire()
    except _bootstrap._DeadlockError:  # type: ignore[attr-defined]
        return  # as an `import` in a circle: the names that are there by now must do
    try:
        if type(module) is not DeferredModule or spec.name in _running:
            return
        _running.add(spec.name)
        try:
            spec.loader.exec_module(module)  # type: ignore[union-attr]  # see `defer_modules`
            object.__setattr__(module, "__class__", ModuleType)
        finally:
            _running.discard(spec.name)
    finally:
        lock.release()
