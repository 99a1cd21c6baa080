"""`Session`, the handle on a session that programs hold: an id and the port to its actor.

A handle never expires.  If the session was unloaded it comes back with the next
call, and if another process owns it, that process is asked.

The class is the six sections of the API, each in a file of its own: `conversation`, `inspection`,
`model_settings`, `branches`, `unattended.wait_calls` and `unattended.goal_calls`.  They know
`SessionBase`, and not each other.
"""

from __future__ import annotations

from typing import Any, Final, Literal, Unpack

from weft.api.branches import BranchCalls
from weft.api.conversation import ConversationCalls
from weft.api.inspection import InspectionCalls
from weft.api.model_settings import SettingsCalls
from weft.api.options import SessionDefaults, StartOptions
from weft.api.session_start import StartRequest, start
from weft.api.unattended.goal_calls import GoalCalls
from weft.api.unattended.wait_calls import WaitCalls
from weft.errors import UsageError
from weft.events import PermissionAction, Replaced
from weft.ids import SessionId
from weft.runtime.session_host import SessionHost
from weft.session import SessionPort

_REQUEST: Final = frozenset(StartRequest.__struct_fields__)


class Session(ConversationCalls, InspectionCalls, SettingsCalls, BranchCalls, WaitCalls, GoalCalls):
    """One session.

    Every changing call is durable before it returns; cancelling a call undoes nothing.
    """

    async def wait(self) -> str:
        """Wait until the session stops; returns why.

        One that has stopped already is not started again for this.
        """
        # The port that this handle used last, even if it has ended: opening the session again only
        # to wait for its end would start it.
        last = self._port_now
        return await (last if last is not None else await self._port()).ended()

    async def stop(self) -> None:
        """End the session's life in this process; its record stays."""
        await self._host.stop(self.id)

    async def new_session(self, **settings: Unpack[StartOptions]) -> Session:
        """Another session like this one, in the same store; this one can still be resumed."""
        state = (await self._port()).state
        given: dict[str, Any] = {
            "model": state.settings.model,
            "project_path": state.about.project_path,
            "store": self._host.store_of(self.id),
            **settings,
        }
        request = StartRequest(**{name: given.pop(name) for name in _REQUEST & given.keys()})
        # `start` checks what is left.
        port = await start(self._host, request, SessionDefaults(**given))  # type: ignore[typeddict-item]
        return self._replaced_by(port)

    async def load_session(self, session_id: str) -> Session:
        """Go over to a stored session; this one can still be resumed."""
        resolved = await self._host.registry.resolved(session_id)
        return self._replaced_by(await self._host.port(resolved))

    # -- synonyms: second names of calls that other agents' users know; a new call gets one name

    def session_id(self) -> SessionId:
        """`id`, as a call."""
        return self.id

    get_history = InspectionCalls.messages
    set_model = SettingsCalls.update_model

    async def respond_to_approval(
        self,
        decision: Literal["approve", "reject", "approve_all"],
        *,
        request_id: str | None = None,
        input_id: str | None = None,
    ) -> None:
        """The other spelling of `respond_to_permission`."""
        actions: dict[str, PermissionAction] = {
            "approve": "allow_once",
            "reject": "deny",
            "approve_all": "allow_always",
        }
        if decision not in actions:
            raise UsageError(f"no decision {decision!r}; there are {', '.join(actions)}")
        await self.respond_to_permission(
            actions[decision], request_id=request_id, input_id=input_id
        )

    # -- inner

    def _replaced_by(self, port: SessionPort) -> Session:
        """End the subscriptions of this handle with an event that names the session that
        follows.
        """
        for subscription in self._readers():
            subscription.end_with(Replaced(session_id=self.id, by=port.session_id))
        self._subscriptions = []
        return open_handle(self._host, port)


def open_handle(host: SessionHost, port: SessionPort) -> Session:
    """A handle on the session that a port leads to."""
    return Session(SessionId(port.session_id), host, port)
