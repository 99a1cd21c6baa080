"""Random work on random projects, taken back: afterwards every tree is byte for byte, mode for
mode, what it was.

`python -m tests.crash.rewinds --n 200 --seed 1` prints one JSON line.  A sequence is some lives of
one session, each in a process of its own.  The first ones work: turns with edits and shell commands
(append, sed, rm, mv, chmod, links, whole folders), branches, switches, checkpoints, overflows of
the kernel's queue, and now and then a death right after a command ran, before it is on record, or
(in the sandbox) while what it changed is being put into the project.  At each message and
checkpoint the whole tree is written down.  Then the session goes back to random ones of these
places, and undoes it, and may die at any fail-point on the way; the next life finishes it.
Meanwhile a person works beside, in files of their own and in files that the session left: not one
of their bytes may change.

All of it twice: with commands that run as they are and are watched, and with commands in the
sandbox, where this machine has one.

With `--plant` a fault is planted, and the line must count violations: `preimage` keeps nothing of
what commands are about to change and of what they leave, `left` does not look whether a file is
still what the session left, `overflow` believes that no event was ever lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

import weft
from tests.support.crash.journey_process import import_everything, side_by_side
from tests.support.file_tree import TreeEntry, differing_paths, tree
from weft import faults
from weft.api.session import Session
from weft.app import App
from weft.config.setting_keys import KEYS
from weft.providers import ModelInfo, ModelRequest
from weft.providers.script import CallTool, SayText, Step
from weft.providers.scripted import ScriptedModel, ScriptedProvider
from weft.workspace.history.history import FileHistory
from weft.workspace.history.inotify import OVERFLOW
from weft.workspace.history.watchers import WATCHED
from weft.workspace.sandbox.overlay_apply import OverlayApplier
from weft.workspace.writes.atomic_write import OURS

WORKERS = 2
MINE = "mine"
"""The person's own folder."""
FOLDERS = ("src", "src/a", "src/a/b", "lib", "docs")
NAMES = ("x.py", "y.txt", "z", "dos.txt")
COMMANDS = (
    "echo '{text}' >> {file}",
    "printf '{text}\\r\\n' > {file}",
    "sed -i 's/e/E/g' {file}",
    "rm -f {file}",
    "rm -rf {folder}",
    "mkdir -p {folder}/{name}.d && echo '{text}' > {folder}/{name}.d/{name}",
    "mkdir -p {folder}",
    "mv {file} {other}",
    "mv -T {folder} {folder2}",
    "mv {folder} moved-{number}",
    "chmod {mode} {file}",
    "chmod {folder_mode} {folder}",
    "ln -sfn {file} {other}",
    "ln -sfn {folder} link-{name}",
    "ln -f {file} {other}",
    "cp -p {file} {other}",
    "rm -f {file}; mkdir -p {file}; echo '{text}' > {file}/inside",
    "rm -rf {folder}; echo '{text}' > {folder}",
    "head -c 70000 /dev/urandom > {file}",
    "for i in $(seq 60); do echo $i > {folder}/many-$i; done",
    "rm -f {folder}/many-*",
    "git add -A >/dev/null && git -c user.name=n -c user.email=e commit -qm x; git stash -q",
    "echo '*.tmp' >> .gitignore; mkdir -p ignoring; touch ignoring/{number}.tmp",
)
POINTS = (
    "session.rewind.before",
    "session.rewind.after",
    "session.rewind.between_files",
    "workspace.restore.before_rename",
    "workspace.restore.after_rename",
    "session.rewound.before",
    "session.rewound.after",
)

Plant: TypeAlias = Literal["", "preimage", "left", "overflow"]
Tree: TypeAlias = dict[str, TreeEntry]


class Notes(msgspec.Struct):
    """What the lives of one sequence tell each other."""

    trees: dict[str, Tree] = {}
    """Place (a message's id, `checkpoint:label`, or "" for the beginning) → what the project was
    there.
    """
    theirs: Tree = {}
    """The person's own folder."""
    goal: Tree | None = None
    """What a rewind that was begun must come to."""
    before: Tree | None = None
    """What there was before it."""
    by_hand: Tree = {}
    """What the session had left where the person has changed something since."""
    done: int = 0
    """Rewinds that were judged."""
    kinds: dict[str, int] = {}
    """What was tried, and how often."""
    wrong: list[str] = []

    def count(self, kind: str) -> None:
        self.kinds[kind] = self.kinds.get(kind, 0) + 1


class Tally(msgspec.Struct):
    """What came of some sequences."""

    sequences: int = 0
    rewinds: int = 0
    kinds: dict[str, int] = {}
    wrong: list[str] = []

    def add(self, other: Tally) -> None:
        """Take another one's numbers in."""
        self.sequences += other.sequences
        self.rewinds += other.rewinds
        self.wrong += other.wrong
        for kind, times in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + times


class Ground(msgspec.Struct, frozen=True):
    """Where one sequence happens."""

    base: Path
    seed: int
    plant: Plant
    sandbox: str

    @property
    def project(self) -> Path:
        return self.base / "project"

    def now(self) -> Tree:
        """What the session is answerable for: everything but version control and the person's own
        folder.
        """
        return tree(self.project, skip=(".git", MINE, "ignoring"))

    def theirs(self) -> Tree:
        return tree(self.project / MINE)

    def notes(self) -> Notes:
        return msgspec.msgpack.decode((self.base / "notes").read_bytes(), type=Notes)

    def keep(self, notes: Notes) -> None:
        (self.base / "notes").write_bytes(msgspec.msgpack.encode(notes))

    def make(self) -> None:
        """A project: with a repository or without, with links, odd modes and line ends, and
        something ignored.
        """
        dice = random.Random(f"project {self.seed}")
        for folder in FOLDERS:
            (self.project / folder).mkdir(parents=True, exist_ok=True)
            for name in dice.sample(NAMES, 3):
                file = self.project / folder / name
                file.write_bytes(f"{folder} {name}\r\nline\n".encode() * dice.randint(0, 40))
                file.chmod(dice.choice([0o644, 0o600, 0o755]))
        (self.project / "lib").chmod(dice.choice([0o755, 0o700]))
        (self.project / "to-docs").symlink_to("docs")
        (self.project / "dangling").symlink_to("no/where")
        (self.project / "empty").mkdir()
        if dice.random() < 0.6:
            (self.project / ".gitignore").write_text("cache/\n*.o\n")
        (self.project / MINE).mkdir()
        (self.project / MINE / "notes.txt").write_text("mine\n")
        if dice.random() < 0.6:
            subprocess.run(["git", "init", "-q", self.project], check=True)
        if dice.random() < 0.3:
            # Where nobody moves it: its `.git` is not ours to move back.
            subprocess.run(["git", "init", "-q", self.project / "vendor"], check=True)
            (self.project / "vendor" / "x.py").write_text("vendored\n")
        self.keep(Notes(trees={"": self.now()}, theirs=self.theirs()))


# --- what the model does ---------------------------------------------------------------------


def some_calls(dice: random.Random) -> list[Step]:
    """One answer: a command of some lines, or edits."""
    if dice.random() < 0.3:
        path = f"{dice.choice([*FOLDERS, 'new/er'])}/{dice.choice(['w1', 'w2'])}-{dice.random()}"
        return [CallTool(name="write", args={"path": path, "content": f"{dice.random()}\r\n"})]
    if dice.random() < 0.2:
        path = f"{dice.choice(FOLDERS)}/{dice.choice(NAMES)}"
        edit = {"path": path, "old_string": "line", "new_string": "LINE", "replace_all": True}
        return [CallTool(name="read", args={"path": path}), CallTool(name="edit", args=edit)]
    lines = [some_line(dice) for _ in range(dice.randint(1, 5))]
    return [CallTool(name="shell", args={"command": "\n".join(lines)})]


def some_line(dice: random.Random) -> str:
    def file() -> str:
        return f"{dice.choice([*FOLDERS, '.', 'vendor'])}/{dice.choice(NAMES)}"

    line = dice.choice(COMMANDS).format(
        text=f"text {dice.random()}",
        file=file(),
        other=file(),
        folder=dice.choice(FOLDERS),
        folder2=dice.choice(FOLDERS),
        name=dice.choice(NAMES),
        number=dice.randint(1, 3),
        mode=dice.choice(["600", "644", "755", "400"]),
        folder_mode=dice.choice(["700", "755", "555"]),
    )
    return f"{{ {line}; }} 2>/dev/null || true"


def model_of(dice: random.Random, turns: int) -> ScriptedModel:
    """Answers with calls, and an end after one, two or three of them."""
    left = 0

    def choose(request: ModelRequest) -> Sequence[Step]:
        nonlocal left
        if left == 0:
            left = dice.randint(1, 3) + 1
        left -= 1
        return [SayText(text="done")] if left == 0 else some_calls(dice)

    info = ModelInfo(provider="scripted", name="m", price_input=0.0, price_output=0.0)
    return ScriptedModel((), choose=choose, info=info)


# --- lives -----------------------------------------------------------------------------------


def opened(ground: Ground, model: ScriptedModel) -> App:
    config: dict[str, Any] = {"model.default": "scripted:m"}
    if "sandbox.mode" in KEYS:
        config["sandbox.mode"] = ground.sandbox
    home = str(ground.base / "home")
    return weft.open(
        ground.project,
        ground.base / "weft.db",
        config,
        environ={"HOME": home, "WEFT_HOME": home, "PATH": os.environ["PATH"]},
        providers={"scripted": ScriptedProvider({"m": model})},
    )


async def begin(app: App) -> Session:
    return await app.sessions.start_session(session_id="s", auto_approve=True, max_turns=500)


async def work(ground: Ground, number: int) -> None:
    """Some turns, with whatever else happens between them."""
    dice = random.Random(f"work {ground.seed} {number}")
    notes = ground.notes()
    async with opened(ground, model_of(dice, 4)) as app:
        session = await begin(app)
        await judge_what_was_left(session, ground, notes)
        if number > 1:
            await settle(session)
        for turn in range(dice.randint(2, 4)):
            await between(session, ground, notes, dice)
            notes.theirs = ground.theirs()
            ground.keep(notes)
            if number > 1 and turn == 0 and dice.random() < 0.3:
                notes.count("died after a command")
                ground.keep(notes)
                faults.arm("loop.tool.after_run", at=1)
            elif ground.sandbox != "off" and number > 1 and turn == 0 and dice.random() < 0.5:
                notes.count("died while changes were put in")
                ground.keep(notes)
                die_after_steps(dice.randint(1, 8))
            if dice.random() < 0.3 and lose_events(ground):
                notes.count("overflow")
            await session.send_message(f"turn {number}.{turn}")
            notes.trees[(await spoken(session))[-1]] = ground.now()
            notes.count("turn" if ground.sandbox == "off" else "sandboxed turn")
        ground.keep(notes)


def die_after_steps(steps: int) -> None:
    """Die when so much of what sandboxed commands changed is in the project.

    A life that changes less goes on.
    """
    run = OverlayApplier.run
    left = steps

    def count() -> None:
        nonlocal left
        left -= 1
        if not left:
            os._exit(9)

    # A death, planted.
    setattr(OverlayApplier, "run", lambda self, steps: run(self, steps, count))  # noqa: B010


async def spoken(session: Session) -> list[str]:
    """The ids of what was said, by the person and the model."""
    rows = await session.messages_with_ids()
    return [each for each, message in rows if message.role in ("user", "assistant")]


async def settle(session: Session) -> None:
    """Go on where a dead process left a turn, or leave it."""
    if await session.get_status() == "interrupted":
        await session.add_system_message("here I am again")
        await session.branch_at((await spoken(session))[0])


async def between(session: Session, ground: Ground, notes: Notes, dice: random.Random) -> None:
    """The person moves in the tree, names a place, works on their own files."""
    (ground.project / MINE / f"f{dice.randint(1, 5)}").write_text(str(dice.random()))
    ids = await spoken(session)
    what = dice.random()
    if what < 0.2 and ids:
        await session.branch_at(dice.choice(ids))
        notes.count("branch")
    elif what < 0.4:
        names = [branch.name for branch in await session.list_branches()]
        await session.switch_branch(dice.choice(names))
        notes.count("switch")
    if dice.random() < 0.3:
        label = await session.checkpoint()
        notes.trees[f"checkpoint:{label}"] = ground.now()
        notes.count("checkpoint")


def lose_events(ground: Ground) -> bool:
    """Let the kernel's queue overflow while the next command runs: its events are gone, and only
    that is told.

    False when nothing is watched yet.
    """
    history = WATCHED.get(str(ground.project.resolve()))
    if not isinstance(history, FileHistory) or history._index is None:
        return False
    watcher = history._index.watcher
    if watcher is None:
        return False
    read = watcher.read
    was_running = False

    def overflowing() -> bytes:
        nonlocal was_running
        if not history._runs:
            if was_running:
                setattr(watcher, "read", read)  # noqa: B010  # the command is over
            return read()
        was_running = True
        is_lost = False
        while read():
            is_lost = True
        return struct.pack("iIII", -1, OVERFLOW, 0, 0) if is_lost else b""

    # The queue itself cannot be made shorter for one process.
    setattr(watcher, "read", overflowing)  # noqa: B010
    return True


async def go_back(ground: Ground, number: int) -> None:
    """Finish what was left, judge it, then go back somewhere else; maybe die on the way."""
    dice = random.Random(f"back {ground.seed} {number}")
    notes = ground.notes()
    async with opened(ground, model_of(dice, 0)) as app:
        session = await begin(app)
        await judge_what_was_left(session, ground, notes)
        # What a dead process had begun to put into the project is finished with the first command,
        # so that it is there to be undone to.
        await settle(session)
        place = dice.choice(sorted(notes.trees))
        to = place.removeprefix("checkpoint:") or None
        undoes = dice.random() < 0.3 and number > 1
        preview = await session.rewind(to, preview=True)
        notes.before = ground.now()
        theirs = by_hand(ground, notes, preview.files, place, dice)
        notes.goal = with_theirs(notes.trees[place], ground.now(), theirs)
        notes.before = ground.now()
        notes.theirs = ground.theirs()
        ground.keep(notes)
        if dice.random() < 0.3:
            faults.arm(dice.choice(POINTS), at=dice.randint(1, 6))
            notes.count("armed")
            ground.keep(notes)
        # What changed while no session looked goes back only if the user says so.
        unsure = [
            item.path
            for item in preview.files
            if item.action == "conflict" and "could not be observed" in item.reason
        ]
        await session.rewind(to, overwrite=[path for path in unsure if path not in theirs])
        faults.disarm_all()
        judge(ground, notes, f"rewind to {place!r}")
        if undoes:
            notes.goal = notes.before
            ground.keep(notes)
            await session.undo_rewind()
            judge(ground, notes, f"undoing the rewind to {place!r}")
            notes.count("undo")
        take_back_by_hand(ground, notes)
        notes.goal = None
        ground.keep(notes)


async def judge_what_was_left(session: Session, ground: Ground, notes: Notes) -> None:
    """A life before died in a rewind: it is finished with the next command, or never was."""
    if notes.goal is None:
        return
    await session.add_system_message("here I am again")
    if differing_paths(ground.now(), notes.before or {}):
        judge(ground, notes, "a rewind that was cut short")
    notes.count("died in a rewind")
    take_back_by_hand(ground, notes)
    notes.goal = None


def by_hand(
    ground: Ground, notes: Notes, items: Sequence[Any], place: str, dice: random.Random
) -> list[str]:
    """The person changes a file or two that the session left behind; returns which."""
    target = notes.trees[place]
    fit = [
        item.path
        for item in items
        if item.action in ("restore", "delete")
        and is_plain_file(ground.project / item.path)
        and not _is_folder(target.get(item.path))
        and all(_may_stay(target.get(above)) for above in _above(item.path))
    ]
    chosen = dice.sample(fit, min(len(fit), dice.randint(0, 2))) if dice.random() < 0.5 else []
    for path in chosen:
        notes.by_hand[path] = ground.now()[path]
        # A new file in its place: one with several names would change under the other names as
        # well.
        (ground.project / path).unlink()
        (ground.project / path).write_text(f"by hand {dice.random()}\n")
        notes.count("by hand")
    return chosen


def take_back_by_hand(ground: Ground, notes: Notes) -> None:
    """The person puts the session's version back, so that the next rewind finds it as it
    was left.
    """
    for path, thing in notes.by_hand.items():
        assert thing.content is not None
        (ground.project / path).write_bytes(thing.content)
        (ground.project / path).chmod(stat.S_IMODE(thing.mode))
    notes.by_hand = {}


def is_plain_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size < 1_000_000


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:number]) for number in range(1, len(parts))]


def _is_folder(thing: TreeEntry | None) -> bool:
    return thing is not None and thing.content is None


def _may_stay(thing: TreeEntry | None) -> bool:
    return thing is None or thing.content is None


def with_theirs(target: Tree, present: Tree, theirs: Sequence[str]) -> Tree:
    """What a rewind must come to: what it was, but for what the person changed, and the folders
    that hold it.
    """
    goal = dict(target)
    for path in theirs:
        goal[path] = present[path]
        for above in _above(path):
            goal.setdefault(above, present[above])
    return goal


def judge(ground: Ground, notes: Notes, what: str) -> None:
    """Compare every byte and every mode."""
    notes.done += 1
    wrong = differing_paths(ground.now(), notes.goal or {})
    if wrong:
        notes.wrong.append(f"{what}: {len(wrong)} paths differ: {wrong[:5]}")
    if differing_paths(ground.theirs(), notes.theirs):
        notes.wrong.append(f"{what}: the person's own folder was touched")
    left = [path for path in ground.now() if path.rpartition("/")[2].startswith(OURS)]
    if left:
        notes.wrong.append(f"{what}: left behind {left}")


# --- planted faults --------------------------------------------------------------------------


def plant(fault: Plant) -> None:
    """Break what is claimed."""
    import weft.session.rewind.plan as rewinding
    import weft.workspace.history.history as history
    import weft.workspace.history.restore as restore
    from weft.workspace.history.pack import PreimagePack

    if fault == "preimage":
        setattr(PreimagePack, "get", lambda self, entry: None)  # noqa: B010  # a fault, planted
        # Snapshots store the same contents under the same names, and would make up for it.
        nothing: dict[str, bytes] = {}
        setattr(history.FileHistory, "contents", lambda *_: nothing)  # noqa: B010  # as above
    if fault == "left":
        setattr(rewinding, "_conflict", lambda span, present: "")  # noqa: B010  # as above
        setattr(restore, "is_same", lambda one, other: True)  # noqa: B010  # as above
    if fault == "overflow":
        setattr(history, "OVERFLOW", 0)  # noqa: B010  # as above


# --- all of them -----------------------------------------------------------------------------


def sequence(seed: int, fault: Plant, sandbox: str) -> Tally:
    """All lives of one sequence, each in a process of its own."""
    base = Path(tempfile.mkdtemp(prefix="rewinds-"))
    ground = Ground(base, seed, fault, sandbox)
    dice = random.Random(f"lives {seed}")
    try:
        ground.make()
        lives: list[Callable[[], Any]] = [partial(work, ground, 1)]
        for number in range(2, dice.randint(3, 5)):
            kinds = (work, go_back) if dice.random() < 0.5 else (go_back,)
            lives += [partial(kind, ground, number) for kind in kinds]
        # Whatever the last one left is finished and judged.
        lives += [partial(go_back, ground, number) for number in (90, 91)]
        codes = [live(life, fault) for life in lives]
        notes = ground.notes()
        wrong = [f"seed {seed}: {each}" for each in notes.wrong]
        wrong += [f"seed {seed}: life {n} failed" for n, code in enumerate(codes, 1) if code == 1]
        return Tally(1, notes.done, notes.kinds, wrong)
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", base], check=False)
        # The helpers of a life that was killed end a moment after it, and may still write.
        shutil.rmtree(base, ignore_errors=True)


def live(life: Callable[[], Any], fault: Plant) -> int:
    """Live one life; returns how its process ended."""
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            logging.getLogger("weft").setLevel(logging.CRITICAL)
            plant(fault)
            asyncio.run(life())
            code = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def run(
    n: int, seed: int, fault: Plant = "", sandbox: str = "off", workers: int = WORKERS
) -> Tally:
    """Prove it on `n` sequences."""
    import_everything()
    shares = [
        range(seed * 100_000 + first, seed * 100_000 + n, workers) for first in range(workers)
    ]
    whole = Tally()
    for tally in side_by_side([partial(_share, s, fault, sandbox) for s in shares], Tally):
        whole.add(tally)
    return whole


def _share(seeds: range, fault: Plant, sandbox: str) -> Tally:
    whole = Tally()
    for seed in seeds:
        tally = sequence(seed, fault, sandbox)
        for wrong in tally.wrong:
            print(wrong, file=sys.stderr)
        whole.add(tally)
    return whole


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200, help="sequences of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", choices=["", "preimage", "left", "overflow"], default="")
    parser.add_argument("--sandbox", choices=["off", "auto", "both"], default="both")
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    tally = Tally()
    for sandbox in ("off", "auto") if chosen.sandbox == "both" else (chosen.sandbox,):
        tally.add(run(chosen.n, chosen.seed, chosen.plant, sandbox))
    line: Mapping[str, Any] = {
        "claim": "rewinds",
        "n": tally.sequences,
        "violations": len(tally.wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
        "rewinds": tally.rewinds,
        "happened": dict(sorted(tally.kinds.items())),
    }
    print(json.dumps(line))
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
