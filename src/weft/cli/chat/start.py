"""Starting the chat: which screen, which session, and putting the terminal back at the end,
whatever happens.
"""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc

from weft import __version__
from weft.app import App
from weft.cli import stdio as output
from weft.cli.chat.chat import Chat
from weft.cli.chat.screens.plain_screen import PlainScreen
from weft.cli.early_prompt import EarlyPrompt, greeting
from weft.cli.exit_codes import OK, CommandExit, first_of
from weft.cli.gc import collect_garbage_again
from weft.cli.parse import ParsedArguments
from weft.cli.prompt_input import PromptParts, attached, compose
from weft.cli.sanitize import clean_line
from weft.cli.session_options import (
    chosen_id,
    make_app,
    options_of_agent,
    session_options_of,
)
from weft.cli.signals import StopSignal
from weft.clock import SystemClock
from weft.errors import UsageError, WeftError
from weft.view import NoteBlock

if TYPE_CHECKING:  # loaded where a terminal can be drawn on
    from weft.cli.chat.screens.terminal_screen import TerminalScreen

TERMINAL_OFF = b"\x1b[0m\x1b[?25h\x1b[?7h\x1b[?2026l\x1b[?2004l\x1b[?1004l\x1b[=0;1u"
"""Attributes off, cursor and wrapping on, no bracketed paste, focus reports or key codes: all that
the terminal screen may have left behind.
"""


def run_chat(
    arguments: ParsedArguments,
    early: EarlyPrompt | None = None,
    candidate: tuple[str, int] = ("", 0),
) -> int:
    """Talk with the user at the terminal; returns the exit code.

    `early` is the prompt that stands there already.  `candidate` is one of a fan-out to go on with.
    """
    for option in ("output_format", "input_format", "json_schema", "output_last_message"):
        if arguments.text(option) is not None:
            raise UsageError(f"--{option.replace('_', '-')} works with -p only")
    # Not a single run: it ends with its own turn, and would leave that of another half done.
    app = make_app(arguments, wakes_due=True)
    first = compose(arguments.words)
    restore = keep_terminal(early)
    stop = StopSignal()
    stop.at_the_end(restore)

    async def main() -> int:
        return await ChatStart(arguments, app, first, stop, early, candidate).main()

    try:
        return anyio.run(main)
    finally:
        restore()


def keep_terminal(early: EarlyPrompt | None = None) -> Callable[[], None]:
    """Remember how the terminal is; what comes back puts it so again."""
    fd = sys.stdin.fileno()
    try:
        kept: list[Any] = early.kept if early is not None else termios.tcgetattr(fd)
    except termios.error:
        return lambda: None

    def restore() -> None:
        try:
            termios.tcsetattr(fd, termios.TCSANOW, kept)
            if _is_redrawn():
                os.write(1, TERMINAL_OFF)
        except (termios.error, OSError):
            return

    return restore


def _is_redrawn() -> bool:
    return os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


class ChatStart:
    """One chat from beginning to end."""

    def __init__(
        self,
        arguments: ParsedArguments,
        app: App,
        first: PromptParts,
        stop: StopSignal,
        early: EarlyPrompt | None = None,
        candidate: tuple[str, int] = ("", 0),
    ) -> None:
        self._arguments = arguments
        self._app = app
        self._first = first
        self._stop = stop
        self._early = early
        self._candidate = candidate
        self._options = session_options_of(arguments, headless=False)
        self._screen = self._make_screen()
        self._talking = anyio.CancelScope()
        self._left: list[str] = []
        self._began = SystemClock().monotonic()

    async def main(self) -> int:
        """Run the chat; returns the exit code."""
        chat: Chat | None = None
        self._first += await attached(self._app, (), images=self._arguments.many("image"))
        try:
            async with anyio.create_task_group() as group:
                await group.start(self._watch_signals)
                async with self._opened():
                    collect_garbage_again()
                    await self._become_agent()
                    # Only the talking is cancelled by a signal: closing the application settles
                    # what still runs.
                    with self._talking:
                        chat = self._make_chat()
                        await self._talk(chat)
                    if chat is not None:
                        self._left = chat.left_at_work()
                group.cancel_scope.cancel()
        except* (WeftError, CommandExit, OSError) as errors:
            raise first_of(errors) from None
        for line in self._left:
            output.tell(line)
        if chat is not None and (hint := self._hint(chat)):
            output.tell(hint)
        return self._stop.code or OK

    async def _become_agent(self) -> None:
        if self._arguments.values.get("agent") is not None:
            self._options = await options_of_agent(self._app, self._options, self._arguments)

    def _opened(self) -> AbstractAsyncContextManager[Any]:
        """What is open while the chat runs."""
        return self._app

    def _make_chat(self) -> Chat:
        new_id = self._arguments.text("session_id")
        return Chat(self._app, self._screen, self._options, new_id=new_id)

    async def _talk(self, chat: Chat) -> None:
        fan_id, number = self._candidate
        if number:
            fan = await self._app.fan(fan_id)
            session_id = await fan.open(number)
            self._greet(chat, begins=False)
            await chat.run(resume=session_id)
            output.tell("what it changed is compared and verified; Ctrl-C leaves that for later")
            await fan.release(number)
            return
        resume = await chosen_id(self._app, self._arguments)
        picks = self._arguments.text("resume") == ""
        if picks and not await self._app.sessions.list_saved(self._app.project_path, limit=1):
            raise UsageError(
                "there is no session in this folder; `weft session list --all` shows the others"
            )
        self._greet(chat, begins=resume is None and not picks)
        fork = self._arguments.flag("fork")
        words = self._arguments.words
        await chat.run(first=self._first, words=words, resume=resume, fork=fork, picks=picks)

    def _greet(self, chat: Chat, *, begins: bool) -> None:
        # The model of a stored conversation is known once it is loaded: the status line has it.
        named = chat.live.model if begins else ""
        model = named.partition(":")[2].rpartition("/")[2] or named
        said = greeting(self._app.project_path, __version__, clean_line(model))
        if isinstance(self._screen, PlainScreen):
            self._screen.show(NoteBlock(text=f"{said} (/help lists the commands)", level="quiet"))
        else:
            self._screen.greet(said)
        if begins and (said := chat.conversation.note_of_level):
            chat.screen.show(NoteBlock(text=said))

    def _make_screen(self) -> PlainScreen | TerminalScreen:
        columns = _columns()
        if self._arguments.flag("plain") or not _is_redrawn():
            return PlainScreen(
                width=columns,
                in_words=self._arguments.flag("plain"),
                folder=self._app.project_path,
            )
        return self._terminal_screen()

    def _terminal_screen(self) -> TerminalScreen:
        # Not at the top: the plain screen does without them, and they are slow to load.
        from weft.cli.chat.paint.theme import theme_of
        from weft.cli.chat.screens.completion import FileCommands, ProjectFileList
        from weft.cli.chat.screens.terminal.key_bindings import KeyBindings
        from weft.cli.chat.screens.terminal.status_line import PlaceReader
        from weft.cli.chat.screens.terminal.terminal_device import TerminalDevice
        from weft.cli.chat.screens.terminal_screen import ScreenSettings, TerminalScreen

        app, ephemeral = self._app, self._arguments.flag("ephemeral")
        unicode = (sys.stdout.encoding or "").lower().startswith("utf")
        theme = theme_of(
            os.environ,
            name=str(app.config.get("theme")),
            is_unicode=unicode,
            folder=app.project_path,
        )
        settings = ScreenSettings(
            is_animated=bool(app.config.get("animation")),
            notifies=bool(app.config.get("notify")),
            vi_keys=app.config.get("keys") == "vi",
            bindings=KeyBindings(app.config.get("chat.keys")),
            status_command=str(app.config.get("statusline")),
            # Sixteen colours have no backgrounds of rows, so it would not matter.
            asks_background=app.config.get("theme") == "auto" and theme.has_rows,
        )
        place = PlaceReader(app.project_path, lambda: app.is_sandboxed)
        return TerminalScreen(
            TerminalDevice(self._early),
            folder=app.project_path,
            history=None if ephemeral else str(app.places.home / "chat_history"),
            drafts=None if ephemeral else str(app.places.home / "input_drafts"),
            theme=theme,
            settings=settings,
            offered=FileCommands(app.project_path, app.places.config),
            files=ProjectFileList(app.project_path, lambda: bool(app.config.get("repo.index"))),
            rewraps=not _cuts_rows(),
            place=place.read,
            look_at_place=place.look,
        )

    def _hint(self, chat: Chat) -> str:
        session = chat.conversation.session
        if session is None or self._arguments.flag("ephemeral"):
            return ""
        seconds = SystemClock().monotonic() - self._began
        said = chat.tally.text(seconds=seconds)
        lines = [*([said] if said else []), f"Resume with: weft -c   (weft -r {session.id})"]
        return "\n" + "\n".join(lines)

    async def _watch_signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async def leave() -> None:
            self._talking.cancel()

        await self._stop.watch(leave, interrupt=self._screen.interrupted, task_status=task_status)


def _cuts_rows() -> bool:
    """Whether the terminal cuts rows when it gets narrower, instead of breaking them again."""
    # Terminals don't say, and an answer of theirs to any question would be the same in both cases.
    # xterm and the console of the kernel are the two in use that cut; inside tmux, tmux counts.
    if "TMUX" in os.environ:
        return False
    return "XTERM_VERSION" in os.environ or os.environ.get("TERM") == "linux"


def _columns() -> int:
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return 80
