"""A model for journeys with compactions: it answers and summarises, and remembers which request was
which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import anyio

from tests.support.world import PATIENCE, facts, request_lines
from weft.api.session import Session
from weft.app import App
from weft.context import INSTRUCTIONS, RECORD_HEADING
from weft.events import Compacted
from weft.providers import ModelInfo, ModelRequest
from weft.providers.script import SayText, Step
from weft.providers.scripted import ScriptedModel

WINDOW = 4_000

TURN = "x" * 1_600
"""A prompt of a tenth of the window."""

Spoken: TypeAlias = str | Step | Sequence[Step]
Speaker: TypeAlias = Callable[[ModelRequest], Spoken]

HEADING = "[What came before was summarised"
PARAGRAPH = "\n\n"


class SummarizingModel:
    """Says `answer 1`, `answer 2`, …, and as summaries `summary 1`, `summary 2`, …, unless `say`
    and `summary` are given.
    """

    def __init__(
        self,
        *,
        window: int = 200_000,
        say: Speaker | None = None,
        summary: Speaker | None = None,
        name: str = "script",
    ) -> None:
        self.asked: list[ModelRequest] = []
        """Requests for an answer."""
        self.summaries: list[ModelRequest] = []
        """Requests for a summary."""
        self.say = say
        self.summary = summary
        info = ModelInfo(
            provider="scripted",
            name=name,
            context_window=window,
            max_output_tokens=window // 10,
            price_input=1.0,
            price_output=1.0,
            thinks=True,
            sees_images=True,
        )
        self.model = ScriptedModel([], choose=self._choose, info=info)

    def _choose(self, request: ModelRequest) -> Spoken:
        if request.system == INSTRUCTIONS:
            self.summaries.append(request)
            if self.summary is not None:
                return self.summary(request)
            return SayText(text=f"summary {len(self.summaries)}")
        self.asked.append(request)
        if self.say is not None:
            return self.say(request)
        return SayText(text=f"answer {len(self.asked)}")

    @property
    def carried(self) -> list[str]:
        """What the last request carries from the record, block by block."""
        said = request_lines(self.asked[-1])[0]
        return said.partition(PARAGRAPH + RECORD_HEADING + PARAGRAPH)[2].split(PARAGRAPH)

    @property
    def seen(self) -> list[str]:
        """The lines of the last request for an answer.

        A summary in brackets, without its heading and without what is carried besides.
        """
        return [_short(line) for line in request_lines(self.asked[-1])]


def _short(line: str) -> str:
    who, _, text = line.partition(": ")
    if not text.startswith(HEADING):
        return line
    summary = text.partition(PARAGRAPH + RECORD_HEADING)[0]
    return f"{who}: <{'; '.join(summary.split(PARAGRAPH)[1:])}>"


async def start(app: App, **settings: Any) -> Session:
    """A session with next to no prefix, so that a window is used up by what is said."""
    wanted = {"session_id": "s", "tools": [], "system_prompt": "Help.", **settings}
    return await app.sessions.start_session(**wanted)


async def send_prompts(session: Session, *prompts: str) -> None:
    """Send these, one after the other."""
    for prompt in prompts:
        reply = await session.send_message(prompt)
        assert reply.finish_reason == "stop", reply.detail


async def compactions(session: Session) -> list[Compacted]:
    """The compactions on record."""
    return await facts(session, Compacted)


async def gate_reached(teller: SummarizingModel, gate: str) -> None:
    """Wait until a stream is at this gate."""
    with anyio.fail_after(PATIENCE):
        await teller.model.gate(gate).reached.wait()


async def queued(session: Session) -> list[str]:
    """What waits in the queues, steering first."""
    steering, follow_up = await session.get_queued_messages()
    return [entry.text for entry in (*steering, *follow_up)]
