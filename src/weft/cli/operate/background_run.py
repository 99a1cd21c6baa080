"""`weft --bg PROMPT`: a session that works in a server of this machine, and leaves the terminal."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from weft.api import Accepted
from weft.app import App
from weft.cli.commands.with_app import run_command
from weft.cli.exit_codes import OK
from weft.cli.options import run_options
from weft.cli.parse import ParsedArguments
from weft.cli.prompt_input import PromptParts, attached, compose, read_piped
from weft.cli.server.serve import start_detached
from weft.cli.session_options import make_app, session_options_of
from weft.cli.stdio import tell, write_line
from weft.errors import StoreError, UsageError, WeftError
from weft.ids import SessionId
from weft.server import ServerRecord, connect, running_servers
from weft.sha256 import sha256

SOCKET = "background.sock"
"""The unix socket of the server that is started for it; no port is opened."""
LONGEST_PATH = 100
"""A little less than what the kernel takes as the path of a socket."""
TAKEN: Final = frozenset(
    (
        *("bg", "cd", "image", "name", "tools", "system_prompt", "system_prompt_file"),
        *("append_system_prompt", "append_system_prompt_file"),
        *("model", "effort", "architect", "plan_model", "edit_model"),
        *("permission_mode", "dangerously_skip_permissions", "plan"),
        *("max_turns", "max_time", "max_tool_calls", "max_budget_usd", "max_tokens"),
    )
)
"""Options that reach the server.  It has settings, rules and folders of its own: any other option
is refused, because a deny rule that is left out in silence would be a veto that is missing.
"""


def run(arguments: ParsedArguments) -> int:
    """Start the session; returns when its prompt is durable."""
    _check_options(arguments)
    said = compose(arguments.words, piped=read_piped(has_prompt=bool(arguments.words)))
    if not said:
        raise UsageError("--bg needs a prompt")
    app = make_app(arguments)
    server, token = background_server(app)
    return run_command(lambda: _started(app, server, token, said, arguments))


def queue_in_server(app: App, session_id: SessionId, text: str) -> Accepted:
    """Send a message to a session of no process; a server of this machine works on it."""
    server, token = background_server(app)
    answers: list[Accepted] = []

    async def main() -> int:
        async with connect(server.url, token) as remote:
            session = await remote.sessions.get(session_id)
            answers.append(await session.queue_follow_up(text))
        return OK

    run_command(main)
    return answers[0]


def background_server(app: App) -> tuple[ServerRecord, str]:
    """The server that works in the background, with the token for it."""
    server = running_server(app)
    return server, Path(server.token_file).read_text(encoding="ascii").strip()


def _check_options(arguments: ParsedArguments) -> None:
    for option in run_options():
        if option.key in arguments.values and option.key not in TAKEN:
            name = next(each for each in option.names if each.startswith("--"))
            raise UsageError(f"--bg takes no {name}: the session works in a server")
    if arguments.text("permission_mode") == "dontAsk":
        raise UsageError("--bg takes no --permission-mode dontAsk: the session waits for answers")


def running_server(app: App) -> ServerRecord:
    """The server of this machine that works on this folder, else any; one is started where none
    runs.

    Raises:
        CommandExit: it did not start.
    """
    folder = app.places.servers
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(folder):
        found = running_servers(folder)
        if not found:
            start_detached(["serve", "--unix", str(socket_path(folder))])
            found = running_servers(folder)
    here = [each for each in found if each.project_path == app.project_path]
    return (here or found)[0]


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """One after the other: of two that start a server at once, the second finds it."""
    descriptor = os.open(folder / "background.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def socket_path(folder: Path) -> Path:
    """Where the server listens: beside its record, or below a short folder of the user's own where
    that path is longer than the kernel takes.
    """
    path = folder / SOCKET
    if len(os.fsencode(path)) <= LONGEST_PATH:
        return path
    short = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/weft-{os.getuid()}")
    short.mkdir(mode=0o700, exist_ok=True)
    if short.stat().st_uid != os.getuid():
        raise UsageError(f"{short} is another user's; set XDG_RUNTIME_DIR to a folder of your own")
    return short / f"weft-{sha256(os.fsencode(path)).hexdigest()[:12]}.sock"


async def _started(
    app: App, server: ServerRecord, token: str, said: PromptParts, arguments: ParsedArguments
) -> int:
    images = arguments.many("image")
    files = await attached(app, arguments.words, images=images, tell=tell)
    async with connect(server.url, token) as remote:
        settings = {"project_path": app.project_path, **session_settings(arguments)}
        session = await remote.sessions.start_session(**settings)
        options = session_options_of(arguments, headless=False)
        try:
            await session.send_prompt([*said, *files], **options.limits)
        except StoreError:
            raise  # lost on the way, perhaps after it was accepted
        except WeftError:
            # Without its prompt it is empty, and would be listed for ever.
            with suppress(WeftError):
                await remote.sessions.delete_session(session.id)
            raise
    write_line(session.id)
    tell(f"it works in the background: `weft attach {session.id}` shows it, `weft ps` lists all")
    return OK


def session_settings(arguments: ParsedArguments) -> dict[str, Any]:
    """What the session is started with; what was not given is the server's to choose."""
    options = session_options_of(arguments, headless=False)
    given = {
        "model": options.model,
        "permission_mode": options.permission_mode,
        "title": options.title,
        "tools": options.tools,
        "system_prompt": options.system_prompt,
        "append_system_prompt": options.append_system_prompt,
        "thinking": options.effort,
        "mode": "architect" if options.architect else None,
    }
    return {name: value for name, value in given.items() if value is not None}
