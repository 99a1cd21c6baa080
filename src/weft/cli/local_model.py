"""The embedded model: used where there is no API key, announced in one line, downloaded when it is
first needed.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

from weft.app import App
from weft.cli.stdio import tell
from weft.config.local_weights import missing_weights, pull_weights, size_of
from weft.errors import UsageError
from weft.protocol.session_options import SessionOptions


def notice(app: App, options: SessionOptions) -> str:
    """The notice for a user who has no key and named no model; empty for all others."""
    if options.model is not None or app.config.get("model.default"):
        return ""
    model = app.host.default_model()
    if not model.startswith("local:"):
        return ""
    return (
        f"No API key was found, so {model} answers: it runs on this machine and is small, not "
        "meant for coding. `weft auth login anthropic` (or openai, google) saves a key "
        "for a better one."
    )


async def make_ready(app: App, say: Callable[[str], None]) -> None:
    """Fetch the weights of the model that stands in for a missing key, if they are not here.

    Raises:
        ProviderUnavailable: they could not be fetched.
        UsageError: what runs them is not installed.
    """
    name = missing_weights(app.host.default_model(), os.environ)
    if name:
        if importlib.util.find_spec("xllamacpp") is None:
            # Before the download: a hundred megabytes that cannot be used would be the first thing
            # that a new user gets.
            raise UsageError("local models need llama.cpp: run `pip install 'weft[local]'`")
        say(f"downloading {name} ({size_of(name) // 10**6} MB), only this once")
        await pull_weights(name, os.environ)


async def fetch(name: str) -> Path:
    """Fetch weights, with progress where standard error is a terminal."""
    return await pull_weights(name, os.environ, _Progress().take)


class _Progress:
    """A percentage on standard error."""

    def __init__(self) -> None:
        self._is_seen = sys.stderr is not None and sys.stderr.isatty()
        self._shown = -1

    def take(self, done: int, total: int) -> None:
        """So much is there."""
        percent = done * 100 // max(total, 1)
        if not self._is_seen or percent == self._shown:
            return
        self._shown = percent
        sys.stderr.write(f"\r{percent} %")
        sys.stderr.flush()
        if percent == 100:
            tell("")
