"""Settings, todos, touched files, remembered inputs, and what a list shows."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.history_generator import A
from weft.errors import StaleInput
from weft.events import (
    BoundaryChanged,
    CallOrigin,
    CommandCause,
    ErrorRaised,
    Fact,
    FileTouched,
    ForkPoint,
    HeadMoved,
    ModeChanged,
    NewMessage,
    SessionCreated,
    SettingChanged,
    Todo,
    TodoChanged,
    TurnStarted,
    UnknownFact,
)
from weft.ids import InputId, NodeId, SessionId, TurnId
from weft.messages import Node, Role, Text
from weft.state import (
    EditBoundaries,
    InputMemory,
    InputQueue,
    OpenTurnState,
    SessionSettings,
    SessionSummary,
    TodoList,
    TouchedFiles,
    UsageLedger,
    inputs,
)
from weft.thinking_levels import THINKING_LEVELS

# --- settings


def settings_after(*facts: Fact) -> SessionSettings:
    settings = SessionSettings()
    for fact in facts:
        settings.apply(fact)
    return settings


def test_a_session_starts_with_what_it_was_created_with() -> None:
    settings = settings_after(
        SessionCreated(model="a:m", title="T", settings={"thinking": "high", "model": "old"})
    )
    assert (settings.model, settings.title, settings.thinking) == ("a:m", "T", "high")
    assert (settings.mode, settings.permission_mode) == ("normal", "default")


def test_a_setting_is_what_was_said_last_and_none_takes_it_away() -> None:
    start = SessionCreated(settings={"budget": {"usd": 1}})
    assert settings_after(start).get("budget") == {"usd": 1}
    assert settings_after(start, SettingChanged(name="budget", value=2)).get("budget") == 2
    assert settings_after(start, SettingChanged(name="budget")).get("budget", "none") == "none"
    assert settings_after(ModeChanged(mode="architect")).mode == "architect"


def test_a_permission_mode_of_a_newer_program_counts_as_default() -> None:
    newer = SettingChanged(name="permission_mode", value="godlike")
    assert settings_after(newer).permission_mode == "default"
    assert settings_after(SettingChanged(name="permission_mode", value="plan")).permission_mode == (
        "plan"
    )


words = st.sampled_from([None, *THINKING_LEVELS[1:], "ultra", 3, ["high"]])


@given(values=st.lists(words, max_size=6), created=words, data=st.data())
def test_a_session_thinks_as_it_was_told_last_wherever_the_log_is_cut(
    values: list[Any], created: Any, data: st.DataObject
) -> None:
    """Nothing, and a word that only a newer program knows, mean the vendor's default."""
    first = SessionCreated(settings={} if created is None else {"thinking": created})
    log: list[Fact] = [first, *(SettingChanged(name="thinking", value=each) for each in values)]
    cut = data.draw(st.integers(0, len(log)))
    whole, parts = settings_after(*log), settings_after(*log[:cut])
    parts = msgspec.json.decode(msgspec.json.encode(parts), type=SessionSettings)
    for fact in log[cut:]:
        parts.apply(fact)
    assert parts == whole
    last = [created, *values][-1]
    assert whole.thinking == (last if last in THINKING_LEVELS else "default")


def test_settings_never_write_into_the_fact_they_came_from() -> None:
    fact = SessionCreated(settings={"thinking": "low"})
    settings_after(fact, SettingChanged(name="thinking", value="high"))
    assert fact.settings == {"thinking": "low"}


# --- todos


def test_the_task_list_is_the_last_one_written() -> None:
    todos = TodoList()
    todos.apply(TodoChanged(items=(Todo(id="1", text="a"), Todo(id="2", text="b"))))
    todos.apply(TodoChanged(items=(Todo(id="2", text="b", status="done"),)))
    assert todos.items == (Todo(id="2", text="b", status="done"),)


# --- touched files


@pytest.mark.parametrize(
    ("actions", "shown"),
    [
        ("created", "created"),
        ("modified", "modified"),
        ("deleted", "deleted"),
        ("created modified", "created"),
        ("created deleted", "deleted"),
        ("created deleted created", "created"),
        ("created modified deleted", "deleted"),
        ("modified deleted", "deleted"),
        ("deleted created", "modified"),
        ("deleted created deleted", "deleted"),
        ("deleted created modified deleted", "deleted"),
    ],
)
def test_a_file_shows_what_all_its_changes_come_to(actions: str, shown: str) -> None:
    files = TouchedFiles()
    for action in actions.split():
        # The three actions.
        files.apply(FileTouched(path="a.py", action=action))  # type: ignore[arg-type]
    assert [each.action for each in files.newest_first()] == [shown]


def test_the_file_touched_last_is_shown_first() -> None:
    files = TouchedFiles()
    for at, path in enumerate(["a", "b", "c", "a"]):
        files.apply(FileTouched(path=path, action="modified", at=float(at)))
    assert [(each.path, each.at) for each in files.newest_first()] == [("a", 3), ("c", 2), ("b", 1)]


# --- inputs


def caused(name: str, digest: str = "d", answer: object = None) -> Fact:
    return HeadMoved(cause=CommandCause(input_id=InputId(name), digest=digest, answer=answer))


def test_a_repeated_input_gets_its_first_answer() -> None:
    remembered = InputMemory()
    remembered.apply(caused("i1", answer={"accepted": "started"}))
    assert remembered.earlier_answer(InputId("i1"), "d") == (True, {"accepted": "started"})
    assert remembered.earlier_answer(InputId("i2"), "d") == (False, None)
    assert remembered.earlier_answer(None, "d") == (False, None)


def test_an_input_id_with_other_arguments_is_refused() -> None:
    remembered = InputMemory()
    remembered.apply(caused("i1"))
    with pytest.raises(StaleInput, match="'i1'"):
        remembered.earlier_answer(InputId("i1"), "other")


def test_the_oldest_inputs_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "REMEMBERED", 3)
    remembered = InputMemory()
    for number in range(5):
        remembered.apply(caused(f"i{number}"))
    assert list(remembered.causes) == ["i2", "i3", "i4"]


# --- what a list shows


def said(text: str, role: Role = "user", at: float = 0.0) -> NewMessage:
    return NewMessage(node=Node(id=NodeId(text), role=role, parts=(Text(text=text),)), at=at)


def about_after(*facts: Fact) -> SessionSummary:
    about = SessionSummary()
    for fact in facts:
        about.apply(fact)
    return about


def test_a_list_shows_where_a_session_came_from() -> None:
    parent, fork = CallOrigin(session_id=A), ForkPoint(session_id=SessionId("s"), seq=4)
    about = about_after(
        SessionCreated(project_path="/p", project_id="prj", at=5.0, parent=parent, fork=fork)
    )
    assert (about.project_path, about.project_id, about.created) == ("/p", "prj", 5.0)
    assert (about.parent, about.fork, about.imported) == (parent, fork, False)


def test_a_list_counts_messages_and_turns_and_shows_the_first_prompt() -> None:
    about = about_after(
        said("welcome", "assistant", at=1.0),
        said("first" * 100, at=2.0),
        TurnStarted(turn_id=TurnId("t")),
        said("second", at=3.0),
        TurnStarted(turn_id=TurnId("t"), continued=True),
    )
    assert (about.message_count, about.turn_count, about.last_message) == (3, 1, 3.0)
    assert about.first_prompt == ("first" * 100)[:200]


# --- what is not theirs


@pytest.mark.parametrize(
    "part",
    [
        SessionSummary,
        TouchedFiles,
        InputMemory,
        UsageLedger,
        InputQueue,
        SessionSettings,
        TodoList,
        OpenTurnState,
    ],
)
def test_a_fold_passes_over_facts_that_are_not_its_own(part: type[SessionSummary]) -> None:
    untouched, seen = part(), part()
    seen.apply(ErrorRaised(message="m"))
    seen.apply(UnknownFact(kind="dreamt", session_id=A, seq=1, at=0.0, raw=b"{}"))
    assert seen == untouched


# --- boundaries


def bound(seq: int, first: int | None, last: int | None = None, moves: int = 0) -> Fact:
    return BoundaryChanged(session_id=A, seq=seq, path="a.py", first=first, last=last, moves=moves)


def held(*facts: Fact) -> tuple[int, int, int] | None:
    bounds = EditBoundaries()
    for fact in facts:
        bounds.apply(fact)
    found = bounds.held.get("a.py")
    return None if found is None else (found.first, found.last, found.name)


def test_a_boundary_is_set_moved_and_lifted() -> None:
    assert held(bound(1, 2, 3)) == (2, 3, 1)
    assert held(bound(1, 2, 3), bound(2, 2, 5, moves=1)) == (2, 5, 1)
    assert held(bound(1, 2, 3), bound(2, 4, 4)) == (4, 4, 2)
    assert held(bound(1, 2, 3), bound(2, None)) is None


def test_a_late_move_brings_nothing_back() -> None:
    assert held(bound(1, 2, 3), bound(2, None), bound(3, 2, 5, moves=1)) is None
    assert held(bound(1, 2, 3), bound(2, 0, 0), bound(3, 2, 5, moves=1)) == (0, 0, 2)
