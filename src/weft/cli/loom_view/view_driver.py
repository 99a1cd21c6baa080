"""Carries out what the screen asks for, on a session of a tree.

Moves, marks and edits are done at once; what waits for something (models, a search, other trees,
the user's editor) is a task of its own, and the view goes on meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

import anyio
import anyio.abc
import msgspec

from weft.app import App
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.region_rows import FRAMES_PER_SECOND, SPINNER, STILL
from weft.cli.loom_view.focus import TokenCursor
from weft.cli.loom_view.growth import BranchGrowth
from weft.cli.loom_view.panels.list_panels import PickPanel, SearchPanel, WaitingPanel
from weft.cli.loom_view.panels.panel_maker import PanelMaker
from weft.cli.loom_view.panels.plan_panel import LOGPROBS as ALTERNATIVES
from weft.cli.loom_view.panels.plan_panel import PlanPanel
from weft.cli.loom_view.panels.tree_list import hit_rows, model_question, open_tree, tree_question
from weft.cli.loom_view.scene_reader import SceneReader
from weft.cli.loom_view.tree_walk import TreeWalk
from weft.cli.loom_view.view_command import ViewCommand
from weft.cli.loom_view.view_screen import ViewScreen
from weft.clock import Clock, SystemClock
from weft.errors import SessionStopped, UsageError, WeftError
from weft.ids import NodeId
from weft.loom import LoomSession

if TYPE_CHECKING:
    from weft.loom.branches.generation import GenerationRun

SHORT_TOKENS: Final = 10
LOOK_SECONDS: Final = 0.5
"""How often it is looked whether others have changed the tree."""
SEARCH_SECONDS: Final = 0.12
"""So long after the last key the words are looked for."""


class ViewDriver:
    """One view at work."""

    def __init__(
        self,
        app: App,
        session: LoomSession,
        screen: ViewScreen,
        *,
        changed: Callable[[], None],
        edit: Callable[[str], Awaitable[str | None]],
        size: Callable[[], ScreenSize],
        clock: Clock | None = None,
        is_animated: bool = True,
    ) -> None:
        """`changed` has the window drawn again, `edit` has a text edited by another program."""
        self._app = app
        self.session = session
        self.screen = screen
        self._changed = changed
        self._edit = edit
        self._size = size
        self._clock = clock or SystemClock()
        self._is_animated = is_animated
        self._reader = SceneReader(session)
        self._growth: BranchGrowth | None = None
        self._run: GenerationRun | None = None
        self._hoist: NodeId | None = None
        self._search = anyio.CancelScope()
        self.group: anyio.abc.TaskGroup | None = None
        """Runs what waits; there while the view is open."""
        self.made: list[str] = []
        """Coding sessions that were made of nodes."""
        self.is_over = False

    # -- the screen

    def refresh(self) -> None:
        """Read the tree again and show it."""
        growth = self._growth
        self.screen.show(
            self._reader.read(
                self._size(),
                growth=growth,
                scroll=self.screen.scroll,
                marked=self.screen.marked,
                hoist=self._hoist,
            )
        )
        self.screen.activity = ""
        if growth is not None and not growth.is_over:
            here = "" if growth.source == self.session.current_node_id else " elsewhere"
            find = self.session.loom_tree.find
            left = [each for each in growth.branches if not (each.node and find(each.node))]
            self.screen.activity = (
                f"{self._spinner()} {len(left)} growing{here} · {growth.tokens} tok · Esc stops"
            )

    def _spinner(self) -> str:
        if not self._is_animated:
            return STILL
        return SPINNER[int(self._clock.monotonic() * FRAMES_PER_SECOND) % len(SPINNER)]

    def carry_out(self, commands: Sequence[ViewCommand]) -> None:
        """Do what is asked for; what goes wrong is told."""
        for command in commands:
            try:
                getattr(self, f"_do_{command.do}")(command)
            except SessionStopped:
                # Unloaded, because nothing was done for long: it is opened again where we are.
                self.screen.refuse("the tree was put away; it is opened again, press once more")
                self._start(partial(self._open, self.session.current_node_id))
            except WeftError as error:
                self.screen.refuse(str(error))

    def _start(self, work: Callable[[], Awaitable[None]]) -> None:
        assert self.group is not None
        self.group.start_soon(self._guarded, work)

    async def follow(self) -> None:
        """Show what others do to the tree: another process that has it, a turn of its session."""
        seen = -1
        while True:
            await anyio.sleep(LOOK_SECONDS)
            now = self.session.loom_tree.state.seq
            if now != seen:
                seen = now
                self._changed()

    async def settle(self) -> None:
        """Stop what grows, and wait until what has come of it is stored."""
        run, self._run = self._run, None
        if run is not None:
            await run.aclose()

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except WeftError as error:
            self.screen.notice = str(error)
        self.refresh()
        self._changed()

    @property
    def _panels(self) -> PanelMaker:
        return PanelMaker(self.session, self._reader)

    # -- moving

    def _do_parent(self, command: ViewCommand) -> None:
        current = self.session.current_node_id
        parent = self.session.loom_tree.parent(current)
        if current == self._hoist:
            self.screen.notice = "this is the hoisted node; Z shows the whole tree again"
        elif parent is not None:
            self.session.go(parent)

    def _do_sibling(self, command: ViewCommand) -> None:
        current = self.session.current_node_id
        children = self._reader.ordered(current)
        chosen = self.session.selected_child(current)
        if chosen is not None:
            place = (children.index(chosen) + command.number) % len(children)
            self.session.go(current, children[place])

    def _do_go(self, command: ViewCommand) -> None:
        if command.node is not None:
            if self._hoist is not None and self._hoist not in self.session.loom_tree.line(
                command.node
            ):
                self._hoist = None
            self.session.go(command.node)

    def _do_fork(self, command: ViewCommand) -> None:
        tree = self.session.loom_tree
        walk = TreeWalk(tree, self._hoist or tree.root_id, self._reader.ordered)
        found = walk.next_fork(self.session.current_node_id, command.number)
        if found is None:
            self.screen.notice = "there is no other fork"
        else:
            self.session.go(found)

    def _do_first(self, command: ViewCommand) -> None:
        self.session.go(self._hoist or self.session.root_id)

    def _do_last(self, command: ViewCommand) -> None:
        at = self.session.current_node_id
        while (child := self.session.selected_child(at)) is not None:
            at = child
        self.session.go(at)

    def _do_next_bookmark(self, command: ViewCommand) -> None:
        if not self.session.loom_tree.bookmarks():
            self.screen.notice = "there is no bookmark yet; b makes one"
            return
        self._hoist = None
        self.session.next_bookmark()

    def _do_hoist(self, command: ViewCommand) -> None:
        node = command.node or self.session.current_node_id
        is_off = self._hoist == node or (command.node is None and self._hoist is not None)
        self._hoist = None if is_off or node == self.session.root_id else node
        if self._hoist is not None and node not in self.session.loom_tree.line(
            self.session.current_node_id
        ):
            self.session.go(node)
        self.screen.notice = "only what is below this node" if self._hoist else "the whole tree"

    def _do_switch(self, command: ViewCommand) -> None:
        reference = command.text or ""
        if self.session.loom_tree.find(reference) is not None:
            self._do_go(ViewCommand("go", node=NodeId(reference)))
            return
        if self.screen.activity:
            raise UsageError("branches grow here; Esc stops them, then another tree can be opened")
        self._start(lambda: self._open(reference))

    async def _open(self, reference: str) -> None:
        await self._take(*await open_tree(self._app, reference))

    async def _take(self, session: LoomSession, said: str) -> None:
        before, self.session = self.session, session
        self._reader = SceneReader(session)
        self._growth = self._hoist = self.screen.marked = None
        self.screen.notice = said or self.screen.notice
        with suppress(SessionStopped):
            await before.aclose()

    def _do_write(self, command: ViewCommand) -> None:
        """Open a tree to be written that could only be read, if no other process has it now."""
        if self.session.read_only:
            self._start(self._open_to_write)

    async def _open_to_write(self) -> None:
        session, _ = await open_tree(self._app, self.session.current_node_id)
        if session.read_only:
            await session.aclose()
            return
        await self._take(session, "no other process has it any more; press once more")

    # -- growing

    def _do_generate(self, command: ViewCommand) -> None:
        session = self.session
        if command.cut is not None:
            self._cut(command.cut)
        number = command.number or None
        tokens = SHORT_TOKENS if command.is_short else None
        run = session.generate(n_branches=number, max_tokens=tokens)
        plan = [
            msgspec.structs.replace(each, n_branches=number or each.n_branches)
            for each in session.model_plan
        ]
        growth = BranchGrowth(session.current_node_id, plan)
        # At once: the next key may be a move, and the branches belong here.
        run.begin()
        self._growth, self._run = growth, run

        async def grow() -> None:
            told = ""
            async for event in run:
                told = growth.take(event)
                self._changed()
            if self._growth is growth and told:
                self.screen.notice = told

        self._start(grow)

    def _cut(self, position: int) -> None:
        """Stand at the beginning of the target's text."""
        session = self.session
        if session.selected_child() is None:
            at = session.current_node_id
            parent = session.loom_tree.parent(at)
            if parent is None:
                raise UsageError("the root is not cut")
            session.go(parent, at)
        chosen = session.selected_child()
        if session.truncate_selected_child(position) is None and chosen is not None:
            session.go(chosen)

    def _do_stop(self, command: ViewCommand) -> None:
        self.session.cancel()
        if self._growth is not None and self._growth.is_over:
            # The rows of those that failed have been read.
            self._growth = None

    def _do_open_tokens(self, command: ViewCommand) -> None:
        if command.node is None:
            return
        found = self._panels.tokens(command.node)
        if isinstance(found, TokenCursor):
            self.screen.tokens = found
            return
        self.screen.notice = found
        if not self.session.read_only and not self.session.tree_settings().logprobs:
            self.session.set_logprobs(ALTERNATIVES)
            self.screen.notice = f"{found}; from now on they are asked for"

    def _do_branch_at_token(self, command: ViewCommand) -> None:
        self.session.branch_at_token(command.node or "", command.number, command.text)
        self.screen.notice = "a new branch begins here; Space grows it"

    # -- text

    def _do_edit(self, command: ViewCommand) -> None:
        if command.node is None or command.text is None:
            return
        edited = self.session.edit_node_text(command.node, command.text, fork=command.is_fork)
        self.screen.notice = "nothing was changed" if edited is None else "changed; u undoes it"

    def _do_editor(self, command: ViewCommand) -> None:
        session = self.session
        original = session.loom_tree.full_text(session.current_node_id)

        async def edit() -> None:
            written = await self._edit(original)
            if written is None:
                return
            # Editors end a file with a newline, whether the text had one or not.
            if not original.endswith("\n"):
                written = written.removesuffix("\n")
            node = session.apply_edit(original, written)
            self.screen.notice = "nothing was changed" if node is None else "changed; u undoes it"

        self._start(edit)

    def _do_undo(self, command: ViewCommand) -> None:
        if not self.session.loom_tree.can_undo:
            self.screen.notice = "there is nothing to undo"
            return
        self.session.loom_tree.undo()
        self.screen.notice = "undone"

    def _do_context(self, command: ViewCommand) -> None:
        self.session.update_context(command.text or "")
        self.screen.notice = "models are told this from here on" if command.text else "no context"

    def _do_compare(self, command: ViewCommand) -> None:
        self.screen.open(self._panels.compare(command.node or "", command.other or ""))
        self.screen.marked = None

    def _do_open_weave(self, command: ViewCommand) -> None:
        self.screen.open(self._panels.weave(command.node or "", command.other or ""))

    def _do_weave(self, command: ViewCommand) -> None:
        self.session.weave(command.node or "", command.other or "", command.picks)
        self.screen.marked = None
        self.screen.notice = "woven into this one; u undoes it"

    # -- nodes

    def _do_delete(self, command: ViewCommand) -> None:
        session = self.session
        if command.node == session.current_node_id:
            parent = session.loom_tree.parent(session.current_node_id)
            if parent is None:
                raise UsageError("the root stays: a tree needs one")
            session.go(parent, command.node)
        if session.selected_child() == command.node and session.delete_selected_child():
            self.screen.notice = "deleted; u brings it back"

    def _do_bookmark(self, command: ViewCommand) -> None:
        is_marked = self.session.toggle_bookmark(command.node)
        self.screen.notice = "bookmarked" if is_marked else "no longer bookmarked"

    def _do_rate(self, command: ViewCommand) -> None:
        self.session.rate(command.number or None, command.node)

    def _do_name(self, command: ViewCommand) -> None:
        self.session.label((command.text or "").strip(), command.node)

    def _do_coding(self, command: ViewCommand) -> None:
        async def fork() -> None:
            node = self.session.current_node_id
            await self.session.save()
            home = await self.session.store.session_of(node)
            made = await self._app.sessions.fork_session(home, at=node)
            # A tree no longer: lists of trees leave it out, and it works as any other.
            await made.set_mode("normal")
            self.screen.notice = f"weft -r {made.id} opens it as a coding session"
            self.made.append(made.id)

        self._start(fork)

    # -- panels

    def _do_open_models(self, command: ViewCommand) -> None:
        self.screen.open(PlanPanel(self.session.model_plan, self.session.tree_settings().logprobs))

    def _do_plan(self, command: ViewCommand) -> None:
        self.session.set_model_plan(command.plan)
        self.session.set_logprobs(command.logprobs)

    def _do_add_model(self, command: ViewCommand) -> None:
        panel = self.screen.panel
        if not isinstance(panel, PlanPanel):
            return
        add, waiting = panel.add, WaitingPanel("Add a model")
        self.screen.open(waiting, over=True)

        async def choose() -> None:
            models = await self._app.host.available_models()
            self._arrived(waiting, model_question(models, add))

        self._start(choose)

    def _do_open_trees(self, command: ViewCommand) -> None:
        waiting = WaitingPanel("Trees", command.trees.words)
        self.screen.open(waiting)

        async def choose() -> None:
            found = await tree_question(self._app, command.trees, self.session.root_id)
            self._arrived(waiting, found)

        self._start(choose)

    def _arrived(self, waiting: WaitingPanel, found: PickPanel) -> None:
        """The rows of a list have come; one that was left meanwhile is not opened again."""
        if self.screen.panel is not waiting:
            return
        found.filter(waiting.words)
        self.screen.panel = found
        if waiting.is_entered:
            self.carry_out(self.screen.press("enter"))

    def _do_open_tree(self, command: ViewCommand) -> None:
        self.screen.open(self._panels.tree(self._hoist))

    def _do_open_context(self, command: ViewCommand) -> None:
        self.screen.open(self._panels.context())

    def _do_open_prompt(self, command: ViewCommand) -> None:
        self.screen.open(self._panels.prompts())

    def _do_open_reading(self, command: ViewCommand) -> None:
        self.screen.open(self._panels.reading())

    def _do_open_revisions(self, command: ViewCommand) -> None:
        found = self._panels.revisions(command.node) if command.node is not None else None
        if found is None:
            self.screen.notice = "its text was never changed"
        else:
            self.screen.open(found)

    def _do_search(self, command: ViewCommand) -> None:
        # Of several searches on their way only the last counts.
        self._search.cancel()
        scope = self._search = anyio.CancelScope()
        panel, words = self.screen.panel, command.text or ""
        roots = None if command.is_wide else [self.session.root_id]

        async def search() -> None:
            with scope:
                await anyio.sleep(SEARCH_SECONDS)
                hits = await hit_rows(self._app, words, roots) if words.strip() else []
                if isinstance(panel, SearchPanel):
                    panel.found(words, hits)

        self._start(search)

    def _do_blind(self, command: ViewCommand) -> None:
        self.session.toggle_model_names()
        shown = self.session.show_model_names
        self.screen.notice = "names are shown" if shown else "names are hidden"

    def _do_quit(self, command: ViewCommand) -> None:
        self.is_over = True
