"""The chat's commands: what each `/word` does."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable

from weft.cli.chat.commands.command_group import CommandChat, CommandGroup, Handler
from weft.cli.chat.mode_words import MODE_DETAILS, described_mode, mode_of_words
from weft.cli.chat.paint.card_text import relative
from weft.cli.keys import KEYS
from weft.cli.options import MODE_WORDS
from weft.cli.session_options import find_id, format_of
from weft.errors import SessionError, UsageError, did_you_mean
from weft.project.slash_commands import COMMANDS, command_problem, find_slash
from weft.protocol.session_options import PERMISSION_MODES
from weft.view import (
    AnswerBlock,
    TableBlock,
    UserBlock,
    compaction_sentence,
    count_of,
    difference_rows,
    difference_summary,
    receipt_rows,
    receipt_summary,
)

GO = "go"
"""The word behind `/plan` that has it carried out."""
PLAN_APPROVED = "The plan is approved. Carry it out."
LISTED = 50


class ChatCommands(CommandGroup):
    """Carries out commands for a chat: those of a conversation and its settings here, the others in
    groups of their own.
    """

    def __init__(self, chat: CommandChat) -> None:
        super().__init__(chat)
        self._known: dict[str, Handler] = {}

    def _handler(self, name: str) -> Handler:
        """What a command does."""
        if not self._known:
            # With the first command, not with the chat: they cost start-up time.
            from weft.cli.chat.commands.decision_commands import DecisionCommands
            from weft.cli.chat.commands.evidence.bisect_commands import BisectCommands
            from weft.cli.chat.commands.evidence.blame_commands import BlameCommands
            from weft.cli.chat.commands.evidence.request_commands import RequestCommands
            from weft.cli.chat.commands.fan_commands import FanCommands
            from weft.cli.chat.commands.imports.import_commands import ImportCommands
            from weft.cli.chat.commands.memory_commands import MemoryCommands
            from weft.cli.chat.commands.model_commands import ModelCommands
            from weft.cli.chat.commands.permission_commands import PermissionCommands
            from weft.cli.chat.commands.queue_commands import QueueCommands
            from weft.cli.chat.commands.setup_commands import SetupCommands
            from weft.cli.chat.commands.tree_commands import TreeCommands
            from weft.cli.chat.commands.unattended.goal_commands import GoalCommands
            from weft.cli.chat.commands.unattended.later_commands import LaterCommands
            from weft.cli.chat.commands.usage_commands import UsageCommands
            from weft.cli.chat.commands.work_commands import WorkCommands
            from weft.cli.mcp.chat_command import McpCommands

            chat = self._chat
            groups = (
                TreeCommands(chat),
                WorkCommands(chat),
                QueueCommands(chat),
                LaterCommands(chat),
                GoalCommands(chat),
                ModelCommands(chat),
                UsageCommands(chat),
                SetupCommands(chat),
                MemoryCommands(chat),
                PermissionCommands(chat),
                McpCommands(chat),
                DecisionCommands(chat),
                BisectCommands(chat),
                BlameCommands(chat),
                RequestCommands(chat),
                FanCommands(chat),
                ImportCommands(chat),
            )
            for group in (self, *groups):
                self._known |= group.handlers
        return self._known[name]

    @property
    def handlers(self) -> dict[str, Handler]:
        return {
            "/help": self._help,
            "/keys": self._keys,
            "/new": self._new,
            "/resume": self._resume,
            "/continue": self._continue,
            "/fork": self._fork,
            "/rename": self._rename,
            "/mode": self._mode,
            "/plan": self._plan,
            "/files": self._files,
            "/diff": self._diff,
            "/differences": self._differences,
            "/receipts": self._receipts,
            "/todo": self._todo,
            "/export": self._export,
            "/editor": self._editor,
            "/copy": self._copy,
            "/show": self._unfold,
            "/compact": self._compact,
            "/handover": self._handover,
            "/budget": self._budget,
            "/architect": self._architect,
            "/drive": self._drive,
        }

    async def go_back(self) -> None:
        """Esc Esc: the same as `/rewind`."""
        if self._chat.conversation.session is None:
            self._chat.screen.notify("nothing to go back to yet")
            return
        await self._handler("/rewind")("")

    async def keep_noted(self) -> None:
        """The key that keeps what was noted: the same as `/keep`."""
        await self._handler("/keep")("")

    async def remember(self, text: str, send: Callable[[], Awaitable[None]]) -> None:
        """A line that begins with `# `: as `/memory add`, but it may turn out to be a message,
        which `send` sends.
        """
        from weft.cli.chat.commands.memory_commands import MemoryCommands  # few lines are notes

        await MemoryCommands(self._chat).remember_line(text.removeprefix("# ").strip(), send)

    def takes(self, text: str) -> bool:
        """True for a command; a path such as `/etc/hosts` is none."""
        word = text.split(maxsplit=1)[0] if text.split() else ""
        return word.startswith("/") and "/" not in word[1:]

    async def run(self, text: str) -> None:
        """Carry out a command.

        Raises:
            UsageError: there is no such command, or it cannot be done now.
        """
        word, _, rest = text.partition(" ")
        slash = find_slash(word.lower())
        if slash is not None and not (slash.yields and await self._is_from_file(word)):
            if not _is_said(slash.name, rest.strip()):
                self._chat.screen.show(UserBlock(text=text))
            await self._handler(slash.name)(rest.strip())
            return
        from_files = await self._chat.file_commands()
        # A name may be followed by a line break as well as by a space.
        name = text.split(maxsplit=1)[0][1:]
        if name.startswith("skill:") and name not in from_files:
            await self._use_skill(name.removeprefix("skill:"), text)
            return
        if why := command_problem(name, from_files, in_chat=True):
            raise UsageError(why)
        if name in from_files:
            await self._chat.run_file_command(text)
        else:  # a path of this machine: `/tmp is full`
            await self._chat.say_text(text)

    async def _is_from_file(self, word: str) -> bool:
        return word.removeprefix("/") in await self._chat.file_commands()

    async def _use_skill(self, skill: str, text: str) -> None:
        """`/skill:name text`: the skill on, and the text sent."""
        chat, app = self._chat, self._chat.conversation.app
        known = app.host.skills(app.project_path).found
        # Before there is a session: one without a message would be left behind.
        if skill not in known:
            hint = did_you_mean(skill, known) or "; /skills shows those there are"
            raise UsageError(f"there is no skill {skill!r}{hint}")
        said = text.partition(" ")[2].strip()
        if not said and chat.conversation.session is None:
            raise UsageError(f"/skill:{skill} needs a message: what should be done with it?")
        await (await chat.begin_session()).activate_skill(skill)
        if said:
            await chat.say_text(said)
        else:
            self._say(f"the skill {skill} is on: the model reads all of it")

    # -- help

    async def _keys(self, words: str) -> None:
        names = self._chat.screen.key_names
        keys = tuple((names.get(name, name), about) for name, about in KEYS)
        self._show(TableBlock(title="Keys", rows=keys))
        self._say("chat.keys in the settings gives actions other keys; /config keys vi has vi's")

    async def _help(self, words: str) -> None:
        commands = tuple((command.shown, command.about) for command in COMMANDS)
        self._show(TableBlock(title="Commands", rows=commands))
        from_files = await self._chat.file_commands()
        if from_files:
            own = tuple(
                (f"/{name} {command.argument_hint}".rstrip(), command.description)
                for name, command in from_files.items()
            )
            self._show(TableBlock(title="Commands from files", rows=own))
        await self._keys("")

    # -- conversations

    async def _new(self, words: str) -> None:
        self._must_be_idle("a new conversation")
        left = self._chat.conversation.session
        await self._chat.leave_session()
        if left is not None:
            self._say(f"a new conversation; `/resume {left.id}` goes back")

    async def _resume(self, words: str) -> None:
        self._must_be_idle("another conversation")
        app = self._chat.conversation.app
        if words:
            await self._chat.switch(await find_id(app, words))
        elif not await self.pick():
            return
        await self._chat.offer_to_go_on()

    async def pick(self, *, fork: bool = False) -> bool:
        """Have the user pick another conversation; False when they stay where they are."""
        from weft.cli.chat.commands.resume_list import ResumeList  # only for those who look

        picked = await ResumeList(self._chat).pick()
        if picked is not None:
            await self._chat.switch(picked, fork=fork)
        return picked is not None

    async def _continue(self, words: str) -> None:
        if self._chat.conversation.session is None:
            raise UsageError("there is nothing to continue; /resume picks a conversation")
        await self._chat.go_on()

    async def _fork(self, words: str) -> None:
        self._must_be_idle("a fork")
        session = self._chat.conversation.session
        if session is None:
            raise UsageError("there is nothing to fork yet")
        await self._chat.switch(session.id, fork=True)
        forked = self._chat.conversation.session
        assert forked is not None
        if words:
            await self._chat.conversation.app.sessions.rename_session(forked.id, words)
        self._say(f"this is a fork now; `/resume {session.id}` goes back")

    async def _rename(self, words: str) -> None:
        session = self._chat.conversation.session
        if session is None or not words:
            raise UsageError("send a message first" if session is None else "/rename needs a title")
        await self._chat.conversation.app.sessions.rename_session(session.id, words)
        self._say(f"this conversation is called {words!r} now")

    async def _drive(self, words: str) -> None:
        if self._chat.conversation.session is None:
            raise UsageError("there is no session to drive yet")
        await self._chat.conversation.session.claim_driver()

    # -- settings

    async def _mode(self, words: str) -> None:
        chosen = words or await self._pick_word(
            "Permission mode?",
            tuple(MODE_WORDS.values()),
            {MODE_WORDS[each]: f"{each}: {about}" for each, about in MODE_DETAILS.items()},
            now=MODE_WORDS.get(self._chat.live.mode, ""),
        )
        if chosen is None:
            return
        mode = mode_of_words(chosen)
        mode = PERMISSION_MODES.get(mode, mode)
        if mode not in MODE_WORDS:
            there_are = ", ".join(map(described_mode, MODE_WORDS))
            raise UsageError(f"no mode {mode!r}; there are {there_are}")
        await self._chat.set_mode(mode)
        self._say(f"mode: {described_mode(mode)}: {MODE_DETAILS[mode]}")

    async def _plan(self, words: str) -> None:
        if words == GO:
            await self._carry_out()
            return
        await self._mode("plan")
        if words:
            await self._chat.say_text(words)

    async def _carry_out(self) -> None:
        """Have the plan carried out: the user has read it, so its edits are not asked about."""
        self._must_be_idle("the work")
        chat = self._chat
        if chat.live.mode != "plan" or chat.conversation.session is None:
            raise UsageError("there is no plan to carry out; /plan TASK makes one")
        await chat.set_mode("accept_edits")
        await chat.say_text(PLAN_APPROVED, typed=f"/plan {GO}")

    async def _architect(self, words: str) -> None:
        """`/architect` goes over to the mode and back; with a task, the task is done in it."""
        chat = self._chat
        wanted = True if words and words != "off" else not chat.live.is_architect and words != "off"
        await chat.conversation.set_architect(wanted)
        chat.live.is_architect = wanted
        chat.screen.refresh()
        self._say(
            "architect: one model plans, you approve, another carries it out"
            if wanted
            else "architect mode is off"
        )
        if words and words != "off":
            await chat.say_text(words)

    async def _budget(self, words: str) -> None:
        session = self._session("limit")
        if not words:
            raise UsageError("/budget needs an amount in US dollars (`/budget 2.50`), or off")
        try:
            usd = None if words == "off" else float(words.removeprefix("$"))
        except ValueError as error:
            raise UsageError(f"/budget takes US dollars or off, not {words!r}") from error
        await session.set_budget(usd=usd)
        self._say("there is no limit now" if usd is None else f"the limit is ${usd:.2f}")

    async def _compact(self, words: str) -> None:
        from weft.api.summaries.requested_compaction import NotCompacted  # see `Session.compact`

        session = self._session("compact")
        self._must_be_idle("a summary")
        self._chat.screen.notify("asking the model for a summary…")
        try:
            report = await session.compact(words or None)
        except NotCompacted as error:
            # The view shows what the session's log says of it.
            raise SessionError("the session was not compacted") from error
        finally:
            self._chat.screen.notify("")
        await self._chat.count_context()
        gained = compaction_sentence(report.tokens_before, report.tokens_after)
        self._say(f"{gained}; /undo reverts it")

    async def _handover(self, words: str) -> None:
        session = self._session("hand over")
        self._must_be_idle("a handover")
        self._chat.screen.notify("asking the model for a handover document…")
        text, path = await session.summarize()
        self._chat.screen.notify("")
        self._show(AnswerBlock(text=text))
        self._say(f"written to {path}")

    # -- looking

    async def _files(self, words: str) -> None:
        session = self._chat.conversation.session
        files = await session.touched_files() if session is not None else []
        if not files:
            self._say("no files were changed")
            return
        self._show(
            TableBlock(title="Files", rows=tuple((file.action, file.path) for file in files))
        )

    async def _diff(self, words: str) -> None:
        from weft.cli.chat.commands.session_diff import diff_blocks  # only for those who ask

        session = self._chat.conversation.session
        blocks = await diff_blocks(session, self._chat.conversation.app) if session else []
        if blocks:
            self._chat.screen.view("Changes", *blocks)
        else:
            self._say("no files were changed")

    async def _differences(self, words: str) -> None:
        session = self._session("compare the files of")
        found = await session.differences()
        if found:
            self._show(TableBlock(title="Differences", rows=tuple(difference_rows(found))))
        self._say(difference_summary(found))

    async def _receipts(self, words: str) -> None:
        found = await self._session("look at the answers of").receipts()
        if found:
            self._show(TableBlock(title="Receipts", rows=tuple(receipt_rows(found))))
        self._say(receipt_summary(found))

    async def _todo(self, words: str) -> None:
        session = self._chat.conversation.session
        todos = await session.todos() if session is not None else ()
        marks = {"pending": "[ ]", "in_progress": "[>]", "done": "[x]", "cancelled": "[-]"}
        if not todos:
            self._say("no to-do list yet")
            return
        self._show(
            TableBlock(title="", rows=tuple((marks[todo.status], todo.text) for todo in todos))
        )

    async def _export(self, words: str) -> None:
        conversation = self._chat.conversation
        if conversation.session is None:
            raise UsageError("there is nothing to export yet")
        session_id = conversation.session.id
        path = _in_folder(words or f"{session_id}.md", conversation.app.project_path)
        _refuse_existing(path)
        await conversation.app.sessions.export_session(session_id, format_of(path, None), path)
        self._say(f"written to {relative(str(path), conversation.app.project_path)}")

    async def _editor(self, words: str) -> None:
        written = await self._chat.screen.edit(words, ".md")
        if written:
            self._chat.screen.put_back(written)

    async def _unfold(self, words: str) -> None:
        if words and not words.isdecimal():
            raise UsageError("/show takes a number: 1 is the last card, 2 the one before it")
        self._chat.screen.unfold(int(words or 1))

    async def _copy(self, words: str) -> None:
        page = await self._session("copy").line(limit=LISTED)
        said = [message for _, message in page.items if message.role == "assistant"]
        answer = next((each.content for each in reversed(said) if each.content), "")
        if not answer:
            raise UsageError("there is no answer to copy yet")
        if words not in ("", "code"):
            raise UsageError("/copy takes the last answer, /copy code its last code block")
        text = last_code(answer) if words else answer
        if text is None:
            raise UsageError("the last answer has no code block; /copy takes all of it")
        self._chat.screen.copy(text)
        lines = text.rstrip("\n").count("\n") + 1
        self._chat.screen.notify(f"copied {count_of(lines, 'line')}")


def last_code(answer: str) -> str | None:
    """The last code block of an answer, as it would be in a file; None when it has none."""
    from markdown_it import MarkdownIt  # only to find it

    blocks = [each for each in MarkdownIt().parse(answer) if each.type in ("fence", "code_block")]
    return blocks[-1].content if blocks else None


def _in_folder(path: str, folder: str) -> str:
    return os.path.join(folder, os.path.expanduser(path))


def _refuse_existing(path: str) -> None:
    if os.path.exists(path):
        raise UsageError(f"{path} already exists; give another name")


def _is_said(command: str, words: str) -> bool:
    """Whether a command sends a message: it is shown as that, and not once more."""
    if command in ("/plan", "/architect"):
        return bool(words) and words != "off"
    return command in ("/init", "/review")
