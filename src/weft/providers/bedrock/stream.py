"""Amazon Bedrock as a provider, for Anthropic's models there.

The body is the one of the Messages API with the model in the address instead; the answer is an AWS
event stream whose frames hold the events of the Messages API.  So encoder and decoder are
Anthropic's.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import quote

import msgspec

from weft.clock import Clock, SystemClock
from weft.errors import ProviderUnavailable, RequestRefused
from weft.providers.anthropic.decode import AnthropicDecoder
from weft.providers.anthropic.encode import encode
from weft.providers.anthropic.stream import REFUSED_REASONING
from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.bedrock.aws_credentials import find_credentials, find_region
from weft.providers.bedrock.event_stream import EventFrame, FrameReader
from weft.providers.bedrock.sigv4 import signed
from weft.providers.catalogue import CatalogueProvider
from weft.providers.credentials import ProviderAccess, as_json
from weft.providers.http_model import FrameSplitter, RemoteVendor, StreamDecoder
from weft.providers.normalize import real_names
from weft.transport import HttpRequest, HttpTransport

VERSION = "bedrock-2023-05-31"
SERVICE = "bedrock"
"""What the signature is for; the host's name says `bedrock-runtime`."""
_KINDS = {
    "throttlingException": "rate_limit_error",
    "modelTimeoutException": "timeout_error",
    "internalServerException": "api_error",
    "modelStreamErrorException": "api_error",
    "serviceUnavailableException": "overloaded_error",
    "validationException": "invalid_request_error",
}
"""The exceptions of a stream, in Anthropic's words."""


class BedrockWire(RemoteVendor):
    """`InvokeModelWithResponseStream` over HTTP."""

    refused_reasoning = REFUSED_REASONING

    def __init__(self, access: ProviderAccess, provider: str, catalogue: CatalogueProvider) -> None:
        super().__init__(access, provider, catalogue)
        self.clock: Clock = SystemClock()
        self._region = find_region(access)
        usual = f"https://bedrock-runtime.{self._region}.amazonaws.com"
        self._base = (access.base_url or usual).rstrip("/")

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        if "anthropic." not in request.model:
            raise RequestRefused(
                f"{self.provider}:{request.model} is not one of Anthropic's models, which are the "
                "ones that can be used there (global.anthropic.claude-sonnet-5-5)"
            )
        body = encode(self._accepted(request), info)
        # Both stand in the address.
        del body["model"], body["stream"]
        model = quote(request.model, safe="")
        return HttpRequest(
            url=f"{self._base}/model/{model}/invoke-with-response-stream",
            headers=(
                ("content-type", "application/json"),
                ("accept", "application/vnd.amazon.eventstream"),
                *self._access.headers,
            ),
            body=as_json({"anthropic_version": VERSION, **body}),
            timeouts=self._access.timeouts,
        )

    async def authorized(self, request: HttpRequest, transport: HttpTransport) -> HttpRequest:
        request = await super().authorized(request, transport)
        if self._access.key:
            token = ("authorization", f"Bearer {self._access.key}")
            return msgspec.structs.replace(request, headers=(*request.headers, token))
        # Last, and for each try: it covers the query and the body, and is too old after minutes.
        return signed(
            request,
            find_credentials(self._access),
            region=self._region,
            service=SERVICE,
            now=self.clock.now(),
        )

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        return AnthropicDecoder(self.provider, real_names(request.tools), self.secret)

    def frames(self) -> FrameSplitter:
        return MessageFrames()


class MessageFrames(FrameSplitter):
    """The events of the Messages API in the frames of an event stream."""

    def __init__(self) -> None:
        self._frames = FrameReader()

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        return [_event(frame) for frame in self._frames.feed(data)]

    def finish(self) -> list[tuple[bytes, bytes]]:
        return []  # a frame that was cut is told by the answer that is not complete


def _event(frame: EventFrame) -> tuple[bytes, bytes]:
    headers = frame.headers
    if headers.get(":message-type") == "event":
        return b"", _inner(frame.payload)
    # An exception, or an error of the service before it knew which.
    kind = headers.get(":exception-type") or headers.get(":error-code", "")
    message = headers.get(":error-message") or _message(frame.payload) or kind
    said = {"type": _KINDS.get(kind, kind), "message": message}
    return b"error", msgspec.json.encode({"type": "error", "error": said})


def _inner(payload: bytes) -> bytes:
    try:
        value: Any = msgspec.json.decode(payload)
        return base64.b64decode(value["bytes"], validate=True)
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, binascii.Error) as error:
        raise ProviderUnavailable("an event of bedrock cannot be understood") from error


def _message(payload: bytes) -> str:
    try:
        value: Any = msgspec.json.decode(payload)
    except msgspec.MsgspecError:
        return ""
    return str(value.get("message", "")) if isinstance(value, dict) else ""
