"""The command line itself: words in, an exit code out.

Nothing here may be slow: `weft --help` and the way to the first request both pass through.  Each
command lives in a module of its own and is loaded when it is asked for.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from weft.cli.exit_codes import (
    FAILED,
    OK,
    CommandExit,
    code_of,
    first_of,
    sentence_of,
)
from weft.cli.gc import collect_early_garbage, wait_with_garbage
from weft.cli.parse import ParsedArguments, parse
from weft.errors import WeftError

if TYPE_CHECKING:  # loaded for a chat
    from weft.cli.early_prompt import EarlyPrompt

_MODULES = {
    "session": "weft.cli.commands.sessions",
    "models": "weft.cli.commands.models",
    "context": "weft.cli.commands.context",
    "map": "weft.cli.commands.map",
    "receipts": "weft.cli.evidence.receipts",
    "request": "weft.cli.evidence.request",
    "bisect": "weft.cli.evidence.bisect",
    "blame": "weft.cli.evidence.blame",
    "import": "weft.cli.imports.import_command",
    "memory": "weft.cli.commands.memory",
    "permissions": "weft.cli.operate.permission_rules",
    "decisions": "weft.cli.commands.decisions",
    "fan": "weft.cli.commands.fan",
    "loom": "weft.cli.loom.loom_command",
    "stats": "weft.cli.commands.stats",
    "audit": "weft.cli.operate.session_audit",
    "config": "weft.cli.commands.config",
    "doctor": "weft.cli.commands.doctor",
    "auth": "weft.cli.commands.auth",
    "lsp": "weft.cli.commands.lsp",
    "mcp": "weft.cli.mcp.mcp_command",
    "serve": "weft.cli.server.serve",
    "web": "weft.cli.server.serve",
    "cluster": "weft.cli.cluster.cluster_demo",
    "attach": "weft.cli.attach.attach_command",
    "ps": "weft.cli.operate.session_overview",
    "logs": "weft.cli.operate.session_control",
    "goal": "weft.cli.unattended.goal_command",
    "at": "weft.cli.unattended.later_commands",
    "waits": "weft.cli.unattended.later_commands",
    "btw": "weft.cli.unattended.side_question",
    "sandbox": "weft.cli.operate.sandboxed_command",
    "queue": "weft.cli.operate.session_control",
    "stop": "weft.cli.operate.session_control",
    "store": "weft.cli.operate.store_command",
    "completion": "weft.cli.commands.completion",
}
"""Where each command lives; its `run` takes the arguments and returns the exit code."""


def run_command_line(argv: list[str], early: EarlyPrompt | None = None) -> int:
    """Run the command line; returns the exit code.  `early` is a prompt that stands there."""
    # First of all: every import below makes objects that would be searched.
    wait_with_garbage()
    try:
        code = _run(argv, early)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except (WeftError, CommandExit, OSError, KeyboardInterrupt) as error:
        return _failed(error)
    except Exception as error:  # the last handler there is: no traceback ever reaches the user
        from weft.cli.logs import log_crash

        cause = sentence_of(first_of(error))
        _complain(f"something went wrong inside Weft ({cause}); {log_crash(error)}")
        return FAILED


def _failed(error: BaseException) -> int:
    # As `head` does it: the reader has enough. Nothing is said, and Python must not complain about
    # its own flush at exit either.
    if isinstance(error, BrokenPipeError):
        from weft.cli.stdio import forget_output

        forget_output()
        return code_of(error)
    said, more = str(error), ""
    if said.startswith("there is no option") and not said.endswith("its options"):
        more = "; `weft --help` lists the options"
    _complain(f"{sentence_of(error)}{more}")
    return code_of(error)


def _complain(sentence: str) -> None:
    try:
        from weft.cli.stdio import complain

        complain(sentence)
    except ImportError:  # a broken installation: even that can be said
        sys.stderr.write(f"weft: {sentence}\n")


def _run(argv: list[str], early: EarlyPrompt | None) -> int:
    try:
        return _verb(parse(argv), early)
    finally:
        # Not when the screen has taken it over; else before an error is told.
        if early is not None:
            early.close()


def _verb(arguments: ParsedArguments, early: EarlyPrompt | None) -> int:
    # Help and version before the streams, the log and the settings: they must work when everything
    # else is broken.
    if arguments.flag("help") or arguments.verb == "help":
        return _help(arguments)
    if arguments.flag("version"):
        from weft import __version__

        return _say(_sdk_version() or f"weft {__version__}")
    in_background = arguments.verb in ("", "run") and arguments.flag("bg")
    is_chat = arguments.verb == "" and not arguments.flag("print") and not in_background
    if is_chat and _has_terminal():
        return _chat(arguments, early)
    _prepare()
    if in_background:
        from weft.cli.operate.background_run import run

        return run(arguments)
    if arguments.verb not in ("", "run"):
        return _command(arguments)
    from weft.cli.headless.run import run_print

    return run_print(arguments)


def _sdk_version() -> str:
    """The version for a program of the Agent SDK, which compares it with the oldest it takes."""
    if not os.environ.get("CLAUDE_CODE_ENTRYPOINT"):
        return ""
    from weft.protocol.session_options import SPOKEN_VERSION

    return SPOKEN_VERSION


def _prepare() -> None:
    collect_early_garbage()
    from weft.cli.stdio import take_standard_streams

    take_standard_streams()
    from weft.cli.logs import log_to_file

    log_to_file()


def _chat(arguments: ParsedArguments, early: EarlyPrompt | None) -> int:
    if early is None and not arguments.flag("plain"):
        from weft.cli.early_prompt import begin_prompt

        # Before everything else that takes time: keys are shown while the rest is loaded.
        early = begin_prompt(arguments.text("cd") or ".")
    try:
        _prepare()
        from weft.cli.chat import run_chat

        return run_chat(arguments, early)
    finally:
        if early is not None:
            early.close()


def _help(arguments: ParsedArguments) -> int:
    from weft.cli.help import topic_help, verb_help

    if arguments.verb == "help":
        return _say(topic_help(arguments.words))
    if arguments.verb:
        return _say(verb_help(tuple(arguments.verb.split())))
    return _say(topic_help(()))


def _say(text: str) -> int:
    if sys.stdout is not None:
        sys.stdout.write(f"{text}\n")
    return OK


def _command(arguments: ParsedArguments) -> int:
    from importlib import import_module

    # Loaded by name, so that no command pays for the imports of the others.
    code: int = import_module(_MODULES[arguments.verb.split()[0]]).run(arguments)
    return code


def _has_terminal() -> bool:
    """A chat needs a terminal on both sides."""
    return all(
        stream is not None and not stream.closed and stream.isatty()
        for stream in (sys.stdin, sys.stdout)
    )
