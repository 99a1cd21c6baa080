"""Search services: how each is asked, and what its answer holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from weft.errors import FinalToolError
from weft.tools.base import SearchHit
from weft.transport import HttpRequest, HttpTimeouts

_TIMEOUTS: Final = HttpTimeouts(connect=10.0, first_byte=20.0, idle=15.0)
_JSON: Final = ("content-type", "application/json")
_ACCEPT: Final = ("accept", "application/json")
_SHOWN: Final = 500
_LONGEST: Final = 4_000
"""Characters of an address."""


class SearchService(msgspec.Struct, frozen=True, kw_only=True):
    """One service."""

    name: str
    url: str
    """Empty where the user's setting names it."""
    variable: str
    """Where its key is; empty where it needs none."""
    key_header: str = ""
    key_prefix: str = ""
    query_field: str
    count_field: str = ""
    is_post: bool = False
    more: Mapping[str, Any] = {}
    """What else is sent."""
    hits: tuple[str, ...] = ("results",)
    """Where the pages stand in the answer."""
    text: str
    """The field with their words."""

    def request(self, query: str, count: int, address: str, key: str) -> HttpRequest:
        """What is sent to it."""
        base = self.url or f"{address.rstrip('/')}/search"
        fields = {self.query_field: query, **self.more}
        if self.count_field:
            fields[self.count_field] = count
        headers = [_ACCEPT]
        if self.key_header:
            headers.append((self.key_header, f"{self.key_prefix}{key}"))
        if not self.is_post:
            url = f"{base}?{urlencode(fields)}"
            return HttpRequest(url=url, method="GET", headers=tuple(headers), timeouts=_TIMEOUTS)
        body = msgspec.json.encode(fields)
        return HttpRequest(url=base, headers=(*headers, _JSON), body=body, timeouts=_TIMEOUTS)


_ALL: Final = (
    SearchService(
        name="brave",
        url="https://api.search.brave.com/res/v1/web/search",
        variable="BRAVE_API_KEY",
        key_header="x-subscription-token",
        query_field="q",
        count_field="count",
        hits=("web", "results"),
        text="description",
    ),
    SearchService(
        name="tavily",
        url="https://api.tavily.com/search",
        variable="TAVILY_API_KEY",
        key_header="authorization",
        key_prefix="Bearer ",
        query_field="query",
        count_field="max_results",
        is_post=True,
        text="content",
    ),
    SearchService(
        name="exa",
        url="https://api.exa.ai/search",
        variable="EXA_API_KEY",
        key_header="x-api-key",
        query_field="query",
        count_field="numResults",
        is_post=True,
        more={"contents": {"text": {"maxCharacters": _SHOWN}}},
        text="text",
    ),
    SearchService(
        name="searxng",
        url="",
        variable="",
        query_field="q",
        more={"format": "json"},
        text="content",
    ),
)
SERVICES: Final[Mapping[str, SearchService]] = {each.name: each for each in _ALL}


def hits_in(service: SearchService, body: bytes) -> list[SearchHit]:
    """The pages in an answer.

    Raises:
        FinalToolError: it is none.
    """
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        raise FinalToolError(f"the answer of {service.name} is no JSON") from None
    for name in service.hits:
        found = found.get(name, []) if isinstance(found, dict) else []
    listed = found if isinstance(found, list) else []
    return [hit for each in listed if (hit := _hit(each, service.text)) is not None]


def _hit(found: Any, text: str) -> SearchHit | None:
    url = found.get("url") if isinstance(found, dict) else None
    # What is longer, or would take another line, is no address that `fetch` takes.
    if not isinstance(url, str) or len(url) > _LONGEST or not url.isprintable():
        return None
    return SearchHit(
        title=_on_one_line(found.get("title")) or "(no title)",
        url=url,
        text=_on_one_line(found.get(text)),
    )


def _on_one_line(said: Any) -> str:
    if not isinstance(said, str):
        return ""
    words = " ".join(said[: 4 * _SHOWN].split())[:_SHOWN]
    return "".join(letter for letter in words if letter.isprintable())
