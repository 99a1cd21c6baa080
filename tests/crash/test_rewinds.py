"""A sample of the proof of rewinds, and that it can fail."""

from __future__ import annotations

import pytest

from tests.crash import rewinds
from tests.crash.rewinds import Plant

pytestmark = pytest.mark.process


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("sandbox", "seed"), [("off", 7), ("auto", 2)])
def test_random_work_goes_back_byte_for_byte(sandbox: str, seed: int) -> None:
    tally = rewinds.run(4, seed=seed, sandbox=sandbox)
    assert tally.wrong == []
    assert tally.rewinds >= 8
    assert tally.kinds["died after a command"] >= 1


@pytest.mark.timeout(120)
@pytest.mark.parametrize("fault", ["preimage", "left"])
def test_without_what_it_rests_on_the_proof_is_red(
    fault: Plant, capfd: pytest.CaptureFixture[str]
) -> None:
    assert rewinds.run(2, 7, fault).wrong != []
    capfd.readouterr()  # what is wrong is told there, too
