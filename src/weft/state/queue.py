"""The steering and follow-up queues: what the user sent while a turn ran."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from weft.errors import UsageError
from weft.events import (
    AnyFact,
    Delivery,
    InputEdited,
    InputPromoted,
    InputQueued,
    InputRemoved,
    InputsReordered,
    QueuesRecalled,
)
from weft.ids import EntryId
from weft.messages import File, Image, Part, Text


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One queued input."""

    entry_id: EntryId
    delivery: Delivery
    parts: tuple[Part, ...]
    options: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """What it says, with pictures and files named."""
        return combine_queue_entries_to_text([self])


class InputQueue(msgspec.Struct):
    """Both queues, in the order in which they will be delivered."""

    entries: dict[EntryId, QueueEntry] = {}

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        match fact:
            case InputQueued(entry_id=entry_id, delivery=delivery, parts=parts, options=options):
                self.entries[entry_id] = QueueEntry(
                    entry_id=entry_id, delivery=delivery, parts=parts, options=options
                )
            case InputPromoted(entries=gone) | QueuesRecalled(entries=gone):
                for entry_id in gone:
                    self.entries.pop(entry_id, None)
            case InputRemoved(entry_id=entry_id):
                self.entries.pop(entry_id, None)
            case InputEdited(entry_id=entry_id, parts=parts):
                if (old := self.entries.get(entry_id)) is not None:
                    # Setting a key that is there keeps its place, and so the entry its turn.
                    self.entries[entry_id] = msgspec.structs.replace(old, parts=parts)
            case InputsReordered(entries=order):
                self._reorder(order)
            case _:
                pass

    def _reorder(self, order: tuple[EntryId, ...]) -> None:
        # The order was made from what a client saw: entries delivered since are skipped, and those
        # that were queued since follow at the end.
        first = {each: self.entries[each] for each in order if each in self.entries}
        self.entries = first | {k: v for k, v in self.entries.items() if k not in first}

    def waiting(self, delivery: Delivery) -> tuple[QueueEntry, ...]:
        """The entries of one queue, next one first."""
        return tuple(e for e in self.entries.values() if e.delivery == delivery)

    def require(self, entry_id: EntryId) -> QueueEntry:
        """The entry that a caller named.

        Raises:
            UsageError: it is not queued (any more).
        """
        if (entry := self.entries.get(entry_id)) is None:
            raise UsageError(
                f"{entry_id!r} is not in the queue; it may have been delivered or taken back"
            )
        return entry


def combine_queue_entries_to_text(entries: Iterable[QueueEntry]) -> str:
    """One string for showing entries or putting them back into an input box."""
    return "\n\n".join("".join(_shown(part) for part in entry.parts) for entry in entries)


def _shown(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Image(name=name, media_type=media_type):
            return f"[{part.kind}: {name or media_type}]"
        case File(name=name):
            return f"[file: {name}]"
        case _:
            return ""
