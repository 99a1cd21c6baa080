"""`weft.testing`: everything that a test needs, and examples that work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import weft.sync
import weft.testing
from tests.support.doc_examples import examples
from weft.errors import UsageError
from weft.providers import ModelRequest, StreamFinished, script
from weft.testing.model_contract import ModelContract, ServedModel
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


@pytest.mark.process
@pytest.mark.timeout(120)
def test_the_examples_of_the_document_work_as_tests_of_another_project(tmp_path: Path) -> None:
    """In a folder of their own, with nothing of ours around them."""
    shown = examples("testing.md")
    assert {example.kind for example in shown} == {"conftest", "test"}
    for number, example in enumerate(shown):
        name = "conftest.py" if example.kind == "conftest" else f"test_{number}.py"
        (tmp_path / name).write_text(example.code)
    (tmp_path / "test_wrong.py").write_text(WRONG)
    came = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = [line for line in came.stdout.splitlines() if line.startswith("FAILED")]
    assert [line.partition(" - ")[0] for line in failed] == [f"FAILED {FAILS}"], came.stdout
    # A claim that does not hold shows the values.
    assert "assert 0 == 3" in came.stdout


FAILS = "test_wrong.py::TestForgetful::test_what_was_appended_is_read_back_in_order"
WRONG = """
import pytest
from weft.testing import MemoryStore
from weft.testing.store_contract import StoreContract

pytestmark = pytest.mark.anyio

class Forgetful(MemoryStore):
    async def last_seq(self, stream):
        return 0

class TestForgetful:
    opened = StoreContract.opened
    test_what_was_appended_is_read_back_in_order = \
StoreContract.test_what_was_appended_is_read_back_in_order

    async def open(self, place):
        return Forgetful()
"""


def test_a_tool_that_lacks_something_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    class Half:
        name = "half"
        description = "Half a tool."

        def prepare(self) -> None: ...

    half: Any = Half()
    with pytest.raises(
        UsageError, match=r"is not a Tool yet: it has no schema, effect, timeout_seconds$"
    ):
        # The point.
        weft.sync.run("go", model=weft.testing.ScriptedModel([]), tools=[half], cwd=tmp_path)


def test_the_contract_of_a_model_can_fail() -> None:
    """A model that forgets to say that it finished does not keep the contract."""

    class Forgetful(weft.testing.ScriptedModel):
        def stream(self, request: ModelRequest) -> Any:
            return self._without_end(super().stream(request))

        @asynccontextmanager
        async def _without_end(self, inner: Any) -> AsyncIterator[Any]:
            async with inner as events:
                yield (event async for event in events if not isinstance(event, StreamFinished))

    class Broken(ModelContract):
        @asynccontextmanager
        async def serve(self, plan: weft.testing.ScriptedAnswer) -> AsyncIterator[ServedModel]:
            yield ServedModel(Forgetful([plan] * 6))

    with pytest.raises(AssertionError):
        anyio.run(Broken().test_text_arrives_whole_and_in_order_and_finished_is_last)
