"""Commands for queued messages: `/steer`, `/queue`."""

from __future__ import annotations

from weft.api.session import Session
from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.conversation import input_text
from weft.cli.chat.screens.list_question import ListRow
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow
from weft.cli.sanitize import clean_line
from weft.errors import UsageError


class QueueCommands(CommandGroup):
    """Carries out the commands on messages that wait."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/steer": self._steer, "/queue": self._queue}

    async def _steer(self, words: str) -> None:
        if not words:
            raise UsageError("/steer needs a message for the model")
        await self._chat.say_text(words, steers=True)

    async def _queue(self, words: str) -> None:
        if words:
            await self._chat.say_later(words)
            return
        session = self._session("queue")
        steering, follow_up = await session.get_queued_messages()
        entries = [*steering, *follow_up]
        if not entries:
            self._say("the queue is empty")
            return
        rows = [
            *(ListRow(clean_line(entry.text), ("before the next step",)) for entry in steering),
            *(ListRow(clean_line(entry.text), ("after this turn",)) for entry in follow_up),
            ListRow("Take all of them back into the input line"),
        ]
        chosen = await self._pick("Queue", tuple(rows))
        if chosen is None:
            return
        if chosen == len(entries):
            await self._take_all_back(session)
            return
        entry = entries[chosen]
        doing = await self._chat.screen.choose(
            ChoiceQuestion(
                title=clean_line(entry.text)[:70],
                rows=(ChoiceRow("Edit it"), ChoiceRow("Send it first"), ChoiceRow("Remove it")),
                hint="1-3, Esc goes back",
                is_own=True,
            )
        )
        if doing == 0:
            await self._change(session, entry.entry_id, entry.text)
        elif doing == 1:
            await session.reorder_queue([entry.entry_id])
        elif doing == 2:
            await session.remove_queued(entry.entry_id)

    async def _change(self, session: Session, entry_id: str, text: str) -> None:
        written = await self._chat.screen.ask_line("Send this instead:", text)
        if written and written.strip():
            await session.edit_queued(entry_id, written)

    async def _take_all_back(self, session: Session) -> None:
        steering, follow_up = await session.recall_queues()
        self._chat.screen.put_back(input_text([*steering, *follow_up]))
