"""MCP servers in files of other agents, which may hold anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from weft.api.mcp.foreign_entries import ForeignEntry, entries_in


def read(folder: Path, **entry: Any) -> ForeignEntry:
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"docs": entry, "fine": {"command": "fine"}}}))
    found = {each.name: each for each in entries_in(str(path), str(folder))}
    assert found["fine"].problem == ""
    return found["docs"]


@pytest.mark.parametrize(
    "entry",
    [
        {"http_headers": "x"},
        {"headers": [1], "url": "https://example.org"},
        {"env_http_headers": ["A"]},
        {"env_vars": 5},
        {"env_vars": ["A"], "env": "x"},
        {"command": [{}]},
        {"bearer_token_env_var": {"a": 1}},
        {"startup_timeout_sec": float("inf")},
        {"tool_timeout_sec": float("nan")},
        {"env_vars": [[1]]},
    ],
)
def test_an_entry_of_another_form_is_a_problem_of_its_own(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    found = read(tmp_path, **{"command": "x", **entry})
    assert found.problem or found.shown == "what cannot be read"
    assert isinstance(found.variables, tuple)
