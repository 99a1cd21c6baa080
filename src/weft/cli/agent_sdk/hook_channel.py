"""Hooks that a program hands over with `initialize`, called by `hook_callback` requests in the
dialect that it speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft.cli.agent_sdk.control_channel import ControlChannel
from weft.hooks.config import HookCommand, read_callbacks
from weft.protocol.agent_sdk_dialect import ToolDialect

NEVER: Final = frozenset({"TaskCreated", "TaskCompleted", "TeammateIdle"})
"""Events of what there is not here (lists of tasks that agents share, and teams of them): hooks for
them have nothing to be asked about."""


class HookChannel:
    """Calls the hooks of the program on the other side."""

    def __init__(self, channel: ControlChannel, dialect: ToolDialect, session_id: str) -> None:
        self._channel = channel
        self._dialect = dialect
        self._session_id = session_id

    def handed_over(self, table: Mapping[str, Any]) -> list[HookCommand]:
        """The hooks that an `initialize` request names.

        Raises:
            UsageError: one is for a moment that is not supported, or cannot be read.
        """
        happening = {event: hooks for event, hooks in table.items() if event not in NEVER}
        return read_callbacks(happening, "initialize", self._call)

    async def _call(self, callback_id: str, event_data: Mapping[str, Any]) -> Any:
        answer = await self._channel.ask(
            subtype="hook_callback",
            callback_id=callback_id,
            input=self._translated(event_data),
            tool_use_id=event_data.get("tool_use_id"),
        )
        return self._understood(answer, event_data)

    def _translated(self, event_data: Mapping[str, Any]) -> dict[str, Any]:
        """The input of a hook, in the other side's names."""
        dialect, event = self._dialect, event_data["hook_event_name"]
        sent = {
            **event_data,
            # One session is driven, also where an agent works for it: `agent_id` tells them apart.
            "session_id": self._session_id,
            # There is no file with the conversation; readers expect the field.
            "transcript_path": "",
            "permission_mode": dialect.mode(event_data["permission_mode"]),
        }
        if "tool_name" in event_data:
            name, args = event_data["tool_name"], event_data["tool_input"]
            sent |= {"tool_name": dialect.tool(name), "tool_input": dialect.input(name, args)}
            if "tool_response" in event_data:
                sent["tool_response"] = dialect.response(name, args, event_data["tool_response"])
        if event == "PreCompact":
            sent["custom_instructions"] = event_data["custom_instructions"] or None
        if event == "SubagentStop":
            sent["agent_transcript_path"] = ""
        return sent

    def _understood(self, answer: Any, event_data: Mapping[str, Any]) -> Any:
        """The answer with inputs in our own names; what is no answer is left for the reader to say
        so.

        Raises:
            UsageError: an input cannot be understood.
        """
        specific = answer.get("hookSpecificOutput") if isinstance(answer, dict) else None
        if not isinstance(specific, dict) or "tool_name" not in event_data:
            return answer
        read = self._with_our_names(specific, event_data)
        if isinstance(read.get("decision"), dict):
            read["decision"] = self._with_our_names(read["decision"], event_data)
        return {**answer, "hookSpecificOutput": read}

    def _with_our_names(
        self, part: dict[str, Any], event_data: Mapping[str, Any]
    ) -> dict[str, Any]:
        given = part.get("updatedInput")
        if not isinstance(given, dict):
            return dict(part)
        args = self._dialect.args(event_data["tool_name"], event_data["tool_input"], given)
        return {**part, "updatedInput": args}
