"""The server costs those nothing who have none."""

from __future__ import annotations

from tests.support.source_code import SRC, imported_modules, python_files

LIBRARIES = ("uvicorn", "starlette", "websockets")
MAY_LOAD = (
    *("server/", "cli/server/", "cli/attach/", "cli/operate/background_run.py"),
    *("cli/unattended/", "__init__.py"),
)


def test_only_the_server_and_its_own_commands_load_it() -> None:
    """Not even inside a function; the face names `weft.connect`, and loads it when it is used."""
    found = [
        f"{name}:{line} imports {target}"
        for file in python_files()
        if not (name := str(file.relative_to(SRC))).startswith(MAY_LOAD)
        for line, target in imported_modules(file)
        if target.startswith("weft.server") or target.split(".")[0] in LIBRARIES
    ]
    assert found == []
