"""Sessions whose commands run in the sandbox: whether there is one, and which results the model
got.
"""

from __future__ import annotations

import pytest

from tests.support.world import World, request_lines
from weft.app import App
from weft.providers.scripted import ScriptedModel


async def skip_without_sandbox(app: App, world: World) -> None:
    """Skip the test where the machine has no sandbox."""
    sandbox = app.host.services.workspaces.sandbox()
    assert sandbox is not None
    report = await sandbox.probe(str(world.project))
    if not report.is_available:
        pytest.skip(f"this machine has no sandbox: {report.reason}")


def tool_results(model: ScriptedModel) -> list[str]:
    """The results of tool calls in the model's last request."""
    return [line for line in request_lines(model.requests[-1]) if line.startswith("result: ")]
