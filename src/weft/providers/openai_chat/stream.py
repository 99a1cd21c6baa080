"""Chat Completions as a provider: OpenAI's own, and any compatible server by name and address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.errors import UsageError
from weft.providers.base import ModelInfo, ModelRequest, StreamDecoder
from weft.providers.catalogue import CatalogueModel, CatalogueProvider
from weft.providers.credentials import SLOW, ProviderAccess, as_json, joined
from weft.providers.http_model import RemoteVendor
from weft.providers.normalize import real_names
from weft.providers.openai_chat.decode import ChatDecoder
from weft.providers.openai_chat.encode import (
    COMPATIBLE,
    DEEPSEEK,
    GEMINI,
    MISTRAL,
    OPENAI,
    OPENROUTER,
    WITH_EFFORT,
    WITH_REASONING,
    XAI,
    encode,
)
from weft.transport import HttpRequest, HttpTimeouts, is_loopback, target

BASE_URL = "https://api.openai.com/v1"
DIALECTS = {
    "api.openai.com": OPENAI,
    "api.deepseek.com": DEEPSEEK,
    "api.mistral.ai": MISTRAL,
    "api.x.ai": XAI,
    "api.groq.com": WITH_EFFORT,
    "api.together.xyz": WITH_EFFORT,
    "openrouter.ai": OPENROUTER,
    "api.moonshot.ai": WITH_REASONING,
    "api.moonshot.cn": WITH_REASONING,
    "api.z.ai": WITH_REASONING,
    "generativelanguage.googleapis.com": GEMINI,
}
"""The dialects of servers that differ from most, by host."""
THOUGHT_MARK = "reasoning_content"
"""Signs reasoning that the server wants back; the protocol has no signatures."""


class ChatWire(RemoteVendor):
    """Chat Completions over HTTP."""

    completes = True
    refused_reasoning = r"(?i)reasoning.details|signature|thinking.{0,4} block|encrypted.content"

    def __init__(
        self,
        access: ProviderAccess,
        provider: str,
        catalogue: CatalogueProvider,
    ) -> None:
        """
        Raises:
            UsageError: the provider has no address.
        """
        self._is_openai = provider in ("openai-chat", "openai")
        # A vendor at its own address refuses what has no key; a server of the user's may not.
        self._needs_key = self._is_openai or bool(catalogue.key and not access.base_url)
        self._variable = "OPENAI_API_KEY" if self._is_openai else catalogue.key
        address = access.base_url or (BASE_URL if self._is_openai else catalogue.url)
        if not address:
            raise UsageError(
                f"no provider {provider!r}; set providers.{provider}.base_url to use a server that "
                "speaks Chat Completions"
            )
        host = target(address).host
        timeouts = access.timeouts
        # A server on this machine loads the model and reads the prompt without sending anything.
        if timeouts == HttpTimeouts() and (catalogue.is_free or is_loopback(host)):
            timeouts = SLOW
        reached = msgspec.structs.replace(access, base_url=address, timeouts=timeouts)
        super().__init__(reached, provider, catalogue)
        self._dialect = OPENAI if self._is_openai else DIALECTS.get(host, COMPATIBLE)

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        access = self._access
        vendor = "openai" if self._is_openai else self.provider
        keyed = self._key_header("authorization", self._variable, vendor, is_needed=self._needs_key)
        named = self._dialect.conversation_header
        routed = ((named, request.session_id),) if named and request.session_id else ()
        sent = HttpRequest(
            url=joined(access.base_url, "/chat/completions"),
            headers=(
                ("content-type", "application/json"),
                ("accept", "text/event-stream"),
                *keyed,
                *routed,
                *access.headers,
            ),
            body=b""
            if request.prompt is not None
            else self.body(request, info, self.form(request)),
            timeouts=access.timeouts,
            unix_socket=access.unix_socket,
        )
        return sent if request.prompt is None else self._raw(sent, request)

    def body(self, request: ModelRequest, info: ModelInfo, form: Mapping[str, Any]) -> bytes:
        return as_json(encode(self.accepted(request, form), info, self._dialect))

    def _raw(self, sent: HttpRequest, request: ModelRequest) -> HttpRequest:
        """The request for raw text."""
        from weft.providers import completions  # only the loom sends raw text

        base = self._access.base_url
        if not self._dialect.fills_gaps:
            return completions.completion_request(sent, request, joined(base, completions.PATH))
        body = as_json(completions.encode_gap(request))
        return msgspec.structs.replace(sent, url=joined(base, completions.GAP_PATH), body=body)

    def models_request(self) -> HttpRequest | None:
        # OpenAI's own list names every model there ever was, pictures and speech included.
        if self._is_openai or (self._needs_key and not self._access.key):
            return None
        key = self._access.key
        return HttpRequest(
            url=joined(self._access.base_url, "/models"),
            method="GET",
            headers=(
                *((("authorization", f"Bearer {key}"),) if key else ()),
                *self._access.headers,
            ),
            timeouts=HttpTimeouts(connect=2.0, first_byte=5.0, idle=5.0),
        )

    def listed(self, body: bytes) -> dict[str, CatalogueModel]:
        from weft.providers.openai_chat.model_list import listed_models  # few ask for the list

        return listed_models(body)

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        if request.prompt is not None and not self._dialect.fills_gaps:
            from weft.providers.completions import CompletionDecoder  # as above

            return CompletionDecoder(self.provider, self.secret)
        mark = THOUGHT_MARK if self._dialect.reasoning_back else ""
        return ChatDecoder(self.provider, real_names(request.tools), self.secret, mark)
