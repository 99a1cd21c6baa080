"""Fan-outs that are killed: the project is as it was or whole, and nothing is left behind.

`python -m tests.crash.fan` prints one JSON line; `--tries 20 --seed 7` tries fewer, others, and
`--only 13` one of them.  A try runs a real process that begins a fan-out of two candidates,
verifies them and keeps one, and kills it (`SIGKILL`) at an instant that the seed chooses.  Half of
the tries kill while the changes are put into the project.

What is judged: before the next start, that no file is half.  The next start is a plain one, which
asks for no fan-out: after it the project has all of the kept candidate's changes or none, the log
says which, and nothing of what was under way is left behind but the overlays of candidates that can
be resumed.  Then the fan-out is gone on with, kept and closed; at the end the project is whole, no
overlay is on disk, and no process of the sandbox lives.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from tests.support.fan_project import git
from weft.app import App, open_app
from weft.errors import UsageError

FILES = 40
WORK_SECONDS = 60.0
VERIFY = (
    'test "$(cat [0-9]*.txt | sort -u)" = new && test "$(cat made/*.txt | sort -u)" = made && '
    "test $(ls made | wc -l) = 40 && ! test -e gone"
)
"""What a candidate's command was cut off in does not pass, and is not kept."""
SCRIPT = {
    "by": "content",
    "answers": [
        {
            "steps": [
                {
                    "do": "call",
                    "name": "shell",
                    "args": {
                        "command": "mkdir made; for i in $(seq 0 39); do echo new > $i.txt; "
                        "echo made > made/$i.txt; done; rm -r gone"
                    },
                }
            ]
        },
        {"steps": [{"do": "text", "text": "Done."}]},
    ],
}


def make_project(base: Path) -> Path:
    """A repository with files to be changed and files to be removed."""
    project = base / "project"
    (project / "gone").mkdir(parents=True)
    for number in range(FILES):
        (project / f"{number}.txt").write_text("old\n")
        (project / "gone" / f"{number}.txt").write_text("gone\n")
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "first")
    (base / "script.json").write_text(json.dumps(SCRIPT))
    return project


def opened(base: Path) -> App:
    """The application, as every process of a try opens it."""
    home = str(base)
    environ = {"HOME": home, "WEFT_HOME": home, "PATH": os.environ["PATH"]}
    settings = {"model.default": f"scripted:{base}/script.json", "repo.index": False}
    return open_app(base / "project", base / "weft.db", settings, environ=environ)


async def work(base: Path) -> bool:
    """Begin or find the fan-out, see all candidates to their end, keep the first; says whether it
    is kept.
    """
    async with opened(base) as app:
        found = await app.fans()
        if found:
            fan = await app.fan(found[0].id)
            with suppress(UsageError):  # all had ended
                await fan.resume()
        else:
            session = await app.sessions.start_session(asking="no")
            fan = await session.generate_branches("make it", 2, verify=VERIFY)
        await fan.wait()
        (base / "settled").touch()
        if any(each.state == "kept" for each in fan.candidates()):
            return True
        if not fan.candidates()[0].files:
            return False  # its only command was cut off before it wrote anything
        return (await fan.keep(fan.candidates()[0].index)).is_kept


async def finish(base: Path) -> bool:
    """What the user does after the crash: the rest, and the end; says whether one was kept."""
    is_kept = await work(base)
    async with opened(base) as app:
        for each in await app.fans():
            await (await app.fan(each.id)).close()
    return is_kept


def state_of(project: Path) -> str:
    """`old`, `new`, or what is neither."""
    texts = [(project / f"{number}.txt").read_text() for number in range(FILES)]
    made = [(project / "made" / f"{number}.txt") for number in range(FILES)]
    gone = [(project / "gone" / f"{number}.txt") for number in range(FILES)]
    torn = {text for text in texts if text not in ("old\n", "new\n")}
    torn |= {path.read_text() for path in made if path.exists()} - {"made\n"}
    if torn:
        return f"torn: {torn}"
    parts = [text == "new\n" for text in texts] + [path.exists() for path in made]
    parts += [not path.exists() for path in gone]
    return "new" if all(parts) else "mixed" if any(parts) else "old"


def attempt(seed: int, number: int) -> str:
    """One try; empty when all held."""
    dice = random.Random(f"{seed}:{number}")
    with tempfile.TemporaryDirectory(
        prefix="weft-fan-", dir="/var/tmp", ignore_cleanup_errors=True
    ) as folder:
        base = Path(folder)
        project = make_project(base)
        at_put = number % 2 == 1
        _killed(base, dice, at_put=at_put)
        if (before := state_of(project)).startswith("torn"):
            return f"try {number}: {before}"
        anyio.run(plain_start, base)
        if (after := state_of(project)) not in ("old", "new"):
            return f"try {number}: after the next start the project is {after} (was {before})"
        if left := left_half_done(base):
            return f"try {number}: left behind after the next start: {left[:3]}"
        if (kept := anyio.run(is_on_record, base)) != (after == "new"):
            return f"try {number}: the project is {after}, and on record is {kept}"
        is_kept = anyio.run(finish, base)
        if (end := state_of(project)) != ("new" if is_kept else "old"):
            return f"try {number}: at the end the project is {end}"
        return _left_behind(base, number)


async def plain_start(base: Path) -> None:
    """The next start, of a user who thinks of something else."""
    async with opened(base) as app:
        await app.sessions.list_saved()


def left_half_done(base: Path) -> list[str]:
    """What a crash left that no user has a use for."""
    fans = base / "sandbox" / "fans"
    left = [str(path) for path in (base / "fans" / "unsettled").glob("*")]
    stays = ("pin", "base.json", "lock", "tree", "status", "ignored")
    left += [
        str(path)
        for path in fans.glob("*/*")
        if path.name not in stays and not path.name.isdecimal()
    ]
    left += [str(path) for path in (base / "sandbox").glob("[0-9]*-*/*/plan*")]
    known = {path.stem for path in (base / "fans").glob("fan_*.json")}
    return left + [str(path) for path in fans.glob("*") if path.name not in known]


async def is_on_record(base: Path) -> bool:
    """Whether the log says that a candidate was kept; nothing is opened for it."""
    async with opened(base) as app:
        return any(each.kept for each in await app.fans())


def _killed(base: Path, dice: random.Random, *, at_put: bool) -> None:
    """Run a process and kill it at some instant; with `at_put` not before all candidates ended."""
    process = subprocess.Popen([sys.executable, "-m", "tests.crash.fan", "--work", str(base)])
    until = time.monotonic() + WORK_SECONDS
    if at_put:
        while not (base / "settled").exists() and process.poll() is None:
            if time.monotonic() > until:
                break
            time.sleep(0.002)
        time.sleep(dice.uniform(0, 0.5))
    else:
        time.sleep(dice.uniform(0.3, 3.0))
    process.send_signal(signal.SIGKILL)
    process.wait()


def _left_behind(base: Path, number: int) -> str:
    left = [str(path) for path in (base / "sandbox").glob("fans/*")]
    left += [str(path) for path in (base / "sandbox").glob("[0-9]*-*/*/upper*/*")]
    if left:
        return f"try {number}: left behind: {left[:3]}"
    if alive := _alive(str(base)):
        return f"try {number}: still alive: {alive[:3]}"
    return ""


def _alive(base: str) -> list[str]:
    """The processes that were started for a try, by the folder in their command lines."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if base in line and "bwrap" in line:
                found.append(line[:200])
    return found


def main(argv: Sequence[str]) -> int:
    """Try as often as asked for, and print one line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--work")
    given = parser.parse_args(argv)
    if given.work is not None:
        anyio.run(work, Path(given.work))
        return 0
    begun = time.monotonic()
    numbers = range(given.tries) if given.only is None else [given.only]
    violations = [wrong for number in numbers if (wrong := attempt(given.seed, number))]
    for wrong in violations:
        print(wrong, file=sys.stderr)
    line = {
        "claim": "fan",
        "n": len(numbers),
        "violations": len(violations),
        "seed": given.seed,
        "seconds": round(time.monotonic() - begun, 1),
    }
    print(json.dumps(line), flush=True)
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
