"""What happens in a session in the very moment in which a chat comes to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from tests.support.chat_driver import driven_chat
from weft.app import App, open_app
from weft.ids import SessionId
from weft.providers.scripted import ScriptedModel
from weft.store import MemoryStore, Record
from weft.view import NoteBlock, UserBlock

pytestmark = pytest.mark.anyio


class BusyStore(MemoryStore):
    """A store in which something happens while it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def read_at(self, stream: str, seqs: Sequence[int]) -> list[Record]:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return await super().read_at(stream, seqs)


def opened(tmp_path: Path, store: BusyStore) -> App:
    (tmp_path / "project").mkdir()
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    return open_app(tmp_path / "project", store, environ=environ)


async def test_what_is_said_while_the_history_is_read_is_shown_once(tmp_path: Path) -> None:
    store = BusyStore()
    async with opened(tmp_path, store) as app:
        session = await app.sessions.start_session(model=ScriptedModel(["one"]))
        await session.send_message("first")
        await app.sessions.unload_idle(0)

        happened: list[bool] = []

        async def note() -> None:
            happened.append(True)
            await session.add_system_message("said meanwhile")

        async with driven_chat(app, "unused") as talk:
            store.meanwhile = note
            await talk.chat.switch(SessionId(session.id))
            assert happened
            await session.add_system_message("said afterwards")
            await talk.screen.noted("said afterwards")
            notes = [block.text for block in talk.screen.of(NoteBlock)]
            assert notes.count("said meanwhile") == 1
            assert [block.text for block in talk.screen.of(UserBlock)] == ["first"]
