"""Markdown files with settings at the top: `---`, YAML, `---`, then the text.  Agents, skills and commands are written so."""

from __future__ import annotations

from typing import Any

from weft.errors import UsageError

FENCE = "---"


def split_front_matter(text: str, name: str) -> tuple[dict[str, Any], str]:
    """The settings at the top of a file, and the text below them; no settings where the file has none.

    Raises:
        UsageError: what stands between the fences is no YAML map; `name` says which file it is.
    """
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].strip() != FENCE:
        return {}, text
    end = next((i for i, line in enumerate(lines[1:], 1) if line.strip() == FENCE), None)
    if end is None:
        raise UsageError(f"{name}: the settings at the top have no end; close them with ---")
    return _parsed("\n".join(lines[1:end]), name), "\n".join(lines[end + 1 :]).strip()


def _parsed(settings: str, name: str) -> dict[str, Any]:
    import yaml  # only where there is such a file: it costs start-up time

    try:
        found = yaml.safe_load(settings)
    except yaml.YAMLError as error:
        raise UsageError(f"{name}: the settings at the top are not right: {error}") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise UsageError(f"{name}: the settings at the top must be names with values")
    return {str(key): value for key, value in found.items()}
