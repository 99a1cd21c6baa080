"""What a fan-out teaches: the choice and the lessons of the others, in the decision graph."""

from __future__ import annotations

import logging

from weft.decisions.facts import TurnEvidence
from weft.decisions.writers import fan_decision
from weft.errors import WeftError
from weft.ids import SessionId
from weft.runtime.decisions.decision_book import logged_commit
from weft.runtime.decisions.project_books import project_book
from weft.runtime.fan.fan_host import FanHost
from weft.runtime.fan.fan_record import CandidateRecord, FanRecord

logger = logging.getLogger(__name__)


def title_of(record: FanRecord, candidate: CandidateRecord) -> str:
    """How the graph calls a candidate."""
    end = candidate.ended
    task = " ".join(record.started.prompt.split())[:80]
    files = ", ".join(end.files[:3]) if end is not None else ""
    by = f" by {candidate.model}" if candidate.model else ""
    return f"{task}: candidate {candidate.index}{by}" + (f" ({files})" if files else "")


def why_not(record: FanRecord, candidate: CandidateRecord) -> str:
    """Why a candidate was not kept, from what the log shows."""
    end = candidate.ended
    if end is None:
        return "it did not come to an end"
    said: list[str] = []
    if not candidate.has_finished:
        said.append(f"it ended with {end.finish_reason}")
    if candidate.verdict in ("failed", "flaky"):
        said.append(f"`{record.started.verify}` {candidate.verdict}")
    if end.touches_checks:
        said.append("it changed tests or what configures them")
    said.append(f"+{end.added} −{end.removed} in {len(end.files)} files")
    if end.text:
        said.append(f"it said: {' '.join(end.text.split())[:300]}")
    return "; ".join(said)


async def note_choice(host: FanHost, session_id: SessionId, record: FanRecord, index: int) -> None:
    """Put down which candidate was kept, and what is known against each of the others.

    It is a help, and no reason to fail: what was kept is kept.
    """
    if not host.services.config.get("decisions.enabled"):
        return
    kept, others = record.candidates[index], record.candidates
    try:
        state = await host.registry.state_of(session_id)
        store = await host.registry.store_of(session_id)
        services = host.services
        about = state.about
        book = project_book(services, store, about.project_key, about.project_path)
        graph = await book.refresh()
        node = record.kept[-1].node if record.kept else None
        logged = fan_decision(
            graph,
            title_of(record, kept),
            {
                title_of(record, each): why_not(record, each)
                for number, each in others.items()
                if number != index
            },
            TurnEvidence(session_id=session_id, node=node),
            seed=f"{record.fan_id}/{index}/{len(record.kept)}",
            checks=_checks(record),
            scope=kept.ended.files[:20] if kept.ended is not None else (),
            at=services.clock.now(),
        )
        commit = logged_commit(
            state.about.project_key,
            logged.facts,
            ids=logged.ids,
            summary=logged.node.title,
            node=node,
        )
        await host.registry.agents.host_of(session_id).append(lambda state: commit)
        await book.refresh_after_append()
    except (WeftError, ValueError):
        logger.exception("the choice could not be noted", extra={"fan": record.fan_id})


def _checks(record: FanRecord) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for candidate in record.candidates.values():
        runs = [run for run in candidate.verified if run.on == "candidate"]
        if runs and runs[-1].exit_code is not None:
            found[title_of(record, candidate)] = (record.started.verify, runs[-1].exit_code)
    return found
