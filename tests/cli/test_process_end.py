"""The end of the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys, threading

class Held:
    def __del__(self):
        print("taken apart")

held = Held()
if "profiler" in sys.argv:
    atexit.register(print, "registered before")
from weft.cli import entry_point

def command_line():
    atexit.register(print, "registered later")
    threading.Thread(target=lambda: print("thread joined")).start()
    print("answer", end="")
    return 3

entry_point.main = command_line
entry_point.run()
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "last"),
    [([], ["registered later"]), (["profiler"], ["registered later", "registered before"])],
    ids=["alone", "with a profiler"],
)
def test_threads_and_those_who_act_at_the_end_come_first(words: list[str], last: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    first, *others = done.stdout.replace("answer", "").splitlines()
    assert first == "thread joined"
    # Only where another is registered does the interpreter take itself apart as usual.
    assert others == [*last, *(["taken apart"] if words else [])]
    assert "answer" in done.stdout
