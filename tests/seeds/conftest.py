"""What the examples need: a project, a store that outlives the program, and models under the names that the documents use."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from tests.journeys.world import World
from weft.app import App
from weft.providers import ModelInfo
from weft.providers.script import Step
from weft.providers.scripted import Chooser, ScriptedModel, ScriptedProvider


class Stage:
    """A world in which `provider:model` names mean scripted models."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.models: dict[str, ScriptedModel] = {}

    def plays(
        self, name: str, *answers: str | Step | tuple[Step, ...], choose: Chooser | None = None
    ) -> ScriptedModel:
        """Let the model of this name give these answers, one after the other."""
        provider, _, model = name.partition(":")
        info = ModelInfo(
            provider=provider,
            name=model,
            price_input=3.0,
            price_output=15.0,
            thinks=True,
            sees_images=True,
        )
        self.models[name] = ScriptedModel(list(answers), choose=choose, info=info)
        return self.models[name]

    def open(self, config: dict[str, Any] | None = None) -> App:
        """The program, as it would be started anew."""
        by_provider: dict[str, dict[str, ScriptedModel]] = {}
        for name, model in self.models.items():
            by_provider.setdefault(name.partition(":")[0], {})[model.info.name] = model
        return weft.open(
            self.world.project,
            self.world.store(),
            {"model.default": next(iter(self.models)), "sandbox.mode": "off", **(config or {})},
            environ=self.world.environ,
            providers={name: ScriptedProvider(models) for name, models in by_provider.items()},
        )


@pytest.fixture(params=["memory", "sqlite"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A stage on each kind of store; the path is short, because sockets lie below it."""
    return Stage(World(request.param, tmp_path_factory.mktemp("w")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """An example that hangs has found something; it need not hang for long."""
    for item in items:
        if "seeds" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(30))
