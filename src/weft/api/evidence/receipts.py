"""Receipts of a turn: its answer, the runs of the line up to it and of its agents, and the files as
they are now.

Computed, never stored: the log has the runs with their exit codes and trees, and the disk the rest.
Only the last messages of a line are read, so that the cost does not grow with the session.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from typing import Final

import msgspec

from weft.api.handle import SessionBase
from weft.context import LineEntry
from weft.errors import SessionNotFound, WeftError
from weft.evidence import Receipt, claims_in, judged_claims, may_claim, runs_of
from weft.evidence.command_runs import EvidenceRuns, MessageCalls
from weft.ids import NodeId
from weft.messages import Text
from weft.runtime.snapshots.project_snapshots import ProjectFiles, ProjectSnapshots
from weft.session import SessionPort, load_state
from weft.session.log.stored_line import load_nodes
from weft.state import SessionState
from weft.store import Store
from weft.workspace.disk_threads import DiskThreads

logger = logging.getLogger(__name__)
LOOKED_BACK: Final = 400
"""Messages of a line that are looked at, those before the answer."""
MOST_AGENTS: Final = 20


async def session_receipts(
    session: SessionBase, node: NodeId | None, state: SessionState
) -> tuple[Receipt, ...]:
    """What is on record for each claim of the answer at `node`, or of the last one before it."""
    host = session._host
    async with host.registry.reading(session.id) as store:
        files = host.services.workspaces.file_history(state.about.project_path, store)
        return await _turn_receipts(state, node, store, files)


async def reply_receipts(session: SessionBase, port: SessionPort) -> tuple[Receipt, ...]:
    """The same for an answer that has just come; none where the record cannot be read: the answer
    itself is not lost for that.
    """
    try:
        return await session_receipts(session, port.state.tree.head, port.state)
    except (OSError, WeftError):
        logger.warning("the claims of an answer were not looked up", exc_info=True)
        return ()


async def _turn_receipts(
    state: SessionState, node: NodeId | None, store: Store, files: ProjectFiles
) -> tuple[Receipt, ...]:
    line = list(islice(state.tree.ancestors(node), LOOKED_BACK))
    answer = await _answer(state, line, store)
    if answer is None or not may_claim(answer):
        return ()
    claims = claims_in(answer)
    if all(claim.kind == "other" for claim in claims):
        return judged_claims(claims, EvidenceRuns(), None)
    entries = await load_nodes(state.tree, reversed(line), store)
    agents = [entry for child in await _agents(state, store) for entry in child]
    runs = msgspec.structs.replace(
        runs_of(map(_calls_of, (*entries, *agents)), state.about.project_path.rstrip("/")),
        turn_began=_turn_began(entries),
        files_changed=max((each.at for each in state.files.touched.values()), default=0.0),
        last_tree=state.files.tree or "",
    )
    return judged_claims(claims, runs, await _tree_now(state, store, files))


async def _answer(state: SessionState, line: list[NodeId], store: Store) -> str | None:
    """The text of the last message of the model, None where the turn has none."""
    for node in line:
        role = state.tree.nodes[node].role
        if role == "assistant":
            [entry] = await load_nodes(state.tree, [node], store)
            return "\n".join(part.text for part in entry.node.parts if isinstance(part, Text))
        if role == "user":
            return None
    return None


async def _agents(state: SessionState, store: Store) -> list[list[LineEntry]]:
    """The messages of the agents, who work on the same files."""
    found: list[list[LineEntry]] = []
    for child in list(state.children.known)[-MOST_AGENTS:]:
        with suppress(SessionNotFound):
            own = await load_state(child, store)
            line = list(islice(own.tree.ancestors(own.tree.head), LOOKED_BACK))
            found.append(await load_nodes(own.tree, reversed(line), store))
    return found


def _calls_of(entry: LineEntry) -> MessageCalls:
    return entry.node, entry.results, _times(entry)


def _times(entry: LineEntry) -> Mapping[str, float]:
    return {uid: at or entry.at for uid, at in entry.result_times.items()}


def _turn_began(entries: list[LineEntry]) -> float:
    return next((entry.at for entry in reversed(entries) if entry.node.role == "user"), 0.0)


async def _tree_now(state: SessionState, store: Store, files: ProjectFiles) -> str | None:
    """The hash of the files as they are; None where they cannot be looked at."""
    if files.unknown:
        return None
    threads = DiskThreads.of(state.about.project_path)
    snapshots = ProjectSnapshots(files, threads, store, lambda paths: set())
    try:
        return (await snapshots.tree()).digest
    except OSError:
        return None
