"""A few conversations of each protocol in every run of the suite, and that the proof can fail."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.crash import sent_requests
from tests.support.oracles.conversation_table import TABLE

# A PDF is read by a process.
pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.mark.parametrize("protocol", sent_requests.PROTOCOLS)
async def test_each_request_is_made_again_byte_for_byte_in_another_process(protocol: str) -> None:
    counts = Counter[str]()
    assert await sent_requests.attempt(protocol, TABLE[7:8], counts) == []
    assert counts["requests"] > 5


def test_there_are_enough_conversations_for_each_protocol() -> None:
    assert len(TABLE) >= sent_requests.CONVERSATIONS >= 60
