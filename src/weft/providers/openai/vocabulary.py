"""The vendor's words that both of its protocols have: levels of effort, and models' names."""

from __future__ import annotations

import re

from weft.providers.base import ThinkingLevel

_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?")


def effort_word(level: ThinkingLevel) -> str:
    """The vendor's word for a level that the model has."""
    return "none" if level == "off" else level


def model_version(model: str) -> tuple[int, int]:
    """The version in a model's name, as of GPT; nothing where it has none."""
    found = _GPT.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)
