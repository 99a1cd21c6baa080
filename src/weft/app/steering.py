"""The session as one steers its model: section *Steering the model* of the API."""

from __future__ import annotations

import os
from typing import Any

import msgspec

from weft.app.asking import Answer
from weft.app.awaiting import until_free
from weft.app.handle import Handle
from weft.app.port import Port
from weft.app.reports import CompactionReport
from weft.app.skills import Skill
from weft.app.summaries import branch_summary, handover
from weft.errors import SessionBusy, SessionError, SessionStopped, UsageError
from weft.events import Compacted, ErrorRaised, Purpose, SessionRestarted, SessionStatus
from weft.ids import NodeId
from weft.loop import Limits, refusal
from weft.messages import Usage
from weft.session import (
    AddNote,
    ClearBoundary,
    Command,
    Compact,
    RecordUsage,
    SetBoundary,
    SetMode,
    SwitchSkill,
    UndoCompaction,
)
from weft.state import Boundary, SessionState

THINKING_LEVELS = ("off", "low", "medium", "high", "max")


class Steering(Handle):
    """Which model works, how, within what, and with what in mind."""

    async def update_model(self, model: Any, *, input_id: str | None = None) -> None:
        """Use another model from the next call on; history stays."""
        await self._set("model", self._host.normal_model(model), input_id)

    set_model = update_model

    async def set_thinking_level(self, level: str, *, input_id: str | None = None) -> None:
        """How hard the model thinks: off, low, medium, high or max."""
        await self._set("thinking", level, input_id)

    async def set_mode(self, mode: str, *, input_id: str | None = None) -> None:
        """Work as `normal` or as `architect` (a strong model plans, a fast one carries out) from the next turn on."""
        await self._call(SetMode(mode=mode, **self._by(input_id)))

    async def get_mode(self) -> str:
        """`normal` or `architect`."""
        return (await self._port()).state.settings.mode

    async def set_permission_mode(self, mode: str, *, input_id: str | None = None) -> None:
        """plan, default, accept_edits, auto or bypass."""
        await self._set("permission_mode", mode, input_id)

    async def cycle_model(self) -> str:
        """Go on with the next model of the configured rotation; returns its name.

        Raises:
            UsageError: no rotation is configured.
        """
        rotation = self._host.rotation()
        if not rotation:
            raise UsageError("no rotation is configured; set model.rotation to a list of models")
        settings = (await self._port()).state.settings
        present = [settings.model, f"{settings.model}:{settings.thinking}"]
        place = next((i for i, each in enumerate(rotation) if each in present), -1)
        name, thinking = _split_thinking(rotation[(place + 1) % len(rotation)])
        await self.update_model(name)
        if thinking:
            await self.set_thinking_level(thinking)
        return self._host.normal_model(name)

    async def cycle_thinking_level(self) -> str:
        """Think one level harder, and after the hardest not at all; returns the level."""
        level = (await self._port()).state.settings.thinking
        place = THINKING_LEVELS.index(level) if level in THINKING_LEVELS else -1
        chosen = THINKING_LEVELS[(place + 1) % len(THINKING_LEVELS)]
        await self.set_thinking_level(chosen)
        return chosen

    async def summarize(self) -> tuple[str, str]:
        """Write a handover document for a later session; returns its text and where it is kept."""
        port = await self._port()
        line = await port.line()
        if not line:
            raise UsageError("there is nothing to summarise: the session is empty")
        self._check_budget(port.state)
        answer = await handover(line, port.state, self._host.model(port.state.settings.model))
        await self._record(answer, "summary")
        return answer.text, await self._host.keep_handover(self.id, answer.text)

    async def summarize_branch(self, node: str) -> str:
        """Bring what was learned on the line that ends at `node` to the present one, where the model sees it."""
        port = await self._port()
        state = port.state
        state.tree.require(NodeId(node))
        shared = set(state.tree.line(state.tree.head))
        left = [entry for entry in await port.line(NodeId(node)) if entry.node.id not in shared]
        if not left:
            raise UsageError("that message is on the present line; there is nothing to bring over")
        self._check_budget(state)
        answer = await branch_summary(left, self._host.model(state.settings.model))
        await self._record(answer, "branch")
        note = f"[What was learned on another branch of this conversation:]\n{answer.text}"
        await self._call(AddNote(text=note, to_model=True, **self._by(None)))
        return answer.text

    def _check_budget(self, state: SessionState) -> None:
        """A summary is a model call like any other.

        Raises:
            SessionError: the budget is used up, or cannot be kept.
        """
        name = state.settings.model
        is_priced = self._host.model(name).info.cost(Usage()) is not None
        limits = msgspec.convert(state.settings.get("budget") or {}, Limits)
        why = refusal(limits, state.ledger.total, model=name, is_priced=is_priced)
        if why is not None:
            raise SessionError(f"the model was not asked: {why}")

    async def _record(self, answer: Answer, purpose: Purpose) -> None:
        usage = msgspec.structs.replace(answer.usage, cost_usd=answer.cost_usd)
        await self._call(RecordUsage(usage=usage, model=answer.model, purpose=purpose))

    async def list_skills(self) -> tuple[list[Skill], list[str]]:
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
        """Hold edits of a file to a range of lines (from 0, both included), whoever of the session makes them and by whatever tool.

        The range follows: it grows and shrinks with edits inside, and shifts with what others change above it.  A `last` beyond the
        end of the file means its last line.  Setting one anew replaces it.

        Raises:
            UsageError: there is no such file in the project, or no such lines in it.
        """
        await self._call(SetBoundary(path=path, first=first, last=last, **self._by(input_id)))

    async def boundary_for(self, path: str) -> Boundary | None:
        """The lines of a file that may be edited, as they were after the last edit; None when all may."""
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
        """Tell the model the older part of the conversation as a summary from now on; the log is untouched.

        With `queue` it waits until no turn runs, and cancelling the wait gives it up.

        Raises:
            SessionBusy: a turn runs, and `queue` is False.
            SessionError: the model could not write the summary; nothing has changed.
        """
        port = await self._port()
        command = Compact(focus=focus or "", **self._by(input_id))
        after = await (self._when_idle(port, command) if queue else port.call(command))
        async with port.subscribe(after=int(after), live="status") as events:
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

    async def _when_idle(self, port: Port, command: Command) -> Any:
        """Have a command carried out as soon as no turn runs."""
        async with port.subscribe(live="status") as events:
            while True:
                try:
                    return await port.call(command)
                except SessionBusy:
                    await until_free(events)

    async def undo_compaction(self, *, input_id: str | None = None) -> None:
        """Let the newest compaction of the present line no longer count."""
        await self._call(UndoCompaction(**self._by(input_id)))


def _split_thinking(name: str) -> tuple[str, str]:
    """`provider:model:thinking` as model and thinking level; the level is empty when none is named."""
    model, _, level = name.rpartition(":")
    return (model, level) if level in THINKING_LEVELS and ":" in model else (name, "")


def _name_in(project: str, path: str) -> str:
    """How the log names a file that somebody wrote as `path`."""
    root = os.path.realpath(project)
    real = os.path.realpath(os.path.join(root, path))
    return os.path.relpath(real, root) if real.startswith(root.rstrip("/") + "/") else real
