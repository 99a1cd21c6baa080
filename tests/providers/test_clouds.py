"""Azure, Bedrock and Vertex over real sockets: addresses, keys, signatures, frames and tokens."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from tests.support.cloud_servers import answer_frames, exception_frame, frame, send_frames
from tests.support.loopback_server import Handler, LoopbackConnection, LoopbackServer, serving
from tests.support.rsa_sample import KEY, OLD_PRIVATE_KEY, PRIVATE_KEY
from tests.support.vendor_servers import VENDOR_WIRES, send_plan
from weft.clock import ManualClock
from weft.errors import (
    AuthFailed,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    RequestRefused,
)
from weft.messages import Text
from weft.providers import ChatMessage, Model, ModelRequest, TextPiece
from weft.providers.bedrock.event_stream import FrameReader
from weft.providers.bedrock.sigv4 import AwsCredentials, signed
from weft.providers.catalogue import shipped
from weft.providers.credentials import ProviderAccess
from weft.providers.script import SayText, ScriptedAnswer
from weft.providers.vendors import access_from, make_provider
from weft.providers.vertex.google_token import GoogleToken
from weft.providers.vertex.rsa_signature import private_key
from weft.transport import HttpClient, HttpRequest

pytestmark = pytest.mark.anyio
CLAUDE = "global.anthropic.claude-sonnet-5-5"
AWS = {"AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": "s/e+c", "AWS_REGION": "eu-west-1"}


@asynccontextmanager
async def cloud(
    name: str, handler: Handler, model: str, environ: dict[str, str], **given: Any
) -> AsyncGenerator[tuple[Model, LoopbackServer]]:
    async with serving(handler) as server:
        client = HttpClient()
        access = ProviderAccess(base_url=server.url, **given)
        found = access_from(name, environ, shipped(), access)
        yield make_provider(name, found, client, shipped()).model(model), server
        await client.aclose()


async def said(model: Model) -> str:
    user = ChatMessage(role="user", parts=(Text(text="hi"),))
    request = ModelRequest(model=model.info.name, messages=(user,))
    with anyio.fail_after(10):
        async with model.stream(request) as events:
            return "".join([e.text async for e in events if isinstance(e, TextPiece)])


def speaking(vendor: str) -> Handler:
    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            plan = ScriptedAnswer(steps=(SayText(text="hello"),))
            await send_plan(line, VENDOR_WIRES[vendor](), plan)

    return handler


def streaming(*frames: bytes) -> Handler:
    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            await send_frames(line, list(frames))

    return handler


# --- Azure -----------------------------------------------------------------------------


async def test_azure_speaks_responses_at_the_v1_interface() -> None:
    environ = {"AZURE_OPENAI_API_KEY": "k-1"}
    async with cloud("azure", speaking("openai"), "my-gpt", environ) as (model, server):
        assert await said(model) == "hello"
    (asked,) = server.asked
    assert asked.path == "/openai/v1/responses"
    assert asked.headers["api-key"] == "k-1"
    assert "authorization" not in asked.headers
    assert json.loads(asked.body)["model"] == "my-gpt"


@pytest.mark.parametrize("how", ["variable", "query"])
async def test_azure_speaks_chat_completions_of_a_deployment_where_a_version_is_set(
    how: str,
) -> None:
    environ = {"AZURE_OPENAI_API_KEY": "k-1"}
    given: dict[str, Any] = {}
    if how == "variable":
        environ["AZURE_OPENAI_API_VERSION"] = "2024-10-21"
    else:
        given["query"] = (("api-version", "2024-10-21"),)
    handler = speaking("openai-chat")
    async with cloud("azure", handler, "my gpt", environ, **given) as (model, server):
        assert await said(model) == "hello"
    (asked,) = server.asked
    assert asked.path == ("/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21")
    assert asked.headers["api-key"] == "k-1"
    assert json.loads(asked.body)["stream_options"] == {"include_usage": True}


async def test_azure_takes_a_token_of_entra_id_and_the_address_of_the_v1_interface() -> None:
    environ = {"AZURE_OPENAI_AD_TOKEN": "t-1"}
    async with serving(speaking("openai")) as server:
        client = HttpClient()
        environ["AZURE_OPENAI_ENDPOINT"] = f"{server.url}/openai/v1/"
        access = access_from("azure", environ, shipped())
        model = make_provider("azure", access, client, shipped()).model("m")
        assert await said(model) == "hello"
        await client.aclose()
    assert server.asked[0].path == "/openai/v1/responses"
    assert server.asked[0].headers["authorization"] == "Bearer t-1"
    assert "api-key" not in server.asked[0].headers


async def test_azure_without_an_address_or_a_key_says_what_to_set() -> None:
    nowhere = make_provider("azure", ProviderAccess(key="k"), HttpClient(), shipped())
    with pytest.raises(RequestRefused, match="set AZURE_OPENAI_ENDPOINT"):
        await said(nowhere.model("m"))
    async with cloud("azure", speaking("openai"), "m", {}) as (model, _):
        with pytest.raises(AuthFailed, match="set AZURE_OPENAI_API_KEY"):
            await said(model)


# --- Bedrock ---------------------------------------------------------------------------


async def test_bedrock_sends_a_signed_message_and_reads_its_event_stream() -> None:
    handler = streaming(*answer_frames("hello"))
    async with cloud("bedrock", handler, CLAUDE, AWS) as (model, server):
        assert await said(model) == "hello"
    (asked,) = server.asked
    assert asked.path == f"/model/{CLAUDE}/invoke-with-response-stream"
    body = json.loads(asked.body)
    assert body["anthropic_version"] == "bedrock-2023-05-31"
    assert not {"model", "stream"} & body.keys()
    proof = asked.headers["authorization"]
    assert proof.startswith("AWS4-HMAC-SHA256 Credential=AKIA1/")
    assert "/eu-west-1/bedrock/aws4_request" in proof
    assert "x-amz-date" in asked.headers


async def test_a_bedrock_key_goes_as_a_bearer() -> None:
    environ = {"AWS_BEARER_TOKEN_BEDROCK": "b-1", **AWS}
    handler = streaming(*answer_frames("hello"))
    async with cloud("bedrock", handler, CLAUDE, environ) as (model, server):
        assert await said(model) == "hello"
    assert server.asked[0].headers["authorization"] == "Bearer b-1"


async def test_the_signature_is_the_one_of_the_specification() -> None:
    """The example `get-vanilla-query-order-key-case` of the published test suite."""
    request = HttpRequest(
        url="https://example.amazonaws.com/?Param2=value2&Param1=value1", method="GET"
    )
    found = signed(
        request,
        AwsCredentials(
            access_key="AKIDEXAMPLE", secret_key="wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
        ),
        region="us-east-1",
        service="service",
        now=1440938160.0,
    )
    assert dict(found.headers)["authorization"].endswith(
        "Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
    )


async def test_credentials_come_from_the_profile_that_is_named(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = A\naws_secret_access_key = B\n"
        "[work]\naws_access_key_id = AW\naws_secret_access_key = p%q\naws_session_token = T\n"
    )
    (tmp_path / ".aws" / "config").write_text("[profile work]\nregion = ap-south-1\n")
    environ = {"HOME": str(tmp_path), "AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": "x"}
    handler = streaming(*answer_frames("hello"))
    async with cloud("bedrock", handler, CLAUDE, environ) as (model, server):
        await said(model)
    asked = server.asked[0].headers
    assert "Credential=AW/" in asked["authorization"]
    assert "/ap-south-1/" in asked["authorization"]
    assert asked["x-amz-security-token"] == "T"


async def test_without_credentials_bedrock_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("not [an ini secret-line\n")
    environ = {"HOME": str(tmp_path)}
    async with cloud("bedrock", streaming(), CLAUDE, environ) as (model, _):
        with pytest.raises(AuthFailed, match="AWS_BEARER_TOKEN_BEDROCK") as caught:
            await said(model)
    assert "secret-line" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "error", "is_retried"),
    [
        ("throttlingException", RateLimited, True),
        ("serviceUnavailableException", ProviderUnavailable, True),
        ("validationException", RequestRefused, False),
    ],
)
async def test_an_exception_in_the_stream_is_an_error(
    kind: str, error: type[ProviderError], is_retried: bool
) -> None:
    handler = streaming(*answer_frames("hello")[:3], exception_frame(kind, "too bad"))
    async with cloud("bedrock", handler, CLAUDE, AWS) as (model, _):
        with pytest.raises(error, match="too bad") as caught:
            await said(model)
    assert caught.value.retryable is is_retried


async def test_a_frame_that_was_changed_on_the_way_is_not_believed() -> None:
    whole = b"".join(answer_frames("hello"))
    for place in (1, 9, 20, len(answer_frames("hello")[0]) - 2):
        broken = bytearray(whole)
        broken[place] ^= 0x55
        async with cloud("bedrock", streaming(bytes(broken)), CLAUDE, AWS) as (model, _):
            with pytest.raises(ProviderUnavailable, match="cannot be read"):
                await said(model)


def test_frames_do_not_depend_on_how_they_are_cut() -> None:
    data = b"".join(answer_frames("hello"))
    whole = FrameReader().feed(data)
    reader = FrameReader()
    assert [each for at in range(len(data)) for each in reader.feed(data[at : at + 1])] == whole
    assert not reader.is_cut


def test_a_frame_with_other_kinds_of_headers_is_read() -> None:
    packed = (
        b"\x01a\x00\x01b\x01\x01c\x02\x07\x01d\x03\x00\x07\x01e\x04\x00\x00\x00\x07"
        b"\x01f\x05" + bytes(8) + b"\x01g\x06\x00\x02xy\x01h\x07\x00\x02hi\x01i\x08" + bytes(8)
        + b"\x01j\x09" + bytes(16)
    )  # fmt: skip
    plain = frame({}, b"payload")
    total = 16 + len(packed) + len(b"payload")
    prelude = total.to_bytes(4, "big") + len(packed).to_bytes(4, "big")
    message = prelude + zlib.crc32(prelude).to_bytes(4, "big") + packed + b"payload"
    message += zlib.crc32(message).to_bytes(4, "big")
    first, second = FrameReader().feed(plain + message)
    assert first == ({}, b"payload")
    assert second == ({"h": "hi"}, b"payload")


# --- Vertex ----------------------------------------------------------------------------

PLACE = "/v1/projects/p-1/locations/europe-west1/publishers"
GCP = {"GOOGLE_CLOUD_PROJECT": "p-1", "GOOGLE_CLOUD_LOCATION": "europe-west1"}


async def test_vertex_speaks_gemini() -> None:
    handler = speaking("google")
    async with cloud("vertex", handler, "gemini-3.8-flash", GCP, key="t-1") as (model, server):
        assert await said(model) == "hello"
    (asked,) = server.asked
    assert asked.path == f"{PLACE}/google/models/gemini-3.8-flash:streamGenerateContent?alt=sse"
    assert asked.headers["authorization"] == "Bearer t-1"


async def test_vertex_speaks_claude() -> None:
    handler = speaking("anthropic")
    name = "claude-sonnet-4-5@20250929"
    async with cloud("vertex", handler, name, GCP, key="t-1") as (model, server):
        assert model.info.price_input == 3
        assert await said(model) == "hello"
    (asked,) = server.asked
    assert asked.path == f"{PLACE}/anthropic/models/{name}:streamRawPredict"
    body = json.loads(asked.body)
    assert body["anthropic_version"] == "vertex-2023-10-16"
    assert body["stream"]
    assert "model" not in body


async def test_vertex_without_a_project_says_what_to_set() -> None:
    async with cloud("vertex", speaking("google"), "gemini-3.8-flash", {}, key="t") as (model, _):
        with pytest.raises(RequestRefused, match="set GOOGLE_CLOUD_PROJECT"):
            await said(model)


@asynccontextmanager
async def google(reply: dict[str, Any], status: int = 200) -> AsyncGenerator[LoopbackServer]:
    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            await line.reply(json.dumps(reply).encode(), status=status)

    async with serving(handler) as server:
        yield server


def credentials(folder: Path, **fields: str) -> ProviderAccess:
    path = folder / "credentials.json"
    path.write_text(json.dumps(fields))
    return ProviderAccess(variables={"GOOGLE_APPLICATION_CREDENTIALS": str(path)})


async def test_a_login_of_gcloud_is_refreshed_once_an_hour(tmp_path: Path) -> None:
    clock, client = ManualClock(), HttpClient()
    async with google({"access_token": "t-1", "expires_in": 3600}) as server:
        found = {"client_id": "c", "client_secret": "s", "refresh_token": "r+/"}
        access = credentials(tmp_path, type="authorized_user", token_uri=server.url, **found)
        token = GoogleToken(access, clock)
        assert [await token.get(client) for _ in range(3)] == ["t-1"] * 3
        assert len(server.asked) == 1
        clock.advance(3500)
        await token.get(client)
        assert len(server.asked) == 2
        await client.aclose()
    form = "grant_type=refresh_token&client_id=c&client_secret=s&refresh_token=r%2B%2F"
    assert server.asked[0].body.decode() == form


async def test_a_service_account_signs_for_a_token(tmp_path: Path) -> None:
    client = HttpClient()
    async with google({"access_token": "t-2", "expires_in": 3600}) as server:
        found = {"client_email": "a@p", "private_key": PRIVATE_KEY, "private_key_id": "k-1"}
        access = credentials(tmp_path, type="service_account", token_uri=server.url, **found)
        assert await GoogleToken(access, ManualClock()).get(client) == "t-2"
        await client.aclose()
    assert b"jwt-bearer" in server.asked[0].body
    text = server.asked[0].body.decode().partition("assertion=")[2]
    head, claims, proof = (base64.urlsafe_b64decode(part + "==") for part in text.split("."))
    message = text.rpartition(".")[0].encode()
    # Raises where the signature is not the key's.
    KEY.public_key().verify(proof, message, padding.PKCS1v15(), hashes.SHA256())
    assert json.loads(head) == {"alg": "RS256", "typ": "JWT", "kid": "k-1"}
    assert json.loads(claims)["iss"] == "a@p"


def test_a_private_key_is_read_in_both_forms() -> None:
    assert private_key(PRIVATE_KEY) == private_key(OLD_PRIVATE_KEY)


async def test_a_machine_of_google_cloud_asks_its_metadata_server(tmp_path: Path) -> None:
    client = HttpClient()
    async with google({"access_token": "t-3", "expires_in": 10}) as server:
        variables = {"HOME": str(tmp_path), "GCE_METADATA_HOST": f"127.0.0.1:{server.port}"}
        token = GoogleToken(ProviderAccess(variables=variables), ManualClock())
        assert await token.get(client) == "t-3"
        await client.aclose()
    assert server.asked[0].path.startswith("/computeMetadata/v1/instance/service-accounts/")
    assert server.asked[0].headers["metadata-flavor"] == "Google"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"type": "service_account"}, "no client_email or private_key"),
        (
            {"type": "service_account", "client_email": "a", "private_key": "-----\nx\n-----"},
            "private key of the service account cannot be read",
        ),
        ({"type": "external_account"}, "type 'external_account' cannot be used"),
    ],
)
async def test_credentials_that_cannot_be_used_are_named(
    tmp_path: Path, fields: dict[str, str], why: str
) -> None:
    with pytest.raises(AuthFailed, match=why):
        await GoogleToken(credentials(tmp_path, **fields)).get(HttpClient())


async def test_without_google_credentials_the_user_is_told_how_to_make_some(
    tmp_path: Path,
) -> None:
    variables = {"HOME": str(tmp_path), "GCE_METADATA_HOST": "127.0.0.1:1"}
    with pytest.raises(AuthFailed, match="gcloud auth application-default login"):
        await GoogleToken(ProviderAccess(variables=variables)).get(HttpClient())
    missing = ProviderAccess(variables={"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere"})
    with pytest.raises(AuthFailed, match="there is no file /nowhere"):
        await GoogleToken(missing).get(HttpClient())


async def test_refused_credentials_say_what_google_says(tmp_path: Path) -> None:
    client = HttpClient()
    async with google({"error_description": "Token has been revoked."}, 400) as server:
        access = credentials(tmp_path, type="authorized_user", token_uri=server.url)
        with pytest.raises(AuthFailed, match="Token has been revoked"):
            await GoogleToken(access).get(client)
        await client.aclose()
