"""The parts of a request: how many tokens each is, and what each cost.

Vendors count a request as a whole and bill what they read from their cache apart, which is always
its beginning.  So the parts are estimated, scaled to the vendor's count, and priced in the order in
which they are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from weft.messages import Usage

Pricing = Callable[[Usage], float | None]


class RequestPiece(msgspec.Struct, frozen=True):
    """A piece of a request, in the order of sending: its part, and its tokens by estimate."""

    part: str
    tokens: int


class RequestPart(msgspec.Struct, frozen=True, kw_only=True):
    """All pieces of one kind."""

    name: str
    tokens: int
    cached_tokens: int = 0
    """Of them, read from the vendor's cache."""
    cost_usd: float | None = None
    before_tokens: int = 0
    """What the request before had of it."""


def request_parts(
    pieces: Sequence[RequestPiece], usage: Usage | None, price: Pricing
) -> list[RequestPart]:
    """The parts in the order in which each is sent first."""
    if usage is None:
        return [RequestPart(name=name, tokens=sum(found)) for name, found in _by_part(pieces)]
    cost = price(msgspec.structs.replace(usage, output_tokens=0, reasoning_tokens=0))
    spread = _spread(pieces, usage)
    priced = {name: [price(each) for each in used] for name, used in spread.items()}
    whole = sum(one or 0.0 for each in priced.values() for one in each)
    scale = cost / whole if cost is not None and whole else None
    return [
        RequestPart(
            name=name,
            tokens=sum(each.input_tokens + _cached(each) for each in used),
            cached_tokens=sum(each.cache_read_tokens for each in used),
            cost_usd=None if scale is None else sum(one or 0.0 for one in priced[name]) * scale,
        )
        for name, used in spread.items()
    ]


def _cached(usage: Usage) -> int:
    return usage.cache_read_tokens + usage.cache_write_tokens


def _by_part(pieces: Sequence[RequestPiece]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for piece in pieces:
        found.setdefault(piece.part, []).append(piece.tokens)
    return list(found.items())


def _spread(pieces: Sequence[RequestPiece], usage: Usage) -> dict[str, list[Usage]]:
    """What the vendor counted, laid over the pieces from the first on: read, written, the rest."""
    estimated = sum(piece.tokens for piece in pieces) or 1
    whole = usage.input_tokens + _cached(usage)
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    long_share = usage.long_cache_tokens / written if written else 0.0
    found: dict[str, list[Usage]] = {}
    done = at = 0
    for piece in pieces:
        done += piece.tokens
        # From the sum and not piece by piece: rounded, they would not be the whole.
        end = round(done * whole / estimated)
        from_cache = max(0, min(end, read) - at)
        to_cache = max(0, min(end, read + written) - max(at, read))
        used = Usage(
            input_tokens=end - at - from_cache - to_cache,
            cache_read_tokens=from_cache,
            cache_write_tokens=to_cache,
            long_cache_tokens=round(to_cache * long_share),
        )
        found.setdefault(piece.part, []).append(used)
        at = end
    return found
