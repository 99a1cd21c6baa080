"""Every scenario of `tests.crash.faults`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.faults import SCENARIOS

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_fault_has_a_clear_message_and_hurts_no_other_session(
    name: str, tmp_path: Path
) -> None:
    await SCENARIOS[name](tmp_path)
