"""What a candidate learned, brought to the line of its session: the model sums it up, and the
conversation goes on with that.
"""

from __future__ import annotations

from weft.api.handle import SessionBase
from weft.api.summaries.questions import branch_summary
from weft.api.summaries.session_summary import ask_beside
from weft.errors import UsageError
from weft.ids import SessionId
from weft.runtime.session_host import SessionHost
from weft.session import AddNote


async def bring_lesson(
    host: SessionHost, session_id: SessionId, child: SessionId, index: int
) -> str:
    """Sum up what a candidate did, and add it to the conversation for the model; returns the text.

    Raises:
        UsageError: it has said nothing.
        WeftError: the model could not be asked.
    """
    session = SessionBase(session_id, host)
    state = (await session._port()).state
    port = await host.port(child)
    unsent = {*state.tree.line(state.tree.head), *port.state.tree.excluded}
    line = [entry for entry in await port.line() if entry.node.id not in unsent]
    if not any(entry.node.role == "assistant" for entry in line):
        raise UsageError(f"candidate {index} has said nothing yet")
    question = branch_summary(line, host.model(state.settings.model))
    text = (await ask_beside(session, state, question)).text.strip()
    note = f"[What candidate {index}, which worked on the same task, learned:]\n{text}"
    await session._call(AddNote(text=note, to_model=True))
    return text
