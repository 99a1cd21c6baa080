"""The types that programs asked for as results, by the JSON Schema that the log keeps in their
place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:  # loaded with the first such type: it costs start-up time
    from weft.tools import OutputSchema

REMEMBERED: Final = 256
"""Schemas that are kept ready; an older one is made again from what the log has."""


class OutputTypes:
    """Shapes by their schema.

    A type stays in the process that named it; elsewhere its schema does the checking.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, OutputSchema] = {}

    def add(self, wanted: Any) -> OutputSchema:
        """The shape of a JSON Schema or a type, from now on known by its schema.

        Raises:
            UsageError: it is no schema.
        """
        from weft.tools import OutputSchema  # as above

        shape = wanted if isinstance(wanted, OutputSchema) else OutputSchema(wanted)
        self._known[_key(shape.schema)] = shape
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return shape

    def of(self, schema: Mapping[str, Any]) -> OutputSchema:
        """The shape that has this schema."""
        return self._known.get(_key(schema)) or self.add(schema)


def _key(schema: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(schema, order="deterministic")
