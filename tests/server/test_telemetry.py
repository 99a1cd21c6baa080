"""What a server tells those who run it."""

from __future__ import annotations

import json
import logging
import re
import sys
from pathlib import Path

import anyio
import pytest

from tests.support.served_world import serving
from tests.support.world import PATIENCE, World
from weft.cli.server.json_log import JsonLines
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio

DEPLOY = Path(__file__).parents[2] / "deploy"
LINE = re.compile(r'^[a-z_]+(\{[a-z]+="[^"\\]*"(,[a-z]+="[^"\\]*")*\})? -?[0-9.e+-]+$')


async def test_metrics_are_in_the_format_of_prometheus_and_count(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel(["One."])) as served:
        session = (await served.good("POST", "/sessions", {}))["id"]
        await served.good("POST", f"/sessions/{session}/message", {"content": "Go."})
        await served.call("GET", "/sessions/ses_none")
        async with served.follow(f"/sessions/{session}/events?after=0") as reader:
            with anyio.fail_after(PATIENCE):
                await reader.more()
            answer = await served.call("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.body.decode().splitlines()
    for line in lines:
        assert line.startswith(("# HELP ", "# TYPE ")) or LINE.match(line), line
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert values['weft_sessions{status="idle"}'] == "1"
    assert values["weft_event_readers"] == "1"
    assert values['weft_http_requests_total{operation="send_message",status="200"}'] == "1"
    assert values['weft_http_requests_total{operation="editor_snapshot",status="404"}'] == "1"
    assert float(values["process_resident_memory_bytes"]) > 1_000_000
    typed = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {name.partition("{")[0] for name in values} <= typed

    named = {file.name: _metrics_in(file) for file in DEPLOY.glob("[gp]r*/*")}
    assert sorted(named) == ["alerts.yaml", "weft.json"]
    of_prometheus_itself = {"up"}
    for names in named.values():
        assert len(names) > 3
        assert names - of_prometheus_itself <= typed


def _metrics_in(file: Path) -> set[str]:
    return set(re.findall(r"\b(?:weft|process)_[a-z_]+|\bup\b(?={)", file.read_text()))


async def test_metrics_need_the_token(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        answer = await served.call("GET", "/metrics", headers={"Authorization": None})
    assert answer.status == 401


async def test_requests_are_logged_without_what_users_wrote(
    plain_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "weft")
    async with serving(plain_world, ScriptedModel(["One."])) as served:
        session = (await served.good("POST", "/sessions", {}))["id"]
        await served.good("POST", f"/sessions/{session}/message", {"content": "my secret plan"})
        await served.good("GET", "/sessions?q=plan")
    rows = [json.loads(JsonLines().format(record)) for record in caplog.records]
    asked = [row for row in rows if "operation" in row]
    assert [(row["operation"], row["status"]) for row in asked] == [
        ("start_session", 201),
        ("send_message", 200),
        ("list_saved", 200),
    ]
    assert asked[1]["session"] == session
    assert asked[1]["ms"] >= 0
    assert "plan" not in json.dumps(rows)


def test_a_record_is_one_line_of_json_without_secrets() -> None:
    try:
        raise ValueError("sk-ant-api03-" + "a" * 80)
    except ValueError:
        record = logging.getLogger("weft.x").makeRecord(
            "weft.x", logging.ERROR, "f", 1, "it\nfailed", (), sys.exc_info()
        )
    line = JsonLines().format(record)
    assert "\n" not in line
    made = json.loads(line)
    assert (made["level"], made["message"]) == ("error", "it\nfailed")
    assert "ValueError" in made["traceback"]
    assert "aaaaaaaaaa" not in line
