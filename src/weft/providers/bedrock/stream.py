"""Amazon Bedrock as a provider.

For Anthropic's models the body is the one of the Messages API with the model in the address
instead; the answer is an AWS event stream whose frames hold the events of the Messages API.  So
encoder and decoder are Anthropic's, and thinking, caching and the newest fields work as there.  All
other models are spoken with by Converse, which has one form for all.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from weft.clock import Clock, SystemClock
from weft.errors import ProviderUnavailable
from weft.providers.anthropic.decode import AnthropicDecoder
from weft.providers.anthropic.encode import encode
from weft.providers.anthropic.stream import REFUSED_REASONING
from weft.providers.base import ModelInfo, ModelRequest, StreamDecoder
from weft.providers.bedrock import converse_encode
from weft.providers.bedrock.aws_credentials import AwsCredentialChain, find_region
from weft.providers.bedrock.converse_decode import ConverseDecoder
from weft.providers.bedrock.event_stream import EventFrame, FrameReader
from weft.providers.bedrock.sigv4 import signed
from weft.providers.catalogue import CatalogueProvider
from weft.providers.credentials import ProviderAccess, as_json
from weft.providers.http_model import FrameSplitter, RemoteVendor
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
    """`InvokeModelWithResponseStream` and `ConverseStream` over HTTP."""

    refused_reasoning = REFUSED_REASONING

    def __init__(self, access: ProviderAccess, provider: str, catalogue: CatalogueProvider) -> None:
        super().__init__(access, provider, catalogue)
        self.clock: Clock = SystemClock()
        self._credentials = AwsCredentialChain(access)
        self._region = find_region(access)
        usual = f"https://bedrock-runtime.{self._region}.amazonaws.com"
        self._base = (access.base_url or usual).rstrip("/")

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        operation = (
            "invoke-with-response-stream" if is_anthropic(request.model) else "converse-stream"
        )
        body = self.body(request, info, self.form(request))
        return self._post(request.model, operation, body)

    def body(self, request: ModelRequest, info: ModelInfo, form: Mapping[str, Any]) -> bytes:
        accepted = self.accepted(request, form)
        if not is_anthropic(request.model):
            return as_json(converse_encode.encode(accepted, info))
        body = encode(accepted, info)
        # Both stand in the address.
        del body["model"], body["stream"]
        return as_json({"anthropic_version": VERSION, **body})

    def _post(self, model: str, operation: str, body: bytes) -> HttpRequest:
        return HttpRequest(
            url=f"{self._base}/model/{quote(model, safe='')}/{operation}",
            headers=(
                ("content-type", "application/json"),
                ("accept", "application/vnd.amazon.eventstream"),
                *self._access.headers,
            ),
            body=body,
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
            await self._credentials.get(transport),
            region=self._region,
            service=SERVICE,
            now=self.clock.now(),
        )

    def decoder(self, request: ModelRequest) -> StreamDecoder:
        kind = AnthropicDecoder if is_anthropic(request.model) else ConverseDecoder
        return kind(self.provider, real_names(request.tools), self.secret)

    def frames(self) -> FrameSplitter:
        return MessageFrames()


def is_anthropic(model: str) -> bool:
    """Whether a model is spoken with in the words of the Messages API; an address of a profile
    (`arn:…`) tells it only where its name does.
    """
    return "anthropic." in model


class MessageFrames(FrameSplitter):
    """The events of an event stream: those of Converse by the type of their frame, those of the
    Messages API inside of it.
    """

    def __init__(self) -> None:
        self._frames = FrameReader()

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        return [_event(frame) for frame in self._frames.feed(data)]

    def finish(self) -> list[tuple[bytes, bytes]]:
        return []  # a frame that was cut is told by the answer that is not complete


def _event(frame: EventFrame) -> tuple[bytes, bytes]:
    headers = frame.headers
    if headers.get(":message-type") == "event":
        kind = headers.get(":event-type", "")
        # Only the frames of a model's own stream wrap what they hold.
        return (b"", _inner(frame.payload)) if kind == "chunk" else (kind.encode(), frame.payload)
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
