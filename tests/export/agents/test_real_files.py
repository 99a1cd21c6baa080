"""What the real programs wrote, version by version: read whole, in order, as calls of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.foreign_sessions import FOLDER, agent_of, read_as, real_files, records_of
from weft.export import ParsedDocument, restore
from weft.messages import Text, ToolCall

FILES = real_files()


def test_each_agent_is_there_in_several_versions() -> None:
    agents = [agent_of(file) for file in FILES]
    assert {agent: agents.count(agent) for agent in agents} == {
        "claude": 3,
        "codex": 3,
        "opencode": 2,
        "pi": 3,
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_was_said_and_called_is_read_in_order(file: Path) -> None:
    found = read_as(agent_of(file), records_of(file))
    nodes = found.document.nodes[:4]
    said = [part for node in nodes for part in node.revisions[0].parts]
    assert [part.text.strip('"\n') for part in said if isinstance(part, Text)] == [
        "Read the two files.",
        "Both were read.",
    ]
    assert [node.role for node in nodes] == ["user", "assistant", "assistant", "assistant"]
    assert [node.parent for node in nodes] == [None, *(node.id for node in nodes[:3])]
    calls = [part for part in said if isinstance(part, ToolCall)]
    # codex has no tool that reads.
    wanted = (
        ("shell", {"command": f"cat {FOLDER}/f%d.txt"})
        if agent_of(file) == "codex"
        else ("read", {"path": f"{FOLDER}/f%d.txt"})
    )
    for number, call in enumerate(calls):
        assert call.name == wanted[0]
        assert call.args == {key: text % number for key, text in wanted[1].items()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_call_has_its_result(file: Path) -> None:
    found = read_as(agent_of(file), records_of(file))
    results = [result for node in found.document.nodes for result in node.results]
    assert found.unanswered == 0
    assert len(results) == found.calls
    assert ["line 0" in results[0].text, "line 1" in results[1].text] == [True, True]
    assert not any(result.is_error for result in results)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_it_is_and_what_it_used_is_known(file: Path) -> None:
    found = read_as(agent_of(file), records_of(file))
    assert found.folder == FOLDER
    assert found.foreign_id
    assert found.version
    assert found.usage is not None
    assert found.usage.output_tokens == len(found.document.nodes) - (
        2 if "2.1.197" in file.name else 1
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_passes_the_checks_of_every_import(file: Path) -> None:
    document = read_as(agent_of(file), records_of(file)).document
    restored = restore(ParsedDocument(document, ()), file.name)
    assert restored.title
    assert restored.model == ""
    assert restored.dropped == {}
