"""Very long answers come back whole."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from weft.providers import ScriptedModel
from weft.providers.script import SayText

pytestmark = pytest.mark.anyio


async def test_a_reply_holds_all_of_an_answer_that_is_kept_as_a_blob(tmp_path: Path) -> None:
    long = "word " * 20_000
    result = await weft.run("go on", model=ScriptedModel([[SayText(text=long)]]), cwd=tmp_path)
    assert result.text == long
