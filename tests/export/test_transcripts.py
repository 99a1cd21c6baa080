"""Markdown and HTML for reading: whole, readable, and harmless whatever was said."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from weft.export import FORMAT, VERSION, ExportDocument, to_html, to_md
from weft.export.document import (
    ExportedCompaction,
    ExportedNode,
    ExportedNote,
    ExportedResult,
    ExportedRevision,
    ExportedSession,
)
from weft.export.markdown_html import DEEPEST, MOST_BRACKETS, to_prose
from weft.export.transcript import plain
from weft.ids import CallUid, NodeId, SessionId
from weft.messages import File, Image, Part, Text, Thinking, ToolCall

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&lt;````\n# x\x1b[31m\x00\u202e"
PIXEL = "iVBORw0KGgo="

TAGS = frozenset(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "div",
        "header",
        "h1",
        "p",
        "main",
        "article",
        "b",
        "span",
        "a",
        "time",
        "details",
        "summary",
        "pre",
        "code",
        "footer",
        "h3",
        "h4",
        "h5",
        "h6",
        "strong",
        "em",
        "del",
        "ul",
        "ol",
        "li",
        "blockquote",
        "hr",
        "br",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "img",
    ]
)
ATTRIBUTES = frozenset(
    [
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "id",
        "dir",
        "href",
        "rel",
        "datetime",
        "alt",
        "src",
        "start",
    ]
)


class Seen(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "hr", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


def check_harmless(page: str) -> Seen:
    """Only our own tags and attributes, and every address leads nowhere by itself."""
    seen = Seen(page)
    assert seen.open == []
    for tag, attributes in seen.tags:
        assert tag in TAGS
        assert set(attributes) <= ATTRIBUTES
        href = attributes.get("href")
        assert href is None or re.match(r"https?://|#", href)
        source = attributes.get("src")
        assert source is None or source.startswith("data:image/")
    return seen


def conversation(*said: tuple[str, tuple[Part, ...]], **more: Any) -> ExportDocument:
    nodes: list[ExportedNode] = []
    for number, (role, parts) in enumerate(said):
        nodes.append(
            ExportedNode(
                id=NodeId(f"nod_{number}"),
                role=role,  # type: ignore[arg-type]  # the tests write roles
                revisions=(ExportedRevision(at=1.8e9, parts=parts),),
                parent=nodes[-1].id if nodes else None,
                model="scripted:a" if role == "assistant" else "",
                results=tuple(more.pop("results", ())) if role == "assistant" else (),
            )
        )
    about = more.pop(
        "session", ExportedSession(id=SessionId("ses_1"), title="A title", created=1.8e9)
    )
    return ExportDocument(
        format=FORMAT,
        version=VERSION,
        session=about,
        nodes=tuple(nodes),
        head=nodes[-1].id if nodes else None,
        **more,
    )


def hostile(text: str) -> ExportDocument:
    """The text in every place where a conversation can have one."""
    call = ToolCall(call_uid=CallUid("cal_1"), name=text, args={"command": text, text: [text]})
    broken = ToolCall(call_uid=CallUid("cal_2"), name="x", raw_args=text)
    results = (
        ExportedResult(call_uid=call.call_uid, text=text, data={"diff": f"+{text}\n-{text}\n@@"}),
        ExportedResult(
            call_uid=broken.call_uid,
            text=text,
            is_error=True,
            images=(Image(media_type=text, data=PIXEL, name=text),),
        ),
    )
    return conversation(
        ("user", (Text(text=text), File(name=text, text=text))),
        (
            "assistant",
            (
                Thinking(text=text),
                Text(text=text),
                call,
                broken,
                Image(media_type="image/png", data=PIXEL, name=text),
                Image(media_type="image/svg+xml", data=PIXEL, name=text),
            ),
        ),
        session=ExportedSession(id=SessionId("ses_1"), title=text, model=text, created=1.8e9),
        results=results,
        notes=(ExportedNote(text=text, node=NodeId("nod_0"), level="error"),),
        compactions=(ExportedCompaction(upto=NodeId("nod_0"), summary=text),),
    )


# --- HTML --------------------------------------------------------------------------------


@given(text=st.text())
@example(text=HOSTILE)
@example(
    text='[a](javascript:alert(1)) [b](https://x/"onmouseover=alert(1)) <https://a> '
    "![i](http://t/p.png)"
)
@example(text="</style><script>alert(1)</script>")
@example(text="-->\n]]>\n</pre></details></article>")
def test_whatever_is_said_the_page_holds_only_our_own_tags(text: str) -> None:
    check_harmless(to_html(hostile(text)))


def test_the_page_shows_what_was_said_word_for_word() -> None:
    words = 'if a < b && c > d: print("x") # it\'s & done'
    seen = check_harmless(to_html(conversation(("user", (Text(text=f"```\n{words}\n```"),)))))
    assert words in seen.text


def test_the_policy_allows_the_pages_own_style_and_nothing_else() -> None:
    page = to_html(conversation(("user", (Text(text="hello"),))))
    style = page.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policies = [
        attributes["content"]
        for tag, attributes in Seen(page).tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == [
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri "
        "'none'; form-action 'none'"
    ]
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert "url(" not in style
    assert "@import" not in style


def test_a_tool_call_folds_with_its_change_or_its_arguments_and_its_result() -> None:
    call = ToolCall(call_uid=CallUid("c"), name="edit", args={"path": "a.py", "old": "1"})
    result = ExportedResult(
        call_uid=call.call_uid, text="edited", data={"diff": "--- a\n+++ b\n-1\n+2"}
    )
    page = to_html(conversation(("user", ()), ("assistant", (call,)), results=(result,)))
    assert '<details class="call"><summary><span class="tool">edit</span>' in page
    assert '<span class="del">-1</span>\n<span class="add">+2</span>' in page
    assert "--- a\n+++ b" in page
    assert "edited" in page
    assert "open" not in [name for tag, a in Seen(page).tags if tag == "details" for name in a]


def test_a_picture_is_inside_the_page_and_a_drawing_that_can_run_is_not() -> None:
    pictures = (
        Image(media_type="image/png", data=PIXEL, name="a"),
        Image(media_type="image/svg+xml", data=PIXEL, name="b"),
    )
    sources = [
        attributes["src"]
        for tag, attributes in Seen(to_html(conversation(("user", pictures)))).tags
        if tag == "img"
    ]
    assert sources == [f"data:image/png;base64,{PIXEL}"]


def test_only_the_present_line_is_shown() -> None:
    document = conversation(("user", (Text(text="one"),)), ("assistant", (Text(text="left"),)))
    shown = Seen(to_html(ExportDocument(**{**fields(document), "head": NodeId("nod_0")}))).text
    assert "one" in shown
    assert "left" not in shown


def fields(document: ExportDocument) -> dict[str, Any]:
    return {name: getattr(document, name) for name in document.__struct_fields__}


def test_the_newest_revision_is_shown() -> None:
    document = conversation(("user", (Text(text="first"),)))
    node = document.nodes[0]
    edited = ExportedNode(
        id=node.id,
        role=node.role,
        revisions=(*node.revisions, ExportedRevision(number=1, parts=(Text(text="second"),))),
    )
    shown = Seen(to_html(ExportDocument(**{**fields(document), "nodes": (edited,)}))).text
    assert "second" in shown
    assert "first" not in shown


def test_a_very_long_message_is_folded_and_whole() -> None:
    text = "\n\n".join(f"paragraph {number}" for number in range(3_000))
    seen = check_harmless(to_html(conversation(("user", (Text(text=text),)))))
    assert "more characters" in seen.text
    assert all(f"paragraph {number}" in seen.text for number in (0, 1_000, 2_999))


# --- prose -------------------------------------------------------------------------------

REL = 'rel="noopener noreferrer nofollow"'
PROSE = {
    "a *b* **c** `d` ~~e~~": "<p>a <em>b</em> <strong>c</strong> <code>d</code> <del>e</del></p>",
    "# Top\n## Below": "<h3>Top</h3>\n<h4>Below</h4>",
    "one\ntwo\n\nthree": "<p>one<br>\ntwo</p>\n<p>three</p>",
    "- a\n- b\n  - c": ("<ul>\n<li>a</li>\n<li>b\n<ul>\n<li>c</li>\n</ul>\n</li>\n</ul>"),
    "3. a\n4. b": '<ol start="3">\n<li>a</li>\n<li>b</li>\n</ol>',
    "```py\na < b\n```": "<pre><code>a &lt; b</code></pre>",
    "```\nnever closed": "<pre><code>never closed</code></pre>",
    "> a\n> b": "<blockquote>\n<p>a<br>\nb</p>\n</blockquote>",
    "---": "<hr>",
    "snake_case_name and 2*3 * 4": "<p>snake_case_name and 2*3 * 4</p>",
    "`**not bold**`": "<p><code>**not bold**</code></p>",
    "see https://a.org/x_y_z.": (
        f'<p>see <a href="https://a.org/x_y_z" {REL}>https://a.org/x_y_z</a>.</p>'
    ),
    '[w](https://a.org "a title")': f'<p><a href="https://a.org" {REL}>w</a></p>',
    "![a *cat*](https://a.org/cat.png)": "<p><em>[image: a cat]</em></p>",
    "| a | b |\n|:--|---|\n| 1 | `2` |": (
        '<div class="wide"><table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n'
        "<tbody>\n<tr>\n<td>1</td>\n<td><code>2</code></td>\n</tr>\n</tbody>\n</table></div>"
    ),
}


@pytest.mark.parametrize("text", PROSE)
def test_what_models_write_becomes_html(text: str) -> None:
    assert to_prose(text) == PROSE[text]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<div onclick='a()'>\n\nb\n\n</div>",
        "<!-- a comment -->",
        "[x](javascript:alert(1))",
        "[x](JavaScript:alert(1))",
        "[x](data:text/html;base64,PHNjcmlwdD4=)",
        "[x](vbscript:a) [x](file:///etc/passwd) [x](//a.org) [x](/a) [x](mailto:a@b.org)",
        "![x](javascript:alert(1)) ![x](data:image/svg+xml;base64,PHN2Zz4=)",
        "<javascript:alert(1)> <a@b.org>",
        "&#x202E; &lt;b&gt; &#0;",
        "[//]: # (hidden)",
        "[x]: javascript:alert(1)",
    ],
)
def test_what_could_do_something_is_shown_as_it_was_typed(text: str) -> None:
    seen = check_harmless(to_prose(text))
    assert seen.text.split() == text.split()
    assert {tag for tag, _ in seen.tags} <= {"p", "br"}


def test_a_definition_of_a_link_stays_on_the_page() -> None:
    seen = check_harmless(to_prose("[a]\n\n[a]: https://x.org 'what is hidden here'"))
    assert seen.text.split() == ["[a]", "[a]:", "https://x.org", "'what", "is", "hidden", "here'"]


def test_the_label_of_an_address_is_not_decoded() -> None:
    """`%E2%80%AE` is the character that turns the reading direction: the text behind it
    would lie.
    """
    seen = check_harmless(to_prose("<https://a.org/%E2%80%AEgpj.exe>"))
    assert seen.text == "https://a.org/%E2%80%AEgpj.exe"


def test_an_address_inside_a_link_is_no_second_link() -> None:
    seen = check_harmless(to_prose("[see https://b.org](https://a.org)"))
    assert [attributes["href"] for tag, attributes in seen.tags if tag == "a"] == ["https://a.org"]


@pytest.mark.parametrize("marker", ["> ", "- ", "1. ", "> - "])
def test_what_is_nested_too_deep_is_shown_as_plain_text(marker: str) -> None:
    seen = check_harmless(to_prose(f"{marker * 200}*the end*\n\nand after"))
    assert "*the end*" in seen.text
    assert "and after" in seen.text
    assert 1 < len([tag for tag, _ in seen.tags if tag in ("blockquote", "ul", "ol")]) <= DEEPEST


def test_a_paragraph_with_very_many_brackets_is_plain_text() -> None:
    """To look for links in it takes a time that is quadratic in their number."""
    few, many = ("[a](https://x) " * count for count in (MOST_BRACKETS, MOST_BRACKETS + 1))
    assert "<a " in to_prose(few)
    assert to_prose(f"{many}\n\n*b*") == f"<p>\n{many.strip()}</p>\n<p><em>b</em></p>"


@given(text=st.text(alphabet="ab *_`~#>-|[]()!.:/\\\n1<&\"'h", max_size=200))
@example(text='https://a"onclick=b')
@example(text="> " * 50 + "x")
@example(text="- " * 50 + "x")
@example(text="**" * 500)
def test_no_markup_makes_a_tag_that_is_not_ours_or_leaves_one_open(text: str) -> None:
    check_harmless(to_prose(text))


@given(text=st.text(alphabet="abc <&\"'\n.,;äß漢", max_size=100))
def test_plain_words_come_through_unchanged(text: str) -> None:
    shown = Seen(to_prose(text)).text
    assert shown.split() == text.split()


# --- Markdown ----------------------------------------------------------------------------


def test_markdown_reads_from_top_to_bottom() -> None:
    call = ToolCall(call_uid=CallUid("c"), name="shell", args={"command": "ls"})
    document = conversation(
        ("user", (Text(text="What is here?"),)),
        ("assistant", (Thinking(text="hm"), Text(text="I look."), call)),
        results=(ExportedResult(call_uid=call.call_uid, text="a.txt\n"),),
        notes=(ExportedNote(text="Careful.", level="warning", node=NodeId("nod_1")),),
    )
    assert to_md(document) == (
        "<!-- Weft transcript: for reading. The json and jsonl exports can be imported. -->\n\n"
        "# A title\n\n"
        "2027-01-15 08:00 UTC · 2 messages · 1 tool call\n\n"
        "## **You** · 2027-01-15 08:00 UTC\n\nWhat is here?\n\n"
        "## **Assistant** · scripted:a · 2027-01-15 08:00 UTC\n\n"
        "> *Thinking:* hm\n\nI look.\n\n**shell** `ls` *(done)*\n\n```\na.txt\n```\n\n"
        "> **Warning:** Careful.\n"
    )


@given(text=st.text(alphabet="`~a\n ", max_size=60))
def test_a_result_cannot_leave_its_block(text: str) -> None:
    call = ToolCall(call_uid=CallUid("c"), name="shell", args={})
    document = conversation(
        ("user", ()),
        ("assistant", (call,)),
        results=(ExportedResult(call_uid=call.call_uid, text=text),),
    )
    lines = to_md(document).split("\n")
    fences = [line for line in lines if re.fullmatch(r"`{3,}", line)]
    if text:
        longest = max(map(len, fences))
        assert [line for line in lines if line.startswith("`" * longest)] == ["`" * longest] * 2


def test_a_long_result_is_cut_and_says_so() -> None:
    call = ToolCall(call_uid=CallUid("c"), name="shell", args={})
    document = conversation(
        ("user", ()),
        ("assistant", (call,)),
        results=(ExportedResult(call_uid=call.call_uid, text="x" * 5_000),),
    )
    assert "[… 1000 more characters]" in to_md(document)


# --- what could hide ---------------------------------------------------------------------


def test_terminal_codes_go_and_what_could_hide_is_shown() -> None:
    assert plain("\x1b[1;31mred\x1b[0m\x1b]0;title\x07") == "red"
    assert plain("a\x00b\u202ec\r\nd\te") == "a␀b⟨U+202E⟩c\nd\te"
