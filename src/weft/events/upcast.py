"""Upcasters: how facts of old versions become facts of today, one to one.

A version is part of a fact's tag.  To change a kind so that old readers would misread it: give the
class the tag `name@2`, and add here `"name": old_to_new`, a function from the decoded old map to
the map of the next version (with its new `kind`).  Maps go through as many steps as it takes.
Stored bytes are never rewritten; every old version keeps a golden file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Upcaster: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

UPCASTERS: Mapping[str, Upcaster] = {}
"""Old tag → the step to the next one.  Empty: every kind is in its first version."""


def upcast(fact: dict[str, Any], upcasters: Mapping[str, Upcaster] = UPCASTERS) -> dict[str, Any]:
    """Bring a decoded fact to its newest version; unknown kinds come back as they are."""
    # One step a version, each written once and never changed: a fact of version 1 goes through the
    # same code as when version 2 was new.
    while (step := upcasters.get(fact["kind"])) is not None:
        fact = step(fact)
    return fact
