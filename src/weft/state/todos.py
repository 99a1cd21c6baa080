"""The to-do list that the model keeps."""

from __future__ import annotations

import msgspec

from weft.events import AnyFact, Todo, TodoChanged


class TodoList(msgspec.Struct):
    """The list as it is now."""

    items: tuple[Todo, ...] = ()

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        if isinstance(fact, TodoChanged):
            self.items = fact.items
