"""A long conversation, in which everything happens that can happen to one, replays to the same
state on every store.

`python -m tests.crash.long --n 300 --seed 1` leads the same conversation of `n` turns on a memory,
a JSONL and an SQLite store and prints one JSON line.  What happens is drawn by the seed: prompts
with pictures and very long ones, tools that read, write and keep tasks, steering and follow-ups
that are edited, reordered and taken back, aborts, refusals, crashes, branches, checkpoints, rewinds
with files, revisions, compactions by hand and by themselves, pins, notes, settings, other models,
forks that go on, and closing and opening again.

After every few steps, for each session: the living state is byte for byte the fold of its log; a
log has no gap; another program finds the same history, branches, queue, tasks, files, usage and
context; and every vendor's protocol accepts that context.  At the end the three stores hold the
same conversation.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import msgspec

from tests.support.image_samples import PIXEL_DATA
from tests.support.replay import unlike_its_log
from tests.support.vendor_models import illegal_anywhere
from tests.support.world import World, crash, facts, until_idle, until_status
from weft.api.session import Session
from weft.app import App
from weft.context import INSTRUCTIONS
from weft.errors import SessionError, UsageError
from weft.events import Compacted
from weft.messages import Content, Image, Text
from weft.providers import ModelInfo, ModelRequest
from weft.providers.script import (
    Break,
    CallTogether,
    CallTool,
    Fail,
    SayText,
    ScriptedAnswer,
    Stall,
    Step,
    Think,
    as_answer,
)
from weft.providers.scripted import ScriptedModel
from weft.runtime.ports.local import LocalPort
from weft.session import EditNode
from weft.state import snapshot

STORES = ("memory", "jsonl", "sqlite")
LOOK_EVERY = 10
"""Steps between two looks at everything."""
MOST_FORKS = 4
PIXEL = Image(media_type="image/png", data=PIXEL_DATA, name="pixel.png")
FILES = ("a.txt", "b.txt", "sub/c.txt")

Act: TypeAlias = Callable[[], Awaitable[None]]


class AnyWorld(World):
    """A world on any of the stores."""

    def store(self) -> Any:
        return f"jsonl:{self.base / 'log'}" if self.kind == "jsonl" else super().store()


class Speaker:
    """Both models: what they say is laid out before they are asked."""

    def __init__(self) -> None:
        self.laid_out: list[ScriptedAnswer] = []
        self.asked = 0
        self.wide = self._model("wide", 200_000)
        self.narrow = self._model("narrow", 6_000)

    def _model(self, name: str, window: int) -> ScriptedModel:
        info = ModelInfo(
            provider="scripted",
            name=name,
            context_window=window,
            max_output_tokens=500,
            price_input=1.0,
            price_output=1.0,
            thinks=True,
            sees_images=True,
        )
        return ScriptedModel([], choose=self._choose, info=info)

    def _choose(self, request: ModelRequest) -> ScriptedAnswer:
        if request.system == INSTRUCTIONS:
            return as_answer("In short: they talked, and it went on.")
        self.asked += 1
        return self.laid_out.pop(0) if self.laid_out else as_answer(f"answer {self.asked}")

    def lay_out(self, *answers: Step | Sequence[Step]) -> None:
        self.laid_out = [as_answer(each) for each in answers]


class Conversation:
    """One long conversation on one store."""

    def __init__(self, kind: str, folder: Path, seed: int) -> None:
        self.kind = kind
        self._dice = random.Random(f"long {seed}")
        self._world = AnyWorld(kind, folder)
        self._speaker = Speaker()
        self._app: App
        self._session: Session
        self._present = "s-0"
        self.sessions = ["s-0"]
        """Every session, the first one first; the others are forks."""
        self.turns = 0
        self._gates = 0
        self.counts: dict[str, int] = {}
        self.wrong: list[str] = []
        self._acts: dict[str, tuple[int, Act]] = {
            "say": (10, self._say),
            "use tools": (14, self._use_tools),
            "steer": (5, self._steer),
            "abort": (4, self._abort),
            "fail": (2, self._fail),
            "crash": (3, self._crash),
            "branch": (5, self._branch),
            "switch branch": (5, self._switch),
            "rename branch": (1, self._rename),
            "delete branch": (1, self._delete),
            "checkpoint": (2, self._checkpoint),
            "rewind": (3, self._rewind),
            "undo rewind": (1, self._undo_rewind),
            "compact": (3, self._compact),
            "undo compaction": (2, self._undo_compaction),
            "edit": (2, self._edit),
            "restore": (1, self._restore),
            "pin": (2, self._pin),
            "note": (2, self._note),
            "set": (4, self._set),
            "fork": (1, self._fork),
            "go over": (2, self._go_over),
            "reopen": (2, self._reopen),
        }

    async def lead(self, turns: int) -> None:
        """Lead the conversation for so many turns."""
        await self._open()
        await self._session.set_permission_mode("accept_edits")
        names, weights = list(self._acts), [weight for weight, _ in self._acts.values()]
        steps = 0
        while self.turns < turns:
            [name] = self._dice.choices(names, weights)
            with anyio.fail_after(60):
                await self._do(name)
            steps += 1
            if steps % LOOK_EVERY == 0:
                await self._look()
        await self._look()
        await self._app.aclose()

    async def _do(self, name: str) -> None:
        try:
            await self._acts[name][1]()
        except (UsageError, SessionError) as refusal:
            name = f"{name}, refused"  # there is no such thing to do here; nothing has happened
            if "crashed" in str(refusal):
                self.wrong.append(f"{name}: {refusal}")
        await until_idle(self._session)  # a follow-up may have started a turn of its own
        self.counts[name] = self.counts.get(name, 0) + 1

    # -- the program

    async def _open(self) -> None:
        self._app = await self._world.open(
            self._speaker.wide,
            self._speaker.narrow,
            config={"model.default": "scripted:wide"},
        ).__aenter__()
        self._session = await self._start(self._present)

    async def _start(self, session_id: str) -> Session:
        return await self._app.sessions.start_session(
            session_id=session_id,
            tools=["read", "write", "edit", "todo"],
            system_prompt="Help.",
            title="Long",
        )

    async def _reopen(self) -> None:
        before = [await everything(await self._start(each)) for each in self.sessions]
        await self._app.aclose()
        await self._open()
        after = [await everything(await self._start(each)) for each in self.sessions]
        for name, one, two in zip(self.sessions, before, after, strict=True):
            self.wrong += [f"{name} is another after reopening: {d}" for d in differences(one, two)]

    # -- talking

    def _text(self) -> str:
        size = self._dice.choice([3, 40, 400, 1_500, 1_500, 40_000 if self.turns % 7 == 0 else 9])
        return f"turn {self.turns} " + "w" * size

    def _content(self) -> Content:
        text = self._text()
        return [Text(text=text), PIXEL] if self._dice.random() < 0.1 else text

    async def _send(self) -> None:
        self.turns += 1
        await self._session.send_message(self._content())

    async def _say(self) -> None:
        thought = Think(text="hm", signature=f"proof-{self.turns}")
        self._speaker.lay_out((thought, SayText(text=f"said {self.turns}")))
        await self._send()

    def _round(self) -> Step:
        """Some calls: reading, writing, editing, keeping tasks; sensible or not."""
        makers: list[Callable[[], CallTool]] = [
            lambda: CallTool(name="read", args={"path": self._dice.choice(FILES)}),
            lambda: CallTool(
                name="write",
                args={
                    "path": self._dice.choice(FILES),
                    "content": f"{self.turns}\n" * self._dice.randint(1, 200),
                },
            ),
            lambda: CallTool(
                name="edit",
                args={
                    "path": self._dice.choice(FILES),
                    "old_string": f"{self.turns - 1}\n",
                    "new_string": f"{self.turns}!\n",
                    "replace_all": True,
                },
            ),
            lambda: CallTool(
                name="todo",
                args={"todos": [{"text": f"task {self.turns}", "status": "in_progress"}]},
            ),
            lambda: CallTool(name="no_such_tool"),
        ]
        made = [self._dice.choice(makers)() for _ in range(self._dice.randint(1, 3))]
        return CallTogether(calls=tuple(made))

    async def _use_tools(self) -> None:
        rounds = [self._round() for _ in range(self._dice.randint(1, 4))]
        self._speaker.lay_out(*rounds, SayText(text=f"done {self.turns}"))
        await self._send()

    async def _begin_and_wait_at_gate(self, *before: Step | Sequence[Step]) -> str:
        """Start a turn that stops in the midst of an answer; returns the gate's name."""
        self._gates += 1
        self.turns += 1
        gate = f"gate {self._gates}"
        self._speaker.lay_out(
            *before, (SayText(text=f"half {self.turns} "), Stall(gate=gate), SayText(text="rest"))
        )
        gates = [model.gate(gate) for model in (self._speaker.wide, self._speaker.narrow)]
        await self._session.send_prompt(self._content())
        async with anyio.create_task_group() as group:
            for each in gates:
                group.start_soon(_cancel_when, each.reached, group.cancel_scope)
        return gate

    def _let_go(self, gate: str) -> None:
        for model in (self._speaker.wide, self._speaker.narrow):
            model.gate(gate).opened.set()

    async def _steer(self) -> None:
        gate = await self._begin_and_wait_at_gate(self._round())
        say = (self._session.queue_steering, self._session.queue_follow_up)
        entries = [
            (await self._dice.choice(say)(f"meanwhile {self.turns} {number}")).entry_id or ""
            for number in range(self._dice.randint(1, 4))
        ]
        if self._dice.random() < 0.5:
            await self._session.edit_queued(self._dice.choice(entries), f"edited {self.turns}")
        if self._dice.random() < 0.3:
            await self._session.reorder_queue(entries[::-1])
        if self._dice.random() < 0.3:
            await self._session.remove_queued(entries[0])
        self._let_go(gate)

    async def _abort(self) -> None:
        await self._begin_and_wait_at_gate(*([self._round()] if self._dice.random() < 0.5 else []))
        await self._session.queue_follow_up(f"left {self.turns}")
        await self._session.abort("enough")
        match self._dice.randint(0, 3):
            case 0:
                await self._session.recall_queues()
            case 1:
                await self._session.continue_and_wait()
            case 2:
                await self._session.dequeue_steering()
            case _:
                pass

    async def _fail(self) -> None:
        endings: list[Sequence[Step]] = [
            (Fail(error="RequestRefused", message="no"),),
            (SayText(text="it breaks "), Break()),
        ]
        self._speaker.lay_out(self._round(), self._dice.choice(endings))
        self.turns += 1
        await self._session.send_message(self._content(), retries=0)

    async def _crash(self) -> None:
        await self._begin_and_wait_at_gate(*([self._round()] if self._dice.random() < 0.5 else []))
        await self._session.queue_follow_up(f"after the crash {self.turns}")
        await crash(self._app)
        await self._open()
        await until_status(self._session, "interrupted")
        if self._dice.random() < 0.5:
            await self._session.continue_and_wait()
        else:
            self.turns += 1
            await self._session.send_message(f"anew {self.turns}")

    # -- the tree

    async def _place(self) -> int:
        return self._dice.randrange(max(1, len(await self._session.messages())))

    async def _branch(self) -> None:
        await self._session.branch_at(await self._place())

    async def _switch(self) -> None:
        branches = await self._session.list_branches()
        await self._session.switch_branch(self._dice.randrange(len(branches)))

    async def _rename(self) -> None:
        branches = await self._session.list_branches()
        await self._session.rename_branch(
            self._dice.randrange(len(branches)), f"named {self.turns} {self._dice.random():.6f}"
        )

    async def _delete(self) -> None:
        branches = await self._session.list_branches()
        await self._session.delete_branch(self._dice.randrange(len(branches)))

    async def _checkpoint(self) -> None:
        await self._session.checkpoint()

    async def _rewind(self) -> None:
        await self._session.rewind(await self._place(), files=self._dice.random() < 0.7)

    async def _undo_rewind(self) -> None:
        await self._session.undo_rewind()

    async def _some_message(self) -> str:
        rows = [key for key, _ in await self._session.messages_with_ids() if key[:4] == "nod_"]
        if not rows:
            raise UsageError("there is no message yet")
        return self._dice.choice(rows)

    async def _edit(self) -> None:
        port = await self._session._port()
        text = Text(text=f"edited at {self.turns}")
        node: Any = await self._some_message()
        await port.call(EditNode(node=node, parts=(text,)))

    async def _restore(self) -> None:
        node = await self._some_message()
        count = len(await self._session.revisions(node))
        await self._session.restore_revision(node, self._dice.randrange(count))

    async def _compact(self) -> None:
        await self._session.compact()

    async def _undo_compaction(self) -> None:
        await self._session.undo_compaction()

    async def _pin(self) -> None:
        await self._session.pin(await self._some_message())

    async def _note(self) -> None:
        await self._session.add_system_message(
            f"note {self.turns}", to_model=self._dice.random() < 0.5
        )

    # -- the rest

    async def _set(self) -> None:
        session = self._session
        match self._dice.randint(0, 4):
            case 0:
                await session.update_model(self._dice.choice(["scripted:wide", "scripted:narrow"]))
            case 1:
                await session.set_thinking_level(self._dice.choice(["off", "low", "high"]))
            case 2:
                await session.cycle_thinking_level()
            case 3:
                await self._app.sessions.rename_session(session.id, f"Long {self.turns}")
            case _:
                await session.toggle_all_tool_collapses()

    async def _fork(self) -> None:
        if len(self.sessions) > MOST_FORKS:
            raise UsageError("there are enough")
        at = await self._place() if await self._session.messages() else None
        fork = await self._app.sessions.fork_session(self._session.id, at=at)
        self.sessions.append(fork.id)
        await self._take(fork.id)

    async def _go_over(self) -> None:
        await self._take(self._dice.choice(self.sessions))

    async def _take(self, session_id: str) -> None:
        self._present = session_id
        self._session = await self._start(session_id)

    # -- looking

    async def _look(self) -> None:
        for each in self.sessions:
            session = await self._start(each)
            self.wrong += [f"{each}: {wrong}" for wrong in await unlike_its_log(session, self._app)]
            self.wrong += [f"{each}: {rule}" for rule in await illegal_anywhere(session)]

    async def told(self) -> list[list[str]]:
        """What every session comes to, without ids and times: the same on every store."""
        await self._open()
        found = []
        for number, each in enumerate(self.sessions):
            session = await self._start(each)
            usage = (await session.usage()).total
            made = len(await facts(session, Compacted))
            self.counts["compacted"] = self.counts.get("compacted", 0) + made
            branches = [(b.name, b.length, b.is_current) for b in await session.list_branches()]
            files = [(file.path, file.action) for file in await session.touched_files()]
            found.append(
                [
                    f"session {number}: {usage.input_tokens} {usage.output_tokens}",
                    f"branches {branches}",
                    f"files {files}",
                    *(
                        f"{m.role}: {_DECISION_ID.sub('dec', m.content)} {m.is_error}"
                        for m in await session.messages()
                    ),
                ]
            )
        await self._app.aclose()
        return found


_DECISION_ID = re.compile(r"\bdec_\w+")
"""What a note about a file names is made by chance, in each store anew."""


async def _cancel_when(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


# -- verdicts


async def everything(session: Session) -> dict[str, Any]:
    """All that can be read of a session, and what the model would be told."""
    port = await session._port()
    assert isinstance(port, LocalPort)
    line = await port.actor.log.context_line()
    return {
        "history": await session.messages_with_ids(),
        "branches": await session.list_branches(),
        "queue": await session.get_queued_messages(),
        "tasks": await session.todos(),
        "files": await session.touched_files(),
        "usage": await session.usage(),
        "about": await session.metadata(),
        "drawn": await session.editor_snapshot(),
        "context": (line.summary, [entry.node for entry in line.entries]),
        "state": snapshot(port.state),
    }


def differences(one: dict[str, Any], two: dict[str, Any]) -> list[str]:
    """Which parts of it are not the same."""
    return [name for name in one if one[name] != two[name]]


# -- the claim


class Led(msgspec.Struct):
    """What came of one conversation."""

    turns: int
    counts: dict[str, int]
    wrong: list[str]
    told: list[list[str]]


async def lead(kind: str, turns: int, seed: int) -> Led:
    """Lead the conversation of this seed on a store of this kind."""
    with tempfile.TemporaryDirectory(prefix="long-") as folder:
        conversation = Conversation(kind, Path(folder), seed)
        await conversation.lead(turns)
        told = await conversation.told()
        return Led(conversation.turns, conversation.counts, conversation.wrong, told)


def differing(led: dict[str, Led]) -> list[str]:
    """Where the stores do not hold the same conversation."""
    (first, reference), *others = led.items()
    return [
        f"{kind} holds another conversation than {first}"
        for kind, each in others
        if each.told != reference.told
    ]


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=300, help="turns on each store")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    led = {kind: asyncio.run(lead(kind, chosen.n, chosen.seed)) for kind in STORES}
    wrong = [f"{kind}: {each}" for kind, one in led.items() for each in one.wrong] + differing(led)
    for each in wrong:
        print(each, file=sys.stderr)
    line = {
        "claim": "long",
        "n": sum(one.turns for one in led.values()),
        "violations": len(wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
        "stores": len(led),
        "steps": led["memory"].counts,
    }
    print(json.dumps(line))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
