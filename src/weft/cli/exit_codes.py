"""How a program ends: exit codes, and the one sentence that goes with a failure."""

from __future__ import annotations

from weft.errors import (
    AmbiguousId,
    AuthFailed,
    NodeNotFound,
    ProviderError,
    SessionError,
    SessionNotFound,
    StoreError,
    UsageError,
    WeftError,
)

OK = 0
FAILED = 1
USAGE = 2
NO_KEY = 3
INTERRUPTED = 130
HUNG_UP = 129
TERMINATED = 143
OUTPUT_CLOSED = 141

MEANINGS: dict[int, str] = {
    OK: "Success: the turn finished.",
    FAILED: "The run failed: the provider, a key, a limit, the store, or an answer that does not "
    "match the schema.",
    USAGE: "The command line, a setting or a name in it is wrong; nothing was started.",
    NO_KEY: "There is no API key for the model, or none at all, so nothing could answer.",
    HUNG_UP: "The terminal was closed (SIGHUP); everything was saved first.",
    INTERRUPTED: "Interrupted (Ctrl-C, SIGINT); everything was saved first.",
    OUTPUT_CLOSED: "The reader of the output closed it (as `head` does).",
    TERMINATED: "Terminated (SIGTERM); everything was saved first.",
}
"""Every exit code there is."""


class CommandExit(Exception):
    """Leave with this code, after this sentence (if any) on standard error."""

    def __init__(self, code: int, sentence: str = "") -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


class TerminalClosed(BrokenPipeError):
    """The terminal that the output goes to was closed."""


def code_of(error: BaseException) -> int:
    """The exit code of a failure."""
    match error:
        case CommandExit(code=code):
            return code
        # An id or title comes from the command line, so a wrong one is a usage error.
        case UsageError() | SessionNotFound() | NodeNotFound() | AmbiguousId():
            return USAGE
        case TerminalClosed():
            return HUNG_UP
        case BrokenPipeError():
            return OUTPUT_CLOSED
        case KeyboardInterrupt():
            return INTERRUPTED
        case _:
            return FAILED


def sentence_of(error: BaseException) -> str:
    """One sentence for people: what went wrong, and what to do."""
    match error:
        case CommandExit(sentence=sentence):
            return sentence
        case SessionNotFound(session_id=session_id):
            return (
                f"there is no session {session_id!r}; `weft session list --all` shows "
                "those there are"
            )
        case AuthFailed():
            return _ended(str(error), "weft auth", "`weft auth login` saves a key")
        case ProviderError() | StoreError() | SessionError() | UsageError() | WeftError():
            return str(error)
        case OSError(filename=str(filename)) if error.strerror:
            return f"{filename}: {error.strerror}"
        case BrokenPipeError() | KeyboardInterrupt():
            return ""
        case _:
            return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _ended(sentence: str, known: str, advice: str) -> str:
    """The sentence with advice, unless it gives that already."""
    return sentence if known in sentence else f"{sentence}; {advice}"


def first_of(error: BaseException) -> BaseException:
    """The error that matters of a group."""
    # Task groups wrap every error; the first one is the cause, the others are mostly its echoes.
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
