"""The way from a handle to its session, and what every section of the API builds on.

A handle is an id and the way to wherever the session lives.  If the session was unloaded it comes back with the next call, and if
another process owns it, that process is asked.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from weft.api.options import MessageOptions, refuse_unknown
from weft.errors import SessionStopped
from weft.ids import InputId, SessionId
from weft.messages import ModelName
from weft.project.skills import SkillSet
from weft.providers import Model, ModelInfo
from weft.runtime.port import UNLOADED, SessionPort
from weft.session import AttachClient, ChangeSetting, Command, Subscription
from weft.store import SessionRow
from weft.tools import OutputSchema

if TYPE_CHECKING:  # loaded when somebody uses commands or agents: it costs start-up time
    from weft.project.agent_definitions import AgentDefinitions
    from weft.project.markdown_commands import Ask, ExpandedCommand, MarkdownCommandSet

T = TypeVar("T")


class HandleHost(Protocol):
    """What a handle needs of the manager it came from."""

    async def port(self, session_id: SessionId) -> SessionPort:
        """The way to the session; starts a stored one, without calling a model."""
        ...

    async def available_models(self) -> list[ModelInfo]: ...

    def command_names(self) -> list[str]: ...

    async def commands(self, project_path: str) -> MarkdownCommandSet: ...

    async def agents(self, project_path: str) -> AgentDefinitions: ...

    async def expand_command(
        self, session_id: SessionId, text: str, ask: Ask | None, client: str = ""
    ) -> ExpandedCommand: ...

    def now(self) -> float: ...

    def model_named(self, model: Any) -> ModelName: ...

    def model(self, name: str) -> Model: ...

    def rotation(self) -> list[str]: ...

    def skills(self, project_path: str) -> SkillSet: ...

    async def keep_handover(self, session_id: SessionId, text: str) -> str: ...

    def running(self, session_id: SessionId) -> SessionPort | None:
        """The way to a session that is open here; None when it is not."""
        ...

    async def row(self, session_id: SessionId) -> SessionRow | None: ...

    async def stop_child(self, session_id: SessionId, child: SessionId) -> None: ...

    def runs_command(self, session_id: SessionId, name: str) -> bool:
        """True while a background command of this name runs in this process."""
        ...

    def shape(self, wanted: Any) -> OutputSchema: ...

    def lend_tools(self, session_id: SessionId, wanted: Any) -> Any: ...


class SessionHandle:
    """An id, and the way to the session that has it."""

    def __init__(
        self, session_id: SessionId, host: HandleHost, port: SessionPort | None = None
    ) -> None:
        self.id = session_id
        self._host = host
        self._port_now = port
        self._client = ""
        self._role: Literal["viewer", "driver"] = "viewer"
        # Weak, so that leaving a loop is enough to end its subscription: nobody else holds it.
        self._subscriptions: list[weakref.ref[Subscription]] = []

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def session_id(self) -> SessionId:
        """The stable id."""
        return self.id

    async def _set(self, name: str, value: Any, input_id: str | None = None) -> None:
        await self._call(ChangeSetting(name=name, value=value, **self._by(input_id)))

    def _by(self, input_id: str | None) -> dict[str, Any]:
        """Who sends a command, and under which id; one that comes again under its id is carried out once."""
        return {"client": self._client, "input_id": input_id_of(input_id)}

    async def _port(self) -> SessionPort:
        if self._port_now is None or not self._port_now.is_open:
            port = await self._host.port(self.id)
            if self._client:
                # The session has come back without its clients: who watched before, watches again.
                await port.call(AttachClient(role=self._role, client=self._client))
            self._port_now = port
        return self._port_now

    async def _call(self, command: Command[T]) -> T:
        port = await self._port()
        try:
            return await port.call(command)
        except SessionStopped:
            # A session that is unloaded just now has not taken the command, and comes back for it.
            if port.is_open or await port.ended() != UNLOADED:
                raise
        return await (await self._port()).call(command)

    def _options(self, options: MessageOptions) -> dict[str, Any]:
        """Options as the log stores them."""
        # First, and for None too: a name that is wrong would otherwise be dropped in silence.
        refuse_unknown(options, MessageOptions, "a message")
        kept: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        for name in kept.keys() & {"plan_model", "edit_model"}:
            kept[name] = str(self._host.model_named(kept[name]))
        if "model" in kept:
            named = self._host.model_named(kept["model"])
            kept["model"] = named.name
            if named.effort is not None:
                kept.setdefault("thinking", named.effort)
        if "tools" in kept:
            kept["tools"] = self._host.lend_tools(self.id, kept["tools"])
        if "schema" in kept:
            kept["schema"] = self._host.shape(kept["schema"]).schema
        return kept


def input_id_of(given: str | None) -> InputId | None:
    """An id that a caller gave; None when it gave none."""
    return InputId(given) if given else None
