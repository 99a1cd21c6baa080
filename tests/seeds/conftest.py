"""What the examples need: a project, a store that outlives the program, and models under the names
that the documents use.
"""

from __future__ import annotations

import pytest

from tests.support.scripted_stage import ScriptedStage
from tests.support.world import World


@pytest.fixture(params=["memory", "sqlite"])
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ScriptedStage:
    """A stage on each kind of store; the path is short, because sockets lie below it."""
    return ScriptedStage(World(request.param, tmp_path_factory.mktemp("w")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An example that hangs has found something; it need not hang for long."""
    for item in items:
        if "seeds" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(30))
