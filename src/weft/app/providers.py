"""The providers that this installation has, by name."""

from __future__ import annotations

from collections.abc import Mapping

from weft.providers import Provider
from weft.providers.replay import ReplayProvider
from weft.providers.scripted import ScriptedProvider


def default_providers(environ: Mapping[str, str]) -> dict[str, Provider]:
    """Every provider, ready to be asked for a model; none is connected to yet."""
    return {"scripted": ScriptedProvider(), "replay": ReplayProvider()}
