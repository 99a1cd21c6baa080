"""The application as text trees see it: sessions, models and time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from weft.errors import WeftError
from weft.events import Fact
from weft.ids import SessionId
from weft.loom import LoomHost, ModelPlanEntry
from weft.loom.model_plan import configured_entry
from weft.messages import Usage
from weft.providers import Model
from weft.runtime.ports.local import LocalPort
from weft.runtime.session_host import CheckedStart, SessionHost
from weft.session import SessionActor, SessionPort
from weft.store import Store


class AppLoomHost(LoomHost):
    """What an application's text trees live in."""

    def __init__(
        self,
        host: SessionHost,
        store: Store,
        change_setting: Callable[[str, str], Awaitable[object]],
    ) -> None:
        self._host = host
        self._store = store
        self._change_setting = change_setting

    @property
    def store(self) -> Store:
        return self._store

    @property
    def project_path(self) -> str:
        return self._host.services.project_path

    def now(self) -> float:
        return self._host.now()

    def start(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        self._host.services.supervisor.start(run, name)

    async def sleep(self, seconds: float) -> None:
        await self._host.services.sleep(seconds)

    async def port(self, session_id: SessionId) -> SessionPort:
        return await self._host.port(session_id)

    def actor(self, session_id: SessionId) -> SessionActor | None:
        port = self._host.running(session_id)
        return port.actor if isinstance(port, LocalPort) else None

    async def unload(self, session_id: SessionId) -> None:
        port = self._host.running(session_id)
        if isinstance(port, LocalPort):
            await self._host.registry.unload_unused(port)

    async def create(self, session_id: SessionId, facts: Sequence[Fact]) -> SessionPort:
        return await self._host.start(
            CheckedStart(
                session_id=session_id,
                may_exist=False,
                facts=tuple(facts),
                tools={},
                store=None,
                asking="wait",
                model=None,
                permission_mode=None,
                resume=None,
            )
        )

    async def delete(self, session_id: SessionId) -> None:
        await self._host.delete(session_id)

    def model(self, name: str) -> Model:
        return self._host.model(name)

    def model_name(self, model: str | Model) -> str:
        return self._host.model_named(model).name

    def default_model(self) -> str:
        try:
            if named := self._setting("model"):
                return self._host.model_named(named).name
            return self._host.default_named().name
        except WeftError:
            return ""

    def _setting(self, name: str) -> Any:
        return self._host.services.config.get(f"loom.{name}")

    def plan_entry(self, model: str) -> ModelPlanEntry:
        general = {
            name: self._setting(name) for name in ("n_branches", "max_tokens", "temperature")
        }
        own = self._setting("models").get(model, {})
        return configured_entry(model, general, own)

    @property
    def shows_model_names(self) -> bool:
        return bool(self._setting("show_model_names"))

    async def change_setting(self, name: str, text: str) -> None:
        await self._change_setting(name, text)

    def cost(self, model: str, usage: Usage) -> float | None:
        return self._host.services.models.cost(model, usage)
