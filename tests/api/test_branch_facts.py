"""What a branch took, as it is shown."""

from __future__ import annotations

import pytest

from weft.api.branch_files.branch_facts import LONGEST_COMMAND, branch_facts
from weft.context import LineEntry
from weft.ids import CallUid, NodeId
from weft.messages import Node, ToolCall

pytestmark = pytest.mark.anyio

SECRET = "hunter2-and-so-on"


async def test_a_secret_at_the_end_of_what_is_shown_is_masked_as_well() -> None:
    before = "#" * (LONGEST_COMMAND - 8)
    call = ToolCall(call_uid=CallUid("cal_1"), name="shell", args={"command": before + SECRET})
    node = Node(id=NodeId("nod_1"), role="assistant", parts=(call,))
    facts = await branch_facts([], [LineEntry(node=node)], lambda text: text.replace(SECRET, "*"))
    assert facts.commands[0].command == before + "*"
