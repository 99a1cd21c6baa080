"""The law of the format: the export of an import equals the import but for the session's id."""

from __future__ import annotations

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.history_generator import History
from tests.support.strategies import forks, histories
from weft.events import AnyFact, SessionCreated, encode, kind_of
from weft.export import ExportDocument, gather, parse, restore, to_json, to_jsonl
from weft.ids import SessionId
from weft.store import Append, Blob, MemoryStore, Record

NEW = SessionId("ses_new")
FORMS = {"json": to_json, "jsonl": to_jsonl}


async def stored(facts: list[AnyFact], store: MemoryStore, blobs: tuple[Blob, ...] = ()) -> None:
    """Put facts into their logs."""
    for log in dict.fromkeys(fact.session_id for fact in facts):
        lease = await store.take_lease(log)
        records = tuple(
            Record(fact.seq, fact.at, kind_of(fact), encode(fact))
            for fact in facts
            if fact.session_id == log
        )
        await store.append(
            Append(stream=log, expected_seq=0, records=records, fence=lease.fence, blobs=blobs)
        )


async def imported(text: str) -> ExportDocument:
    """The export of a session that was made from this text."""
    restored = restore(parse(text.encode(), "test"), "test")
    created = SessionCreated(
        title=restored.title, model=restored.model, imported=True, at=restored.created
    )
    facts: list[AnyFact] = [
        msgspec.structs.replace(fact, session_id=NEW, seq=seq, at=fact.at or 2e9)
        for seq, fact in enumerate((created, *restored.facts), 1)
    ]
    store = MemoryStore()
    blobs = tuple(Blob(blob_id, data) for blob_id, data in restored.blobs.items())
    await stored(facts, store, blobs)
    return await gather(NEW, store)


async def there_and_back(history: History, form: str) -> tuple[ExportDocument, ExportDocument]:
    store = MemoryStore()
    await stored(history.facts, store)
    first = await gather(history.session_id, store)
    return first, await imported(FORMS[form](first))


def renamed(document: ExportDocument) -> ExportDocument:
    about = msgspec.structs.replace(document.session, id=NEW)
    return msgspec.structs.replace(document, session=about)


@pytest.mark.requirement("manager:export_session")
@pytest.mark.parametrize("form", FORMS)
@given(history=st.one_of(histories(), forks()))
def test_the_export_of_an_import_equals_the_import_but_for_the_id(
    form: str, history: History
) -> None:
    first, again = anyio.run(there_and_back, history, form)
    assert again == renamed(first)


@given(history=st.one_of(histories(), forks()))
def test_an_export_holds_every_node_result_and_mark_that_the_session_has(history: History) -> None:
    first, _ = anyio.run(there_and_back, history, "json")
    plain = history.plain
    assert {node.id: node.parent for node in first.nodes} == plain.parents
    assert {result.call_uid for node in first.nodes for result in node.results} == set(
        plain.settled
    )
    assert (first.head, {ref.name: ref.node for ref in first.refs}) == (plain.head, plain.refs)
    assert {node.id: len(node.revisions) - 1 for node in first.nodes} == plain.revisions
    marks = {
        (node.id, mark): value for node in first.nodes for mark, value in node.metadata.items()
    }
    assert marks == plain.marks
    summaries = [each for each in plain.compactions if each not in plain.clearings]
    assert len(first.compactions) == len(summaries)
    cleared = [each for each in plain.compactions if each in plain.clearings]
    assert len(first.clearings) == len(cleared)
    assert (list(first.deleted), first.todos) == (plain.deleted, plain.todos)
    assert first.left_out.get("queue", 0) == len(plain.queue)
    assert first.left_out.get("requests", 0) == len(plain.requests)
