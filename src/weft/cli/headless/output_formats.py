"""Output formats of a run without a terminal: text, or JSON (`json_output`)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol

from weft.api.results import Result
from weft.cli import stdio as output
from weft.cli.headless.answers import answer_text
from weft.events import (
    ArchitectStep,
    ChildFinished,
    ChildStarted,
    Event,
    LlmRetry,
    NewMessage,
    TextDelta,
    ToolComplete,
)
from weft.view import SUCCESSFUL, TURN_LIMITS, describe_call, finish_sentence


class OutputSink(Protocol):
    """Takes a run in, as it happens."""

    wants_signals: bool
    """Live events matter to it, too, and not only retries.

    Without, an answer of a thousand pieces costs no more than one of a single piece.
    """

    def start(self, session_id: str, describe: Callable[[], dict[str, Any]]) -> None:
        """A session is there; `describe` tells about it."""
        ...

    def take(self, event: Event) -> None:
        """Something happened."""
        ...

    def finish(self, result: Result) -> None:
        """A turn ended."""
        ...

    def fail(self, sentence: str, *, started: bool = False) -> None:
        """The run ended without the end of a turn; `started` when there is one under way."""
        ...


class TextSink(OutputSink):
    """The last answer.  On a terminal, text as it arrives."""

    def __init__(self, narrator: ProgressNarrator, *, as_json: bool = False) -> None:
        """`as_json`: a structured result was asked for."""
        self._narrator = narrator
        self._as_json = as_json
        self._is_live = self.wants_signals = sys.stdout is not None and sys.stdout.isatty()
        self._written = ""
        """The node whose text was written last."""
        self._cleaner: Any = None

    def start(self, session_id: str, describe: Callable[[], dict[str, Any]]) -> None:
        if self._narrator.is_verbose:
            output.tell(f"· session {session_id}, model {describe()['model']}")

    def take(self, event: Event) -> None:
        self._narrator.take(event)
        if not self._is_live:
            return
        match event:
            case TextDelta(node_id=node_id, text=text):
                self._write_live(node_id, text)
            case NewMessage(node=node) if node.id == self._written and not node.text.endswith("\n"):
                output.write("\n")
            case _:
                pass

    def _write_live(self, node_id: str, text: str) -> None:
        from weft.cli.sanitize import TerminalSanitizer  # only for terminals

        if node_id != self._written:
            # A new answer begins on a new line; its sanitizer starts afresh, so that an unfinished
            # escape sequence of the one before hides nothing.
            output.write("\n" if self._written else "")
            self._written, self._cleaner = node_id, TerminalSanitizer()
        output.write(self._cleaner.feed(text))

    def finish(self, result: Result) -> None:
        text = answer_text(result, as_json=self._as_json)
        # What was shown live is not printed again; a structured result never was.
        if text and (not self._written or result.deliverable is not None):
            output.write_line(text)
        if result.finish_reason not in SUCCESSFUL:
            more = "; `weft -c` continues" if result.finish_reason in TURN_LIMITS else ""
            output.complain(f"{finish_sentence(result.finish_reason, result.detail)}{more}")

    def fail(self, sentence: str, *, started: bool = False) -> None:
        return


class ProgressNarrator:
    """Reports progress on standard error; unless it is verbose, only the first retry, because
    minutes of silence look like a program that hangs.
    """

    def __init__(self, *, is_verbose: bool) -> None:
        self.is_verbose = is_verbose
        self._names: dict[str, str] = {}
        self._said_retry = False

    def take(self, event: Event) -> None:
        """Say it, if it is worth a line."""
        if self.is_verbose:
            self._take_all(event)
        elif isinstance(event, LlmRetry) and not self._said_retry:
            self._said_retry = True
            _tell_retry(event)

    def _take_all(self, event: Event) -> None:
        match event:
            case NewMessage(node=node) if node.role == "assistant":
                for call in node.calls:
                    self._names[call.call_uid] = describe_call(call.name, call.args)
            case ToolComplete(result=result, duration_ms=duration_ms):
                name = self._names.pop(result.call_uid, "")
                how = "failed" if result.is_error else "done"
                shown = how if result.status == "done" else result.status
                output.tell(f"· {name}: {shown} ({duration_ms} ms)")
            case ChildStarted(name=name, purpose=purpose):
                output.tell(f"· {name or purpose} begins")
            case ChildFinished(finish_reason=reason):
                output.tell(f"· it ended: {'done' if reason in SUCCESSFUL else reason}")
            case ArchitectStep(index=index, status=status):
                output.tell(f"· step {index + 1}: {status}")
            case LlmRetry():
                _tell_retry(event)
            case _:
                pass


def _tell_retry(retry: LlmRetry) -> None:
    output.tell(f"· {retry.reason.rstrip('. ')}; trying again in {retry.wait_ms / 1000:.1f} s")
