"""Chat Completions as a provider: OpenAI's own, and any compatible server by name and address."""

from __future__ import annotations

import msgspec

from weft.clock import Clock
from weft.errors import AuthFailed, UsageError
from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.catalogue import ModelCatalogue
from weft.providers.credentials import SLOW, ProviderAccess, as_json, joined
from weft.providers.http_model import (
    FrameSplitter,
    HttpProvider,
    StreamDecoder,
    VendorProtocol,
    event_frames,
)
from weft.providers.normalize import real_names
from weft.providers.openai_chat.decode import ChatDecoder
from weft.providers.openai_chat.encode import (
    COMPATIBLE,
    DEEPSEEK,
    MISTRAL,
    OPENAI,
    WITH_EFFORT,
    XAI,
    ChatDialect,
    encode,
)
from weft.transport import HttpRequest, HttpTimeouts, HttpTransport, is_loopback, target

BASE_URL = "https://api.openai.com/v1"
DIALECTS = {
    "api.openai.com": OPENAI,
    "api.deepseek.com": DEEPSEEK,
    "api.mistral.ai": MISTRAL,
    "api.x.ai": XAI,
    "api.groq.com": WITH_EFFORT,
    "api.together.xyz": WITH_EFFORT,
}
"""How servers speak that differ from most, by host."""
THOUGHT_MARK = "reasoning_content"
"""Signs reasoning that the server wants back; the protocol has no signatures."""


class ChatWire(VendorProtocol):
    """Chat Completions over HTTP."""

    def __init__(
        self,
        access: ProviderAccess,
        provider: str,
        dialect: ChatDialect,
        *,
        needs_key: bool = False,
    ) -> None:
        self.provider = provider
        self.secret = access.key
        self._access = access
        self._dialect = dialect
        self._needs_key = needs_key

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        access = self._access
        if self._needs_key and not access.key:
            raise AuthFailed(
                f"there is no key for {self.provider}; set OPENAI_API_KEY, or run `weft auth login openai`"
            )
        keyed = (("authorization", f"Bearer {access.key}"),) if access.key else ()
        named = self._dialect.conversation_header
        told = ((named, request.session_id),) if named and request.session_id else ()
        return HttpRequest(
            url=joined(access.base_url, "/chat/completions"),
            headers=(
                ("content-type", "application/json"),
                ("accept", "text/event-stream"),
                *keyed,
                *told,
                *access.headers,
            ),
            body=as_json(encode(request, info, self._dialect)),
            timeouts=access.timeouts,
            unix_socket=access.unix_socket,
        )

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        mark = THOUGHT_MARK if self._dialect.reasoning_back else ""
        return ChatDecoder(self.provider, real_names(request.tools), self.secret, mark)

    def frames(self) -> FrameSplitter:
        return event_frames()


def provider(
    access: ProviderAccess,
    transport: HttpTransport,
    catalogue: ModelCatalogue,
    *,
    name: str = "openai-chat",
    dialect: ChatDialect | None = None,
    clock: Clock | None = None,
) -> HttpProvider:
    """A server that speaks Chat Completions, under the name it is given.

    Raises:
        UsageError: it has no address.
    """
    is_openai = name == "openai-chat"
    address = access.base_url or (BASE_URL if is_openai else catalogue.vendor(name).url)
    if not address:
        raise UsageError(
            f"no provider {name!r}; set providers.{name}.base_url to use a server that speaks Chat Completions"
        )
    timeouts = access.timeouts
    host = target(address).host
    if timeouts == HttpTimeouts() and (catalogue.vendor(name).is_free or is_loopback(host)):
        timeouts = SLOW
    reached = msgspec.structs.replace(access, base_url=address, timeouts=timeouts)
    dialect = dialect or (OPENAI if is_openai else DIALECTS.get(host, COMPATIBLE))
    wire = ChatWire(reached, name, dialect, needs_key=is_openai)
    return HttpProvider(wire, transport, catalogue, clock=clock)
