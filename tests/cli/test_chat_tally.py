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
    assert tally.text(seconds=5) == "", "nothing was said"
    tally.take(NOTE, [edit()], 0.0)
    tally.take(NOTE, [edit(), edit(is_error=True)], 0.05)
    for _ in range(12):
        tally.take(END, [], 0.07)
    assert tally.text(seconds=425) == "12 turns · 7 min · $0.07 · calc.py +2 −2"
    tally.take(END, [], None)
    assert tally.text(seconds=12) == "13 turns · 12 s · calc.py +2 −2", "a price is not known"


def test_the_cost_is_that_of_this_chat_in_all_its_conversations() -> None:
    tally = ChatTally("")
    tally.open(0.50)
    tally.take(END, [], 0.53)
    tally.open(0.0)
    tally.take(END, [], 0.01)
    assert tally.text(seconds=1) == "2 turns · 1 s · $0.04"


def test_many_files_are_counted() -> None:
    tally = ChatTally("")
    for number in range(6):
        args = {"path": f"{number}.py", "content": "a\nb\n"}
        new = card("write", f"wrote {number}.py", args=args, data={"diff": "--- x\n+++ x\n"})
        tally.take(END, [new], 0.0)
    said = tally.text(seconds=1)
    assert said == "6 turns · 1 s · 0.py +2 −0 · 1.py +2 −0 · 2.py +2 −0 · 3 files more"
