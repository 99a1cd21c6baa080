"""Command lines, parsed: a line in, its simple commands out, each with its words.

Two readers work on every line: the bash grammar of tree-sitter, which knows the structure, and the
reader of words (`words.py`).  A line of plain commands, lists, pipelines, groups and redirections
is understood when both found the same commands and the same words in it.  All else (substitutions,
functions, `case`, `[[`) is read by the grammar alone: its commands are listed, for rules that
forbid, but no rule and no table can allow it.

Nothing is executed here, and no variable is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Final

import msgspec

from weft.permissions.shell.words import (
    HereDocument,
    ShellOperator,
    ShellToken,
    ShellWord,
    TooComplex,
    UnfinishedLine,
    split_line,
    word_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST: Final = 50_000
"""Characters of a line; a longer one is refused, for nobody can read it either."""
MOST_COMMANDS: Final = 500
MOST_DEPTH: Final = 60
_ASSIGNS: Final = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=", re.ASCII)
_LOOP_NAME: Final = re.compile(r"[a-z][a-z0-9]*", re.ASCII)
"""Variables that no program obeys; `for PATH in x` would choose the programs of the line."""
_OPENS: Final = frozenset({"if", "then", "elif", "else", "while", "until", "do", "{", "!"})
_CLOSES: Final = frozenset({"fi", "done", "}"})
_COMPLEX: Final = frozenset({"case", "esac", "select", "function", "coproc", "[[", "in", "]]"})
_RESERVED: Final = _OPENS | _CLOSES | _COMPLEX | {"for"}
_BEGINS_DESCRIPTOR: Final = frozenset({*"0123456789", "{"})
_SEPARATES: Final = frozenset({";", "&", "&&", "||", "|", "|&", "\n"})
_REDIRECTS: Final = frozenset(
    {"<", ">", ">>", "<<", "<<-", "<<<", "<&", ">&", "&>", "&>>", ">|", "<>"}
)
_WIDE_IN_BRACE: Final = re.compile(r"(?<=\{)([0-9]*(?:\.{1,2}[0-9]*)?)([^\x00-\xff]+)")
"""Where the scanner of the grammar looks a character up in a table of 256 places: a larger one is
read from whatever memory stands there, or ends the process."""
_BY_KEYWORD: Final = frozenset({"export", "declare", "typeset", "local", "readonly", "unset"})
"""Commands that the grammar has a node of their own for."""
_TYPES: Final = frozenset(
    {"command", "test_command", "declaration_command", "unset_command", "unsetenv_command"}
)
_OPENING: Final = frozenset({"file_redirect", "herestring_redirect"})
_NESTING: Final = frozenset(b"$`()<>")
_LEAVES: Final = frozenset(
    {"word", "raw_string", "string_content", "file_descriptor", "variable_name"}
)
"""Nodes that hold nothing in which a command could stand."""


class ShellRedirect(msgspec.Struct, frozen=True):
    """A redirection of a command."""

    operator: str
    target: ShellWord
    has_text: bool = False
    """Of a here-document or here-string: the input is there, and no file is opened."""


class SimpleCommand(msgspec.Struct, frozen=True):
    """A program and its words, with what is set and redirected for it."""

    words: tuple[ShellWord, ...] = ()
    assignments: tuple[ShellWord, ...] = ()
    redirects: tuple[ShellRedirect, ...] = ()

    @property
    def text(self) -> str:
        """As it is written."""
        each = [*self.assignments, *self.words]
        parts = [word.raw for word in each]
        parts += [f"{redirect.operator}{redirect.target.raw}" for redirect in self.redirects]
        return " ".join(parts)

    @property
    def spelling(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """The same for two commands that are written alike."""
        return (
            tuple([(word.raw, word.kind) for word in self.words]),
            tuple([(word.raw, word.kind) for word in self.assignments]),
            tuple([(each.operator, each.target.raw) for each in self.redirects]),
        )


class CommandLine(msgspec.Struct, frozen=True):
    """What is known of a line."""

    commands: tuple[SimpleCommand, ...] = ()
    doubt: str = ""
    """Why no rule and no table can be sure of it; empty when both readers agree."""
    is_broken: bool = False
    """It does not parse: which commands it has is not known either."""
    refused: str = ""
    """Why it is not run at all."""


@cache
def _parser() -> Parser:
    """The grammar; loaded with the first command."""
    from tree_sitter import Language, Parser

    return Parser(Language(_binding().language()))


def _binding() -> Any:
    """The grammar's own module; its package would load ten others for queries, in most of the time
    of the first command."""
    from importlib.util import find_spec, module_from_spec

    package = find_spec("tree_sitter_bash")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("tree_sitter_bash")
    name = "tree_sitter_bash._binding"
    spec = PathFinder.find_spec(name, package.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parse_line(line: str) -> CommandLine:
    """Read a line."""
    if len(line) > LONGEST:
        return CommandLine(refused=f"it is longer than {LONGEST:,} characters", is_broken=True)
    if "\0" in line:
        return CommandLine(refused="it has a NUL character", is_broken=True)
    if not line.replace("\n", "").replace("\t", "").isprintable():
        odd = next(each for each in line if not each.isprintable() and each not in "\n\t")
        doubt = f"it has a character that cannot be seen, <U+{ord(odd):04X}>"
        return CommandLine(_by_grammar(line).commands(), doubt, is_broken=True)
    found, doubt, is_broken = _by_both(line)
    if len(found) > MOST_COMMANDS:
        refused = f"it has more than {MOST_COMMANDS} commands"
        return CommandLine(found[:MOST_COMMANDS], doubt, True, refused)
    return CommandLine(found, doubt, is_broken)


def _by_both(line: str) -> tuple[tuple[SimpleCommand, ...], str, bool]:
    tree = _by_grammar(line)
    if tree.problem:
        return tree.commands(), tree.problem, True
    try:
        commands = _Commands(line, split_line(line))
        own = commands.read()
    except TooComplex as what:
        return tree.commands(), f"it has {what}", tree.hides_commands()
    except UnfinishedLine:
        return tree.commands(), "a quote or a here-document has no end", True
    offset = _Offsets(line)
    words = {(offset(start), offset(end)) for start, end in commands.spans}
    starts = {offset(start) for start in commands.starts}
    if words != tree.words or starts != tree.starts:
        return (*own, *tree.commands()), "it can be read in two ways", True
    return own, commands.doubt, False


class _Offsets:
    """The grammar counts bytes, the reader of words characters."""

    def __init__(self, line: str) -> None:
        self._places: list[int] = []
        if line.isascii():
            return
        place = 0
        for letter in line:
            self._places.append(place)
            place += len(letter.encode("utf-8", "surrogatepass"))
        self._places.append(place)

    def __call__(self, place: int) -> int:
        return self._places[place] if self._places else place


# -- by the grammar


def _by_grammar(line: str) -> _TreeReader:
    """The line as the grammar reads it."""
    source = line.encode("utf-8", "surrogatepass")
    root = _parser().parse(_readable_source(line, source)).root_node
    reader = _TreeReader(source)
    reader.visit(root)
    if root.has_error and not reader.problem:
        reader.problem = "it is no line that bash understands"
    return reader


def _readable_source(line: str, source: bytes) -> bytes:
    """What the grammar is given: as long as the line, with nothing that it cannot look up."""
    if line.isascii() or "{" not in line:
        return source

    def as_plain(found: re.Match[str]) -> str:
        size = len(found[2].encode("utf-8", "surrogatepass"))
        return f"{found[1]}{'%' * size}"

    return _WIDE_IN_BRACE.sub(as_plain, line).encode("utf-8", "surrogatepass")


class _TreeReader:
    """Walks the tree of a line; without recursion, for a line may be nested deeply.

    The places of words and commands are always wanted; the commands themselves only where the
    reader of words does not know them, and they take most of the time.
    """

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._found: list[Node] = []
        self._words: dict[bytes, ShellWord] = {}
        """By what is written: a word says nothing of its place here."""
        self._plain: list[tuple[int, int]] = []
        """The places of plain words, in a line that has substitutions."""
        self.words: set[tuple[int, int]] = set()
        """The places of all words."""
        self.starts: set[int] = set()
        """The places where commands begin."""
        self.problem = ""

    def visit(self, root: Node) -> None:
        may_hide = b"`" in self._source or b"$(" in self._source
        # Without one of these no word of a command holds another, and nothing is redirected.
        is_flat = not root.has_error and _NESTING.isdisjoint(self._source)
        waiting = [(root, 0)]
        while waiting:
            node, depth = waiting.pop()
            if depth > MOST_DEPTH:
                self.problem = f"it is nested more than {MOST_DEPTH} deep"
                continue
            kind = node.type
            self._take(node, kind)
            if may_hide and kind == "word":
                self._plain.append((node.start_byte, node.end_byte))
            if kind not in _LEAVES and not (is_flat and kind == "command"):
                waiting += [(child, depth + 1) for child in reversed(node.named_children)]

    def commands(self) -> tuple[SimpleCommand, ...]:
        """The commands, in their order."""
        return tuple(map(self._made, self._found))

    def hides_commands(self) -> bool:
        """Whether a command may stand where the grammar sees none: in ${x:-`ls`}."""
        return any(
            b"`" in text or b"$(" in text
            for start, end in self._plain
            for text in (self._source[start:end],)
        )

    def _take(self, node: Node, kind: str) -> None:
        if kind == "command":
            name = node.child_by_field_name("name")
            self._span_of(node.children_by_field_name("argument"))
            if name is not None:
                self.words.add((name.start_byte, name.end_byte))
                self.starts.add(name.start_byte)
            self._found.append(node)
        elif kind in _TYPES:
            self.starts.add(node.start_byte)
            self._found.append(node)
        elif kind in _OPENING:
            self._span_of(_targets(node))
            if node.parent is None or node.parent.type != "command":
                self._found.append(node)
        elif kind == "heredoc_redirect":
            self._span_of(node.children_by_field_name("argument"))
        elif kind == "variable_assignment" and _stands_alone(node):
            self._found.append(node)

    def _made(self, node: Node) -> SimpleCommand:
        if node.type == "command":
            return self._command(node)
        if node.type in _OPENING:
            return SimpleCommand(redirects=tuple(self._redirects(node)))
        if node.type == "variable_assignment":
            return SimpleCommand(assignments=(self._word(node),))
        return SimpleCommand(tuple(self._rest(node)))

    def _command(self, node: Node) -> SimpleCommand:
        name = node.child_by_field_name("name")
        arguments = node.children_by_field_name("argument")
        each = [*([name] if name is not None else []), *arguments]
        assigned = [child for child in node.named_children if child.type == "variable_assignment"]
        redirects = (
            redirect
            for child in node.named_children
            if child.type in _OPENING
            for redirect in self._redirects(child)
        )
        words = tuple(map(self._word, (*each, *self._trailing(node))))
        return SimpleCommand(words, tuple(map(self._word, assigned)), tuple(redirects))

    def _trailing(self, node: Node) -> Iterator[Node]:
        """Words of a command that the grammar takes for further targets of its redirection."""
        parent = node.parent
        if parent is None or parent.type != "redirected_statement":
            return
        for child in parent.named_children:
            if child.type == "file_redirect":
                yield from child.children_by_field_name("destination")[1:]
            elif child.type == "heredoc_redirect":
                yield from child.children_by_field_name("argument")

    def _redirects(self, node: Node) -> Iterator[ShellRedirect]:
        if node.type == "herestring_redirect":
            for child in node.named_children[-1:]:
                yield ShellRedirect("<<<", self._word(child), has_text=True)
            return
        operator = next((child.type for child in node.children if not child.is_named), ">")
        for child in node.children_by_field_name("destination")[:1]:
            yield ShellRedirect(operator, self._word(child))

    def _rest(self, node: Node) -> Iterator[ShellWord]:
        """The words of a command with a node of its own, as they are written."""
        text = self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")
        for piece in text.split():
            yield word_of(piece)

    def _word(self, node: Node) -> ShellWord:
        raw = self._source[node.start_byte : node.end_byte]
        if (known := self._words.get(raw)) is None:
            known = self._words[raw] = word_of(raw.decode("utf-8", "surrogatepass"))
        return known

    def _span_of(self, nodes: list[Node]) -> None:
        self.words.update((node.start_byte, node.end_byte) for node in nodes)


def _targets(node: Node) -> list[Node]:
    """What a redirection opens, and what the grammar takes for further targets of it."""
    if node.type == "herestring_redirect":
        return node.named_children[-1:]
    return node.children_by_field_name("destination")


def _stands_alone(node: Node) -> bool:
    parent = node.parent
    return parent is None or parent.type not in ("command", "declaration_command")


# -- by the words


class _Commands:
    """The simple commands of a line that has nothing but plain constructs."""

    def __init__(self, line: str, tokens: list[ShellToken]) -> None:
        self._line = line
        # With ends behind the last, as far as anything looks ahead.
        self._tokens: list[ShellToken | None] = [*tokens, None, None, None]
        self._at = 0
        self._plain: dict[str, SimpleCommand] = {}
        """Commands without redirections, by what is written: in a long line one often comes again,
        and is the same one then."""
        self.spans: set[tuple[int, int]] = set()
        self.starts: set[int] = set()
        self.doubt = ""
        self._found: list[SimpleCommand] = []
        self._may_only_end = False
        """After `)`, `fi` and the like only redirections and operators follow."""

    def read(self) -> tuple[SimpleCommand, ...]:
        while (token := self._peek()) is not None:
            if isinstance(token, HereDocument):
                self._here(token)
            elif isinstance(token, ShellOperator) and token.text not in _REDIRECTS:
                self._separator(token)
            else:
                self._command()
        return tuple(self._found)

    def _peek(self, ahead: int = 0) -> ShellToken | None:
        return self._tokens[self._at + ahead]

    def _here(self, token: HereDocument) -> None:
        self._at += 1
        if not token.is_literal:
            self.doubt = "its here-document holds expansions"

    def _separator(self, token: ShellOperator) -> None:
        self._at += 1
        following = self._peek()
        if token.text == "(":
            is_double = isinstance(following, ShellOperator) and following.start == token.end
            if self._may_only_end or (is_double and following.text == "("):  # type: ignore[union-attr]  # checked
                raise TooComplex("an arithmetic command")
            return
        if token.text == ")":
            self._may_only_end = True
            return
        if token.text not in _SEPARATES:
            raise TooComplex("a `case`")
        self._may_only_end = False

    def _command(self) -> None:
        words: list[ShellWord] = []
        assigned: list[ShellWord] = []
        redirects: list[ShellRedirect] = []
        while (token := self._peek()) is not None and not isinstance(token, HereDocument):
            if isinstance(token, ShellOperator):
                if token.text not in _REDIRECTS:
                    break
                redirects.append(self._redirect(token))
                continue
            if not words and not assigned and not redirects and self._is_reserved(token):
                return
            self._at += 1
            if token.raw[:1] in _BEGINS_DESCRIPTOR and self._is_descriptor(token):
                continue
            if not words and "=" in token.raw and _ASSIGNS.match(token.raw):
                assigned.append(token)
                continue
            words.append(token)
        self._add(words, assigned, redirects)

    def _add(
        self, words: list[ShellWord], assigned: list[ShellWord], redirects: list[ShellRedirect]
    ) -> None:
        if words and self._may_only_end:
            raise TooComplex("words behind a group")
        token = self._peek()
        if isinstance(token, ShellOperator) and token.text == "(" and (words or assigned):
            raise TooComplex("a function or an array" if words else "an array")
        if words:
            self.starts.add(words[0].start)
            if words[0].raw not in _BY_KEYWORD and words[0].raw != "[":
                self.spans.update((word.start, word.end) for word in words)
            _check_first(words)
        if redirects or not (each := [*assigned, *words]):
            self._found.append(SimpleCommand(tuple(words), tuple(assigned), tuple(redirects)))
            return
        written = self._line[each[0].start : each[-1].end]
        if (known := self._plain.get(written)) is None:
            known = self._plain[written] = SimpleCommand(tuple(words), tuple(assigned))
        self._found.append(known)

    def _is_descriptor(self, token: ShellWord) -> bool:
        """Whether it is the number of what the next sign redirects: `2>`."""
        following = self._peek()
        if not isinstance(following, ShellOperator) or following.start != token.end:
            return False
        if following.text not in _REDIRECTS or following.text.startswith("&"):
            return False
        if token.raw.startswith("{") and token.raw.endswith("}"):
            raise TooComplex("a redirection into a variable")
        return token.raw.isdecimal() and token.raw.isascii()

    def _redirect(self, operator: ShellOperator) -> ShellRedirect:
        self._at += 1
        target = self._peek()
        if not isinstance(target, ShellWord):
            raise TooComplex("a redirection without a target")
        self._at += 1
        if operator.text in ("<<", "<<-"):
            return ShellRedirect(operator.text, target, has_text=True)
        self.spans.add((target.start, target.end))
        return ShellRedirect(operator.text, target, has_text=operator.text == "<<<")

    def _is_reserved(self, token: ShellWord) -> bool:
        """Take a word that is part of the syntax where a command may begin."""
        if token.raw not in _RESERVED:
            return False
        if token.raw in _COMPLEX:
            raise TooComplex(f"`{token.raw}`")
        if token.raw == "for":
            self._for()
            return True
        if token.raw in _CLOSES:
            self._at += 1
            self._may_only_end = True
            return True
        if token.raw in _OPENS:
            self._at += 1
            self._may_only_end = False
            return True
        return False

    def _for(self) -> None:
        """`for NAME in WORDS`; the words are no command's."""
        name, keyword = self._peek(1), self._peek(2)
        is_plain = isinstance(name, ShellWord) and _LOOP_NAME.fullmatch(name.raw)
        if not is_plain or not isinstance(keyword, ShellWord) or keyword.raw != "in":
            raise TooComplex("a `for` of another kind")
        self._at += 3
        while isinstance(self._peek(), ShellWord):
            self._at += 1
        following = self._peek()
        if not isinstance(following, ShellOperator) or following.text not in (";", "\n"):
            raise TooComplex("a `for` of another kind")


def _check_first(words: list[ShellWord]) -> None:
    """Refuse what only looks like a program and its words."""
    first = words[0].raw
    if first.startswith("%"):
        raise TooComplex("the name of a job")
    if first != "time":
        return
    if len(words) == 1 or any(word.raw in _RESERVED for word in words[1:]):
        raise TooComplex("`time` before a group")
