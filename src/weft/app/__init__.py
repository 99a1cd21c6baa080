"""The composition root: settings in, a running application out.

Reads the environment and the working directory, and picks a store, a workspace and providers, so
that no part below has to.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # loaded when they are first used
    from weft.app.app import App, open_app
    from weft.app.single_run import run

__all__ = ["App", "open_app", "run"]

_HOMES = {
    "App": "app",
    "open_app": "app",
    "run": "single_run",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
