"""JSON as the output of a run: one object at its end, or a stream of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.api.results import Result
from weft.cli import stdio as output
from weft.cli.headless.output_formats import OutputSink, ProgressNarrator
from weft.events import ArchitectPlan, Event, PermissionRequest, QuestionAsked
from weft.protocol.agent_sdk_dialect import ToolDialect
from weft.protocol.stream_json import StreamJsonEncoder


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

    def __init__(self, *, partials: bool, dialect: ToolDialect) -> None:
        self._partials = partials
        self.dialect = dialect
        self._encoder: Any = None

    def start(self, session_id: str, describe: Callable[[], dict[str, Any]]) -> None:
        self._encoder = _encoder(session_id, partials=self._partials, dialect=self.dialect)
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
