"""What a fan-out refuses, survives and tells, where calls meet or something fails."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.fan_project import viewed_project
from tests.support.fan_stage import (
    RIGHT,
    VERIFY,
    WRONG,
    candidate_model,
    make_stage,
    names,
    open_stage,
    right,
    shell_call,
    write_call,
)
from tests.support.world import PATIENCE, World
from weft.api.fan import Fan
from weft.errors import UsageError
from weft.events import FanCandidateEnded
from weft.file_io import write_all
from weft.runtime.fan import base_watch, fan_run
from weft.runtime.fan.base_files import BaseFile
from weft.runtime.fan.base_watch import pin_old
from weft.runtime.fan.candidate_changes import CandidateChange, CandidateDiff
from weft.runtime.fan.fan_run import FanRun
from weft.runtime.fan.kept_candidate import CandidateKeeper
from weft.workspace.sandbox.overlay_changes import TooMuch

pytestmark = [pytest.mark.anyio, pytest.mark.process, pytest.mark.timeout(90)]


@pytest.fixture
def stage(tmp_path: Path) -> World:
    made = World("sqlite", tmp_path)
    make_stage(made)
    return made


async def waited(fan: Fan) -> None:
    with anyio.fail_after(PATIENCE):
        await fan.wait()


def changed(text: str) -> CandidateDiff:
    after = BaseFile(0o100644, text.encode())
    return CandidateDiff(changes=(CandidateChange(path="a.py", after=after),))


def test_candidates_agree_where_blanks_at_the_ends_differ_and_not_where_indents_do() -> None:
    one = changed("if a:\n    b()\n    c()\n")
    assert one.group == changed("if a:  \n    b()\n\n    c()").group
    assert one.group != changed("if a:\n    b()\nc()\n").group


def diff_of(
    before: tuple[int, str] | None, after: tuple[int, str] | None
) -> tuple[list[str], int, int]:
    """The lines of one change, and how many came and went."""
    files = [
        None if each is None else BaseFile(each[0], each[1].encode()) for each in (before, after)
    ]
    diff = CandidateDiff(changes=(CandidateChange(path="a", before=files[0], after=files[1]),))
    return diff.text.splitlines(), diff.added, diff.removed


def test_a_diff_shows_links_empty_files_and_lines_that_look_like_heads() -> None:
    file, link, program = 0o100644, 0o120777, 0o100755
    linked = ["--- /dev/null", "+++ a (link)", "@@ -0,0 +1,1 @@", "+/etc/passwd"]
    assert diff_of(None, (link, "/etc/passwd")) == (linked, 1, 0)
    became = ["--- a", "+++ a (link)", "@@ -1,1 +1,1 @@", "-x", "+y"]
    assert diff_of((file, "x"), (link, "y")) == (became, 1, 1)
    assert diff_of(None, (file, "")) == (["--- /dev/null", "+++ a", "(empty)"], 0, 0)
    assert diff_of((file, ""), None) == (["--- a", "+++ /dev/null", "(empty)"], 0, 0)
    heads = ["--- a", "+++ a", "@@ -1,1 +1,1 @@", "--- x", "+++ y"]
    assert diff_of((file, "-- x\n"), (file, "++ y\n")) == (heads, 1, 1)
    made = ["--- /dev/null", "+++ a (mode 755)", "@@ -0,0 +1,1 @@", "+x"]
    assert diff_of(None, (program, "x\n")) == (made, 1, 0)
    modes = ["--- a", "+++ a (mode 755)", "@@ -1,1 +1,1 @@", "-x", "+y"]
    assert diff_of((file, "x\n"), (program, "y\n")) == (modes, 1, 1)


async def test_a_candidate_is_not_kept_amid_a_turn_of_its_session(stage: World) -> None:
    model = candidate_model("script", write_call("n.txt", "n\n"), "Done.")
    slow = candidate_model("slow", shell_call("sleep 60"), "x")
    async with open_stage(stage, slow, model) as app:
        session = await app.sessions.start_session(model="scripted:slow", permission_mode="auto")
        fan = await session.generate_branches("do", 1, names(model))
        await waited(fan)
        async with anyio.create_task_group() as group:
            group.start_soon(session.send_prompt, "wait")
            with anyio.fail_after(PATIENCE):
                while not slow.requests:  # noqa: ASYNC110 - the model has no event for it
                    await anyio.sleep(0.02)
            assert (await fan.keep(1, preview=True)).plan.paths("put") == ["n.txt"]
            with pytest.raises(UsageError, match="at work"):
                await fan.keep(1)
            await session.abort()
        assert not (stage.project / "n.txt").exists()
        assert (await fan.keep(1)).is_kept


async def test_one_that_is_kept_twice_at_once_is_on_record_once(stage: World) -> None:
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1, verify=VERIFY)
        await waited(fan)
        ends: list[bool | str] = []

        async def keep() -> None:
            try:
                ends.append((await fan.keep(1)).is_kept)
            except UsageError as error:
                ends.append(str(error))

        async with anyio.create_task_group() as group:
            group.start_soon(keep)
            group.start_soon(keep)
        assert ends[0] is True
        assert "already" in str(ends[1])
        assert len(await session.messages()) == 2


async def test_what_a_rewind_took_back_can_be_kept_again(stage: World) -> None:
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1, verify=VERIFY)
        await waited(fan)
        assert (await fan.keep(1)).is_kept
        await session.rewind(None)
        assert fan.candidates()[0].state == "done"
        assert stage.read("src/add.py") == WRONG
        assert (await fan.keep(1)).is_kept
        assert stage.read("src/add.py") == RIGHT
        assert fan.candidates()[0].state == "kept"


async def test_a_merge_that_is_there_already_is_nothing_to_keep(stage: World) -> None:
    model = candidate_model("script", shell_call("sed -i s/three/3/ README.md"), "Done.")
    async with open_stage(stage, model) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1)
        await waited(fan)
        stage.write("README.md", "1\n\n\ntwo\n\n\nthree\n")
        await fan.keep(1)
        assert (await fan.keep(1, preview=True)).plan.paths("same") == ["README.md"]
        with pytest.raises(UsageError, match="already"):
            await fan.keep(1)


async def test_a_repository_that_a_candidate_planted_is_not_kept(stage: World) -> None:
    line = (
        "mkdir -p b/objects b/refs; echo x | tee b/HEAD b/config b/objects/x b/refs/x; echo 1 > c"
    )
    async with open_stage(stage, candidate_model("script", shell_call(line), "Done.")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1)
        await waited(fan)
        plan = (await fan.keep(1, preview=True)).plan
        held = [path for path in plan.paths("conflict") if path.startswith("b/")]
        assert held == ["b/HEAD", "b/config", "b/objects/x", "b/refs/x"]
        assert "c" in plan.paths("put")


async def test_only_what_can_go_on_is_resumed(stage: World) -> None:
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 2)
        await waited(fan)
        await fan.prune(2)
        for index, why in ((1, "ended"), (2, "pruned"), (3, "no candidate")):
            with pytest.raises(UsageError, match=why):
                await fan.resume([index])
        assert fan.is_settled


async def test_a_check_that_runs_is_stopped_and_the_end_waits_for_it(stage: World) -> None:
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1, verify="touch /tmp/x; sleep 600")
        with anyio.fail_after(PATIENCE):
            async for event in fan.events():
                if isinstance(event, FanCandidateEnded):
                    break
            await fan.close()
        assert fan.is_settled
        assert not any((stage.base / "sandbox").glob("fans/*"))


async def test_why_a_candidate_failed_is_told_to_the_user(
    stage: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = FanRun.open_view

    async def open_view(fan: FanRun, name: str, *layers: str, on_base: bool = True) -> Any:
        if name == "2":
            raise UsageError("the disk is full")
        return await whole(fan, name, *layers, on_base=on_base)

    monkeypatch.setattr(FanRun, "open_view", open_view)
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 2)
        await waited(fan)
        first, second = fan.candidates()
        assert (first.index, first.state) == (1, "done")
        assert (second.index, second.state, second.detail) == (2, "failed", "the disk is full")
        monkeypatch.undo()
        await fan.resume([2])
        await waited(fan)
        assert {each.state for each in fan.candidates()} == {"done"}


async def test_what_a_candidate_that_failed_has_used_counts_for_the_budget(
    stage: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def too_much(*args: object) -> CandidateDiff:
        raise TooMuch("more than is carried over")

    monkeypatch.setattr(fan_run, "candidate_diff", too_much)
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1)
        await waited(fan)
        assert fan.candidates()[0].state == "failed"
        paid = (await session.usage()).total.cost_usd
        assert paid
        assert app.host.fan_runs[fan.id].spent_usd() == pytest.approx(paid)
        fan_id = fan.id
    async with open_stage(stage, right("script")) as app:
        fan = await app.fan(fan_id)
        assert app.host.fan_runs[fan.id].spent_usd() == pytest.approx(paid)


async def test_a_second_keep_of_what_was_kept_in_part_is_finished_too(
    stage: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = shell_call("sed -i s/-/+/ src/add.py; echo n > n.txt")
    async with open_stage(stage, candidate_model("script", work, "Done.")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1)
        await waited(fan)
        stage.write("src/add.py", "mine\n")
        assert (await fan.keep(1)).left == ("src/add.py",)
        stage.write("src/add.py", WRONG)

        async def lost(*args: Any, **named: Any) -> Any:
            raise UsageError("the process died before it was on record")

        monkeypatch.setattr(CandidateKeeper, "record", lost)
        with pytest.raises(UsageError, match="died"):
            await fan.keep(1)
        monkeypatch.undo()
        fan_id = fan.id
        assert stage.read("src/add.py") == RIGHT
        # As if the process were dead: its folder is nobody's.
        (folder,) = (stage.base / "sandbox").glob("[0-9]*-*")
        kept = folder.with_name(f"1-{folder.name.partition('-')[2]}")
        shutil.copytree(folder, kept, symlinks=True, ignore=lambda *_: {"tmp", "var-tmp"})
    async with open_stage(stage, candidate_model("script", work, "Done.")) as app:
        fan = await app.fan(fan_id)
        session = await app.sessions.get(fan.session_id)
        said = [each.content for each in await session.messages()]
        assert "in part" in said[1]
        assert "was kept:" in said[3]
        await app.fan(fan_id)
        assert len(await session.messages()) == 4


async def test_what_a_candidate_writes_while_an_old_content_is_pinned_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with viewed_project(tmp_path) as at:
        view = at.views[0]
        whole = write_all

        def write(fd: int, data: bytes) -> None:
            whole(fd, data)
            (tmp_path / "project/src/two.txt").read_text()
            name = f"/proc/self/fd/{view.root_fd}/src/two.txt"
            with open(name, "w") as file:
                file.write("the candidate's\n")

        monkeypatch.setattr(base_watch, "write_all", write)
        pin_old(view, ["src/two.txt"], {"src/two.txt": BaseFile(0o100644, b"old\n")})
        assert await at.shell(0, "cat src/two.txt; ls -a src") == (
            0,
            "the candidate's\n.\n..\none.txt\nthree.txt\ntwo.txt\n",
        )


async def test_what_a_candidate_leaves_in_its_tmp_counts(tmp_path: Path) -> None:
    async with viewed_project(tmp_path) as at:
        await at.shell(0, "head -c 5000 /dev/zero > /tmp/big")
        assert at.views[0].place.size() >= 5000


async def test_the_overlays_of_a_deleted_session_go_with_it(stage: World) -> None:
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        await waited(await session.generate_branches("mend it", 1))
        await app.sessions.delete_session(session.id)
        assert not any((stage.base / "sandbox").glob("fans/*"))
        assert not await app.fans()
