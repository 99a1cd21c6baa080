"""What all tests share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """We run on asyncio; trio is not supported."""
    return "asyncio"
