"""What a user gives to something that runs when no user is there, and the seal on it.

A log may come from elsewhere (a copied store, another user's): what it says was given counts only
with a seal that this user's key makes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from weft.errors import UsageError
from weft.events import GoalSet, InputScheduled, UnattendedPermission
from weft.messages import File, Image, Part, Text
from weft.sha256 import sha256
from weft.state import SessionState

logger = logging.getLogger(__name__)


def seal_words(
    state: SessionState, name: str, given: UnattendedPermission, said: str
) -> tuple[str, ...]:
    """What a seal is over: session, project, id, revision, what it is given to, mode and grants."""
    project = state.about.project_id or state.about.known_path
    # Neither schedules nor waits have revisions; that of a goal is in what it says.
    return (state.session_id, project, name, "0", said, given.mode, *given.grants)


def schedule_words(scheduled: InputScheduled) -> str:
    """A digest of what is sent, and when: the same before and after long parts are stored apart."""
    about = (
        [_part_words(part) for part in scheduled.parts],
        scheduled.options,
        float(scheduled.due),
        None if scheduled.every is None else float(scheduled.every),
        scheduled.max_rounds,
        None if scheduled.ends is None else float(scheduled.ends),
    )
    return sha256(msgspec.json.encode(about, order="deterministic")).hexdigest()


def goal_words(goal: GoalSet) -> str:
    """A digest of what a goal says: another text, check or limit is another goal."""
    limits = [
        None if limit is None else float(limit)
        for limit in (goal.max_budget_usd, goal.max_seconds, goal.max_rounds)
    ]
    about = (goal.revision, goal.text, goal.check, goal.judge, limits)
    return sha256(msgspec.json.encode(about, order="deterministic")).hexdigest()


def _part_words(part: Part) -> tuple[str, ...]:
    match part:
        case Text(text=text, blob=blob):
            return "text", blob or sha256(text.encode()).hexdigest()
        case File(name=name, media_type=media_type, text=text, blob=blob):
            return "file", name, media_type, blob or sha256(text.encode()).hexdigest()
        case Image(name=name, media_type=media_type, data=data, blob=blob):
            return "image", name, media_type, blob or sha256(_bytes_of(data)).hexdigest()
        case _:
            return "other", sha256(msgspec.json.encode(part)).hexdigest()


def _bytes_of(data: str) -> bytes:
    from base64 import b64decode  # few schedules have images

    try:
        return b64decode(data)
    except ValueError:
        return data.encode()


def is_sealed_by(
    seal: Callable[[Sequence[str]], str],
    state: SessionState,
    name: str,
    given: UnattendedPermission | None,
    said: str,
) -> bool:
    """Whether the holder of the key gave this to what has the id, and says this; not so where there
    is no key to tell: the user who schedules it again is told why.
    """
    if given is None or not given.seal:
        return False
    from hmac import compare_digest  # few sessions have anything sealed

    try:
        ours = seal(seal_words(state, name, given, said))
    except UsageError:
        logger.warning("what was sealed cannot be looked at", exc_info=True)
        return False
    return compare_digest(ours.encode(), given.seal.encode())
