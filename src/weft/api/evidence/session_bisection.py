"""`Session.bisect`: the turn, the call and the decision at which a check began to fail.

It reads the log and the disk, runs the check on files that it makes, and changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import anyio

from weft.api.handle import SessionBase, number_of
from weft.errors import UsageError, WeftError
from weft.evidence.bisect_words import sentence_of
from weft.evidence.bisection import BisectCheck, Bisection, BreakingDecision
from weft.ids import TurnId
from weft.state import SessionState
from weft.store import Store

logger = logging.getLogger(__name__)
MOST_DECISIONS: Final = 5
AskCopies: TypeAlias = Callable[[str], Awaitable[bool]]
"""Asks whether checks may run in copies, outside the sandbox, and is told why they would."""


class BisectRequest:
    """What is asked for."""

    def __init__(
        self,
        check: str,
        good: str | int | None,
        bad: str | int | None,
        *,
        jobs: int,
        timeout_seconds: float,
        in_copies: bool | AskCopies,
        on_check: Callable[[BisectCheck], None] | None,
    ) -> None:
        from weft.runtime.bisect.bisect_run import MOST_JOBS  # few look

        if not check.strip():
            raise UsageError(
                "a bisection needs a check: a command that ends with 0 where all is well"
            )
        if not 0 < timeout_seconds < 1e6:
            raise UsageError(
                f"a check has a time of more than 0 seconds, not {timeout_seconds!r:.40}"
            )
        self.jobs = number_of("the number of checks at once", jobs, least=1)
        if self.jobs > MOST_JOBS:
            raise UsageError(f"at most {MOST_JOBS} checks run at once, not {self.jobs}")
        for end in (good, bad):
            if end is not None and (isinstance(end, bool) or not isinstance(end, str | int)):
                raise UsageError(f"an end is the number of a turn or a message, not {end!r:.60}")
        self.check = check
        self.good = good
        self.bad = bad
        self.timeout_seconds = float(timeout_seconds)
        self.in_copies = in_copies
        self.on_check = on_check or (lambda check: None)


async def session_bisection(
    session: SessionBase, state: SessionState, asked: BisectRequest
) -> Bisection:
    """Carry it out."""
    from weft.runtime.bisect.bisect_run import BisectOptions, BisectRun
    from weft.runtime.bisect.check_ground import CheckGround

    if state.settings.get("place"):
        raise UsageError("a candidate of a fan-out has files of its own, and no states of them")
    project, services = state.about.project_path, session._host.services
    if not await anyio.Path(project).is_dir():
        raise UsageError(f"the project is not on this machine: {project}")
    async with session._host.registry.reading(session.id) as store:
        ground = CheckGround(
            services, store, project, check=asked.check, timeout_seconds=asked.timeout_seconds
        )
        if why := await ground.why_no_overlay():
            await _check_copies(asked, why)
        options = BisectOptions(
            good=asked.good, bad=asked.bad, jobs=asked.jobs, on_check=asked.on_check
        )
        run = BisectRun(ground, state, store, options)
        found = await run.run()
        good = None if found.good is None else found.good.about
        bad = None if found.bad is None else found.bad.about
        skipped = [each for each in run.states if each.why]
        decisions = await _decisions(session, state, store, found.turn_id)
    sentence = sentence_of(found.outcome, good, bad, found.calls, found.paths, run.checks, skipped)
    return Bisection(
        check=asked.check,
        outcome=found.outcome,
        sentence=sentence,
        good=good,
        bad=bad,
        calls=found.calls,
        paths=found.paths,
        decisions=decisions if found.outcome == "found" else (),
        branch_at=found.branch_at,
        checks=tuple(run.checks),
        states=run.states,
        notes=tuple(run.notes),
    )


async def _check_copies(asked: BisectRequest, why: str) -> None:
    """Refuse to run checks outside the sandbox where nobody allowed that."""
    allowed = await asked.in_copies(why) if callable(asked.in_copies) else asked.in_copies
    if not allowed:
        raise UsageError(
            f"there is no overlay for the checks here: {why}. They can run in copies of the "
            "project, outside the sandbox, where you allow that (`--yes`, `in_copies=True`)"
        )


async def _decisions(
    session: SessionBase, state: SessionState, store: Store, turn_id: TurnId | None
) -> tuple[BreakingDecision, ...]:
    """What was decided in a turn; nothing where that cannot be read."""
    from weft.api.decisions import ProjectDecisions
    from weft.decisions.relevance import of_turn

    if turn_id is None:
        return ()
    try:
        graph = await ProjectDecisions(session._host, session._host.services, store).graph()
    except (OSError, WeftError):
        logger.warning("the decisions of a turn were not looked up", exc_info=True)
        return ()
    nodes = [
        node
        for log in state.files.logs
        for node in of_turn(graph, log, turn_id)
        # What is noted of every turn by itself says nothing that the prompt does not.
        if node.kind != "option" and node.by != "auto"
    ]
    return tuple(
        BreakingDecision(id=node.id, title=node.title, reason=node.why)
        for node in nodes[:MOST_DECISIONS]
    )
