"""The session as one steers its model: section *Steering the model* of the API."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec

from weft.api.handle import SessionBase
from weft.api.reports import CompactionReport
from weft.api.turn_waiter import until_free
from weft.errors import (
    OwnerLost,
    SessionBusy,
    SessionError,
    SessionStopped,
    UsageError,
    WeftError,
)
from weft.events import Compacted, ErrorRaised, Purpose, SessionRestarted, SessionStatus
from weft.ids import NodeId
from weft.loop import TurnLimits
from weft.messages import Usage
from weft.project.skills import SkillFile
from weft.session import (
    BeginCall,
    BringOver,
    ClearBoundary,
    Command,
    CompactNow,
    CycleModel,
    CycleThinking,
    RecordUsage,
    SessionPort,
    SetBoundary,
    SetMode,
    SwitchSkill,
    UndoCompaction,
    digest,
)
from weft.state import EditBoundary, SessionState

if TYPE_CHECKING:  # loaded with the first summary: they cost start-up time
    from weft.api.model_query import Answer, CountedUsage
    from weft.api.summaries import SummaryQuestion

T = TypeVar("T")

RECORD_SECONDS = 5.0
"""How long a summary that was given up may take to be counted."""


class SettingsCalls(SessionBase):
    """Which model works, how, within what, and with what in mind."""

    async def update_model(self, model: Any, *, input_id: str | None = None) -> None:
        """Use another model, and the effort that is named with it, from the next call on.

        History stays.
        """
        await self._set("model", str(self._host.model_named(model)), input_id)

    async def set_thinking_level(self, level: str, *, input_id: str | None = None) -> None:
        """How hard the model thinks: one of `weft.thinking_levels.THINKING_LEVELS`.

        A model that lacks the level thinks at the nearest that it has, and a note says so; the
        level stays set for other models.
        """
        await self._set("thinking", level, input_id)

    async def set_mode(self, mode: str, *, input_id: str | None = None) -> None:
        """Work as `normal` or as `architect` (a strong model plans, a fast one carries out) from
        the next turn on.
        """
        await self._call(SetMode(mode=mode, **self._by(input_id)))

    async def get_mode(self) -> str:
        """`normal` or `architect`."""
        return (await self._port()).state.settings.mode

    async def set_permission_mode(self, mode: str, *, input_id: str | None = None) -> None:
        """plan, default, accept_edits, auto or bypass."""
        await self._set("permission_mode", mode, input_id)

    async def cycle_model(self, *, input_id: str | None = None) -> str:
        """Go on with the next model of the configured rotation; returns its name.

        Raises:
            UsageError: no rotation is configured.
        """
        # Resolved here and sent along: the process that owns the session may be configured
        # otherwise.
        rotation = tuple(str(self._host.model_named(each)) for each in self._host.rotation())
        return await self._call(CycleModel(rotation=rotation, **self._by(input_id)))

    async def cycle_thinking_level(self, *, input_id: str | None = None) -> str:
        """Think one level harder, and after the hardest not at all; returns the level."""
        return await self._call(CycleThinking(**self._by(input_id)))

    async def summarize(self) -> tuple[str, str]:
        """Write a handover document for a later session; returns its text and where it is kept."""
        from weft.api.summaries import handover  # as above

        if (made := await self._summary_of_owner()) is not None:
            return made
        port = await self._port()
        line = await port.line()
        if not line:
            raise UsageError("there is nothing to summarise: the session is empty")
        model = self._host.model(port.state.settings.model)
        answer = await self._ask_beside(port.state, handover(line, port.state, model))
        return answer.text, await self._host.save_handover(self.id, answer.text)

    async def summarize_branch(self, node: str, *, input_id: str | None = None) -> str:
        """Bring what was learned on the line that ends at `node` to the present one, where the
        model sees it.
        """
        from weft.api.summaries import branch_summary  # as above

        if (made := await self._summary_of_owner(NodeId(node), input_id)) is not None:
            return made[0]
        port = await self._port()
        state = port.state
        wanted = BringOver(node=NodeId(node), **self._by(input_id))
        # Before the model is asked: a repeat must not pay for a second summary.
        was_done, text = state.inputs.earlier_answer(wanted.input_id, digest(wanted))
        if was_done:
            return str(text)
        state.tree.require(NodeId(node))
        shared = set(state.tree.line(state.tree.head))
        left = [entry for entry in await port.line(NodeId(node)) if entry.node.id not in shared]
        if not left:
            raise UsageError("that message is on this branch; there is nothing to bring over")
        model = self._host.model(state.settings.model)
        answer = await self._ask_beside(state, branch_summary(left, model))
        return await self._call(msgspec.structs.replace(wanted, text=answer.text))

    async def _summary_of_owner(
        self, node: NodeId | None = None, input_id: str | None = None
    ) -> tuple[str, str] | None:
        """A summary by the process that has the session; None when that is this one."""
        while not (port := await self._port()).lives_here:
            # Loaded with the first session of another process.
            from weft.runtime.ports.remote import RemotePort
            from weft.runtime.ports.socket_protocol import SummaryRequest

            assert isinstance(port, RemotePort)
            try:
                return await port.summarize(SummaryRequest(node=node, input_id=input_id))
            except OwnerLost:
                # The next one makes it, and that may be this process.
                if port.is_open:
                    raise
        return None

    async def _ask_beside(self, state: SessionState, question: SummaryQuestion) -> Answer:
        """Ask the session's model outside of a turn.

        What it used is counted whatever becomes of it.
        """
        from weft.api.model_query import CountedUsage, ask  # as above

        self._check_budget(state)
        name, purpose = state.settings.model, question.purpose
        begun = BeginCall(
            model=name,
            purpose=purpose,
            input_tokens=question.tokens,
            digest=question.digest(name),
        )
        # On record before it is made, so that what it costs is known even if this process dies.
        call = await self._call(begun)
        counted = CountedUsage()
        try:
            answer = await ask(
                question.text, model=self._host.model(name), system=question.system, counted=counted
            )
        except BaseException:
            await self._record_at_last(_used(name, purpose, call, counted))
            raise
        await self._call(_used(name, purpose, call, counted))
        return answer

    async def _record_at_last(self, used: RecordUsage) -> None:
        """Count a call that was given up.

        Where even that fails, the next to open the session counts it.
        """
        with anyio.CancelScope(shield=True), anyio.move_on_after(RECORD_SECONDS):
            try:
                await self._call(used)
            except WeftError:
                return

    def _check_budget(self, state: SessionState) -> None:
        """A summary is a model call like any other.

        Raises:
            SessionError: the budget is used up, or cannot be kept.
        """
        from weft.loop import refusal  # few sessions have a budget: start-up time

        name = state.settings.model
        is_priced = self._host.model(name).info.cost(Usage()) is not None
        limits = msgspec.convert(state.settings.get("budget") or {}, TurnLimits)
        why = refusal(limits, state.ledger.total, model=name, is_priced=is_priced)
        if why is not None:
            raise SessionError(f"the model was not asked: {why}")

    async def list_skills(self) -> tuple[list[SkillFile], list[str]]:
        """Every skill of the project, and the names of those that are switched on."""
        state = (await self._port()).state
        known = self._host.skills(state.about.project_path).found
        return list(known.values()), list(state.skills.names)

    async def activate_skill(self, name: str, *, input_id: str | None = None) -> None:
        """Put a skill into the prompt in full.

        Raises:
            UsageError: there is no such skill.
        """
        known, _ = await self.list_skills()
        if name not in [skill.name for skill in known]:
            raise UsageError(
                f"no skill {name!r}; there are {', '.join(skill.name for skill in known) or 'none'}"
            )
        await self._call(SwitchSkill(name=name, **self._by(input_id)))

    async def deactivate_skill(self, name: str, *, input_id: str | None = None) -> None:
        """Take a skill out of the prompt again."""
        _, active = await self.list_skills()
        if name not in active:
            raise UsageError(f"the skill {name!r} is not switched on")
        await self._call(SwitchSkill(name=name, active=False, **self._by(input_id)))

    async def set_boundary(
        self, path: str, first: int, last: int, *, input_id: str | None = None
    ) -> None:
        """Hold edits of a file to a range of lines (from 0, both included), for all agents and
        tools of the session.

        The range follows: it grows and shrinks with edits inside, and shifts with what others
        change above it.  A `last` beyond the end of the file means its last line.  Setting another
        one replaces it.

        Raises:
            UsageError: there is no such file in the project, or no such lines in it.
        """
        await self._call(SetBoundary(path=path, first=first, last=last, **self._by(input_id)))

    async def boundary_for(self, path: str) -> EditBoundary | None:
        """The lines of a file that may be edited, as they were after the last edit.

        None when all may.
        """
        state = (await self._port()).state
        return state.boundaries.held.get(_name_in(state.about.project_path, path))

    async def clear_boundary(self, path: str, *, input_id: str | None = None) -> None:
        """Lift the boundary of a file, if it has one."""
        await self._call(ClearBoundary(path=path, **self._by(input_id)))

    async def clear_all_boundaries(self, *, input_id: str | None = None) -> None:
        """Lift every boundary of the session."""
        await self._call(ClearBoundary(**self._by(input_id)))

    async def compact(
        self, focus: str | None = None, *, queue: bool = False, input_id: str | None = None
    ) -> CompactionReport:
        """Show the model the older part of the conversation as a summary from now on; the log is
        untouched.

        With `queue` it waits until no turn runs, and cancelling the wait gives it up.

        Raises:
            SessionBusy: a turn runs, and `queue` is False.
            SessionError: the model could not write the summary; nothing has changed.
        """
        port = await self._port()
        command = CompactNow(focus=focus or "", **self._by(input_id))
        # The command answers with the seq before the compaction, so that the subscription misses
        # nothing of it, however fast it was.
        after = await (self._when_idle(port, command) if queue else port.call(command))
        async with port.subscribe(after=after, live="status") as events:
            async for event in events:
                match event:
                    case Compacted():
                        return CompactionReport(
                            summary=event.summary,
                            upto=event.upto,
                            tokens_before=event.tokens_before,
                            tokens_after=event.tokens_after,
                        )
                    case ErrorRaised(where="compaction", message=message):
                        raise SessionError(f"the session was not compacted: {message}")
                    case SessionRestarted(reason=reason):
                        raise SessionError(f"the session was not compacted: {reason}")
                    case SessionStatus(status="error"):
                        raise SessionError(f"the session was not compacted: {port.error}")
                    case _:
                        pass
        raise SessionStopped(self.id, await port.ended())

    async def _when_idle(self, port: SessionPort, command: Command[T]) -> T:
        """Have a command carried out as soon as no turn runs."""
        # Subscribed before the first attempt: an idle status between a refusal and the subscription
        # would be missed, and the wait would not end.
        async with port.subscribe(live="status") as events:
            while True:
                try:
                    return await port.call(command)
                except SessionBusy:
                    await until_free(events)

    async def undo_compaction(self, *, input_id: str | None = None) -> None:
        """Let the newest compaction of the present line no longer count."""
        await self._call(UndoCompaction(**self._by(input_id)))


def _used(model: str, purpose: Purpose, call: NodeId, counted: CountedUsage) -> RecordUsage:
    return RecordUsage(
        usage=counted.usage,
        model=model,
        purpose=purpose,
        call=call,
        estimated=counted.is_estimated,
    )


def _name_in(project: str, path: str) -> str:
    """How the log names a file that the caller wrote as `path`."""
    root = os.path.realpath(project)
    real = os.path.realpath(os.path.join(root, path))
    return os.path.relpath(real, root) if real.startswith(root.rstrip("/") + "/") else real


async def begin_with(
    session: SettingsCalls,
    *,
    system_prompt: str = "",
    append_system_prompt: str = "",
    title: str = "",
) -> None:
    """Set what is usually given when a session is started; from the next turn on.  What is empty
    stays as it is."""
    given = {
        "system_prompt": system_prompt,
        "append_system_prompt": append_system_prompt,
        "title": title,
    }
    for name, text in given.items():
        if text.strip():
            await session._set(name, text, None)
    if title.strip():
        await session._set("auto_title", None, None)
