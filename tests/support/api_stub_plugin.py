"""A pytest plugin that takes one row of the API away: `WEFT_STUB=Session.abort pytest -p
tests.support.api_stub_plugin …`.
"""

from __future__ import annotations

import inspect
import os
from typing import Any

import weft
from weft.api.manager import SessionManager
from weft.api.session import Session

OWNERS: dict[str, Any] = {"Session": Session, "SessionManager": SessionManager, "weft": weft}
"""Where rows are found."""


class Stubbed(Exception):
    """The row is taken away."""


def pytest_configure() -> None:
    """Put a stub in the place of what the environment names."""
    owner_name, _, name = os.environ["WEFT_STUB"].partition(".")
    owner = OWNERS[owner_name]
    found = getattr(owner, name) if owner is weft else inspect.getattr_static(owner, name)
    setattr(owner, name, _stub_of(found))


def _stub_of(found: Any) -> Any:
    if inspect.iscoroutinefunction(found):

        async def absent(*given: object, **named: object) -> None:
            raise Stubbed

        return absent

    def gone(*given: object, **named: object) -> None:
        raise Stubbed

    return staticmethod(gone) if isinstance(found, staticmethod) else gone
