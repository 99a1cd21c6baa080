"""Requests at random: no answer is a failure of ours, and each is what the document says."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import anyio
import anyio.to_thread
import pytest

from tests.support.example_count import examples
from tests.support.schema_fuzz import SchemaFuzzer, plant
from tests.support.served_world import ServedWorld, serving
from tests.support.world import World
from weft.providers.script import Script
from weft.providers.scripted import ScriptedModel

# The check of a goal is a command.
pytestmark = [pytest.mark.anyio, pytest.mark.process]


async def test_no_request_fails_inside_and_every_answer_fits_the_document(
    plain_world: World,
) -> None:
    model = ScriptedModel(Script(answers=("One.",), loop=True))
    async with serving(plain_world, model) as served:
        problems = await anyio.to_thread.run_sync(_fuzz, served, examples(600))
    assert problems == []


def _fuzz(served: ServedWorld, count: int) -> list[str]:
    def send(method: str, target: str, body: bytes | None) -> tuple[int, str, bytes]:
        headers = {
            "Authorization": f"Bearer {served.token}",
            "Content-Type": "application/json",
        }
        url = f"{served.server.url}{target}"
        request = urllib.request.Request(url, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers["Content-Type"] or "", answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Content-Type"] or "", error.read()

    fuzzer = SchemaFuzzer(json.loads(send("GET", "/api/openapi.json", None)[2]), seed=1)
    plant(fuzzer, send)
    for _ in range(count):
        fuzzer.one(send)
    return fuzzer.problems
