"""Commands beside the line: prompts that are sent later, what waits, and side questions (`/at`,
`/loop`, `/waits`, `/btw`).
"""

from __future__ import annotations

from typing import Any, Final

from weft.api import SessionWait
from weft.api.unattended.times import duration_of, shown_duration
from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.screens.list_question import ListRow
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow
from weft.cli.commands.table import when
from weft.cli.sanitize import clean_line
from weft.cli.unattended.wait_text import wait_words
from weft.errors import UsageError
from weft.messages import Content
from weft.project.markdown_commands import split_line
from weft.project.slash_commands import command_problem

USUAL_EVERY: Final = 600.0
"""Seconds between two rounds of `/loop` that names none."""


class LaterCommands(CommandGroup):
    """Carries out the commands."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {
            "/at": self._at,
            "/loop": self._loop,
            "/waits": self._waits,
            "/btw": self._btw,
        }

    async def _at(self, words: str) -> None:
        time, _, prompt = words.partition(" ")
        if not prompt.strip():
            raise UsageError("/at needs a time and a prompt: /at 17:00 run the tests")
        await self._schedule(time, prompt.strip(), None)

    async def _loop(self, words: str) -> None:
        first, _, rest = words.partition(" ")
        try:
            every, prompt = duration_of(first), rest.strip()
        except UsageError:
            every, prompt = USUAL_EVERY, words.strip()
        if not prompt:
            raise UsageError("/loop needs a prompt: /loop 5m look at the build")
        await self._schedule("+0s", prompt, every)

    async def _schedule(self, at: str, prompt: str, every: float | None) -> None:
        session = await self._chat.begin_session()
        content, options = await self._content(prompt)
        wait = await session.schedule(at, content, every=every, **options)
        said = f"it is sent at {when(wait.until or 0.0)}"
        if every is not None:
            said = (
                f"it is sent now and every {shown_duration(every)}, {wait.max_rounds} times or "
                "7 days at most, while this chat or a server runs"
            )
        self._say(f"{said}; /waits shows and cancels it")

    async def _content(self, prompt: str) -> tuple[Content, dict[str, Any]]:
        """What is sent: the words, or what a command from a Markdown file stands for."""
        line = split_line(prompt)
        if line is None:
            return prompt, {}
        session, files = await self._chat.begin_session(), await self._chat.file_commands()
        if line[0] not in files:
            # What the chat itself does needs the chat.
            raise UsageError(
                command_problem(line[0], files, in_chat=False)
                or f"{line[0]} works in the chat alone, and cannot be sent later"
            )
        found = await session.expand_command(prompt)
        return found.content, found.options

    async def _btw(self, words: str) -> None:
        if not words.strip():
            raise UsageError("/btw needs a question: /btw which file was that in?")
        # What it comes to is told by an event, to every client.
        await self._session("ask a side question in").ask_aside(words.strip())

    async def _waits(self, words: str) -> None:
        session = self._session("wait for")
        waits = await session.waits()
        if not waits:
            self._say("nothing waits in this conversation; `weft waits` shows all")
            return
        chosen = await self._pick("Waits", tuple(map(_row, waits)))
        if chosen is None:
            return
        doing = await self._chat.screen.choose(
            ChoiceQuestion(
                title=clean_line(wait_words(waits[chosen]))[:70],
                rows=(ChoiceRow("Cancel it"),),
                hint="1, Esc goes back",
                is_own=True,
            )
        )
        if doing == 0:
            await session.cancel_wait(waits[chosen].id)
            self._say("cancelled")


def _row(wait: SessionWait) -> ListRow:
    until = when(wait.until) if wait.until is not None else "when it comes"
    return ListRow(clean_line(wait_words(wait)), (wait.kind, until))
