"""A snapshot is dropped when the fold that made it is not the fold of today.

Only `FOLD_VERSION` can tell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from weft.events import decode
from weft.ids import SessionId
from weft.state import FOLD_VERSION, SessionState, snapshot

GOLDEN = Path(__file__).parent.parent / "golden"


SESSION = SessionId("ses_golden")


def states() -> Iterator[SessionState]:
    """What the golden lines come to, as facts of one session, after each of them.

    One state, changed in place.
    """
    state = SessionState(session_id=SESSION)
    for line in (GOLDEN / "facts" / "v1.jsonl").read_bytes().splitlines():
        state.apply(msgspec.structs.replace(decode(line), session_id=SESSION))
        yield state


def fingerprint() -> str:
    """Changes when any of these states does."""
    seen = hashlib.sha256()
    for state in states():
        seen.update(snapshot(state))
    return seen.hexdigest()


def test_a_fold_that_gives_another_state_has_another_version() -> None:
    kept = msgspec.json.decode((GOLDEN / "fold.json").read_bytes())
    now = {"fold_version": FOLD_VERSION, "sha256": fingerprint()}
    assert now == kept or now["fold_version"] != kept["fold_version"], (
        "the golden facts fold to another state.  If facts were added: write "
        f"{now} to tests/golden/fold.json.  If a fold was changed: raise FOLD_VERSION "
        "first, or old snapshots are taken for new ones"
    )
    assert now == kept, f"write this to tests/golden/fold.json: {now}"


def test_every_fold_has_something_to_say_of_the_golden_facts() -> None:
    """A fold that stays empty would not be held by the test above."""
    fresh = SessionState(session_id=SESSION)
    silent = set(SessionState.__struct_fields__) - {"session_id"}
    for state in states():
        silent -= {name for name in silent if getattr(state, name) != getattr(fresh, name)}
    assert silent == set()
