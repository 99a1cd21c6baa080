"""What a text tree needs of the application that it lives in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from weft.events import Fact
from weft.ids import SessionId
from weft.loom.model_plan import ModelPlanEntry
from weft.messages import Usage
from weft.providers import Model
from weft.session import SessionActor, SessionPort
from weft.store import Store


class LoomHost(Protocol):
    """Sessions, models and time."""

    @property
    def store(self) -> Store: ...

    @property
    def project_path(self) -> str: ...

    def now(self) -> float:
        """Wall-clock time."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait before a retry."""
        ...

    def start(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        """Run a task of its own to its end."""
        ...

    async def port(self, session_id: SessionId) -> SessionPort:
        """The port of a session, wherever it lives."""
        ...

    def actor(self, session_id: SessionId) -> SessionActor | None:
        """The session itself, where it is open in this process."""
        ...

    async def unload(self, session_id: SessionId) -> None:
        """Give back a session that this process has and does not use."""
        ...

    async def create(self, session_id: SessionId, facts: Sequence[Fact]) -> SessionPort:
        """Make a session that begins with these facts; the first is `SessionCreated`."""
        ...

    async def delete(self, session_id: SessionId) -> None:
        """Remove a session for good."""
        ...

    def model(self, name: str) -> Model:
        """The model of this name.

        Raises:
            WeftError: there is none.
        """
        ...

    def model_name(self, model: str | Model) -> str:
        """The full name of a model; an object becomes known by it.

        Raises:
            WeftError: the name is not right.
        """
        ...

    def default_model(self) -> str:
        """The model of a tree that names none; empty where there is none either."""
        ...

    def plan_entry(self, model: str) -> ModelPlanEntry:
        """A model as it is used where nothing else is said: the settings of trees, then those of
        this model.
        """
        ...

    @property
    def shows_model_names(self) -> bool:
        """Whether views show who wrote what, where the tree does not say."""
        ...

    async def change_setting(self, name: str, text: str) -> None:
        """Change a setting of the user's own.

        Raises:
            UsageError: it cannot be changed so.
        """
        ...

    def cost(self, model: str, usage: Usage) -> float | None:
        """What a usage costs; None where the price is not known."""
        ...
