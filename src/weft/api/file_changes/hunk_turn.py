"""A hunk put back or taken: one file changed by a turn whose calls are known beforehand.

So rules, hooks, approvals and limits hold as for the calls of any model, the change is on record,
and a rewind takes it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio.to_thread
import msgspec

from weft.config.models import HUNK_EDITOR
from weft.errors import UsageError
from weft.ids import InputId, NodeId, derived_id, new_id
from weft.providers import ModelInfo
from weft.providers.script import CallTool, SayText, Step
from weft.providers.scripted import ScriptedModel
from weft.runtime.fan.fan_keep import file_now
from weft.workspace.boundaries.lines import lines_of, trimmed
from weft.workspace.sandbox.merge import merge

if TYPE_CHECKING:
    from weft.api.results import Reply
    from weft.session import SessionPort

_WINDOW: Final = 1_000_000_000
"""No line is too long for it: nothing of it is read."""
_MODEL_CALLS: Final = 6
TOOLS: Final = ["read", "edit", "write", "apply_patch"]


class HunkOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a hunk that was to be put back or taken."""

    path: str
    is_done: bool
    node: NodeId | None = None
    """The message that stands for it; a rewind to the one before its turn undoes it."""
    why: str = ""
    """Why the file is not what was wanted."""


class HunkSession(Protocol):
    """The calls of a session that change a file."""

    async def _port(self) -> SessionPort: ...

    async def send_message(self, text: str, /, **options: Any) -> Reply: ...


class FileEdit(msgspec.Struct, frozen=True, kw_only=True):
    """What one file is to become."""

    path: str
    base: bytes | None
    """What it was taken to be; None where nothing was."""
    wanted: bytes | None
    says: str
    """The message of the turn."""


async def change_file(
    session: HunkSession, edit: FileEdit, root: str, input_id: str | None
) -> HunkOutcome:
    """Let a turn make a file what is wanted, with what others changed in it since.

    Raises:
        UsageError: others changed the same lines; nothing is written.
        SessionBusy: a turn runs.
    """
    now = await anyio.to_thread.run_sync(_content, root, edit.path)
    new = _with_others(edit, now)
    model = _editor(_calls(edit.path, now, new), input_id)
    reply = await session.send_message(
        edit.says,
        queue=False,
        input_id=input_id,
        model=model,
        tools=TOOLS,
        max_turns=_MODEL_CALLS,
        mode="normal",
    )
    is_done = await anyio.to_thread.run_sync(_content, root, edit.path) == new
    head = (await session._port()).state.tree.head
    return HunkOutcome(path=edit.path, is_done=is_done, node=head, why=_why(is_done, reply))


def _why(is_done: bool, reply: Reply) -> str:
    if is_done:
        return ""
    ended = "" if reply.finish_reason == "stop" else f" ({reply.finish_reason})"
    return f"it was not allowed, or could not be written{ended}"


async def earlier_outcome(
    session: HunkSession, path: str, says: str, input_id: str | None
) -> HunkOutcome | None:
    """What a call under the same id did, when it is done; None where there was none."""
    port = await session._port()
    if not input_id or InputId(input_id) not in port.state.inputs.causes:
        return None
    provider, kind = HUNK_EDITOR
    # By its name: the turn that is at work has its model, which must not be another one now.
    reply = await session.send_message(
        says,
        queue=False,
        input_id=input_id,
        model=f"{provider}:{derived_id(kind, input_id)}",
        tools=TOOLS,
        max_turns=_MODEL_CALLS,
        mode="normal",
    )
    # By its calls, for the model says that it is done in any case.
    is_done = reply.finish_reason == "stop" and not any(each.is_error for each in reply.messages)
    return HunkOutcome(
        path=path, is_done=is_done, node=port.state.tree.head, why=_why(is_done, reply)
    )


def _content(root: str, path: str) -> bytes | None:
    """What is there now.  Blocks."""
    try:
        found = file_now(root, path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    return None if found is None else found.data


def _with_others(edit: FileEdit, now: bytes | None) -> bytes | None:
    if now == edit.base:
        return edit.wanted
    together = None
    if edit.base is not None and edit.wanted is not None and now is not None:
        together = merge(edit.base, now, edit.wanted)
    if together is None:
        raise UsageError(
            f"{edit.path} was changed since in the same place; look at it, or ask for the change"
        )
    return together


def _calls(path: str, now: bytes | None, new: bytes | None) -> list[Sequence[Step]]:
    if new is None:
        removal = f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"
        return [[_call("read", path=path)], [_call("apply_patch", patch=removal)]]
    try:
        text = new.decode()
        before = None if now is None else now.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text") from error
    if before is None or before == text:
        return [[_call("write", path=path, content=text)]] if before != text else []
    first, count, old, fresh = _replaced(before, text)
    if not old:
        return [[_call("read", path=path)], [_call("write", path=path, content=text)]]
    return [
        [_call("read", path=path, offset=first + 1, limit=count)],
        [_call("edit", path=path, old_string=old, new_string=fresh)],
    ]


def _replaced(before: str, after: str) -> tuple[int, int, str, str]:
    """The first line that changes, from 0, how many do, and few whole lines that are there once
    with what stands in their place; empty where the text has no lines.
    """
    old, new = lines_of(before.encode()), lines_of(after.encode())
    change = trimmed(old, new)
    assert change is not None  # they differ
    head, tail = change.old_start, len(old) - change.old_end
    whole, step = before.encode(), 1
    while True:
        piece = b"".join(old[head : len(old) - tail])
        if (piece and whole.count(piece) == 1) or (head, tail) == (0, 0):
            break
        head, tail = max(0, head - step), max(0, tail - step)
        # In growing steps: a text of equal lines is searched as often as it has digits, not lines.
        step *= 2
    fresh = b"".join(new[head : len(new) - tail])
    return head, len(old) - tail - head, piece.decode(), fresh.decode()


def _call(name: str, **args: str | int) -> CallTool:
    return CallTool(name=name, args=dict(args))


def _editor(answers: Sequence[Sequence[Step]], input_id: str | None) -> ScriptedModel:
    """A model that makes the calls which are known beforehand, and says so."""
    provider, kind = HUNK_EDITOR
    info = ModelInfo(
        provider=provider,
        # Of its own: two that run at once must not answer for each other.
        name=derived_id(kind, input_id) if input_id else new_id(kind, 0.0),
        context_window=_WINDOW,
        price_input=0.0,
        price_output=0.0,
    )
    return ScriptedModel([*map(list, answers), [SayText(text="Done.")]], info=info)
