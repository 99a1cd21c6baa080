"""Each request that was sent can be made again from the log, byte for byte, in another process.

`python -m tests.crash.sent_requests` prints one JSON line; `--rounds 5` holds fewer conversations
for each protocol, and `--only google` those of one.  A conversation is one of the table that the
oracles use: tools, pictures, documents, reasoning, stops, other vendors and levels, compactions and
their undoing, branches and forks; then a rewind, and a message that is taken out and put back.
Vendors on loopback keep the bytes of each request for an answer.  After that the application is
closed, another one opens the store, and makes each request again from the log alone.

What is judged: the log names the very bytes that the vendor got, in their order; each of them is
made again equal to what the vendor got; and with the log of another version it is said that they
differ.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import anyio
import msgspec

from tests.support.oracles.conversation_table import TABLE, TabledConversation
from tests.support.oracles.conversations import DONE, say
from tests.support.oracles.request_record import RecordingWorld
from tests.support.oracles.vendor_world import vendor_server
from weft.api.session import Session
from weft.app import App
from weft.runtime.requests.call_log import LoggedCall, logged_calls
from weft.runtime.requests.rebuilt_request import rebuilt
from weft.session.log.load import load_state_at

PROTOCOLS = ("anthropic", "openai", "openai-chat", "google", "ollama")
CONVERSATIONS = 60
"""Of each protocol, in the full proof."""


async def held(
    session: Session, world: RecordingWorld, conversation: TabledConversation, protocol: str
) -> None:
    """The conversation, then a rewind, and a message that is taken out and put back."""
    await conversation.hold(world, session, protocol)
    line = [node for node, _ in await session.messages_with_ids()]
    await session.rewind(line[-3], files=False)
    line = [node for node, _ in await session.messages_with_ids()]
    await session.exclude(line[1])
    world.script = [DONE, DONE]
    await say(session, "without it")
    await session.include(line[1])
    await say(session, "with it")


async def made_again(
    app: App, sent: Counter[bytes], counts: Counter[str], *, other_version: bool = False
) -> list[str]:
    """What is wrong with the requests of all sessions as another process makes them again."""
    wrong: list[str] = []
    ahead = [row.id for row in await app.sessions.list_saved(limit=10_000)]
    while ahead:
        session = await app.sessions.get(ahead.pop())
        ahead += [child.id for child in await session.children()]
        for call in await logged_calls(session.id, app.store):
            if call.used is None or not call.used.body or call.place.log != session.id:
                continue  # no answer came, or it is the call of the session that was forked
            if other_version:
                other = msgspec.structs.replace(call.used, body="0" * 64)
                started = msgspec.structs.replace(call.started, digest="0" * 64)
                call = LoggedCall(place=call.place, started=started, used=other)
            state = await load_state_at(call.place, app.store)
            made = await rebuilt(call, state, app.store, session._host.model(call.started.model))
            counts["requests"] += 1
            wanted = "differs" if other_version else "equal"
            if made.match != wanted:
                wrong.append(f"{session.id} {call.started.node}: {made.match}, {made.said}")
            elif not sent[made.body]:
                wrong.append(f"{session.id} {call.started.node}: no vendor got these bytes")
    return wrong


async def attempt(
    protocol: str, conversations: Sequence[TabledConversation], counts: Counter[str]
) -> list[str]:
    """What is wrong with these conversations of one protocol."""
    world = RecordingWorld()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with vendor_server(folder, world) as opened:
            async with opened(folder / "weft.db") as app:
                for conversation in conversations:
                    session = await app.sessions.start_session(
                        model=conversation.model(protocol), thinking=conversation.level
                    )
                    await held(session, world, conversation, protocol)
            async with opened(folder / "weft.db") as app:
                sent = Counter(world.bodies)
                counts["sent"] += sent.total()
                wrong = await made_again(app, sent, counts)
                again = Counter[str]()
                wrong += await made_again(app, sent, again, other_version=True)
    return [f"{protocol}: {each}" for each in wrong]


def main(argv: Sequence[str]) -> int:
    """Prove it; prints the one line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=CONVERSATIONS)
    parser.add_argument("--seed", type=int, default=0, help="nothing is drawn; for one command")
    parser.add_argument("--only", choices=PROTOCOLS)
    options = parser.parse_args(argv)
    began, counts, wrong = time.monotonic(), Counter[str](), list[str]()
    protocols = (options.only,) if options.only else PROTOCOLS
    for protocol in protocols:
        wrong += anyio.run(attempt, protocol, TABLE[: options.rounds], counts)
    for each in wrong[:20]:
        print(each, file=sys.stderr)
    line = {
        "claim": "sent_requests",
        "n": min(options.rounds, len(TABLE)) * len(protocols),
        "violations": len(wrong),
        "seed": options.seed,
        "seconds": round(time.monotonic() - began, 1),
        **counts,
    }
    print(json.dumps(line))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
