"""Weights of embedded models: which are known, which are here, and fetching one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from weft.config.paths import places
from weft.config.providers import proxies_of
from weft.providers.local.weights import KNOWN, pull
from weft.transport import HttpClient

FOLDER = "models"


def embedded_models(environ: Mapping[str, str]) -> dict[str, tuple[str, bool]]:
    """Every known embedded model: what it is, and whether its weights are here."""
    folder = _folder(environ)
    return {
        name: (weights.about, (folder / weights.file).is_file()) for name, weights in KNOWN.items()
    }


def missing_weights(model: str, environ: Mapping[str, str]) -> str:
    """The name to pull before `local:NAME` can answer.

    Empty for every other model and when nothing is missing.
    """
    provider, _, name = model.partition(":")
    known = embedded_models(environ) if provider == "local" else {}
    return name if name in known and not known[name][1] else ""


def size_of(name: str) -> int:
    """How many bytes the weights of a known model have."""
    return KNOWN[name].size


async def pull_weights(
    name: str, environ: Mapping[str, str], progress: Callable[[int, int], None] | None = None
) -> Path:
    """Fetch the weights of a known model, unless they are here; `progress` is called with bytes
    done and in all.

    Raises:
        UsageError: no such model is known.
        ProviderUnavailable: they could not be fetched, or are not what they should be.
    """
    client = HttpClient(proxies=proxies_of(environ))
    try:
        return await pull(name, _folder(environ), client, progress=progress)
    finally:
        await client.aclose()


def _folder(environ: Mapping[str, str]) -> Path:
    return places(environ).home / FOLDER
