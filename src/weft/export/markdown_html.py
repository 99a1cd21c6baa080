"""Markdown to HTML: what models write, as HTML that can do nothing.

markdown-it-py parses it (CommonMark, tables, strikethrough); what comes out is held to less:

- **No markup of the text's own.**  Raw HTML is off: tags are shown as they were typed.  The only
  attributes that come out are the address of a link and the first number of a list.
- **A link leads to `http`, `https` or nowhere,** and an image is shown as its words: nothing is
  fetched.
- **Nothing hides.**  What CommonMark would drop (link definitions) or turn into other characters
  (entities, percent signs in the label of an autolink) stays as it was typed, and what is nested
  too deep is shown as plain text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

DEEPEST: Final = 12
"""Levels of quotes and lists inside each other (a list has two); what is deeper is plain text."""
MOST_BRACKETS: Final = 200
"""Opening brackets of one paragraph; one with more is plain text."""

_ATTRIBUTES: Final = frozenset({"href", "start"})
_SAFE_URL = re.compile(r"https?://")
# The repetition is bounded, so that no text takes longer than its length allows.
_BARE_URL = re.compile(r"https?://[^\s<>\"'`)\]]{1,2000}")


def to_prose(text: str) -> str:
    """The text as HTML."""
    html: str = _parser().render(text)
    return html.rstrip("\n")


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802  # the parser's name
        return _SAFE_URL.match(url) is not None

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802  # as above
        # The parser would decode percent signs here, after the text was cleaned: `%E2%80%AE` in an
        # autolink would become the character that turns the reading direction.
        return link


@cache
def _parser() -> MarkdownIt:
    options = {"html": False, "breaks": True, "xhtmlOut": False, "maxNesting": 100}
    parser = _Markdown("commonmark", options, renderer_cls=_Renderer)
    parser.enable(["table", "strikethrough"])
    # An entity would be decoded after the text was cleaned, like a percent sign, and a definition
    # would vanish from the page.
    parser.disable(["html_block", "html_inline", "entity", "reference"])
    parser.block.ruler.before("table", "too_deep", _too_deep)
    parser.core.ruler.before("inline", "too_many_brackets", _too_many_brackets)
    return parser


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Show what is nested too deep as plain text; the parser's own limit would leave it out."""
    if state.level < DEEPEST:
        return False
    line = start
    # A list hands over all lines of the text: its own are those that are indented enough.
    while line < end and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
        line += 1
    state.push("paragraph_open", "p", 1)
    state.push("plain", "", 0).content = state.getLines(start, line, state.blkIndent, False)
    state.push("paragraph_close", "p", -1)
    state.line = line
    return True


def _too_many_brackets(state: StateCore) -> None:
    """Show a paragraph with very many brackets as plain text: each may begin a link, for each the
    parser looks at all that follow, and the text is not ours (20,000 of them took 8 seconds)."""
    for token in state.tokens:
        if token.type == "inline" and token.content.count("[") > MOST_BRACKETS:
            token.type = "plain"


class _Renderer(RendererHTML):
    """Renders tokens; each public method is named after the type of token that it renders."""

    @staticmethod
    def renderAttrs(token: Token) -> str:  # noqa: N802  # the parser's name
        shown = [(name, value) for name, value in token.attrItems() if name in _ATTRIBUTES]
        return "".join(f' {name}="{escape(str(value))}"' for name, value in shown)

    def plain(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return escape(tokens[idx].content.strip()).replace("\n", "<br>\n")

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        content = tokens[idx].content
        return escape(content) if env.get("in_link") else _with_links(content)

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        content = tokens[idx].content.removesuffix("\n")
        return f"<pre><code>{escape(content)}</code></pre>\n"

    code_block = fence

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        words = self.renderInlineAsText(tokens[idx].children, options, env)
        return f"<em>[image: {escape(words)}]</em>"

    def link_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        env["in_link"] = True
        return _link_to(str(tokens[idx].attrGet("href")))

    def link_close(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        env["in_link"] = False
        return "</a>"

    def heading_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return f"<{_heading(tokens[idx])}>"

    def heading_close(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return f"</{_heading(tokens[idx])}>\n"

    def s_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "<del>"

    def s_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</del>"

    def table_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return '<div class="wide"><table>\n'

    def table_close(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return "</table></div>\n"


def _heading(token: Token) -> str:
    """Two levels below what was written: the page's title and its speakers stand above."""
    return f"h{min(6, int(token.tag[1:]) + 2)}"


def _with_links(text: str) -> str:
    """Text whose bare addresses are links."""
    out: list[str] = []
    at = 0
    for found in _BARE_URL.finditer(text):
        # A sentence may end right behind the address.
        url = found.group().rstrip(".,;:!?")
        out += [escape(text[at : found.start()]), _link_to(url), escape(url), "</a>"]
        at = found.start() + len(url)
    return "".join([*out, escape(text[at:])])


def _link_to(url: str) -> str:
    return f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">'
