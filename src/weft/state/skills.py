"""Active skills."""

from __future__ import annotations

import msgspec

from weft.events import AnyFact, SkillChanged


class ActiveSkills(msgspec.Struct):
    """The names, in the order in which they were switched on."""

    # A map for its order, in which the system prompt shows them: the order of a set differs from
    # process to process.
    names: dict[str, bool] = {}

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        match fact:
            case SkillChanged(name=name, active=True):
                self.names[name] = True
            case SkillChanged(name=name, active=False):
                self.names.pop(name, None)
            case _:
                pass
