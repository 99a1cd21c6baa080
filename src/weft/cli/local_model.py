"""What answers where there is no API key: nothing until the user has chosen, and the embedded model
where they chose that, downloaded when it is first needed.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path

from weft.cli.stdio import tell
from weft.config.local_weights import embedded_models, missing_weights, pull_weights, size_of
from weft.errors import UsageError

NO_KEY_LINES = (
    "no API key was found, so there is no model to answer.\n"
    "With a key: set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY or "
    "another one, or save it: `weft auth login anthropic` (or openai, google, openrouter, …).\n"
    "Without one: `-m ollama:qwen3` uses a server on this machine, and `-m local:smollm2` a small "
    "embedded model that is not meant for coding (98 MB, once)."
)
"""What a run that has no key says: three lines, and each of them something to do."""


def has_engine() -> bool:
    """Whether what runs embedded models is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


async def make_ready(model: str, say: Callable[[str], None]) -> None:
    """Fetch the weights of an embedded model that the user chose, if they are not here.

    Raises:
        ProviderUnavailable: they could not be fetched.
        UsageError: there is no such model, or what runs them is not installed.
    """
    given = model.partition(":")[2]
    known = embedded_models(os.environ)
    if given not in known and not given.endswith(".gguf"):
        raise UsageError(
            f"no local model {given!r}; there are {', '.join(known)}, and any file as "
            "local:/path/model.gguf"
        )
    name = missing_weights(model, os.environ)
    if name:
        if not has_engine():
            # Before the download: a hundred megabytes that cannot be used would be the first thing
            # that a new user gets.
            raise UsageError("local models need llama.cpp: run `pip install 'weft[local]'`")
        about = "; it is small and not meant for coding" if name == "smollm2" else ""
        say(f"downloading {name} ({size_of(name) // 10**6} MB), only this once{about}")
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
