"""The contract of a store as tests: make a subclass that says how to open yours, and let pytest
collect it.

    class TestMyStore(StoreContract):
        async def open(self, place: Path) -> Store:
            return await open_my_store(place / "data")

    pytestmark = pytest.mark.anyio

`open` is called again with the same `place` where a test needs a second process, or the same data
after a restart; each call returns a store of its own, on the same data.  This module needs pytest's
`tmp_path` and nothing else of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import anyio
import msgspec

from weft.errors import (
    Conflict,
    Corrupt,
    Fenced,
    OutcomeUnknown,
    Owned,
    StoreError,
    StoreOutage,
    StoreUnavailable,
    TooNew,
    UsageError,
    WeftError,
)
from weft.events import NewMessage, encode
from weft.ids import BlobId, NodeId, SessionId
from weft.messages import DraftPart, Node, Text
from weft.sha256 import sha256
from weft.store import (
    READER_VERSION,
    Append,
    Blob,
    DraftCall,
    DraftChunk,
    Lease,
    Record,
    SearchText,
    SessionRow,
    Snapshot,
    Store,
    append_once,
)
from weft.testing.scripted_store import AppendFault, ScriptedStore

A = SessionId("ses_aaaa")
B = SessionId("ses_bbbb")
C = SessionId("ses_cccc")
PROJECT = "project:p1"
FEW_SECONDS = 10.0


class StoreContract:
    """What every store must do.  Each test's name is the claim."""

    async def open(self, place: Path) -> Store:
        """Open the store at `place`."""
        raise NotImplementedError

    async def abandon(self, store: Store) -> None:
        """Let the process that opened `store` be dead for all others, with nothing given back.

        The store itself can still be used, as by a process that only seemed dead.  Where liveness
        is by time, this is where the time passes.  Tests of dead owners are left out without it.
        """
        raise NotImplementedError

    @property
    def can_abandon(self) -> bool:
        """Whether `abandon` was written."""
        return type(self).abandon is not StoreContract.abandon

    @contextlib.asynccontextmanager
    async def opened(self, place: Path) -> AsyncIterator[Store]:
        """An open store, closed at the end, within a time that no healthy one needs."""
        with anyio.fail_after(FEW_SECONDS * 3):
            store = await self.open(place)
            try:
                yield store
            finally:
                await store.aclose()

    # -- append and read

    async def test_what_was_appended_is_read_back_in_order(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            await store.append(facts(lease, 0, "one", "two"))
            await store.append(facts(lease, 2, "three"))
            read = await store.read(A)
            assert [(r.seq, r.body) for r in read] == [(1, b"one"), (2, b"two"), (3, b"three")]
            assert read[0] == Record(1, 101.5, "said", b"one")
            assert await store.last_seq(A) == 3

    async def test_bytes_come_back_as_they_were(self, tmp_path: Path) -> None:
        # Bodies are bytes to a store: what is no JSON, holds line ends or has blanks must come back
        # as it was.
        odd = [
            b"",
            b"\x00\xff\xfe",
            "ü\u2028\u0085\n\r\n".encode(),
            b'{"a": "\\u0000"}',
            b' {"a":\t1} ',
            b"x" * 70_000,
        ]
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            records = tuple(Record(n, 0.25, "k\n\u2028", body) for n, body in enumerate(odd, 1))
            await store.append(Append(stream=A, expected_seq=0, records=records, fence=lease.fence))
            assert await store.read(A) == list(records)
        async with self.opened(tmp_path) as store:
            assert await store.read(A) == list(records)

    async def test_reading_is_paged_by_a_cursor(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            await store.append(facts(lease, 0, *"abcdefg"))
            assert seqs(await store.read(A, after=2, limit=3)) == [3, 4, 5]
            assert seqs(await store.read(A, after=6)) == [7]
            assert await store.read(A, after=7) == []
            assert await store.read(A, after=99) == []

    async def test_an_unknown_stream_is_empty(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            assert await store.read("ses_nobody") == []
            assert await store.last_seq("ses_nobody") == 0
            assert await store.row(SessionId("ses_nobody")) is None
            assert await store.lease_of("ses_nobody") is None
            assert await store.load_drafts("ses_nobody") == []
            assert await store.load_snapshot("ses_nobody", "v") is None
            assert await store.blob(BlobId("0" * 64)) is None
            await store.delete(SessionId("ses_nobody"))

    async def test_single_records_are_read_in_the_order_asked_for(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            await store.append(facts(lease, 0, "one", "two", "three"))
            assert bodies(await store.read_at(A, [3, 1, 3])) == [b"three", b"one", b"three"]
            assert await store.read_at(A, []) == []
            with refuses(Corrupt) as refusal:
                await store.read_at(A, [1, 4])
            assert isinstance(refusal.error, Corrupt)
            assert refusal.error.seq == 4
            with refuses(Corrupt):
                await store.read_at("ses_nobody", [1])

    async def test_everything_is_still_there_after_reopening(self, tmp_path: Path) -> None:
        blob = Blob(blob_id(b"content"), b"content")
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            row = SessionRow(id=A, title="Kept", last_active=5.0, cost_usd=None)
            await store.append(
                msgspec.structs.replace(
                    facts(lease, 0, "one"), row=row, said=(said("remember me"),), blobs=(blob,)
                )
            )
            await store.save_snapshot(A, Snapshot(1, "v1", b"state"))
            store.save_draft(chunk(lease, "half an ans"))
        async with self.opened(tmp_path) as store:
            assert bodies(await store.read(A)) == [b"one"]
            assert await store.row(A) == row
            assert [hit.session_id for hit in await store.search("remember")] == [A]
            assert await store.blob(blob.id) == b"content"
            assert await store.load_snapshot(A, "v1") == Snapshot(1, "v1", b"state")
            [draft] = await store.load_drafts(A)
            assert draft.text == "half an ans"

    # -- order

    async def test_drafts_and_appends_are_done_in_the_order_they_were_handed_in(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store, anyio.create_task_group() as tasks:
            lease = await store.take_lease(A)

            async def hand_in(after: int, *ends: str) -> None:
                nodes = tuple(NodeId(node) for node in ends)
                append = msgspec.structs.replace(facts(lease, after, "x"), ends_drafts=nodes)
                tasks.start_soon(store.append, append)
                await anyio.lowlevel.checkpoint()  # so that it is called; not until it is done

            for number in range(0, 60, 3):
                store.save_draft(chunk(lease, "old", node="n1"))
                await hand_in(number, "n1")
                store.save_draft(chunk(lease, f"new {number}", node="n1"))
                await hand_in(number + 1)
                store.save_draft(chunk(lease, "short", node="n2"))
                await hand_in(number + 2, "n2")
                left = {draft.node: draft.text for draft in await store.load_drafts(A)}
                assert left == {"n1": f"new {number}"}
                store.save_draft(chunk(lease, "", node="n1", restart=True))
            assert await store.last_seq(A) == 60, "no append overtook another"

    async def test_what_was_answered_is_seen_by_what_is_asked_then(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            lease = await one.take_lease(A)
            for number in range(20):
                row = SessionRow(id=A, title=f"title{number}", turn_count=number)
                await one.append(msgspec.structs.replace(facts(lease, number, "x"), row=row))
                for store in (one, two):
                    assert await store.last_seq(A) == number + 1
                    assert await store.row(A) == row
                    assert await store.rows(query=f"title{number}") == [row]

    # -- text of any kind

    async def test_nul_and_long_words_come_back_as_they_were(self, tmp_path: Path) -> None:
        odd, long = "a\x00b\x00", "x" * 5_000
        many = " ".join(f"word{number}" for number in range(20_000))
        for place in ("first", "again"):
            async with self.opened(tmp_path) as store:
                row = SessionRow(id=A, title=odd, project_path=odd, first_prompt=odd, model=odd)
                if place == "first":
                    lease = await store.take_lease(A)
                    add = msgspec.structs.replace(
                        says(lease, 0, f"hello {odd}", f"{long} tail", many, "\u767b" * 5_000),
                        records=(Record(1, 0.5, odd, b"\x00"),),
                        row=row,
                    )
                    await store.append(add)
                    part = chunk(lease, odd, part="arguments", node=odd)
                    store.save_draft(msgspec.structs.replace(part, tool=odd))
                    await store.save_snapshot(A, Snapshot(1, odd, b"\x00"))
                assert await store.read(A) == [Record(1, 0.5, odd, b"\x00")]
                assert await store.row(A) == row
                assert await store.rows(project_path=odd) == [row]
                [draft] = await store.load_drafts(A)
                calls = (DraftCall(index=0, tool=odd, arguments=odd),)
                assert (draft.node, draft.calls) == (odd, calls)
                assert await store.load_snapshot(A, odd) == Snapshot(1, odd, b"\x00")
                for query, node in (
                    ("hello b", "n0"),
                    (long, "n1"),
                    ("tail", "n1"),
                    ("word19999", "n2"),
                    ("word1 word19998", "n2"),
                    ("\u767b" * 4_000, "n3"),
                ):
                    assert await places(store, query) == {(A, node)}, query[:20]
                assert await places(store, f"{long}x") == set()

    async def test_a_name_that_is_odd_or_long_is_refused_or_kept(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for name in ("a\x00b", "../up", "/root", ".", "x" * 1_000, "\u767b" * 200, "CON", " "):
                session = SessionId(name)
                try:
                    lease = await store.take_lease(session)
                except UsageError:
                    continue
                await store.append(
                    msgspec.structs.replace(facts(lease, 0, name), row=SessionRow(id=session))
                )
                assert bodies(await store.read(session)) == [name.encode()]
                assert name in await store.ids_with_prefix(name)
                assert await store.row(session) == SessionRow(id=session)

    async def test_half_a_surrogate_pair_is_refused_with_a_sentence(self, tmp_path: Path) -> None:
        half = "a\ud800b"
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            plain = facts(lease, 0, "x")
            for wrong in (
                {"row": SessionRow(id=A, title=half)},
                {"row": SessionRow(id=A, first_prompt=half)},
                {"said": (said(half),)},
                {"said": (SearchText(NodeId(half), "x"),)},
                {"records": (Record(1, 0.0, half, b""),)},
                {"ends_drafts": (NodeId(half),)},
                {"names_blobs": (BlobId(half),)},
            ):
                with refuses(UsageError):
                    await store.append(msgspec.structs.replace(plain, **wrong))
            with refuses(UsageError):
                await store.take_lease(half)
            with refuses(UsageError):
                await store.mark_damaged(A, half)
            with refuses(UsageError):
                await store.register_address(f"unix:/{half}")
            assert (await store.last_seq(A), await store.row(A)) == (0, None)
            assert store.owner.address == ""
            # What cannot be there is not found; it is no error to look for it.
            assert await store.ids_with_prefix(half) == []
            assert await store.rows(project_path=half) == []
            assert await store.search(half) == []
            assert await store.rows(query=half) == []

    async def test_a_draft_is_kept_whole_around_half_a_surrogate_pair(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            for text in ("be", "fo\ud83d", "\ude00re", " after"):
                store.save_draft(chunk(lease, text))
            [draft] = await store.load_drafts(A)
            assert draft.text == "befo\ufffd\ufffdre after"

    # -- what an append is refused for

    async def test_an_append_after_a_stale_end_is_refused_and_changes_nothing(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            await store.append(facts(lease, 0, "one"))
            for wrong in (0, 2):
                with refuses(Conflict) as refusal:
                    await store.append(facts(lease, wrong, "other"))
                assert isinstance(refusal.error, Conflict)
                assert (refusal.error.expected, refusal.error.actual) == (wrong, 1)
            assert bodies(await store.read(A)) == [b"one"]

    async def test_a_batch_over_several_streams_is_all_or_nothing(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            a, b = await store.take_lease(A), await store.take_lease(B)
            await store.append(facts(a, 0, "a1"), facts(b, 0, "b1"), project(0, "p1"))
            stale = facts(b, 0, "b again")
            row = SessionRow(id=A, title="never")
            blob = Blob(blob_id(b"never"), b"never")
            good = msgspec.structs.replace(
                facts(a, 1, "a2"), row=row, said=(said("never"),), blobs=(blob,)
            )
            # The refused append last and first: a store that checks as it goes would have written
            # the others.
            for batch in ((good, project(1, "p2"), stale), (stale, good, project(1, "p2"))):
                with refuses(Conflict):
                    await store.append(*batch)
            assert bodies(await store.read(A)) == [b"a1"]
            assert bodies(await store.read(B)) == [b"b1"]
            assert bodies(await store.read(PROJECT)) == [b"p1"]
            assert await store.row(A) is None
            assert await store.search("never") == []
            assert await store.blob(blob.id) is None
        async with self.opened(tmp_path) as store:
            ends = [await store.last_seq(stream) for stream in (A, B, PROJECT)]
            assert ends == [1, 1, 1]

    async def test_one_batch_may_add_twice_to_a_stream(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            await store.append(facts(lease, 0, "one"), facts(lease, 1, "two"))
            assert bodies(await store.read(A)) == [b"one", b"two"]
            with refuses(Conflict):
                await store.append(facts(lease, 2, "three"), facts(lease, 2, "again"))
            assert await store.last_seq(A) == 2

    async def test_records_must_follow_on_the_expected_end(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            gap = (Record(1, 0.0, "k", b""), Record(3, 0.0, "k", b""))
            with refuses(UsageError):
                await store.append(Append(stream=A, expected_seq=0, records=gap, fence=lease.fence))
            with refuses(UsageError):
                await store.append(
                    msgspec.structs.replace(facts(lease, 0, "x"), row=SessionRow(id=B))
                )
            assert await store.last_seq(A) == 0

    async def test_a_session_takes_no_append_without_a_lease(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            record = (Record(1, 0.0, "k", b""),)
            with refuses(Fenced):
                await store.append(Append(stream=A, expected_seq=0, records=record))
            with refuses(Fenced):
                await store.append(Append(stream=A, expected_seq=0, records=record, fence=0))
            with refuses(Fenced):
                await store.append(Append(stream=A, expected_seq=0, records=record, fence=1))
            assert await store.last_seq(A) == 0

    async def test_an_append_of_a_row_alone_changes_the_row_alone(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            await store.append(facts(lease, 0, "one"))
            renamed = SessionRow(id=A, title="Renamed")
            await store.append(
                Append(stream=A, expected_seq=1, records=(), fence=lease.fence, row=renamed)
            )
            assert await store.row(A) == renamed
            assert await store.last_seq(A) == 1

    # -- answers that are lost

    async def test_an_append_whose_answer_was_lost_is_stored_once(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            wire = ScriptedStore(store)
            lease = await store.take_lease(A)
            plans: tuple[tuple[AppendFault, ...], ...] = (
                ("stored",),
                ("unstored",),
                ("unstored", "stored"),
                ("unstored", "unstored"),
            )
            for number, plan in enumerate(plans):
                wire.faults.extend(plan)
                batch = facts(lease, number, f"a{number}"), project(number, f"p{number}")
                await append_once(wire, *batch)
                assert not wire.faults
            assert bodies(await store.read(A)) == [b"a0", b"a1", b"a2", b"a3"]
            assert bodies(await store.read(PROJECT)) == [b"p0", b"p1", b"p2", b"p3"]

    async def test_a_lost_answer_hides_no_rival(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            wire = ScriptedStore(one)
            lease = await one.take_lease(A)
            wire.faults.append("unstored")
            await two.append(project(0, "theirs"))
            with refuses(Conflict):
                await append_once(wire, project(0, "ours"))
            # Stored, and then the lease was taken over: it counts, for the new owner reads it.
            wire.faults.append("stored")
            await append_once(wire, facts(lease, 0, "one"))
            await two.take_lease(A, steal=True)
            wire.faults.append("unstored")
            with refuses(Fenced):
                await append_once(wire, facts(lease, 1, "two"))
            assert bodies(await two.read(A)) == [b"one"]

    async def test_an_answer_that_stays_lost_is_said_to_be(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            wire = ScriptedStore(store)
            lease = await store.take_lease(A)
            wire.faults.append("stored")
            for _ in range(99):
                wire.faults.append("unstored")
            await append_once(wire, facts(lease, 0, "found by reading"))
            wire.is_down = True
            with refuses(StoreOutage):
                await append_once(wire, facts(lease, 1, "x"))
            wire.is_down = False
            with refuses(OutcomeUnknown):
                await append_once(wire, facts(lease, 1, "x"))
            assert await store.last_seq(A) == 1

    async def test_a_first_try_that_lands_late_is_never_said_to_be_unwritten(
        self, tmp_path: Path
    ) -> None:
        """The repeat is refused because of it, and then the store is out of reach."""
        async with self.opened(tmp_path) as store:
            wire = ScriptedStore(store)
            lease = await store.take_lease(A)
            wire.faults.extend(["late", "down"])
            with refuses(OutcomeUnknown):
                await append_once(wire, facts(lease, 0, "one"))
            assert wire.is_down
            assert bodies(await store.read(A)) == [b"one"]

    # -- project streams

    async def test_any_process_appends_to_a_project_and_only_its_end_guards_it(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            await one.append(project(0, "p1"))
            await two.append(project(1, "p2"))
            with refuses(Conflict):
                await one.append(project(1, "late"))
            assert bodies(await one.read(PROJECT)) == [b"p1", b"p2"]
            with refuses(UsageError):
                await one.take_lease(PROJECT)

    async def test_of_many_appends_at_one_place_exactly_one_wins(self, tmp_path: Path) -> None:
        won: list[int] = []
        async with self.opened(tmp_path) as store:

            async def try_it(number: int) -> None:
                with contextlib.suppress(Conflict):
                    await store.append(project(0, f"from {number}"))
                    won.append(number)

            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(try_it, number)
            assert len(won) == 1
            assert bodies(await store.read(PROJECT)) == [f"from {won[0]}".encode()]

    # -- leases

    async def test_a_lease_is_refused_while_a_living_store_has_it(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            await one.register_address("unix:/run/one.sock")
            await one.take_lease(A)
            with refuses(Owned) as refusal:
                await two.take_lease(A)
            assert isinstance(refusal.error, Owned)
            assert refusal.error.pid == one.owner.pid
            assert refusal.error.host == one.owner.host
            assert refusal.error.address == "unix:/run/one.sock"
            assert refusal.error.since > 0
            seen = await two.lease_of(A)
            assert seen is not None
            assert seen.owner == one.owner
            assert one.owner.process_id != two.owner.process_id

    async def test_an_owner_says_where_it_is_reached_and_whether_it_takes_more_sessions(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            await one.take_lease(A)
            published = (("unix:/run/a b.sock", True), ("https://host:1/x", True))
            # Draining: it is still driven, and given no other session.
            draining = (("unix:/run/a b.sock", False), ("", False), ("", True))
            for address, accepting in (*published, *draining):
                await one.register_address(address, accepting=accepting)
                seen = await two.lease_of(A)
                assert seen is not None
                assert (seen.owner.address, seen.owner.accepting) == (address, accepting)
                assert seen.owner == one.owner
            for wrong in ("/run/one.sock", "unix:one.sock", "http://host", "nonsense"):
                with refuses(UsageError):
                    await one.register_address(wrong)
            assert one.owner.address == ""

    async def test_a_stolen_lease_fences_its_old_holder(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            old = await one.take_lease(A)
            await one.append(facts(old, 0, "one"))
            new = await two.take_lease(A, steal=True)
            assert new.fence > old.fence
            with refuses(Fenced) as refusal:
                await one.append(facts(old, 1, "stale"))
            assert isinstance(refusal.error, Fenced)
            assert (refusal.error.fence, refusal.error.current) == (old.fence, new.fence)
            await two.append(facts(new, 1, "two"))
            # Giving back a lease that was taken over must not end the new holder's.
            await one.release_lease(old)
            assert await two.lease_of(A) == new
            await two.append(facts(new, 2, "three"))
            assert bodies(await one.read(A)) == [b"one", b"two", b"three"]

    async def test_a_stale_lease_spoils_the_whole_batch(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            a, b = await one.take_lease(A), await one.take_lease(B)
            await two.take_lease(B, steal=True)
            with refuses(Fenced):
                await one.append(facts(a, 0, "a"), project(0, "p"), facts(b, 0, "b"))
            assert await one.last_seq(A) == 0
            assert await one.last_seq(PROJECT) == 0

    async def test_taking_a_lease_again_makes_the_first_one_stale(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            first = await store.take_lease(A)
            second = await store.take_lease(A)
            assert second.fence > first.fence
            with refuses(Fenced):
                await store.append(facts(first, 0, "x"))
            await store.append(facts(second, 0, "y"))

    async def test_a_released_lease_is_free_and_of_no_use(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            old = await one.take_lease(A)
            await one.release_lease(old)
            assert await one.lease_of(A) is None
            # The old lease must not write, although the stream is as empty as it was when it was
            # taken.
            with refuses(Fenced):
                await one.append(facts(old, 0, "x"))
            new = await two.take_lease(A)
            assert new.fence > old.fence

    async def test_closing_gives_every_lease_back_and_the_fence_still_grows(
        self, tmp_path: Path
    ) -> None:
        fences = []
        for _ in range(3):
            async with self.opened(tmp_path) as store:
                fences.append((await store.take_lease(A)).fence)
        assert fences == sorted(set(fences))

    async def test_a_lease_in_another_stream_is_no_help(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            a = await store.take_lease(A)
            wrong = facts(Lease(B, a.fence, a.owner), 0, "x")
            with refuses(Fenced):
                await store.append(wrong)

    async def test_many_leases_are_taken_in_one_go_or_none(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            held = await one.take_lease(B)
            with refuses(Owned) as refusal:
                await two.take_leases([A, B, C])
            assert isinstance(refusal.error, Owned)
            assert (refusal.error.stream, refusal.error.pid) == (B, one.owner.pid)
            with refuses(UsageError):
                await two.take_leases([A, PROJECT])
            assert [await one.lease_of(stream) for stream in (A, C)] == [None, None]
            await one.append(facts(held, 0, "still ours"))
            leases = await two.take_leases([C, A, B, A], steal=True)
            assert [lease.stream for lease in leases] == [C, A, B], "once each, in this order"
            assert [await one.lease_of(lease.stream) for lease in leases] == leases
            with refuses(Fenced):
                await one.append(facts(held, 1, "stale"))
            await two.append(*(facts(lease, int(lease.stream == B), "mine") for lease in leases))
            assert await two.take_leases([]) == []
            newer = SessionRow(id=A, min_reader=READER_VERSION + 1)
            await add_row(two, newer)
            with refuses(TooNew):
                await one.take_leases([C, A], steal=True)
            assert await one.lease_of(C) == leases[0]

    async def test_many_leases_are_given_back_in_one_go(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            leases = await one.take_leases([A, B, C])
            theirs = await two.take_lease(C, steal=True)
            await one.release_leases(leases)
            assert [await one.lease_of(stream) for stream in (A, B, C)] == [None, None, theirs]
            with refuses(Fenced):
                await one.append(facts(leases[0], 0, "given back"))

    # -- dead owners

    async def test_a_store_says_how_it_tells_the_dead_from_the_living(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            assert store.liveness in ("kernel", "time")
            # Where time takes leases away, an owner must know how much of it is left.
            left = store.lease_seconds_left()
            assert (left is None) == (store.liveness == "kernel")
            assert left is None or left > 0

    async def test_a_dead_owner_is_replaced_at_once_and_fenced(self, tmp_path: Path) -> None:
        if not self.can_abandon:
            return
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            followed = two.follow(A)
            old = await one.take_lease(A)
            await one.append(facts(old, 0, "one"))
            one.save_draft(chunk(old, "half an ans"))
            assert await one.load_drafts(A) != []
            with refuses(Owned):
                await two.take_lease(A)
            await self.abandon(one)
            assert await two.lease_of(A) is None
            new = await two.take_lease(A)
            assert new.fence > old.fence
            [draft] = await two.load_drafts(A)
            assert draft.text == "half an ans"
            # It only seemed dead: what it does now must not count, and not undo what others did.
            with refuses(Fenced):
                await one.append(facts(old, 1, "from the grave"))
            one.save_draft(chunk(old, "wer"))
            assert await one.load_drafts(A) == [draft]
            await one.release_lease(old)
            await one.aclose()
            assert await two.lease_of(A) == new
            await two.append(facts(new, 1, "two"))
            assert [(await followed.__anext__()).body for _ in range(2)] == [b"one", b"two"]

    async def test_all_sessions_of_a_dead_owner_are_taken_in_one_go(self, tmp_path: Path) -> None:
        if not self.can_abandon:
            return
        names = [SessionId(f"ses_{number}") for number in range(60)]
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            old = await one.take_leases(names)
            await one.append(*(facts(lease, 0, "one") for lease in old))
            await self.abandon(one)
            new = await two.take_leases(names)
            assert [lease.stream for lease in new] == names
            fences = zip(old, new, strict=True)
            assert all(after.fence > before.fence for before, after in fences)
            assert all(lease.owner == two.owner for lease in new)
            await two.append(*(facts(lease, 1, "two") for lease in new))

    async def test_a_session_of_a_dead_owner_can_be_deleted(self, tmp_path: Path) -> None:
        if not self.can_abandon:
            return
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            lease = await one.take_lease(A)
            await one.append(facts(lease, 0, "one"))
            with refuses(Owned):
                await two.delete(A)
            await self.abandon(one)
            await two.delete(A)
            assert await two.last_seq(A) == 0

    # -- sessions of newer programs

    async def test_a_session_of_a_newer_program_is_listed_and_not_leased(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            newer = SessionRow(id=A, min_reader=READER_VERSION + 1)
            await store.append(msgspec.structs.replace(facts(lease, 0, "x"), row=newer))
            await store.release_lease(lease)
            assert await store.rows() == [newer]
            with refuses(TooNew):
                await store.take_lease(A)
            with refuses(TooNew):
                await store.take_lease(A, steal=True)

    # -- where it is

    async def test_a_store_says_whether_it_lasts_and_where_its_processes_meet(
        self, tmp_path: Path
    ) -> None:
        here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
        async with self.opened(here) as one, self.opened(here) as two:
            assert one.is_lasting in (True, False)
            assert one.is_lasting == two.is_lasting
            assert one.is_shared == two.is_shared
            assert one.meeting_folder == two.meeting_folder
            assert one.is_shared or one.meeting_folder is None, "none is met there"
            async with self.opened(elsewhere) as other:
                folder = one.meeting_folder
                assert folder is None or folder != other.meeting_folder

    # -- follow

    async def test_a_follower_sees_what_is_there_and_what_comes(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            await store.append(facts(lease, 0, "one", "two"))
            followed = store.follow(A, after=1)
            assert (await followed.__anext__()).seq == 2
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store.append, facts(lease, 2, "three"))
                assert (await followed.__anext__()).body == b"three"
            await followed.aclose()
            assert [record async for record in followed] == []

    async def test_followers_see_each_record_once_while_two_stores_write(
        self, tmp_path: Path
    ) -> None:
        count = 120
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            seen: dict[str, list[int]] = {"one": [], "two": [], "late": []}

            async def follow(name: str, store: Store, after: int) -> None:
                followed = store.follow(PROJECT, after=after)
                async for record in followed:
                    seen[name].append(record.seq)
                    if record.seq == count:
                        break
                await followed.aclose()

            async def write(store: Store, name: str) -> None:
                while (end := await store.last_seq(PROJECT)) < count:
                    with contextlib.suppress(Conflict):
                        await store.append(project(end, name))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow, "one", one, 0)
                tasks.start_soon(follow, "two", two, 0)
                tasks.start_soon(follow, "late", two, 50)
                tasks.start_soon(write, one, "one")
                tasks.start_soon(write, two, "two")
            assert seen["one"] == seen["two"] == list(range(1, count + 1))
            assert seen["late"] == list(range(51, count + 1))

    async def test_a_follower_that_is_cancelled_and_goes_on_misses_nothing(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            followed = store.follow(A)
            with anyio.move_on_after(0.01) as scope:
                await followed.__anext__()
            assert scope.cancelled_caught
            await store.append(facts(lease, 0, "one", "two"))
            assert (await followed.__anext__()).seq == 1
            assert (await followed.__anext__()).seq == 2

    async def test_an_abandoned_follower_does_no_harm(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            await store.append(facts(lease, 0, "one", "two"))
            for _ in range(50):
                async for _record in store.follow(A):
                    break
            await store.append(facts(lease, 2, "three"))
            assert await store.last_seq(A) == 3

    async def test_closing_a_follower_wakes_the_task_that_waits_on_it(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            followed = store.follow(A)
            async with anyio.create_task_group() as tasks:

                async def drain() -> None:
                    assert [record async for record in followed] == []

                tasks.start_soon(drain)
                await anyio.wait_all_tasks_blocked()
                await followed.aclose()

    # -- rows

    async def test_sessions_are_listed_last_active_first(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await add_row(store, SessionRow(id=A, last_active=1.0))
            await add_row(store, SessionRow(id=B, last_active=3.0, project_path="/p"))
            await add_row(store, SessionRow(id=C, last_active=2.0, project_path="/p"))
            assert [row.id for row in await store.rows()] == [B, C, A]
            assert [row.id for row in await store.rows(limit=2)] == [B, C]
            assert [row.id for row in await store.rows(project_path="/p")] == [B, C]
            assert await store.rows(project_path="/P") == []
            await add_row(store, SessionRow(id=A, last_active=9.0))
            assert [row.id for row in await store.rows()] == [A, B, C]

    async def test_the_list_goes_on_behind_a_row(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for each in (A, B, C):
                await add_row(store, SessionRow(id=each, last_active=2.5, title="some words"))
            await add_row(store, SessionRow(id=SessionId("ses_old"), last_active=1.0))
            rows = await store.rows()
            for place, row in enumerate(rows):
                behind = await store.rows(after=(row.last_active, row.id))
                assert behind == rows[place + 1 :]
            [first] = await store.rows(query="some words", limit=1)
            rest = await store.rows(query="some words", after=(first.last_active, first.id))
            assert rest == rows[1:3]
            # A row that is gone, or was used meanwhile, still has its place.
            gone = SessionId("ses_gone")
            assert [row.id for row in await store.rows(after=(1.5, gone))] == ["ses_old"]

    async def test_archived_and_child_sessions_are_listed_when_asked_for(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store:
            await add_row(store, SessionRow(id=A, last_active=3.0))
            await add_row(store, SessionRow(id=B, last_active=2.0, archived=True))
            await add_row(store, SessionRow(id=C, last_active=1.0, is_child=True, parent_id=A))
            assert [row.id for row in await store.rows()] == [A]
            assert [row.id for row in await store.rows(archived=True)] == [A, B]
            assert [row.id for row in await store.rows(children=True)] == [A, C]

    async def test_waits_are_due_by_their_time_the_longest_due_first(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await add_row(store, SessionRow(id=A, wake_at=30.0))
            await add_row(store, SessionRow(id=B, wake_at=10.0))
            await add_row(store, SessionRow(id=C, last_active=99.0))
            assert await store.due(9.9) == []
            assert [row.id for row in await store.due(10.0)] == [B]
            assert [(row.id, row.wake_at) for row in await store.due(50.0)] == [
                (B, 10.0),
                (A, 30.0),
            ]
            assert [row.id for row in await store.due(50.0, limit=1)] == [B]

    async def test_what_cannot_be_woken_takes_no_place_of_what_is_due(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            archived, child, damaged = (SessionId(f"ses_not_{each}") for each in range(3))
            await add_row(store, SessionRow(id=archived, wake_at=1.0, archived=True))
            await add_row(store, SessionRow(id=child, wake_at=1.0, is_child=True, parent_id=A))
            await add_row(store, SessionRow(id=damaged, wake_at=1.0))
            await store.mark_damaged(damaged, "a hole")
            await add_row(store, SessionRow(id=A, wake_at=2.0, project_path="/other"))
            await add_row(store, SessionRow(id=B, wake_at=3.0, project_path="/p"))
            await add_row(store, SessionRow(id=C, wake_at=4.0, project_path="/p"))
            assert [row.id for row in await store.due(9.0)] == [A, B, C]
            assert [row.id for row in await store.due(9.0, limit=1)] == [A]
            of_project = await store.due(9.0, project_path="/p", limit=1)
            assert [row.id for row in of_project] == [B]
            assert await store.due(9.0, project_path="/P") == []
            # What is taken out of the archive is due again.
            await add_row(store, SessionRow(id=archived, wake_at=1.0))
            assert [row.id for row in await store.due(9.0, limit=1)] == [archived]

    async def test_a_wait_is_due_for_every_process_until_it_is_over(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await add_row(store, SessionRow(id=A, wake_at=10.0))
            await add_row(store, SessionRow(id=B, wake_at=10.0))
            await add_row(store, SessionRow(id=C, wake_at=10.0))
        async with self.opened(tmp_path) as store, self.opened(tmp_path) as other:
            assert [row.id for row in await other.due(10.0)] == [A, B, C]
            await add_row(store, SessionRow(id=A, wake_at=20.0))
            await add_row(store, SessionRow(id=B))
            await store.delete(C)
            assert await other.due(10.0) == []
            assert [row.id for row in await other.due(20.0)] == [A]
            await add_row(store, SessionRow(id=A))
            assert await store.due(99.0) == await other.due(99.0) == []

    async def test_ids_are_found_by_a_prefix_that_is_taken_literally(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            for name in ("ses_1", "ses_12", "sesx1", "100%", "100x", "ü1", "Ses_1"):
                await add_row(store, SessionRow(id=SessionId(name)))
            assert await store.ids_with_prefix("ses_1") == ["ses_1", "ses_12"]
            assert await store.ids_with_prefix("ses_") == ["ses_1", "ses_12"]
            assert await store.ids_with_prefix("100%") == ["100%"]
            assert await store.ids_with_prefix("ü") == ["ü1"]
            assert await store.ids_with_prefix("s", limit=2) == ["ses_1", "ses_12"]
            for nothing in ("%", "_", "*", "'", '"', "ses_%", "ses[_]"):
                assert await store.ids_with_prefix(nothing) == []

    async def test_a_damaged_session_is_listed_and_hides_no_other(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await add_row(store, SessionRow(id=A, title="Fine", last_active=1.0))
            await add_row(store, SessionRow(id=B, title="Broken", last_active=2.0))
            await store.mark_damaged(B, "seq 7 is no fact")
            await store.mark_damaged(C, "no row at all")
            rows = {row.id: row for row in await store.rows()}
            assert rows[B].damaged == "seq 7 is no fact"
            assert rows[B].title == "Broken"
            assert rows[C].damaged == "no row at all"
            assert rows[A].damaged == ""

    # -- search

    async def test_words_are_found_where_they_were_said(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            a, b = await store.take_lease(A), await store.take_lease(B)
            await store.append(says(a, 0, "Fix the Login-Handler, please", "auth is broken"))
            await store.append(says(b, 0, "the handler of signals"))
            assert await places(store, "handler") == {(A, "n0"), (B, "n0")}
            assert await places(store, "login handler") == {(A, "n0")}
            assert await places(store, "HANDLER the") == {(A, "n0"), (B, "n0")}
            assert await places(store, "auth login") == set()
            assert await places(store, "brok") == {(A, "n1")}
            assert await places(store, "roken") == set()
            hit = (await store.search("login"))[0]
            assert "Login-Handler" in hit.excerpt
            assert len(await store.search("the", limit=1)) == 1

    async def test_messages_are_found_by_their_ids_with_words_or_without(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store:
            for session, named in ((A, {"n_1": "hello", "n_2": ""}), (B, {"n_2": "again"})):
                lease = await store.take_lease(session)
                await store.append(messages(lease, named, at=10.0 if session == B else 0.0))
            found = await store.nodes_with_prefix("n_")
            assert [(place.node, place.session_id) for place in found[:1]] == [("n_2", B)]
            assert len(found) == 3
            assert [place.node for place in await store.nodes_with_prefix("n_1")] == ["n_1"]
            for unknown in ("n%", "n__", "N_1", "n_11"):
                assert await store.nodes_with_prefix(unknown) == []
            named_places = await store.nodes_named([NodeId("n_2"), NodeId("n_"), NodeId("n_9")])
            assert {(place.node, place.session_id) for place in named_places} == {
                ("n_2", A),
                ("n_2", B),
            }
            assert await store.nodes_named([]) == []
            assert await places(store, "hello") == {(A, NodeId("n_1"))}

    async def test_a_row_names_the_root_of_its_tree(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            await add_row(store, SessionRow(id=A, root="any id: 1"))
        async with self.opened(tmp_path) as store:
            found = await store.row(A)
            assert found is not None
            assert found.root == "any id: 1"

    async def test_a_reader_needs_no_lease_and_leaves_the_owner_alone(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as owner, self.opened(tmp_path) as reader:
            lease = await owner.take_lease(A)
            await owner.append(messages(lease, {"n_1": "hello"}))
            owner.save_draft(chunk(lease, "more"))
            assert await owner.load_drafts(A)
            assert len(await reader.read(A)) == 1
            assert [draft.text for draft in await reader.load_drafts(A)] == ["more"]
            assert await reader.nodes_named([NodeId("n_1")])
            held = await reader.lease_of(A)
            assert held is not None
            assert held.fence == lease.fence
            await owner.append(facts(lease, 1, "goes on"))

    async def test_search_knows_accents_and_scripts(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            texts = (
                "Straße nach Zürich",
                "修复登录错误",
                "naïve café",
                "привет Мир",
                "한국어 검색",
            )
            await store.append(says(lease, 0, *texts))
            for query, node in (
                ("zurich", "n0"),
                ("STRASSE", "n0"),
                ("登录", "n1"),
                ("错误", "n1"),
                ("naive CAFÉ", "n2"),
                ("мир", "n3"),
                ("한국", "n4"),
            ):
                assert await places(store, query) == {(A, node)}, query

    async def test_nothing_the_user_types_is_syntax(self, tmp_path: Path) -> None:
        hostile = (
            '"', "'", "''", '"a', "a*", "*", "(", ")", "a OR", "NOT", "NEAR(a b)", "a AND", "^a",
            "col:a", "-", "--", ";", "%", "_", "a_b", "\\", "a\\", "{", "}", "[x]", "+", "~",
            "\x00", "a\x00b", "said_words:x", "or", "and", "not", "", "   ", "\ud800", "x" * 5000,
            "w " * 500,
        )  # fmt: skip
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            await store.append(says(lease, 0, "either this or that", "a_b and 100% sure"))
            await add_row(store, SessionRow(id=B, title='the "quoted" title_of 50%'))
            for query in hostile:
                await store.search(query)
                await store.rows(query=query)
            assert await places(store, "or") == {(A, "n0")}
            assert await places(store, '"either') == {(A, "n0")}
            assert await places(store, "a_b") == {(A, "n1")}
            assert await places(store, "100%") == {(A, "n1")}
            for nothing in ('"', "*", "%", ""):
                assert await store.search(nothing) == []

    async def test_a_list_is_filtered_by_titles_and_by_what_was_said(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            row = SessionRow(id=A, title="Refactor the parser", last_active=2.0)
            await store.append(msgspec.structs.replace(says(lease, 0, "use a Pratt loop"), row=row))
            await add_row(store, SessionRow(id=B, title="Überblick über Züge", last_active=1.0))
            for query, found in (
                ("parser", [A]),
                ("pratt", [A]),
                ("parser pratt", [A]),
                ("uber zuge", [B]),
                ("parser zuge", []),
                ("  ", [A, B]),
            ):
                assert [row.id for row in await store.rows(query=query)] == found, query
            renamed = msgspec.structs.replace(row, title="Something else")
            await store.append(
                Append(stream=A, expected_seq=1, records=(), fence=lease.fence, row=renamed)
            )
            assert await store.rows(query="parser") == []

    # -- taking words out of a log

    async def test_records_are_put_in_the_place_of_others_and_nothing_else_changes(
        self, tmp_path: Path
    ) -> None:
        stream = PROJECT
        said = [Record(seq, 1.0, "said", b'"secret %d"' % seq) for seq in range(1, 6)]
        async with self.opened(tmp_path) as store:
            if getattr(type(store), "overwrite", None) is Store.overwrite:
                return  # its records never change
            for first in (0, 2):
                records = tuple(said[first : first + 2])
                await store.append(Append(stream=stream, expected_seq=first, records=records))
            await store.append(Append(stream=stream, expected_seq=4, records=(said[4],)))
            new = [Record(2, 1.0, "gone", b"{}"), Record(5, 1.0, "gone", b"[0]")]
            await store.overwrite(stream, new)
            assert await store.read(stream) == [said[0], new[0], said[2], said[3], new[1]]
            with refuses(Corrupt):
                await store.overwrite(stream, [Record(2, 1.0, "x", b"1"), Record(6, 1.0, "x", b"")])
            with refuses(UsageError):
                await store.overwrite(A, new)
            assert (await store.read(stream))[1] == new[0]
            more = Record(6, 1.0, "said", b"more")
            await store.append(Append(stream=stream, expected_seq=5, records=(more,)))
        async with self.opened(tmp_path) as store:
            assert len(await store.read(stream)) in (0, 6)  # 0: one in memory is gone

    # -- deleting

    async def test_a_deleted_session_is_gone_with_all_that_was_beside_it(
        self, tmp_path: Path
    ) -> None:
        blob = Blob(blob_id(b"mine"), b"mine")
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            add = msgspec.structs.replace(
                says(lease, 0, "words of mine"), row=SessionRow(id=A), blobs=(blob,)
            )
            await store.append(add)
            await store.save_snapshot(A, Snapshot(1, "v", b"s"))
            store.save_draft(chunk(lease, "draft"))
            await store.delete(A)
            assert await store.read(A) == []
            assert await store.last_seq(A) == 0
            assert await store.row(A) is None
            assert await store.rows() == []
            assert await store.search("words") == []
            assert await store.load_snapshot(A, "v") is None
            assert await store.load_drafts(A) == []
            assert await store.blob(blob.id) is None
            assert await store.sweep_blobs() == 0
            with refuses(Fenced):
                await store.append(facts(lease, 0, "from the grave"))
            again = await store.take_lease(A)
            assert again.fence > lease.fence
            await store.append(facts(again, 0, "a new life"))

    async def test_a_session_that_a_living_process_owns_is_not_deleted(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            lease = await one.take_lease(A)
            await one.append(facts(lease, 0, "one"))
            with refuses(Owned):
                await two.delete(A)
            assert await two.last_seq(A) == 1

    async def test_a_log_that_forks_name_is_only_hidden(self, tmp_path: Path) -> None:
        blob = Blob(blob_id(b"shared"), b"shared")
        # In both orders: the middle of a chain of forks may be deleted before its root or after it.
        for number, order in enumerate(((A, B), (B, A))):
            place = tmp_path / str(number)
            async with self.opened(place) as store:
                await _fork_twice(store, blob)
                for session in order:
                    await store.delete(session)
                    assert await store.row(session) is None
                    assert bodies(await store.read(A)) == bodies(await store.read(B)) == [b"f0"]
                    assert bodies(await store.read_at(A, [1])) == [b"f0"]
                    assert await store.sweep_blobs() == 0
                assert await store.ids_with_prefix("ses_") == [C]
                assert {hit.session_id for hit in await store.search("am")} == {C}
                await store.mark_damaged(A, "does not bring it back")
                assert [row.id for row in await store.rows()] == [C]
            async with self.opened(place) as store:
                assert bodies(await store.read(A)) == [b"f0"]
                assert await store.row(A) is None
                await store.delete(C)
                ends = [await store.last_seq(session) for session in (A, B, C)]
                assert ends == [0, 0, 0], "the last fork takes the hidden ones with it"
                assert await store.blob(blob.id) is None

    # -- blobs

    async def test_a_blob_is_kept_once_and_gone_when_no_stream_names_it(
        self, tmp_path: Path
    ) -> None:
        blob, other = Blob(blob_id(b"same"), b"same"), Blob(blob_id(b"other"), b"other")
        async with self.opened(tmp_path) as store:
            a, b = await store.take_lease(A), await store.take_lease(B)
            await store.append(msgspec.structs.replace(facts(a, 0, "x"), blobs=(blob, other, blob)))
            await store.append(msgspec.structs.replace(facts(b, 0, "y"), blobs=(blob,)))
            assert await store.sweep_blobs() == 0
            await store.delete(A)
            assert await store.blob(other.id) is None
            assert await store.blob(blob.id) == b"same"
            await store.delete(B)
            assert await store.blob(blob.id) is None
            assert await store.sweep_blobs() == 0

    async def test_a_stream_can_name_a_blob_that_another_one_stored(self, tmp_path: Path) -> None:
        blob = Blob(blob_id(b"same"), b"same")
        async with self.opened(tmp_path) as store:
            a, b = await store.take_lease(A), await store.take_lease(B)
            await store.append(msgspec.structs.replace(facts(a, 0, "x"), blobs=(blob,)))
            await store.append(msgspec.structs.replace(facts(b, 0, "y"), names_blobs=(blob.id,)))
            await store.delete(A)
            assert await store.sweep_blobs() == 0
            assert await store.blob(blob.id) == b"same"
            missing = BlobId("f" * 64)
            with refuses(UsageError):
                await store.append(
                    msgspec.structs.replace(facts(b, 1, "z"), names_blobs=(missing,))
                )
            assert await store.last_seq(B) == 1

    async def test_a_blob_that_is_named_while_it_is_swept_is_there_or_refused(
        self, tmp_path: Path
    ) -> None:
        named: list[bool] = []
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            for number in range(12):
                first, second = SessionId(f"ses_{number}a"), SessionId(f"ses_{number}b")
                data = f"content {number}".encode()
                lease = await one.take_lease(first)
                blob = Blob(blob_id(data), data)
                await one.append(msgspec.structs.replace(facts(lease, 0, "x"), blobs=(blob,)))
                await one.release_lease(lease)
                names = msgspec.structs.replace(
                    facts(await two.take_lease(second), 0, "y"), names_blobs=(blob.id,)
                )

                async def name_it(append: Append = names) -> None:
                    with contextlib.suppress(UsageError):
                        await two.append(append)

                async with anyio.create_task_group() as tasks:
                    steps = (name_it, one.sweep_blobs)
                    for step in steps if number % 2 else reversed(steps):
                        tasks.start_soon(step)
                    tasks.start_soon(one.delete, first)
                is_named = await two.last_seq(second) == 1
                assert (await two.blob(blob.id) is not None) == is_named
                named.append(is_named)
            assert any(named)

    async def test_the_sessions_that_refer_to_a_blob_are_named(self, tmp_path: Path) -> None:
        both, past = Blob(blob_id(b"both"), b"both"), Blob(blob_id(b"past"), b"past")
        async with self.opened(tmp_path) as store:
            for session_id, blobs in ((A, (both,)), (B, (both, past))):
                lease = await store.take_lease(session_id)
                added = msgspec.structs.replace(
                    facts(lease, 0, "x"),
                    row=SessionRow(id=session_id),
                    blobs=blobs,
                    history=frozenset((past.id,)),
                )
                await store.append(added)
            assert {A, B} <= set(await store.sessions_with(both.id))
            assert B in await store.sessions_with(past.id)
            await store.delete(A)
            assert A not in await store.sessions_with(both.id)

    async def test_which_blobs_are_missing_is_told_without_their_content(
        self, tmp_path: Path
    ) -> None:
        blobs = [Blob(blob_id(data), data) for data in (b"one", b"", b"three")]
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            await store.append(
                msgspec.structs.replace(facts(lease, 0, "x"), blobs=tuple(blobs[:2]))
            )
            asked = [blob.id for blob in blobs]
            assert await store.missing_blobs(asked) == {blobs[2].id}
            assert await store.missing_blobs([]) == set()
            many = [blob_id(str(number).encode()) for number in range(40_000)]
            assert await store.missing_blobs([*many, blobs[0].id]) == set(many)

    async def test_the_oldest_file_history_of_a_project_goes_first_and_nothing_else_goes(
        self, tmp_path: Path
    ) -> None:
        contents = [bytes([65 + number]) * 100 for number in range(6)]
        blobs = [Blob(blob_id(data), data) for data in contents]
        mine, other = SessionRow(id=A, project_path="/p"), SessionRow(id=B, project_path="/q")

        async def kept(store: Store) -> list[bool]:
            return [await store.blob(blob.id) is not None for blob in blobs]

        async with self.opened(tmp_path) as store:
            if getattr(type(store), "trim_history", None) is Store.trim_history:
                return  # it keeps everything
            a, b = await store.take_lease(A), await store.take_lease(B)
            for number, blob in enumerate(blobs[:5]):
                add = msgspec.structs.replace(facts(a, number, "x"), blobs=(blob,), row=mine)
                # The second one is a message's as well, the fifth one is nothing else.
                history = (blob.id,) if number < 4 else ()
                await store.append(msgspec.structs.replace(add, history=history))
            await store.append(
                msgspec.structs.replace(facts(a, 5, "x"), names_blobs=(blobs[1].id,))
            )
            add = msgspec.structs.replace(facts(b, 0, "y"), blobs=(blobs[5],), row=other)
            await store.append(msgspec.structs.replace(add, history=(blobs[5].id,)))
            assert await store.sweep_blobs() == 0, "history is a name as well"
            assert await store.trim_history("/p", 1_000) == 0
            assert await store.trim_history("/p", 200) == 100
            assert await kept(store) == [False, True, True, True, True, True]
            assert await store.trim_history("/p", 0) == 200
            assert await kept(store) == [False, True, False, False, True, True]
            assert await store.trim_history("/p", 0) == 0
            await store.delete(B)
            assert await kept(store) == [False, True, False, False, True, False]

    async def test_files_in_trees_are_kept_once_for_all_sessions_that_have_them(
        self, tmp_path: Path
    ) -> None:
        one, two = tree_of("1"), tree_of("2")
        rows = [SessionRow(id=session, project_path="/p") for session in (A, B)]

        async def missing(store: Store) -> list[set[BlobId]]:
            return [await store.missing_blobs([blob.id for blob in each]) for each in (one, two)]

        async with self.opened(tmp_path) as store:
            a, b = await store.take_lease(A), await store.take_lease(B)
            await store.append(with_tree(facts(a, 0, "x"), one, rows[0]))
            named = [blob.id for blob in (*one, *two)]
            assert await store.missing_blobs(named, project_path="/p") == {two[1].id, two[2].id}
            # The second session has the same files: it names the tree and brings nothing.
            again = msgspec.structs.replace(facts(b, 0, "y"), trees=(one[2].id,), row=rows[1])
            await store.append(again)
            await store.append(with_tree(facts(b, 1, "y"), two, None))
            assert await store.sweep_blobs() == 0
            await store.delete(A)
            assert await missing(store) == [set(), set()]
            await store.delete(B)
            assert await missing(store) == [{blob.id for blob in each} for each in (one, two)]

    async def test_the_files_of_the_newest_tree_outlive_newer_history(self, tmp_path: Path) -> None:
        shared, new, tree = tree_of("1")
        others = [Blob(blob_id(data), data) for data in (b"A" * 100, b"B" * 100)]
        row = SessionRow(id=A, project_path="/p")

        async def kept(store: Store) -> list[bool]:
            return [await store.blob(b.id) is not None for b in (shared, new, tree, *others)]

        async with self.opened(tmp_path) as store:
            if getattr(type(store), "trim_history", None) is Store.trim_history:
                return  # it keeps everything
            lease = await store.take_lease(A)
            await store.append(with_tree(facts(lease, 0, "x"), (shared, new, tree), row))
            for number, blob in enumerate(others, 1):
                add = msgspec.structs.replace(facts(lease, number, "x"), blobs=(blob,))
                await store.append(msgspec.structs.replace(add, history=(blob.id,)))
            size = len(shared.data) + len(new.data)
            assert await store.trim_history("/p", size + 200, tree.id) == 0
            assert await store.trim_history("/p", size + 100, tree.id) == 100
            assert await kept(store) == [True, True, True, False, True]
            # Where it alone has no room, age decides.
            assert await store.trim_history("/p", size - 1, tree.id) == size
            assert await kept(store) == [False, False, True, False, True]

    # -- drafts and snapshots

    async def test_a_draft_grows_by_chunks_and_goes_with_its_node(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            store.save_draft(chunk(lease, "Hello, "))
            store.save_draft(chunk(lease, "hmm", part="thinking"))
            store.save_draft(chunk(lease, "wörld"))
            [draft] = await store.load_drafts(A)
            assert (draft.node, draft.text, draft.thinking) == ("n1", "Hello, wörld", "hmm")
            keep = facts(lease, 0, "an unrelated fact")
            await store.append(keep)
            assert await store.load_drafts(A) == [draft]
            await store.append(msgspec.structs.replace(facts(lease, 1, "n"), drop_draft=True))
            assert await store.load_drafts(A) == []

    async def test_a_refused_append_keeps_the_draft(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            store.save_draft(chunk(lease, "text"))
            with refuses(Conflict):
                await store.append(msgspec.structs.replace(facts(lease, 5, "n"), drop_draft=True))
            assert len(await store.load_drafts(A)) == 1

    async def test_drafts_of_several_nodes_grow_side_by_side_and_end_one_by_one(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            for text in ("one ", "two ", "three"):
                for node in ("n1", "n2", "n3"):
                    store.save_draft(chunk(lease, f"{node} {text}", node=node))
            store.save_draft(chunk(lease, "", node="n2", restart=True))
            store.save_draft(chunk(lease, "again", node="n2"))
            drafts = {draft.node: draft.text for draft in await store.load_drafts(A)}
            whole = {node: f"{node} one {node} two {node} three" for node in ("n1", "n3")}
            assert drafts == {**whole, "n2": "again"}
            ends = msgspec.structs.replace(facts(lease, 0, "n"), ends_drafts=(NodeId("n1"),))
            await store.append(ends)
            assert {draft.node for draft in await store.load_drafts(A)} == {"n2", "n3"}
            with refuses(Conflict):
                await store.append(msgspec.structs.replace(ends, ends_drafts=(NodeId("n3"),)))
            ends = msgspec.structs.replace(
                facts(lease, 1, "n"), ends_drafts=(NodeId("n2"), NodeId("n3"), NodeId("n9"))
            )
            await store.append(ends)
            assert await store.load_drafts(A) == []
            store.save_draft(chunk(lease, "once more"))
            assert [draft.text for draft in await store.load_drafts(A)] == ["once more"]

    async def test_a_draft_has_the_arguments_of_each_call(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            words = [(0, "write", '{"pa'), (1, "a:b", "{"), (0, "write", 'th":1}'), (1, "a:b", "}")]
            for index, tool, text in words:
                part = chunk(lease, text, part="arguments")
                store.save_draft(msgspec.structs.replace(part, index=index, tool=tool))
            store.save_draft(chunk(lease, "so"))
            [draft] = await store.load_drafts(A)
            assert draft.text == "so"
            assert draft.calls == (
                DraftCall(index=0, tool="write", arguments='{"path":1}'),
                DraftCall(index=1, tool="a:b", arguments="{}"),
            )

    async def test_a_draft_that_begins_again_keeps_nothing_of_the_first_try(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            store.save_draft(chunk(lease, "first try"))
            store.save_draft(chunk(lease, "hmm", part="thinking"))
            store.save_draft(chunk(lease, "", restart=True))
            assert await store.load_drafts(A) == []
            store.save_draft(chunk(lease, "second"))
            store.save_draft(chunk(lease, " try"))
            [draft] = await store.load_drafts(A)
            assert (draft.text, draft.thinking) == ("second try", "")

    async def test_a_draft_under_an_old_fence_is_dropped(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as two:
            old = await one.take_lease(A)
            new = await two.take_lease(A, steal=True)
            one.save_draft(chunk(old, "stale"))
            assert await one.load_drafts(A) == []
            two.save_draft(chunk(new, "fresh"))
            [draft] = await two.load_drafts(A)
            assert draft.text == "fresh"

    async def test_only_the_newest_snapshot_of_the_right_version_is_given(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as store:
            lease = await store.take_lease(A)
            await store.append(facts(lease, 0, "one", "two", "three"))
            await store.save_snapshot(A, Snapshot(2, "v1", b"two"))
            await store.save_snapshot(A, Snapshot(1, "v1", b"one"))
            assert await store.load_snapshot(A, "v1") == Snapshot(2, "v1", b"two")
            assert await store.load_snapshot(A, "v2") is None
            await store.save_snapshot(A, Snapshot(1, "v2", b"other"))
            assert await store.load_snapshot(A, "v2") == Snapshot(1, "v2", b"other")
            assert await store.load_snapshot(A, "v1") is None
            await store.save_snapshot(A, Snapshot(99, "v2", b"beyond the end"))
            assert await store.load_snapshot(A, "v2") == Snapshot(1, "v2", b"other")

    # -- cancelling and closing

    async def test_a_cancelled_append_is_there_whole_or_not_at_all(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:
            a, b = await store.take_lease(A), await store.take_lease(B)
            for _ in range(20):
                end = await store.last_seq(A)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(store.append, facts(a, end, "x", "y"), facts(b, end, "x", "y"))
                    await anyio.lowlevel.checkpoint()
                    tasks.cancel_scope.cancel()
                await store.load_drafts(A)  # behind the append in the writer's queue
                ends = await store.last_seq(A), await store.last_seq(B)
                assert ends in {(end, end), (end + 2, end + 2)}
            assert seqs(await store.read(A)) == list(range(1, await store.last_seq(A) + 1))

    async def test_many_tasks_append_at_once_and_nothing_is_lost(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path) as store:

            async def run(session: SessionId) -> None:
                lease = await store.take_lease(session)
                for n in range(20):
                    await store.append(facts(lease, n, f"{session} {n}"))

            names = [SessionId(f"ses_{n}") for n in range(20)]
            async with anyio.create_task_group() as tasks:
                for name in names:
                    tasks.start_soon(run, name)
            for name in names:
                assert bodies(await store.read(name)) == [f"{name} {n}".encode() for n in range(20)]

    async def test_a_closed_store_says_so(self, tmp_path: Path) -> None:
        store = await self.open(tmp_path)
        lease = await store.take_lease(A)
        followed = store.follow(A)
        await store.aclose()
        # Closing twice is allowed: clean-up code runs on several paths.
        await store.aclose()
        store.save_draft(chunk(lease, "too late"))
        with refuses(StoreUnavailable):
            await store.append(facts(lease, 0, "x"))
        with refuses(StoreUnavailable):
            await store.read(A)
        with refuses(StoreUnavailable):
            await store.take_lease(A)
        with refuses(StoreError):
            await followed.__anext__()

    async def test_closing_goes_on_by_itself_when_its_wait_is_cancelled(
        self, tmp_path: Path
    ) -> None:
        store = await self.open(tmp_path)
        lease = await store.take_lease(A)
        await store.append(facts(lease, 0, "one"))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.aclose()
        async with self.opened(tmp_path) as again:
            # The close goes on in the writer's thread; its end shows in the lease.
            while await again.lease_of(A) is not None:
                await anyio.lowlevel.checkpoint()
            assert (await again.take_lease(A)).fence > lease.fence

    async def test_what_was_handed_in_before_closing_is_kept(self, tmp_path: Path) -> None:
        store = await self.open(tmp_path)
        lease = await store.take_lease(A)
        store.save_draft(chunk(lease, "the last words"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.append, facts(lease, 0, "one"))
            await anyio.lowlevel.checkpoint()
            await store.aclose()
        async with self.opened(tmp_path) as again:
            assert await again.last_seq(A) == 1
            [draft] = await again.load_drafts(A)
            assert draft.text == "the last words"


# -- what the tests are made of


class CaughtRefusal:
    """What `refuses` caught."""

    error: WeftError | None = None


@contextlib.contextmanager
def refuses(kind: type[WeftError]) -> Iterator[CaughtRefusal]:
    """The block must raise `kind`."""
    refusal = CaughtRefusal()
    try:
        yield refusal
    except kind as error:
        refusal.error = error
    assert refusal.error is not None, f"expected {kind.__name__}, and nothing was refused"
    assert str(refusal.error), "a refusal has a message"


def facts(lease: Lease, after: int, *texts: str) -> Append:
    """An append of one small record for each text, under `lease`."""
    return Append(
        stream=lease.stream,
        expected_seq=after,
        records=_records(after, texts),
        fence=lease.fence,
    )


def project(after: int, *texts: str) -> Append:
    """An append to the project's stream."""
    return Append(stream=PROJECT, expected_seq=after, records=_records(after, texts))


def says(lease: Lease, after: int, *texts: str) -> Append:
    """One record, and words that were said with it at the nodes n0, n1, …"""
    words = tuple(SearchText(NodeId(f"n{number}"), text) for number, text in enumerate(texts))
    return msgspec.structs.replace(facts(lease, after, "f0"), said=words)


def messages(lease: Lease, texts: Mapping[str, str], *, at: float = 0.0) -> Append:
    """An append of one message for each id, with its words."""
    records = tuple(
        Record(
            seq,
            at + seq,
            "new_message",
            encode(
                NewMessage(
                    node=Node(id=NodeId(node), role="user", parts=(Text(text=text),)),
                    session_id=SessionId(lease.stream),
                    seq=seq,
                    at=at + seq,
                )
            ),
        )
        for seq, (node, text) in enumerate(texts.items(), 1)
    )
    return Append(
        stream=lease.stream,
        expected_seq=0,
        records=records,
        fence=lease.fence,
        row=SessionRow(id=SessionId(lease.stream), last_seq=len(records)),
        said=tuple(SearchText(NodeId(node), text) for node, text in texts.items()),
    )


def said(text: str) -> SearchText:
    """Words said at some node."""
    return SearchText(NodeId("n1"), text)


def chunk(
    lease: Lease, text: str, *, part: DraftPart = "text", node: str = "n1", restart: bool = False
) -> DraftChunk:
    """More text in flight."""
    return DraftChunk(
        stream=lease.stream,
        fence=lease.fence,
        node=NodeId(node),
        part=part,
        chunk=text,
        restart=restart,
    )


def tree_of(name: str) -> tuple[Blob, Blob, Blob]:
    """Two contents and the listing that names them; the first content is in every tree."""
    contents = [Blob(blob_id(data), data) for data in (b"shared" * 10, name.encode() * 50)]
    entries = [["a", 0o100644, contents[0].id], ["b", 0o100644, contents[1].id]]
    data = msgspec.json.encode(entries)
    return contents[0], contents[1], Blob(blob_id(data), data)


def with_tree(append: Append, tree: tuple[Blob, Blob, Blob], row: SessionRow | None) -> Append:
    """The append with a snapshot of files."""
    return msgspec.structs.replace(
        append,
        blobs=tree,
        trees=(tree[2].id,),
        tree_listings=(tree[2].id,),
        tree_contents=(tree[0].id, tree[1].id),
        row=row,
    )


def blob_id(data: bytes) -> BlobId:
    """The name of a content."""
    return BlobId(sha256(data).hexdigest())


def seqs(records: list[Record]) -> list[int]:
    """Their numbers."""
    return [record.seq for record in records]


def bodies(records: list[Record]) -> list[bytes]:
    """Their bytes."""
    return [record.body for record in records]


async def _fork_twice(store: Store, blob: Blob) -> None:
    """B is forked from A, and C from B; a blob belongs to A."""
    for session, parent in ((A, None), (B, A), (C, B)):
        lease = await store.take_lease(session)
        row = SessionRow(id=session, parent_id=parent)
        add = msgspec.structs.replace(says(lease, 0, f"I am {session}"), row=row)
        blobs = (blob,) if session == A else ()
        await store.append(msgspec.structs.replace(add, blobs=blobs))
        await store.release_lease(lease)


async def add_row(store: Store, row: SessionRow) -> None:
    """Give a session this row, whatever it had."""
    lease = await store.take_lease(row.id)
    end = await store.last_seq(row.id)
    await store.append(
        Append(stream=row.id, expected_seq=end, records=(), fence=lease.fence, row=row)
    )
    await store.release_lease(lease)


async def places(store: Store, query: str) -> set[tuple[SessionId, NodeId]]:
    """Where a search finds something."""
    return {(hit.session_id, hit.node) for hit in await store.search(query)}


def _records(after: int, texts: tuple[str, ...]) -> tuple[Record, ...]:
    return tuple(
        Record(number, 100.5 + number, "said", text.encode())
        for number, text in enumerate(texts, after + 1)
    )
