"""Botocore and google-auth as judges of what our clouds sign, and of the frames they read.

They run where these are installed: `pip install botocore google-auth`.
"""

from __future__ import annotations

import base64
import datetime
import itertools
import random
import time
from typing import Any

import pytest

from tests.support.cloud_servers import answer_frames, chunk_frame, exception_frame
from tests.support.rsa_sample import PRIVATE_KEY, PUBLIC_KEY
from weft.errors import ProviderUnavailable
from weft.providers.bedrock.event_stream import FrameReader
from weft.providers.bedrock.sigv4 import AwsCredentials, signed
from weft.providers.vertex.google_token import TOKEN_URL, assertion
from weft.transport import HttpRequest

pytestmark = pytest.mark.oracle
NOW = 1_790_000_000.0
PATHS = [
    "/model/global.anthropic.claude-sonnet-5-5/invoke-with-response-stream",
    "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream",
    "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A123%3Ainference-profile%2Fx/invoke",
    "/model/a~b_c.d-e/converse",
    "/",
]
QUERIES = ["", "?a=1", "?b=2&a=1", "?x=a%20b&empty=", "?z=%2F%3A%2B"]


HOSTS = ["bedrock-runtime.eu-west-1.amazonaws.com", "127.0.0.1:8080"]
HEADERS = (
    ("content-type", "application/json"),
    ("accept", "application/vnd.amazon.eventstream"),
    ("X-Team", "  blue   and  green "),
)


def _requests() -> list[HttpRequest]:
    chance = random.Random(7)
    return [
        HttpRequest(
            url=f"https://{host}{path}{query}",
            headers=HEADERS,
            body=chance.randbytes(chance.randrange(200)),
        )
        for host, path, query in itertools.product(HOSTS, PATHS, QUERIES)
    ]


@pytest.mark.parametrize("token", ["", "session+/=token"])
def test_botocore_signs_every_request_as_we_do(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    auth = pytest.importorskip("botocore.auth")
    awsrequest = pytest.importorskip("botocore.awsrequest")
    creds = pytest.importorskip("botocore.credentials")
    moment = datetime.datetime.fromtimestamp(NOW, datetime.UTC)
    monkeypatch.setattr(auth, "get_current_datetime", lambda *_, **__: moment, raising=False)
    theirs = creds.Credentials("AKIDEXAMPLE", "wJalr/K7MDENG+bPx", token or None)
    ours = AwsCredentials(
        access_key="AKIDEXAMPLE", secret_key="wJalr/K7MDENG+bPx", session_token=token
    )
    requests = _requests()
    assert len(requests) >= 50
    for request in requests:
        judged: Any = awsrequest.AWSRequest(
            method="POST", url=request.url, headers=dict(request.headers), data=request.body
        )
        auth.SigV4Auth(theirs, "bedrock", "eu-west-1").add_auth(judged)
        made = signed(request, ours, region="eu-west-1", service="bedrock", now=NOW)
        assert dict(made.headers)["x-amz-date"] == judged.headers["X-Amz-Date"]
        assert dict(made.headers)["authorization"] == judged.headers["Authorization"], request.url


def test_botocore_reads_the_frames_that_we_read() -> None:
    eventstream = pytest.importorskip("botocore.eventstream")
    frames = [
        *answer_frames("héllo wörld 🎈"),
        chunk_frame({"type": "ping"}),
        exception_frame("throttlingException", "slow down"),
    ]
    data = b"".join(frames)
    for size in (1, 7, 100, len(data)):
        theirs = eventstream.EventStreamBuffer()
        ours = FrameReader()
        read, judged = [], []
        for at in range(0, len(data), size):
            read += ours.feed(data[at : at + size])
            theirs.add_data(data[at : at + size])
            judged += [(event.headers, event.payload) for event in theirs]
        assert [(each.headers, each.payload) for each in read] == judged
        assert len(read) == len(frames)


def test_botocore_refuses_the_frames_that_we_refuse() -> None:
    eventstream = pytest.importorskip("botocore.eventstream")
    whole = answer_frames("hello")[0]
    for at in range(len(whole)):
        broken = bytearray(whole)
        broken[at] ^= 0x01
        theirs = eventstream.EventStreamBuffer()
        theirs.add_data(bytes(broken))
        with pytest.raises(eventstream.ParserError):
            list(theirs)
        with pytest.raises(ProviderUnavailable):
            FrameReader().feed(bytes(broken))


def test_google_auth_accepts_the_assertion_of_a_service_account() -> None:
    jwt = pytest.importorskip("google.auth.jwt")
    account = {"client_email": "a@p.iam", "private_key": PRIVATE_KEY, "private_key_id": "k-1"}
    text = assertion(account, TOKEN_URL, time.time())
    claims = jwt.decode(text, certs=PUBLIC_KEY, audience=TOKEN_URL)
    assert claims["iss"] == "a@p.iam"
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    with pytest.raises(ValueError, match=r"(?i)signature"):
        jwt.decode(f"{text[:-8]}AAAAAAAA", certs=PUBLIC_KEY, audience=TOKEN_URL)


def test_google_auth_makes_the_same_assertion() -> None:
    crypt = pytest.importorskip("google.auth.crypt")
    jwt = pytest.importorskip("google.auth.jwt")
    account = {"client_email": "a@p.iam", "private_key": PRIVATE_KEY, "private_key_id": "k-1"}
    text = assertion(account, TOKEN_URL, NOW)
    signer = crypt.RSASigner.from_string(PRIVATE_KEY, "k-1")
    claims = jwt.decode(text, verify=False)
    theirs = jwt.encode(signer, claims, header={"alg": "RS256", "typ": "JWT", "kid": "k-1"})
    # Of the same text the same bytes: this kind of signature has no chance in it.
    message = text.rpartition(".")[0].encode()
    proof = base64.urlsafe_b64decode(text.rpartition(".")[2] + "==")
    assert signer.sign(message) == proof
    assert len(theirs.split(b".")) == 3
