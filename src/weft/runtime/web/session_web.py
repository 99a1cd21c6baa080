"""The web as one session may reach it: addresses that are public, or that a rule names."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import anyio
import anyio.to_thread

from weft.clock import Clock
from weft.config.providers import proxies_of
from weft.config.settings import Config
from weft.errors import FinalToolError, ProviderUnavailable, RetryableToolError, UsageError
from weft.permissions import PermissionRule
from weft.permissions.network_rules import NetworkRules
from weft.runtime.web.address_guard import PageAddressGuard
from weft.runtime.web.search_services import SERVICES, SearchService, hits_in
from weft.tools.base import SearchHit, WebAccess, WebReply
from weft.transport import HttpClient, HttpReply, HttpRequest, HttpTimeouts, target
from weft.version import __version__
from weft.workspace.egress.host_lookup import HostLookup, LookUp

MOST_BYTES: Final = 10 * 1024 * 1024
"""Of a reply, decompressed."""
SECONDS: Final = 30.0
KEPT_SECONDS: Final = 15 * 60.0
MOST_KEPT: Final = 20
MOST_KEPT_BYTES: Final = 32 * 1024 * 1024
"""Of all pages of a session."""
_TIMEOUTS: Final = HttpTimeouts(connect=10.0, first_byte=20.0, idle=15.0)
_ACCEPT: Final = "text/html, application/xhtml+xml, text/*;q=0.9, application/pdf;q=0.8, */*;q=0.5"


class SessionWeb(WebAccess):
    """The web, as the rules of one session let it be reached."""

    def __init__(
        self,
        config: Config,
        environ: Mapping[str, str],
        clock: Clock,
        rules: Callable[[], Sequence[PermissionRule]],
        look_up: LookUp | None = None,
    ) -> None:
        """`rules` gives those about `fetch`; `look_up` asks name servers."""
        self._config = config
        self._environ = environ
        self._clock = clock
        self._rules = rules
        self._look_up = look_up
        self._kept: dict[str, tuple[float, Any, int]] = {}
        self._tls: ssl.SSLContext | None = None

    # -- pages

    async def get(self, url: str) -> WebReply:
        headers = (("accept", _ACCEPT), ("user-agent", f"weft/{__version__}"))
        where = target(url)
        guard = PageAddressGuard(NetworkRules(self._rules()), HostLookup(self._look_up))
        if self._is_proxied(url):
            # The proxy looks the name up by itself; what is known of it here is judged first.
            await guard.judged(where.host, where.port, is_known=False)
        return await self._asked(
            HttpRequest(url=url, method="GET", headers=headers, timeouts=_TIMEOUTS), guard.resolve
        )

    def kept(self, url: str) -> Any:
        at, page, _ = self._kept.get(url, (0.0, None, 0))
        return page if self._clock.now() - at < KEPT_SECONDS else None

    def keep(self, url: str, page: Any, size: int) -> None:
        self._kept.pop(url, None)
        self._kept[url] = (self._clock.now(), page, size)
        held = sum(each for _, _, each in self._kept.values())
        while len(self._kept) > MOST_KEPT or held > MOST_KEPT_BYTES:
            _, _, freed = self._kept.pop(next(iter(self._kept)))
            held -= freed

    # -- search

    @property
    def why_no_search(self) -> str:
        name = self._config.get("web.search")
        if name not in SERVICES:
            return (
                "no search service is configured; the user can choose one of "
                f"{', '.join(SERVICES)} with `weft config set web.search NAME`"
            )
        service = SERVICES[name]
        if service.variable and not self._environ.get(service.variable):
            return f"web.search is {name}, and its key is not there: set {service.variable}"
        if not service.variable and not self._config.get("web.search_url"):
            return f"web.search is {name}; set web.search_url to the address of the server"
        return ""

    async def search(self, query: str, count: int) -> list[SearchHit]:
        if why := self.why_no_search:
            raise FinalToolError(why)
        service: SearchService = SERVICES[self._config.get("web.search")]
        address = self._config.get("web.search_url")
        key = self._environ.get(service.variable, "")
        # Where the service is, is the user's own choice: it may be inside.
        reply = await self._asked(service.request(query, count, address, key), None)
        if reply.status >= 300:
            raise FinalToolError(f"{service.name} answers {reply.status} to the search")
        return hits_in(service, reply.body)[:count]

    # -- requests

    def _is_proxied(self, url: str) -> bool:
        return proxies_of(self._environ).for_target(target(url)) is not None

    async def _asked(self, request: HttpRequest, resolve: Any) -> WebReply:
        shown = request.url.partition("?")[0]
        if request.url.startswith("https:") and self._tls is None:
            # Reading all certificates takes tens of milliseconds, in which nothing else would run.
            self._tls = await anyio.to_thread.run_sync(ssl.create_default_context)
        tls = self._tls
        client = HttpClient(
            proxies=proxies_of(self._environ),
            resolve=resolve,
            tls=None if tls is None else lambda: tls,
        )
        try:
            with anyio.fail_after(SECONDS):
                async with client.send(request) as reply:
                    return await _read(reply)
        except TimeoutError:
            raise RetryableToolError(f"{shown} took more than {SECONDS:g} seconds") from None
        except (ProviderUnavailable, UsageError) as error:
            raise FinalToolError(str(error)) from error
        finally:
            await client.aclose()


async def _read(reply: HttpReply) -> WebReply:
    body = bytearray()
    while len(body) <= MOST_BYTES and (data := await reply.read()):
        body += data
    return WebReply(
        status=reply.status,
        headers=reply.headers,
        body=bytes(body[:MOST_BYTES]),
        is_cut=len(body) > MOST_BYTES,
    )
