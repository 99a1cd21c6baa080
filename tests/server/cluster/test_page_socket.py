"""A page's connection where there are several servers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import pytest

from weft.server.web_socket import MOST_FOLLOWED, PageSocket

pytestmark = pytest.mark.anyio


async def test_what_a_page_has_followed_is_not_kept_for_ever() -> None:
    async def frames(*given: object, **options: object) -> AsyncGenerator[str]:
        del given, options
        yield ""

    async def send_text(frame: str) -> None:
        del frame

    parts: Any = SimpleNamespace(cluster=SimpleNamespace(frames=frames))
    socket: Any = SimpleNamespace(scope={"weft.role": "viewer"}, send_text=send_text)
    page = PageSocket(parts, socket)
    for number in range(MOST_FOLLOWED + 5):
        await page._session(f"ses_{number}", None)
    assert len(page._far) == MOST_FOLLOWED
    assert "ses_0" not in page._far
