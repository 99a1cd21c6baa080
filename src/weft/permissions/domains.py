"""Domains in rules about addresses: `fetch(domain:example.org)`.

Labels are compared, never beginnings or ends of text.  A rule that allows covers an address only if
it is written in the one plain way that nobody reads differently; a rule that restricts covers its
subdomains too, and every address in which the name stands anywhere when it is written otherwise.
"""

from __future__ import annotations

import re
from typing import Final

_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN: Final = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*", re.IGNORECASE)
_ADDRESS: Final = re.compile(
    rf"https?://({_LABEL}(?:\.{_LABEL})*)\.?(?::[0-9]{{1,5}})?(?:[/?#][\x21-\x5b\x5d-\x7e]*)?",
    re.IGNORECASE,
)
KEY: Final = "domain:"


def domain_problem(pattern: str) -> str:
    """Why a pattern for addresses covers nothing; empty when it is fine."""
    bare = pattern.strip()
    if bare.startswith(KEY) and _DOMAIN.fullmatch(bare[len(KEY) :]):
        return ""
    host = re.search(r"(?:\*\.)?[\w-]+(?:\.[\w-]+)+", bare)
    meant = host[0] if host else "example.org"
    return f"write the domain of the address: fetch(domain:{meant})"


def domain_fits(address: str, pattern: str, *, restricts: bool) -> bool:
    """Whether a pattern `domain:…` covers an address."""
    wanted = pattern.strip().removeprefix(KEY).lower().rstrip(".")
    plain = _ADDRESS.fullmatch(address)
    if plain is None:
        import unicodedata  # only for odd addresses: it costs start-up time

        folded = unicodedata.normalize("NFKC", address).casefold()
        return restricts and wanted.removeprefix("*.") in folded
    host = plain[1].lower()
    if wanted.startswith("*."):
        return host.endswith(wanted[1:])
    return host == wanted or (restricts and host.endswith(f".{wanted}"))
