"""A bisection finds the turn, the call or the user's own change at which a check began to fail, and
leaves nothing.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from tests.support.rewind_project import open_world, project_tree, shell, start, turns, write
from tests.support.world import World
from weft.api.session import Session
from weft.errors import UsageError
from weft.evidence import BisectCheck, Bisection
from weft.providers.script import CallTool

pytestmark = [pytest.mark.anyio, pytest.mark.process]


CHECK = "! cat *.txt 2>/dev/null | grep -q broken"
Turn = Sequence[CallTool] | CallTool


def repository(world: World) -> None:
    subprocess.run(["git", "init", "-q", world.project], check=True)
    world.write(".gitignore", "built/\n")
    world.write("built/lib", "as built today\n")


def leftovers(world: World) -> list[Path]:
    """What bisections left on disk."""
    return list((world.base / "sandbox").glob("bisect/*"))


async def talk(session: Session, count: int) -> None:
    for number in range(count):
        await session.send_message(f"turn {number + 1}")


def fine(number: int) -> CallTool:
    return write(f"f{number}.txt", f"fine {number}\n")


@pytest.mark.requirement("session:bisect")
async def test_the_turn_and_the_call_are_found_and_nothing_is_left(world: World) -> None:
    repository(world)
    plan: list[Turn] = [fine(number) for number in range(1, 13)]
    plan[6] = [write("a.txt", "one\n"), write("b.txt", "one\nbroken\n"), write("c.txt", "one\n")]
    async with open_world(world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 12)
        before, seq = project_tree(world), (await session.editor_snapshot()).seq
        told: list[BisectCheck] = []
        found = await session.bisect(CHECK, on_check=told.append)
        assert (found.outcome, found.good and found.good.name) == ("found", "turn 6")
        assert found.bad is not None
        assert (found.bad.name, found.bad.made_by) == ("turn 7", "session")
        [call] = found.calls
        assert (call.target, call.paths) == ("write b.txt:1", ("b.txt",))
        assert found.sentence == "turn 7 broke it: `write b.txt:1`; it passes up to turn 6"
        assert found.count <= 6  # 13 states
        assert tuple(told) == found.checks
        assert sum(check.is_again for check in found.checks) == 2
        assert "ignored files were those of today: built" in found.notes
        assert project_tree(world) == before
        assert (await session.editor_snapshot()).seq == seq, "nothing goes on record"
        assert leftovers(world) == []
        # To go back there takes it back.
        assert found.can_branch
        await session.rewind(found.branch_at)
        assert not (world.project / "b.txt").exists()
        assert (world.project / "f6.txt").exists()


async def test_files_at_a_check_are_those_of_the_turn_and_ignored_ones_are_todays(
    shared_world: World,
) -> None:
    repository(shared_world)
    plan = [
        [write("d/x.txt", "1\n"), write("gone.txt", "1\n"), shell("ln -s d/x.txt link")],
        [shell("rm gone.txt link; mv d e; chmod +x e/x.txt")],
        [write("broken.txt", "broken\n")],
    ]
    async with open_world(shared_world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 3)
        shared_world.write("built/lib", "built anew\n")
        show = "find . -name .git -prune -o ! -type d -printf '%M %p %l\\n' | sort; cat built/lib; "
        found = await session.bisect(f"{show} {CHECK}", good=1)
        printed = {check.name: check.output for check in found.checks}
    mode = "-rw-r--r--"
    shown = [f"{mode} ./.gitignore ", f"{mode} ./built/lib "]
    first = [*shown, f"{mode} ./d/x.txt ", f"{mode} ./gone.txt ", "lrwxrwxrwx ./link d/x.txt"]
    assert printed["turn 1"].splitlines() == [*first, "built anew"]
    second = [*shown, "-rwxr-xr-x ./e/x.txt "]
    assert printed["turn 2"].splitlines() == [*second, "built anew"]
    assert found.bad is not None
    assert found.bad.name == "turn 3"


async def test_a_module_that_was_compiled_today_is_not_taken_for_that_of_the_turn(
    shared_world: World,
) -> None:
    repository(shared_world)
    shared_world.write(".gitignore", "__pycache__/\n")
    # Of the same length, and maybe written in the same second: only its time tells them apart.
    plan: list[Turn] = [
        shell("echo 'x = 1' > mod.py"),
        [shell("echo 'x = 2' > mod.py; touch -d '+1 hour' mod.py; python3 -c 'import mod'")],
        fine(3),
    ]
    async with open_world(shared_world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 3)
        assert (shared_world.project / "__pycache__").is_dir()
        check = "test -e mod.py || exit 0; python3 -c 'import mod; assert mod.x == 1'"
        found = await session.bisect(check)
    assert found.bad is not None
    assert found.bad.name == "turn 2"


async def broken_by_hand(world: World, *, is_last: bool) -> Bisection:
    repository(world)
    plan = [fine(1), fine(2), fine(3)]
    async with open_world(world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 2)
        if not is_last:
            world.write("mine.txt", "broken\n")
        await session.send_message("go on")
        if is_last:
            world.write("mine.txt", "broken\n")
        return await session.bisect(CHECK)


@pytest.mark.parametrize("is_last", [False, True])
async def test_a_break_made_by_the_user_is_named_as_theirs(
    shared_world: World, is_last: bool
) -> None:
    found = await broken_by_hand(shared_world, is_last=is_last)
    assert found.outcome == "found"
    assert found.bad is not None
    assert (found.bad.made_by, found.paths, found.calls) == ("outside", ("mine.txt",), ())
    assert found.bad.kind == ("now" if is_last else "before")
    assert "you or another program" in found.sentence
    assert not found.can_branch


async def test_after_a_rewind_what_the_user_does_is_told_from_the_other_branch(
    shared_world: World,
) -> None:
    repository(shared_world)
    plan = [fine(1), fine(2), write("other.txt", "broken\n")]
    async with open_world(shared_world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 2)
        node = (await session.messages_with_ids())[-1][0]
        await session.send_message("three")
        await session.rewind(node)
        shared_world.write("mine.txt", "broken\n")
        found = await session.bisect(CHECK)
        assert found.bad is not None
        assert (found.bad.kind, found.bad.made_by, found.paths) == ("now", "outside", ("mine.txt",))
        (shared_world.project / "mine.txt").unlink()
        await session.undo_rewind()
        await session.rewind(node, files=False)
        left = await session.bisect(CHECK)
        assert left.bad is not None
        assert (left.bad.made_by, left.paths) == ("branch", ("other.txt",))


async def test_after_a_rewind_a_command_that_the_user_typed_is_theirs(shared_world: World) -> None:
    repository(shared_world)
    plan = [fine(1), fine(2), write("other.txt", "broken\n")]
    async with open_world(shared_world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 2)
        node = (await session.messages_with_ids())[-1][0]
        await session.send_message("three")
        await session.rewind(node)
        await app.host.run_as_user(session.id, "echo broken > mine.txt", to_model=True)
        found = await session.bisect(CHECK)
    assert [call.is_by_user for call in found.calls] == [True]
    assert found.paths == ("mine.txt",)


async def test_a_command_that_the_user_typed_is_named_as_theirs(shared_world: World) -> None:
    repository(shared_world)
    async with open_world(shared_world, turns(fine(1), fine(2)), sandbox="auto") as app:
        session = await start(app)
        await session.send_message("one")
        await app.host.run_as_user(session.id, "echo broken > mine.txt", to_model=True)
        await session.send_message("two")
        found = await session.bisect(CHECK)
    [call] = found.calls
    assert call.is_by_user
    assert "your command `echo broken > mine.txt` broke it" in found.sentence


async def test_files_of_another_branch_are_told_from_the_turn_that_found_them(
    shared_world: World,
) -> None:
    repository(shared_world)
    plan = [fine(1), write("other.txt", "broken\n"), fine(3), fine(4)]
    async with open_world(shared_world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await session.send_message("one")
        node = (await session.messages_with_ids())[-1][0]
        await session.send_message("two")
        await session.rewind(node, files=False)  # what it broke stays there
        await session.send_message("three")
        await session.send_message("four")
        found = await session.bisect(CHECK)
    assert found.bad is not None
    assert (found.bad.made_by, found.bad.name) == ("branch", "before turn 2")
    assert found.paths == ("other.txt",)


async def test_after_a_rewind_of_files_too_the_line_has_no_state_of_the_other_branch(
    shared_world: World,
) -> None:
    repository(shared_world)
    plan = [fine(1), write("other.txt", "broken\n"), fine(3), write("new.txt", "broken\n")]
    async with open_world(shared_world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await session.send_message("one")
        node = (await session.messages_with_ids())[-1][0]
        await session.send_message("two")
        await session.rewind(node)
        await session.send_message("three")
        await session.send_message("four")
        found = await session.bisect(CHECK)
    assert [state.name for state in found.states] == ["before turn 1", "turn 1", "turn 2", "turn 3"]
    assert found.sentence == "turn 3 broke it: `write new.txt:1`; it passes up to turn 2"


async def test_a_check_that_fails_at_the_good_end_says_so(shared_world: World) -> None:
    async with open_world(shared_world, turns(fine(1), fine(2)), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 2)
        found = await session.bisect("test -e never")
        assert (found.outcome, found.count) == ("bad_at_start", 2)
        assert "fails at the good end" in found.sentence
        fails_no_more = await session.bisect("true")
        assert (fails_no_more.outcome, fails_no_more.count) == ("good_at_end", 1)


@pytest.mark.parametrize(
    ("check", "said"),
    [
        ("no-such-program-here", "exit code 127: it was not found"),
        ("./f1.txt", "exit code 126: it cannot be run"),
        ("exit 125", "it says that these files cannot be checked"),
        ("kill -9 $$", "it was ended by signal 9"),
        ("sleep 60", "it was ended after 0.5 s"),
    ],
)
async def test_a_check_that_gives_no_verdict_is_told_from_one_that_fails(
    shared_world: World, check: str, said: str
) -> None:
    async with open_world(shared_world, turns(fine(1), fine(2)), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 2)
        found = await session.bisect(check, timeout_seconds=0.5)
    assert found.outcome == "no_verdict"
    assert said in found.sentence


async def test_a_state_that_says_nothing_is_passed_by_and_the_range_is_named(
    shared_world: World,
) -> None:
    plan = [fine(1), write("half.txt", "cannot tell\n"), write("b.txt", "broken\n"), fine(4)]
    check = f"if test -e half.txt && ! test -e b.txt; then exit 125; fi; {CHECK}"
    async with open_world(shared_world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 4)
        found = await session.bisect(check)
    assert found.outcome == "range"
    assert found.good is not None
    assert found.bad is not None
    assert (found.good.name, found.bad.name) == ("turn 1", "turn 3")
    assert "after turn 1 and not later than turn 3" in found.sentence


async def test_a_flaky_check_is_said_to_be_with_the_range_that_is_left(shared_world: World) -> None:
    repository(shared_world)
    plan = [fine(1), fine(2), write("b.txt", "broken\n"), fine(4)]
    # An ignored file that is written to in place is seen by the checks, which makes it flaky.
    seen = shared_world.project / "built" / "lib"

    def turn(check: BisectCheck) -> None:
        # When all states have been halved, the good one beside the break fails, too.
        if check.is_again:
            seen.write_text("other\n")

    async with open_world(shared_world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 4)
        found = await session.bisect(f"{CHECK} && grep -q today built/lib", on_check=turn)
    assert found.outcome == "flaky"
    assert found.bad is not None
    assert found.good is not None
    assert (found.good.name, found.bad.name) == ("before turn 1", "turn 3")
    assert "two runs at turn 2 came out differently" in found.sentence


async def test_a_state_whose_contents_are_not_stored_is_named_and_passed_by(
    shared_world: World,
) -> None:
    plan = [fine(1), shell("seq 9999 > big.txt"), shell("rm big.txt; echo broken > b.txt"), fine(4)]
    settings = {"history__max_file": 1_000}
    async with open_world(shared_world, turns(*plan), sandbox="auto", **settings) as app:
        session = await start(app)
        await talk(session, 4)
        found = await session.bisect(CHECK)
    assert found.outcome == "range"
    assert [state.name for state in found.skipped] == ["turn 2"]
    assert "big.txt (too large)" in found.skipped[0].why


async def test_a_large_file_that_is_the_same_today_is_no_obstacle(shared_world: World) -> None:
    shared_world.write("big.bin", "x" * 5_000)
    plan = [fine(1), fine(2), write("b.txt", "broken\n")]
    async with open_world(
        shared_world, turns(*plan), sandbox="auto", history__max_file=1_000
    ) as app:
        session = await start(app)
        await talk(session, 3)
        found = await session.bisect(f"test -s big.bin && {CHECK}")
    assert found.outcome == "found"
    assert found.skipped == ()


HOSTILE = (
    "echo mine > f1.txt; echo mine > new.txt; rm -rf .git; "
    "(while :; do echo on >> f2.txt; sleep 0.01; done) & "
    "setsid sh -c 'while :; do echo on >> f2.txt; sleep 0.01; done' & "
    "yes | head -c 20000000; "
)


async def test_a_hostile_check_leaves_the_project_alone_and_ends_with_its_process(
    shared_world: World,
) -> None:
    repository(shared_world)
    plan = [fine(1), fine(2), write("b.txt", "broken\n")]
    async with open_world(shared_world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 3)
        before = project_tree(shared_world)
        found = await session.bisect(HOSTILE + CHECK)
        assert found.bad is not None
        assert found.bad.name == "turn 3"
        assert all(len(check.output) <= 4_000 for check in found.checks)
        assert project_tree(shared_world) == before
        assert leftovers(shared_world) == []


async def test_what_the_user_changes_meanwhile_reaches_no_check(shared_world: World) -> None:
    repository(shared_world)
    shared_world.write("a.txt", "a\n")
    plan = [fine(1), fine(2), write("b.txt", "broken\n"), fine(4)]

    def meddle(check: BisectCheck) -> None:
        shared_world.write("a.txt", "broken meanwhile\n")
        shared_world.write("more.txt", "broken meanwhile\n")

    async with open_world(shared_world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 4)
        found = await session.bisect(CHECK, on_check=meddle)
    assert found.sentence == "turn 3 broke it: `write b.txt:1`; it passes up to turn 2"
    assert (shared_world.project / "a.txt").read_text() == "broken meanwhile\n"


@pytest.mark.parametrize("jobs", [3, 64])
async def test_checks_side_by_side_find_the_same(shared_world: World, jobs: int) -> None:
    plan: list[Turn] = [fine(number) for number in range(1, 10)]
    plan[4] = write("b.txt", "broken\n")
    async with open_world(shared_world, turns(*plan), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 9)
        found = await session.bisect(CHECK, jobs=jobs)
    assert found.sentence == "turn 5 broke it: `write b.txt:1`; it passes up to turn 4"


async def test_without_overlays_copies_are_asked_for(shared_world: World) -> None:
    repository(shared_world)
    plan = [fine(1), write("b.txt", "broken\n")]
    asked: list[str] = []

    async def ask(why: str) -> bool:
        asked.append(why)
        return len(asked) > 1

    async with open_world(shared_world, turns(*plan)) as app:
        session = await start(app)
        await talk(session, 2)
        for refused in (False, ask):
            with pytest.raises(UsageError, match="no overlay for the checks here"):
                await session.bisect(CHECK, in_copies=refused)
        before = project_tree(shared_world)
        found = await session.bisect(f"rm -f f1.txt; {CHECK}", in_copies=ask)
    assert found.sentence == "turn 2 broke it: `write b.txt:1`; it passes at turn 1"
    assert any("outside the sandbox" in note for note in found.notes)
    assert project_tree(shared_world) == before
    assert leftovers(shared_world) == []


async def test_a_cancel_leaves_nothing(shared_world: World) -> None:
    async with open_world(shared_world, turns(fine(1), fine(2)), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 2)
        before = project_tree(shared_world)
        with anyio.CancelScope() as scope:
            await session.bisect("true", bad=1, on_check=lambda check: scope.cancel())
        assert scope.cancelled_caught
        assert leftovers(shared_world) == []
        assert project_tree(shared_world) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"check": " "}, "needs a check"),
        ({"good": 9}, "the good end: there is no turn 9; there are 1 to 2"),
        ({"bad": -1}, "the bad end: there is no turn -1"),
        ({"good": "nod_none"}, "is no turn, and no message of this line"),
        ({"good": 2, "bad": 1}, "there are no other files"),
        ({"good": 1.5}, "an end is the number of a turn or a message"),
        ({"jobs": 0}, "jobs|checks at once"),
        ({"jobs": 65}, "at most 64"),
        ({"timeout_seconds": 0}, "more than 0 seconds"),
    ],
)
async def test_what_cannot_be_asked_is_refused_in_one_sentence(
    shared_world: World, options: dict[str, object], said: str
) -> None:
    async with open_world(shared_world, turns(fine(1), fine(2)), sandbox="auto") as app:
        session = await start(app)
        await talk(session, 2)
        with pytest.raises(UsageError, match=said):
            await session.bisect(**{"check": "true", **options})  # type: ignore[arg-type]  # on purpose


async def test_a_session_without_changes_has_nothing_to_be_found(shared_world: World) -> None:
    async with open_world(shared_world, turns([]), sandbox="auto") as app:
        session = await start(app)
        await session.send_message("only talk")
        found = await session.bisect("true")
    assert (found.outcome, found.checks) == ("nothing", ())
