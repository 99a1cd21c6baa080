"""What is said of a chat when it is left."""

from __future__ import annotations

from tests.support.tool_cards import card, edit
from weft.cli.chat.chat_tally import ChatTally
from weft.events import Event, SystemNote, TurnFinished
from weft.ids import TurnId

END = TurnFinished(turn_id=TurnId("t"), reason="stop")
NOTE: Event = SystemNote(text="x")


def test_a_chat_says_its_turns_time_cost_and_files() -> None:
    tally = ChatTally("/work/calc")
    assert tally.text(seconds=5, cost_usd=0.0) == "", "nothing was said"
    tally.take(NOTE, [edit()])
    tally.take(NOTE, [edit(), edit(is_error=True)])
    for _ in range(12):
        tally.take(END, [])
    assert tally.text(seconds=425, cost_usd=0.07) == "12 turns · 7 min · $0.07 · calc.py +2 −2"
    assert tally.text(seconds=12, cost_usd=None) == "12 turns · 12 s · calc.py +2 −2"


def test_many_files_are_counted() -> None:
    tally = ChatTally("")
    for number in range(6):
        args = {"path": f"{number}.py", "content": "a\nb\n"}
        new = card("write", f"wrote {number}.py", args=args, data={"diff": "--- x\n+++ x\n"})
        tally.take(END, [new])
    said = tally.text(seconds=1, cost_usd=0)
    assert said == "6 turns · 1 s · 0.py +2 −0 · 1.py +2 −0 · 2.py +2 −0 · 3 files more"
