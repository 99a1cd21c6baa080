"""`/tree`: the conversation with its branches as a list, a row for each turn."""

from __future__ import annotations

import re

import msgspec

from weft.api.session import Session
from weft.cli.chat.commands.command_group import CommandChat
from weft.cli.chat.commands.turn_outline import TurnOutline, turn_outlines
from weft.cli.chat.screens.list_question import ListKey, ListQuestion, ListRow
from weft.cli.sanitize import clean_line
from weft.errors import UsageError
from weft.ids import NodeId
from weft.view import NoteBlock, OutlineRow, TreeView, UserBlock, outline_rows

DETAIL, FILES, NAMES = range(3)
"""The columns of a row."""
_EDGES = {"├ ": "├─ ", "└ ": "└─ ", "│ ": "│  ", "  ": "   "}


class TreeList:
    """The tree, and where in it the user is."""

    def __init__(self, chat: CommandChat, session: Session) -> None:
        self._chat = chat
        self._session = session
        self._shows_calls = False
        self._places: list[OutlineRow] = []
        """Which row of the tree each row of the list belongs to."""
        self._turns: dict[NodeId, TurnOutline] = {}
        self._picked: int | None = None
        self._words = ""

    async def pick(self) -> tuple[str, OutlineRow] | None:
        """The place that the user picked, and the key that they picked it with; None when they
        leave the list.

        Raises:
            UsageError: there are no messages.
        """
        question = await self._question()
        while (answer := await self._chat.screen.choose_from(question)) is not None:
            self._words = answer.words
            if answer.key not in ("space", "c-t"):
                self._picked = answer.row
                return answer.key, self._places[answer.row]
            if answer.key == "c-t":
                self._shows_calls = not self._shows_calls
                place = self._places[answer.row] if answer.row >= 0 else None
                question = await self._question()
                at = self._places.index(place) if place is not None else 0
                question = msgspec.structs.replace(question, picked=at)
            else:
                question = self._peek(question, answer.row)
        return None

    async def _question(self) -> ListQuestion:
        tree = await self._session.tree()
        found = outline_rows(tree, await self._session.children())
        if not found:
            raise UsageError("there are no messages yet; the tree is empty")
        self._turns = {turn.node: turn for turn in await turn_outlines(self._chat.conversation)}
        self._places = []
        rows: list[ListRow] = []
        for place in found:
            below = self._call_rows(place)
            rows += [self._row(tree, place), *below]
            self._places += [place] * (1 + len(below))
        here = next((n for n, place in enumerate(self._places) if place.is_here), 0)
        return ListQuestion(
            title="Tree",
            about="1 branch" if len(tree.branches) == 1 else f"{len(tree.branches)} branches",
            rows=tuple(rows),
            picked=here if self._picked is None else self._picked,
            words=self._words,
            enter="go there",
            keys=(
                ListKey("c-b", "branch"),
                ListKey("space", "shows it", word="show"),
                ListKey("c-k", "checkpoint"),
                ListKey("c-t", "tool calls", word="tools", needs_row=False),
                ListKey("tab", "more"),
            ),
            keeps=(NAMES, DETAIL, FILES),
        )

    def _row(self, tree: TreeView, place: OutlineRow) -> ListRow:
        names = self._names(tree, place)
        turn = self._turns.get(place.first.id) if place.first is not None else None
        files = ", ".join(path for path, _, _ in turn.files[:2]) if turn is not None else ""
        text = place.first.text if place.first is not None else place.label
        return ListRow(
            clean_line(text) or "(no text)",
            (place.detail.replace(", other branch", "").replace("other branch", ""), files, names),
            margin=_margin(place.margin),
            is_current=place.is_here,
        )

    @staticmethod
    def _names(tree: TreeView, place: OutlineRow) -> str:
        if place.node is None:
            return ""
        named = [f"⚑ {each.name}" for each in tree.checkpoints if each.node == place.node]
        named += [each.name for each in tree.branches if each.node == place.node]
        return ", ".join([*(["here"] if place.is_here else []), *named])

    def _call_rows(self, place: OutlineRow) -> list[ListRow]:
        turn = self._turns.get(place.first.id) if place.first is not None else None
        if turn is None or not self._shows_calls:
            return []
        margin = f"{_margin(place.margin).replace('├─', '│ ').replace('└─', '  ')}  "
        return [ListRow(each, margin=margin, is_dim=True) for each in turn.calls]

    def _peek(self, question: ListQuestion, row: int) -> ListQuestion:
        place = self._places[row]
        if question.peek or place.first is None:
            return msgspec.structs.replace(question, peek=())
        turn = self._turns.get(place.first.id)
        did = turn.calls if turn is not None else ()
        text = turn.text if turn is not None else place.first.text
        peek = (UserBlock(text=text), *(NoteBlock(text=each, level="quiet") for each in did))
        return msgspec.structs.replace(question, peek=peek, picked=row, words=self._words)


def _margin(margin: str) -> str:
    """The lines of the tree, drawn through to the text."""
    return re.sub("[├└│ ] ", lambda found: _EDGES[found.group()], margin)
