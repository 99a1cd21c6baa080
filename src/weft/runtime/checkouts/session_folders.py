"""Which folder a session works in on this host.

The log says by its identity in which folder the session was last.  Where that is here, it is the
one: the project itself, also on a file system that hosts share.  Where it is not, the session gets
a folder of its own, made of what was saved.  A folder that the session was in before it went
elsewhere is never written to: what its user did there meanwhile is theirs.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from weft.config import Config
from weft.errors import UsageError, WeftError
from weft.events import WorkspaceSaved
from weft.runtime.checkouts.arrived_folder import ArrivedFolder
from weft.runtime.checkouts.folder_maker import FolderMaker, MadeFolder, saved_fact, source_of
from weft.runtime.snapshots.folder_identity import identity_of
from weft.state import SessionState
from weft.store import Store
from weft.workspace import ProcessCommand, Runner

logger = logging.getLogger(__name__)

_ABOUT: Final = "made.json"
_LOCK: Final = "lock"
_NAMED: Final = 20
SETUP_SECONDS: Final = 600.0
"""How long the user's command may take to make a folder fit for work."""


class SessionFolders:
    """Finds and makes the folders of sessions below one folder of this host."""

    def __init__(self, home: Path, runner: Callable[[], Runner]) -> None:
        self._home = home
        self._runner = runner

    async def find(self, state: SessionState) -> str | None:
        """The folder that a session was last in, if that is on this host; None where it is not, and
        what was saved of it has to be brought here.
        """
        return await anyio.to_thread.run_sync(self._find, state)

    def _find(self, state: SessionState) -> str | None:
        path, last = state.about.known_path, state.files.folder
        if not last or state.files.saved is None:
            return path  # as it was before folders were known by more than their paths
        made = self._made_for(state)
        places = (path, *(each.path for each in made))
        found = next((each for each in places if identity_of(each) == last), None)
        if found is not None:
            return found
        source = source_of(state)
        fresh = (each.path for each in made if each.source == source)
        return next((each for each in fresh if identity_of(each)), None)

    def _made_for(self, state: SessionState) -> list[MadeFolder]:
        """The folders that were made here for a session, or for the one that it comes from."""
        found: list[MadeFolder] = []
        for log in dict.fromkeys((state.session_id, *state.files.logs)):
            about = (self._home / log).glob(f"*/{_ABOUT}")
            found += [made for each in about if (made := _read(each)) is not None]
        return found

    async def make(self, state: SessionState, store: Store) -> str:
        """Make a folder for a session that was elsewhere; returns its path.

        Raises:
            UsageError: what was saved of it cannot be brought here.
        """
        home = self._home / state.session_id
        try:
            # A request and the look at what dead hosts left may both want it.
            lock = await anyio.to_thread.run_sync(_locked, home)
            try:
                found = await self.find(state)
                return found or await self._make(state, store, home)
            finally:
                os.close(lock)
        except (OSError, ValueError, WeftError) as error:
            raise UsageError(
                f"the files of {state.session_id} cannot be brought to this host: {error}"
            ) from error

    async def _make(self, state: SessionState, store: Store, home: Path) -> str:
        made = await FolderMaker(state, store, self._runner(), home).make()
        await anyio.to_thread.run_sync(_note, made)
        logger.info("the files of a session were brought here", extra={"session": home.name})
        return made.path

    async def arrived(
        self, state: SessionState, here: str, store: Store, config: Config
    ) -> ArrivedFolder:
        """What is told of a folder that a session is opened in; the user's command makes a new one
        fit for work first.
        """
        identity = await anyio.to_thread.run_sync(identity_of, here)
        if not state.files.folder or identity in ("", state.files.folder):
            return ArrivedFolder(identity)
        made = await anyio.to_thread.run_sync(self.made_at, here)
        saved = await saved_fact(state, store)
        sentences = [
            f"This session goes on at another host. The project's folder is {here} now, with the "
            "files, the index and the commits that it had; paths of an earlier folder in this "
            "conversation mean the same files here.",
            _left(saved, made),
            "Commands that ran in the background have ended.",
            "" if made is None else await self._set_up(made, str(config.get("fan.setup"))),
        ]
        return ArrivedFolder(identity, " ".join(filter(None, sentences)))

    async def _set_up(self, made: MadeFolder, command: str) -> str:
        """Run the user's command in a new folder, once; returns what came of it."""
        if made.is_set_up or not command:
            return ""
        done = await self._runner().run(
            ProcessCommand(
                argv=("/bin/sh", "-c", command), cwd=made.path, timeout_seconds=SETUP_SECONDS
            )
        )
        await anyio.to_thread.run_sync(_note, msgspec.structs.replace(made, is_set_up=True))
        if done.exit_code or done.timed_out:
            return f"fan.setup (`{command}`) failed in it: {done.output.strip()[-500:]}"
        return f"fan.setup (`{command}`) has run in it."

    def made_at(self, path: str) -> MadeFolder | None:
        """What is known of a folder that was made here.  Blocks."""
        if not Path(path).is_relative_to(self._home):
            return None
        below = Path(path).relative_to(self._home).parts
        return _read(self._home.joinpath(*below[:2], _ABOUT))


def _left(saved: WorkspaceSaved | None, made: MadeFolder | None) -> str:
    """What did not come along, as a sentence."""
    named = {each.path: each.why for each in saved.left_behind} if saved is not None else {}
    named |= {each.path: each.why for each in made.left_behind} if made is not None else {}
    sentences: list[str] = []
    if named:
        listed = ", ".join(f"{path} ({why})" for path, why in list(named.items())[:_NAMED])
        more = len(named) - _NAMED + (saved.more_left_behind if saved is not None else 0)
        sentences.append(f"Left behind: {listed}{f' and {more} more' if more > 0 else ''}.")
    if saved is not None and saved.why:
        sentences.append(f"Its repository did not come along: {saved.why}.")
    return " ".join(sentences)


def _locked(home: Path) -> int:
    """A descriptor whose lock no other one has; waits for it."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _read(file: Path) -> MadeFolder | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=MadeFolder)
    except (OSError, msgspec.MsgspecError):
        return None


def _note(made: MadeFolder) -> None:
    file = Path(made.home) / _ABOUT
    new = file.with_name(f"{_ABOUT}.{os.getpid()}")
    new.write_bytes(msgspec.json.encode(made))
    new.replace(file)
