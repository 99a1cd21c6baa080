"""`docs/agents.md`: its examples work, its tables say what the code says, and so does the tool's
description.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import weft
from tests.support.doc_examples import Example, examples, make_project, run_async_example
from tests.support.source_code import ROOT
from weft.agents.describe import describe
from weft.agents.lazy_tool import DESCRIBED
from weft.agents.tool import AgentTool
from weft.config.setting_keys import KEYS
from weft.project.agent_definitions import parse_definition
from weft.testing import MemoryStore, Script, ScriptedModel

DOCUMENT = (ROOT / "docs" / "agents.md").read_text("utf-8")
ROWS = dict(re.findall(r"^\| `([\w.]+)` \| ([^|]+) \|", DOCUMENT, re.MULTILINE))


@pytest.mark.anyio
@pytest.mark.parametrize("example", examples("agents.md"), ids=str)
async def test_the_examples_work(example: Example, tmp_path: Path) -> None:
    model = ScriptedModel(Script(answers=("Done.",), loop=True))
    environ = {"HOME": str(tmp_path)}
    async with weft.open(make_project(tmp_path), MemoryStore(), environ=environ) as app:
        await run_async_example(example, app=app, model=model)


def test_every_limit_is_documented_with_its_default() -> None:
    limits = {name: str(key.default) for name, key in KEYS.items() if name.startswith("agents.max")}
    assert {name: ROWS[name].strip() for name in limits} == limits


def test_every_argument_of_the_tool_is_documented() -> None:
    assert set(AgentTool.schema["properties"]) <= set(ROWS)


def test_the_documented_definition_is_one() -> None:
    found = re.search(r"```markdown\n(.*?)```", DOCUMENT, re.DOTALL)
    assert found is not None
    definition = parse_definition(found[1], "reviewer.md")
    assert definition is not None
    assert definition.tools == ("read", "grep", "find", "shell")
    assert (definition.permission_mode, definition.max_turns) == ("plan", 20)


def test_what_models_are_told_of_the_tool_is_what_its_code_says() -> None:
    assert Path(DESCRIBED).read_bytes() == describe()
