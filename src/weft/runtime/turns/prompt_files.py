"""What the files of a project and of the user add to a session's prompt, read beside the event
loop.

Instructions, skills, agents and the git branch lie in dozens of files, perhaps on a slow disk.
They are read once for each turn, in a thread, before the turn begins; everything that the turn asks
of them is answered from that.
"""

from __future__ import annotations

import anyio.to_thread

from weft.project.skills import SkillSet
from weft.project.system_prompt import ProjectTexts, SystemPromptWriter
from weft.state import SessionState


class PromptFiles:
    """The files of one session."""

    def __init__(self, prompter: SystemPromptWriter) -> None:
        self._prompter = prompter
        self._texts: ProjectTexts | None = None

    async def read(self, state: SessionState) -> None:
        """Read all of them as they are now."""
        project, names = state.about.project_path, tuple(state.skills.names)

        def read_now() -> ProjectTexts:
            texts = self._prompter.texts(project)
            # Masked here too, and kept: the body of a skill can be long.
            texts.skills_text(names)
            return texts

        self._texts = await anyio.to_thread.run_sync(read_now)

    def of(self, state: SessionState) -> ProjectTexts:
        """What they said when the turn began; read at once where none has begun yet."""
        project = state.about.project_path
        if self._texts is None or self._texts.project != project:
            self._texts = self._prompter.texts(project)
        return self._texts

    def skills(self, state: SessionState) -> SkillSet:
        """The skills of the turn."""
        return self.of(state).skills
