"""Commands for agents and background tasks: `/agents`, `/tasks`, `/stop`."""

from __future__ import annotations

import msgspec

from weft.api.session import Session
from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.screens.list_question import ListRow
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow, rows_hint
from weft.cli.sanitize import clean_line
from weft.errors import UsageError
from weft.ids import SessionId
from weft.view import ChildInfo, TableBlock, agent_status, history_blocks

DESCRIBED = 200
"""Characters of an agent's description that are shown."""


class WorkCommands(CommandGroup):
    """Carries out the commands on agents and what goes on in the background."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/agents": self._agents, "/tasks": self._tasks, "/stop": self._stop_all}

    async def _agents(self, words: str) -> None:
        app = self._chat.conversation.app
        known = await app.host.agents(app.project_path)
        self._show(
            TableBlock(
                title="Available agents",
                rows=tuple(
                    (each.name, clean_line(each.description)[:DESCRIBED], each.model)
                    for each in known.found.values()
                ),
            )
        )
        for problem in known.problems:
            self._say(f"left out: {problem}")
        session = self._chat.conversation.session
        children = await session.children() if session is not None else []
        if children:
            self._show(
                TableBlock(
                    title="Running and finished", rows=tuple(_row(each) for each in children)
                )
            )

    async def _tasks(self, words: str) -> None:
        session = self._session("watch")
        at_work = await _tasks_of(session)
        if not at_work:
            self._say("no background tasks")
            return
        if words:
            await self._stop(session, _named(words, at_work))
            return
        chosen = await self._pick(
            "At work",
            tuple(ListRow(f"{task.name}: {task.title}", (task.state,)) for task in at_work),
        )
        if chosen is None:
            return
        task = at_work[chosen]
        stop, show = ChoiceRow("Stop it"), ChoiceRow("Show its messages")
        rows = (stop,) if task.is_command else (show, stop)
        doing = await self._chat.screen.choose(
            ChoiceQuestion(
                title=f"{task.name}: {task.title}",
                rows=rows,
                hint=rows_hint(len(rows)),
                is_own=True,
            )
        )
        if doing is None:
            return
        if rows[doing] is stop:
            await self._stop(session, task)
        else:
            record = await self._chat.conversation.app.sessions.read_session(task.id)
            self._show(*history_blocks(record.messages))

    async def _stop_all(self, words: str) -> None:
        """Stop the turn as Esc does; where none runs, what goes on in the background."""
        if self._chat.live.can_stop:
            await self._chat.interrupt()
            return
        session = self._chat.conversation.session
        at_work = await _tasks_of(session) if session is not None else []
        if session is None or not at_work:
            self._say("nothing runs")
            return
        for task in at_work:
            await self._stop(session, task)

    async def _stop(self, session: Session, task: WorkItem) -> None:
        if task.is_command:
            await session.kill_background(task.id)
        else:
            await self._chat.conversation.app.host.stop_child(session.id, SessionId(task.id))
        self._say(f"stopped: {task.name}, {task.title}")


class WorkItem(msgspec.Struct, frozen=True, kw_only=True):
    """Something at work beside the conversation: an agent, or a command."""

    id: str
    name: str
    title: str
    state: str
    is_command: bool = False


async def _tasks_of(session: Session) -> list[WorkItem]:
    found = [
        WorkItem(id=child.id, name=name, title=title, state=state)
        for child in await session.children()
        if child.reason is None
        for name, title, state in [_row(child)]
    ]
    return found + [
        WorkItem(
            id=work.id,
            name=work.id,
            title=clean_line(work.title)[:60],
            state=f"command, {work.status}",
            is_command=True,
        )
        for work in await session.background_commands()
        if work.kind == "shell" and work.status != "exited"
    ]


def _row(child: ChildInfo) -> tuple[str, str, str]:
    return child.name, clean_line(child.title)[:60] or child.id, agent_status(child)


def _named(words: str, at_work: list[WorkItem]) -> WorkItem:
    """The one that is meant by a number or by (the beginning of) an id."""
    given = words.removeprefix("stop").strip()
    if given.isdecimal() and 1 <= int(given) <= len(at_work):
        return at_work[int(given) - 1]
    found = [task for task in at_work if given == task.id]
    found = found or [task for task in at_work if given and task.id.startswith(given)]
    if len(found) != 1:
        raise UsageError(f"{words!r} is not a running task; /tasks lists those")
    return found[0]
