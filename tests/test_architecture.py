"""One way down: the order of the folders, held for every import wherever it hides."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.support.source_code import SRC, imported_modules, our_imports, parsed, python_files

ANYWHERE = {
    "errors",
    "ids",
    "clock",
    "faults",
    "thinking_levels",
    "file_io",
    "data_tables",
    "text_cache",
    "deferred_modules",
    "request_sign",
    "sha256",
    "version",
}
"""The root modules that everybody may import."""

_PURE = "messages permissions redact events tree state decisions evidence"
_BELOW_TOOLS = f"{_PURE} actors jsonrpc transport workspace store providers repo lsp context"
_TO_SESSION = f"{_BELOW_TOOLS} tools mcp loop session"
_TO_AGENTS = f"{_TO_SESSION} config hooks project agents loom export"

MAY_IMPORT = {
    "messages": "",
    "permissions": "",
    "redact": "",
    "events": "messages permissions",
    "tree": "messages events",
    "state": "messages events permissions tree",
    "evidence": "messages events",
    "view": "messages permissions redact events tree state evidence",
    "decisions": "messages events",
    "actors": "",
    "jsonrpc": "",
    "transport": "actors",
    "workspace": "actors",
    "store": "messages events actors",
    "providers": "messages actors transport",
    "repo": "workspace actors",
    "lsp": "workspace actors jsonrpc",
    "context": "messages events tree state",
    "tools": "messages permissions events decisions workspace repo lsp",
    "mcp": "messages permissions events tools actors jsonrpc transport workspace",
    "loop": "messages permissions events providers tools context state actors",
    "session": "messages permissions events tree state store actors loop",
    "config": "messages permissions workspace providers transport",
    "hooks": "messages permissions events workspace loop config",
    "project": "messages permissions redact events state workspace tools config hooks",
    "agents": f"{_TO_SESSION} project",
    "loom": _TO_SESSION,
    "export": "messages events tree state store",
    "runtime": _TO_AGENTS,
    "api": f"{_TO_AGENTS} runtime view",
    "app": f"{_TO_AGENTS} runtime api",
    "sync": "api app loom",
    "protocol": f"api view {_PURE}",
    "mcp_server": f"jsonrpc api app protocol view {_PURE}",
    "server": f"transport config loom runtime api app protocol view mcp_server {_PURE}",
    "acp": f"api app protocol view {_PURE}",
    "web": "",
    "cli": f"api app loom config hooks project protocol view server acp mcp_server {_PURE}",
    "testing": f"{_TO_AGENTS} runtime view api app sync protocol server acp mcp_server cli",
}
"""Folder (or root module) → the folders it may import.

`testing` is handed to users for their tests and may see everything.
"""

PURE = [*_PURE.split(), "view"]
IMPURE = {
    *("anyio", "asyncio", "concurrent", "multiprocessing", "os", "pathlib", "random", "select"),
    *("selectors", "signal", "socket", "sqlite3", "apsw", "ssl", "subprocess", "tempfile"),
    *("threading", "time"),
}
"""What a pure folder has no use for: I/O, the event loop, time and chance."""

REACH_INTO_FILES = {"config", "hooks", "project", "runtime", "api", "app", "testing", "cli"}
"""The rooms that wire: they pick implementations (`store.sqlite`) and load late what costs start-up
time, so they look behind a folder's face."""

FOLDERS = sorted(
    path.stem
    for path in SRC.iterdir()
    if (path.is_dir() and any(path.rglob("*.py"))) or path.suffix == ".py"
)
LAYERS = [name for name in FOLDERS if name not in {*ANYWHERE, "__init__", "__main__"}]


def files_of(layer: str) -> list[str]:
    """The files of a folder, or the one file of a root module, relative to the source."""
    folder = SRC / layer
    found = python_files(folder) if folder.is_dir() else [folder.with_suffix(".py")]
    return [str(file.relative_to(SRC)) for file in found]


def test_every_folder_has_its_place_in_the_order() -> None:
    assert set(LAYERS) <= set(MAY_IMPORT)


def test_the_order_has_no_way_up() -> None:
    """Each row names only rows above it, so that the table itself cannot hold a cycle."""
    above: set[str] = set()
    for folder, allowed in MAY_IMPORT.items():
        assert set(allowed.split()) <= above, folder
        above.add(folder)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_folder_imports_only_what_stands_below_it(layer: str) -> None:
    allowed = {layer, *ANYWHERE, *MAY_IMPORT.get(layer, "").split()}
    if "app" in allowed:
        allowed.add("")  # `import weft`: the face shows what `app` and `api` have
    used = [each for name in files_of(layer) for each in our_imports(SRC / name)]
    assert [str(each) for each in used if each.folder not in allowed] == []


@pytest.mark.parametrize("module", sorted(ANYWHERE))
def test_what_everybody_imports_imports_nothing(module: str) -> None:
    used = [each for name in files_of(module) for each in our_imports(SRC / name)]
    assert [str(each) for each in used if each.folder not in ANYWHERE] == []


@pytest.mark.parametrize("layer", [each for each in LAYERS if each not in REACH_INTO_FILES])
def test_from_outside_one_imports_the_folder_and_not_the_file(layer: str) -> None:
    used = [each for name in files_of(layer) for each in our_imports(SRC / name)]
    assert [str(each) for each in used if each.folder != layer and each.reaches_into_a_file] == []


def test_no_modules_import_each_other() -> None:
    """Nor in a circle, wherever the imports hide: in a function or below `TYPE_CHECKING`."""
    modules = {
        ".".join(("weft", *file.relative_to(SRC).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): {each.target for each in our_imports(file)}
        for file in python_files()
    }
    try:
        TopologicalSorter(modules).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("layer", [each for each in LAYERS if each in PURE])
def test_a_pure_folder_does_no_io_and_knows_no_loop_and_no_clock(layer: str) -> None:
    found = [
        f"{name}:{line} imports {target}"
        for name in files_of(layer)
        for line, target in imported_modules(SRC / name)
        if target.split(".")[0] in IMPURE or target in ("weft.clock", "weft.faults", "weft.file_io")
    ]
    assert found == []


def test_all_imports_are_absolute() -> None:
    found = [
        f"{file.relative_to(SRC)}:{line} {target}"
        for file in python_files()
        for line, target in imported_modules(file)
        if target.startswith(".")
    ]
    assert found == []


@pytest.mark.parametrize("layer", [each for each in LAYERS if (SRC / each).is_dir()])
def test_a_folder_says_what_it_owns_and_its_face_holds_no_logic(layer: str) -> None:
    """A face is imports and `__all__`.

    Names that cost start-up time may come lazily, through `__getattr__`.
    """
    file = SRC / layer / "__init__.py"
    assert file.is_file(), f"{layer}/ has no __init__.py that says what it owns"
    face = parsed(file)
    assert ast.get_docstring(face)
    exported: list[str] = []
    imported: list[str] = []
    for statement in face.body[1:]:
        match statement:
            case ast.Import() | ast.ImportFrom(module="__future__" | "typing" | "importlib"):
                pass
            case ast.ImportFrom(names=names):
                imported += [alias.asname or alias.name for alias in names]
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=[]):
                imported += lazily_imported(body)
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                exported = ast.literal_eval(value)
            case ast.Assign(value=ast.Dict()) | ast.AnnAssign(value=ast.Dict()):
                pass  # where the lazy names live
            case ast.FunctionDef(name="__getattr__" | "__dir__"):
                pass
            case _:
                pytest.fail(f"{layer}/__init__.py:{statement.lineno} is logic")
    assert sorted(exported) == sorted(imported)


def lazily_imported(body: list[ast.stmt]) -> list[str]:
    """The names that an `if TYPE_CHECKING:` block imports."""
    return [
        alias.asname or alias.name
        for statement in body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    ]
