"""`/rewind`: the list of messages, what would go back with one, and the going back."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from weft.api import RewindPlan
from weft.api.session import Session
from weft.cli.chat.commands.command_group import CommandChat
from weft.cli.chat.commands.turn_outline import TurnOutline, summed, turn_outlines
from weft.cli.chat.paint.text_cells import fit
from weft.cli.chat.screens.list_question import ListKey, ListQuestion, ListRow
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow
from weft.errors import UsageError
from weft.view import NoteBlock, UserBlock, changed_paths, count_of

NAMED = 40
"""Characters of a message in a sentence."""
FILES = 3
"""Files that an answer names; the others are counted."""
TIME, CALLS, CHANGES = range(3)
"""The columns of a row."""
_VERBS = {"restore": "is restored", "delete": "is deleted", "recreate": "is recreated"}


class RewindList:
    """Goes back to just before a message."""

    def __init__(self, chat: CommandChat, session: Session) -> None:
        self._chat = chat
        self._session = session
        self._turns: list[TurnOutline] = []

    async def pick(self) -> None:
        """Have the user pick a message and say what goes back; leaving it changes nothing.

        Raises:
            UsageError: there are no messages.
        """
        self._turns = await turn_outlines(self._chat.conversation)
        if not self._turns:
            raise UsageError("there are no messages yet; there is nothing to go back to")
        question = self._question()
        while (answer := await self._chat.screen.choose_from(question)) is not None:
            if answer.key == "space":
                question = self._peek(question, answer.row, answer.words)
            elif answer.row == len(self._turns) or await self._go(answer.row):
                return
            else:
                # Back from what goes back to the list, where it was left.
                question = msgspec.structs.replace(
                    question, peek=(), picked=answer.row, words=answer.words
                )

    async def undo_last(self) -> None:
        """Have the user say what of the last message goes back; leaving it changes nothing.

        Raises:
            UsageError: there are no messages.
        """
        self._turns = await turn_outlines(self._chat.conversation)
        if not self._turns:
            raise UsageError("there are no messages yet; there is nothing to undo")
        await self._go(len(self._turns) - 1)

    def _question(self) -> ListQuestion:
        rows = [
            ListRow(turn.label, (turn.time, turn.call_count, turn.file_changes))
            for turn in self._turns
        ]
        return ListQuestion(
            title="Rewind to just before…",
            rows=(*rows, ListRow("you are here", is_current=True)),
            picked=len(rows),
            keys=(ListKey("space", "shows it", word="show"),),
            keeps=(TIME, CHANGES, CALLS),
        )

    def _peek(self, question: ListQuestion, row: int, words: str) -> ListQuestion:
        if question.peek or row == len(self._turns):
            return msgspec.structs.replace(question, peek=())
        turn = self._turns[row]
        did = [NoteBlock(text=each, level="quiet") for each in turn.calls]
        peek = (UserBlock(text=turn.text), *did)
        return msgspec.structs.replace(question, peek=peek, picked=row, words=words)

    async def _go(self, row: int) -> bool:
        """Go back to before a message; False when the user goes back to the list."""
        turn = self._turns[row]
        back = len(self._turns) - row
        title = f"→ Before “{fit(turn.label, NAMED)}” ({count_of(back, 'turn')} back)"
        edits = summed(edit for each in self._turns[row:] for edit in each.files)
        asked = RewindQuestion(self._chat, self._session, turn.parent, title, edits=edits)
        return await asked.ask(turn.text)


class RewindQuestion:
    """One place to go back to: what would happen, what the user wants of it, and doing that."""

    def __init__(
        self,
        chat: CommandChat,
        session: Session,
        to: str | None,
        title: str,
        *,
        edits: Sequence[tuple[str, int, int]] = (),
        name: str = "",
    ) -> None:
        """`edits` are the lines that go back with it; `name` is that of a checkpoint."""
        self._chat = chat
        self._session = session
        self._to = to
        self._title = title
        self._name = name
        self._lines = {path: f" +{plus} −{minus}" for path, plus, minus in edits}

    async def ask(self, text: str) -> bool:
        """Ask what goes back, and do it; False when the user changes nothing.

        `text` is the message that comes back to the input line.
        """
        plan = await self._session.rewind(self._to, preview=True)
        options = self._options(plan)
        chosen = await self._chat.screen.choose(
            ChoiceQuestion(
                title=self._title,
                rows=tuple(ChoiceRow(label, detail) for label, detail, _ in options),
                hint=_stays(plan),
                is_own=True,
            )
        )
        if chosen is None:
            return False
        what = options[chosen][2]
        if what == "branch":
            await self._branch(text)
            return True
        return await self._rewind(plan, what, text)

    def _options(self, plan: RewindPlan) -> list[tuple[str, str, str]]:
        """Label, detail, and what it means."""
        found = [("Conversation only", "files stay", "conversation")]
        if changed_paths(plan) or plan.conflicts:
            found = [
                ("Conversation and files", self._files(plan), "both"),
                *found,
                ("Files only", "the conversation stays", "files"),
            ]
        if self._to is not None and not self._name:
            found.append(("New branch", "keep both, go on from there", "branch"))
        return found

    def _files(self, plan: RewindPlan) -> str:
        said = [
            f"{item.path}{self._lines.get(item.path, '')} {_VERBS[item.action]}"
            for item in plan.files
            if item.action in _VERBS
        ]
        if plan.conflicts:
            said.append(f"{', '.join(plan.conflicts)} changed outside the session")
        more = len(said) - FILES
        return ", ".join([*said[:FILES], *([f"{more} more"] if more > 0 else [])])

    async def _rewind(self, plan: RewindPlan, what: str, text: str) -> bool:
        files, conversation = what != "conversation", what != "files"
        overwrite = await ask_overwrite(self._chat, plan) if files else ()
        if overwrite is None:
            return False
        done = await self._session.rewind(
            self._to, files=files, conversation=conversation, overwrite=overwrite
        )
        await self._chat.count_context()
        place = f"before {self._title.partition('Before ')[2].rpartition(' (')[0]}"
        where = f"checkpoint {self._name!r}" if self._name else place
        said = f"Rewound to {where}" if conversation else f"Restored files of {where}"
        note = f"{said}; {_restored(done) if files else 'files stay'}. /undo takes it back."
        self._chat.screen.show(NoteBlock(text=note))
        if conversation:
            self._chat.screen.put_back(text)
        return True

    async def _branch(self, text: str) -> None:
        assert self._to is not None
        branch = await self._session.branch_at(self._to)
        await self._chat.count_context()
        self._chat.screen.show(
            NoteBlock(text=f"On the new branch {branch.name}. /switch goes back.")
        )
        self._chat.screen.put_back(text)


async def ask_overwrite(chat: CommandChat, plan: RewindPlan) -> tuple[str, ...] | None:
    """Which of the files that were changed outside the session are overwritten.

    None to leave everything as it is.
    """
    if not plan.conflicts:
        return ()
    count = len(plan.conflicts)
    chosen = await chat.screen.choose(
        ChoiceQuestion(
            title=f"{count_of(count, 'file')} changed outside the session since.",
            rows=(
                ChoiceRow("Keep those as they are", ", ".join(plan.conflicts)),
                ChoiceRow("Overwrite them", "those changes are lost"),
            ),
            hint="1-2, Esc changes nothing",
        )
    )
    if chosen is None:
        return None
    return plan.conflicts if chosen == 1 else ()


def _restored(plan: RewindPlan) -> str:
    """`restored calc.py, deleted notes.md`"""
    said = []
    for verb, actions in (("restored", ("restore", "recreate")), ("deleted", ("delete",))):
        paths = [item.path for item in plan.files if item.action in actions]
        more = len(paths) - FILES
        if paths:
            named = [*paths[:FILES], *([f"{more} more"] if more > 0 else [])]
            said.append(f"{verb} {', '.join(named)}")
    return ", ".join(said) or "no file changes"


def _stays(plan: RewindPlan) -> str:
    """What does not go back although it is in the folder, and how to undo it."""
    left = [each.partition(": ")[0] for each in plan.left_out if not each.startswith(".git/")]
    if not left:
        return "/undo takes it back · Esc changes nothing"
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    stays = "stay" if more else "stays"
    return f"{left[0]}{more} not tracked (gitignored), {stays} · /undo takes it back"
