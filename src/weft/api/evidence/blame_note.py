"""What a blame says of a line, written down for commits: trailers, and a note on the commit."""

from __future__ import annotations

from collections.abc import Sequence

from weft.decisions.sound_values import one_line
from weft.errors import FinalToolError, UsageError
from weft.evidence import Blame
from weft.runtime.blame.line_commit import write_note
from weft.runtime.session_host import SessionHost


def trailers_of(found: Blame) -> Sequence[str]:
    """The trailers for a commit of this line.

    Raises:
        UsageError: no session wrote it.
    """
    if found.turn is None:
        raise UsageError(f"{found.path}:{found.line} was written by no session: no trailers")
    # A log may come from elsewhere, and each line of a trailer counts in a commit.
    session, turn = one_line(found.turn.session_id), one_line(found.turn.turn_id)
    return [f"Weft-Session: {session}", f"Weft-Turn: {turn}"]


def noted_commit(found: Blame) -> str:
    """The commit that a note would be written on.

    Raises:
        UsageError: there is none.
    """
    trailers_of(found)
    if found.commit is None:
        raise UsageError(f"{found.path}:{found.line} is in no commit yet: nothing to put a note on")
    return found.commit.commit


async def note_blame(host: SessionHost, found: Blame) -> None:
    """Write the trailers as a note on the commit of the line, below `refs/notes/weft`.

    Raises:
        UsageError: no session wrote it, it is in no commit, or git cannot write the note.
    """
    commit, text = noted_commit(found), "\n".join(trailers_of(found))
    services = host.services
    runner, project = services.workspaces.runner, services.project_path
    try:
        await write_note(runner, services.places, project, commit, text)
    except FinalToolError as error:
        raise UsageError(f"no note was written: {error}") from error
