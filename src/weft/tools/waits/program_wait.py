"""A wait of a program, prepared as the call of a model would be."""

from __future__ import annotations

from typing import Any

from weft.errors import BadArguments
from weft.events import WaitSubject
from weft.tools.base import PreparedCall, ToolContext
from weft.tools.builtin.wait_for import WaitForTool


async def prepared_wait(on: WaitSubject, until: float | None, context: ToolContext) -> PreparedCall:
    """The call that would wait for this.

    Raises:
        ToolError: there is no such thing to be waited for.
    """
    return await WaitForTool().prepare(_arguments_of(on, until), context)


def _arguments_of(on: WaitSubject, until: float | None) -> dict[str, Any]:
    """The arguments of the call that would wait for this.

    Raises:
        BadArguments: there is no such kind, or it does not say for what.
    """
    match on.kind:
        case "time" if until is not None:
            return {"seconds": 1.0}  # how long is the log's to say
        case "time":
            raise BadArguments("a wait for a time needs `until`")
        case "command" | "agent":
            named: Any = on.name or on.place
        case "file" | "ci":
            named = on.place
        case "port":
            named = int(on.place) if on.place.isdecimal() and len(on.place) < 6 else 0
        case _:
            raise BadArguments(
                f"nothing waits for {on.kind!r:.40}: it is time, command, agent, file, port or ci"
            )
    if not named:
        raise BadArguments(f"say which {on.kind} is waited for")
    return {on.kind: named}
