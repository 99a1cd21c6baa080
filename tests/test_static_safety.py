"""What must not be written down anywhere in the source, found by reading it."""

from __future__ import annotations

import ast

from tests.support.source_code import SRC, files_with, imported_modules, nodes, python_files, uses

READ_THE_ENVIRONMENT = (
    *("app", "cli", "config"),
    *("server/client/remote_app.py", "server/projects.py"),
)
"""Everybody else is handed values.  Of the server: what a program opens instead of an app, and the
paths that users name."""


def where(*names: str, but: tuple[str, ...] = ()) -> list[str]:
    """Every use of these names, outside the files and folders `but`."""
    return [use for file in python_files() if not is_in(file, but) for use in uses(file, *names)]


def is_in(file: object, places: tuple[str, ...]) -> bool:
    """True when a file is one of the places, or lies in one."""
    path = str(file).removeprefix(f"{SRC}/")
    return any(path == place or path.startswith(f"{place}/") for place in places)


def of_the_module(module: str, *names: str, but: tuple[str, ...] = ()) -> list[str]:
    """Every `module.name` and every `from module import name` in the source, outside `but`."""
    return [
        f"{file.relative_to(SRC)}:{node.lineno} {module}"
        for file in files_with(*names)
        if not is_in(file, but)
        for node in nodes(file)
        if isinstance(node, ast.Attribute | ast.ImportFrom)
        if is_attribute(node, module, names) or is_import(node, module, names)
    ]


def is_attribute(node: ast.AST, module: str, names: tuple[str, ...]) -> bool:
    """True for `module.name`."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr in names
        and isinstance(node.value, ast.Name)
        and node.value.id == module
    )


def is_import(node: ast.AST, module: str, names: tuple[str, ...]) -> bool:
    """True for `from module import name`."""
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == module
        and any(alias.name in names for alias in node.names)
    )


def calls_with_keyword(name: str) -> list[str]:
    """Every call with an argument `name=…`."""
    return [
        f"{file.relative_to(SRC)}:{node.lineno}"
        for file in files_with(f"{name}=")
        for node in nodes(file)
        if isinstance(node, ast.Call)
        if any(keyword.arg == name for keyword in node.keywords)
    ]


def test_no_command_goes_through_a_shell_of_the_library() -> None:
    """A shell is started as argv by the Runner.

    `shell=` (even False: it may be a variable tomorrow) is not a word of ours.
    """
    assert calls_with_keyword("shell") == []
    assert calls_with_keyword("cwd") != [], "the rule looks for a form that is still in use"
    assert where("create_subprocess_shell", "getoutput", "getstatusoutput") == []
    assert of_the_module("os", "system", "popen") == []


def test_no_data_is_loaded_as_code() -> None:
    forbidden = {"pickle", "cPickle", "dill", "shelve", "marshal", "cloudpickle"}
    imports = [
        f"{file.relative_to(SRC)}:{line} {target}"
        for file in python_files()
        for line, target in imported_modules(file)
        if target.split(".")[0] in forbidden
    ]
    assert imports == []
    yaml_calls = {
        node.func.attr
        for file in files_with("yaml.")
        for node in nodes(file)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "yaml"
    }
    assert yaml_calls == {"parse"}, "YAML is read as events, of which we build plain data ourselves"
    calls = [
        f"{file.relative_to(SRC)}:{node.lineno} {node.func.id}"
        for file in files_with("eval(", "exec(", "compile(")
        for node in nodes(file)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("eval", "exec", "compile")
    ]
    assert calls == []


def test_every_task_has_an_owner() -> None:
    """Long-lived tasks belong to the supervisor.

    `weft.sync` hands work to the one loop of its thread.  A store over a network drives its own
    connections, and ends after the sessions.
    """
    owners = ("actors/supervisor.py", "store/postgres/store_tasks.py")
    assert where("create_task", "ensure_future", but=owners) == []
    assert where("run_coroutine_threadsafe", but=("sync.py",)) == []
    assert where("create_task") != [], "the rule looks for a name that is still in use"


def test_only_the_app_and_the_command_line_read_the_environment() -> None:
    environment = ("environ", "environb", "getenv", "getenvb", "getcwd", "getcwdb")
    assert of_the_module("os", *environment, but=READ_THE_ENVIRONMENT) == []
    assert of_the_module("Path", "cwd", "home", but=READ_THE_ENVIRONMENT) == []
    assert where("expanduser", but=READ_THE_ENVIRONMENT) == []


def test_one_module_calls_git() -> None:
    """A repository's settings can make git run programs: `workspace/git.py` keeps them from it.

    The doctor only asks for a version.
    """
    allowed = ("workspace/git.py", "cli/commands/doctor.py")
    found = {
        str(file.relative_to(SRC))
        for file in files_with('"git"')
        for node in nodes(file)
        if isinstance(node, ast.Call | ast.Tuple | ast.List)
        for first in (node.args if isinstance(node, ast.Call) else node.elts)[:1]
        if isinstance(first, ast.Constant) and first.value == "git"
    }
    assert found == set(allowed)
