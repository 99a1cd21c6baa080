"""Commands that move in the conversation: `/tree`, `/rewind`, `/undo`, `/branch`, `/switch`,
`/checkpoint`, `/pin`.

Whatever puts files back shows first what would happen to each, and what it did can be undone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from weft.api import RewindPlan
from weft.api.session import Session
from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.commands.rewind_list import RewindList, RewindQuestion, ask_overwrite
from weft.cli.chat.commands.tree_list import TreeList
from weft.cli.chat.screens.list_question import ListRow
from weft.cli.chat.screens.screen import ChoiceQuestion, ChoiceRow, rows_hint
from weft.cli.sanitize import clean_line
from weft.errors import UsageError
from weft.ids import NodeId, SessionId
from weft.view import (
    HistoryMessage,
    OutlineRow,
    TableBlock,
    changed_paths,
    file_rows,
    history_blocks,
    rewind_summary,
)

_LESSON = (
    "What was learned on the branch that you left can come along: /tree, then Tab on a message of "
    "it, “Summarize that branch here”."
)
SHOWN = 70
"""Characters of a message that a list shows."""
_Action: TypeAlias = tuple[ChoiceRow, Callable[[], Awaitable[None]]]
"""A row of a question, and what is done where it is chosen."""


class TreeCommands(CommandGroup):
    """Carries out the commands that move in the tree."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {
            "/tree": self._tree,
            "/rewind": self._rewind_to,
            "/undo": self._undo,
            "/branch": self._branch,
            "/switch": self._switch,
            "/checkpoint": self._checkpoint,
            "/pin": self._pin,
        }

    # -- the tree

    async def _tree(self, words: str) -> None:
        session = self._session("show")
        shown = TreeList(self._chat, session)
        while (picked := await shown.pick()) is not None:
            key, place = picked
            if place.child is not None:
                await self._show_child(place.child)
            elif key == "c-k":
                # A checkpoint names where the conversation stands, and nothing else.
                await self._checkpoint_at(place)
                continue
            elif key == "c-b":
                await self._branch_from(session, place)
            elif key == "tab":
                await self._at(session, place)
            elif not place.is_here:
                await self._go(session, place)
            return

    async def _checkpoint_at(self, place: OutlineRow) -> None:
        if not place.is_here:
            self._chat.screen.notify("a checkpoint marks where you are: go there first")
            return
        name = await self._chat.screen.ask_line("Name of the checkpoint:")
        if name is not None:
            await self._checkpoint(name.strip())

    async def _branch_from(self, session: Session, place: OutlineRow) -> None:
        """A branch of its own at a place, whether another one ends there or not."""
        self._must_be_idle("a branch")
        name = await self._chat.screen.ask_line("Name of the new branch (Enter for any):")
        if name is None or not await self._files_too(session, place.node):
            return
        assert place.node is not None
        branch = await session.branch_at(place.node, name.strip() or None)
        self._say(f"now on the new branch {branch.name}; /switch goes back")

    async def _show_child(self, child: SessionId) -> None:
        record = await self._chat.conversation.app.sessions.read_session(child)
        self._show(*history_blocks(record.messages))
        self._say(f"that was {child}; `/resume {child}` resumes it")

    async def _at(self, session: Session, place: OutlineRow) -> None:
        """What can be done at a place of the tree."""
        doing = [*self._message_actions(session, place), *self._branch_actions(session, place)]
        chosen = await self._chat.screen.choose(
            ChoiceQuestion(
                title=clean_line(place.label)[:SHOWN],
                rows=tuple(row for row, _ in doing),
                hint=rows_hint(len(doing)),
                is_own=True,
            )
        )
        if chosen is not None:
            await doing[chosen][1]()

    def _message_actions(self, session: Session, place: OutlineRow) -> Iterator[_Action]:
        assert place.first is not None
        first = place.first
        if not place.is_here:
            yield ChoiceRow("Continue from here"), lambda: self._go(session, place)
        if first.role == "user":
            yield (
                ChoiceRow(
                    "Edit and resend", "go back to before it, with its text in the input line"
                ),
                lambda: self._say_differently(session, first.id, first.parent),
            )
        if not place.on_line:
            yield (
                ChoiceRow("Summarize that branch here", "asks the model"),
                lambda: self._bring(session, place),
            )
        yield (
            ChoiceRow("Pin it", "it stays in the model's context through compaction"),
            lambda: self._pin_message(session, first.id),
        )

    def _branch_actions(self, session: Session, place: OutlineRow) -> Iterator[_Action]:
        if not place.branch:
            return
        yield (
            ChoiceRow("Rename the branch", place.branch),
            lambda: self._rename(session, place.branch),
        )
        yield (
            ChoiceRow("Delete the branch name", "its messages stay"),
            lambda: session.delete_branch(place.branch),
        )

    async def _go(self, session: Session, place: OutlineRow) -> None:
        self._must_be_idle("another branch")
        if not await self._files_too(session, place.node):
            return
        left = (await session.tree()).head
        if place.branch:
            await session.switch_branch(place.branch)
        else:
            assert place.node is not None
            await session.branch_at(place.node)
        await self._chat.show_place()
        await self._offer_lesson(session, left)

    async def _offer_lesson(self, session: Session, left: NodeId | None) -> None:
        """Say how what was learned on a branch that was left can come along; what the model said
        there is lost to it otherwise.
        """
        tree = await session.tree()
        about = {message.id: message for message in tree.messages}
        line: set[NodeId] = set()
        node = tree.head
        while node is not None and node in about:
            line.add(node)
            node = about[node].parent
        while left is not None and left in about and left not in line:
            if about[left].role == "assistant":
                self._say(_LESSON)
                return
            left = about[left].parent

    async def _say_differently(self, session: Session, node: NodeId, parent: NodeId | None) -> None:
        self._must_be_idle("another branch")
        said = (await session.revisions(node))[-1]
        if not await self._files_too(session, parent):
            return
        if parent is None:
            await session.rewind(None, files=False)
        else:
            await session.branch_at(parent)
        await self._chat.show_place()
        self._chat.screen.put_back(said)

    async def _bring(self, session: Session, place: OutlineRow) -> None:
        assert place.node is not None
        self._chat.screen.notify("asking the model…")
        text = await session.summarize_branch(place.node)
        self._chat.screen.notify("")
        self._say(f"added to the conversation:\n{text}")

    async def _rename(self, session: Session, name: str) -> None:
        wanted = await self._chat.screen.ask_line(f"New name for {name}:")
        if wanted and wanted.strip():
            await session.rename_branch(name, wanted.strip())
            self._say(f"the branch {name} is {wanted.strip()} now")

    # -- files that go along

    async def _files_too(self, session: Session, node: NodeId | None) -> bool:
        """Let the files go along where they would change and the user agrees.

        False when the user cancels.
        """
        plan = await session.rewind(node, files=True, conversation=False, preview=True)
        if not changed_paths(plan) and not plan.conflicts:
            return True
        self._show_files(plan)
        chosen = await self._chat.screen.choose(
            ChoiceQuestion(
                title="Restore files too?",
                rows=(
                    ChoiceRow("No, only the conversation"),
                    ChoiceRow("Yes, as they were then", rewind_summary(plan)),
                ),
                hint="1-2, Esc goes back",
                is_own=True,
            )
        )
        if chosen == 1:
            overwrite = await ask_overwrite(self._chat, plan)
            if overwrite is None:
                return False
            await session.rewind(node, files=True, conversation=False, overwrite=overwrite)
        return chosen is not None

    def _show_files(self, plan: RewindPlan) -> None:
        rows = file_rows(plan)
        if rows:
            self._show(TableBlock(title="File changes", rows=tuple(rows)))

    # -- going back

    async def _rewind_to(self, words: str) -> None:
        session = self._session("go back to")
        self._must_be_idle("going back")
        if words:
            title = f"→ Back to checkpoint “{words}”"
            await RewindQuestion(self._chat, session, words, title, name=words).ask("")
        else:
            await RewindList(self._chat, session).pick()

    async def _undo(self, words: str) -> None:
        session = self._session("undo")
        self._must_be_idle("undoing")
        can = await self._undoable(session)
        if words and words not in ("rewind", "compaction"):
            raise UsageError(f"/undo undoes a rewind or a compaction, not {words!r}")
        if not can and not words:
            await RewindList(self._chat, session).undo_last()
            return
        if words and words not in can:
            raise UsageError(
                f"there is no {words} to undo; /rewind goes back to an earlier message"
            )
        what = words or (can[0] if len(can) == 1 else await self._pick_word("Undo what?", can))
        if what == "compaction":
            await session.undo_compaction()
            await self._chat.count_context()
            self._say("compaction undone: the model sees again what it took")
        elif what == "rewind":
            await self._undo_rewind(session)

    async def _undoable(self, session: Session) -> tuple[str, ...]:
        can: list[str] = []
        try:
            await session.undo_rewind(preview=True)
            can.append("rewind")
        except UsageError:
            pass
        if (await session.tree()).can_undo_compaction:
            can.append("compaction")
        return tuple(can)

    async def _undo_rewind(self, session: Session) -> None:
        plan = await session.undo_rewind(preview=True)
        self._show_files(plan)
        overwrite = await ask_overwrite(self._chat, plan)
        if overwrite is None:
            return
        done = await session.undo_rewind(overwrite=overwrite)
        self._say(f"the rewind is undone: {rewind_summary(done)}")
        if done.conversation:
            await self._chat.show_place()

    # -- names

    async def _branch(self, words: str) -> None:
        session = self._session("branch from")
        self._must_be_idle("a branch")
        head = (await session.tree()).head
        if head is None:
            raise UsageError("there are no messages yet; there is nothing to branch from")
        branch = await session.branch_at(head, words or None)
        self._say(f"now on the new branch {branch.name}; /switch goes back")

    async def _switch(self, words: str) -> None:
        session = self._session("switch")
        self._must_be_idle("another branch")
        known = await session.list_branches()
        if not words:
            if len(known) == 1:
                raise UsageError("there is only one branch; /branch or /tree starts another")
            chosen = await self._pick(
                "Switch to which branch?",
                tuple(
                    ListRow(
                        branch.name,
                        (f"{branch.length} messages",),
                        is_current=branch.is_current,
                    )
                    for branch in known
                ),
                picked=next(n for n, branch in enumerate(known) if branch.is_current),
            )
            if chosen is None:
                return
            if known[chosen].is_current:
                return
            words = known[chosen].name
        target = next((branch for branch in known if branch.name == words), None)
        if target is None:
            names = ", ".join(branch.name for branch in known)
            raise UsageError(f"no branch {words!r}; there are {names}")
        if target.is_current:
            self._say(f"you are on {words} already")
        elif await self._files_too(session, target.node):
            left = (await session.tree()).head
            await session.switch_branch(words)
            await self._chat.show_place()
            await self._offer_lesson(session, left)

    async def _checkpoint(self, words: str) -> None:
        session = self._session("mark")
        name = await session.checkpoint(words or None)
        self._say(f"checkpoint {name!r} saved; `/rewind {name}` returns to it")

    async def _pin(self, words: str) -> None:
        session = self._session("pin")
        said = [
            (node, message)
            for node, message in await session.messages_with_ids()
            if message.role in ("user", "assistant") and message.content.strip()
        ]
        if not said:
            raise UsageError("there are no messages yet; there is nothing to pin")
        chosen = await self._pick(
            "Which message should stay in the model's context?",
            tuple(
                ListRow(f"{'›' if message.role == 'user' else '·'} {_shown(message)}")
                for _, message in said
            ),
            picked=len(said) - 1,
        )
        if chosen is not None:
            await self._pin_message(session, said[chosen][0])

    async def _pin_message(self, session: Session, node: str) -> None:
        await session.pin(node)
        self._say("pinned: the model will always see it")


def _shown(message: HistoryMessage) -> str:
    return clean_line(message.content)[:SHOWN] or "(no text)"
