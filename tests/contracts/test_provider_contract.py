"""Every model keeps the contract: ours and the vendors', each in a world that serves what is
planned.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from tests.support.model_sources import MODEL_SOURCES, ModelSource
from weft.providers.script import ScriptedAnswer
from weft.testing.model_contract import ModelContract, ServedModel

pytestmark = pytest.mark.anyio


class TestModels(ModelContract):
    _world: ModelSource

    @pytest.fixture(autouse=True, params=sorted(MODEL_SOURCES))
    def _choose(self, request: pytest.FixtureRequest) -> None:
        self._world = MODEL_SOURCES[request.param]

    def serve(self, plan: ScriptedAnswer) -> AbstractAsyncContextManager[ServedModel]:
        return self._world(plan)
