"""The session as one steers its model: section *Steering the model* of the API."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from weft.api.handle import SessionBase, path_of
from weft.api.reports import CompactionReport
from weft.errors import (
    UsageError,
)
from weft.messages import Content
from weft.project.skills import SkillFile
from weft.session import (
    ClearBoundary,
    CycleModel,
    CycleThinking,
    SetBoundary,
    SetMode,
    SwitchSkill,
    UndoCompaction,
)
from weft.state import EditBoundary

if TYPE_CHECKING:
    from weft.api.model_query import Answer


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

    async def set_resume(self, choice: str, *, input_id: str | None = None) -> None:
        """What happens to a turn that a crash cuts off: `ask`, `auto` (it goes on by itself, three
        times within an hour at most) or `never`.
        """
        await self._set("resume", choice, input_id)

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
        from weft.api.summaries.session_summary import (
            write_handover,  # few ask for one: start-up time
        )

        return await write_handover(self)

    async def ask_aside(self, content: Content, *, input_id: str | None = None) -> Answer:
        """Ask the model from this place in the tree, also while a turn runs: answered in text from
        what it has read so far, and in no later request.  Its cost counts.

        Raises:
            SessionError: it gave no answer, the budget is used up, or another process has the
                session.
            UsageError: the question, or the session, is empty.
        """
        from weft.api.unattended.side_question import ask_aside  # few ask

        return await ask_aside(self, content, input_id)

    async def summarize_branch(self, node: str, *, input_id: str | None = None) -> str:
        """Bring what was learned on the line that ends at `node` to the present one, where the
        model sees it.
        """
        from weft.api.summaries.session_summary import bring_over  # as above

        return await bring_over(self, node, input_id)

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

        Raises:
            UsageError: no file could be called so.
        """
        name = path_of("file", path)
        state = (await self._port()).state
        return state.boundaries.held.get(_name_in(state.about.project_path, name))

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
        from weft.api.summaries.requested_compaction import compact_session  # as above

        return await compact_session(self, focus, queue, input_id)

    async def undo_compaction(self, *, input_id: str | None = None) -> None:
        """Let the newest compaction of the present line no longer count."""
        await self._call(UndoCompaction(**self._by(input_id)))


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
