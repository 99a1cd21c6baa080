"""A small project with a failing test, and scripted candidates that go about it in different
ways.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tests.support.fan_project import git
from tests.support.role_models import AnswerSteps
from tests.support.world import World
from weft.app import App
from weft.messages import Usage
from weft.providers.script import CallTool, SayText, Spend, as_answer
from weft.providers.scripted import ScriptedModel, assistant_turns

VERIFY = "python3 -B tests/test_add.py"
WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
LONG = "def add(a, b):\n    total = a\n    total += b\n    return total\n"
TEST = "import sys\nsys.path.insert(0, 'src')\nfrom add import add\nassert add(2, 3) == 5\n"
CONFIG: Mapping[str, Any] = {"sandbox.mode": "on"}


def make_stage(world: World) -> None:
    """A repository whose only test fails."""
    world.write("src/add.py", WRONG)
    world.write("tests/test_add.py", TEST)
    world.write("README.md", "one\n\n\ntwo\n\n\nthree\n")
    git(world.project, "init", "-q", "-b", "main")
    git(world.project, "add", "-A")
    git(world.project, "commit", "-qm", "first")


def candidate_model(name: str, *answers: AnswerSteps, cost: float = 0.01) -> ScriptedModel:
    """A model whose candidate gives these answers, one a round."""
    spent = Spend(usage=Usage(input_tokens=100, output_tokens=10, cost_usd=cost))
    steps: list[Any] = []
    for answer in answers:
        one = [SayText(text=answer)] if isinstance(answer, str) else answer
        steps.append([*(one if isinstance(one, Sequence) else [one]), spent])
    last = len(steps) - 1
    model = ScriptedModel(
        [], choose=lambda request: as_answer(steps[min(assistant_turns(request), last)])
    )
    model.info = msgspec.structs.replace(model.info, name=name)
    return model


def write_call(path: str, content: str) -> CallTool:
    """A call that writes a file."""
    return CallTool(name="write", args={"path": path, "content": content})


def shell_call(command: str) -> CallTool:
    """A call that runs a command line."""
    return CallTool(name="shell", args={"command": command})


def right(name: str, text: str = RIGHT, cost: float = 0.01) -> ScriptedModel:
    """Reads and mends the code."""
    read = CallTool(name="read", args={"path": "src/add.py"})
    return candidate_model(
        name, read, write_call("src/add.py", text), f"{name} mended it.", cost=cost
    )


def cheat(name: str) -> ScriptedModel:
    """Makes the test pass by changing the test."""
    read = CallTool(name="read", args={"path": "tests/test_add.py"})
    wrong = TEST.replace("== 5", "== -1")
    return candidate_model(name, read, write_call("tests/test_add.py", wrong), "Passes now.")


def idle(name: str) -> ScriptedModel:
    """Mends nothing that matters."""
    return candidate_model(name, shell_call("echo note > NOTES.txt"), "I wrote a note.")


def open_stage(world: World, *models: ScriptedModel, **config: Any) -> App:
    """An application with these models, in the sandbox."""
    return world.open(*models, config={**CONFIG, **config})


def names(*models: ScriptedModel) -> list[str]:
    """Models as `generate_branches` takes them."""
    return [f"scripted:{model.info.name}" for model in models]
