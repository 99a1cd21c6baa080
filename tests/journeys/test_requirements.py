"""The manifest and the tests agree."""

from __future__ import annotations

import pytest

from tests.support.requirement_marks import marked_tests
from tests.support.requirements import FACTS, LIVE, REQUIREMENTS
from weft import api, events

FOR_HOSTS = {
    *("agents", "list_agents", "tree"),
    *("aclose", "available_models", "children", "command_names", "commands", "continue_and_wait"),
    *(
        "default_effort",
        "default_model",
        "expand_command",
        "keep_handover",
        "lend_tools",
        "list_commands",
    ),
    *(
        "levels_of",
        "local_port",
        "model",
        "model_named",
        "normal_model",
        "now",
        "port",
        "resolve_id",
        "rotation",
        "row",
        "running",
        "runs_command",
        "set_model",
        "stop_child",
        "store_of",
    ),
    *(
        "instructions",
        "shape",
        "skills",
        "undo_compaction",
        "undo_rewind",
        "unload_idle",
        "session_id",
        "id",
    ),
}
"""Public names that are no row: what screens and servers ask for, other spellings, and the way
back.
"""


def wrong_with_row(name: str, shown_by: list[str]) -> str:
    """What a row lacks; empty where nothing does."""
    row = REQUIREMENTS[name]
    if not row.sentence.endswith("."):
        return "it is not a sentence"
    if not row.deferred:
        return "" if shown_by else "no test shows it"
    if shown_by:
        return f"it is shown by {shown_by}: take the deferral away"
    return "" if len(row.deferred.split()) >= 3 else "the reason to wait is not one"


def test_a_row_has_a_test_or_a_reason_to_wait() -> None:
    marked = marked_tests()
    found = {name: wrong_with_row(name, marked.get(name, [])) for name in REQUIREMENTS}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_every_mark_names_a_row() -> None:
    assert sorted(set(marked_tests()) - set(REQUIREMENTS)) == []


def test_every_kind_of_event_is_a_row() -> None:
    assert sorted(FACTS) == sorted(kind.__name__ for kind in events.FACTS.values())
    assert sorted(LIVE) == sorted(kind.__name__ for kind in events.SIGNALS.values())


@pytest.mark.parametrize(
    ("prefix", "cls"), [("session", api.Session), ("manager", api.SessionManager)]
)
def test_every_public_name_is_a_row(prefix: str, cls: type) -> None:
    rows = {name.split(":")[1] for name in REQUIREMENTS if name.startswith(f"{prefix}:")}
    public = {name for name in dir(cls) if not name.startswith("_")}
    assert sorted(public - rows - FOR_HOSTS) == []
