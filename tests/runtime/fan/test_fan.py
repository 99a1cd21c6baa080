"""A fan-out through the API: isolated candidates, verified by us, ranked, kept, rewound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.allowed_hosts import file_server
from tests.support.fan_stage import (
    CONFIG,
    LONG,
    RIGHT,
    VERIFY,
    WRONG,
    candidate_model,
    cheat,
    idle,
    make_stage,
    names,
    open_stage,
    right,
    shell_call,
    write_call,
)
from tests.support.world import PATIENCE, World
from weft.api.fan import Fan
from weft.errors import FinalToolError, UsageError
from weft.events import FanCandidateStarted
from weft.runtime.fan.fan_index import FanIndex
from weft.runtime.fan.fan_run import FanRun
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


async def test_candidates_and_their_check_reach_the_hosts_that_rules_allow(
    stage: World, tmp_path: Path
) -> None:
    served = tmp_path / "served"
    served.mkdir()
    (served / "file").write_text("content")
    with file_server(served) as port:
        fetch = f"curl -sf http://localhost:{port}/file"
        models = [
            candidate_model("short", shell_call(f"{fetch} > fetched.txt"), "done"),
            candidate_model("other", shell_call("curl -sf http://other.example > x"), "done"),
        ]
        rule = f"fetch(domain:localhost:{port})"
        async with open_stage(stage, *models, **{"permissions.allow": [rule]}) as app:
            session = await app.sessions.start_session()
            check = f'test "$({fetch})" = "$(cat fetched.txt)"'
            fan = await session.generate_branches("get it", 2, names(*models), check)
            await waited(fan)
            verdicts = {each.model: each.verify for each in fan.candidates()}
    assert verdicts == {"scripted:short": "passed", "scripted:other": "failed"}
    assert "fetch(domain:other.example)" in str(models[1].requests[-1])


@pytest.mark.requirement(
    "session:generate_branches",
    "event:FanStarted",
    "event:FanCandidateStarted",
    "event:FanCandidateEnded",
    "event:FanVerified",
)
async def test_right_candidates_rank_first_and_the_one_that_edits_tests_below_them(
    stage: World,
) -> None:
    models = [idle("idle"), cheat("cheat"), right("long", LONG), right("short")]
    async with open_stage(stage, *models) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 4, names(*models), VERIFY)
        seen = [type(event).__name__ async for event in fan.events()]
        await waited(fan)
        ranked = fan.candidates()
        assert [each.model for each in ranked] == [
            *("scripted:short", "scripted:long", "scripted:cheat", "scripted:idle")
        ]
        best, _, edits, wrong = ranked
        assert best.is_best
        assert (best.verify, best.base_verify) == ("passed", "failed")
        assert (edits.verify, edits.touches_checks, edits.base_tests) == ("passed", True, "failed")
        assert (wrong.verify, wrong.files) == ("failed", ("NOTES.txt",))
        assert best.cost_usd == pytest.approx(0.03)
        assert seen.count("FanCandidateStarted") == 4
        assert stage.read("src/add.py") == WRONG
        assert (await session.usage()).total.cost_usd == pytest.approx(0.03 * 3 + 0.02)
        # Who makes the check pass by an edit of the tests has not passed it.
        (listed,) = await app.fans()
        assert (listed.ended, listed.passed) == (4, 2)
        assert "return a + b" in await fan.diff(best.index)
        compared = await fan.compare(best.index, ranked[1].index)
        assert "-    return a + b" in compared
        assert "+    total += b" in compared


async def test_ignored_files_that_a_candidate_changed_take_no_part_in_its_check(
    stage: World,
) -> None:
    stage.write(".gitignore", "node_modules\n")
    stage.write("node_modules/run", f"{VERIFY}\n")
    tricks = candidate_model("tricks", shell_call("echo true > node_modules/run; echo > n"), "x")
    models = [tricks, right("right", LONG)]
    async with open_stage(stage, *models) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 2, names(*models), "sh node_modules/run")
        await waited(fan)
        found = [(each.model, each.verify) for each in fan.candidates()]
        assert found == [("scripted:right", "passed"), ("scripted:tricks", "failed")]


async def test_a_folder_in_the_place_of_a_test_is_a_changed_test(stage: World) -> None:
    test = "tests/test_add.py"
    work = shell_call(f"rm {test}; mkdir {test}; echo pass > {test}/__main__.py")
    async with open_stage(stage, candidate_model("script", work, "Done.")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1, verify=VERIFY)
        await waited(fan)
        (found,) = fan.candidates()
        assert (found.verify, found.touches_checks, found.base_tests) == ("passed", True, "failed")
        assert not found.is_best


@pytest.mark.requirement("event:FanKept")
async def test_keep_merges_verifies_is_on_record_and_a_rewind_takes_it_back(stage: World) -> None:
    model = candidate_model(
        "script",
        shell_call(
            "sed -i s/three/3/ README.md; mkdir new; echo n > new/n.txt; rm src/add.py; "
            "printf 'def add(a, b):\\n    return a + b\\n' > src/add.py; git add -A; "
            "git commit -qm mine"
        ),
        "Done.",
    )
    async with open_stage(stage, model) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1, verify=VERIFY)
        await waited(fan)
        stage.write("README.md", "1\n\n\ntwo\n\n\nthree\n")
        preview = await fan.keep(1, preview=True)
        assert preview.plan.paths("merge") == ["README.md"]
        assert preview.plan.paths("put") == ["new/n.txt", "src/add.py"]
        assert stage.read("src/add.py") == WRONG
        kept = await fan.keep(1)
        assert kept.is_kept
        assert kept.verified is not None
        assert kept.verified.passed
        assert stage.read("src/add.py") == RIGHT
        assert stage.read("README.md") == "1\n\n\ntwo\n\n\n3\n"
        assert stage.read("new/n.txt") == "n\n"
        assert [each.role for each in await session.messages()] == ["user", "assistant"]
        assert fan.candidates()[0].state == "kept"
        with pytest.raises(UsageError, match="already"):
            await fan.keep(1)
        await session.rewind(None)
        assert stage.read("src/add.py") == WRONG
        assert stage.read("README.md") == "1\n\n\ntwo\n\n\nthree\n"
        assert not (stage.project / "new").exists()


async def test_conflicts_stay_the_users_and_the_candidates_versions_are_kept_aside(
    stage: World,
) -> None:
    work = shell_call("sed -i s/one/eins/ README.md; rm src/add.py; echo a > .mcp.json")
    async with open_stage(stage, candidate_model("script", work, "Done.")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1)
        await waited(fan)
        stage.write("README.md", "uno\n\n\ntwo\n\n\nthree\n")
        stage.write("src/add.py", RIGHT)
        kept = await fan.keep(1)
        assert sorted(kept.plan.paths("conflict")) == [".mcp.json", "README.md", "src/add.py"]
        assert stage.read("README.md").startswith("uno")
        assert stage.read("src/add.py") == RIGHT
        assert (Path(kept.aside) / "README.md").read_text().startswith("eins")


async def test_a_folder_in_the_place_of_a_file_does_not_take_the_users_edit(stage: World) -> None:
    work = shell_call(
        "rm README.md; mkdir README.md; echo x > README.md/x; rm -r src; echo s > src"
    )
    async with open_stage(stage, candidate_model("script", work, "Done.")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1)
        await waited(fan)
        files = ("README.md", "README.md/x", "src", "src/add.py")
        assert fan.candidates()[0].files == files
        stage.write("README.md", "mine\n")
        stage.write("src/mine.py", "mine\n")
        plan = (await fan.keep(1, preview=True)).plan
        assert plan.paths("conflict") == list(files)
        stage.write("README.md", "one\n\n\ntwo\n\n\nthree\n")
        (stage.project / "src" / "mine.py").unlink()
        kept = await fan.keep(1)
        assert kept.plan.paths("put", "remove") == list(files)
        assert (stage.read("README.md/x"), stage.read("src")) == ("x\n", "s\n")
        await session.rewind(None)
        assert stage.read("README.md").startswith("one")
        assert stage.read("src/add.py") == WRONG


async def test_rules_and_boundaries_of_the_user_hold_for_what_is_kept(stage: World) -> None:
    # What a script writes is not seen before it runs.
    stage.write(
        "change.sh",
        "mkdir ci; echo a > ci/codeowners; ln -s ci .github; echo x > src/add.py; "
        "sed -i s/one/eins/ README.md; echo free > free.txt",
    )
    work = shell_call("sh change.sh")
    rules = {"permissions.deny": ["write(src/*)"]}
    async with open_stage(stage, candidate_model("script", work, "Done."), **rules) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1)
        await waited(fan)
        await session.set_boundary("README.md", 3, 3)
        kept = await fan.keep(1)
        assert kept.plan.paths("conflict") == [".github", "src/add.py"]
        assert stage.read("src/add.py") == WRONG
        assert not (stage.project / ".github").is_symlink()
        assert stage.read("README.md").startswith("one")
        assert "README.md" in str(kept.remarks)
        assert stage.read("free.txt") == "free\n"


async def test_what_could_not_be_put_is_not_called_kept(
    stage: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = shell_call("sed -i s/-/+/ src/add.py; echo n > n.txt")
    whole = FanRun.checked
    mine = "def add(a, b):\n    return 5\n"

    async def checked(fan: FanRun, *args: Any) -> Any:
        found = await whole(fan, *args)
        stage.write("src/add.py", mine)
        if edits_both:
            stage.write("n.txt", "mine")
        return found

    async with open_stage(stage, candidate_model("script", work, "Done.")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1, verify="true")
        await waited(fan)
        edits_both = True
        monkeypatch.setattr(FanRun, "checked", checked)
        kept = await fan.keep(1)
        assert (kept.is_kept, kept.left) == (False, ("n.txt", "src/add.py"))
        assert fan.candidates()[0].state == "done"
        assert not await session.messages()
        stage.write("src/add.py", WRONG)
        (stage.project / "n.txt").unlink()
        edits_both = False
        kept = await fan.keep(1)
        assert (kept.is_kept, kept.left) == (True, ("src/add.py",))
        assert "in part" in (await session.messages())[-1].content
        assert stage.read("n.txt") == "n\n"
        kept = await fan.keep(1)
        assert (kept.is_kept, kept.plan.paths("same", "conflict")) == (
            False,
            ["n.txt", "src/add.py"],
        )
        stage.write("src/add.py", WRONG)
        monkeypatch.undo()
        assert (await fan.keep(1)).left == ()
        assert stage.read("src/add.py") == RIGHT


async def test_a_result_that_fails_the_check_is_not_put_into_the_project(stage: World) -> None:
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1, verify=VERIFY)
        await waited(fan)
        stage.write("tests/test_add.py", "raise SystemExit('the user wants more')\n")
        kept = await fan.keep(1)
        assert not kept.is_kept
        assert "the user wants more" in kept.output
        assert stage.read("src/add.py") == WRONG
        assert (await fan.keep(1, force=True)).is_kept
        assert stage.read("src/add.py") == RIGHT


async def test_the_first_that_passes_stops_the_others_and_their_work_stays(stage: World) -> None:
    slow = candidate_model("slow", write_call("half.txt", "half\n"), shell_call("sleep 60"), "x")
    quick = right("quick")
    async with open_stage(stage, slow, quick) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches(
            "mend it", 2, names(slow, quick), VERIFY, stop="verified"
        )
        await waited(fan)
        states = {each.model: each.state for each in fan.candidates()}
        assert states == {"scripted:quick": "done", "scripted:slow": "stopped"}
        assert "half" in await fan.diff(1)


async def test_a_budget_ends_all_candidates_together(stage: World) -> None:
    # Equal calls, one right after the other, would end it for want of progress first.
    calls = [shell_call(f"echo {number}; sleep 0.05") for number in range(30)]
    dear = [candidate_model(name, *calls, "x", cost=0.5) for name in ("one", "two")]
    async with open_stage(stage, *dear) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("spend", 2, names(*dear), budget_usd=2.0)
        await waited(fan)
        assert {each.state for each in fan.candidates()} == {"stopped"}
        assert (await session.usage()).total.cost_usd or 0 < 10


async def test_what_a_candidate_used_is_counted_whatever_it_leaves(
    stage: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = shell_call("touch $(printf 'a\\377b')")
    async with open_stage(stage, candidate_model("script", work, "Done.", cost=1.0)) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1)
        await waited(fan)
        assert (fan.candidates()[0].state, fan.candidates()[0].files) == ("done", ("a\\xffb",))
        assert (await session.usage()).total.cost_usd == pytest.approx(2.0)

        async def too_much(*args: Any) -> Any:
            raise TooMuch("it changed more than is carried over")

        monkeypatch.setattr("weft.runtime.fan.fan_run.candidate_diff", too_much)
        second = await session.generate_branches("do", 1)
        await waited(second)
        assert "more than" in second.candidates()[0].detail
        assert (await session.usage()).total.cost_usd == pytest.approx(4.0)
        monkeypatch.undo()
        assert (await fan.keep(1)).is_kept


async def test_a_candidate_is_not_let_out_and_its_session_alone_touches_nothing(
    stage: World,
) -> None:
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1)
        await waited(fan)
        child = await app.sessions.get(fan.candidates()[0].session)
        await child.send_prompt("again")
        said = "".join(str(each) for each in await child.messages())
        assert "weft fan resume" in said or "mended" in said
        assert stage.read("src/add.py") == WRONG


@pytest.mark.requirement("event:FanCandidateDropped", "event:FanClosed")
async def test_prune_removes_the_overlay_and_leaves_the_diff(stage: World) -> None:
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1)
        await waited(fan)
        before = await fan.diff(1)
        await fan.prune(1)
        assert await fan.diff(1) == before
        assert fan.candidates()[0].state == "pruned"
        with pytest.raises(UsageError, match=r"candidate 1 was pruned; .* brings it back"):
            await fan.keep(1)
        await fan.close()
        assert not any((stage.base / "sandbox").glob("fans/*"))


async def test_a_fan_out_that_was_interrupted_goes_on_where_it_was(stage: World) -> None:
    model = candidate_model(
        "script",
        write_call("half.txt", "half\n"),
        shell_call("touch /tmp/begun; sleep 60"),
        write_call("src/more.txt", "more\n"),
        "Done.",
    )
    async with open_stage(stage, model) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 2)
        with anyio.fail_after(PATIENCE):
            # Both are in their second round: the command that does not end.
            while len(model.requests) < 4:  # noqa: ASYNC110 - the model has no event for it
                await anyio.sleep(0.02)
        fan_id = fan.id
    stage.write("README.md", "changed while nothing watched\n")
    async with open_stage(stage, model) as app:
        fan = await app.fan(fan_id[-6:])
        assert {each.state for each in fan.candidates()} == {"interrupted"}
        await fan.resume()
        await waited(fan)
        assert {each.state for each in fan.candidates()} == {"done"}
        assert fan.candidates()[0].files == ("half.txt", "src/more.txt")
        assert (await fan.keep(1)).is_kept
        assert stage.read("half.txt") == "half\n"
        with pytest.raises(UsageError, match="every candidate"):
            await fan.resume()


async def test_a_check_that_did_not_run_is_no_pass_and_is_made_later(
    stage: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = [right("unchecked"), idle("wrong")]
    whole = FanRun.checked

    async def checked(fan: FanRun, on: Any, index: int, run: int, *layers: str) -> Any:
        if (index, run) == (1, 2):
            raise UsageError("the disk is full")
        return await whole(fan, on, index, run, *layers)

    async with open_stage(stage, *models) as app:
        session = await app.sessions.start_session()
        monkeypatch.setattr(FanRun, "checked", checked)
        fan = await session.generate_branches("do", 2, names(*models), VERIFY, verify_runs=2)
        await waited(fan)
        ranked = fan.candidates()
        assert [each.model for each in ranked] == ["scripted:wrong", "scripted:unchecked"]
        assert not any(each.is_best for each in ranked)
        monkeypatch.undo()
        requests = len(models[0].requests)
        await fan.resume()
        await waited(fan)
        best = fan.candidates()[0]
        assert (best.model, best.is_best, best.verify_runs) == ("scripted:unchecked", True, 2)
        assert len(models[0].requests) == requests


async def test_one_that_goes_on_is_at_work_again(stage: World) -> None:
    calls = [shell_call(f"sleep 60; echo {number}") for number in range(9)]
    model = candidate_model("script", write_call("half.txt", "half\n"), *calls, "x")
    async with open_stage(stage, model) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("do", 1)
        for requests in (2, 3):
            with anyio.fail_after(PATIENCE):
                while len(model.requests) < requests:  # noqa: ASYNC110 - it has no event for it
                    await anyio.sleep(0.02)
            assert fan.candidates()[0].state == "working"
            for call in (fan.keep, fan.prune):
                with pytest.raises(UsageError, match="still at work"):
                    await call(1)
            await fan.stop()
            await waited(fan)
            assert fan.candidates()[0].state == "stopped"
            if requests == 2:
                await fan.resume()
        assert (await fan.keep(1)).is_kept


async def test_a_repeated_call_finds_the_fan_out_of_the_first(stage: World) -> None:
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1, input_id="once")
        again = await session.generate_branches("mend it", 1, input_id="once")
        assert fan.id == again.id
        await waited(fan)
        assert len(await app.fans()) == 1


async def test_calls_at_the_same_time_make_one_fan_out(stage: World) -> None:
    model = right("script")
    found: list[Fan] = []
    async with open_stage(stage, model) as app:
        session = await app.sessions.start_session()

        async def begin() -> None:
            found.append(await session.generate_branches("mend it", 1, input_id="once"))

        async with anyio.create_task_group() as group:
            group.start_soon(begin)
            group.start_soon(begin)
        for fan in found:
            await waited(fan)
        assert len({fan.id for fan in found}) == 1
        assert len(model.requests) == 3


async def test_what_no_session_knows_is_swept_and_what_is_open_stays(stage: World) -> None:
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1)
        await waited(fan)
        leftover = stage.base / "sandbox" / "fans" / "fan_left" / "1" / "upper"
        leftover.mkdir(parents=True)
        again = await session.generate_branches("mend it", 1)
        await waited(again)
        assert not leftover.exists()
        assert (await fan.keep(1)).is_kept
        assert [each.id for each in await app.fans()] == [again.id, fan.id]


async def test_what_a_session_of_another_store_knows_is_not_swept(stage: World) -> None:
    async with open_stage(stage, right("script")) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1)
        await waited(fan)
        deleted = await app.sessions.start_session()
        gone = await deleted.generate_branches("mend it", 1)
        await waited(gone)
        entry = FanIndex(stage.base).find(gone.id)
        await app.sessions.delete_session(deleted.id)
    folders = [stage.base / "sandbox" / "fans" / each.id for each in (fan, gone)]
    (folders[0] / "lock").unlink()  # as when the process has ended
    FanIndex(stage.base).add(entry)  # as if it had died in the midst of the deletion
    folders[1].mkdir()
    for store, is_there in (("other.db", [True, True]), ("weft.db", [True, False])):
        async with stage.open(
            right("script"), store=stage.base / store, config=dict(CONFIG)
        ) as app:
            session = await app.sessions.start_session()
            await waited(await session.generate_branches("mend it", 1))
            assert [folder.exists() for folder in folders] == is_there


async def test_candidates_on_the_machine_s_network_work_and_it_is_said(stage: World) -> None:
    config = {"sandbox.network": True}
    async with open_stage(stage, right("script"), **config) as app:
        session = await app.sessions.start_session()
        fan = await session.generate_branches("mend it", 1, verify=VERIFY)
        assert "port" in fan.notes[0]
        await waited(fan)
        (found,) = fan.candidates()
        assert (found.state, found.verify, found.is_best) == ("done", "passed", True)
        assert (await fan.keep(1)).is_kept
        assert "sandbox.network" in fan.notes[0]


async def test_who_wants_overlays_only_gets_no_copies(stage: World) -> None:
    async with stage.open(right("script"), config={"fan.isolation": "overlay"}) as app:
        session = await app.sessions.start_session()
        with pytest.raises(UsageError, match="kept apart"):
            await session.generate_branches("mend it", 2)


async def test_candidates_share_the_line_that_they_branch_off(stage: World) -> None:
    model = candidate_model("script", "I know.", shell_call("echo x > made.txt"), "Done.")
    async with open_stage(stage, model) as app:
        session = await app.sessions.start_session()
        await session.send_prompt("remember the word heron")
        fan = await session.generate_branches("use the word", 2)
        events = [event async for event in fan.events()]
        await waited(fan)
        assert all(each.state == "done" for each in fan.candidates())
        assert "heron" in str(model.requests[-1].messages)
        assert len([each for each in events if isinstance(each, FanCandidateStarted)]) == 2
        assert len(await session.messages()) == 2


def test_the_tools_of_a_closed_candidate_are_refused(tmp_path: Path) -> None:
    from weft.runtime.fan.candidate_parts import ClosedWorkspace

    closed = ClosedWorkspace(str(tmp_path), "fan_1/2")
    assert closed.relative("a") == "a"
    with pytest.raises(FinalToolError, match="weft fan resume fan_1"):
        anyio.run(closed.read, "a")
