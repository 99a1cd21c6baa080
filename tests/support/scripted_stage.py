"""A project in which the names of vendors' models mean scripted models."""

from __future__ import annotations

from typing import Any

import weft
from tests.support.world import World
from weft.app import App
from weft.providers import ModelInfo
from weft.providers.script import Step
from weft.providers.scripted import Chooser, ScriptedModel, ScriptedProvider


class ScriptedStage:
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
