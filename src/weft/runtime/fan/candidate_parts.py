"""What a candidate's session reaches the machine through: the view that it works in, or nothing.

A session that was made for an overlay never works on the project itself.  Opened without its view
(by its id, in another process), it can be read, and every tool of it is refused with what to do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Literal, NoReturn

from weft.errors import FinalToolError, UsageError
from weft.ids import BlobId, CallUid
from weft.loop import Commit
from weft.lsp import CodeQueries
from weft.runtime.turns.tool_contexts import SessionLanguages
from weft.runtime.workspaces.file_history import FileHistoryRunner, HistoryPlaces
from weft.session import FileNow
from weft.tools import FormattedContent
from weft.workspace import ChangedFile, FileState, ProcessCommand, Runner, RunResult, Workspace
from weft.workspace.paths import WorkspaceRoots

PLACE: Final = "place"
"""The setting of a session that names its overlay, `FAN/INDEX`."""


def closed_sentence(place: str) -> str:
    """What a tool of a session says whose overlay is not open."""
    fan, _, index = place.partition("/")
    return (
        f"this session is candidate {index} of {fan}, and its overlay is not open here; "
        f"`weft fan resume {fan}` goes on with it"
    )


class ClosedWorkspace(Workspace):
    """The files of a candidate whose overlay is not open: none."""

    def __init__(self, root: str, place: str) -> None:
        self._roots = WorkspaceRoots(root)
        self.root = self._roots.root
        self._sentence = closed_sentence(place)

    def _refuse(self) -> NoReturn:
        raise FinalToolError(self._sentence)

    def relative(self, path: str) -> str:
        return self._roots.shown(self._roots.place(path))

    def is_outside(self, path: str) -> bool:
        return self._roots.place(path).outside

    async def resolve(self, path: str) -> str:
        self._refuse()

    async def read(self, path: str, *, limit: int | None = None) -> FileState:
        self._refuse()

    async def peek(self, path: str, *, limit: int | None = None) -> FileState | None:
        self._refuse()

    async def vet(self, path: str, before: FileState | None, data: bytes) -> None:
        self._refuse()

    async def write(self, path: str, data: bytes, *, expected: BlobId | None) -> ChangedFile:
        self._refuse()

    async def remove(self, path: str, *, expected: BlobId) -> ChangedFile:
        self._refuse()

    async def list(self, path: str) -> list[tuple[str, Literal["file", "dir", "link", "other"]]]:
        self._refuse()


class ClosedRunner(Runner):
    """Runs nothing, for the same reason."""

    def __init__(self, inner: Callable[[], Runner], place: str) -> None:
        self._inner = inner
        self._sentence = closed_sentence(place)

    async def run(
        self, command: ProcessCommand, on_output: Callable[[str], None] | None = None
    ) -> RunResult:
        raise FinalToolError(self._sentence)

    async def is_sandboxed(self) -> bool:
        return True

    def which(self, program: str, *, not_below: str = "") -> str | None:
        return self._inner().which(program, not_below=not_below)

    def knows_changes(self, command: ProcessCommand) -> bool:
        return True


class CandidateFiles(FileHistoryRunner):
    """The file history of a candidate: its overlay is all there is, and a rewind of its session
    moves no file.
    """

    def __init__(self, project: str, runner: Runner) -> None:
        places = HistoryPlaces(quota=0, max_file=0)
        super().__init__(project, (), lambda: runner, places)

    async def look(self, path: str) -> FileNow | None:
        raise FinalToolError(_NO_REWIND)

    async def put_back(
        self, path: str, wanted: FileNow | None, *, expected: FileNow | None
    ) -> None:
        raise FinalToolError(_NO_REWIND)

    async def left_out(self) -> Mapping[str, str]:
        return {".": _NO_REWIND}

    async def interrupted(self, calls: Sequence[CallUid]) -> Commit:
        return Commit(facts=())


_NO_REWIND: Final = "the files of a candidate lie in its overlay, and no rewind changes them there"


class NoLanguages(SessionLanguages):
    """Language servers and formatters see the project and not the overlay: none is asked."""

    def after_change(self, touched: Sequence[ChangedFile], *, waits: bool) -> Awaitable[str] | None:
        return None

    @property
    def formatter(self) -> Callable[[str, bytes], Awaitable[FormattedContent]] | None:
        return None

    async def queries(self) -> CodeQueries:
        raise UsageError("language servers do not see the overlay of a candidate; use grep")
