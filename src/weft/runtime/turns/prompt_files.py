"""What the files of a project and of the user add to a session's prompt, read beside the event
loop.

Instructions, skills, agents and the git branch lie in dozens of files, perhaps on a slow disk.
They are read once for each turn, in a thread, before the turn begins; everything that the turn asks
of them is answered from that.  Turns that begin at the same time share one read.
"""

from __future__ import annotations

import anyio

from weft.project.skills import SkillSet
from weft.project.system_prompt import ProjectTexts, SystemPromptWriter
from weft.state import SessionState
from weft.workspace.disk_threads import DiskThreads


class _SharedRead:
    """One read of the files, for all that asked for it before it began."""

    def __init__(self) -> None:
        self.texts: ProjectTexts | None = None


class _ProjectReads:
    """The reads of one project's files, one at a time."""

    def __init__(self) -> None:
        self.ended: anyio.Event | None = None
        """Set when the read that is under way has ended; None while there is none."""
        self.next: _SharedRead | None = None
        """The one that has not begun."""
        self.users = 0


class PromptReader:
    """Reads the files for all sessions of an application.

    Many sessions that begin a turn together would each send a thread through the same dozens of
    files, and all threads would fight the event loop for the interpreter's lock.
    """

    def __init__(self, prompter: SystemPromptWriter) -> None:
        self._prompter = prompter
        self._reads: dict[tuple[str, tuple[str, ...]], _ProjectReads] = {}

    async def read(self, project: str, skills: tuple[str, ...]) -> ProjectTexts:
        """The files as they are now, or later; `skills` are those that are switched on."""
        key = (project, skills)
        reads = self._reads.setdefault(key, _ProjectReads())
        reads.users += 1
        try:
            return await self._shared(reads, project, skills)
        finally:
            reads.users -= 1
            if not reads.users:
                del self._reads[key]

    async def _shared(
        self, reads: _ProjectReads, project: str, skills: tuple[str, ...]
    ) -> ProjectTexts:
        if reads.next is None:
            reads.next = _SharedRead()
        read = reads.next
        # Left empty by one that was cancelled or failed, a read is made by the next that asked.
        while read.texts is None:
            # All wait for the same event and not for a lock, which is handed on by one at each pass
            # of the event loop: the last of many sessions would begin that many passes later.
            if reads.ended is not None:
                await reads.ended.wait()
                continue
            # None may join a read that has begun: it may have passed a file that was changed before
            # their turn, and each turn is promised the files as it finds them.
            if reads.next is read:
                reads.next = None
            read.texts = await self._one_read(reads, project, skills)
        return read.texts

    async def _one_read(
        self, reads: _ProjectReads, project: str, skills: tuple[str, ...]
    ) -> ProjectTexts:
        reads.ended = ended = anyio.Event()
        try:
            threads = DiskThreads.of(project)
            return await threads.run(lambda: self._read_now(project, skills))
        finally:
            reads.ended = None
            ended.set()

    def _read_now(self, project: str, skills: tuple[str, ...]) -> ProjectTexts:
        texts = self._prompter.texts(project)
        # Masked here too, and kept: the body of a skill can be long.
        texts.skills_text(skills)
        return texts

    def read_on_loop(self, project: str) -> ProjectTexts:
        """The same at once; blocks."""
        return self._prompter.texts(project)


class PromptFiles:
    """The files of one session."""

    def __init__(self, reader: PromptReader) -> None:
        self._reader = reader
        self._texts: ProjectTexts | None = None

    async def read(self, state: SessionState) -> None:
        """Read all of them as they are now."""
        names = tuple(state.skills.names)
        self._texts = await self._reader.read(state.about.project_path, names)

    def of(self, state: SessionState) -> ProjectTexts:
        """What they said when the turn began; read at once where none has begun yet."""
        project = state.about.project_path
        if self._texts is None or self._texts.project != project:
            self._texts = self._reader.read_on_loop(project)
        return self._texts

    def skills(self, state: SessionState) -> SkillSet:
        """The skills of the turn."""
        return self.of(state).skills
