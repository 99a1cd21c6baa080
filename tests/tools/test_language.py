"""The tools that ask language servers, with the scripted one behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tests.support.language_project import scripted_pool
from tests.support.tool_bench import ToolBench
from weft.errors import FinalToolError, ToolError
from weft.ids import BlobId
from weft.lsp import CodeQueries
from weft.tools.builtin.language import LspTool, RenameTool
from weft.workspace import ChangedFile, LocalRunner, LocalWorkspace

pytestmark = [pytest.mark.anyio, pytest.mark.process]

FILES = {
    "names.scr": "def über\ndef old é\n",
    "user.scr": "use old\n🎉 use old\nuse older\n",
}


@asynccontextmanager
async def bench(
    root: Path, *traps: str, files: dict[str, str] | None = None, suffix: str = ".scr"
) -> AsyncIterator[ToolBench]:
    """The tools on a project with files that use each other."""
    made = ToolBench(root, LocalRunner({"PATH": "/usr/bin:/bin"}))
    for name, text in (FILES if files is None else files).items():
        made.write(name, text)
    made.tools |= {tool.name: tool for tool in (LspTool(), RenameTool())}
    async with scripted_pool(root, *traps, suffix=suffix) as pool:

        async def code() -> CodeQueries:
            return CodeQueries(pool)

        made.context = msgspec.structs.replace(made.context, code=code)
        yield made


@pytest.mark.parametrize("trap", ["", "utf8"])
async def test_a_name_is_found_where_it_is_defined_and_used(tmp_path: Path, trap: str) -> None:
    async with bench(tmp_path, *([trap] if trap else [])) as tools:
        where = {"path": "user.scr", "symbol": "old", "line": 2}
        assert await tools.text("lsp", action="definition", **where) == "names.scr:2:5 def old é"
        used = await tools.text("lsp", action="references", **where)
        assert used.splitlines() == [
            "names.scr:2:5 def old é",
            "user.scr:1:5 use old",
            "user.scr:2:7 🎉 use old",
        ]
        assert await tools.text("lsp", action="hover", **where) == "name old"


async def test_lines_are_counted_as_the_protocol_counts_them(tmp_path: Path) -> None:
    """A form feed or a line separator in a string ends no line there."""
    files = {"a.scr": "x\x0cy \u2028 z\ndef old\n"}
    async with bench(tmp_path, files=files) as tools:
        found = await tools.text("lsp", action="definition", path="a.scr", symbol="old")
    assert found == "a.scr:2:5 def old"


async def test_symbols_of_a_file_and_of_the_project(tmp_path: Path) -> None:
    async with bench(tmp_path) as tools:
        assert await tools.text("lsp", action="symbols", path="names.scr") == (
            "1: function über\n2: function old"
        )
        found = await tools.text("lsp", action="symbols", path="user.scr", query="ol")
        assert found == "names.scr:2:5 function old"
        assert "no symbol like" in await tools.text(
            "lsp", action="symbols", path="user.scr", query="zzz"
        )


async def test_diagnostics_of_a_file_as_it_is_on_disk_now(tmp_path: Path) -> None:
    async with bench(tmp_path) as tools:
        tools.write("user.scr", "BUG 1\n")
        first = await tools.text("lsp", action="diagnostics", path="user.scr")
        tools.write("user.scr", "BUG 22\n")
        second = await tools.text("lsp", action="diagnostics", path="user.scr")
    assert first.splitlines()[1:] == ["user.scr:1:1 error: BUG 1 [scripted]"]
    assert second.splitlines()[1:] == ["user.scr:1:1 error: BUG 22 [scripted]"]


async def test_a_rename_is_prepared_with_a_preview_and_changes_all_files(tmp_path: Path) -> None:
    async with bench(tmp_path) as tools:
        prepared = await tools.prepare("rename", path="user.scr", symbol="old", new_name="new")
        assert prepared.action.kind == "edit"
        assert {part.target for part in prepared.action.parts} == {"names.scr", "user.scr"}
        assert {part.acts_as for part in prepared.action.parts} == {"edit"}
        assert "-def old é\n+def new é" in prepared.preview
        assert (tmp_path / "names.scr").read_text() == FILES["names.scr"], "not before it may"
        outcome = await prepared.run()
    assert outcome.text.splitlines()[0] == "renamed old to new: 3 places in 2 files"
    assert (tmp_path / "names.scr").read_text() == "def über\ndef new é\n"
    assert (tmp_path / "user.scr").read_text() == "use new\n🎉 use new\nuse older\n"
    assert {each.path for each in outcome.touched} == {"names.scr", "user.scr"}


async def test_a_rename_keeps_line_ends_and_the_byte_order_mark(tmp_path: Path) -> None:
    files = {"a.scr": "\ufeffdef old\r\nuse old\r\n"}
    async with bench(tmp_path, files=files) as tools:
        await tools.run("rename", path="a.scr", symbol="old", new_name="new")
    assert (tmp_path / "a.scr").read_bytes() == "\ufeffdef new\r\nuse new\r\n".encode()


async def test_a_rename_of_what_changed_while_the_user_was_asked_is_refused(
    tmp_path: Path,
) -> None:
    async with bench(tmp_path) as tools:
        prepared = await tools.prepare("rename", path="user.scr", symbol="old", new_name="new")
        tools.write("names.scr", "def other\n")
        with pytest.raises(ToolError):
            await prepared.run()
    assert (tmp_path / "user.scr").read_text() == FILES["user.scr"]


async def test_what_a_server_was_not_shown_of_many_files_is_said(tmp_path: Path) -> None:
    """One that knows of open files only would be taken for sure of all."""
    files = {"a.py": "def old\n"}
    files |= {f"d/u{number:02}.py": "use old\n" for number in range(60)}
    async with bench(tmp_path, "open-only", files=files, suffix=".py") as tools:
        used = await tools.text("lsp", action="references", path="a.py", symbol="old")
        prepared = await tools.prepare("rename", path="a.py", symbol="old", new_name="new")
        outcome = await prepared.run()
    rest = "'old' also stands in 13 files that the server was not shown: d/u47.py, d/u48.py, "
    assert len(used.splitlines()) == 49
    assert used.splitlines()[-1].startswith(rest)
    assert used.endswith("d/u56.py, …")
    assert rest in outcome.text.splitlines()[0]
    assert prepared.preview.splitlines()[-1].startswith(f"({rest}")


class FailingWorkspace(LocalWorkspace):
    """Writes one file no more."""

    async def write(self, path: str, data: bytes, *, expected: BlobId | None) -> ChangedFile:
        if path == "user.scr":
            raise FinalToolError("no space left on the device")
        return await super().write(path, data, expected=expected)


async def test_a_rename_that_fails_half_way_is_taken_back(tmp_path: Path) -> None:
    async with bench(tmp_path) as tools:
        tools.context = msgspec.structs.replace(
            tools.context, workspace=FailingWorkspace(str(tmp_path))
        )
        with pytest.raises(ToolError, match=r"no space left.*nothing was changed"):
            await tools.run("rename", path="user.scr", symbol="old", new_name="new")
    for name, text in FILES.items():
        assert (tmp_path / name).read_text() == text


async def test_a_rename_does_not_count_as_having_read_its_files(tmp_path: Path) -> None:
    """The model has seen one line of them; to overwrite one it has to read it first."""
    async with bench(tmp_path) as tools:
        await tools.run("read", path="user.scr")
        outcome = await tools.run("rename", path="user.scr", symbol="old", new_name="new")
        assert set(outcome.data["read"]) == {"user.scr"}
        await tools.run("edit", path="user.scr", old_string="use older", new_string="x")
        with pytest.raises(ToolError, match="have not read"):
            await tools.run("write", path="names.scr", content="def x\n")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"action": "hover", "path": "user.scr"}, "needs a symbol"),
        ({"action": "hover", "path": "user.scr", "symbol": "ol"}, "'ol' does not stand in"),
        ({"action": "hover", "path": "user.scr", "symbol": "old", "line": 9}, "has 4 lines"),
        ({"action": "hover", "path": "a.txt", "symbol": "x"}, "no language server for 'a.txt'"),
        ({"action": "symbols", "path": "gone.scr"}, "gone, too large, or no UTF-8"),
    ],
)
async def test_what_cannot_be_answered_is_said_in_a_sentence(
    tmp_path: Path, args: dict[str, object], said: str
) -> None:
    async with bench(tmp_path) as tools:
        with pytest.raises(ToolError, match=said):
            await tools.run("lsp", **args)


async def test_a_server_that_has_failed_is_named_with_the_reason(tmp_path: Path) -> None:
    async with bench(tmp_path, "proxy") as tools:
        with pytest.raises(FinalToolError, match="not installed"):
            await tools.run("lsp", action="hover", path="user.scr", symbol="old")
