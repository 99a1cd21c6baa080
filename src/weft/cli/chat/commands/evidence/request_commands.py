"""`/request`, `/exclude` and `/include`: what the model was sent, and what it is sent no more."""

from __future__ import annotations

from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.screens.list_question import ListRow
from weft.cli.sanitize import clean_line
from weft.errors import UsageError
from weft.evidence import PART_HEAD, cache_lines, part_rows
from weft.view import AnswerBlock, HistoryMessage, TableBlock

DIFF = "diff"
_SHOWN = 100
"""Characters of a message in a list."""


class RequestCommands(CommandGroup):
    """Carries out the commands."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {
            "/request": self._request,
            "/exclude": self._exclude,
            "/include": self._include,
        }

    async def _request(self, words: str) -> None:
        session = self._session("show the request of")
        given = words.split()
        is_diff = DIFF in given
        numbers = [word for word in given if word != DIFF]
        if len(numbers) > 1 or not all(word.lstrip("-").isdecimal() for word in numbers):
            raise UsageError("/request takes the number of a turn, and diff: /request 3 diff")
        turn = int(numbers[0][:9]) if numbers else None
        found = await session.request(turn, diff=is_diff)
        if is_diff:
            text = f"```diff\n{found.diff or 'the same request as before'}\n```"
            self._chat.screen.view("What changed in the request", AnswerBlock(text=text))
            return
        rows = [PART_HEAD, *part_rows(found.parts, has_before=found.change is not None)]
        title = f"Request {found.call + 1} of {found.calls}, {found.model}, {found.size:,} bytes"
        self._show(TableBlock(title=clean_line(title), rows=tuple(rows)))
        for line in (*cache_lines(found.cache), found.said):
            self._say(clean_line(line))

    async def _exclude(self, words: str) -> None:
        session = self._session("exclude")
        chosen = await self._message("Which message should the model be sent no more?", words)
        if chosen is not None:
            self._say((await session.exclude(chosen)).said)

    async def _include(self, words: str) -> None:
        session = self._session("include")
        chosen = await self._message("Which message should be sent again?", words, excluded=True)
        if chosen is not None:
            await session.include(chosen)
            self._say("it is sent again, from the next call on")

    async def _message(self, question: str, words: str, *, excluded: bool = False) -> str | None:
        """A message that is sent (or that is excluded); by its id, or picked from a list."""
        if words:
            return words
        said = [
            (node, message)
            for node, message in await self._session("choose from").messages_with_ids()
            if message.role in ("user", "assistant") and message.is_excluded == excluded
        ]
        if not said:
            raise UsageError("no message is excluded" if excluded else "there are no messages yet")
        rows = tuple(ListRow(_row(message)) for _, message in said)
        chosen = await self._pick(question, rows, picked=len(said) - 1)
        return None if chosen is None else said[chosen][0]


def _row(message: HistoryMessage) -> str:
    mark = "›" if message.role == "user" else "·"
    calls = ", ".join(str(call["name"]) for call in message.tool_calls)
    text = clean_line(message.content)[:_SHOWN] or (f"({calls})" if calls else "(no text)")
    return f"{mark} {text}"
