"""Processes of journeys: forked from a parent that has imported everything and opened nothing,
heard through a pipe, and killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import os
import pkgutil
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

import weft
from tests.support.crash.journey import JourneyFolder
from tests.support.crash.journey_life import Input, Known, Life, Voice, live
from weft import faults
from weft.errors import Fenced, SessionStopped, WeftError
from weft.ids import CallUid

T = TypeVar("T")

A_LIFE_TAKES_AT_MOST_SECONDS = 60.0
"""A life takes a quarter of a second; this is for a machine that has other things to do."""


def import_everything() -> None:
    """Import all of Weft, so that every fail-point is known and no forked process reads source
    files.
    """
    for module in pkgutil.walk_packages(weft.__path__, "weft."):
        if module.name.rpartition(".")[2] != "__main__":
            importlib.import_module(module.name)


class Process:
    """One life in a process of its own."""

    def __init__(
        self, place: JourneyFolder, life: Life, patch: Callable[[], None] | None = None
    ) -> None:
        ear, voice = os.pipe()
        ears, mouth = os.pipe()
        sys.stderr.flush()
        self.life = life
        self.pid = os.fork()
        if self.pid == 0:
            os.close(ear)
            os.close(mouth)
            # What is planted here is logged, too; what matters is in the verdict.
            logging.getLogger("weft").setLevel(logging.CRITICAL)
            if patch is not None:
                patch()
            _be_born(place, life, Voice(voice), ears)
        os.close(voice)
        os.close(ears)
        self._ear, self._mouth = ear, mouth
        self._heard = b""
        self.ticks = 0
        self.said: list[list[Any]] = []
        self.status: int | None = None
        """How it ended: its exit code, or minus the signal."""

    def hear(self, seconds: float) -> bool:
        """Take in what it says next; False when it said nothing for so long."""
        if self.status is not None:
            return False
        ready, _, _ = select.select([self._ear], [], [], max(0.0, seconds))
        if not ready:
            return False
        portion = os.read(self._ear, 1 << 16)
        if not portion:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            return True
        *lines, self._heard = (self._heard + portion).split(b"\n")
        for line in lines:
            if line == b".":
                self.ticks += 1
            else:
                self.said.append(json.loads(line))
        return True

    def hear_until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Listen until something holds or the process has ended.

        False when the time is over first.
        """
        deadline = time.monotonic() + seconds
        while not holds() and self.status is None:
            if not self.hear(deadline - time.monotonic()):
                return False
        return True

    def end(self, seconds: float = A_LIFE_TAKES_AT_MOST_SECONDS) -> bool:
        """Listen to its end; False when it does not come."""
        return self.hear_until(lambda: False, seconds)

    def kill(self) -> None:
        """End it by SIGKILL, and hear what it had said."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.end()

    def stop(self) -> None:
        """Stop it by SIGSTOP, without ending it."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def go_on(self) -> None:
        """Let a stopped one go on."""
        os.kill(self.pid, signal.SIGCONT)

    def wake(self) -> None:
        """Let one that holds at its end go on."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._mouth, b"!")

    def close(self) -> None:
        """Make sure that nothing is left of it."""
        self.kill()
        os.close(self._ear)
        os.close(self._mouth)

    def words(self, word: str) -> list[list[Any]]:
        """What it said, of one kind."""
        return [said[1:] for said in self.said if said[0] == word]

    @property
    def is_finished(self) -> bool:
        return bool(self.words("finished"))

    @property
    def wrong(self) -> list[str]:
        """What it found wrong, or was wrong with it."""
        found = [str(each[0]) for each in self.words("wrong")]
        if self.status not in (0, -signal.SIGKILL, faults.EXIT_CODE):
            found.append(f"life {self.life.number} ended with {self.status}")
        return found

    def known(self) -> Known:
        """What the next life has to know."""
        before = self.life.known
        tried = [Input(input_id, delivery) for input_id, delivery in self.words("tried")]
        return Known(
            tried=(*before.tried, *(each for each in tried if each not in before.tried)),
            accepted=before.accepted | {each[0] for each in self.words("accepted")},
            doubts=before.doubts | {CallUid(each[0]) for each in self.words("doubt")},
        )


def next_life(process: Process, **changes: Any) -> Life:
    """The life after the one that `process` had."""
    before = process.life
    return Life(
        seed=before.seed,
        number=before.number + 1,
        known=process.known(),
        was_restarted=before.may_restart,
        **changes,
    )


def side_by_side(work: Sequence[Callable[[], T]], kind: type[T]) -> list[T]:
    """Do each piece of work in a process of its own, all at once; `kind` is what comes back from
    each.

    Raises:
        RuntimeError: one died of something else than what it looks for.
    """
    workers = [_start_worker(each) for each in work]
    found: list[T] = []
    for pid, ear in workers:
        with open(ear, "rb") as pipe:
            sent = pipe.read()
        os.waitpid(pid, 0)
        if not sent:
            raise RuntimeError("a worker died")
        found.append(msgspec.json.decode(sent, type=kind))
    return found


def _start_worker(work: Callable[[], object]) -> tuple[int, int]:
    ear, mouth = os.pipe()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        os.close(mouth)
        return pid, ear
    code = 1
    try:
        os.close(ear)
        with open(mouth, "wb") as pipe:
            pipe.write(msgspec.json.encode(work()))
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _be_born(place: JourneyFolder, life: Life, voice: Voice, ears: int) -> None:
    code = 1
    try:
        asyncio.run(live(place, life, voice, ears))
        code = 0
    except (Fenced, SessionStopped) as error:
        voice.say("lost", str(error))
        code = 0
    except WeftError as error:
        voice.say("wrong", f"life {life.number}: {type(error).__name__}: {error}")
        code = 0
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)
