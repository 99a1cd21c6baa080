"""The read tool."""

from __future__ import annotations

import os

import pytest

from tests.support.tool_bench import ToolBench
from weft.errors import FinalToolError
from weft.tools.builtin.read import MAX_CHARACTERS, MAX_LINE

pytestmark = pytest.mark.anyio


async def test_lines_come_numbered(bench: ToolBench) -> None:
    bench.write("a.txt", "one\ntwo\n\nfour\n")
    assert (
        await bench.text("read", path="a.txt") == "     1\tone\n     2\ttwo\n     3\t\n     4\tfour"
    )


async def test_a_range_is_shown_and_what_is_left_is_said(bench: ToolBench) -> None:
    bench.write("a.txt", "".join(f"line {n}\n" for n in range(1, 101)))
    assert await bench.text("read", path="a.txt", offset=50, limit=2) == (
        "    50\tline 50\n    51\tline 51\n(lines 52 to 100 are not shown; use offset=52)"
    )
    assert await bench.text("read", path="a.txt", offset=100) == "   100\tline 100"
    with pytest.raises(FinalToolError, match="only 100 lines"):
        await bench.run("read", path="a.txt", offset=101)


async def test_windows_line_ends_and_marks_are_not_shown(bench: ToolBench) -> None:
    bench.write("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    assert await bench.text("read", path="a.txt") == "     1\tone\n     2\ttwo"
    bench.write("b.txt", "\ufeffärger\r\n".encode("utf-16-le"))
    assert await bench.text("read", path="b.txt") == "     1\tärger"
    bench.write("c.txt", "straße“".encode("cp1252"))
    assert await bench.text("read", path="c.txt") == "     1\tstraße“"


async def test_only_line_feeds_end_a_line(bench: ToolBench) -> None:
    bench.write("a.txt", "a\u2028b\x0cc\x85d\ne\n")
    assert await bench.text("read", path="a.txt", offset=2) == "     2\te"


async def test_long_lines_and_long_files_are_cut_with_a_word_about_it(bench: ToolBench) -> None:
    bench.write("long.txt", "x" * (MAX_LINE + 7) + "\n")
    assert "(… 7 more characters)" in await bench.text("read", path="long.txt")
    bench.write("big.txt", ("y" * 999 + "\n") * 1000)
    text = await bench.text("read", path="big.txt")
    assert len(text) < MAX_CHARACTERS + 200
    assert "are not shown; use offset=" in text


async def test_an_empty_file_says_so(bench: ToolBench) -> None:
    bench.write("a.txt", "")
    assert "empty" in await bench.text("read", path="a.txt")


async def test_a_binary_file_is_refused_with_its_size(bench: ToolBench) -> None:
    bench.write("a.bin", bytes(range(256)) * 4)
    with pytest.raises(FinalToolError, match=r"binary file of 1,024 bytes"):
        await bench.run("read", path="a.bin")


async def test_a_folder_points_to_the_list_tool(bench: ToolBench) -> None:
    bench.write("src/a.py", "")
    with pytest.raises(FinalToolError, match="use the list tool"):
        await bench.run("read", path="src")


async def test_a_missing_file_names_what_was_probably_meant(bench: ToolBench) -> None:
    bench.write("src/settings.py", "")
    with pytest.raises(FinalToolError, match=r"did you mean 'src/settings.py'"):
        await bench.run("read", path="src/setting.py")
    with pytest.raises(FinalToolError, match="there is no folder 'source'"):
        await bench.run("read", path="source/settings.py")


async def test_it_is_judged_by_the_real_name_and_has_no_effect(bench: ToolBench) -> None:
    bench.write("AGENTS.md", "hi\n")
    (bench.root / "CLAUDE.md").symlink_to("AGENTS.md")
    prepared = await bench.prepare("read", path="CLAUDE.md")
    assert (prepared.action.target, prepared.action.kind) == ("AGENTS.md", "read")
    assert not prepared.action.has_effect
    assert not prepared.action.outside
    outside = await bench.prepare("read", path="/etc/hostname")
    assert outside.action.outside


async def test_a_link_that_is_swapped_after_it_was_judged_is_not_read(bench: ToolBench) -> None:
    bench.write("real/a.txt", "inside\n")
    secret = bench.root.parent / "secret"
    secret.mkdir()
    (secret / "a.txt").write_text("outside")
    prepared = await bench.prepare("read", path="real/a.txt")
    os.rename(bench.root / "real", bench.root / "gone")
    (bench.root / "real").symlink_to(secret)
    with pytest.raises(FinalToolError):
        await prepared.run()


async def test_the_version_that_was_read_is_noted(bench: ToolBench) -> None:
    bench.write("a.txt", "one\n")
    outcome = await bench.run("read", path="./a.txt")
    seen = bench.context.reads.seen("a.txt")
    assert seen is not None
    assert outcome.data == {"read": {"a.txt": seen}}


async def test_a_wide_encoding_with_its_mark_is_text(bench: ToolBench) -> None:
    bench.write("a.txt", "\ufeffone\ntwo".encode("utf-32-le"))
    assert await bench.text("read", path="a.txt") == "     1\tone\n     2\ttwo"
    await bench.run("edit", path="a.txt", old_string="two", new_string="zwei")
    assert (bench.root / "a.txt").read_bytes() == "\ufeffone\nzwei".encode("utf-32-le")


async def test_a_line_beyond_what_can_be_read_is_not_said_to_be_missing(bench: ToolBench) -> None:
    bench.write("huge.log", (b"y" * 1023 + b"\n") * 40 * 1024)
    with pytest.raises(FinalToolError, match="32768 lines, can be read here; use grep"):
        await bench.run("read", path="huge.log", offset=40_000)
