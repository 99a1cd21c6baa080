"""A world for each kind of store."""

from __future__ import annotations

import pytest

from tests.support.world import World


@pytest.fixture(params=["memory", "sqlite"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    """A project and a store of each kind; the path is short, because sockets lie below it."""
    return World(request.param, tmp_path_factory.mktemp("w"))


@pytest.fixture
def plain_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A project and a memory store, where the store can make no difference."""
    return World("memory", tmp_path_factory.mktemp("w"))


@pytest.fixture
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A project and an SQLite file, which several applications can open at once."""
    return World("sqlite", tmp_path_factory.mktemp("w"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A journey that hangs has found something; it need not hang for long."""
    for item in items:
        if "journeys" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(60))
