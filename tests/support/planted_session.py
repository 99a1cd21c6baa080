"""Sessions with planted facts, and summarizers that cannot be trusted.

A session is generated from a seed: in each of its parts the user and the agent say and do things
that must not be lost (a constraint, an exact value, a rejected approach, a decision, a finished and
a next step, a changed file, a file that was read, a command that fails), among much that does not
matter.  Then the window is full, and a summarizer that drops, lies, babbles or never answers makes
room.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from tests.support.compaction import SummarizingModel
from tests.support.world import World, facts, request_lines
from weft.api.session import Session
from weft.context import (
    RECORD_HEADING,
    ContextTarget,
    build,
    estimate,
    estimate_text,
    notes_for_model,
)
from weft.events import Compacted, ErrorRaised, TurnFinished
from weft.providers import ModelRequest
from weft.providers.script import CallTool, Fail, SayText, Stall, Step
from weft.runtime.ports.local import LocalPort

Kind: TypeAlias = Literal[
    "constraint",
    "value said by the user",
    "value in a pinned message",
    "rejected approach",
    "done step",
    "next step",
    "file changed",
    "failing command",
    "decision",
    "value said by the agent",
    "value in a file",
    "file read",
    "approach given up by the agent",
]
HELD: Final[tuple[Kind, ...]] = (
    "constraint",
    "value said by the user",
    "value in a pinned message",
    "rejected approach",
    "done step",
    "next step",
    "file changed",
    "failing command",
    "decision",
)
"""What no summarizer may lose."""
REPORTED: Final[tuple[Kind, ...]] = (
    "value said by the agent",
    "value in a file",
    "file read",
    "approach given up by the agent",
)
"""What only the summary and the kept messages have."""

PATIENCE_TURNS: Final = 80
"""Turns after which a line must have been compacted again."""

_CONSTRAINTS: Final = (
    "Never write into the folder vendor{w}.",
    "Do not touch the table accounts{w}, it is shared.",
    "All times in report{w} must be in local time.",
    "Please don't add any dependency for module{w}.",
    "From now on every query of shop{w} goes through the pool.",
    "You may not rename the function handle{w}.",
    "Ask me before you delete anything of archive{w}.",
    "Under no circumstances push the branch release{w}.",
    "Always run the linter of part{w} before a commit.",
    "The public names of api{w} shall stay as they are.",
)
_VALUES: Final = (
    "The staging port is {n}.",
    "The bucket is called `crate-{n}`.",
    "Our key prefix is KX_{n}.",
    "The limit for uploads is {n} bytes.",
    "The server listens at http://localhost:{n}/v2.",
)
_REJECTED: Final = (
    "No, not a bloom filter for list{w}; use a sorted array.",
    "Not that cache{w}, use the index instead.",
    "I would rather have plain files than the queue{w}, so use files instead.",
    "Not polling for watcher{w}, the events are there.",
)
_DECISIONS: Final = (
    "We decided to keep list{w} in plain files.",
    "It is decided: loader{w} reads everything at the start.",
    "For worker{w} we agreed on threads.",
)
_CHATTER: Final = (
    "How is it going so far?",
    "That looks good to me.",
    "The weather is nice here today.",
    "I had a look at the results and they seem fine.",
    "What do you think of the layout?",
    "Thanks, go on with the next part.",
    "It was the same in the old version, as far as I know.",
    "Yesterday somebody asked about ticket {n} again.",
)
_STEPS: Final = ("wire up the parser{n} of dates", "move the reader{n} into a module of its own")


class PlantedFact(msgspec.Struct, frozen=True):
    """Something that was said or done, and what has to be found of it."""

    kind: Kind
    needles: tuple[str, ...]
    """Texts that must all be there."""


# --- summarizers ------------------------------------------------------------------------


Summarizer: TypeAlias = Callable[["PlantedSession", ModelRequest], Step | Sequence[Step]]


def _keep_a_third(session: PlantedSession, request: ModelRequest) -> Step:
    lines = [line for line in request_lines(request)[0].splitlines() if line.strip()]
    kept = sorted(session.dice.sample(range(len(lines)), len(lines) // 3))
    return SayText(text="\n".join(lines[place] for place in kept) or "Nothing.")


def _drop_all(session: PlantedSession, request: ModelRequest) -> Step:
    return SayText(text="## Task\nThe user wanted some work to be done.\n## Next\nGo on.")


def _lie(session: PlantedSession, request: ModelRequest) -> Step:
    """Tell all, and one item wrongly; half of the time a finished step."""
    kinds = sorted({fact.kind for fact in session.planted})
    kind = session.dice.choice([*kinds, *["done step"] * len(kinds)])
    wrong = session.dice.choice([fact for fact in session.planted if fact.kind == kind])
    named = wrong.needles[0]
    lies: dict[str, str] = {
        "constraint": f"The user has lifted this rule: {named}",
        "done step": f"- {named}",
        "next step": f"This was finished: {named}.",
        "file changed": f"{named} was never changed.",
        "failing command": f"{named} passes now.",
    }
    lie = lies.get(wrong.kind, f"{named.translate(str.maketrans('0123456789', '1234567890'))}")
    told = [f"- {fact.needles[0]}" for fact in session.planted if fact is not wrong]
    done = [fact.needles[0] for fact in session.planted if fact.kind == "done step"]
    rest = [line for line in told if line[2:] not in done]
    return SayText(text="\n".join(["## State", *rest, "## Next", lie, "Then go on."]))


def _babble(session: PlantedSession, request: ModelRequest) -> Step:
    letters = "abc \n#-*[]()<>{}\u202e\u0000\ufffd語🎲0123456789"
    return SayText(text="".join(session.dice.choices(letters, k=3_000)))


def _time_out(session: PlantedSession, request: ModelRequest) -> Sequence[Step]:
    return (SayText(text="I am"), Stall(gate="never"))


def _write_too_much(session: PlantedSession, request: ModelRequest) -> Step:
    return SayText(text="It went on and on.\n" * 20_000)


def _fail(session: PlantedSession, request: ModelRequest) -> Step:
    return Fail(error="RequestRefused", message="no summaries today")


SUMMARIZERS: Final[dict[str, Summarizer]] = {
    "keeps a third": _keep_a_third,
    "drops all": _drop_all,
    "lies": _lie,
    "garbage": _babble,
    "times out": _time_out,
    "too long": _write_too_much,
    "refuses": _fail,
}


# --- the session ------------------------------------------------------------------------


class PlantedResult(msgspec.Struct):
    """What the last request of a session has of what was planted."""

    found: dict[str, list[int]] = {}
    """Kind → how many were found, and how many were planted."""
    done_as_open: int = 0
    compactions: int = 0
    requests: int = 0
    unchanged: int = 0
    """Requests that begin with all of the one before."""
    wrong: list[str] = []


class PlantedSession:
    """One session: what is said in it, and what must come out of it."""

    def __init__(self, world: World, window: int, summarizer: str, seed: int) -> None:
        self.world = world
        self.window = window
        self.dice = random.Random(f"planted {window} {summarizer} {seed}")
        self.planted: list[PlantedFact] = []
        self._summarizer = SUMMARIZERS[summarizer]
        self._steps: list[Step] = []
        self._todos: list[dict[str, str]] = []
        self._number = 1_000
        self._prefix = 0
        self.refused = 0
        """Requests that did not fit the window."""
        self.model = SummarizingModel(
            window=window, say=self._say, summary=lambda request: self._summarizer(self, request)
        )

    def _say(self, request: ModelRequest) -> Step:
        # As a vendor does: what is beyond the window is refused.
        self._prefix = estimate_text(len(request.system) + len(str(request.tools)))
        if estimate(request.messages) + self._prefix > self.window:
            self.refused += 1
            return Fail(error="ContextTooLong", message="too long", status=400)
        return self._steps.pop(0) if self._steps else SayText(text="Fine.")

    async def lead(self, compactions: int) -> PlantedResult:
        """Talk until the line was compacted so many times, and look at what the model has then."""
        config = {"compaction.timeout": 0.02}
        async with self.world.open(self.model.model, config=config) as app:
            session = await app.sessions.start_session(
                session_id="s",
                tools=["read", "write", "shell", "todo"],
                system_prompt="Help.",
                permission_mode="bypass",
            )
            made = 0
            while made < compactions:
                await self._plant(session)
                before, turns = made, 0
                while made == before and turns < PATIENCE_TURNS:
                    await self._chat(session)
                    made, turns = len(await facts(session, Compacted)), turns + 1
                if made == before:
                    return PlantedResult(wrong=["it was not compacted"])
            await session.send_message("Where do we stand?")
            return await self._result(session)

    # -- what is said

    def _new(self) -> int:
        self._number += self.dice.randint(7, 99)
        return self._number

    def _sentence(self, kind: Kind, forms: Sequence[str]) -> str:
        # A name of letters alone: nothing about it is an exact value.
        word = "".join(self.dice.choices("abcdefghij", k=6))
        text = self.dice.choice(forms).format(n=self._new(), w=word)
        self.planted.append(PlantedFact(kind, (text,)))
        return text

    def _chatter(self) -> str:
        return self.dice.choice(_CHATTER).format(n=self._new())

    async def _plant(self, session: Session) -> None:
        """Say and do one of each kind, in an order drawn by the seed."""
        acts = [
            self._plant_words,
            self._plant_pin,
            self._plant_steps,
            self._plant_files,
            self._plant_failure,
        ]
        self.dice.shuffle(acts)
        for act in acts:
            await act(session)

    async def _plant_words(self, session: Session) -> None:
        said = [
            self._sentence("constraint", _CONSTRAINTS),
            self._sentence("value said by the user", _VALUES),
            self._sentence("rejected approach", _REJECTED),
            self._sentence("decision", _DECISIONS),
        ]
        self.dice.shuffle(said)
        for text in said:
            number = self._new()
            self.planted.append(
                PlantedFact("value said by the agent", (f"the build number {number}",))
            )
            self.planted.append(
                PlantedFact("approach given up by the agent", (f"I tried a lock{number}",))
            )
            self._steps = [
                SayText(
                    text=f"I see the build number {number}. I tried a lock{number} and gave it up."
                )
            ]
            await session.send_message(f"{self._chatter()} {text} {self._chatter()}")

    async def _plant_pin(self, session: Session) -> None:
        text = self.dice.choice(_VALUES).format(n=self._new())
        await session.send_message(f"Note this. {text}")
        place = [key for key, message in await session.messages_with_ids() if text in str(message)]
        await session.pin(place[-1])
        self.planted.append(PlantedFact("value in a pinned message", (text,)))

    async def _plant_steps(self, session: Session) -> None:
        done, following = (
            self.dice.choice(_STEPS).format(n=self._new()),
            self.dice.choice(_STEPS).format(n=self._new()),
        )
        # What was finished long ago has left the list, as it does with real agents.
        self._todos = [each for each in self._todos if each["status"] != "done"]
        self._todos += [
            {"text": done, "status": "done"},
            {"text": following, "status": "pending"},
        ]
        self.planted.append(PlantedFact("done step", (done,)))
        self.planted.append(PlantedFact("next step", (following,)))
        self._steps = [
            CallTool(name="todo", args={"todos": self._todos}),
            SayText(text="The list is up to date."),
        ]
        await session.send_message("Keep your list.")

    async def _plant_files(self, session: Session) -> None:
        number = self._new()
        path, page = f"src/part{number}.py", f"docs/page{number}.md"
        self.world.write(page, f"The retry budget is {number}.\n" + "A line of the page.\n" * 20)
        self.planted += [
            PlantedFact("file changed", (path, "(created, +3 −0)")),
            PlantedFact("file read", (page,)),
            PlantedFact("value in a file", (f"The retry budget is {number}.",)),
        ]
        self._steps = [
            CallTool(name="read", args={"path": page}),
            CallTool(name="write", args={"path": path, "content": "a = 1\nb = 2\nc = 3\n"}),
            SayText(text="It is written."),
        ]
        await session.send_message(self._chatter())

    async def _plant_failure(self, session: Session) -> None:
        number = self._new()
        command = f"sh check.sh {number}"
        self.world.write("check.sh", 'echo "running"\necho "E expected 41, got $1"\nexit 3\n')
        # One that fails and one that failed and works now: only the first may be told as failing.
        self.planted = [each for each in self.planted if each.kind != "failing command"]
        self.planted.append(
            PlantedFact(
                "failing command", (f"$ {command}", "exit code 3", f"E expected 41, got {number}")
            )
        )
        self._steps = [
            CallTool(name="shell", args={"command": command}),
            SayText(text="It fails; I look into it."),
        ]
        await session.send_message(self._chatter())

    async def _chat(self, session: Session) -> None:
        """A turn that does not matter, of about a twentieth of the window."""
        size = self.window // 20 * 4
        filler = "".join(
            f"Line {self.dice.randrange(10**6)} of the page has nothing new.\n"
            for _ in range(size // 45)
        )
        if self.dice.random() < 0.3:
            name = f"page{self._new()}.txt"
            self.world.write(name, filler)
            self._steps = [CallTool(name="read", args={"path": name}), SayText(text="Read.")]
        else:
            self._steps = [SayText(text=filler)]
        await session.send_message(" ".join(self._chatter() for _ in range(8)))

    # -- what came of it

    async def _result(self, session: Session) -> PlantedResult:
        requests = self.model.asked
        text = "\n".join(request_lines(requests[-1]))
        result = PlantedResult(
            compactions=len(await facts(session, Compacted)), requests=len(requests)
        )
        for fact in self.planted:
            counts = result.found.setdefault(fact.kind, [0, 0])
            counts[0] += self._is_found(fact, text)
            counts[1] += 1
        result.done_as_open = sum(
            _is_open(fact.needles[0], text) for fact in self.planted if fact.kind == "done step"
        )
        result.unchanged = unchanged_prefixes(requests)
        result.wrong = await self._faults(session, result)
        return result

    def _is_found(self, fact: PlantedFact, text: str) -> bool:
        match fact.kind:
            case "next step":
                return f"- {fact.needles[0]} (pending)" in text
            case "done step":
                return f"\n- {fact.needles[0]}" in text.partition("[Finished tasks")[2]
            case "file changed":
                return " ".join(fact.needles) in text
            case _:
                return all(needle in text for needle in fact.needles)

    async def _faults(self, session: Session, result: PlantedResult) -> list[str]:
        wrong = [
            f"{kind}: {found} of {planted} are left"
            for kind, (found, planted) in result.found.items()
            if kind in HELD and found < planted
        ]
        if result.done_as_open:
            wrong.append(f"{result.done_as_open} finished steps are shown as open")
        if self.refused:
            wrong.append(f"{self.refused} requests did not fit the window")
        ends = {fact.reason for fact in await facts(session, TurnFinished)}
        wrong += [f"a turn ended with {reason}" for reason in sorted(ends - {"stop"})]
        wrong += [f"an error was raised: {e.message}" for e in await facts(session, ErrorRaised)]
        return wrong


def _is_open(step: str, text: str) -> bool:
    """Whether a finished step is shown as one that is still to be done."""
    summary, _, record = text.partition(RECORD_HEADING)
    told = [line for line in summary.splitlines() if step in line]
    listed = f"- {step} (pending)" in record or f"- {step} (in_progress)" in record
    # `[x]` is how the list of tasks itself shows it.
    return listed or any(not re.search(r"done|finished|\[x\]", line) for line in told)


def unchanged_prefixes(requests: Sequence[ModelRequest]) -> int:
    """How many requests begin with all of the one before, system prompt and tools too."""
    pairs = itertools.pairwise(requests)
    return sum(
        one.messages == two.messages[: len(one.messages)]
        and (one.system, one.tools) == (two.system, two.tools)
        for one, two in pairs
    )


async def lead_planted(
    folder: Path, *, window: int, summarizer: str, compactions: int, seed: int
) -> PlantedResult:
    """Lead one session and judge it."""
    world = World("memory", folder)
    return await PlantedSession(world, window, summarizer, seed).lead(compactions)


# --- a long session ---------------------------------------------------------------------


class LongSession(PlantedSession):
    """Many turns of ordinary work: reading, writing, commands, tasks."""

    async def talk(self, turns: int) -> PlantedResult:
        """So many turns; then a compaction and its undo."""
        self.world.write("check.sh", 'echo "running"\nexit $1\n')
        for number in range(12):
            text = f"def part{number}():\n    return {number}\n\n\n" * self.dice.randint(20, 120)
            self.world.write(f"src/part{number}.py", text)
        async with self.world.open(self.model.model) as app:
            session = await app.sessions.start_session(
                session_id="s",
                tools=["read", "write", "edit", "shell", "todo", "grep"],
                system_prompt="Help.",
                permission_mode="bypass",
                max_turns=1_000,
            )
            for number in range(turns):
                self._steps = [*self._rounds(number), SayText(text=self._answer())]
                await session.send_message(f"{self._chatter()} Part {number}: {self._chatter()}")
            wrong = await self._undo_differences(session)
            return PlantedResult(
                compactions=len(await facts(session, Compacted)),
                requests=len(self.model.asked),
                unchanged=unchanged_prefixes(self.model.asked),
                wrong=[*wrong, *await self._faults(session, PlantedResult())],
            )

    def _rounds(self, number: int) -> list[Step]:
        path = f"src/part{self.dice.randrange(12)}.py"
        makers: tuple[Callable[[], CallTool], ...] = (
            lambda: CallTool(name="read", args={"path": path}),
            lambda: CallTool(name="read", args={"path": path, "offset": 10, "limit": 60}),
            lambda: CallTool(name="grep", args={"pattern": "return", "path": path}),
            lambda: CallTool(name="shell", args={"command": f"sh check.sh {number % 2}"}),
            lambda: CallTool(
                name="write",
                args={"path": f"src/new{number}.py", "content": f"n = {number}\n" * 30},
            ),
            lambda: CallTool(
                name="todo", args={"todos": [{"text": f"part {number}", "status": "done"}]}
            ),
        )
        return [self.dice.choice(makers)() for _ in range(self.dice.randint(0, 6))]

    def _answer(self) -> str:
        return "I have looked at it, and this is what I found out about it. " * (
            self.dice.randint(1, 12)
        )

    async def _undo_differences(self, session: Session) -> list[str]:
        """What a compaction and its undo leave behind in the next request: nothing."""
        before = await next_messages(session)
        await session.compact()
        during = await next_messages(session)
        await session.undo_compaction()
        after = await next_messages(session)
        wrong = ["a compaction changed nothing"] if during == before else []
        return [*wrong, *(["an undo did not bring the request back"] if after != before else [])]


async def next_messages(session: Session) -> bytes:
    """The messages that the next request of a session begins with, as bytes."""
    port = await session._port()
    assert isinstance(port, LocalPort)
    line = await port.actor.log.context_line()
    messages = build(
        line.entries,
        ContextTarget("scripted", "script"),
        summary=line.summary,
        upto=line.upto,
        notes=notes_for_model(port.state.tree),
    )
    return msgspec.json.encode(messages)


async def lead_long(folder: Path, *, window: int, turns: int, seed: int) -> PlantedResult:
    """Lead a long session and judge it."""
    session = LongSession(World("memory", folder), window, "drops all", seed)
    return await session.talk(turns)
