"""A key is tested by a request to its provider's own server."""

from __future__ import annotations

import pytest

from tests.support.loopback_server import LoopbackConnection, serving
from weft.config.key_check import checked_key, masked_key
from weft.providers.credentials import ProviderAccess
from weft.transport import HttpClient

pytestmark = pytest.mark.anyio

KEY = "sk-or-v1-" + "k" * 40


@pytest.mark.parametrize(
    ("provider", "path", "header", "value"),
    [
        ("anthropic", "/v1/models?limit=1", "x-api-key", KEY),
        ("openai", "/models", "authorization", f"Bearer {KEY}"),
        ("openrouter", "/key", "authorization", f"Bearer {KEY}"),
        ("google", "/v1beta/models?pageSize=1", "x-goog-api-key", KEY),
    ],
)
@pytest.mark.parametrize(
    ("status", "state"), [(200, "works"), (401, "refused"), (403, "refused"), (503, "unknown")]
)
async def test_each_provider_is_asked_in_its_own_way(
    provider: str, path: str, header: str, value: str, status: int, state: str
) -> None:
    async def vendor(line: LoopbackConnection) -> None:
        while await line.request() is not None:
            await line.reply(b"{}", status=status)

    client = HttpClient()
    async with serving(vendor) as server:
        access = ProviderAccess(key=KEY, base_url=server.url)
        found = await checked_key(provider, access, client)
        [asked] = server.asked
    await client.aclose()
    assert (asked.method, asked.path, asked.headers[header]) == ("GET", path, value)
    assert found.state == state
    assert KEY not in found.why


async def test_a_server_that_is_not_there_says_nothing_of_the_key() -> None:
    async def gone(line: LoopbackConnection) -> None:
        await line.reset()

    client = HttpClient()
    async with serving(gone) as server:
        access = ProviderAccess(key=KEY, base_url=server.url)
        found = await checked_key("openai", access, client)
    await client.aclose()
    assert (found.state, found.why) == ("unknown", "OpenAI could not be reached")
    cloud = await checked_key("bedrock", ProviderAccess(key=KEY), client)
    assert cloud.state == "unknown"


def test_of_a_key_only_its_ends_are_shown_and_of_a_short_one_nothing() -> None:
    assert masked_key(KEY) == "sk-or-…kkkk"
    assert masked_key("short-key") == "…"
    assert masked_key("") == ""
