"""A sample of `tests.crash.failpoints`, and that no commit of the core is without its points."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.source_code import ROOT, SRC, parsed, python_files

WITHOUT_POINTS = {
    "loop/tool_calls.py:ToolCallBatch._take_back": "a question that nobody waits for any more; a "
    "death before it leaves it to the end of its call",
    "session/log/session_log.py:SessionLog._append_batch": "the one append; its callers have them",
    "session/log/session_log.py:SessionLog.commit_first": "which of several servers has it, "
    "written anew by each life; a death around it is one before the commit that it precedes",
    "session/actor.py:SessionActor._remember": "after a command without facts; a death before it "
    "is one before the command",
    "session/turns/scheduler.py:TurnScheduler.commit_for": "the turn's notebook has them",
    "session/turns/scheduler.py:TurnScheduler._take_goal_step": "that a goal failed, while no turn "
    "runs; a death before it is one before the step, which is then taken anew",
}
"""Functions that commit and have no points of their own, and why."""


@pytest.mark.process
@pytest.mark.timeout(600)  # ten seconds, unless the machine has other things to do
def test_every_point_is_reached_and_survived() -> None:
    command = [sys.executable, "-m", "tests.crash.failpoints", "--n", "1", "--seed", "1"]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, check=False)
    line = json.loads(done.stdout)
    assert (done.returncode, line["violations"]) == (0, 0)
    assert line["n"] == line["points"] >= 40


SLOW_MACHINE = """
from tests.crash import failpoints
from tests.support.crash import journey, journey_process
journey.HASTE = 1_000_000  # a machine ten thousand times as slow
journey_process.import_everything()
counted = failpoints.passes(failpoints.Scenario(variant="crash_often"), seed=1)
print(counted["session.down.before"])
"""


@pytest.mark.process
def test_a_session_crashes_too_often_on_a_machine_of_any_speed() -> None:
    command = [sys.executable, "-c", SLOW_MACHINE]
    done = subprocess.run(command, stdout=subprocess.PIPE, cwd=ROOT, check=True)
    assert done.stdout == b"1\n"


def test_every_commit_of_the_core_stands_between_two_points() -> None:
    found = dict(commits())
    assert len(found) >= 10
    bare = {place for place, is_guarded in found.items() if not is_guarded}
    assert bare == set(WITHOUT_POINTS)


def commits() -> Iterator[tuple[str, bool]]:
    """Each function of `loop` and `session` that commits, and whether points stand around it."""
    for folder in ("loop", "session"):
        for file in python_files(SRC / folder):
            for name, function in functions(parsed(file)):
                calls = [node for node in ast.walk(function) if is_commit(node)]
                if calls:
                    place = f"{file.relative_to(SRC)}:{name}"
                    yield place, all(is_guarded(call, function) for call in calls)


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.AsyncFunctionDef]]:
    for top in tree.body:
        if isinstance(top, ast.AsyncFunctionDef):
            yield top.name, top
        if isinstance(top, ast.ClassDef):
            for inner in top.body:
                if isinstance(inner, ast.AsyncFunctionDef):
                    yield f"{top.name}.{inner.name}", inner


def is_commit(node: ast.AST) -> bool:
    """`await ….commit(…)`, an append to a store, or our own `_commit`."""
    if not isinstance(node, ast.Await) or not isinstance(node.value, ast.Call):
        return False
    called = ast.unparse(node.value.func)
    return called.endswith((".commit", "._commit", "store.append"))


def is_guarded(call: ast.AST, function: ast.AsyncFunctionDef) -> bool:
    """A boundary is handed along, or hit before and after in the same function."""
    assert isinstance(call, ast.Await)
    assert isinstance(call.value, ast.Call)
    first = ast.unparse(call.value.args[0]) if call.value.args else ""
    if first.isupper():
        return True
    hits = {
        ast.unparse(node.func): node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith((".before.hit", ".after.hit"))
    }
    boundaries = {name.rpartition(".before")[0] for name in hits if name.endswith(".before.hit")}
    return any(
        hits[f"{name}.before.hit"] < call.lineno < hits.get(f"{name}.after.hit", 0)
        for name in boundaries
    )
