"""One view of a text tree: where it stands, what is selected, and what is generated there.

All calls but `generate` are plain: they change the view in memory and hand what is to be kept to
the session.  Any number of views can be open on one tree; place, selection, hoist and view mode are
each view's own, settings are the tree's, and the last one who sets them wins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.errors import NodeElsewhere, NodeNotFound, StaleEdit, UsageError
from weft.events import Fact, NodeMarked, SettingChanged
from weft.ids import NodeId, derived_id
from weft.loom.loom_state import LoomState, ModelPrompt, ViewMode
from weft.loom.model_plan import (
    ModelPlanEntry,
    clamped_branches,
    clamped_temperature,
    clamped_tokens,
)
from weft.loom.node import (
    BOOKMARK,
    CHECKED_OUT,
    CONTEXT,
    LOGPROBS,
    LOOM,
    LoomNode,
    TextSegment,
    blinded,
)
from weft.loom.tree_store import TreeStore
from weft.loom.trees import tree_edits
from weft.loom.trees.child_order import planned_children
from weft.loom.trees.loom_tree import LoomTree
from weft.loom.trees.text_diff import mapped_segments
from weft.loom.trees.tree_settings import plan_of, settings_of, shows_model_names
from weft.providers import Model

if TYPE_CHECKING:
    from weft.loom.branches.generation import GenerationRun, GenerationWork
    from weft.loom.trees.branch_comparison import BranchComparison

ROLES_FOR_HEADERS: Final = 2


class LoomSession:
    """A view of one tree."""

    def __new__(cls, store: Any, start_id: str, *, read_only: bool = False) -> Any:
        """On a store of `weft.sync` it opens the tree, and is a blocking view."""
        if isinstance(store, TreeStore):
            return super().__new__(cls)
        return store.open(start_id, read_only=read_only)

    def __init__(self, store: TreeStore, start_id: str, *, read_only: bool = False) -> None:
        """`start_id` is any node, or a unique beginning of an id; a root opens where the tree was
        left.  The tree must be loaded: `await store.open(start_id)` does both.

        Raises:
            NodeNotFound: there is no such node among the loaded trees.
            AmbiguousId: several begin so.
            UsageError: another process has the tree, and it is not opened to be read only.
        """
        tree, start = store.loaded(start_id)
        self._begin(store, tree, start, read_only=read_only)

    def _begin(self, store: TreeStore, tree: LoomTree, start: NodeId, *, read_only: bool) -> None:
        if not read_only:
            tree.check_writable()
        self._store = store
        self._tree = tree
        self.read_only = read_only
        tree.views += 1
        self._current = tree.active_node() if start == tree.root_id else start
        self._selected: dict[NodeId, NodeId] = {}
        self._hoist: NodeId | None = None
        self._view_mode: ViewMode = "branch"
        self._chat_headers = True
        self._is_blind = False
        self._run: GenerationWork | None = None
        self._is_closed = False

    # -- reading

    @property
    def store(self) -> TreeStore:
        """The store of all trees."""
        return self._store

    @property
    def root_id(self) -> NodeId:
        """The root of the tree, by the id that opens it."""
        return self._tree.tree_id

    @property
    def current_node_id(self) -> NodeId:
        """Where the view stands: at the nearest node above, where its own was deleted."""
        return self._tree.shown_id(self._here)

    @property
    def _here(self) -> NodeId:
        """The same, by the id that the tree has it under."""
        at: NodeId | None = self._current
        while at is not None and self._tree.find(at) is None:
            held = self._tree.tree.nodes.get(at)
            at = held.parent if held is not None else None
        self._current = at or self._tree.root_id
        return self._current

    def get_state(self) -> LoomState:
        """The view as it is now."""
        tree, current = self._tree, self._here
        children = self._children(current)
        index = self._selected_index(current, children)
        line = tree.shown_line(current)
        lineage = line.segments
        tree.look(children)
        below = self._continuation(children[index]) if children else []
        first, plan = self._first_entry(), self.model_plan
        used = tree.state.ledger.total
        return LoomState(
            current_node_id=tree.shown_id(current),
            current_node=self._shown(current),
            full_text=line.text,
            children=tuple(self._shown(child) for child in children),
            selected_child_idx=index,
            descendant_counts={
                tree.shown_id(each): tree.descendant_count(each) for each in (current, *children)
            },
            continuation_text="".join(each.text for each in below),
            model=first.model,
            max_tokens=first.max_tokens,
            temperature=first.temperature,
            n_branches=self.n_branches,
            context=line.context or "",
            root_id=tree.tree_id,
            view_mode=self._view_mode,
            hoisted_node_id=None if self._hoist is None else tree.shown_id(self._hoist),
            tree_nodes=self._tree_nodes() if self._view_mode == "tree" else None,
            show_model_names=self.show_model_names,
            model_plan=plan,
            usage=used,
            cost=used.cost_usd,
            pricing_complete=used.cost_usd is not None,
            name=tree.name,
            lineage_segments=lineage,
            continuation_segments=tuple(below),
            render_chat_headers=self._chat_headers and self._has_roles(lineage),
            can_undo=tree.can_undo,
            is_generating=self._run is not None,
            is_blind=self._is_blind,
        )

    def _children(self, node: NodeId) -> tuple[NodeId, ...]:
        """The children of a node in the order in which this view shows them."""
        return tuple(self._in_order(self._tree.children(node)))

    def _in_order(self, children: Sequence[NodeId]) -> Sequence[NodeId]:
        if not self._is_blind:
            return children
        # Always the same, and nothing that the order of the plan tells.
        return sorted(children, key=lambda each: derived_id("nod", each))

    def _walked(self, tops: Sequence[NodeId]) -> Iterator[NodeId]:
        ahead = [top for top in reversed(tops) if self._tree.find(top) is not None]
        while ahead:
            node = ahead.pop()
            yield node
            ahead += reversed(self._children(node))

    def _shown(self, node: NodeId) -> LoomNode:
        """A node as this view shows it."""
        found = self._tree.node(node)
        return blinded(found) if self._is_blind else found

    def _segments(self, texts: Sequence[tuple[NodeId, str]]) -> list[TextSegment]:
        return [TextSegment(text, self._role(node), node) for node, text in texts]

    def _role(self, node: NodeId) -> str | None:
        marks = self._tree.marks(node)
        role = marks.get("role") if LOOM in marks else self._tree.tree.nodes[node].role
        return role if isinstance(role, str) else None

    def _has_roles(self, lineage: Sequence[TextSegment]) -> bool:
        # Newest first: a conversation shows both in its last two messages.
        seen: set[str] = set()
        for each in reversed(lineage):
            if each.role:
                seen.add(each.role)
                if len(seen) == ROLES_FOR_HEADERS:
                    return True
        return False

    def _continuation(self, child: NodeId) -> list[TextSegment]:
        """The segments below a child, along what was selected last."""
        tree, below = self._tree, list[NodeId]()
        at = child
        while (chosen := self._chosen(at)) is not None:
            at = chosen
            below.append(at)
        tree.look(below)
        return self._segments([(each, tree.text(each)) for each in below])

    def _tree_nodes(self) -> tuple[LoomNode, ...]:
        nodes = self._tree.all_nodes()
        if self._is_blind:
            nodes = list(self._walked(self._tree.tree.roots))
        if self._hoist is not None and self._tree.find(self._hoist) is not None:
            inside = set(self._tree.subtree(self._hoist))
            nodes = [node for node in nodes if node in inside]
        return tuple(self._shown(node) for node in nodes)

    # -- moving

    def navigate_child(self) -> LoomState:
        """Go into the selected child; a leaf has none."""
        current = self._here
        children = self._children(current)
        if children:
            child = children[self._selected_index(current, children)]
            self._go(child, {current: child})
        return self.get_state()

    def navigate_parent(self) -> LoomState:
        """Go up; the child that was left is selected there."""
        left = self._here
        parent = self._tree.parent(left)
        if parent is not None:
            self._go(parent, {parent: left})
        return self.get_state()

    def select_sibling(self, by: int) -> LoomState:
        """Select another child of the current node, so many further; both ends meet."""
        current = self._here
        children = self._children(current)
        if children:
            index = (self._selected_index(current, children) + by) % len(children)
            self._go(current, {current: children[index]})
        return self.get_state()

    def checkout(self, node_id: str) -> LoomState:
        """Go to any node of this tree.

        Raises:
            NodeNotFound: there is none of this id.
            NodeElsewhere: it belongs to another tree.
        """
        self._move_to(self._own(node_id))
        return self.get_state()

    def _own(self, reference: str) -> NodeId:
        try:
            return self._tree.resolve(reference)
        except NodeNotFound:
            if reference and self._store.is_elsewhere(reference, self._tree):
                raise NodeElsewhere(reference, self._tree.tree_id) from None
            raise

    def _move_to(self, node: NodeId) -> None:
        line = self._tree.line(node)
        self._go(node, dict(pairwise(line)))

    def _go(self, to: NodeId, selections: Mapping[NodeId, NodeId]) -> None:
        """Stand at a node with these children selected, and have both remembered."""
        tree, facts = self._tree, list[Fact]()
        for parent, child in selections.items():
            self._selected[parent] = child
            if tree.marks(parent).get(CHECKED_OUT) != child:
                facts.append(NodeMarked(node=parent, mark=CHECKED_OUT, value=child))
        self._current = to
        if tree.setting("loom_active") != to:
            facts.append(SettingChanged(name="loom_active", value=to))
        if not self.read_only:
            tree.write(facts)

    def go(self, to: NodeId, selected: NodeId | None = None) -> None:
        """Stand at a node, with one of its children selected: what the moves above do, without the
        state, which takes the longer the deeper the tree is.  A step is from the current node to
        its parent or a child of it, or stays there; any further one selects its whole line.

        Raises:
            NodeNotFound: one of them is not there.
        """
        tree, current = self._tree, self.current_node_id
        held = tree.require(to)
        chosen = dict[NodeId, NodeId]()
        if selected is not None:
            tree.require(selected)
            chosen[to] = selected
        if to == current:
            self._go(to, chosen)
        elif to == tree.parent(current):
            self._go(to, {to: current, **chosen})
        elif held.parent == current:
            self._go(to, {current: to, **chosen})
        else:
            self._go(to, {**dict(pairwise(tree.line(to))), **chosen})

    def selected_child(self, node: NodeId | None = None) -> NodeId | None:
        """The selected child of a node (the current one); None where it has none."""
        at = self.current_node_id if node is None else node
        return self._chosen(at)

    def _chosen(self, node: NodeId) -> NodeId | None:
        """The selected child, without a look at its siblings where none is needed."""
        children = self._tree.tree.children(node)
        own = self._selected.get(node)
        stored = self._tree.checked_out_child(node)
        if not children or own in children:
            return own if children else None
        if own is None and stored in children:
            return stored
        if own is None and not self._is_blind:
            return self._tree.orders.first(node, self._tree.tree)
        ordered = self._children(node)
        return ordered[self._selected_index(node, ordered)]

    def _place_of_gone(self, parent: NodeId, gone: NodeId, children: Sequence[NodeId]) -> int:
        """How many of the children stand before one that is deleted."""
        nodes = self._tree.tree.nodes
        every = self._in_order(
            [each for each, _, _ in planned_children(nodes[parent].children, nodes)]
        )
        living = set(children)
        return sum(each in living for each in takewhile(lambda each: each != gone, every))

    def _selected_index(self, parent: NodeId, children: Sequence[NodeId]) -> int:
        own = self._selected.get(parent)
        if own in children:
            return children.index(own)
        if own is not None and children:
            return min(self._place_of_gone(parent, own, children), len(children) - 1)
        stored = self._tree.checked_out_child(parent)
        return children.index(stored) if stored in children else 0

    # -- the view

    def toggle_tree_view(self) -> LoomState:
        """Show the whole tree, or the branch again."""
        self._view_mode = "branch" if self._view_mode == "tree" else "tree"
        return self.get_state()

    def toggle_model_names(self) -> LoomState:
        """Show or hide who wrote what; a setting of the tree."""
        self._settle_setting("show_model_names", not self.show_model_names)
        return self.get_state()

    def toggle_chat_headers(self) -> LoomState:
        """Show or hide the roles in a tree that has several."""
        self._chat_headers = not self._chat_headers
        return self.get_state()

    def toggle_blind(self) -> LoomState:
        """Hide who wrote what, or show it again: of this view alone, and nothing that is stored.

        Models, settings and costs of nodes are not shown, and siblings stand in an order that does
        not tell.
        """
        self._is_blind = not self._is_blind
        return self.get_state()

    def toggle_hoist(self) -> LoomState:
        """Show only what is below the current node; at the node that is hoisted, all again."""
        current = self._here
        self._hoist = None if self._hoist == current else current
        return self.get_state()

    # -- marks

    def toggle_bookmark(self, node_id: str | None = None) -> bool:
        """Mark a node (the current one), or take the mark away; returns whether it has it now."""
        node = self._named(node_id)
        marked = not self._tree.marks(node).get(BOOKMARK)
        self._mark(node, {BOOKMARK: marked})
        return marked

    def next_bookmark(self) -> LoomState:
        """Go to the next marked node, in the order in which nodes came; after the last the first.

        Without a mark it stays where it is.
        """
        marked, current = self._tree.bookmarks(), self._here
        if marked:
            here = self._tree.age_of(current)
            later = [node for node in marked if self._tree.age_of(node) > here]
            self._move_to(later[0] if later else marked[0])
        return self.get_state()

    def rate(self, rating: int | None, node_id: str | None = None) -> LoomNode:
        """Rate a node (the current one); None takes the rating away."""
        node = self._named(node_id)
        self._mark(node, {"rating": rating})
        return self._tree.node(node)

    def label(self, text: str | None, node_id: str | None = None) -> LoomNode:
        """Name a node (the current one); None takes the name away."""
        node = self._named(node_id)
        self._mark(node, {"label": text or None})
        return self._tree.node(node)

    def _mark(self, node: NodeId, marks: Mapping[str, Any]) -> None:
        self._check_writable()
        tree_edits.mark(self._tree, node, marks)

    def _named(self, node_id: str | None) -> NodeId:
        return self._here if node_id is None else self._own(node_id)

    # -- settings

    @property
    def model_plan(self) -> tuple[ModelPlanEntry, ...]:
        """The models that the next generation uses."""
        return plan_of(self._tree, self._store.default_entry())

    def _first_entry(self) -> ModelPlanEntry:
        plan = self.model_plan
        return next((each for each in plan if each.enabled), plan[0])

    @property
    def model(self) -> str:
        """The first enabled model."""
        return self._first_entry().model

    @property
    def max_tokens(self) -> int:
        """The longest branch of the first enabled model."""
        return self._first_entry().max_tokens

    @property
    def temperature(self) -> float:
        """The temperature of the first enabled model."""
        return self._first_entry().temperature

    @property
    def n_branches(self) -> int:
        """How many branches the next generation has."""
        return sum(each.n_branches for each in self.model_plan if each.enabled)

    @property
    def show_model_names(self) -> bool:
        """Whether views of this tree show who wrote what."""
        return shows_model_names(self._tree)

    @property
    def branches_per_model(self) -> int:
        """How many branches the first enabled model has."""
        return self._first_entry().n_branches

    def set_model(self, model: str | Model) -> LoomState:
        """Another model in place of the first enabled one: a name, or a model of the program's."""
        return self._change_first(model=self._store.model_name(model))

    def set_max_tokens(self, tokens: int) -> LoomState:
        """The longest branch of the first enabled model, 10 to 8,000 tokens."""
        return self._change_first(max_tokens=clamped_tokens(tokens))

    def set_temperature(self, temperature: float) -> LoomState:
        """The temperature of the first enabled model, 0 to 2."""
        return self._change_first(temperature=clamped_temperature(temperature))

    def set_n_branches(self, branches: int) -> LoomState:
        """So many branches of every enabled model, 1 to 64."""
        number = clamped_branches(branches)
        plan = [
            msgspec.structs.replace(each, n_branches=number) if each.enabled else each
            for each in self.model_plan
        ]
        return self._keep_plan(plan)

    def set_model_plan(self, plan: Sequence[Mapping[str, Any] | ModelPlanEntry]) -> LoomState:
        """Other models; what an entry leaves out is as the settings have it for its model.

        Raises:
            InvalidPlan: fields of it are wrong; nothing is changed.
        """
        return self._keep_plan(self._store.checked_plan(plan))

    def apply_config_patch(self, patch: Mapping[str, Any]) -> LoomState:
        """Change several settings at once, all of them or none: `model_plan`, or `model`,
        `max_tokens`, `temperature` and `n_branches` as their setters do; `show_model_names`,
        `logprobs`, `name`, `context`.  It is undone as one.

        Raises:
            InvalidPlan: fields of it are wrong; nothing is changed.
        """
        from weft.loom.trees.config_patch import apply_patch  # screens with a form do it

        self._check_writable()
        apply_patch(self, patch)
        return self.get_state()

    def _change_first(self, **changes: Any) -> LoomState:
        plan = list(self.model_plan)
        first = next((at for at, each in enumerate(plan) if each.enabled), 0)
        plan[first] = msgspec.structs.replace(plan[first], **changes)
        return self._keep_plan(plan)

    def _keep_plan(self, plan: Sequence[ModelPlanEntry]) -> LoomState:
        self._settle_setting("model_plan", [msgspec.to_builtins(each) for each in plan])
        return self.get_state()

    def set_logprobs(self, number: int) -> LoomState:
        """Ask models for so many alternatives of each token; 0 asks for none."""
        self._settle_setting("logprobs", max(0, min(int(number), 20)) or None)
        return self.get_state()

    def _settle_setting(self, name: str, value: Any) -> None:
        self._check_writable()
        tree_edits.change_settings(self._tree, {name: value})

    def tree_settings(self) -> Any:
        """The settings of the tree."""
        return settings_of(self._tree, self._store.default_entry())

    def update_context(self, text: str) -> LoomState:
        """What models are told beside the text, from the current node on; "" clears it, one that
        is inherited too.
        """
        self._mark(self._here, {CONTEXT: text})
        return self.get_state()

    def prompt_entries(self) -> tuple[ModelPrompt, ...]:
        """What each enabled model would be sent now."""
        from weft.loom.branches.branch_request import shown_prompt  # few look at it
        from weft.loom.continuation import ContinuationOptions

        current = self._here
        text, context = self._tree.sent_text(current), self._tree.context_of(current)
        found: list[ModelPrompt] = []
        for entry in self.model_plan:
            if entry.enabled:
                options = ContinuationOptions(
                    max_tokens=entry.max_tokens, temperature=entry.temperature, context=context
                )
                info = self._store.model_info(entry.model)
                strategy, parts = shown_prompt(info, entry.strategy, text, options)
                found.append(ModelPrompt(entry.model, strategy, parts))
        return tuple(found)

    # -- generating

    def generate(
        self,
        max_context_tokens: int | None = None,
        *,
        stop_when: str = "",
        adaptive: bool | float = False,
        n_branches: int | None = None,
        max_tokens: int | None = None,
    ) -> GenerationRun:
        """Branches of the current node by all enabled models at once: the tokens as they come, then
        exactly one closing event.

        New nodes go under the node that it started from, wherever the view goes meanwhile.  Leaving
        the loop early cancels; what was paid for is kept as partial nodes.  `stop_when="$0.50"`
        ends a race at a cost, `stop_when="2 done"` when so many branches are finished (`"first"`:
        one), `"2 done, $0.50"` at whichever comes first.
        `n_branches` (of each enabled model) and `max_tokens` hold for this time in the place of the
        plan's.

        `adaptive` has all branches of a model but its first begin where that one was undecided:
        they share its text up to a token that could as well have been another one (True, or the
        widest gap between the two logprobs).  Models that report no probabilities write all
        branches independently.

        Raises:
            UsageError: this view generates already, or can only be read.
        """
        from weft.loom.branches.generation import run_branches  # only where something is generated

        self._check_writable()
        if self._run is not None:
            raise UsageError("this view generates already; cancel it, or open another view")
        plan = [each for each in self.model_plan if each.enabled]
        if n_branches is not None:
            number = clamped_branches(n_branches)
            plan = [msgspec.structs.replace(each, n_branches=number) for each in plan]
        if max_tokens is not None:
            most = clamped_tokens(max_tokens)
            plan = [msgspec.structs.replace(each, max_tokens=most) for each in plan]
        is_changed = n_branches is not None or max_tokens is not None
        return run_branches(
            self,
            max_context_tokens,
            stop_when=stop_when,
            adaptive=adaptive,
            plan=plan if is_changed else None,
        )

    def cancel(self, *, keep_partial: bool = True) -> None:
        """Stop generating at once; text that was paid for is kept as partial nodes."""
        if self._run is not None:
            self._run.cancel(keep_partial=keep_partial)

    def begun(self, run: GenerationWork | None) -> None:
        """A generation of this view has begun, or (None) ended."""
        self._run = run

    def show_new(self, source: NodeId, new: Sequence[NodeId]) -> None:
        """After a generation: the first new child is selected, and where the view still stands at
        the source and there is one child, it goes there.
        """
        living = [node for node in new if self._tree.find(node) is not None]
        if not living or self._is_closed or self._tree.find(source) is None:
            return
        if self._here == source and len(living) == 1:
            self._go(living[0], {source: living[0]})
        else:
            self._go(self._here, {source: living[0]})

    @property
    def loom_tree(self) -> LoomTree:
        """The tree itself."""
        return self._tree

    # -- editing

    def apply_edit(self, original: str, edited: str, *, fork: bool = False) -> LoomNode | None:
        """The text from the root to the current node, edited; None if nothing changed.

        The segments that it touches get new revisions, and this line goes on from them; other
        branches keep the text that they grew from.  With `fork` the line from the first of them on
        is written anew as other nodes.

        Raises:
            StaleEdit: `original` is not the text on record; nothing is written.
        """
        self._check_writable()
        tree, current = self._tree, self._here
        texts = tree.line_texts(current)
        if original != "".join(text for _, text in texts):
            raise StaleEdit("the text has changed since it was read; read it again and edit that")
        if original == edited:
            return None
        mapped = mapped_segments([text for _, text in texts], edited)
        changed = [number for number, (_, text) in enumerate(texts) if text != mapped[number]]
        if not fork:
            tree_edits.revise_line(tree, {texts[at][0]: mapped[at] for at in changed}, current)
            return tree.node(current)
        line = [node for node, _ in texts]
        copied = tree_edits.fork_line(tree, line, mapped, changed[0])
        self._move_to(copied)
        return tree.node(copied)

    def edit_node_text(self, node_id: str, text: str, *, fork: bool = False) -> LoomNode | None:
        """Another text for one node: a new revision, or with `fork` a sibling that is selected.
        None if nothing changed.

        Its children keep the revision that they grew from.
        """
        self._check_writable()
        tree, node = self._tree, self._own(node_id)
        if tree.text(node) == text:
            return None
        if not fork:
            tree_edits.revise(tree, node, text)
            return tree.node(node)
        line = tree.line(node)
        texts = [each for _, each in tree.line_texts(node)[:-1]]
        copied = tree_edits.fork_line(tree, line, [*texts, text], len(line) - 1)
        self._move_to(copied)
        return tree.node(copied)

    def split_node(self, node_id: str, position: int) -> tuple[LoomNode, LoomNode]:
        """Cut a node in two; the first part keeps the id, the second gets the children."""
        self._check_writable()
        node = self._own(node_id)
        tail = tree_edits.split(self._tree, node, position)
        if self._here == node:
            self._go(node, {node: tail})
        return self._tree.node(node), self._tree.node(tail)

    def join_with_parent(self, node_id: str | None = None) -> LoomNode:
        """Join a node (the current one) with its parent, which takes its text and children."""
        self._check_writable()
        node = self._named(node_id)
        parent = tree_edits.join(self._tree, node)
        if self._current == node:
            self._go(parent, {})
        return self._tree.node(parent)

    def branch_at_token(self, node_id: str, index: int, alternative: str | None = None) -> LoomNode:
        """A sibling of a node that is the same up to a token, and then has what could have stood
        there: the likeliest other one, or `alternative`.  The view goes there.

        Raises:
            UsageError: the model reported no tokens (`set_logprobs`, and not all models can), there
                is no such token, or no alternative to it.
        """
        from weft.loom.branches.token_scores import text_with_alternative

        self._check_writable()
        own = self._own(node_id)
        node, parent = self._tree.node(own), self._tree.parent(own)
        scores = self._tree.words.scores(self._tree.marks(own).get(LOGPROBS))
        if scores is None or parent is None:
            raise UsageError(
                f"the tokens of {node.id!r} are not known: its model reports none, or was not asked"
            )
        text = text_with_alternative(node.text, scores, index, alternative)
        new = tree_edits.add_child(
            self._tree,
            parent,
            text,
            model=node.model or "",
            strategy=node.strategy,
            metadata={"branched_from": node.id, "token": index},
        )
        self._move_to(new)
        return self._tree.node(new)

    def truncate_selected_child(self, position: int) -> LoomNode | None:
        """A sibling of the selected child with its beginning alone, and go there; None where that
        is empty or the whole.
        """
        self._check_writable()
        current = self._here
        children = self._children(current)
        if not children:
            return None
        child = self._tree.node(children[self._selected_index(current, children)])
        kept = child.text[: max(0, position)]
        if not kept or kept == child.text:
            return None
        new = tree_edits.add_child(
            self._tree,
            current,
            kept,
            model=child.model or "",
            strategy=child.strategy,
            max_tokens=child.max_tokens,
            temperature=child.temperature,
            metadata={"truncated_from": child.id},
        )
        self._go(new, {current: new})
        return self._tree.node(new)

    def delete_selected_child(self) -> bool:
        """Delete the selected child and all below it; False where there is none."""
        self._check_writable()
        current = self._here
        children = self._children(current)
        if not children:
            return False
        index = self._selected_index(current, children)
        tree_edits.delete(self._tree, children[index])
        left = self._children(current)
        if left:
            self._go(current, {current: left[min(index, len(left) - 1)]})
        return True

    def undo(self) -> LoomState:
        """Take the last change of this tree back, whichever view made it."""
        self._check_writable()
        self._tree.undo()
        return self.get_state()

    def compare(self, first_id: str, second_id: str) -> BranchComparison:
        """Two branches side by side, from where they part."""
        from weft.loom.trees.branch_comparison import compare_branches  # few compare

        return compare_branches(self._tree, self._own(first_id), self._own(second_id))

    def weave(
        self,
        first_id: str,
        second_id: str,
        picks: Sequence[tuple[int, int]] | None = None,
    ) -> LoomNode:
        """One child out of two branches, under the node where they part: paragraphs of the first
        (0) and the second (1) in the order of `picks`, or all of the first and what only the second
        has.  It names both.

        Raises:
            UsageError: there is no such paragraph, or one branch is above the other.
        """
        from weft.loom.trees.branch_comparison import woven_text

        self._check_writable()
        first, second = self._own(first_id), self._own(second_id)
        above, text = woven_text(self._tree, first, second, picks)
        new = tree_edits.add_child(
            self._tree,
            above,
            text,
            strategy="weave",
            metadata={"parents": [first, second]},
        )
        self._move_to(new)
        return self._tree.node(new)

    # -- life

    def _check_writable(self) -> None:
        if self.read_only:
            raise UsageError("this view was opened to be read only")

    def save(self) -> asyncio.Future[None]:
        """Done when all that was changed is durable; it need not be awaited."""
        return self._tree.saved()

    async def aclose(self) -> None:
        """Stop generating, wait until everything is durable, and let go of the tree."""
        if self._is_closed:
            return
        self._is_closed = True
        self.cancel()
        if not self.read_only:
            await self._tree.saved()
        self._tree.views -= 1
        if not self._tree.views:
            self._tree.release()


def view_over(
    store: TreeStore, tree: LoomTree, start: NodeId, *, read_only: bool = False
) -> LoomSession:
    """A view of a tree that was found, which starts at this node.

    Raises:
        UsageError: another process has the tree, and it is not opened to be read only.
    """
    view: LoomSession = object.__new__(LoomSession)
    view._begin(store, tree, start, read_only=read_only)
    return view
