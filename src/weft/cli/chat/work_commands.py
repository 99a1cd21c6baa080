"""Those who work for the session: `/agents`, `/tasks`."""

from __future__ import annotations

from weft.app import ChildInfo, Session
from weft.cli.chat.blocks import Table
from weft.cli.chat.outline import child_state
from weft.cli.chat.screen import Question, Row
from weft.cli.chat.story import earlier
from weft.cli.chat.talking import Group, Handler
from weft.cli.sanitize import clean_line
from weft.errors import UsageError

DESCRIBED = 200
"""Characters of an agent's description that are shown."""


class WorkCommands(Group):
    """Carries out the commands on agents and what goes on in the background."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/agents": self._agents, "/tasks": self._tasks}

    async def _agents(self, words: str) -> None:
        app = self._chat.conversation.app
        known = await app.sessions.agents(app.project_path)
        self._show(
            Table(
                title="Kinds of agents",
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
                Table(title="At work, and done", rows=tuple(_row(each) for each in children))
            )

    async def _tasks(self, words: str) -> None:
        session = self._session("watch")
        at_work = [child for child in await session.children() if child.reason is None]
        if not at_work:
            self._say("nothing is at work beside the conversation")
            return
        if words:
            await self._stop(session, _named(words, at_work))
            return
        chosen = await self._pick(
            "At work",
            tuple(Row(f"{name}: {title}", state) for name, title, state in map(_row, at_work)),
        )
        if chosen is None:
            return
        child = at_work[chosen]
        doing = await self._chat.screen.choose(
            Question(
                title=f"{child.name}: {clean_line(child.title)[:60]}",
                rows=(Row("Show what it has said and done"), Row("Stop it")),
                hint="1-2, Esc goes back",
            )
        )
        if doing == 0:
            record = await self._chat.conversation.app.sessions.read_session(child.id)
            self._show(*earlier(record.messages))
        elif doing == 1:
            await self._stop(session, child)

    async def _stop(self, session: Session, child: ChildInfo) -> None:
        await self._chat.conversation.app.sessions.stop_child(session.id, child.id)
        self._say(f"stopped: {child.name}, {child.title or child.id}")


def _row(child: ChildInfo) -> tuple[str, str, str]:
    return child.name, clean_line(child.title)[:60] or child.id, child_state(child)


def _named(words: str, at_work: list[ChildInfo]) -> ChildInfo:
    """The one that is meant by a number or by (the beginning of) an id."""
    given = words.removeprefix("stop").strip()
    if given.isdecimal() and 1 <= int(given) <= len(at_work):
        return at_work[int(given) - 1]
    found = [child for child in at_work if given and child.id.startswith(given)]
    if len(found) != 1:
        raise UsageError(f"{words!r} names nothing that is at work; /tasks shows what is")
    return found[0]
