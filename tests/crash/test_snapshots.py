"""A sample of the proof of snapshots, and that it can fail."""

from __future__ import annotations

import pytest

from tests.crash import snapshots
from tests.crash.snapshots import Plant

pytestmark = pytest.mark.process


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("sandbox", "seed"), [("off", 5), ("auto", 6)])
def test_the_files_of_every_message_are_rebuilt_from_the_log(sandbox: str, seed: int) -> None:
    tally = snapshots.run(4, seed=seed, sandbox=sandbox)
    assert tally.wrong == []
    assert tally.exact >= 20
    assert tally.kinds["edits by the user"] >= 1


@pytest.mark.timeout(120)
@pytest.mark.parametrize("fault", ["contents", "events"])
def test_without_what_it_rests_on_the_proof_is_red(fault: Plant) -> None:
    assert snapshots.run(2, 5, fault).wrong != []
