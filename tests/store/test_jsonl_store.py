"""What only the jsonl store promises."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from weft.ids import BlobId, NodeId, SessionId
from weft.store import Append, Blob, Record, SearchText, SessionRow
from weft.store.jsonl import open_jsonl
from weft.store.jsonl.paths import file_name, stream_name
from weft.testing.store_contract import A, bodies, chunk, facts

pytestmark = pytest.mark.anyio


async def test_a_session_is_one_readable_file_with_one_line_an_append(tmp_path: Path) -> None:
    fact = b'{"kind": "prompted",  "text": "h\xc3\xa9llo", "n": 1.50}'
    async with await open_jsonl(tmp_path) as store:
        lease = await store.take_lease(A)
        await store.append(
            Append(
                stream=A,
                expected_seq=0,
                records=(Record(1, 5.5, "prompted", fact), Record(2, 5.5, "k", b"\x00")),
                fence=lease.fence,
                row=SessionRow(id=A, title="Hello"),
                said=(SearchText(NodeId("n1"), "héllo"),),
            )
        )
        await store.append(facts(lease, 2, '{"three": 3}'))
        assert (await store.read(A))[0].body == fact
    first, second = (tmp_path / "logs" / f"{A}.jsonl").read_bytes().splitlines()
    assert fact in first, "a fact stands in the file as it is"
    line = json.loads(first)
    assert line["after"] == 0
    assert line["records"][0]["fact"]["text"] == "héllo"
    assert line["records"][1]["raw"] == "AA=="
    assert line["row"]["title"] == "Hello"
    assert line["said"] == [{"node": "n1", "text": "héllo"}]
    assert json.loads(second) == {
        "after": 2,
        "records": [{"seq": 3, "at": 103.5, "kind": "said", "fact": {"three": 3}}],
    }


@pytest.mark.parametrize(
    "name", ["ses_06b3", "project:p1", "../../etc/passwd", "Ünïcode", "A.b", "%41", "con", "a b"]
)
def test_a_file_name_is_harmless_and_leads_back(name: str) -> None:
    made = file_name(name)
    assert stream_name(made) == name
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-%")


def test_names_that_differ_only_in_case_get_different_files() -> None:
    assert file_name("Ses").lower() != file_name("ses").lower()


async def test_no_other_user_may_read_the_files(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with await open_jsonl(home) as store:
        lease = await store.take_lease(A)
        store.save_draft(chunk(lease, "secret"))
        await store.append(facts(lease, 0, "secret"))
        for path in (home, *home.rglob("*")):
            expected = 0o700 if path.is_dir() else 0o600
            assert path.stat().st_mode & 0o777 == expected, path


async def test_a_draft_that_a_crash_left_beside_its_finished_node_counts_as_dropped(
    tmp_path: Path,
) -> None:
    async with await open_jsonl(tmp_path) as store:
        lease = await store.take_lease(A)
        store.save_draft(chunk(lease, "half"))
        await store.append(facts(lease, 0, "an unrelated fact"))
        file = tmp_path / "drafts" / f"{A}.jsonl"
        left = file.read_bytes()
        done = facts(lease, 1, "the node")
        await store.append(
            Append(
                stream=A, expected_seq=1, records=done.records, fence=lease.fence, drop_draft=True
            )
        )
        assert not file.exists()
        file.write_bytes(left)
        assert await store.load_drafts(A) == []
        store.save_draft(chunk(lease, "the next one"))
        [draft] = await store.load_drafts(A)
        assert draft.text == "the next one"


async def test_a_crash_may_leave_the_draft_of_one_finished_node_beside_others(
    tmp_path: Path,
) -> None:
    async with await open_jsonl(tmp_path) as store:
        lease = await store.take_lease(A)
        await store.append(facts(lease, 0, "before"))
        store.save_draft(chunk(lease, "over"))
        store.save_draft(chunk(lease, "goes on", node="n2"))
        assert len(await store.load_drafts(A)) == 2
        file = tmp_path / "drafts" / f"{A}.jsonl"
        left = file.read_bytes()
        ended = (NodeId("n1"),)
        await store.append(msgspec.structs.replace(facts(lease, 1, "x"), ends_drafts=ended))
        await store.append(facts(lease, 2, "later"))
        assert b"over" not in file.read_bytes()
        file.write_bytes(left)
        assert [draft.text for draft in await store.load_drafts(A)] == ["goes on"]
        store.save_draft(chunk(lease, "a new one"))
        assert [draft.text for draft in await store.load_drafts(A)] == ["goes on", "a new one"]


async def test_a_torn_draft_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    async with await open_jsonl(tmp_path) as store:
        lease = await store.take_lease(A)
        store.save_draft(chunk(lease, "whole "))
        store.save_draft(chunk(lease, "torn"))
        assert len(await store.load_drafts(A)) == 1
        file = tmp_path / "drafts" / f"{A}.jsonl"
        file.write_bytes(file.read_bytes()[:-5])
        [draft] = await store.load_drafts(A)
        assert draft.text == "whole "


async def test_a_list_decodes_no_fact(tmp_path: Path) -> None:
    async with await open_jsonl(tmp_path) as store:
        lease = await store.take_lease(A)
        row = SessionRow(id=A, title="Listed")
        add = facts(lease, 0, "one")
        await store.append(
            Append(stream=A, expected_seq=0, records=add.records, fence=lease.fence, row=row)
        )
    log = tmp_path / "logs" / f"{A}.jsonl"
    log.write_bytes(b"\xff" * log.stat().st_size)
    async with await open_jsonl(tmp_path) as store:
        assert await store.rows() == [row]


async def test_a_stream_that_another_store_goes_on_with_is_read_on(tmp_path: Path) -> None:
    async with await open_jsonl(tmp_path) as one, await open_jsonl(tmp_path) as two:
        lease = await one.take_lease(A)
        await one.append(facts(lease, 0, "one"))
        assert bodies(await two.read(A)) == [b"one"]
        await one.append(facts(lease, 1, "two"))
        assert bodies(await two.read(A)) == [b"one", b"two"]
        await one.delete(A)
        again = await one.take_lease(A)
        await one.append(facts(again, 0, "another life, longer than the first" * 20))
        assert bodies(await two.read(A)) == [b"another life, longer than the first" * 20]


async def test_a_name_too_long_for_a_file_is_refused(tmp_path: Path) -> None:
    async with await open_jsonl(tmp_path) as store:
        with pytest.raises(ValueError, match="too long"):
            await store.take_lease(SessionId("x" * 300))


async def test_of_contents_stored_within_one_tick_of_the_clock_the_oldest_goes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_700_000_000_000_000_000)
    contents = [f"{number:04}".encode() for number in range(40)]
    blobs = tuple(Blob(BlobId(sha256(data).hexdigest()), data) for data in contents)
    async with await open_jsonl(tmp_path) as store:
        lease = await store.take_lease(A)
        add = facts(lease, 0, "x")
        row = SessionRow(id=A, project_path="/p")
        history = tuple(blob.id for blob in blobs)
        await store.append(msgspec.structs.replace(add, blobs=blobs, history=history, row=row))
        assert await store.trim_history("/p", 4 * 15) == 4 * 25
        kept = [await store.blob(blob.id) is not None for blob in blobs]
    assert kept == [False] * 25 + [True] * 15
