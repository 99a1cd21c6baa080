"""write, edit and multi_edit: read before write, nothing lost, bytes kept."""

from __future__ import annotations

import os
import stat
from hashlib import sha256

import pytest

from tests.support.tool_bench import ToolBench
from weft.errors import FinalToolError, RetryableToolError

pytestmark = pytest.mark.anyio


def hash_of(data: bytes) -> str:
    return sha256(data).hexdigest()


# --- write
# -------------------------------------------------------------------------------------------


async def test_a_new_file_is_written_with_its_folders(bench: ToolBench) -> None:
    prepared = await bench.prepare("write", path="a/b.txt", content="x\ny\n")
    assert prepared.pre_hashes == {"a/b.txt": ""}
    assert prepared.post_hashes == {"a/b.txt": hash_of(b"x\ny\n")}
    assert (prepared.action.kind, prepared.action.target, prepared.action.has_effect) == (
        "edit",
        "a/b.txt",
        True,
    )
    assert "+x" in prepared.preview
    assert not (bench.root / "a").exists()
    outcome = await prepared.run()
    assert outcome.text == "wrote a/b.txt (2 lines)"
    assert (bench.root / "a/b.txt").read_text() == "x\ny\n"
    assert [touched.action for touched in outcome.touched] == ["created"]


async def test_a_long_change_is_shown_whole_before_and_kept_in_part_after(
    bench: ToolBench,
) -> None:
    content = "".join(f"line {number}\n" for number in range(3_000))
    prepared = await bench.prepare("write", path="long.txt", content=content)
    assert prepared.preview.endswith("+line 2999")
    outcome = await prepared.run()
    assert outcome.data["diff"].endswith("more lines)")


async def test_an_existing_file_must_have_been_read_in_this_version(bench: ToolBench) -> None:
    file = bench.write("a.txt", "old\n")
    with pytest.raises(RetryableToolError, match="have not read it"):
        await bench.run("write", path="a.txt", content="new\n")
    await bench.run("read", path="a.txt")
    bench.write("a.txt", "someone else\n")
    with pytest.raises(RetryableToolError, match="was changed since you read it"):
        await bench.run("write", path="a.txt", content="new\n")
    assert file.read_text() == "someone else\n"
    await bench.run("read", path="a.txt")
    assert "overwrote" in await bench.text("write", path="a.txt", content="new\n")
    assert "overwrote" in await bench.text("write", path="a.txt", content="newer\n")
    assert file.read_text() == "newer\n"


async def test_a_change_between_showing_and_writing_is_not_overwritten(bench: ToolBench) -> None:
    file = bench.write("a.txt", "old\n")
    await bench.run("read", path="a.txt")
    for prepared in (
        await bench.prepare("write", path="a.txt", content="new\n"),
        await bench.prepare("edit", path="a.txt", old_string="old", new_string="new"),
    ):
        bench.write("a.txt", "someone else\n")
        with pytest.raises(RetryableToolError, match="nothing was written"):
            await prepared.run()
        assert file.read_text() == "someone else\n"
        bench.write("a.txt", "old\n")


async def test_overwriting_keeps_line_ends_mark_encoding_and_mode(bench: ToolBench) -> None:
    file = bench.write("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    file.chmod(0o755)
    await bench.run("read", path="a.txt")
    outcome = await bench.run("write", path="a.txt", content="1\n2\n3\n")
    assert file.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n3\r\n"
    assert "line ends were kept" in outcome.text
    assert stat.S_IMODE(file.stat().st_mode) == 0o755
    bench.write("b.txt", "ärger\n".encode("cp1252"))
    await bench.run("read", path="b.txt")
    await bench.run("write", path="b.txt", content="größer\n")
    assert (bench.root / "b.txt").read_bytes() == "größer\n".encode("cp1252")
    assert "UTF-8 now" in await bench.text("write", path="b.txt", content="→\n")
    assert (bench.root / "b.txt").read_text() == "→\n"


# --- edit
# --------------------------------------------------------------------------------------------


async def test_an_edit_replaces_exactly_what_it_names(bench: ToolBench) -> None:
    file = bench.write("a.py", "def f():\n    return 1\n\ndef g():\n    return 2\n")
    await bench.run("read", path="a.py")
    prepared = await bench.prepare(
        "edit", path="a.py", old_string="return 1", new_string="return 10"
    )
    assert prepared.preview == (
        "--- a.py\n+++ a.py\n@@ -1,5 +1,5 @@\n def f():\n-    return 1\n+    return 10\n "
        "\n def g():\n     return 2"
    )
    before = file.read_bytes()
    outcome = await prepared.run()
    after = file.read_bytes()
    assert after == before.replace(b"return 1\n", b"return 10\n")
    assert outcome.text == "edited a.py: 1 replacement"
    assert prepared.pre_hashes == {"a.py": hash_of(before)}
    assert prepared.post_hashes == {"a.py": hash_of(after)}
    touched = outcome.touched[0]
    assert (touched.action, touched.data_before, touched.data_after) == ("modified", before, after)


async def test_an_edit_of_a_file_that_was_never_read_tells_nothing_about_it(
    bench: ToolBench,
) -> None:
    bench.write("a.txt", "secret\n")
    for path in ("a.txt", "none.txt", str(bench.root.parent)):
        with pytest.raises(FinalToolError, match=r"have not read|is a folder") as caught:
            await bench.run("edit", path=path, old_string="x", new_string="y")
        assert "secret" not in str(caught.value)


async def test_an_edit_that_still_fits_is_merged_into_a_changed_file(bench: ToolBench) -> None:
    file = bench.write("a.txt", "one\ntwo\nthree\n")
    await bench.run("read", path="a.txt")
    bench.write("a.txt", "zero\none\ntwo\nthree\n")
    text = await bench.text("edit", path="a.txt", old_string="two", new_string="2")
    assert file.read_text() == "zero\none\n2\nthree\n"
    assert "had been changed since you read it" in text
    bench.write("a.txt", "one\n2\n2\n")
    with pytest.raises(FinalToolError, match="occurs 2 times"):
        await bench.run("edit", path="a.txt", old_string="2", new_string="two")
    assert file.read_text() == "one\n2\n2\n"


async def test_several_places_need_replace_all(bench: ToolBench) -> None:
    file = bench.write("a.txt", "x\ny\nx\n")
    await bench.run("read", path="a.txt")
    with pytest.raises(FinalToolError, match=r"occurs 2 times \(at lines 1, 3\)"):
        await bench.run("edit", path="a.txt", old_string="x", new_string="z")
    assert "2 replacements" in await bench.text(
        "edit", path="a.txt", old_string="x", new_string="z", replace_all=True
    )
    assert file.read_text() == "z\ny\nz\n"


async def test_a_miss_shows_the_nearest_text_and_what_differs(bench: ToolBench) -> None:
    bench.write(
        "a.py", "import os\n\ndef total(items):\n\treturn sum(item.price for item in items)\n"
    )
    await bench.run("read", path="a.py")
    with pytest.raises(FinalToolError) as tabs:
        await bench.run(
            "edit",
            path="a.py",
            old_string="def total(items):\n    return sum(item.price for item in items)",
            new_string="x",
        )
    assert "but for white space" in str(tabs.value)
    assert "     4\t\treturn sum(item.price for item in items)" in str(tabs.value)
    assert "'\\treturn sum" in str(tabs.value)
    with pytest.raises(FinalToolError) as near:
        await bench.run(
            "edit", path="a.py", old_string="return sum(i.price for i in items)", new_string="x"
        )
    assert "The nearest text is this" in str(near.value)
    assert "line 4" in str(near.value)
    with pytest.raises(FinalToolError, match="Nothing in the file comes near"):
        await bench.run("edit", path="a.py", old_string="zzz_qqq(17)", new_string="x")


async def test_what_changes_nothing_is_refused(bench: ToolBench) -> None:
    bench.write("a.txt", "x\n")
    await bench.run("read", path="a.txt")
    with pytest.raises(FinalToolError, match="the same"):
        await bench.run("edit", path="a.txt", old_string="x", new_string="x")
    with pytest.raises(FinalToolError, match="empty"):
        await bench.run("edit", path="a.txt", old_string="", new_string="x")


async def test_a_character_the_files_encoding_does_not_have_is_refused(bench: ToolBench) -> None:
    file = bench.write("a.txt", "ärger\n".encode("cp1252"))
    await bench.run("read", path="a.txt")
    with pytest.raises(FinalToolError, match="has no '→'"):
        await bench.run("edit", path="a.txt", old_string="ärger", new_string="→")
    await bench.run("edit", path="a.txt", old_string="ärger", new_string="öl")
    assert file.read_bytes() == "öl\n".encode("cp1252")


async def test_a_binary_or_linked_or_doubled_file_is_not_edited(bench: ToolBench) -> None:
    bench.write("a.bin", b"\0\1\2")
    bench.context.reads.saw("a.bin", bench.context.reads.seen("x") or "0")  # type: ignore[arg-type]
    with pytest.raises(FinalToolError, match="binary"):
        await bench.run("edit", path="a.bin", old_string="x", new_string="y")
    bench.write("a.txt", "x\n")
    os.link(bench.root / "a.txt", bench.root / "b.txt")
    await bench.run("read", path="a.txt")
    with pytest.raises(FinalToolError, match="hard links"):
        await bench.run("edit", path="a.txt", old_string="x", new_string="y")


async def test_editing_through_a_link_edits_and_names_the_real_file(bench: ToolBench) -> None:
    file = bench.write("AGENTS.md", "x\n")
    (bench.root / "CLAUDE.md").symlink_to("AGENTS.md")
    await bench.run("read", path="CLAUDE.md")
    prepared = await bench.prepare("edit", path="CLAUDE.md", old_string="x", new_string="y")
    assert prepared.action.target == "AGENTS.md"
    await prepared.run()
    assert file.read_text() == "y\n"
    assert (bench.root / "CLAUDE.md").is_symlink()


async def test_a_file_that_programs_obey_is_marked_as_protected(bench: ToolBench) -> None:
    bench.write(".git/config", "x\n")
    (bench.root / "innocent").symlink_to(".git")
    for path in (".git/hooks/pre-commit", "innocent/hooks/pre-commit", ".GIT/config"):
        prepared = await bench.prepare("write", path=path, content="x")
        assert prepared.action.protected
    assert not (await bench.prepare("write", path="a.py", content="x")).action.protected


async def test_a_folder_that_becomes_a_repository_is_protected_like_one(bench: ToolBench) -> None:
    for name in ("b/config", "b/objects/x", "b/refs/x"):
        assert not (await bench.prepare("write", path=name, content="x")).action.protected
        bench.write(name, "x")
    assert (await bench.prepare("write", path="b/HEAD", content="x")).action.protected
    bench.write("b/HEAD", "ref: refs/heads/main\n")
    for name in ("b/hooks/pre-commit", "b/config.worktree"):
        assert (await bench.prepare("write", path=name, content="x")).action.protected


# --- multi_edit
# --------------------------------------------------------------------------------------


async def test_several_edits_build_on_each_other(bench: ToolBench) -> None:
    file = bench.write("a.txt", "one\ntwo\n")
    await bench.run("read", path="a.txt")
    edits = [
        {"old_string": "one", "new_string": "two"},
        {"old_string": "two", "new_string": "2", "replace_all": True},
    ]
    assert "3 replacements" in await bench.text("multi_edit", path="a.txt", edits=edits)
    assert file.read_text() == "2\n2\n"


async def test_one_edit_that_does_not_fit_leaves_the_file_as_it_was(bench: ToolBench) -> None:
    file = bench.write("a.txt", "one\ntwo\n")
    await bench.run("read", path="a.txt")
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "none", "new_string": "0"}]
    with pytest.raises(FinalToolError, match="edit 2 of 2"):
        await bench.run("multi_edit", path="a.txt", edits=edits)
    assert file.read_text() == "one\ntwo\n"


async def test_line_numbers_in_the_old_text_are_pointed_out(bench: ToolBench) -> None:
    bench.write("a.py", "def f():\n    return 1\n")
    shown = await bench.text("read", path="a.py")
    with pytest.raises(FinalToolError, match="numbers that the read tool shows"):
        await bench.run("edit", path="a.py", old_string=shown, new_string="x")


async def test_a_name_that_ends_like_a_folder_is_not_written(bench: ToolBench) -> None:
    with pytest.raises(FinalToolError, match="names a folder"):
        await bench.run("write", path="docs/", content="x")
    assert not (bench.root / "docs").exists()
