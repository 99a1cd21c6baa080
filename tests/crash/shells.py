"""Several command lines on one session: every accepted prompt is answered once, to its own sender.

`python -m tests.crash.shells` prints one JSON line; `--rounds 20 --seed 7` tries fewer, others, and
`--only 13` one of them.  A round starts two to five real processes on one session: runs with `-r`
and `-c` in every output format, and chats on a pseudo-terminal.  They are killed, closed and
suspended when the log has grown to places that the seed chooses, mostly the one that has the
session just then.

What is judged: the exit code and the answer of each process, then the log.  After a last process
has gone on with what was left, no prompt is there twice, each turn has ended once, and none waits.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import anyio
import apsw
import msgspec

from tests.support.crash.command_line import CommandLine, CommandLineEnd, Format
from tests.support.weft_program import WeftProgram, call, text
from weft.app import App, open_app
from weft.events import (
    AnyFact,
    InputQueued,
    InputRemoved,
    ModelCallStarted,
    NewMessage,
    QueuesRecalled,
    SessionStatus,
    TurnFinished,
    TurnStarted,
    decode,
)
from weft.ids import NodeId, SessionId, TurnId
from weft.session import load_state
from weft.store.sqlite import open_sqlite

FactT = TypeVar("FactT")
Fault: TypeAlias = Literal["kill", "term", "int", "hang_up", "stop", "suspend"]

SESSION = "ses_shells"
READY = "ready."
GOES_ON = "and so on."
"""What the model says to an answer of its own that was cut off."""
SIGNALS: dict[str, int] = {
    "kill": signal.SIGKILL,
    "term": signal.SIGTERM,
    "int": signal.SIGINT,
    "hang_up": signal.SIGHUP,
    "stop": signal.SIGSTOP,
    "suspend": signal.SIGSTOP,
}
ROUND_SECONDS = 90.0
"""The watchdog of a round; the patience with a suspended owner is a part of it."""
SUSPENDED = 15
"""In one round of so many the owner is suspended until all others have given up."""
SLOW_SECONDS = 1.5
TICK_SECONDS = 0.004
BLINK_SECONDS = 2.0
"""How long a process is stopped that no other may notice; well below their patience."""


class FaultPlan(msgspec.Struct, frozen=True):
    """What happens to whom, when the log has grown by so many facts."""

    fault: Fault
    after: int
    target: int | None
    """None: whichever process has the session then."""
    seconds: float = 0.0
    """How long it is stopped."""


class RoundPlan(msgspec.Struct, frozen=True):
    """What a seed and a number make of a round."""

    formats: tuple[Format, ...]
    names_session: tuple[bool, ...]
    """With `-r`, or with `-c`."""
    starts: tuple[int, ...]
    """How far the log has grown when each is started."""
    styles: tuple[str, ...]
    faults: tuple[FaultPlan, ...]

    def describe(self) -> str:
        """For the report."""
        each = [
            f"{format_} {'-r' if named else '-c'} at {start} ({style})"
            for format_, named, start, style in zip(
                self.formats, self.names_session, self.starts, self.styles, strict=True
            )
        ]
        faults = [
            f"{fault.fault} {'the owner' if fault.target is None else fault.target}"
            f" at {fault.after}"
            for fault in self.faults
        ]
        return "; ".join([*each, *faults])


def question(number: int) -> str:
    """What a process asks."""
    return f"question {number}."


def answer(number: int) -> str:
    """What it must be answered."""
    return f"answer {number}."


def planned(seed: int, number: int) -> RoundPlan:
    """The round of this number."""
    dice = random.Random(f"{seed}:{number}")
    count = dice.randint(2, 5)
    formats: list[Format] = [
        dice.choice(("text", "json", "json", "stream-json", "stream-json", "chat"))
        for _ in range(count)
    ]
    if number % SUSPENDED == SUSPENDED - 1:
        # A chat that is refused says so and waits for its user.
        formats = ["json" if format_ == "chat" else format_ for format_ in formats]
    starts = [0, *(dice.choice((0, 0, dice.randint(1, 6 * count))) for _ in range(count - 1))]
    return RoundPlan(
        formats=tuple(formats),
        names_session=tuple(dice.random() < 0.7 for _ in range(count)),
        starts=tuple(starts),
        styles=tuple(dice.choice(("whole", "pieces", "tool", "slow")) for _ in range(count)),
        faults=tuple(_faults(dice, number, formats)),
    )


def _faults(dice: random.Random, number: int, formats: Sequence[Format]) -> Iterator[FaultPlan]:
    most = 7 * len(formats)
    if number % SUSPENDED == SUSPENDED - 1:
        yield FaultPlan("suspend", dice.randint(1, most), None)
        return
    for _ in range(dice.choice((0, 1, 1, 2, 2, 3))):
        target = dice.choice((None, None, dice.randrange(len(formats))))
        fault: Fault = dice.choice(("kill", "kill", "term", "int", "hang_up", "stop", "stop"))
        # Ctrl-C in a chat interrupts the turn and ends nothing; a whole proof is about that.
        chats = formats if target is None else (formats[target],)
        if fault == "int" and "chat" in chats:
            fault = "term"
        yield FaultPlan(fault, dice.randint(1, most), target, dice.uniform(0.05, BLINK_SECONDS))


def script(weft: WeftProgram, plan: RoundPlan) -> str:
    """A model that answers each question in its style."""
    answers: list[dict[str, object]] = []
    for number, style in enumerate(plan.styles):
        asked, said = question(number), answer(number)
        # A slow answer lasts as long as a chat takes to start, so that what is said meets turns.
        pause = {"do": "pause", "seconds": SLOW_SECONDS if style == "slow" else 0.02}
        steps = [pause, text(said, 2 if style == "pieces" else 0)]
        if style == "tool":
            first = {"user_says": asked, "since": asked, "rounds": 0}
            answers.append({"when": first, "steps": [call("read", path="notes.txt")]})
        answers.append({"when": {"user_says": asked}, "steps": steps})
    answers.append({"when": {"user_says": "first question"}, "steps": [text(READY)]})
    return weft.script(*answers, GOES_ON, loop=True, pace_seconds=0.02)


class ShellRound:
    """One session, its processes, and what becomes of them."""

    def __init__(self, root: Path, plan: RoundPlan) -> None:
        self.weft = WeftProgram(root)
        self._root = root
        self._plan = plan
        self._db: apsw.Connection | None = None
        self._faults = list(plan.faults)
        self._waking: list[tuple[float, CommandLine]] = []
        self.suspended: CommandLine | None = None
        (self.weft.project / "notes.txt").write_text("a note\n")
        model = script(self.weft, plan)
        self.shells = [
            CommandLine(self.weft, root, str(number), format_, self._arguments(number, model))
            for number, format_ in enumerate(plan.formats)
        ]
        anyio.run(self._begin, model)

    def _arguments(self, number: int, model: str) -> list[str]:
        which = ["-r", SESSION] if self._plan.names_session[number] else ["-c"]
        return [*which, "-m", model, question(number)]

    def _app(self) -> App:
        environment = self.weft.environment
        return open_app(self.weft.project, self.weft.data / "weft.db", environ=environment)

    async def _begin(self, model: str) -> None:
        async with self._app() as app:
            session = await app.sessions.start_session(session_id=SESSION, model=model)
            await session.send_message("first question")

    # -- while they run

    def run(self) -> str:
        """Let the round happen; what is wrong already, or nothing."""
        self._db = apsw.Connection(str(self.weft.data / "weft.db"), flags=apsw.SQLITE_OPEN_READONLY)
        self._db.set_busy_timeout(1000)
        begun, base = time.monotonic(), self._seq()
        try:
            while not all(shell.has_ended for shell in self.shells):
                if time.monotonic() - begun > ROUND_SECONDS:
                    return f"{self._hanging()} hang"
                self._step(self._seq() - base)
                time.sleep(TICK_SECONDS)
        finally:
            self._wake(always=True)
            self._db.close()
        return ""

    def _step(self, grown: int) -> None:
        # The log does not grow by itself: where no process can work, the next one starts at once.
        running = any(shell.is_running for shell in self.shells) and self.suspended is None
        for shell, at in zip(self.shells, self._plan.starts, strict=True):
            if not shell.is_started and (grown >= at or not running):
                shell.start()
                running = True
        while self._faults and self._faults[0].after <= grown:
            self._inflict(self._faults.pop(0))
        self._wake()
        for number, shell in enumerate(self.shells):
            shell.tend(answer(number))

    def _inflict(self, plan: FaultPlan) -> None:
        shell = self._owner() if plan.target is None else self.shells[plan.target]
        if shell is None or not shell.is_running:
            return
        shell.signal(SIGNALS[plan.fault])
        if plan.fault == "stop":
            self._waking.append((time.monotonic() + plan.seconds, shell))
        if plan.fault == "suspend":
            self.suspended = shell

    def _wake(self, *, always: bool = False) -> None:
        now = time.monotonic()
        for due in [each for each in self._waking if each[0] <= now or always]:
            self._waking.remove(due)
            due[1].signal(signal.SIGCONT)
        others = [shell for shell in self.shells if shell is not self.suspended]
        is_over = always or all(shell.has_ended for shell in others)
        if self.suspended is not None and self.suspended.is_running and is_over:
            self.suspended.signal(signal.SIGCONT)

    def _owner(self) -> CommandLine | None:
        assert self._db is not None
        found = self._db.execute(
            "select pid from streams join processes using (process_id) where name = ?", (SESSION,)
        ).fetchall()
        owners = [shell for shell in self.shells if shell.is_running and (shell.pid,) in found]
        return owners[0] if owners else None

    def _seq(self) -> int:
        assert self._db is not None
        found = self._db.execute("select last_seq from streams where name = ?", (SESSION,))
        [(last_seq,)] = found.fetchall()
        assert isinstance(last_seq, int)
        return last_seq

    def _hanging(self) -> str:
        return ", ".join(shell.name for shell in self.shells if not shell.has_ended)

    # -- afterwards

    def settle(self) -> list[AnyFact]:
        """Go on with what was left, and read the log."""
        return anyio.run(self._settle)

    async def _settle(self) -> list[AnyFact]:
        with anyio.fail_after(ROUND_SECONDS):
            async with self._app() as app:
                session = await app.sessions.get(SESSION)
                if await session.get_status() == "interrupted":
                    await session.continue_and_wait()
                # What waits behind a turn that was aborted is sent after one that ends well.
                await session.send_message("first question, again")
                async with await session.subscribe() as events:
                    while any(await session.get_queued_messages()) or (
                        await session.get_status() != "idle"
                    ):
                        while not isinstance(await anext(events), SessionStatus):
                            pass
            async with await open_sqlite(self.weft.data / "weft.db") as store:
                await load_state(SessionId(SESSION), store)
                return [decode(record.body) for record in await store.read(SESSION)]

    def close(self) -> None:
        """End what still runs."""
        self.weft.close()


class LoggedRound:
    """What the log tells of each question."""

    def __init__(self, facts: Sequence[AnyFact]) -> None:
        self.is_whole = [fact.seq for fact in facts] == list(range(1, len(facts) + 1))
        self._nodes = {each.node.id: each.node for each in _of(facts, NewMessage)}
        self._ends = [(each.turn_id, each.reason) for each in _of(facts, TurnFinished)]
        self._calls = {each.node: each.turn_id for each in _of(facts, ModelCallStarted)}
        self._starts = {each.node: each.turn_id for each in _of(facts, TurnStarted)}
        self._queued = {
            each.entry_id: "".join(getattr(part, "text", "") for part in each.parts)
            for each in _of(facts, InputQueued)
        }
        self._taken_back = {each.entry_id for each in _of(facts, InputRemoved)}
        self._taken_back.update(
            entry for each in _of(facts, QueuesRecalled) for entry in each.entries
        )

    def asked(self, number: int) -> list[NodeId]:
        """The messages with this question."""
        return [
            node.id
            for node in self._nodes.values()
            if node.role == "user" and node.text == question(number)
        ]

    def was_accepted(self, number: int) -> bool:
        """It is on record, sent or queued."""
        return bool(self.asked(number)) or question(number) in self._queued.values()

    def was_taken_back(self, number: int) -> bool:
        """It was queued, and removed before it was sent."""
        entries = [entry for entry, said in self._queued.items() if said == question(number)]
        return bool(entries) and all(entry in self._taken_back for entry in entries)

    def turn(self, number: int) -> TurnId | None:
        """The turn that the question began; None when it was said during another's."""
        return next(
            (self._starts[node] for node in self.asked(number) if node in self._starts), None
        )

    def reasons(self, turn: TurnId) -> list[str]:
        """How a turn ended: one reason, unless something is wrong."""
        return [reason for ended, reason in self._ends if ended == turn]

    def answers(self, turn: TurnId) -> list[str]:
        """What was said in a turn, in order; what was cut off does not count."""
        return [
            node.text
            for node in self._nodes.values()
            if node.role == "assistant"
            and not node.is_partial
            and node.text
            and self._calls.get(node.id) == turn
        ]

    def was_cut_off(self, turn: TurnId) -> bool:
        """An answer of this turn broke off, and the model was asked again."""
        nodes = self._nodes.values()
        return any(node.is_partial and self._calls.get(node.id) == turn for node in nodes)

    def is_answered_later(self, number: int) -> bool:
        """Something was said after the question: it was heard in another's turn."""
        order = list(self._nodes.values())
        place = max(index for index, node in enumerate(order) if node.id in self.asked(number))
        return any(node.role == "assistant" and not node.is_partial for node in order[place:])

    def unfinished(self) -> list[TurnId]:
        """The turns that did not end exactly once."""
        return [turn for turn in {*self._starts.values()} if len(self.reasons(turn)) != 1]


def _of(facts: Iterable[AnyFact], kind: type[FactT]) -> list[FactT]:
    return [fact for fact in facts if isinstance(fact, kind)]


def judge(played: ShellRound, facts: Sequence[AnyFact]) -> list[str]:
    """What is wrong about a round."""
    log = LoggedRound(facts)
    wrong = [] if log.is_whole else ["the log has gaps"]
    wrong += [f"turn {turn} ended {len(log.reasons(turn))} times" for turn in log.unfinished()]
    for number, shell in enumerate(played.shells):
        ended = shell.end()
        gave_up = played.suspended not in (None, shell) and ended.code == 1
        said = _wrong_log(number, shell, log, gave_up) or (
            _wrong_refusal(number, ended, log, played.suspended)
            if gave_up
            else _wrong_end(number, shell, ended, log)
        )
        if said:
            wrong.append(f"process {number} ({shell.format}, signals {shell.signals}): {said}")
    return wrong


def _wrong_log(number: int, shell: CommandLine, log: LoggedRound, gave_up: bool) -> str:
    if len(log.asked(number)) > 1:
        return "its prompt is in the log twice"
    if not log.was_accepted(number) or log.was_taken_back(number):
        is_excused = bool(shell.signals) or gave_up
        return "" if is_excused else "its prompt was lost or taken back"
    if not log.asked(number):
        return "its prompt was accepted and never sent"
    turn = log.turn(number)
    if turn is None:
        return "" if log.is_answered_later(number) else "its prompt was never answered"
    [reason] = log.reasons(turn) or ["none"]
    # Who is killed or closed cannot answer for its own turn; everyone else's is finished.
    if reason != "stop" and not _was_ended(shell):
        return f"its turn ended with {reason!r}"
    expected = [answer(number), GOES_ON] if log.was_cut_off(turn) else [answer(number)]
    if reason == "stop" and not set(log.answers(turn)) & set(expected):
        return f"its turn says {log.answers(turn)!r}"
    if log.answers(turn).count(answer(number)) > 1:
        return "it was answered twice"
    return ""


def _was_ended(shell: CommandLine) -> bool:
    return any(each not in (signal.SIGSTOP, signal.SIGCONT) for each in shell.signals)


def _wrong_end(number: int, shell: CommandLine, ended: CommandLineEnd, log: LoggedRound) -> str:
    if ended.code not in _codes(shell):
        return f"it ended with {ended.code}: {ended.answer[-300:]!r} {ended.stderr[-300:]!r}"
    if shell.format == "chat":
        shows = answer(number) in ended.answer or GOES_ON in ended.answer
        return "" if shows or _was_ended(shell) else f"its screen: {ended.answer[-300:]!r}"
    if not ended.answer and ended.code:
        return ""
    turn = log.turn(number)
    last = log.answers(turn)[-1:] if turn is not None else []
    # One that is closed while it prints may have printed the part that it had.
    if ended.code and any(said.startswith(ended.answer) for said in [*last, answer(number)]):
        return ""
    if [ended.answer] == last and (ended.answer != GOES_ON or log.was_cut_off(turn or TurnId(""))):
        return "" if ended.answer in (answer(number), GOES_ON) else f"it says {ended.answer!r}"
    return f"it says {ended.answer!r}, its turn {last}; {ended.stderr[-300:]!r}"


def _wrong_refusal(
    number: int, ended: CommandLineEnd, log: LoggedRound, suspended: CommandLine | None
) -> str:
    """One that gave up on a suspended owner names it, and says truly whether it has begun."""
    assert suspended is not None
    said = ended.stderr or ended.answer
    if str(suspended.pid) not in said:
        return f"it does not name process {suspended.pid}: {said[-300:]!r}"
    if ended.terminal_reason == "not_started" and log.was_accepted(number):
        return "it says not_started of what was accepted"
    return ""


def _codes(shell: CommandLine) -> set[int]:
    """The codes that it may end with; a signal may come before its handler, or after its work."""
    codes = {0}
    for number in shell.signals:
        if number not in (signal.SIGSTOP, signal.SIGCONT):
            codes |= {-number, 128 + number} if number != signal.SIGKILL else {-number}
    return codes


def attempt(seed: int, number: int) -> str:
    """One round; what is wrong, with what happened in it."""
    plan = planned(seed, number)
    with tempfile.TemporaryDirectory(prefix="weft-shells-") as name:
        played = ShellRound(Path(name), plan)
        try:
            wrong = [said] if (said := played.run()) else []
            wrong = wrong or judge(played, played.settle())
        finally:
            played.close()
    return f"round {number} ({plan.describe()}): {'; '.join(wrong)}" if wrong else ""


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--only", type=int, default=None)
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    numbers = range(chosen.rounds) if chosen.only is None else [chosen.only]
    violations = 0
    for number in numbers:
        if said := attempt(chosen.seed, number):
            violations += 1
            print(said, file=sys.stderr, flush=True)
    line = {
        "claim": "shells",
        "n": len(numbers),
        "violations": violations,
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
    }
    print(json.dumps(line))
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
