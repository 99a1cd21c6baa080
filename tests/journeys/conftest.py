"""How long a journey may take."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A journey that hangs has found something; it need not hang for long."""
    for item in items:
        if "journeys" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(60))
