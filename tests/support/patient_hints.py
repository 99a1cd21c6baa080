"""Hints on a machine under load: no test of what they say depends on how soon they come."""

from __future__ import annotations

import pytest

from weft.runtime.turns import session_prompt


def wait_for_hints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have messages of this process wait for their hints, at their best, as long as it takes."""
    monkeypatch.setattr(session_prompt, "HINT_SECONDS", 60.0)
    monkeypatch.setattr(session_prompt, "HURRY_SECONDS", 60.0)
