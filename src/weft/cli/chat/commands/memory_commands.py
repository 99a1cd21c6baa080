"""`/memory`, and a line that begins with `# `: what is remembered, added to, changed, forgotten."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.paint.card_text import relative
from weft.cli.chat.screens.list_question import ListRow
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow, rows_hint
from weft.cli.sanitize import clean_line
from weft.errors import UsageError
from weft.view import TableBlock, count_of

if TYPE_CHECKING:  # loaded when there is something to remember
    from weft.app.memory import AppMemory
    from weft.project.memory import MemoryNote, MemoryScope

_SCOPES: dict[MemoryScope, str] = {"project": "this project", "user": "every project"}
_NEXT = "models know it from your next message on"
SHOWN = 70
"""Characters of an instruction file's first line."""


class MemoryCommands(CommandGroup):
    """Carries out the commands on the memory."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/memory": self._command}

    @property
    def _memory(self) -> AppMemory:
        return self._chat.conversation.app.memory

    async def _command(self, words: str) -> None:
        verb, _, rest = words.partition(" ")
        match verb:
            case "":
                await self._look()
            case "add":
                await self._remember(rest.strip())
            case "edit":
                await self._edit(rest.strip())
            case "forget" | "remove":
                await self._forget(rest.strip())
            case _:
                raise UsageError(
                    f"/memory knows add TEXT, edit and forget, not {verb!r}; "
                    "/memory add TEXT remembers something"
                )

    # -- looking

    async def _look(self) -> None:
        app = self._chat.conversation.app
        known, memory = app.host.instructions(app.project_path), await self._memory.text()
        for problem in (*known.problems, *memory.problems):
            self._say(f"left out: {problem}")
        if known.found:
            files = tuple(
                (relative(each.path, app.project_path), _first_line(each.text))
                for each in known.found
            )
            self._show(TableBlock(title="Instructions that the model reads", rows=files))
        notes = await self._memory.list()
        if notes:
            self._show(TableBlock(title="Remembered", rows=tuple(map(_row, notes))))
            await self._edit("")
            return
        self._say("nothing is remembered yet; /memory add TEXT, or a line that begins with # ")

    # -- adding

    async def remember_line(self, text: str, send: Callable[[], Awaitable[None]]) -> None:
        """As `/memory add`, of a line that began with `# `; `send` sends it as it was typed."""
        chosen = await self._ask_where(text, is_line=True)
        if chosen == len(_SCOPES):
            await send()
        else:
            await self._keep(text, chosen, typed=f"# {text}")

    async def _remember(self, text: str) -> None:
        """Ask where to keep something, and keep it there."""
        if not text:
            raise UsageError("/memory add needs what is to be remembered: /memory add use tabs")
        chosen = await self._ask_where(text, is_line=False)
        await self._keep(text, chosen, typed=f"/memory add {text}")

    async def _keep(self, text: str, chosen: int | None, *, typed: str) -> None:
        if chosen is None:
            # Nothing typed is lost: it goes back where it was typed.
            self._chat.screen.put_back(typed)
            return
        scope = list(_SCOPES)[chosen]
        note = await self._memory.add(text, scope)
        self._say(f"remembered for {_SCOPES[scope]}: {clean_line(note.text)}; {_NEXT}")

    async def _ask_where(self, text: str, *, is_line: bool) -> int | None:
        rows = (
            ChoiceRow("For this project", "kept with Weft's data, not in the repository"),
            ChoiceRow("For every project", "kept beside your settings"),
            *([ChoiceRow("No, send it as a message", "with the #")] if is_line else []),
        )
        return await self._chat.screen.choose(
            ChoiceQuestion(
                title=f"Remember “{clean_line(text)[:SHOWN]}”?",
                rows=rows,
                hint=rows_hint(len(rows)),
                is_own=True,
            )
        )

    # -- changing

    async def _edit(self, words: str) -> None:
        scope = await self._scope(words)
        if scope is None:
            return
        before = await self._memory.source(scope)
        after = await self._chat.screen.edit(before, ".md")
        path = "" if after is None else await self._memory.rewrite(scope, before, after)
        self._say(f"{path} is changed; {_NEXT}" if path else "the memory is as it was")

    async def _scope(self, words: str) -> MemoryScope | None:
        """The file that is meant, or that the user picks."""
        named: dict[str, MemoryScope] = {"project": "project", "user": "user"}
        if words:
            if words not in named:
                raise UsageError(f"/memory edit takes project or user, not {words!r}")
            return named[words]
        notes = await self._memory.list()
        rows = tuple(
            ListRow(about.capitalize(), (_count(notes, scope), self._short(scope)))
            for scope, about in _SCOPES.items()
        )
        chosen = await self._pick("Edit the memory", rows, enter="opens it in your editor")
        return None if chosen is None else list(_SCOPES)[chosen]

    def _short(self, scope: MemoryScope) -> str:
        """The path of a file, as far as it is shown."""
        home = f"{self._chat.conversation.app.places.user}/"
        path = self._memory.path(scope)
        return f"~/{path.removeprefix(home)}" if path.startswith(home) else path

    async def _forget(self, words: str) -> None:
        notes = await self._memory.list()
        if not notes:
            raise UsageError("nothing is remembered")
        found = [note for note in notes if words.casefold() in note.text.casefold()]
        if words and not found:
            raise UsageError(f"nothing that is remembered has {words!r} in it")
        chosen: int | None = 0
        if not words or len(found) > 1:
            rows = tuple(ListRow(clean_line(each.text), _row(each)[:1]) for each in found)
            chosen = await self._pick("Forget", rows, enter="forgets it")
        if chosen is not None:
            gone = await self._memory.remove(found[chosen].id)
            self._say(f"forgotten: {clean_line(gone.text)}")


def _row(note: MemoryNote) -> tuple[str, str]:
    return _SCOPES[note.scope], clean_line(note.text)


def _count(notes: list[MemoryNote], scope: MemoryScope) -> str:
    return count_of(sum(each.scope == scope for each in notes), "note")


def _first_line(text: str) -> str:
    lines = (clean_line(line.lstrip("# ")) for line in text.split("\n"))
    return next((line for line in lines if line.strip()), "")[:SHOWN]
