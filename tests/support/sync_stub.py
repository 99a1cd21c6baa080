"""Writes `src/weft/sync.pyi`: what the blocking classes are, for type checkers and editors.

    .venv/bin/python -m tests.support.sync_stub

The blocking classes are made at run time from the async ones.  This reads the same classes, takes
`async` away and writes down what is left; a test fails when the file is not what this would write.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import weft
from weft import api, sync
from weft.api.decisions import ProjectDecisions
from weft.api.evidence.opened_past import OpenedPast
from weft.api.fan import Fan, FanEvents
from weft.api.inspection import Joined
from weft.api.model_query import AnswerStream
from weft.app import App, open_app, run
from weft.app.index import AppIndex
from weft.app.memory import AppMemory
from weft.loom import GenerationStore, LoomSession
from weft.loom.branches.generation import GenerationRun
from weft.runtime.repo_topic import RepoEvents
from weft.runtime.session_topic import SessionListEvents
from weft.server.client.remote_app import RemoteApp, RemoteImport, RemoteSessions
from weft.server.client.remote_events import RemoteEvents, RemoteJoined
from weft.server.client.remote_fan import RemoteFan
from weft.server.client.remote_session import RemoteSession
from weft.session import Subscription

STUB = Path(__file__).resolve().parents[2] / "src" / "weft" / "sync.pyi"

HEADER = '''\
"""Written by `python -m tests.support.sync_stub` from the async classes.

Edit those, and write it again.
"""
'''

CLASSES: dict[type, tuple[str, ...]] = {
    Subscription: ("cursor: int",),
    Joined: (
        "seq: int",
        "drafts: tuple[Draft, ...]",
        "requests: tuple[Request, ...]",
        "events: Subscription",
    ),
    OpenedPast: ("node: str", "notes: tuple[str, ...]"),
    AnswerStream: (),
    SessionListEvents: (),
    RepoEvents: (),
    AppIndex: (),
    FanEvents: (),
    Fan: (),
    AppMemory: (),
    api.Session: ("id: SessionId", "driver: str"),
    api.ImportReport: ("session: Session", "dropped: dict[str, int]"),
    api.SessionManager: (),
    ProjectDecisions: (),
    GenerationRun: (),
    LoomSession: ("read_only: bool", "store: GenerationStore"),
    GenerationStore: (),
    App: ("config: Config", "project_path: str"),
    RemoteEvents: ("cursor: int | None", "end_reason: str"),
    RemoteJoined: (
        "seq: int",
        "drafts: tuple[Draft, ...]",
        "requests: tuple[Request, ...]",
        "events: RemoteEvents",
    ),
    RemoteFan: (),
    RemoteSession: (
        "id: SessionId",
        "driver: str",
        "def __getattr__(self, name: str) -> Callable[..., Any]: ...",
    ),
    RemoteImport: ("session: RemoteSession", "dropped: dict[str, int]"),
    RemoteSessions: (),
    RemoteApp: ("sessions: RemoteSessions",),
}
"""Each class that has a blocking one, and the attributes that its objects get when they
are made.
"""

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "open": open_app,
    "run": run,
    "query": api.query,
    "stream": api.stream,
    "loom": sync.loom,
    "connect": weft.connect,
}

ASYNC_ONLY: dict[type, set[str]] = {
    App: {"host"},
    OpenedPast: {"hold", "ready"},
    GenerationStore: {"loaded", "is_elsewhere", "now", "imported_tree"},
    LoomSession: {"begun", "show_new", "loom_tree", "store"},
}
"""Public names that have no blocking form: the runtime beneath the API is for async edges."""

ITEMS = {
    Subscription: "Event",
    FanEvents: "FactBase",
    AnswerStream: "Delta",
    SessionListEvents: "SessionsChanged",
    RepoEvents: "RepoUpdated",
    GenerationRun: "GenerationEvent",
    RemoteEvents: "Event",
}
"""What the iterators hand out."""


class Writer:
    """Collects declarations, and the imports that their annotations need."""

    def __init__(self) -> None:
        self._imports: set[tuple[str, str]] = {
            ("weft.ids", "SessionId"),
            ("weft.config", "Config"),
            ("weft.state", "Request"),
            ("weft.store", "Draft"),
        }
        self._ours = {cls.__name__ for cls in CLASSES}

    def text(self) -> str:
        body = [self._class(cls, attributes) for cls, attributes in CLASSES.items()]
        body += [self._function(name, function) for name, function in FUNCTIONS.items()]
        imports = [f"from {module} import {name}" for module, name in sorted(self._imports)]
        return "\n".join([HEADER, "from typing import Self", *imports, *body])

    def _class(self, cls: type, attributes: tuple[str, ...]) -> str:
        lines = [f"class {cls.__name__}:", *(f"    {each}" for each in attributes)]
        lines += [textwrap.indent(self._member(cls, name), "    ") for name in public_names(cls)]
        lines += [f"    {each}" for each in self._dunders(cls)]
        return "\n".join([*lines, "    ..." if len(lines) == 1 else ""])

    def _dunders(self, cls: type) -> Iterator[str]:
        if hasattr(cls, "__anext__"):
            self._need(inspect.getmodule(cls), ITEMS[cls])
            yield "def __iter__(self) -> Self: ..."
            yield f"def __next__(self) -> {ITEMS[cls]}: ..."
        if hasattr(cls, "__aenter__"):
            yield "def __enter__(self) -> Self: ..."
            yield "def __exit__(self, *error: object) -> None: ..."
        if hasattr(cls, "aclose"):
            yield "def aclose(self) -> None: ..."
            yield "def close(self) -> None: ..."

    def _member(self, cls: type, name: str) -> str:
        member = inspect.getattr_static(cls, name)
        if isinstance(member, property):
            assert member.fget is not None
            return "@property\n" + self._function(name, member.fget)
        if isinstance(member, staticmethod):
            return "@staticmethod\n" + self._function(name, member.__func__)
        return self._function(name, member)

    def _function(self, name: str, function: Callable[..., Any]) -> str:
        """The declaration without `async`, decorators, body and defaults that are no plain
        values.
        """
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef)
        tree.returns = awaited(tree.returns)
        for annotation in annotated(tree):
            for used in ast.walk(annotation):
                if isinstance(used, ast.Name):
                    self._need(inspect.getmodule(function), used.id)
        tree.args.defaults = [simple(each) for each in tree.args.defaults]
        given = tree.args.kw_defaults
        tree.args.kw_defaults = [None if each is None else simple(each) for each in given]
        declared = ast.FunctionDef(
            name=name,
            args=tree.args,
            body=[ast.Expr(ast.Constant(...))],
            decorator_list=[],
            returns=tree.returns,
            type_comment=None,
        )
        return ast.unparse(ast.fix_missing_locations(declared))

    def _need(self, module: ModuleType | None, name: str) -> None:
        """Import a name as the module does that uses it.

        What is ours or Python's own needs none.
        """
        assert module is not None
        if name in self._ours or name in ("Self", "str", "int", "float", "bool", "object", "type"):
            return
        if name in ("list", "tuple", "dict", "set", "None", "bytes", "BaseException"):
            return
        if name in FUNCTIONS:
            return
        if name == "os":
            self._imports.add(("os", "PathLike"))
            return
        # The first one to use it says where from: a face and the module behind it are one.
        if name not in {known for _, known in self._imports}:
            self._imports.add((imported_from(module, name), name))


def awaited(returned: ast.expr | None) -> ast.expr | None:
    """What is waited for, where a future is returned."""
    if isinstance(returned, ast.Subscript) and ast.unparse(returned.value) == "asyncio.Future":
        return returned.slice
    return returned


def public_names(cls: type) -> list[str]:
    """The public names of a class in the order of its source, without those that the blocking one
    writes itself.
    """
    names: dict[str, None] = {}
    for each in reversed(cls.__mro__):
        names |= dict.fromkeys(each.__dict__)
    own = {"close", "aclose"} if hasattr(cls, "aclose") else set()
    own |= ASYNC_ONLY.get(cls, set())
    fields = set(getattr(cls, "__struct_fields__", ()))
    return [name for name in names if not name.startswith("_") and name not in own | fields]


def annotated(tree: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr]:
    arguments = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
    arguments += [each for each in (tree.args.vararg, tree.args.kwarg) if each is not None]
    found = [each.annotation for each in arguments if each.annotation is not None]
    return [*found, *([tree.returns] if tree.returns is not None else [])]


def simple(default: ast.expr) -> ast.expr:
    """A plain value as it is, everything else as dots."""
    return default if isinstance(default, ast.Constant) else ast.Constant(...)


def imported_from(module: ModuleType, name: str) -> str:
    """Where a module has a name from: another module, or itself."""
    source = inspect.getsource(module)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and name in [
            alias.asname or alias.name for alias in node.names
        ]:
            assert node.module is not None
            return node.module
    return module.__name__


def stub_text() -> str:
    """The stub as it should be."""
    text = Writer().text().replace("os.PathLike", "PathLike")
    for command in (["check", "--select", "I", "--fix-only", "--quiet"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"]
        done = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True)
        text = done.stdout
    return text


if __name__ == "__main__":
    STUB.write_text(stub_text(), "utf-8")
