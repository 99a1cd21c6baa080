"""Starting the view: which tree, on which terminal; and giving the terminal back at the end,
whatever happens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import Final

import anyio
import anyio.abc

from weft.app import App
from weft.cli.chat.paint.theme import theme_of
from weft.cli.chat.screens.terminal.block_viewer import SHUT
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.chat.screens.terminal.terminal_device import TerminalDevice, TerminalPort
from weft.cli.chat.start import keep_terminal
from weft.cli.exit_codes import OK
from weft.cli.loom_view.key_map import KeyMap
from weft.cli.loom_view.panels.list_panels import PickPanel
from weft.cli.loom_view.panels.tree_list import open_tree, tree_question
from weft.cli.loom_view.scene_reader import SceneReader
from weft.cli.loom_view.start_node import find_start
from weft.cli.loom_view.terminal_guard import guarded_terminal
from weft.cli.loom_view.terminal_loop import LoopClient, ViewTerminal
from weft.cli.loom_view.text_rows import ViewFrame, money
from weft.cli.loom_view.view_command import TreeListQuery, ViewCommand
from weft.cli.loom_view.view_driver import ViewDriver
from weft.cli.loom_view.view_screen import ViewScreen
from weft.cli.signals import StopSignal
from weft.cli.stdio import tell
from weft.errors import UsageError
from weft.file_io import write_all
from weft.loom import LoomSession

_NO_TREE: Final = 'there is no tree yet; `weft loom view "Once upon a time"` begins one'


def check_terminal() -> None:
    """Refuse to draw where nothing can be drawn.

    Raises:
        UsageError: standard input or output is no terminal, or one that cannot be drawn on.
    """
    for stream in (sys.stdin, sys.stdout):
        if stream is None or stream.closed or not stream.isatty():
            raise UsageError("`weft loom view` needs a terminal for its keys and its screen")
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        raise UsageError("`weft loom view` cannot draw on this terminal (TERM is dumb)")


async def run_view(
    app: App, start: str | None = None, *, terminal: TerminalPort | None = None
) -> int:
    """Show a tree until the user leaves; returns the exit code.

    `start` is the id of a node or the beginning of one, a file with trees or with a text, or a text
    itself; without it, the user picks from a list.  The application must be open.

    Raises:
        UsageError: there is no terminal, no such tree, or keys are set wrongly.
    """
    if terminal is None:
        check_terminal()
    return await _ViewRun(app, terminal or TerminalDevice(), owns=terminal is None).run(start)


class _ViewRun:
    """One view from beginning to end."""

    def __init__(self, app: App, port: TerminalPort, *, owns: bool) -> None:
        self._app = app
        self._keys = KeyMap(app.config.get("loom.keys"))
        theme = theme_of(os.environ, name=str(app.config.get("theme")))
        unicode = (sys.stdout.encoding or "").lower().startswith("utf") if owns else True
        self._styles = RowStyles(coloured=theme.is_coloured, unicode=unicode)
        self._terminal = ViewTerminal(port, self._styles)
        self._owns = owns
        self._stop = StopSignal()
        self._looking = anyio.CancelScope()
        self._left = ""

    async def run(self, start: str | None) -> int:
        """Until the user leaves, or a signal comes."""
        if self._owns:
            self._stop.at_the_end(keep_terminal())
            self._stop.at_the_end(_leave_screen)
        reference = await self._reference(start)
        async with anyio.create_task_group() as group:
            if self._owns:
                await group.start(self._watch_signals)
            with self._looking, guarded_terminal() if self._owns else nullcontext():
                await self._look(reference)
            group.cancel_scope.cancel()
        if self._left:
            tell(self._left)
        return self._stop.code or OK

    async def _watch_signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async def leave() -> None:
            self._looking.cancel()

        await self._stop.watch(leave, task_status=task_status)

    async def _reference(self, start: str | None) -> str:
        """What to open; empty where the user is to pick it."""
        if start is not None and start.strip():
            return await find_start(self._app, start)
        found = await self._app.loom.catalogue(limit=2)
        if not found.total:
            raise UsageError(_NO_TREE)
        return "" if found.total > 1 else found.entries[0].root_id

    async def _look(self, reference: str) -> None:
        # A tree that is named is opened first: if it is not there, nothing has been drawn.
        opened = await open_tree(self._app, reference) if reference else None
        with self._terminal.taken():
            if opened is None:
                picked = await self._pick()
                if not picked:
                    return
                opened = await open_tree(self._app, picked)
            await self._view(*opened)

    async def _pick(self) -> str:
        asked = TreeListQuery()
        while True:
            choice = _TreeChoice(await tree_question(self._app, asked), self._styles)
            await self._terminal.show(choice)
            if not choice.commands:
                return ""
            [command] = choice.commands
            if command.do == "switch":
                return command.text or ""
            asked = command.trees

    async def _view(self, session: LoomSession, said: str) -> None:
        terminal = self._terminal
        is_animated = bool(self._app.config.get("animation"))
        scene = SceneReader(session).read(terminal.size)
        screen = ViewScreen(scene, self._keys, self._styles, is_animated=is_animated)
        screen.notice = said
        driver = ViewDriver(
            self._app,
            session,
            screen,
            changed=terminal.changed,
            edit=terminal.edit,
            size=lambda: terminal.size,
            is_animated=is_animated,
        )
        try:
            async with anyio.create_task_group() as group:
                driver.group = group
                group.start_soon(driver.follow)
                await terminal.show(_ViewClient(driver))
                # Before its tasks are cancelled: what has come of the branches is to be kept.
                await driver.settle()
                group.cancel_scope.cancel()
        finally:
            # By a signal, too.
            with anyio.CancelScope(shield=True):
                await driver.settle()
                self._left = _farewell(driver.session, driver.made)
                await driver.session.aclose()


def _farewell(session: LoomSession, made: Sequence[str]) -> str:
    """How to come back, and how to open the coding sessions that were made."""
    tree = session.loom_tree
    count = tree.descendant_count(tree.root_id) + 1
    cost = money(tree.state.ledger.total.cost_usd)
    said = [f"{count:,} nodes" if count != 1 else "1 node", *([cost] if cost else [])]
    lines = [" · ".join(said), f"Come back with: weft loom view {session.current_node_id}"]
    return "\n".join([*lines, *(f"Coding session: weft -r {each}" for each in made)])


def _leave_screen() -> None:
    with suppress(OSError):  # the terminal is gone
        write_all(1, SHUT.encode())


class _ViewClient(LoopClient):
    """The view, as the terminal's loop knows it."""

    def __init__(self, driver: ViewDriver) -> None:
        self._driver = driver

    @property
    def is_over(self) -> bool:
        return self._driver.is_over

    @property
    def is_moving(self) -> bool:
        return bool(self._driver.screen.activity)

    def press(self, key: str) -> None:
        driver = self._driver
        driver.carry_out(driver.screen.press(key))
        # At once: what the next key means depends on it.
        driver.refresh()

    def paste(self, text: str) -> None:
        self._driver.carry_out(self._driver.screen.paste(text))

    def refresh(self) -> None:
        self._driver.refresh()

    def frame(self, size: ScreenSize) -> ViewFrame:
        return self._driver.screen.frame(size)


class _TreeChoice(LoopClient):
    """The list of trees before one is open."""

    def __init__(self, panel: PickPanel, styles: RowStyles) -> None:
        self._panel = panel
        self._styles = styles
        self.commands: Sequence[ViewCommand] = ()

    @property
    def is_over(self) -> bool:
        return self._panel.is_over

    @property
    def is_moving(self) -> bool:
        return False

    def press(self, key: str) -> None:
        self.commands = self._panel.press(key)

    def paste(self, text: str) -> None:
        self._panel.paste(text)

    def refresh(self) -> None:
        return

    def frame(self, size: ScreenSize) -> ViewFrame:
        return self._panel.frame(size, self._styles)
