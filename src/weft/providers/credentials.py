"""Access to a provider: key, address, and what goes with every request."""

from __future__ import annotations

from typing import Any

import msgspec

from weft.messages import clean_text
from weft.transport import HttpTimeouts


class ProviderAccess(msgspec.Struct, frozen=True, kw_only=True):
    """What config and environment say of one provider."""

    key: str = ""
    key_source: str = ""
    """Where the key came from, for the sentence about one that is refused."""
    base_url: str = ""
    """Empty for the vendor's own."""
    url_source: str = ""
    """The variable or setting that names `base_url`, for the sentence about one that is wrong."""
    protocol: str = ""
    """The protocol that is spoken there, one of `vendors.PROTOCOLS`; empty for the provider's
    own.
    """
    headers: tuple[tuple[str, str], ...] = ()
    """Sent with every request, after ours."""
    query: tuple[tuple[str, str], ...] = ()
    """Added to the address of every request."""
    is_bearer: bool = False
    """The key is a token for `authorization: Bearer`, whatever header the protocol has for keys."""
    timeouts: HttpTimeouts = HttpTimeouts()
    unix_socket: str = ""
    region: str = ""
    """Where a cloud runs its models; empty for what its own variables say."""
    project: str = ""
    """The project that a cloud bills."""
    variables: dict[str, str] = {}
    """What the environment says of a cloud: its credentials, region and project."""

    def variable(self, *names: str) -> str:
        """The first of these variables that is set; empty when none is."""
        return next((value for name in names if (value := self.variables.get(name, ""))), "")

    def __repr__(self) -> str:
        """Without the key: values end up in logs."""
        return f"ProviderAccess(base_url={self.base_url!r}, has_key={bool(self.key)})"


SLOW = HttpTimeouts(first_byte=600.0, idle=600.0)
"""For servers on the user's own machine: loading a model and reading a long prompt take minutes
there, in silence.
"""


def joined(base: str, path: str) -> str:
    """The address of `path` below `base`.

    A base that already ends with the path's first step does not get it twice.
    """
    base = base.rstrip("/")
    # Users paste base URLs with and without `/v1`.
    first = "/" + path.split("/", 2)[1]
    if path.count("/") > 1 and base.endswith(first):
        base = base.removesuffix(first)
    return base + path


def with_query(url: str, query: tuple[tuple[str, str], ...]) -> str:
    """The address with these parameters behind those that it has."""
    if not query:
        return url
    from urllib.parse import urlencode  # only for those who have set some

    return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"


def as_json(body: Any) -> bytes:
    """The body as it goes out; text that no codec takes (lone surrogates) is mended."""
    try:
        # First without cleaning: to walk through a long conversation in Python takes longer than
        # encoding it.
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(_cleaned(body))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(inner) for inner in value]
    return value
