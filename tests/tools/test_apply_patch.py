"""`apply_patch`: several files, all or nothing, judged and recorded like other edits."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tool_bench import ToolBench
from weft.agents.plan import PlanStep
from weft.agents.plan_approval import approved_edits
from weft.errors import FinalToolError, RetryableToolError
from weft.permissions import PermissionGrant, PermissionRule, decide, grant_pattern
from weft.permissions.rule_text import read_rule, taken_away
from weft.tools.files import MAX_KEPT

pytestmark = pytest.mark.anyio


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


UPDATE = ("*** Update File: a.py", "@@", " one", "-two", "+TWO", " three")
ADD = ("*** Add File: new/b.py", "+first", "+second")
DELETE = ("*** Delete File: old.py",)


@pytest.fixture
def files(bench: ToolBench) -> ToolBench:
    bench.write("a.py", "one\ntwo\nthree\n")
    bench.write("old.py", "gone\n")
    return bench


async def test_files_are_changed_added_and_deleted(files: ToolBench) -> None:
    outcome = await files.run("apply_patch", patch=patch(*UPDATE, *ADD, *DELETE))
    assert outcome.text == "changed a.py\nadded new/b.py\ndeleted old.py"
    assert (files.root / "a.py").read_text() == "one\nTWO\nthree\n"
    assert (files.root / "new/b.py").read_text() == "first\nsecond\n"
    assert not (files.root / "old.py").exists()
    assert [(each.path, each.action) for each in outcome.touched] == [
        ("a.py", "modified"),
        ("new/b.py", "created"),
        ("old.py", "deleted"),
    ]
    assert outcome.touched[2].data_before == b"gone\n"
    assert outcome.data["files"] == ["a.py", "new/b.py", "old.py"]


async def test_a_file_is_moved_with_its_changes(files: ToolBench) -> None:
    moved = ("*** Update File: a.py", "*** Move to: c/d.py", "@@", "-two", "+2")
    outcome = await files.run("apply_patch", patch=patch(*moved))
    assert outcome.text == "added c/d.py\ndeleted a.py"
    assert (files.root / "c/d.py").read_text() == "one\n2\nthree\n"
    assert not (files.root / "a.py").exists()


async def test_preparing_changes_nothing_and_shows_every_file(files: ToolBench) -> None:
    prepared = await files.prepare("apply_patch", patch=patch(*UPDATE, *ADD, *DELETE))
    assert prepared.preview.split("\n") == [
        *("*** a.py (changed)", "@@ -1,3 +1,3 @@", " one", "-two", "+TWO", " three"),
        *("*** new/b.py (added)", "@@ -0,0 +1,2 @@", "+first", "+second"),
        *("*** old.py (deleted)", "@@ -1,1 +0,0 @@", "-gone"),
    ]
    assert prepared.post_hashes["old.py"] == ""
    assert list(prepared.pre_hashes) == ["a.py", "new/b.py", "old.py"]
    assert prepared.pre_modes == {"old.py": (files.root / "old.py").stat().st_mode}
    assert (files.root / "old.py").exists()


async def test_a_file_without_lines_is_said_to_be_removed_or_created(files: ToolBench) -> None:
    files.write("empty.py", "")
    (files.root / "logo.png").write_bytes(b"\x89PNG\0\1")
    for name, shown in (
        ("empty.py", "remove empty.py, an empty file"),
        ("logo.png", "remove logo.png (6 bytes)"),
    ):
        prepared = await files.prepare("apply_patch", patch=patch(f"*** Delete File: {name}"))
        assert prepared.preview == shown
    prepared = await files.prepare("write", path="new.py", content="")
    assert prepared.preview == "create new.py, an empty file"


async def test_one_file_is_shown_as_any_other_edit(files: ToolBench) -> None:
    prepared = await files.prepare("apply_patch", patch=patch(*UPDATE))
    assert prepared.preview.startswith("--- a.py\n+++ a.py\n@@ ")
    assert (prepared.action.target, prepared.action.parts) == ("a.py", ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "must begin with the line"),
        (patch("*** Update File: no.py", "-x", "+y"), r"no file 'no\.py'; add it with \*\*\* Add"),
        (patch("*** Add File: a.py", "+x"), r"'a\.py' exists already"),
        (patch("*** Delete File: no.py"), r"there is no file 'no\.py'"),
        (patch("*** Update File: a.py", "-x", "+y"), r"a\.py: the piece fits nowhere"),
        (patch(*UPDATE, *UPDATE), r"the patch has 'a\.py' twice"),
        (
            patch("*** Update File: a.py", "*** Move to: old.py", "-two", "+2"),
            "nothing can be moved",
        ),
        (patch("*** Update File: bin", "-x", "+y"), "'bin' is a binary file"),
    ],
)
async def test_what_does_not_fit_is_refused_in_a_sentence(
    files: ToolBench, text: str, said: str
) -> None:
    files.write("bin", b"\x00\x01")
    with pytest.raises(FinalToolError, match=said):
        await files.prepare("apply_patch", patch=text)


async def test_a_piece_that_does_not_fit_leaves_every_file_as_it_is(files: ToolBench) -> None:
    with pytest.raises(FinalToolError):
        await files.prepare("apply_patch", patch=patch(*ADD, "*** Update File: a.py", "-x", "+y"))
    assert not (files.root / "new").exists()


async def test_a_file_that_changed_since_it_was_shown_is_not_touched(files: ToolBench) -> None:
    prepared = await files.prepare("apply_patch", patch=patch(*DELETE))
    files.write("old.py", "other\n")
    with pytest.raises(RetryableToolError, match="was changed since it was read"):
        await prepared.run()
    assert (files.root / "old.py").read_text() == "other\n"


async def test_what_was_done_before_a_refusal_is_told(files: ToolBench) -> None:
    prepared = await files.prepare("apply_patch", patch=patch(*UPDATE, *DELETE))
    files.write("old.py", "other\n")
    outcome = await prepared.run()
    assert outcome.is_error
    assert outcome.text.startswith("changed a.py\n'old.py' was changed since")
    assert outcome.text.endswith("Not done: old.py")
    assert [each.path for each in outcome.touched] == ["a.py"]


async def test_windows_line_ends_stay(files: ToolBench) -> None:
    files.write("a.py", "one\r\ntwo\r\nthree\r\n")
    await files.run("apply_patch", patch=patch(*UPDATE))
    assert (files.root / "a.py").read_bytes() == b"one\r\nTWO\r\nthree\r\n"


async def test_a_link_cannot_have_another_file_changed(files: ToolBench, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("one\ntwo\nthree\n")
    (files.root / "link.py").symlink_to(outside)
    text = patch("*** Update File: link.py", *UPDATE[1:])
    with pytest.raises(FinalToolError, match="leads out of the project"):
        await files.prepare("apply_patch", patch=text)


MOVE_LARGE = ("*** Update File: large.txt", "*** Move to: b.txt", "@@ x", "+y")


@pytest.mark.parametrize("lines", [("*** Delete File: large.txt",), MOVE_LARGE])
async def test_a_file_too_large_to_be_kept_is_not_removed(
    files: ToolBench, lines: tuple[str, ...]
) -> None:
    content = b"x\n" + b"." * (MAX_KEPT - 2)
    files.write("large.txt", content + b".")
    with pytest.raises(FinalToolError, match=r"'large\.txt' is too large .*with the shell"):
        await files.prepare("apply_patch", patch=patch(*lines))
    files.write("large.txt", content)
    await files.run("apply_patch", patch=patch(*lines))
    assert not (files.root / "large.txt").exists()


# --- permission --------------------------------------------------------------------------


async def test_every_file_of_a_patch_is_judged_and_the_strictest_counts(files: ToolBench) -> None:
    whole = (await files.prepare("apply_patch", patch=patch(*UPDATE, *DELETE))).action
    assert decide(whole, mode="accept_edits").verdict == "allow"
    assert decide(whole, mode="default").verdict == "ask"
    assert decide(whole, mode="plan").verdict == "deny"
    denied = read_rule("deny", "edit(old.py)")
    assert decide(whole, mode="bypass", rules=denied).verdict == "deny"
    one = PermissionRule(verdict="allow", tool="apply_patch", pattern="a.py")
    assert decide(whole, mode="default", rules=(one,)).verdict == "ask"
    both = PermissionRule(verdict="allow", tool="apply_patch", pattern="old.py")
    assert decide(whole, mode="default", rules=(one, both)).verdict == "allow"


async def test_a_patch_that_makes_a_repository_is_protected_as_a_whole(files: ToolBench) -> None:
    names = ("b/HEAD", "b/objects/x", "b/refs/x", "b/config")
    adds = "".join(f"*** Add File: {name}\n+x\n" for name in names)
    prepared = await files.prepare("apply_patch", patch=f"*** Begin Patch\n{adds}*** End Patch\n")
    assert [part.protected for part in prepared.action.parts] == [True] * len(names)


async def test_a_protected_file_asks_even_where_edits_are_allowed(files: ToolBench) -> None:
    text = patch(*UPDATE, "*** Add File: .git/hooks/pre-commit", "+x")
    whole = (await files.prepare("apply_patch", patch=text)).action
    decision = decide(whole, mode="accept_edits")
    assert (decision.verdict, decision.is_firm) == ("ask", True)


async def test_no_grant_stands_for_several_files(files: ToolBench) -> None:
    whole = (await files.prepare("apply_patch", patch=patch(*UPDATE, *DELETE))).action
    assert grant_pattern(whole) == ""
    given = PermissionGrant(pattern=f"apply_patch({whole.target})", scope="session")
    assert decide(whole, mode="default", grants=(given,)).verdict == "ask"


ADDED = patch("*** Add File: src/new.py", "+x")
CHANGED = patch("*** Update File: src/a.py", "-one", "+1")
DELETED = patch("*** Delete File: src/a.py")
MOVED = patch("*** Update File: src/a.py", "*** Move to: src/b.py", "-one", "+1")


@pytest.mark.parametrize(
    ("allowed", "covered"),
    [
        (["edit(src/*)"], [CHANGED]),
        (["Edit(src/**)"], [CHANGED]),
        (["edit"], [CHANGED]),
        (["write(src/*)"], [ADDED]),
        (["edit(src/*)", "write(src/*)"], [CHANGED, ADDED]),
        (["apply_patch(src/*)"], [CHANGED, ADDED, DELETED, MOVED]),
    ],
)
async def test_a_rule_that_allows_edits_allows_no_new_and_no_deleted_file(
    files: ToolBench, allowed: list[str], covered: list[str]
) -> None:
    files.write("src/a.py", "one\n")
    rules = [rule for text in allowed for rule in read_rule("allow", text)]
    for text in (ADDED, CHANGED, DELETED, MOVED):
        action = (await files.prepare("apply_patch", patch=text)).action
        verdict = decide(action, mode="default", rules=rules).verdict
        assert (text, verdict) == (text, "allow" if text in covered else "ask")


async def test_a_step_that_edits_a_file_does_not_delete_it(files: ToolBench) -> None:
    files.write("src/a.py", "one\n")
    rules = approved_edits(PlanStep(action="edit", description="x", details="", file="src/a.py"))
    changed = (await files.prepare("apply_patch", patch=CHANGED)).action
    deleted = (await files.prepare("apply_patch", patch=DELETED)).action
    assert decide(changed, mode="default", rules=rules).verdict == "allow"
    assert decide(deleted, mode="default", rules=rules).verdict == "ask"


async def test_a_grant_for_a_changed_file_does_not_delete_it(files: ToolBench) -> None:
    files.write("src/a.py", "one\n")
    changed = (await files.prepare("apply_patch", patch=CHANGED)).action
    deleted = (await files.prepare("apply_patch", patch=DELETED)).action
    given = PermissionGrant(pattern=grant_pattern(changed), scope="session")
    assert decide(changed, mode="default", grants=(given,)).verdict == "allow"
    assert decide(deleted, mode="default", grants=(given,)).verdict == "ask"
    assert grant_pattern(deleted) == ""


@pytest.mark.parametrize("text", [ADDED, CHANGED, DELETED])
@pytest.mark.parametrize("rule", ["edit(src/*)", "Edit", "write(src/*)", "apply_patch"])
async def test_a_rule_that_restricts_edits_holds_for_every_patch(
    files: ToolBench, text: str, rule: str
) -> None:
    files.write("src/a.py", "one\n")
    action = (await files.prepare("apply_patch", patch=text)).action
    assert decide(action, mode="bypass", rules=read_rule("deny", rule)).verdict == "deny"
    assert decide(action, mode="accept_edits", rules=read_rule("ask", rule)).verdict == "ask"


def test_a_rule_that_takes_edits_away_takes_patches_away() -> None:
    assert "apply_patch" in taken_away("edit")
