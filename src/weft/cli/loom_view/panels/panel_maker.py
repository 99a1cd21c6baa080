"""Panels made of what a session holds: read once, when they are opened."""

from __future__ import annotations

from weft.cli.chat.paint.styled_text import StyledSpan
from weft.cli.chat.screens.list_question import ListAnswer, ListQuestion, ListRow
from weft.cli.loom_view.focus import TokenCursor
from weft.cli.loom_view.panels.diff_panels import ComparePanel, WeavePanel
from weft.cli.loom_view.panels.list_panels import PickPanel
from weft.cli.loom_view.panels.tree_panel import TreePanel
from weft.cli.loom_view.panels.view_panel import EditPanel, PagesPanel, TextPage
from weft.cli.loom_view.scene_reader import SceneReader
from weft.cli.loom_view.text_rows import plain, short_model, span
from weft.cli.loom_view.view_command import ViewCommand
from weft.cli.sanitize import clean_line
from weft.errors import UsageError
from weft.ids import NodeId
from weft.loom import LoomSession
from weft.loom.boundary_repair import RepairedText
from weft.loom.node import LOGPROBS
from weft.loom.token_places import placed_tokens
from weft.loom.trees.text_diff import paragraphs


class PanelMaker:
    """Makes panels of one session."""

    def __init__(self, session: LoomSession, reader: SceneReader) -> None:
        self._session = session
        self._reader = reader

    def tree(self, hoist: NodeId | None) -> TreePanel:
        """The outline, at the node that the view stands at."""
        session = self._session
        return TreePanel(
            session.loom_tree,
            session.current_node_id,
            current=lambda: session.current_node_id,
            order=self._reader.ordered,
            top=hoist,
            is_blind=not session.show_model_names,
        )

    def context(self) -> EditPanel:
        """What models are told beside the text, to be edited."""
        session = self._session
        return EditPanel(
            "What models are told beside the text, from here on",
            session.loom_tree.context_of(session.current_node_id),
            lambda text, is_fork: ViewCommand("context", text=text),
        )

    def prompts(self) -> PagesPanel:
        """What each model is sent, a page each."""
        pages = []
        for prompt in self._session.prompt_entries():
            spans: list[StyledSpan] = []
            for part in prompt.parts:
                spans.append(span(f"{part.role}\n", "bold you"))
                spans.append(span(f"{part.text}\n\n"))
            title = f"{clean_line(prompt.model) or 'the default model'} · {prompt.strategy}"
            pages.append(TextPage(title, tuple(spans)))
        if not pages:
            raise UsageError("no model is switched on; m switches one on")
        return PagesPanel(pages, about="Prompt")

    def reading(self) -> PagesPanel:
        """The bookmarks in order, each with its line; without any, this line to its end."""
        session = self._session
        tree = session.loom_tree
        marked = tree.bookmarks()
        if marked:
            pages = [self._page(node) for node in marked]
            here = session.current_node_id
            return PagesPanel(
                pages, about="Reading", at=marked.index(here) if here in marked else 0
            )
        at = session.current_node_id
        while (child := session.selected_child(at)) is not None:
            at = child
        return PagesPanel([self._page(at)], about="Reading: no bookmark yet, so this line")

    def _page(self, node: NodeId) -> TextPage:
        tree = self._session.loom_tree
        label = tree.marks(node).get("label")
        title = clean_line(label) if isinstance(label, str) else ""
        texts = tree.line_texts(node)
        above = "".join(text for _, text in texts[:-1])
        own = StyledSpan(plain(texts[-1][1]), "bold" if above else "")
        return TextPage(title, (span(above), own), node)

    def revisions(self, node: NodeId) -> PickPanel | None:
        """The texts that a node has had, the newest first; None where there was only one."""
        tree = self._session.loom_tree
        held = tree.require(node)
        if not held.earlier:
            return None
        texts = [tree.text(node, number) for number in range(held.revision + 1)]
        texts.reverse()
        rows = tuple(
            ListRow(
                " ".join(text.split()) or "(empty)",
                (f"text {len(texts) - number}", "now" if not number else ""),
                is_current=not number,
            )
            for number, text in enumerate(texts)
        )

        def picked(answer: ListAnswer) -> tuple[ViewCommand, ...]:
            return (ViewCommand("edit", node=node, text=texts[answer.row]),)

        question = ListQuestion(
            title="Earlier texts", rows=rows, enter="takes this text again", keeps=(0, 1)
        )
        return PickPanel(question, picked)

    def tokens(self, node: NodeId) -> TokenCursor | str:
        """The tokens of a node; or the sentence that says why there are none."""
        tree = self._session.loom_tree
        held, marks = tree.require(node), tree.marks(node)
        scores = tree.words.scores(marks.get(LOGPROBS))
        if scores is None or not scores.tokens:
            model = tree.node(node).model
            if not model:
                return "no probabilities here: no model wrote this"
            who = short_model(model) if self._session.show_model_names else "its model"
            return f"no probabilities here: {who} gave none"
        if held.revision:
            return "its text was changed since, so the tokens no longer fit"
        raw = "".join(token.text for token in scores.tokens)
        text = tree.text(node)
        placed = placed_tokens(scores.tokens, raw, RepairedText(text, scores.edits))
        return TokenCursor(node=node, tokens=placed) if placed else "it has no token left"

    def compare(self, first: str, second: str) -> ComparePanel:
        """Two branches word by word."""
        compared = self._session.compare(first, second)
        return ComparePanel(compared, (self._named(first), self._named(second)))

    def weave(self, first: str, second: str) -> WeavePanel:
        """The paragraphs of two branches, to choose from."""
        compared = self._session.compare(first, second)
        if compared.ancestor is None or compared.ancestor in (first, second):
            raise UsageError("only branches that part from each other can be woven into one")
        sides = (paragraphs(compared.first_text), paragraphs(compared.second_text))
        return WeavePanel(compared, (self._named(first), self._named(second)), sides)

    def _named(self, node: str) -> str:
        """A node in a few words: its name, its place among its siblings, who wrote it."""
        tree = self._session.loom_tree
        found = NodeId(node)
        label = tree.marks(found).get("label")
        if isinstance(label, str):
            return clean_line(label)
        parent = tree.parent(found)
        place = list(self._reader.ordered(parent)).index(found) + 1 if parent is not None else 0
        model = tree.node(found).model
        shown = short_model(model) if model and self._session.show_model_names else ""
        words = " ".join(tree.text(found)[:60].split())[:24]
        return " ".join(filter(None, [f"▸{place}", shown, f'"{clean_line(words)}…"']))
