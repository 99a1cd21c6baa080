"""OpenAI as a provider, through the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.errors import RequestRefused
from weft.providers.base import ModelInfo, ModelRequest, StreamDecoder
from weft.providers.catalogue import CatalogueProvider
from weft.providers.credentials import ProviderAccess, as_json, joined
from weft.providers.http_model import RemoteVendor
from weft.providers.normalize import real_names
from weft.providers.openai.decode import ResponsesDecoder
from weft.providers.openai.encode import encode
from weft.transport import HttpRequest

BASE_URL = "https://api.openai.com/v1"
SUMMARIES = "summaries"
"""In a form: false where no summaries of reasoning are asked for."""


class ResponsesWire(RemoteVendor):
    """The Responses API over HTTP, and text completion for the base models."""

    completes = True
    refused_reasoning = r"(?i)encrypted.content|reasoning item"

    def __init__(self, access: ProviderAccess, provider: str, catalogue: CatalogueProvider) -> None:
        super().__init__(access, provider, catalogue)
        self._with_summaries = True

    def http_after(
        self, request: ModelRequest, info: ModelInfo, error: RequestRefused
    ) -> HttpRequest | None:
        """Also the request without summaries of reasoning, which an organization that is not
        verified does not get; it answers all the same.
        """
        if self._with_summaries and error.topic == "verification" and "summar" in str(error):
            self._with_summaries = False
            return self.http(request, info)
        return super().http_after(request, info, error)

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        access = self._access
        sent = HttpRequest(
            url=joined(access.base_url or BASE_URL, "/responses"),
            headers=(
                ("content-type", "application/json"),
                ("accept", "text/event-stream"),
                *self._key_header("authorization", "OPENAI_API_KEY", "openai"),
                *access.headers,
            ),
            body=b"" if request.prompt is not None else self._body_now(request, info),
            timeouts=access.timeouts,
        )
        if request.prompt is None:
            return sent
        from weft.providers import completions  # only the loom sends raw text

        url = joined(access.base_url or BASE_URL, completions.PATH)
        return completions.completion_request(sent, request, url)

    def form(self, request: ModelRequest) -> dict[str, Any]:
        return {**super().form(request), **({} if self._with_summaries else {SUMMARIES: False})}

    def body(self, request: ModelRequest, info: ModelInfo, form: Mapping[str, Any]) -> bytes:
        accepted = self.accepted(request, form)
        return as_json(encode(accepted, info, with_summaries=bool(form.get(SUMMARIES, True))))

    def _body_now(self, request: ModelRequest, info: ModelInfo) -> bytes:
        return self.body(request, info, self.form(request))

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        if request.prompt is not None:
            from weft.providers.completions import CompletionDecoder  # as above

            return CompletionDecoder(self.provider, self.secret)
        return ResponsesDecoder(self.provider, real_names(request.tools), self.secret)
