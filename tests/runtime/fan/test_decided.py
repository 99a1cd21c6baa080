"""What a user decides of candidates: conflict markers, a prune that is taken back, a candidate gone
on with by hand.
"""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.support.fan_stage import (
    RIGHT,
    VERIFY,
    WRONG,
    candidate_model,
    make_stage,
    open_stage,
    right,
    shell_call,
)
from tests.support.world import PATIENCE, World
from weft.api.fan import Fan
from weft.errors import FinalToolError, UsageError
from weft.runtime.fan import candidate_changes, candidate_copy, fan_run
from weft.runtime.fan.candidate_changes import CandidateDiff
from weft.workspace.sandbox.merge import merge_marked

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.timeout(90)]

WORK = (
    "sed -i s/one/eins/ README.md; mkdir new; printf 'a\\0b' > new/bin; ln -s new link; "
    "rm -r tests; chmod +x src/add.py; echo made > made.txt"
)


@pytest.fixture
def stage(tmp_path: Path) -> World:
    made = World("sqlite", tmp_path)
    make_stage(made)
    return made


async def waited(fan: Fan) -> None:
    with anyio.fail_after(PATIENCE):
        await fan.wait()


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"),
        ("a\nb\n", "x\nb\n", "x\nb\n", "x\nb\n"),
        ("a\nb\n", "x\nb\n", "y\nb\n", "<<<<<<< yours\ny\n=======\nx\n>>>>>>> it\nb\n"),
        ("", "x", "y\n", "<<<<<<< yours\ny\n=======\nx\n>>>>>>> it\n"),
        (
            "a\nb\nc\nd\n",
            "a\nX\nc\nd\n",
            "a\nd\n",
            "a\n<<<<<<< yours\n=======\nX\nc\n>>>>>>> it\nd\n",
        ),
    ],
)
def test_both_versions_stand_between_markers_where_they_meet_and_nowhere_else(
    base: str, ours: str, theirs: str, merged: str
) -> None:
    sides = [text.encode() for text in (base, ours, theirs)]
    assert merge_marked(*sides, our_name="it", their_name="yours") == merged.encode()


def test_what_is_no_text_has_no_markers() -> None:
    assert merge_marked(b"\0", b"a", b"b", our_name="it", their_name="yours") is None


async def test_conflicts_are_put_between_markers_on_request_and_a_rewind_takes_them_back(
    stage: World,
) -> None:
    work = shell_call("sed -i 's/one/eins/; s/three/drei/' README.md; echo c > both.txt")
    async with open_stage(stage, candidate_model("script", work, "Done.")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1, verify="! grep '<<<' README.md")
        await waited(fan)
        mine = "uno\n\n\ntwo\n\n\nthree\n"
        stage.write("README.md", mine)
        stage.write("both.txt", "u\n")
        plan = (await fan.keep(1, preview=True, conflicts="markers")).plan
        assert plan.paths("marked") == ["README.md", "both.txt"]
        assert stage.read("README.md") == mine
        kept = await fan.keep(1, conflicts="markers")
        assert (kept.is_kept, kept.verified, kept.left) == (True, None, ())
        assert stage.read("README.md") == (
            "<<<<<<< yours\nuno\n=======\neins\n>>>>>>> candidate 1\n\n\ntwo\n\n\ndrei\n"
        )
        assert stage.read("both.txt") == "<<<<<<< yours\nu\n=======\nc\n>>>>>>> candidate 1\n"
        assert "onflict markers" in (await session.messages())[-1].content
        await session.rewind(None)
        assert stage.read("README.md") == mine


@pytest.mark.requirement("event:FanCandidateRestored")
@pytest.mark.parametrize("sandbox", ["on", "off"])
async def test_a_prune_is_taken_back_with_all_that_the_candidate_had_changed(
    stage: World, sandbox: str
) -> None:
    config = {"permissions.allow": ["shell"], "sandbox.mode": sandbox}
    model = candidate_model("script", shell_call(WORK), "Done.")
    async with stage.open(model, config=config) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1)
        await waited(fan)
        before = await fan.diff(1)
        plan = (await fan.keep(1, preview=True)).plan
        assert len(plan.changes) == 6
        with pytest.raises(UsageError, match="not pruned"):
            await fan.restore(1)
        await fan.prune(1)
        fan_id = fan.id
    async with stage.open(model, config=config) as app:
        fan = await app.fan(fan_id)
        assert fan.candidates()[0].state == "pruned"
        await fan.restore(1)
        assert fan.candidates()[0].state == "done"
        assert (await fan.keep(1, preview=True)).plan == plan
        assert await fan.diff(1) == before
        assert (await fan.keep(1)).is_kept
        assert (stage.project / "link").is_symlink()
        assert not (stage.project / "tests" / "test_add.py").exists()
        await fan.prune(1)
        await fan.close()
        with pytest.raises(UsageError, match="gone"):
            await fan.restore(1)


async def test_a_candidate_whose_work_cannot_be_read_now_is_not_pruned(
    stage: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1)
        await waited(fan)

        async def locked(*args: object) -> CandidateDiff:
            raise FinalToolError("the commit of the base cannot be read: a lock")

        with monkeypatch.context() as patch:
            patch.setattr(fan_run, "candidate_diff", locked)
            with pytest.raises(FinalToolError, match="a lock"):
                await fan.prune(1)
        assert fan.candidates()[0].state == "done"
        await fan.prune(1)
        await fan.restore(1)
        assert (await fan.keep(1)).is_kept
        assert stage.read("src/add.py") == RIGHT


@pytest.mark.parametrize("sandbox", ["on", "off"])
@pytest.mark.parametrize(
    ("limit", "named"), [("LARGEST", "made.bin"), ("MOST_PACKED", "more than")]
)
async def test_what_a_prune_cannot_store_is_named_before_it_is_lost(
    stage: World, monkeypatch: pytest.MonkeyPatch, sandbox: str, limit: str, named: str
) -> None:
    monkeypatch.setattr(candidate_changes, limit, 100)
    monkeypatch.setattr(candidate_copy, "LARGEST", candidate_changes.LARGEST)
    work = shell_call("head -c 200 /dev/zero > made.bin; echo s > small.txt")
    config = {"permissions.allow": ["shell"], "sandbox.mode": sandbox}
    async with stage.open(candidate_model("script", work, "Done."), config=config) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1)
        await waited(fan)
        with pytest.raises(UsageError, match=f"(?s){named}.*force"):
            await fan.prune(1)
        assert fan.candidates()[0].state == "done"
        await fan.prune(1, force=True)
        assert fan.candidates()[0].state == "pruned"
        if limit == "LARGEST":
            await fan.restore(1)
            assert (await fan.keep(1)).is_kept
            assert stage.read("small.txt") == "s\n"
            assert not (stage.project / "made.bin").exists()


async def test_a_candidate_is_gone_on_with_by_hand_and_is_checked_again(stage: World) -> None:
    model = candidate_model(
        "script",
        shell_call("echo half > half.txt"),
        "Half.",
        shell_call("sed -i s/-/+/ src/add.py"),
        "Mended.",
    )
    async with open_stage(stage, model) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1, verify=VERIFY)
        await waited(fan)
        assert fan.candidates()[0].verify == "failed"
        mine = await app.sessions.get(await fan.open(1))
        assert mine.id == fan.candidates()[0].session
        assert fan.candidates()[0].state == "working"
        for call in (fan.keep, fan.prune, fan.open):
            with pytest.raises(UsageError, match="at work"):
                await call(1)
        stage.write("README.md", "the user's, meanwhile\n")
        result = await mine.send_message("now mend it")
        assert result.text == "Mended."
        assert stage.read("src/add.py") == WRONG
        await fan.release(1)
        (found,) = fan.candidates()
        assert (found.state, found.verify, found.files) == (
            *("done", "passed"),
            ("half.txt", "src/add.py"),
        )
        assert (await fan.keep(1)).is_kept
        assert stage.read("src/add.py") == RIGHT
        with pytest.raises(UsageError, match="not open"):
            await fan.release(1)
