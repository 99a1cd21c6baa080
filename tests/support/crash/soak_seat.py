"""One of many users of an application: leads a session through everything, deletes it, begins the
next.
"""

from __future__ import annotations

import gc
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio

from tests.support.replay import unlike_its_log
from weft.api.session import Session
from weft.app import App
from weft.context import INSTRUCTIONS
from weft.errors import SessionError, UsageError
from weft.messages import Text
from weft.providers import ChatMessage, ModelInfo, ModelRequest
from weft.providers.base import CallResults
from weft.providers.script import CallTool, SayText, ScriptedAnswer, as_answer
from weft.providers.scripted import ScriptedModel
from weft.session import Subscription

LONGEST_LIFE = 60
"""Turns until a session is deleted: so that there are always some of every length."""
STEP_SECONDS = 120
"""What takes longer hangs; a machine that does other things as well may take seconds."""
LONG_TEXT = "words and words " * 40

Act: TypeAlias = Callable[[], Awaitable[None]]


def soak_model() -> ScriptedModel:
    """A model that does what the prompt says: a list of calls as JSON, one in a round.

    It keeps nothing, or it would be the leak itself.
    """
    info = ModelInfo(
        provider="scripted", name="script", context_window=60_000, price_input=0, price_output=0
    )
    return ScriptedModel([], choose=_answer_to, info=info, keep_requests=0)


def _answer_to(request: ModelRequest) -> ScriptedAnswer:
    if request.system == INSTRUCTIONS:
        return as_answer("In short: much was done.")
    asked, rounds = "", 0
    for message in request.messages:
        if isinstance(message, ChatMessage) and message.role == "user":
            text = "".join(part.text for part in message.parts if isinstance(part, Text))
            asked, rounds = (text, 0) if text.startswith("[") else (asked, rounds)
        rounds += isinstance(message, CallResults)
    calls = json.loads(asked.partition("\n")[0]) if asked else []
    if rounds < len(calls):
        name, args = calls[rounds]
        return as_answer(CallTool(name=name, args=args))
    return as_answer(SayText(text=f"Done. {LONG_TEXT}", chunk=60))


class SoakSeat:
    """One user, one session at a time."""

    def __init__(self, app: App, number: int, dice: random.Random, pace_seconds: float) -> None:
        self._app = app
        self._number = number
        self._dice = dice
        self._pace_seconds = pace_seconds
        self.session: Session | None = None
        self._turns = 0
        self._life = dice.randint(1, LONGEST_LIFE)
        self._reading: list[Subscription] = []
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._acts: dict[str, tuple[int, Act]] = {
            "say": (6, self._say),
            "use tools": (8, self._use_tools),
            "branch": (2, self._branch),
            "switch branch": (2, self._switch),
            "rewind": (2, self._rewind),
            "undo rewind": (1, self._undo_rewind),
            "compact": (1, self._compact),
            "abort": (2, self._abort),
            "subscribe": (3, self._subscribe),
            "drop readers": (2, self._drop_readers),
            "unload": (3, self._unload),
            "history": (2, self._history),
            "search": (1, self._search),
        }

    @property
    def _at_work(self) -> Session:
        assert self.session is not None
        return self.session

    async def step(self) -> None:
        """Do one thing."""
        if self.session is None:
            await self._begin()
        names, weights = list(self._acts), [weight for weight, _ in self._acts.values()]
        [name] = self._dice.choices(names, weights)
        try:
            with anyio.fail_after(STEP_SECONDS):
                await self._acts[name][1]()
                await self._until_idle()
        except (UsageError, SessionError):
            name = f"{name}, refused"  # there is no such thing to do here
        except TimeoutError:
            self.wrong.append(f"{self._at_work.id}: {name} hangs")
        self.counts[name] += 1
        if self._turns >= self._life:
            await self.end()

    async def _until_idle(self) -> None:
        async with await self._at_work.subscribe() as events:
            while await self._at_work.get_status() != "idle":
                await anext(events)

    async def think(self) -> None:
        """Wait for a while, as users do."""
        await anyio.sleep(self._dice.uniform(0, 2 * self._pace_seconds))

    async def end(self) -> None:
        """Compare the session with its log, and delete it."""
        if self.session is None:
            return
        await self.check()
        await self._drop_readers()
        session, self.session = self.session, None
        await self._app.sessions.delete_session(session.id)
        self.counts["deleted"] += 1
        self._turns, self._life = 0, self._dice.randint(1, LONGEST_LIFE)

    async def check(self) -> None:
        """Replay the session's log."""
        if self.session is not None:
            found = await unlike_its_log(self.session, self._app)
            self.wrong += [f"{self.session.id}: {each}" for each in found]
            self.counts["replayed"] += 1

    async def _begin(self) -> None:
        self.session = await self._app.sessions.start_session(
            tools=["read", "write", "edit", "list", "grep", "shell", "todo"], auto_approve=True
        )
        self.counts["begun"] += 1

    # -- turns

    async def _send(self, calls: list[tuple[str, dict[str, object]]]) -> None:
        self._turns += 1
        await self._at_work.send_message(f"{json.dumps(calls)}\n{LONG_TEXT}")

    async def _say(self) -> None:
        await self._send([])

    async def _use_tools(self) -> None:
        await self._send([self._call() for _ in range(self._dice.randint(1, 4))])

    def _call(self) -> tuple[str, dict[str, object]]:
        path = f"seat{self._number}/{self._dice.choice('abc')}.txt"
        lines = f"{self._dice.random()}\n" * self._dice.randint(1, 300)
        todo = [{"text": f"task {self._turns}", "status": "pending"}]
        made: list[tuple[str, dict[str, object]]] = [
            ("write", {"path": path, "content": lines}),
            ("write", {"path": path, "content": lines}),
            ("read", {"path": path}),
            ("edit", {"path": path, "old_string": "0.", "new_string": "1."}),
            ("list", {"path": "."}),
            ("grep", {"pattern": "0.1", "path": f"seat{self._number}"}),
            ("todo", {"todos": todo}),
            (
                "shell",
                {
                    "command": f"echo {self._turns} >> seat{self._number}.log; tail -c 500"
                    f" seat{self._number}.log > x{self._number}"
                },
            ),
        ]
        return self._dice.choice(made)

    async def _abort(self) -> None:
        self._turns += 1
        await self._at_work.send_prompt(json.dumps([self._call(), self._call()]))
        await self._at_work.abort("enough")
        await self._at_work.clear_queues()

    # -- the tree

    async def _place(self) -> int:
        return self._dice.randrange(max(1, len(await self._at_work.messages())))

    async def _branch(self) -> None:
        await self._at_work.branch_at(await self._place())

    async def _switch(self) -> None:
        branches = await self._at_work.list_branches()
        await self._at_work.switch_branch(self._dice.randrange(len(branches)))

    async def _rewind(self) -> None:
        await self._at_work.rewind(await self._place(), files=self._dice.random() < 0.7)

    async def _undo_rewind(self) -> None:
        await self._at_work.undo_rewind()

    async def _compact(self) -> None:
        await self._at_work.compact()

    # -- readers, and coming and going

    async def _subscribe(self) -> None:
        stored = (await self._at_work.editor_snapshot()).seq
        read = self._dice.choice((0, min(stored, 3)))
        events = await self._at_work.subscribe(after=0 if read else None)
        for _ in range(read):
            await anext(events)
        # Some are held and never read again, some are dropped without a word.
        if len(self._reading) < 3 and self._dice.random() < 0.7:
            self._reading.append(events)

    async def _drop_readers(self) -> None:
        for events in self._reading:
            if self._dice.random() < 0.5:
                await events.aclose()
        self._reading.clear()

    async def _unload(self) -> None:
        if self._dice.random() < 0.5:
            await self._drop_readers()
            gc.collect(0)
        await self._app.host.unload_idle(0)

    async def _history(self) -> None:
        await self._at_work.messages_with_ids()
        await self._at_work.usage()
        await self._at_work.editor_snapshot()

    async def _search(self) -> None:
        await self._app.sessions.list_saved(query="words", limit=20)
