"""The summary of a session that a list shows: counts, times and the first words."""

from __future__ import annotations

import msgspec

from weft.events import (
    AnyFact,
    CallOrigin,
    ForkPoint,
    NewMessage,
    SessionCreated,
    SystemNote,
    TurnStarted,
)
from weft.ids import NodeId, derived_id
from weft.messages import typed_text
from weft.state.settings import SessionSettings

_GIT = "git"
"""The name under which an environment tells of the repository."""
FIRST_PROMPT_LENGTH = 200
"""Characters of the first prompt that a list keeps."""
TITLE_LENGTH = 60
"""Characters of a title that is made from the first prompt."""


class SessionSummary(msgspec.Struct, kw_only=True):
    """Counts and times of one session."""

    project_path: str = ""
    """Where its folder is on this machine."""
    listed_path: str = ""
    """The path that lists have, where another host works in another folder; else empty."""
    project_id: str = ""
    created: float = 0.0
    last_message: float = 0.0
    message_count: int = 0
    turn_count: int = 0
    first_prompt: str = ""
    branch: str = ""
    """The git branch, or the commit, when the model was last told of it."""
    parent: CallOrigin | None = None
    fork: ForkPoint | None = None
    imported: bool = False
    root: NodeId | None = None
    """The first message that goes on from none."""

    def apply(self, fact: AnyFact) -> None:
        """Take one more fact in."""
        match fact:
            case SessionCreated():
                self.project_path, self.listed_path = fact.project_path, ""
                self.project_id = fact.project_id
                self.created = fact.at
                self.parent = fact.parent
                self.fork = fact.fork
                self.imported = fact.imported
            case NewMessage(node=node, at=at):
                self.message_count += 1
                # From the fact, not from a clock: a fold that reads the time would not replay to
                # the same state.
                self.last_message = at
                if node.parent is None and self.root is None:
                    self.root = node.id
                if node.role == "user" and not self.first_prompt:
                    self.first_prompt = typed_text(node.parts)[:FIRST_PROMPT_LENGTH]
            # A turn that continues one that was interrupted or hit a limit is counted with it.
            case TurnStarted(continued=False):
                self.turn_count += 1
            case SystemNote(environment=environment) if environment:
                self.branch = _branch_in(environment.get(_GIT, ""))
            case _:
                pass

    @property
    def known_path(self) -> str:
        """The path that the session has in lists, whichever host has it."""
        return self.listed_path or self.project_path

    @property
    def project_key(self) -> str:
        """What the project's stream is named by: its id, or one that its path always gives."""
        # A session that is not kept has no id, and leaves none behind.
        return self.project_id or derived_id("prj", self.known_path)

    @property
    def short_title(self) -> str:
        """A title from the first words that were said; empty before."""
        words = " ".join(self.first_prompt.split())
        if len(words) <= TITLE_LENGTH:
            return words
        return words[:TITLE_LENGTH].rsplit(" ", 1)[0] + "…"

    def title(self, settings: SessionSettings) -> str:
        """The title that was given, or that the first words make."""
        # A session without a given title stores one only with the end of its first turn. One that
        # was killed before would otherwise be listed by its date for ever.
        by_itself = self.short_title if settings.get("auto_title") else ""
        return by_itself or settings.title


def _branch_in(sentence: str) -> str:
    """The branch in the sentence that the model is told: `Git: on branch main; a merge is …`."""
    place = sentence.removeprefix("Git: ").partition(";")[0]
    return place.removeprefix("on branch ").removeprefix("no branch, at commit ")
