"""`/import`: an export of ours, or what another agent has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.sanitize import clean_line
from weft.errors import UsageError
from weft.ids import SessionId
from weft.view import (
    TableBlock,
    import_problems,
    import_rows,
    import_summary,
    next_rows,
    setup_rows,
    store_lines,
)

if TYPE_CHECKING:  # loaded when the user imports
    from weft.api.imports.agent_import import AgentImport

_FROM = ("claude", "codex", "pi", "opencode")
_YES, _NO = "take over what is new", "leave it"


class ImportCommands(CommandGroup):
    """Carries out the command on other agents' sessions."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/import": self._command, "/store": self._store}

    async def _command(self, words: str) -> None:
        self._must_be_idle("another conversation")
        first, _, rest = words.partition(" ")
        if first in _FROM:
            await self._from(first, rest.strip() or None)
        elif words:
            await self._export(words)
        else:
            raise UsageError(
                f"/import needs a file, an export in json or jsonl; or an agent: {', '.join(_FROM)}"
            )

    async def _store(self, words: str) -> None:
        if words:
            raise UsageError("/store takes nothing behind it")
        found = await self._chat.conversation.app.kept_contents()
        for line in store_lines(found):
            self._say(line)
        if rows := next_rows(found):
            shown = tuple((row[0], "  ".join(map(clean_line, row[1:]))) for row in rows)
            self._show(TableBlock(title="Goes next", rows=shown))

    async def _export(self, words: str) -> None:
        app = self._chat.conversation.app
        report = await app.sessions.import_session(_in_folder(words, app.project_path))
        await self._chat.switch(report.session.id)

    async def _from(self, agent: str, path: str | None) -> None:
        app = self._chat.conversation.app
        found = await app.import_from(agent, path)
        self._tell(found)
        if not found.has_more:
            return
        if await self._pick_word(f"Import from {agent}?", (_YES, _NO)) != _YES:
            self._say("nothing was taken over")
            return
        found = await app.import_from(agent, path, preview=False)
        self._tell(found)
        made = [each.session for each in found.sessions if each.state == "made"]
        if len(made) == 1:
            await self._chat.switch(SessionId(made[0]))
        elif made:
            self._say("/resume lists them")

    def _tell(self, found: AgentImport) -> None:
        sessions, setup = found.sessions, found.setup
        if rows := import_rows(sessions):
            shown = tuple(
                (state, f"{title} ({count} messages)") for state, title, count, *_ in rows
            )
            self._show(TableBlock(title="Sessions", rows=shown))
        for problem in import_problems(sessions):
            self._say(clean_line(problem))
        if rows := setup_rows(setup):
            parts = tuple((f"{row[0]}: {row[1]}", f"{row[2]}  {row[3]}".rstrip()) for row in rows)
            self._show(TableBlock(title="Set-up", rows=parts))
        self._say(import_summary(sessions, setup))


def _in_folder(path: str, folder: str) -> str:
    return os.path.join(folder, os.path.expanduser(path))
