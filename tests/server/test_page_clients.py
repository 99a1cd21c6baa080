"""Pages as clients of a session: one drives, and one that is gone drives no more."""

from __future__ import annotations

import anyio
import pytest

from tests.support.page_socket import page_socket
from tests.support.served_world import serving
from tests.support.world import PATIENCE, World
from weft.providers.scripted import ScriptedModel

pytestmark = pytest.mark.anyio


async def test_a_page_whose_connection_ends_is_detached_however_it_went(
    plain_world: World,
) -> None:
    async with serving(plain_world, ScriptedModel(["Yes."])) as served:
        session = (await served.good("POST", "/sessions", {}))["id"]
        path = f"/sessions/{session}/clients"
        client = (await served.good("POST", path, {"role": "driver", "name": "page"}))["client"]
        with anyio.fail_after(PATIENCE):
            async with page_socket(served) as watcher:
                await watcher.say(follow=session, after=0)
                await anext(watcher.frames())
                async with page_socket(served) as page:
                    await page.say(client=client)
                async for event in watcher.events(session):
                    if event["kind"] == "driver_changed":
                        break
        assert event.get("client", "") == ""
        answer = await served.call(
            "GET", f"/sessions/{session}/usage", headers={"Weft-Client": client}
        )
        assert (answer.status, answer.kind) == (404, "client")


async def test_a_page_names_one_client_and_not_those_of_others(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel(["Yes."])) as served:
        session = (await served.good("POST", "/sessions", {}))["id"]
        path = f"/sessions/{session}/clients"
        first = (await served.good("POST", path, {"role": "driver", "name": "page"}))["client"]
        second = (await served.good("POST", path, {"role": "viewer", "name": "page"}))["client"]
        assert first != second
        prompt = await served.call(
            "POST", f"/sessions/{session}/prompt", {"content": "x"}, {"Weft-Client": second}
        )
        assert prompt.status == 403
        await served.good("POST", f"{path}/{second}/drive", {})
        prompt = await served.call(
            "POST", f"/sessions/{session}/prompt", {"content": "x"}, {"Weft-Client": first}
        )
        assert prompt.status == 403
