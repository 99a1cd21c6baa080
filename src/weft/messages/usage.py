"""Usage: tokens and cost of model calls."""

from __future__ import annotations

import msgspec


# Without the garbage collector: it cannot be part of a cycle, and a long session has thousands.
class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What one or more model calls used.

    `cost_usd` is None when the price is unknown, never 0 by default.
    """

    input_tokens: int = 0
    """Tokens read, without those that came from or went to a cache."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    """Part of `output_tokens`."""
    long_cache_tokens: int = 0
    """Part of `cache_write_tokens`: kept for an hour, at a higher price."""
    cost_usd: float | None = None

    @property
    def total_tokens(self) -> int:
        """Everything read and written."""
        # Without `reasoning_tokens`, which are in `output_tokens` already.
        return (
            self.input_tokens
            + self.output_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
        )

    def __add__(self, other: Usage) -> Usage:
        """Sum; an unknown cost makes the sum unknown."""
        # Most sums begin with nothing, or add nothing.
        if self is NOTHING_USED:
            return other
        if other is NOTHING_USED:
            return self
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            long_cache_tokens=self.long_cache_tokens + other.long_cache_tokens,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if known else None,
        )

    def __sub__(self, other: Usage) -> Usage:
        """What is left of a sum that `other` is part of; an unknown cost makes the rest unknown."""
        known = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            input_tokens=self.input_tokens - other.input_tokens,
            output_tokens=self.output_tokens - other.output_tokens,
            cache_read_tokens=self.cache_read_tokens - other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens - other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens - other.reasoning_tokens,
            long_cache_tokens=self.long_cache_tokens - other.long_cache_tokens,
            cost_usd=(self.cost_usd or 0.0) - (other.cost_usd or 0.0) if known else None,
        )


# With a known cost of 0: an unknown one would make every sum that starts here unknown.
NOTHING_USED = Usage(cost_usd=0.0)
"""The neutral element of addition."""
