"""`/blame FILE:LINE`: what wrote a line, and the tree and the files as they were then."""

from __future__ import annotations

from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow
from weft.cli.commands.table import when
from weft.cli.evidence.past_shell import past_copy, place_of, tree_rows
from weft.cli.sanitize import clean_line
from weft.errors import UsageError
from weft.evidence import Blame, allowed_words
from weft.view import TableBlock, blame_rows


class BlameCommands(CommandGroup):
    """Carries out the command."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/blame": self._blame}

    async def _blame(self, words: str) -> None:
        if not words.strip():
            raise UsageError("/blame needs a file and a line of it: /blame src/app.py:12")
        path, line = place_of(words.strip())
        found = await self._chat.conversation.app.blame(path, line)
        allowed = "" if found.call is None else allowed_words(found.call)
        rows = blame_rows(found, when, allowed)
        self._show(
            TableBlock(
                title=clean_line(f"{found.path}:{found.line}"),
                rows=tuple((name, clean_line(text)) for name, text in rows),
            )
        )
        self._say(clean_line(found.sentence))
        await self._offer(found)

    async def _offer(self, found: Blame) -> None:
        """Open the past."""
        if found.open_session is None or found.open_node is None:
            return
        chosen = await self._chat.screen.choose(
            ChoiceQuestion(
                title=f"{clean_line(found.path)}:{found.line}",
                rows=(
                    ChoiceRow("Open it as it was", "the tree, and a shell in the files of then"),
                    ChoiceRow("Leave it"),
                ),
                hint="1-2, Esc leaves it",
                is_own=True,
            )
        )
        if chosen != 0:
            return
        session = await self._chat.conversation.app.sessions.get(found.open_session)
        for row in await tree_rows(session, found.open_node):
            self._say(row)
        async with past_copy(session, found.open_node) as (folder, said):
            for each in said:
                self._say(each)
            await self._chat.screen.run_shell(str(folder))
