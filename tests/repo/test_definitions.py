"""Definitions are found in every language, and inside files that do not parse."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tree_sitter import Node, Parser, Query, QueryCursor

from weft.repo import definition_reader as reader_module
from weft.repo.definition_reader import DefinitionReader, definition_reader, own_query
from weft.repo.definitions import cut_text
from weft.repo.languages import GRAMMARS, language_of
from weft.repo.parsers.source_reader import content_digest, read_content
from weft.repo.posting_lists import content_words

SAMPLES = {
    "python": ("class Cart:\n    def total(self): ...\nRATE = 1\n", "Cart total RATE"),
    "javascript": ("class Cart { total() {} }\nconst rate = () => 1\n", "Cart total rate"),
    "typescript": (
        "interface Cart { n: number }\nexport function total(): void {}\n",
        "Cart total",
    ),
    "tsx": ("export function Cart() { return <b/> }\ntype Rate = 1\n", "Cart Rate"),
    "go": ("package a\ntype Cart struct{}\nfunc (c Cart) Total() {}\n", "Cart Total"),
    "rust": ("pub struct Cart;\nimpl Cart { pub fn total(&self) {} }\n", "Cart total"),
    "java": ("class Cart { int total() { return 1; } }\n", "Cart total"),
    "c": ("struct cart { int n; };\nint *total(void) { return 0; }\n", "cart total"),
    "cpp": ("class Cart { public: int n; };\nint Cart::total() { return 1; }\n", "Cart total"),
    "c_sharp": ("class Cart { int Total() { return 1; } }\n", "Cart Total"),
    "ruby": ("class Cart\n  def total\n  end\nend\n", "Cart total"),
    "php": ("<?php class Cart { function total() {} }\n", "Cart total"),
    "elixir": ("defmodule Cart do\n  def total(x), do: x\nend\n", "Cart total"),
    "bash": ("total() {\n  echo 1\n}\n", "total"),
    "kotlin": ("class Cart { fun total() = 1 }\n", "Cart total"),
    "swift": ("class Cart { func total() {} }\n", "Cart total"),
    "scala": ("class Cart { def total = 1 }\n", "Cart total"),
    "lua": ("function total()\nend\n", "total"),
    "zig": ("pub fn total() void {}\n", "total"),
    "html": ('<div id="cart"></div>\n', "cart"),
    "css": (".cart { color: red }\n", "cart"),
    "sql": ("CREATE TABLE cart (id int);\n", "cart"),
    "markdown": ("# Cart\n\ntext\n", "Cart"),
}


def test_every_language_has_a_sample() -> None:
    assert set(SAMPLES) == set(GRAMMARS)


@pytest.mark.parametrize("language", SAMPLES)
def test_the_definitions_of_a_language_are_found(language: str) -> None:
    source, names = SAMPLES[language]
    found = {each.name.strip("#. ") for each in definition_reader(language).read(source.encode())}
    assert set(names.split()) <= found


PYTHON_BLOCKS = (
    "def {}(self):",
    "async def {}():",
    "class {}(Base):",
    "class {}:  # def shown(): in a class of its own",
    "if {}:",
    "with {} as subclass:",
    "for x in {}:",
    "@cache\n{indent}def {}(x=lambda: default):",
    "def\\\n{indent}  {}(): 'class Quoted: def inner'\n{indent}try:",
)
GO_BLOCKS = (
    "func (c Cart) {}() {{",
    "if {} {{",
    "func() {{",
    "type {} struct {{ inner interface {{ Total() int }} }}\nfor {{",
    "type ( {} interface {{ Rate() }}; Other = int )\nfor {{",
    "var {} = func() {{ // func shown() type",
)
JAVA_BLOCKS = (
    "class {} {{",
    "static class {} {{ static int RATE = 1; int total() {{ return 1; }} {}() {{ }}",
    "interface {} {{ void rate();",
    "@interface {} {{ class Inner {{ void shown() {{ }} }}",
    "record {}(int n) {{",
    "enum {} {{ FIRST {{ int of() {{ return 1; }} }}, SECOND; void both() {{ }}",
    "void {}() {{ int[] many = new int[] {{ 1 }}; // class Shown {{ void one() {{ }} }}",
    "Object {} = new Object() {{",
    "Runnable {} = new Task(new Other() {{ void inner() {{ }} }}, () -> {{ ; }}) {{",
)
RUST_BLOCKS = (
    "fn {}() {{",
    "pub const fn {}<T>(f: fn(T) -> u8) -> impl Fn() {{",
    "mod {} {{",
    "impl<T> Trait for {}<T> {{",
    "trait {} {{ fn signed(&self); type Item; const LEAST: u8;",
    "const {}: u8 = {{ static mut INNER: u8 = 1; // fn shown() {{",
    "union Both_{} {{ a: u8 }} enum {} {{ A }} struct Of_{}; mod other {{",
    "macro_rules! {} {{ () => {{}} }} mod made {{",
)


@st.composite
def nested_python(draw: st.DrawFn) -> str:
    lines: list[str] = []
    for number, depth in enumerate(draw(st.lists(st.integers(0, 9), max_size=12))):
        indent = "  " * (min(depth, len(lines)) + 1)
        block = draw(st.sampled_from(PYTHON_BLOCKS))
        lines.append(indent[2:] + block.format(f"name_{number}", indent=indent[2:]))
        lines.append(f"{indent}pass")
    return "\n".join(lines) + "\n"


@st.composite
def nested_go(draw: st.DrawFn) -> str:
    blocks = draw(st.lists(st.sampled_from(GO_BLOCKS), max_size=10))
    opened = "\n".join(each.format(f"name{number}") for number, each in enumerate(blocks))
    return f"package a\nfunc first() {{\n{opened}\n{'}' * (len(blocks) + 1)}\n"


@st.composite
def nested_blocks(draw: st.DrawFn, choices: tuple[str, ...]) -> str:
    blocks = draw(st.lists(st.sampled_from(choices), max_size=8))
    opened = "\n".join(each.format(*[f"name{number}"] * 3) for number, each in enumerate(blocks))
    return f"{opened}\n{'}' * len(blocks)}\n"


@given(
    st.tuples(st.just("python"), nested_python())
    | st.tuples(st.just("go"), nested_go())
    | st.tuples(st.just("java"), nested_blocks(JAVA_BLOCKS))
    | st.tuples(st.just("rust"), nested_blocks(RUST_BLOCKS))
)
def test_looking_where_keywords_are_finds_what_a_walk_through_all_nodes_finds(
    sample: tuple[str, str],
) -> None:
    language, source = sample
    whole = DefinitionReader(language, own_query(language))
    assert definition_reader(language).read(source.encode()) == whole.read(source.encode())


SCRIPT_BLOCKS = (
    "class {0} {{ static {1} = () => {{ }}; get {2}() {{ }}",
    "function {0}(a, b) {{ const {1} = function {2}() {{ }}",
    "const {0} = {{ {1}: function() {{ }}, {2}() {{ }} }}; {{",
    "let {0} = 1, {1} = () => 2, {2}; if (a) {{",
    "{0} = b.{1} = class {{ {2}() {{ }} }}; {{",
    "export const {0} = 1, {1} = () => {{ {2}: {{ }} }}; {{",
)
C_BLOCKS = (
    "class {0} : public Base {{ public: int {1}(int), *{2}(); {0}() {{ }} ~{0}() {{ }} }}; {{",
    "int *{0}(int), {1}(void), **{2}(); int {0}() {{",
    "typedef struct {0} {{ int (*{1})(int); }} {2}, *other; namespace {0}::inner {{",
    "const T &A::B::{0}() {{ Foo {1}(bar); auto {2} = [](int a) {{ }};",
    "T *{0}(void) {{ enum {1} {{ ONE }}; union {2} {{ int a; }}; }}\n#define {0}(a) 1\n{{",
    "struct {0} {{ using {1} = int; T operator+(T); virtual void {2}() {{ }} }}; {{",
)


def by_matches(language: str, source: bytes) -> set[tuple[str, str, int, int]]:
    """The definitions as one finds them who asks the parser for one match after the other."""
    grammar = reader_module._grammar(language)
    root = Parser(grammar).parse(source).root_node
    found: dict[int, tuple[int, str, str, Node]] = {}
    for pattern, captures in QueryCursor(Query(grammar, own_query(language))).matches(root):
        (capture,) = (each for each in captures if each.startswith("definition."))
        (node,), (named,) = captures[capture], captures["name"]
        name = source[named.start_byte : named.end_byte].decode()
        if named.type == "qualified_identifier":  # of more than one name: the last of them
            name = name.rpartition("::")[2]
        known = found.get(named.start_byte)
        if known is None or known[0] > pattern:
            kind = capture.removeprefix("definition.")
            found[named.start_byte] = (pattern, " ".join(name.split()), kind, node)
    return {
        (name, kind, node.start_point[0] + 1, node.end_point[0] + 1)
        for _, name, kind, node in found.values()
    }


@given(
    st.sampled_from(sorted(SAMPLES)).map(lambda each: (each, SAMPLES[each][0]))
    | st.tuples(st.just("go"), nested_go())
    | st.tuples(st.sampled_from(("javascript", "typescript", "tsx")), nested_blocks(SCRIPT_BLOCKS))
    | st.tuples(st.sampled_from(("c", "cpp")), nested_blocks(C_BLOCKS))
)
@example(("cpp", "const T &A::B::name0() { }\n"))
def test_definitions_are_those_of_the_matches_of_a_query(sample: tuple[str, str]) -> None:
    language, text = sample
    source = text.encode()
    found = {
        (each.name, each.kind, each.first, each.last)
        for each in definition_reader(language).read(source)
    }
    if definition_reader(language).parse(source).has_error:
        assert found >= by_matches(language, source)
    else:
        assert found == by_matches(language, source)


@pytest.mark.parametrize(
    ("language", "source", "deepest"),
    [
        ("java", "class A { void a() { new B(() -> { x(); }) { int c() { return 1; } }; } }", "c"),
        ("java", "class A { enum B { C { void d() { } }; } }", "d"),
        ("java", "class A { class B { class C { static int D = 1; } } }", "D"),
        ("java", "class A { void a() { class B { @interface C { class D { D() { } } } } } }", "D"),
        ("rust", "mod a { mod b { fn c() { impl<T> D<T> { fn e() {} } } } }", "e"),
        ("rust", "fn a() { loop { if b { static mut C: u8 = 1; } } }", "C"),
    ],
)
def test_members_of_what_is_deep_in_a_file_are_found(
    language: str, source: str, deepest: str
) -> None:
    reader = definition_reader(language)
    assert not reader.parse(source.encode()).has_error
    assert reader.read(source.encode())[-1].name == deepest


def test_definitions_too_deep_for_the_first_look_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    depth = 12
    source = "".join(f"{'  ' * n}def name_{n}():\n" for n in range(depth)) + "  " * depth + "pass\n"
    names = [f"name_{n}" for n in range(depth)]
    assert [each.name for each in definition_reader("python").read(source.encode())] == names
    monkeypatch.setattr(reader_module, "_MOST_STEPS", 0)
    assert [each.name for each in definition_reader("python").read(source.encode())] == names


def test_definitions_are_found_inside_what_does_not_parse() -> None:
    source = b"def first(:\n    x = (\n\nclass Cart:\n    def total(self):\n        return 1\n"
    assert "total" in {each.name for each in definition_reader("python").read(source)}


def test_a_definition_knows_its_lines_and_its_signature() -> None:
    source = b"import a\n\nasync def total(\n    cart: int,\n) -> int:\n    return cart\n"
    (found,) = definition_reader("python").read(source)
    assert (found.first, found.last) == (3, 6)
    assert found.signature == "async def total(cart: int) -> int"


@pytest.mark.parametrize(
    ("language", "source", "signature"),
    [
        ("python", "def total(cart):\n    # Of all rows.\n    return 1\n", "def total(cart)"),
        ("python", "def total(cart):  # why\n    # how\n    return 1\n", "def total(cart)"),
        ("python", "class Cart(dict):\n    # Rows.\n    rows = 1\n", "class Cart(dict)"),
        ("python", "def total(\n    cart,  # rows\n):\n    return 1\n", "def total(cart, # rows)"),
        ("ruby", "def total(cart)\n  # Of all rows.\n  1\nend\n", "def total(cart)"),
    ],
)
def test_a_comment_before_the_body_is_not_part_of_a_signature(
    language: str, source: str, signature: str
) -> None:
    assert definition_reader(language).read(source.encode())[0].signature == signature


@pytest.mark.parametrize(
    ("language", "source", "signature"),
    [
        ("java", 'class A {\n  @Raw("x")\n  static final int RATE = 1;\n}\n', "int RATE = 1;"),
        ("java", f"@A({'x, ' * 90})\nclass Rate {{\n}}\n", "class Rate"),
        ("java", "class A {\n  @Old // Don't.\n  void rate(int a) {\n  }\n}\n", "void rate(int a)"),
        ("kotlin", "@Test\nfun rate(cart: Cart) {\n}\n", "@Test fun rate(cart: Cart)"),
        ("cpp", "template <typename T>\nint rate(T cart);\n", "int rate(T cart);"),
        ("kotlin", "fun rate(\n  a: Int = f(),\n  b: Int,\n): Int {\n}\n", "b: Int): Int"),
        (
            "kotlin",
            "class Rate internal constructor(\n  val a: Int,\n) : B() {\n}\n",
            "a: Int) : B()",
        ),
        ("kotlin", f"class Rate(\n{'  val a: Int,' * 400}\n) {{\n}}\n", "class Rate(val a: Int"),
        ("python", "RATE = dict(\n  a=1,\n)\n", "RATE = dict("),
        ("c_sharp", "class A {\n  [Old]\n  int Rate() { return 1; }\n}\n", "int Rate()"),
    ],
)
def test_a_signature_has_the_name_that_stands_behind_annotations(
    language: str, source: str, signature: str
) -> None:
    found = definition_reader(language).read(source.encode())
    assert all(each.name in each.signature for each in found)
    assert any(signature in each.signature for each in found if each.name.lower() == "rate")


@pytest.mark.parametrize("word", ["타입", "città", "voilà", "…"])
def test_letters_that_end_like_blanks_stay_whole(word: str) -> None:
    """Their last byte is a blank of Latin-1."""
    (heading,) = definition_reader("markdown").read(f"# {word}\n".encode())
    assert heading.signature == f"# {word}"


def test_accessors_of_ruby_are_definitions() -> None:
    source = b"class Cart\n  attr_reader :total, :rate\n  attr_accessor :items\n  log :other\nend\n"
    found = {each.name: each.signature for each in definition_reader("ruby").read(source)}
    assert [*found] == ["Cart", "total", "rate", "items"]
    assert found["rate"] == "attr_reader :total, :rate"


def test_a_byte_order_mark_is_no_part_of_a_signature() -> None:
    (found,) = definition_reader("python").read(b"\xef\xbb\xbfdef total(): pass\n")
    assert found.signature == "def total()"


HEADERS = {
    "a class": "class Cart {\n public:\n  int Total();\n};\n",
    "an exported class": "class EXPORT Cart : public Base {\n public:\n  int Total();\n};\n",
    "a namespace": "namespace shop {\nstruct Cart {\n  Cart();\n  int Total();\n};\n}\n",
    "a brace below": "namespace shop\n{\nclass Cart : public Base\n{\n  int Total();\n};\n}\n",
    "a template": "template <class T>\nstruct Cart : Base<T> {\n  int Total() { return 1; }\n};\n",
    "a type of its library": "struct Cart : Base {\n  std::string Total() const;\n};\n",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_header_of_cpp_is_read_as_cpp(header: str) -> None:
    read = read_content(header.encode(), "c").definitions
    assert {"Cart", "Total"} <= {each.name for each in read}
    assert content_digest(header.encode(), "c") == content_digest(header.encode(), "cpp")


def test_a_header_of_c_is_read_as_c() -> None:
    header = (
        b"/* In this class of things, the template\n   class of names: namespace of C. */\n"
        b"struct new { int class; };\nint this(int delete, char *private);\n"
    )
    assert content_digest(header, "c") != content_digest(header, "cpp")
    assert {each.name for each in read_content(header, "c").definitions} == {"new", "this"}


def test_a_specialised_template_is_found_by_its_name() -> None:
    source = (
        b"template <> struct Cart<int> { int n; };\ntemplate <> class Rate<int> { int n; };\n"
        b"struct Shop::Order { int n; };\n"
    )
    found = [each.name for each in definition_reader("cpp").read(source)]
    assert found == ["Cart", "Rate", "Order"]


def test_a_signature_is_cut_between_words_and_never_into_a_string() -> None:
    token = "ghp_" + "a1b2" * 9
    for filler in range(60, 200):
        source = f'def total({"a" * filler}, t="{token}", u=f(x)): pass\n'.encode()
        (found,) = definition_reader("python").read(source)
        assert token in found.signature or "ghp_" not in found.signature
        row = cut_text(found.signature, 110)
        assert token in row or "ghp_" not in row


@given(st.text("ab (\"'`,é", max_size=40), st.integers(1, 40))
def test_what_is_cut_is_a_beginning_with_a_mark(text: str, most: int) -> None:
    cut = cut_text(text, most)
    assert len(cut) <= most
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))
    assert cut == text or all(cut.count(quote) % 2 == 0 for quote in "\"'`")


def test_what_stands_before_a_definition_on_its_line_is_shown() -> None:
    (found,) = definition_reader("typescript").read(b"export function total() {}\n")
    assert found.signature == "export function total()"


def test_a_program_can_bring_a_query_of_its_own() -> None:
    reader = DefinitionReader("python", "(call function: (identifier) @name) @definition.call")
    assert [(each.name, each.kind) for each in reader.read(b"total(1)\n")] == [("total", "call")]


@pytest.mark.parametrize(
    "content",
    [b"\0binary", b"x = 1\n" * 100_000, b"a=1;" * 2_000],
    ids=["binary", "too large", "on one line"],
)
def test_what_is_no_source_is_not_read(content: bytes) -> None:
    assert read_content(content, "python").definitions == []


def test_bytes_that_are_no_text_are_read_all_the_same() -> None:
    reading = read_content(b"def total(): pass\nx = '\xff\xfe'\n", "python")
    assert reading.definitions[0].name == "total"
    assert content_words(reading.pieces, reading.counts)[0]["wtotal"] == 1


def test_the_same_bytes_in_two_languages_are_two_readings() -> None:
    assert content_digest(b"x", "c") != content_digest(b"x", "cpp")


def test_the_language_is_told_by_the_name_of_a_file() -> None:
    assert language_of("src/App.TSX") == "tsx"
    assert language_of("Makefile") is None
