"""Races: two to eight processes want one session, and its holder is stopped or killed in the middle
of its work.

`python -m tests.crash.races --n 300 --seed 1` prints one JSON line.  In each race a holder appends
to the session and, in the same group commits, to three neighbours.  It is stopped (SIGSTOP) or
killed at a random moment.  The others then want the session: from a living holder, even a stopped
one, they get it only on demand; from a dead one at once.  They write, and take it from each other.
A stopped holder goes on (SIGCONT) with what it had in hand.

The verdict is read from the file itself: the session has no gap; fences never go back along it, so
no two holders are interleaved; everything acknowledged is there, nothing refused is; the stale
holder is refused every time it tries, and its neighbours never.  The same with the fence not looked
at must find interleavings (`teeth` in the line; `--show-teeth` tells them one by one).

Workers are forked from a parent that has imported everything and opened nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import apsw

from weft.errors import Conflict, Fenced, Owned, StoreUnavailable
from weft.store import Append, Lease, Record
from weft.store.checks import check_place
from weft.store.sqlite import SqliteStore, appends, open_sqlite
from weft.store.sqlite.writer import JobResult

SESSION = "ses_wanted"
NEIGHBOURS = tuple(f"ses_beside_{number}" for number in range(3))
FIRST_FENCE = 1
MOST_ROUNDS = 400
TRIES_WHEN_STALE = 3
PATIENCE_SECONDS = 0.15
A_RACE_TAKES_AT_MOST_SECONDS = 60.0


# -- the workers


class Voice:
    """The pipe from a worker to the parent: one line for everything worth knowing, so that a killed
    worker has said it too.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def say(self, word: str, *values: object) -> None:
        os.write(self._fd, (json.dumps([word, *values]) + "\n").encode())


async def hold(path: Path, voice: Voice, ears: int) -> None:
    """The first holder: append to the session and its neighbours until the session is refused."""
    async with await open_sqlite(path) as store:
        _listen_to_groups(store, voice)
        leases = {
            name: await store.take_lease(name) for name in (*NEIGHBOURS[:2], SESSION, NEIGHBOURS[2])
        }
        voice.say("ready")
        await asyncio.to_thread(os.read, ears, 1)
        refusals = 0
        for number in range(MOST_ROUNDS):
            told = await asyncio.gather(
                *(_append(store, lease, f"holder-{number}", voice) for lease in leases.values())
            )
            refusals += not all(told)
            if refusals == TRIES_WHEN_STALE:
                break


async def want(path: Path, voice: Voice, ears: int, name: str, *, holder_lives: bool) -> None:
    """Take the session, politely first, then by force; write a little; lose it to the next one."""
    async with await _open_impatiently(path) as store:
        voice.say("ready")
        await asyncio.to_thread(os.read, ears, 1)
        lease = await _take(store, voice, steal=False)
        if lease is not None and holder_lives:
            voice.say("granted", lease.fence)
        if lease is None:
            lease = await _take(store, voice, steal=True)
        assert lease is not None
        voice.say("has", lease.fence)
        for number in range(5):
            if not await _append(store, lease, f"{name}-{number}", voice):
                break


async def _open_impatiently(path: Path) -> SqliteStore:
    """The store with little patience for a stopped process.

    Opening it may take as many tries as a busy machine needs.
    """
    while True:
        with contextlib.suppress(StoreUnavailable):
            return await open_sqlite(path, busy_seconds=PATIENCE_SECONDS)


async def _take(store: SqliteStore, voice: Voice, *, steal: bool) -> Lease | None:
    """The lease, or None when a living process has it.

    A file that a stopped process has locked is waited for.
    """
    while True:
        try:
            return await store.take_lease(SESSION, steal=steal)
        except Owned:
            return None
        except StoreUnavailable:
            voice.say("locked")


async def _append(store: SqliteStore, lease: Lease, name: str, voice: Voice) -> bool:
    """Append one fact, reading on after a conflict as a naive client does.

    False when the lease was refused.
    """
    while True:
        end = await store.last_seq(lease.stream)
        body = f"{lease.fence}:{name}:{end}"
        record = Record(end + 1, 0.0, "k", body.encode())
        add = Append(stream=lease.stream, expected_seq=end, records=(record,), fence=lease.fence)
        try:
            await store.append(add)
        except Conflict:
            continue
        except Fenced:
            voice.say("refused", lease.stream, body)
            return False
        except StoreUnavailable:
            voice.say("locked")
            continue
        voice.say("told", lease.stream, end + 1, body)
        return True


def _listen_to_groups(store: SqliteStore, voice: Voice) -> None:
    """Say when one group held a refused append and others that went through."""
    deliver = store._writer._deliver

    def listened(group: Sequence[JobResult]) -> None:
        refused = [done for done in group if isinstance(done.error, Fenced)]
        passed = [done for done in group if done.error is None]
        if refused and passed:
            voice.say("mixed")
        deliver(group)

    store._writer._deliver = listened


def _ignore_the_fence(append: Append, *, last_seq: int, fence: int, is_held: bool) -> None:
    """`check_place` without its first half: what the teeth are shown with."""
    check_place(append, last_seq=last_seq, fence=append.fence or 0, is_held=True)


# -- the parent


class Worker:
    """A forked process, what it says and what it hears."""

    def __init__(self, work: Callable[[Voice, int], Coroutine[Any, Any, None]]) -> None:
        read_end, voice = os.pipe()
        ears, write_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read_end)
            os.close(write_end)
            _be_a_worker(work, Voice(voice), ears)
        os.close(voice)
        os.close(ears)
        self._mouth = write_end
        self._ear = read_end
        self._heard = b""
        self.said: list[list[Any]] = []
        self.status: int | None = None

    def wake(self) -> None:
        """Let it go on."""
        os.write(self._mouth, b"!")

    def words(self, word: str) -> list[list[Any]]:
        """What it said, of one kind."""
        return [said for said in self.said if said[0] == word]

    def hear(self) -> None:
        """Take in one portion of what it says; `status` is set when it has ended."""
        portion = os.read(self._ear, 1 << 16)
        if portion:
            *lines, self._heard = (self._heard + portion).split(b"\n")
            self.said += [json.loads(line) for line in lines]
        elif self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> None:
        """End it, if it is still there."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._mouth)
        os.close(self._ear)

    @property
    def ear(self) -> int:
        return self._ear


def _be_a_worker(
    work: Callable[[Voice, int], Coroutine[Any, Any, None]], voice: Voice, ears: int
) -> None:
    code = 1
    try:
        asyncio.run(work(voice, ears))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def race(folder: Path, dice: random.Random, *, is_fenced: bool = True) -> tuple[list[str], int]:
    """One race; returns what was wrong, and how many groups held a refusal beside a success."""
    path = folder / "weft.db"
    kills = dice.random() < 0.3
    if not is_fenced:
        setattr(appends, "check_place", _ignore_the_fence)  # noqa: B010  # the seam is a test's own
    workers: list[Worker] = []
    try:
        workers.append(Worker(lambda voice, ears: hold(path, voice, ears)))
        for number in range(dice.randint(1, 7)):
            name = f"wanter{number}"
            workers.append(
                Worker(
                    lambda voice, ears, name=name: want(  # type: ignore[misc]  # bound on purpose
                        path, voice, ears, name, holder_lives=not kills
                    )
                )
            )
        is_over = _conduct(workers, dice, kills=kills)
    finally:
        setattr(appends, "check_place", check_place)  # noqa: B010  # as above
        for worker in workers:
            worker.close()
    wrong = [] if is_over else ["the race did not end"]
    wrong += _verdict(path, workers, kills=kills)
    return wrong, len(workers[0].words("mixed"))


def _conduct(workers: list[Worker], dice: random.Random, *, kills: bool) -> bool:
    holder, wanters = workers[0], workers[1:]
    deadline = time.monotonic() + A_RACE_TAKES_AT_MOST_SECONDS
    if not _until(lambda: all(worker.words("ready") for worker in workers), workers, deadline):
        return False
    holder.wake()
    at = dice.randint(0, 15)
    _until(lambda: len(holder.words("told")) >= at, workers, deadline)
    time.sleep(dice.uniform(0, 0.002))
    os.kill(holder.pid, signal.SIGKILL if kills else signal.SIGSTOP)
    if kills:
        _until(lambda: holder.status is not None, workers, deadline)
    else:
        os.waitpid(holder.pid, os.WUNTRACED)
    for worker in wanters:
        worker.wake()
    if not kills:
        # A holder that was stopped with the file locked lets nobody through, so it has to go on
        # first.
        wanted = dice.choice(("has", "told"))
        _until(
            lambda: any(w.words(wanted) or w.words("locked") for w in wanters), workers, deadline
        )
        os.kill(holder.pid, signal.SIGCONT)
    return _until(lambda: all(worker.status is not None for worker in workers), workers, deadline)


def _until(holds: Callable[[], bool], workers: list[Worker], deadline: float) -> bool:
    while not holds():
        ears = {worker.ear: worker for worker in workers if worker.status is None}
        ready, _, _ = select.select(list(ears), [], [], max(0, deadline - time.monotonic()))
        if not ready:
            return False
        for ear in ready:
            ears[ear].hear()
    return True


def _verdict(path: Path, workers: list[Worker], *, kills: bool) -> list[str]:
    holder, wanters = workers[0], workers[1:]
    wrong = [
        f"worker {n} ended with {w.status}" for n, w in enumerate(workers) if _failed(w, n, kills)
    ]
    logs = {name: _log(path, name) for name in (SESSION, *NEIGHBOURS)}
    for name, log in logs.items():
        if [seq for seq, _ in log] != list(range(1, len(log) + 1)):
            wrong.append(f"{name} has a gap")
    fences = [int(body.split(":")[0]) for _, body in logs[SESSION]]
    if fences != sorted(fences):
        runs = [fence for fence, _ in itertools.groupby(fences)]
        wrong.append(f"two holders are interleaved: {runs[:20]}")
    there = {(name, seq): body for name, log in logs.items() for seq, body in log}
    bodies = {(name, body) for name, log in logs.items() for _, body in log}
    for worker in workers:
        for _, name, seq, body in worker.words("told"):
            if there.get((name, seq)) != body:
                wrong.append(f"{body} was acknowledged in {name} and is not there")
        wrong += [
            f"{body} was refused in {name} and is there"
            for _, name, body in worker.words("refused")
            if (name, body) in bodies
        ]
    refused = [name for _, name, _ in holder.words("refused")]
    if any(name != SESSION for name in refused):
        wrong.append("a neighbour was refused")
    if not kills and refused.count(SESSION) != TRIES_WHEN_STALE:
        wrong.append(f"the stale holder was refused {refused.count(SESSION)} times")
    # Later leases may be free, because a wanter that is done gives its own back.
    if any(fence == FIRST_FENCE + 1 for w in wanters for _, fence in w.words("granted")):
        wrong.append("the lease was given away under a living holder")
    wrong += ["a wanter never got the session" for w in wanters if not w.words("has")]
    return wrong


def _failed(worker: Worker, number: int, kills: bool) -> bool:
    return worker.status != (-signal.SIGKILL if kills and number == 0 else 0)


def _log(path: Path, stream: str) -> list[tuple[int, str]]:
    """The facts of a stream as they are in the file, read without the store."""
    db = apsw.Connection(str(path))
    try:
        found = db.execute(
            "select seq, body from facts join streams using (stream_no) where name = ? "
            "order by seq",
            (stream,),
        ).fetchall()
    finally:
        db.close()
    # A blob.
    return [(int(str(seq)), bytes(body).decode()) for seq, body in found]  # type: ignore[arg-type]


def run(n: int, seed: int, *, is_fenced: bool = True, is_quiet: bool = False) -> tuple[int, int]:
    """Run `n` races; returns how many went wrong, and how many groups were mixed.

    What went wrong is told on stderr, unless it is quiet.
    """
    dice = random.Random(f"{seed}-{is_fenced}")
    violations = mixed = 0
    for _ in range(n):
        one = dice.getrandbits(32)
        folder = Path(tempfile.mkdtemp(prefix="races-"))
        wrong, in_groups = race(folder, random.Random(one), is_fenced=is_fenced)
        shutil.rmtree(folder)
        mixed += in_groups
        violations += bool(wrong)
        if wrong and not is_quiet:
            label = (
                f"seed {one}" if is_fenced else f"as it must be with the fence ignored, seed {one}"
            )
            print(f"{label}: {'; '.join(wrong)}", file=sys.stderr)
    return violations, mixed


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line; without the fence the harness must find interleavings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show-teeth", action="store_true", help="tell what the teeth found, too")
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    violations, mixed = run(chosen.n, chosen.seed)
    teeth_n = max(4, chosen.n // 20)
    bitten, _ = run(teeth_n, chosen.seed, is_fenced=False, is_quiet=not chosen.show_teeth)
    line = {
        "claim": "races",
        "n": chosen.n,
        "violations": violations,
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
        "groups_with_a_refusal_and_a_success": mixed,
        "teeth": {"fence": "ignored", "n": teeth_n, "violations": bitten},
    }
    print(json.dumps(line))
    return int(bool(violations) or not bitten or not mixed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
