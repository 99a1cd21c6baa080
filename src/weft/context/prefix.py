"""The prefix of a request: what is the same for every call of an epoch.

It is rendered once, kept as a blob and named by each model call, so that a request can be rebuilt
byte for byte years later and vendors' prompt caches hold.  A change of the system prompt or the
tools begins a new epoch.
"""

from __future__ import annotations

from typing import Any

import msgspec

from weft.ids import BlobId
from weft.sha256 import sha256


class PrefixTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model sees it."""

    name: str
    description: str
    schema: dict[str, Any]


class PromptPrefix(msgspec.Struct, frozen=True, kw_only=True):
    """System prompt and tools."""

    system: str = ""
    tools: tuple[PrefixTool, ...] = ()
    instructions: tuple[int, int] = (0, 0)
    """Where in `system` the text of the instruction files stands: first character, and the one
    behind the last.
    """
    # Left out of the bytes where there is none, so that prefixes of before keep their names.
    zones: dict[str, tuple[int, int]] | msgspec.UnsetType = msgspec.UNSET
    """Where in `system` the texts of the other zones stand: memory, skills, agents, map."""

    def zone_text(self, name: str) -> str:
        """What a zone held when the epoch began; empty where it held nothing."""
        if not isinstance(self.zones, dict) or name not in self.zones:
            return ""
        return self.system[slice(*self.zones[name])]

    @property
    def instructions_text(self) -> str:
        """What the instruction files said when the epoch began."""
        return self.system[slice(*self.instructions)]


class RenderedPrefix(msgspec.Struct, frozen=True, kw_only=True):
    """A prefix with its bytes and its name."""

    prefix: PromptPrefix
    data: bytes
    id: BlobId


def render_prefix(prefix: PromptPrefix) -> RenderedPrefix:
    """Encode a prefix and name it by its content."""
    # Not sorted: the order of fields and of tools is what the vendor sees, and another order would
    # be another prefix to its cache.
    data = msgspec.json.encode(prefix)
    return RenderedPrefix(prefix=prefix, data=data, id=BlobId(sha256(data).hexdigest()))


def is_same_prefix(one: PromptPrefix, other: PromptPrefix) -> bool:
    """Whether two prefixes are the same for sure, without encoding them; False where only the bytes
    can tell.
    """
    return (
        one.system == other.system
        and one.instructions == other.instructions
        and one.zones == other.zones
        and len(one.tools) == len(other.tools)
        # The very schema: of two that are equal, the order of the keys may differ.
        and all(
            a.schema is b.schema and a.name == b.name and a.description == b.description
            for a, b in zip(one.tools, other.tools, strict=True)
        )
    )


def load_prefix(data: bytes) -> PromptPrefix:
    """A prefix from its blob."""
    return msgspec.json.decode(data, type=PromptPrefix)
