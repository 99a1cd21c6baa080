"""The table of operations: complete, and of one mind with the API."""

from __future__ import annotations

import inspect
import re
from typing import Any

import msgspec
import pytest

from weft.api import Fan, ProjectDecisions, Session, SessionManager
from weft.app import App
from weft.app.index import AppIndex
from weft.app.memory import AppMemory
from weft.loom import GenerationStore, LoomSession
from weft.server import OPERATIONS
from weft.server.openapi import openapi_document
from weft.server.operation import ApiOperation, ChangeBody

CALLED = {name for operation in OPERATIONS for name in operation.calls}

CLASSES: dict[str, type] = {
    "session": Session,
    "sessions": SessionManager,
    "fan": Fan,
    "app": App,
    "app.decisions": ProjectDecisions,
    "app.index": AppIndex,
    "app.memory": AppMemory,
    "loom": LoomSession,
    "loom.store": GenerationStore,
}

HERE = "of this process alone: a callable, a handle or a file of it"
CLIENT = "where a reader stands is its own: it needs no server"
OTHER = "another operation gives the same"
LATER = "no route yet"

WITHOUT_ROUTE: dict[str, str] = {
    "app.program_mcp": "of a program that drives this process by its own channel",
    "session.session_id": HERE,
    "session.wait": "the events end with the session",
    "session.new_session": OTHER,
    "session.load_session": OTHER,
    "session.combine_queue_entries_to_text": "pure",
    "session.continue_and_wait": OTHER,
    "session.files_at": HERE,
    "session.write_files": HERE,
    "session.open_at": HERE,
    "sessions.resolve_id": OTHER,
    "sessions.unload_idle": HERE,
    "fan.id": OTHER,
    "fan.bring_lesson": LATER,
    "fan.notes": OTHER,
    "fan.open": LATER,
    "fan.release": LATER,
    "fan.restore": LATER,
    "fan.verdict": OTHER,
    "loom.apply_config_patch": LATER,
    "loom.checked_plan": OTHER,
    "loom.default_entry": OTHER,
    "loom.go": CLIENT,
    "loom.imported_tree": OTHER,
    "loom.persist_config": LATER,
    "loom.selected_child": CLIENT,
    "loom.toggle_blind": CLIENT,
    "fan.session_id": OTHER,
    "fan.prompt": OTHER,
    "fan.planned": OTHER,
    "fan.verify_command": OTHER,
    "fan.is_settled": OTHER,
    "fan.is_closed": OTHER,
    "fan.wait": "the events end when it is settled",
    "app.sessions": HERE,
    "app.host": HERE,
    "app.store": HERE,
    "app.decisions": HERE,
    "app.loom": HERE,
    "app.index": HERE,
    "app.memory": HERE,
    "app.aclose": HERE,
    "app.change_setting": OTHER,
    "app.shown_settings": OTHER,
    "app.is_trusted": OTHER,
    "app.forget_trust": OTHER,
    "app.attach_files": OTHER,
    "app.read_images": HERE,
    "app.is_sandboxed": LATER,
    "app.probe_keeper": LATER,
    "app.probe_sandbox": LATER,
    "app.language_servers": OTHER,
    "app.decisions.kinds": OTHER,
    "app.decisions.graph": OTHER,
    "app.decisions.nodes": OTHER,
    "app.decisions.edges": OTHER,
    "app.index.map_of": OTHER,
    "app.index.close": HERE,
    "app.memory.text": OTHER,
    "loom.store": HERE,
    "loom.root_id": OTHER,
    "loom.current_node_id": CLIENT,
    "loom.navigate_child": CLIENT,
    "loom.navigate_parent": CLIENT,
    "loom.select_sibling": CLIENT,
    "loom.toggle_tree_view": CLIENT,
    "loom.toggle_model_names": OTHER,
    "loom.toggle_chat_headers": CLIENT,
    "loom.toggle_hoist": CLIENT,
    "loom.next_bookmark": CLIENT,
    "loom.model_plan": OTHER,
    "loom.model": OTHER,
    "loom.max_tokens": OTHER,
    "loom.temperature": OTHER,
    "loom.n_branches": OTHER,
    "loom.show_model_names": OTHER,
    "loom.branches_per_model": OTHER,
    "loom.prompt_entries": LATER,
    "loom.begun": HERE,
    "loom.show_new": HERE,
    "loom.loom_tree": HERE,
    "loom.now": HERE,
    "sessions.aclose": HERE,
    "loom.save": OTHER,
    "loom.aclose": HERE,
    "loom.loaded": HERE,
    "loom.is_elsewhere": HERE,
    "loom.default_model": OTHER,
    "loom.model_name": OTHER,
    "loom.model_info": OTHER,
    "loom.resolve_node_id": OTHER,
    "loom.root": OTHER,
    "loom.descendant_counts": OTHER,
    "loom.nodes_by_ids": OTHER,
    "loom.checked_out_child": OTHER,
    "loom.active_node": OTHER,
    "loom.find_root_by_text": OTHER,
    "loom.save_continuations": OTHER,
    "loom.set_context": OTHER,
    "loom.select_branch": OTHER,
    "loom.tree_record": OTHER,
    "loom.import_tree": OTHER,
}
"""Calls of the API that no operation stands for, each with the reason."""

RESULTS = {"app.config.get", "app.config.set", "weft.open", "weft.query", "weft.stream", "weft.run"}


def public_calls() -> set[str]:
    """Every public name of the API's classes, as the table writes it."""
    found: set[str] = set()
    for prefix, cls in CLASSES.items():
        shown = prefix.removesuffix(".store")
        found |= {f"{shown}.{name}" for name in dir(cls) if not name.startswith("_")}
    return found


def test_every_call_of_the_api_is_an_operation_or_has_a_reason_not_to_be() -> None:
    assert sorted(public_calls() - CALLED - WITHOUT_ROUTE.keys()) == []


def test_a_reason_is_struck_off_when_the_operation_is_there() -> None:
    assert sorted(WITHOUT_ROUTE.keys() & CALLED) == []
    assert sorted(WITHOUT_ROUTE.keys() - public_calls()) == []


def test_an_operation_stands_for_calls_that_there_are() -> None:
    also = {"fan.close", "loom.export", "loom.compare"}
    assert sorted(CALLED - public_calls() - RESULTS - also) == []


def test_each_operation_has_a_name_a_path_and_a_sentence_of_its_own() -> None:
    names = [operation.name for operation in OPERATIONS]
    places = [(operation.method, operation.path) for operation in OPERATIONS]
    assert len(set(names)) == len(names)
    assert len(set(places)) == len(places)
    assert [each.name for each in OPERATIONS if not each.says.endswith(".")] == []


def session_operations() -> list[ApiOperation]:
    return [
        operation
        for operation in OPERATIONS
        if operation.calls[:1] == (f"session.{operation.name}",) and operation.run.__name__ == "run"
    ]


@pytest.mark.parametrize("operation", session_operations(), ids=lambda each: each.name)
def test_what_a_body_has_is_what_the_call_takes(operation: ApiOperation) -> None:
    """For operations that are one call of a session, made of the body's own names."""
    taken = inspect.signature(getattr(Session, operation.name)).parameters
    body = operation.body or (ChangeBody if operation.changes else None)
    names = {*(body.__struct_fields__ if body else ())}
    names |= {*(operation.query.__struct_fields__ if operation.query else ())}
    if not operation.remembers:
        names.discard("input_id")
    if "options" in taken:
        from weft.api import MessageOptions

        names -= MessageOptions.__annotations__.keys()
    assert names <= taken.keys()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_a_path_names_each_of_its_parts_once(operation: ApiOperation) -> None:
    parts = re.findall(r"\{(\w+)", operation.path)
    assert len(set(parts)) == len(parts)


def refs(schema: Any) -> set[str]:
    """All that a document refers to."""
    match schema:
        case {"$ref": str(ref)}:
            return {ref}
        case dict():
            return set().union(*map(refs, schema.values()))
        case list():
            return set().union(*map(refs, schema))
    return set()


def test_the_document_has_every_operation_and_all_that_it_refers_to() -> None:
    document = openapi_document(OPERATIONS)
    told = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    }
    assert told == {operation.name for operation in OPERATIONS}
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert refs(document) <= known
    assert msgspec.json.decode(msgspec.json.encode(document)) == document


def test_the_document_says_which_operations_are_open() -> None:
    document = openapi_document(OPERATIONS)
    is_open = {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if operation.get("security") == []
    }
    assert is_open == {"health", "pair"}
