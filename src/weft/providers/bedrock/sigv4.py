"""AWS Signature Version 4 of one request.

By hand, because botocore costs half a second of start-up and 31 MB for these sixty lines (decision
012); botocore itself judges them in `tests/oracles/`.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

import msgspec

from weft.transport import HttpRequest, target

_ALGORITHM = "AWS4-HMAC-SHA256"


class AwsCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """What signs a request."""

    access_key: str
    secret_key: str
    session_token: str = ""

    def __repr__(self) -> str:
        """Without the secrets: values end up in logs."""
        return f"AwsCredentials({self.access_key[:4]}…)"


def signed(
    request: HttpRequest,
    credentials: AwsCredentials,
    *,
    region: str,
    service: str,
    now: float,
) -> HttpRequest:
    """The request with its signature; `now` is wall-clock time."""
    stamp = f"{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}"
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    added = [("x-amz-date", stamp)]
    if credentials.session_token:
        added.append(("x-amz-security-token", credentials.session_token))
    headers = (*request.headers, *added)
    # The client adds the host itself, in the same spelling.
    listed = {"host": target(request.url).authority}
    listed |= {name.lower(): " ".join(value.split()) for name, value in headers}
    names = ";".join(sorted(listed))
    hashed = hashlib.sha256(_canonical(request, listed).encode()).hexdigest()
    text = "\n".join([_ALGORITHM, stamp, scope, hashed])
    signature = hmac.new(_key(credentials.secret_key, scope), text.encode(), hashlib.sha256)
    value = (
        f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, "
        f"Signature={signature.hexdigest()}"
    )
    return msgspec.structs.replace(request, headers=(*headers, ("authorization", value)))


def _canonical(request: HttpRequest, headers: dict[str, str]) -> str:
    """The request in the one spelling that both sides compute."""
    parts = urlsplit(request.url)
    query = sorted(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    )
    lines = [f"{name}:{headers[name]}" for name in sorted(headers)]
    return "\n".join(
        [
            request.method,
            # Encoded once more: every service but S3 signs the path as it stands in the request.
            quote(parts.path or "/", safe="/~"),
            "&".join(query),
            *lines,
            "",
            ";".join(sorted(headers)),
            hashlib.sha256(request.body).hexdigest(),
        ]
    )


def _key(secret: str, scope: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
