"""Hooks that a program hands over with `initialize`, called by `hook_callback` requests in the
dialect that it speaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.cli.agent_sdk.control_channel import ControlChannel
from weft.hooks.config import HookCommand, read_callbacks
from weft.protocol.agent_sdk_dialect import ToolDialect


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
        return read_callbacks(table, "initialize", self._call)

    async def _call(self, callback_id: str, told: Mapping[str, Any]) -> Any:
        answer = await self._channel.ask(
            subtype="hook_callback",
            callback_id=callback_id,
            input=self._told(told),
            tool_use_id=told.get("tool_use_id"),
        )
        return self._understood(answer, told)

    def _told(self, told: Mapping[str, Any]) -> dict[str, Any]:
        """What a hook is told, in the other side's names."""
        dialect, event = self._dialect, told["hook_event_name"]
        sent = {
            **told,
            # One session is driven, whoever works for it: `agent_id` tells them apart.
            "session_id": self._session_id,
            # There is no file with the conversation; readers expect the field.
            "transcript_path": "",
            "permission_mode": dialect.mode(told["permission_mode"]),
        }
        if "tool_name" in told:
            name, args = told["tool_name"], told["tool_input"]
            sent |= {"tool_name": dialect.tool(name), "tool_input": dialect.input(name, args)}
            if "tool_response" in told:
                sent["tool_response"] = dialect.response(name, args, told["tool_response"])
        if event == "PreCompact":
            sent["custom_instructions"] = told["custom_instructions"] or None
        if event == "SubagentStop":
            sent["agent_transcript_path"] = ""
        return sent

    def _understood(self, answer: Any, told: Mapping[str, Any]) -> Any:
        """The answer with inputs in our own names; what is no answer is left for the reader to say
        so.

        Raises:
            UsageError: an input cannot be understood.
        """
        specific = answer.get("hookSpecificOutput") if isinstance(answer, dict) else None
        if not isinstance(specific, dict) or "tool_name" not in told:
            return answer
        read = self._with_our_names(specific, told)
        if isinstance(read.get("decision"), dict):
            read["decision"] = self._with_our_names(read["decision"], told)
        return {**answer, "hookSpecificOutput": read}

    def _with_our_names(self, part: dict[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
        given = part.get("updatedInput")
        if not isinstance(given, dict):
            return dict(part)
        args = self._dialect.args(told["tool_name"], told["tool_input"], given)
        return {**part, "updatedInput": args}
