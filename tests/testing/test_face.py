"""`weft.testing`: everything that a test needs, and examples that work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import weft.testing
from tests.examples import Example, examples, play, project_in
from weft.providers import Finished, ModelRequest, script
from weft.testing.model_contract import ModelContract, Served
from weft.testing.store_contract import StoreContract


def test_every_step_of_a_script_is_at_hand() -> None:
    steps = {
        name
        for name, value in vars(script).items()
        if isinstance(value, type)
        and issubclass(value, script.StepBase)
        and not name.endswith("Base")
    }
    assert steps <= set(weft.testing.__all__)


@pytest.mark.requirement("entry:store-contract")
def test_the_contracts_are_modules_to_subclass_from() -> None:
    assert weft.testing.store_contract.StoreContract is StoreContract
    assert weft.testing.model_contract.ModelContract is ModelContract


@pytest.mark.parametrize("example", examples("testing.md"), ids=str)
def test_the_examples_of_the_document_work(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    space = play(example, project=project_in(tmp_path))
    assert space


def test_the_contract_of_a_model_can_fail() -> None:
    """A model that forgets to say that it finished does not keep the contract."""

    class Forgetful(weft.testing.ScriptedModel):
        def stream(self, request: ModelRequest) -> Any:
            return self._without_end(super().stream(request))

        @asynccontextmanager
        async def _without_end(self, inner: Any) -> AsyncIterator[Any]:
            async with inner as events:
                yield (event async for event in events if not isinstance(event, Finished))

    class Broken(ModelContract):
        @asynccontextmanager
        async def serve(self, plan: weft.testing.Answer) -> AsyncIterator[Served]:
            yield Served(Forgetful([plan] * 6))

    with pytest.raises(AssertionError):
        anyio.run(Broken().test_text_arrives_whole_and_in_order_and_finished_is_last)
