"""The one tree of errors, cut by who can act.

    WeftError
      UsageError              the caller erred: fix the call (also a ValueError)
        StaleInput            an input_id came back with other arguments
        HookRefused           a hook of the user's does not let the message pass
        ViewerRefused         a client that only watches tried to drive
        NodeElsewhere         the node belongs to another tree
        InvalidPlan           fields of a plan of models are wrong
      ToolError               the model gets it as the result of its call
        RetryableToolError    the same call may work another time
        FinalToolError        it will not
          BadArguments        the arguments do not fit the tool
      ProviderError           the vendor failed
        RateLimited           wait, then try again
        ContextTooLong        the request does not fit the model's window
        ProviderUnavailable   could not be reached, or broke off
        AuthFailed            the key is missing or was refused
        RequestRefused        the vendor says that the request itself is wrong
          PolicyRefused       its usage policy does not allow it
        SchemaFailed          the model's answer does not fit what was asked for
      StoreError              the log refused
        Conflict              another append came first
        Fenced                another process owns the stream now
        Owned                 a living process holds the lease
        Corrupt               stored data is damaged
        TooNew                stored data was written by a newer program
        StoreUnavailable      locked, full, or gone
          StoreOutage         cannot be reached for now; comes back without the user
        OutcomeUnknown        the answer to an append was lost: stored or not
      SessionError            the actor's state
        SessionNotFound  SessionBusy  SessionStopped  SessionInterrupted  AmbiguousId
        NoPendingRequest  StaleEdit  OwnerLost  NodeNotFound

Facts are attributes; the message is for the user: what was tried, on what, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as the end of a sentence, empty when none is near."""
    import difflib  # only when something is wrong: it costs start-up time

    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


class WeftError(Exception):
    """Root of everything Weft raises on purpose."""


# --- the caller ------------------------------------------------------------------------


# Also a ValueError, because that is what a Python program catches for a wrong argument.
class UsageError(WeftError, ValueError):
    """The call itself is wrong; the message says how to fix it."""


class StaleInput(UsageError):
    """An `input_id` was used before, with other arguments."""

    def __init__(self, input_id: str) -> None:
        super().__init__(
            f"input id {input_id!r} was already used for something else; "
            "use a new id, or repeat the same arguments"
        )
        self.input_id = input_id


class HookRefused(UsageError):
    """A hook did not let a message pass; nothing was sent."""


class ViewerRefused(UsageError):
    """A client that attached as a viewer tried to change something; nothing was."""


class NodeElsewhere(UsageError):
    """A node that belongs to another tree than the one that is open."""

    def __init__(self, node: str, root: str) -> None:
        super().__init__(f"{node!r} belongs to another tree than {root!r}; open that one")
        self.node = node
        self.root = root


class InvalidPlan(UsageError):
    """A plan of models has fields that are wrong; nothing was changed."""

    def __init__(self, fields: dict[str, str]) -> None:
        told = "; ".join(f"{name}: {problem}" for name, problem in fields.items())
        super().__init__(f"the plan of models is not right: {told}")
        self.fields = fields
        """What is wrong, by the name of the field: `0.temperature`."""


# --- the model -------------------------------------------------------------------------


class ToolError(WeftError):
    """A tool could not do what the model asked; the message goes to the model."""


# Two classes and not a flag, so that a tool has to decide which one it means.
class RetryableToolError(ToolError):
    """The same call may succeed later."""


class FinalToolError(ToolError):
    """The same call will fail again."""


class BadArguments(FinalToolError):
    """The arguments do not fit the tool's schema; too many of these in a row end the turn."""


# --- the vendor ------------------------------------------------------------------------


class ProviderError(WeftError):
    """A model provider failed.  `retryable` says whether the same request may be sent again."""

    # On the class, because a handler asks it of errors that it does not know by name.
    retryable = False
    timed_out = False
    """Nothing came for as long as was waited, which another try may cost once more."""
    topic = ""
    """What it is about (`key`, `model`, `quota`, …), where the vendor's words tell."""

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_seconds = retry_after_seconds

    def reworded(self, message: str) -> Self:
        """The same error with another message."""
        error = type(self)(message)
        error.__dict__.update(self.__dict__)
        return error


class RateLimited(ProviderError):
    """The vendor asks us to slow down."""

    retryable = True


class ProviderUnavailable(ProviderError):
    """The vendor could not be reached, was overloaded, or its stream broke off."""

    retryable = True


# Not retryable as it is: the same request is too long again.  The loop compacts and sends another.
class ContextTooLong(ProviderError):
    """The request does not fit the model's context window."""


class AuthFailed(ProviderError):
    """The key is missing, expired or refused."""


class RequestRefused(ProviderError):
    """The vendor refuses the request as it is; sending it again changes nothing."""


class PolicyRefused(RequestRefused):
    """The vendor's usage policy does not allow the request; asking again gets the same answer."""

    is_filtered = False
    """A content filter decided it, not the policy for the whole request."""


class SchemaFailed(ProviderError):
    """The model's answer does not fit the schema, after all repairs.  `text` is its last answer."""

    def __init__(self, problem: str, text: str) -> None:
        super().__init__(f"the model's answer does not fit the schema: {problem}")
        self.problem = problem
        self.text = text


# --- the store -------------------------------------------------------------------------


class StoreError(WeftError):
    """The log could not be read or written."""


class Conflict(StoreError):
    """The stream moved on: `expected` is not its last sequence number any more."""

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(
            f"stream {stream!r} is at {actual}, not at {expected}; read on and try again"
        )
        self.stream = stream
        self.expected = expected
        self.actual = actual


# Not the same as a `Conflict`: reading on and trying again would write under a lease that is lost.
class Fenced(StoreError):
    """The lease this append was made under has been taken over."""

    def __init__(self, stream: str, fence: int, current: int) -> None:
        super().__init__(
            f"another process has taken over {stream!r} (fence {current}, ours is {fence}); "
            "open it again to continue"
        )
        self.stream = stream
        self.fence = fence
        self.current = current


class Owned(StoreError):
    """A living process holds the lease of the stream."""

    def __init__(
        self,
        stream: str,
        *,
        pid: int,
        host: str,
        address: str,
        since: float,
        silent: bool = False,
        is_other_version: bool = False,
    ) -> None:
        """`silent`: that process was asked, and does not answer.  `is_other_version`: it answers,
        but not in words that this Weft knows.
        """
        what_to_do = "; it can be read here, and driven through that process"
        if is_other_version:
            what_to_do = (
                ", which runs another version of Weft and takes no commands from this one: "
                "end it there, then it can be driven here; it can be read here meanwhile"
            )
        elif silent:
            what_to_do = (
                ", which does not answer: it may be suspended (fg, or kill -CONT, wakes it up); "
                "it can be read here meanwhile"
            )
        super().__init__(f"{stream!r} is open in process {pid} on {host}{what_to_do}")
        self.stream = stream
        self.pid = pid
        self.host = host
        self.address = address
        self.since = since


class Corrupt(StoreError):
    """Stored bytes cannot be what we wrote."""

    def __init__(self, stream: str, detail: str, *, seq: int | None = None) -> None:
        where = f"{stream!r}" if seq is None else f"{stream!r} at seq {seq}"
        super().__init__(f"{where} is damaged: {detail}")
        self.stream = stream
        self.seq = seq
        self.detail = detail


class TooNew(StoreError):
    """The data was written by a newer Weft; this one must not touch it."""


class StoreUnavailable(StoreError):
    """The store is locked, full, or cannot be reached; nothing was written."""


# Apart from the others, because a full disk waits for the user and this one only for time.
class StoreOutage(StoreUnavailable):
    """The store cannot be reached for now, and comes back without the user; nothing was written."""


# No `StoreUnavailable`: that one promises that nothing was written, and its handlers rely on it.
class OutcomeUnknown(StoreError):
    """The connection broke while an append was committed: it is stored whole, or not at all."""


# --- the session -----------------------------------------------------------------------


class SessionError(WeftError):
    """The session cannot do this now."""


class SessionNotFound(SessionError):
    """No session has this id."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"no session {session_id!r}; `list_saved()` shows the ones there are")
        self.session_id = session_id


class SessionBusy(SessionError):
    """A turn is running, and this call would move what it stands on."""

    def __init__(self, session_id: str, what: str) -> None:
        super().__init__(
            f"session {session_id!r} is in the middle of a turn; wait for it or abort it, "
            f"then {what}"
        )
        self.session_id = session_id


class SessionStopped(SessionError):
    """The session has stopped; its record stays."""

    def __init__(self, session_id: str, why: str) -> None:
        super().__init__(f"session {session_id!r} has stopped: {why}")
        self.session_id = session_id
        self.why = why


class SessionInterrupted(SessionError):
    """The turn that was waited for stopped before its end; `continue_turn()` goes on."""

    def __init__(self, session_id: str, why: str) -> None:
        super().__init__(
            f"the turn of session {session_id!r} was interrupted"
            + (f": {why}" if why else "")
            + "; continue_turn() continues from what is stored"
        )
        self.session_id = session_id
        self.why = why


class OwnerLost(SessionError):
    """The process that had the session is gone; the next call finds who has it now."""

    was_sent = False
    """The command was on its way, and may have been carried out."""


class AmbiguousId(SessionError):
    """An id prefix fits several sessions."""

    def __init__(self, prefix: str, matches: tuple[str, ...]) -> None:
        shown = ", ".join(matches[:5]) + (", …" if len(matches) > 5 else "")
        super().__init__(f"{prefix!r} could be any of {shown}; give more of the id")
        self.prefix = prefix
        self.matches = matches


class NodeNotFound(SessionError):
    """No node has this id, or begins with it, or it was deleted."""

    def __init__(self, reference: str) -> None:
        super().__init__(f"there is no node {reference!r}; `weft loom list` shows the trees")
        self.reference = reference


class NoPendingRequest(SessionError):
    """No open request has this id: unknown, already answered, or expired."""


class StaleEdit(SessionError):
    """The text that was edited is not the text on record; nothing was written."""
