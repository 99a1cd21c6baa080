"""Forbidden contents: each listing is read once while a session is open, and nothing is missed."""

from __future__ import annotations

import pytest

from weft.errors import UsageError
from weft.events import WorkspaceSnapshot
from weft.ids import BlobId, SessionId
from weft.permissions import PermissionRule, PolicyDecision
from weft.runtime.snapshots.forbidden_contents import ForbiddenContents
from weft.state import SessionState
from weft.store import MemoryStore
from weft.workspace.history.project_tree import TreeEntry, listing

pytestmark = pytest.mark.anyio

FILE, FOLDER = 0o100644, 0o040000
RULES = [PermissionRule(verdict="deny", tool="read", pattern="keys/**")]


class CountingStore(MemoryStore):
    """A store that counts what is read."""

    reads = 0

    async def blob(self, blob_id: BlobId) -> bytes | None:
        self.reads += 1
        return await super().blob(blob_id)

    def folder(self, *entries: TreeEntry) -> BlobId:
        made = listing(entries)
        self.data.blobs[made.digest] = made.data
        return made.digest


def judge(path: str) -> PolicyDecision:
    return PolicyDecision("deny" if path.startswith("/p/keys/") else "allow", "a rule")


async def test_an_answer_costs_what_is_new_since_the_last() -> None:
    store, known = CountingStore(), ForbiddenContents()
    state = SessionState(session_id=SessionId("ses_a"))

    async def refuse(content: str) -> None:
        await known.refuse(BlobId(content), state, store, RULES, judge, "/p")

    keys = store.folder(TreeEntry("a", FILE, "k1"))
    src = store.folder(TreeEntry("a", FILE, "s1"))
    for number in range(2):
        top = store.folder(
            TreeEntry("keys", FOLDER, keys),
            TreeEntry("src", FOLDER, src),
            TreeEntry(f"{number}", FILE, "x"),
        )
        state.apply(WorkspaceSnapshot(tree=top, session_id=state.session_id, seq=number + 1))
        for _ in range(3):
            await refuse("s1")
            with pytest.raises(UsageError, match="'keys/a', which is not read: a rule"):
                await refuse("k1")
    assert store.reads == 4
