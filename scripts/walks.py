"""`python -m scripts.walks`: write `docs/walks.md`, the files that four everyday calls go through.

A walk lists the files of `weft` in the order in which their coroutines are first entered: the path
that a call takes, without the plain functions that it uses on the way.  Where the caller is not the
file in the line above, it is named.  A return is a call from another top-level folder into a folder
that the walk has been in before; a sub-folder is a folder of its own, and each return has a reason.
To go on in one's own top-level folder after a call is none.

Three ways lead back up by design.  A session knows its turns only as the factory that makes them,
`runtime/turns/turn_factory.py`.  The loop knows a session only as the journal of its turn, which is
in `session/turns/scheduler.py`: by it a turn reads its line and writes its facts.  A tool knows a
project only as the workspace that it is handed, `runtime/workspaces/session_workspace.py`.
"""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
import textwrap
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import anyio

import weft
from weft.cli import main
from weft.providers.script import CallTool
from weft.providers.scripted import ScriptedModel

SOURCE = f"{os.path.dirname(weft.__file__)}{os.sep}"
PAGE = Path(__file__).parent.parent / "docs" / "walks.md"
ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE
SETTLE_SECONDS = 0.5
"""How long a walk waits before it starts, so that no turn is at work, and goes on after its answer:
what a turn does behind it belongs to the walk."""

WHY = {
    "actors": "It is a library. The application opens the supervisor, each session takes from its "
    "mailbox, and each subscription waits at its inbox of the hub.",
    "api": "A program calls the API once for each thing that it wants: a session, what it is like, "
    "its events, an answer.",
}
"""The reason for a return, by the folder that is entered again."""


class Entry(NamedTuple):
    """The first entry into a file."""

    file: str
    function: str
    caller: str
    """The file that called; empty where the event loop resumed a task."""

    @property
    def folder(self) -> str:
        """The folder, sub-folders included."""
        return os.path.dirname(self.file)

    @property
    def room(self) -> str:
        """The top-level folder."""
        return self.file.split("/")[0]


BY_THE_CLOCK = frozenset(
    {"_unload_idle", "_trim_heap", "_keep_index", "_wake_due", "_listen_later"}
)
"""What the application does now and then by itself: no part of a call that it falls into."""


class Walk:
    """Collects entries while it is the profiler of this thread."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._known: set[str] = set()

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        """What `sys.setprofile` calls."""
        if event != "call" or not frame.f_code.co_flags & ASYNC:
            return
        file = _file_of(frame.f_code)
        if not file or file in self._known or frame.f_code.co_name in BY_THE_CLOCK:
            return
        self._known.add(file)
        caller = frame.f_back
        while caller is not None and not _file_of(caller.f_code):
            caller = caller.f_back
        origin = "" if caller is None else _file_of(caller.f_code)
        self.entries.append(Entry(file, frame.f_code.co_name, origin))

    def returns(self) -> list[Entry]:
        """The entries from elsewhere into a folder that was entered before."""
        return self._again(lambda entry: entry.folder)

    def room_returns(self) -> list[Entry]:
        """The same where the sub-folders of a room are one with it: the stricter count."""
        return self._again(lambda entry: entry.room)

    def _again(self, place: Callable[[Entry], str]) -> list[Entry]:
        found: list[Entry] = []
        seen: set[str] = set()
        for entry in self.entries:
            is_from_elsewhere = entry.caller.split("/")[0] != entry.room
            if entry.caller and is_from_elsewhere and place(entry) in seen:
                found.append(entry)
            seen.add(place(entry))
        return found


def _file_of(code: CodeType) -> str:
    name = code.co_filename
    return name[len(SOURCE) :] if name.startswith(SOURCE) else ""


@contextmanager
def walking() -> Iterator[Walk]:
    """Record the entries of this thread."""
    walk = Walk()
    sys.setprofile(walk)
    try:
        yield walk
    finally:
        sys.setprofile(None)


async def _recorded(call: Callable[[], Coroutine[Any, Any, object]]) -> Walk:
    await anyio.sleep(SETTLE_SECONDS)
    with walking() as walk:
        await call()
        await anyio.sleep(SETTLE_SECONDS)
    return walk


async def session_walks(project: Path) -> dict[str, Walk]:
    """`send_prompt`, a call of the shell, and a rewind, each in a session that has had a turn."""
    (project / "a.txt").write_text("one\n")
    write = CallTool(name="shell", args={"command": "echo two > a.txt"})
    model = ScriptedModel(["warm", "hello", (write,), "done"])
    async with weft.open(project, config={}) as app:
        session = await app.sessions.start_session(model=model, auto_approve=True)
        await session.send_message("warm up")
        prompt = await _recorded(lambda: session.send_prompt("hello"))
        shell = await _recorded(lambda: session.send_message("change a.txt"))
        target = (await session.messages_with_ids())[0][0]
        rewind = await _recorded(lambda: session.rewind(target))
    return {
        "`session.send_prompt(text)`": prompt,
        "`session.send_message(text)`, with a call of the shell": shell,
        "`session.rewind(message)`": rewind,
    }


def command_walk(project: Path) -> Walk:
    """`weft -p hello`."""
    script = project / "script.json"
    script.write_text('{"answers": ["hello"]}')
    with walking() as walk, redirect_stdout(TextIOWrapper(BytesIO())):
        main(["-C", str(project), "-p", "hello", "-m", f"scripted:{script}"])
    return walk


def page(walks: dict[str, Walk]) -> str:
    """The page's text."""
    total = sum(len(walk.returns()) for walk in walks.values())
    lines = ["# Walks", "", *(__doc__ or "").split("\n")[2:-1], ""]
    by_room = sum(len(walk.room_returns()) for walk in walks.values())
    lines += [
        f"Returns in all walks: {total} ({by_room} if sub-folders did not count for themselves)."
    ]
    lines += ["Written by `make walks`; do not edit."]
    for title, walk in walks.items():
        lines += ["", f"## {title}", "", *_listed(walk)]
    return "\n".join(lines) + "\n"


def _listed(walk: Walk) -> list[str]:
    returns = walk.returns()
    lines = [f"Files: {len(walk.entries)}; returns: {len(returns)}.", ""]
    above = ""
    for number, entry in enumerate(walk.entries, 1):
        line = f"{number}. `{entry.file}` {entry.function}"
        if entry.caller not in ("", above, entry.file):
            line += f", called by `{entry.caller}`"
        lines.append(f"{line} — back in `{entry.folder}/`" if entry in returns else line)
        above = entry.file
    rooms = sorted({entry.room for entry in returns})
    if unexplained := [room for room in rooms if room not in WHY]:
        raise SystemExit(f"a walk comes back to {unexplained[0]}/: write the reason into WHY")
    reasons = [f"- Back in `{room}/`: {WHY[room]}" for room in rooms]
    if reasons:
        lines.append("")
    return [*lines, *(wrap(each) for each in reasons)]


def wrap(item: str) -> str:
    """An item of a list, in lines that are not too long."""
    return "\n".join(textwrap.wrap(item, 100, subsequent_indent="  ", break_on_hyphens=False))


def walks_in(folder: Path) -> dict[str, Walk]:
    """All four, in projects below a folder."""
    for name in ("project", "other"):
        (folder / name).mkdir()
    walks = anyio.run(session_walks, folder / "project")
    walks["`weft -p hello`"] = command_walk(folder / "other")
    return walks


def write_page(path: Path) -> None:
    """Walk, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HOME=folder, WEFT_HOME=f"{folder}/h", XDG_CONFIG_HOME=f"{folder}/c")
        text = page(walks_in(Path(folder)))
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_page(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE)
