"""JSON as the output of a run: one object at its end, or a stream of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from weft.api.results import Result
from weft.cli import stdio as output
from weft.cli.headless.output_formats import OutputSink, ProgressNarrator
from weft.events import ArchitectPlan, Event, PermissionRequest, QuestionAsked
from weft.protocol.agent_sdk_dialect import ToolDialect
from weft.protocol.stream_json import IncomingLine, StreamJsonEncoder

_READS_STATE = "CLAUDE_CODE_SDK_READS_SESSION_STATE"


class JsonSink(OutputSink):
    """One object at the end."""

    wants_signals = False

    def __init__(self, narrator: ProgressNarrator, dialect: ToolDialect) -> None:
        self._narrator = narrator
        self._dialect = dialect
        self._encoder: Any = None

    def start(self, session_id: str, describe: Callable[[], dict[str, Any]]) -> None:
        self._encoder = _encoder(session_id, dialect=self._dialect)

    def take(self, event: Event) -> None:
        self._narrator.take(event)
        # For its side effect: the encoder notes denials and calls that the final object names.
        self._encoder.lines(event)

    def finish(self, result: Result) -> None:
        output.write_json(self._encoder.result(result))

    def fail(self, sentence: str, *, started: bool = False) -> None:
        output.write_json((self._encoder or _encoder("")).failure(sentence, started=started))


class StreamSink(OutputSink):
    """One object a line, as it happens."""

    wants_signals = True

    def __init__(self, *, partials: bool, dialect: ToolDialect, repeats: bool = False) -> None:
        """`repeats`: each message of the program comes back when it is durable."""
        self._partials = partials
        self._repeats = repeats
        self._state = "idle"
        self.dialect = dialect
        self._encoder: Any = None

    def start(self, session_id: str, describe: Callable[[], dict[str, Any]]) -> None:
        self._encoder = StreamJsonEncoder(
            session_id, partials=self._partials, repeats=self._repeats, dialect=self.dialect
        )
        output.write_json(self._encoder.init(**describe()))

    def take(self, event: Event) -> None:
        for line in self._encoder.lines(event):
            output.write_json(line)

    def finish(self, result: Result) -> None:
        output.write_json(self._encoder.result(result))
        # Denials are listed by turn; a program may send more messages.
        self._encoder.denials = []

    def fail(self, sentence: str, *, started: bool = False) -> None:
        output.write_json((self._encoder or _encoder("")).failure(sentence, started=started))

    def complain(self, sentence: str) -> None:
        """Say that a line of the input could not be understood."""
        output.write_json(self._encoder.problem(sentence))

    def tell_state(self, state: str) -> None:
        """Say what the session does, where the program reads that."""
        # Its own wish for such lines shows them to its user; the SDK's keeps them to itself.
        is_wanted = bool(os.environ.get("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"))
        if state == self._state or not (is_wanted or os.environ.get(_READS_STATE)):
            return
        self._state = state
        output.write_json(self._encoder.state(state, for_sdk_alone=not is_wanted))

    def sent(self, incoming: IncomingLine) -> None:
        """The program's next message goes to the session."""
        self._encoder.sent(incoming)

    def named(self, given: str) -> str:
        """Our id of a message that the program gave an id; empty when it gave none such."""
        found: str = self._encoder.named.get(given, "")
        return found

    def args_of(self, request: PermissionRequest) -> dict[str, Any] | None:
        """The input that a request is about; None when it is not known."""
        args: dict[str, Any] | None = self._encoder.args_of(request)
        return args

    def ask(
        self, request: PermissionRequest, args: dict[str, Any], suggested: list[dict[str, Any]]
    ) -> None:
        """Ask the program on the other side for permission."""
        output.write_json(self._encoder.ask(request, args, suggested))

    def ask_question(self, event: QuestionAsked) -> None:
        """Put a question of the model to the program on the other side."""
        output.write_json(self._encoder.ask_question(event))

    def ask_plan(self, event: ArchitectPlan) -> None:
        """Ask the program on the other side for approval of a plan."""
        output.write_json(self._encoder.ask_plan(event))


def _encoder(session_id: str, *, partials: bool = False, dialect: ToolDialect | None = None) -> Any:
    return StreamJsonEncoder(session_id, partials=partials, dialect=dialect)
