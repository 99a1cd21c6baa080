"""The entry point: a prompt that takes keys, and then the command line.

Nothing here may load more than the interpreter has loaded anyway: `typing` alone takes as long to
load as the interpreter itself, and until the prompt stands there no key is shown.
"""

from __future__ import annotations

import os
import sys

# By hand, for the same reason.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft.cli.early_prompt import EarlyPrompt


def run() -> None:
    """Run as a program: the command line, and then the end of the process.

    The interpreter takes itself apart before it ends, object by object, which takes as long as a
    round with the model.  So it is ended behind all that matters: threads are joined, and whoever
    wants to act at the end has acted.
    """
    import atexit  # compiled in: it takes no time

    from weft.deferred_modules import defer_modules  # not where we are a library

    defer_modules()
    code = [1]
    # Called last, because it is registered first; what was registered before (by a profiler, say)
    # would not be called, so that the interpreter then ends in its own time.
    if not atexit._ncallbacks() and not sys.flags.dev_mode:
        atexit.register(_end_now, code)
    code[0] = main()
    sys.exit(code[0])


def _end_now(code: list[int]) -> None:
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except OSError:
        return  # the interpreter says so itself
    os._exit(code[0])


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    given = sys.argv[1:] if argv is None else argv
    early = _early_prompt() if begins_chat(given) and _has_terminal() else None
    from weft.cli.command_line import run_command_line  # behind the prompt

    return run_command_line(given, early)


def begins_chat(argv: list[str]) -> bool:
    """Whether these words are sure to begin a chat in this folder; others have to be parsed."""
    words = list(argv)
    while words:
        word = words.pop(0)
        if word in ("-m", "--model") and words and not words[0].startswith("-"):
            words.pop(0)
        elif word not in ("-c", "--continue"):
            return False
    return True


def _early_prompt() -> EarlyPrompt | None:
    from weft.cli.early_prompt import begin_prompt  # only for a chat

    return begin_prompt(".")


def _has_terminal() -> bool:
    return all(
        stream is not None and not stream.closed and stream.isatty()
        for stream in (sys.stdin, sys.stdout)
    )
