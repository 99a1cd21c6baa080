"""The list of conversations: resume one, look into it, rename or delete it."""

from __future__ import annotations

import os
import time

import msgspec

from weft.api.manager import SessionRow
from weft.cli.chat.commands.command_group import CommandChat
from weft.cli.chat.commands.turn_outline import clock_time
from weft.cli.chat.paint.text_cells import fit
from weft.cli.chat.paint.tool_cards import money
from weft.cli.chat.screens.list_question import ListAnswer, ListKey, ListQuestion, ListRow
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow
from weft.cli.sanitize import clean_line
from weft.cli.session_options import was_answered
from weft.errors import UsageError
from weft.ids import SessionId
from weft.view import NoteBlock, count_of, history_blocks

LISTED = 200
PEEKED = 6
"""Messages that a look into a conversation shows."""
TURNS, WHEN, FOLDER, BRANCH, STATE, COST = range(6)
"""The columns of a row."""
_KEYS = (
    ListKey("space", "preview"),
    ListKey("tab", "all folders", word="all", needs_row=False, others=("c-a",)),
    ListKey("c-r", "rename"),
    ListKey("delete", "delete", others=("c-d",)),
)


class ResumeList:
    """The conversations of this folder, or of all of them."""

    def __init__(self, chat: CommandChat) -> None:
        self._chat = chat
        self._app = chat.conversation.app
        self._everywhere = False
        self._rows: list[SessionRow] = []
        self._working: frozenset[SessionId] = frozenset()

    async def pick(self) -> SessionId | None:
        """Have the user pick one; None when they leave the list, or stay where they are."""
        question = await self._question()
        if not question.rows and not await self._is_elsewhere():
            self._chat.screen.show(NoteBlock(text="No other conversation.", level="quiet"))
            return None
        while (answer := await self._chat.screen.choose_from(question)) is not None:
            if answer.key == "enter":
                picked = self._rows[answer.row]
                return None if self._is_here(picked) else picked.id
            question = await self._next(question, answer)
        return None

    async def _next(self, question: ListQuestion, answer: ListAnswer) -> ListQuestion:
        """The list after another key than Enter."""
        if answer.key == "space" and question.peek:
            return msgspec.structs.replace(question, peek=())
        if answer.key == "tab":
            self._everywhere = not self._everywhere
            return await self._question()
        row = self._rows[answer.row]
        if answer.key == "space":
            record = await self._app.sessions.read_session(row.id)
            peek = tuple(history_blocks(record.messages[-PEEKED:]))
            nothing = (NoteBlock(text="It has no messages.", level="quiet"),)
            return msgspec.structs.replace(
                question, peek=peek or nothing, picked=answer.row, words=answer.words
            )
        if answer.key == "c-r":
            await self._rename(row)
        else:
            await self._delete(row)
        question = await self._question()
        # By its id: a new title makes it the newest, and the next key is meant for the same one.
        ids = [each.id for each in self._rows]
        at = ids.index(row.id) if row.id in ids else min(answer.row, len(ids) - 1)
        return msgspec.structs.replace(question, picked=max(0, at), words=answer.words)

    async def _question(self) -> ListQuestion:
        folder = None if self._everywhere else self._app.project_path
        rows = await self._app.sessions.list_saved(project_path=folder, limit=LISTED)
        self._working = rows.working
        # What failed before anything was answered is no conversation; `weft session list` has it.
        self._rows = [row for row in rows if self._is_here(row) or row.title or was_answered(row)]
        here = next((n for n, row in enumerate(self._rows) if self._is_here(row)), 0)
        others = len(self._rows) - any(map(self._is_here, self._rows))
        where = "all folders" if self._everywhere else "this folder"
        toggle = "this folder" if self._everywhere else "all folders"
        keys = (_KEYS[0], msgspec.structs.replace(_KEYS[1], does=toggle), *_KEYS[2:])
        return ListQuestion(
            title=f"Resume · {where}",
            rows=tuple(map(self._row, self._rows)) if others else (),
            picked=here,
            keys=keys,
            keeps=(WHEN, FOLDER, BRANCH, TURNS, STATE, COST),
            empty=f"No other conversation in {where}. Tab shows {toggle}.",
        )

    async def _is_elsewhere(self) -> bool:
        """Whether another folder has a conversation."""
        rows = await self._app.sessions.list_saved(limit=2)
        return not all(map(self._is_here, rows))

    def _is_here(self, row: SessionRow) -> bool:
        session = self._chat.conversation.session
        return session is not None and session.id == row.id

    def _row(self, row: SessionRow) -> ListRow:
        is_here = self._is_here(row)
        is_working = row.id in self._working
        state = "" if not row.turn_open else "working" if is_working else "not finished"
        if row.damaged or row.waits:
            state = "waiting" if row.waits else "damaged"
        return ListRow(
            clean_line(row.title or row.first_prompt) or row.id,
            (
                count_of(row.turn_count, "turn"),
                _ago(row.last_active, time.time()),
                _folder_name(row.project_path) if self._everywhere else "",
                clean_line(row.branch),
                "now" if is_here else state,
                money(row.cost_usd),
            ),
            is_current=is_here,
            words=row.id,
        )

    async def _rename(self, row: SessionRow) -> None:
        before = row.title or clean_line(row.first_prompt)[:60]
        title = await self._chat.screen.ask_line("New title:", before)
        if title and title.strip() and title.strip() != row.title:
            await self._app.sessions.rename_session(row.id, title.strip())

    async def _delete(self, row: SessionRow) -> None:
        if self._is_here(row):
            raise UsageError("this conversation is open; /new leaves it, then it can be deleted")
        title = clean_line(row.title or row.first_prompt) or row.id
        chosen = await self._chat.screen.choose(
            ChoiceQuestion(
                title=f"Delete “{fit(title, 60)}” for good?",
                rows=(ChoiceRow("No, keep it", key="n"), ChoiceRow("Yes, delete it", key="y")),
                hint="Esc keeps it",
            )
        )
        if chosen == 1:
            await self._app.sessions.delete_session(row.id)


def _folder_name(path: str) -> str:
    return os.path.basename(path.rstrip("/")) or path


def _ago(at: float, now: float) -> str:
    """`2 min ago`, `yesterday`, and the day from then on."""
    seconds = max(0, int(now - at))
    if seconds < 60:
        return "just now"
    if seconds < 3600:
        return f"{seconds // 60} min ago"
    if time.localtime(at)[:3] == time.localtime(now)[:3]:
        return f"{seconds // 3600} h ago"
    if time.localtime(at)[:3] == time.localtime(now - 86400)[:3]:
        return "yesterday"
    return clock_time(at).rpartition(" ")[0]
