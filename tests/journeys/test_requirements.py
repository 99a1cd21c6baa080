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


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_a_row_has_a_test_or_a_reason_to_wait(name: str) -> None:
    row = REQUIREMENTS[name]
    assert row.sentence.endswith(".")
    if row.deferred:
        assert name not in marked_tests(), (
            f"it is shown by {marked_tests()[name]}: take the deferral away"
        )
        assert len(row.deferred.split()) >= 3
    else:
        assert marked_tests().get(name), "no test shows it"


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
