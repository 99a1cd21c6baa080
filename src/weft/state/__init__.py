"""Folds: queue, ledger, settings, todos, files, the open turn, and all of them together with the tree.

Pure: facts in, state out.  Nothing here waits, reads a clock or touches a disk.
"""

from weft.state.about import About
from weft.state.background import Background, BackgroundCommand
from weft.state.boundaries import Boundary, Bounds
from weft.state.children import Child, Children
from weft.state.files import Files, TouchedFile
from weft.state.inputs import Inputs
from weft.state.ledger import Ledger, Row
from weft.state.plan import DoneStep, PlanState, StepState
from weft.state.queue import Entry, Queue, combine_queue_entries_to_text
from weft.state.session import FOLD_VERSION, SessionState, fold, restore, snapshot
from weft.state.settings import Settings
from weft.state.todos import Todos
from weft.state.turn import Answered, ModelCall, OpenTurn, Request, Turn

__all__ = [
    "FOLD_VERSION",
    "About",
    "Answered",
    "Background",
    "BackgroundCommand",
    "Boundary",
    "Bounds",
    "Child",
    "Children",
    "DoneStep",
    "Entry",
    "Files",
    "Inputs",
    "Ledger",
    "ModelCall",
    "OpenTurn",
    "PlanState",
    "Queue",
    "Request",
    "Row",
    "SessionState",
    "Settings",
    "StepState",
    "Todos",
    "TouchedFile",
    "Turn",
    "combine_queue_entries_to_text",
    "fold",
    "restore",
    "snapshot",
]
