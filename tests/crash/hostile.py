"""Hostile folders: a run in one starts no program of it, ends, and reads no file outside it.

`python -m tests.crash.hostile` prints one JSON line; `--folders 20 --seed 7` tries fewer, others.
Each folder is made from the seed and its number: several traps in the places of files that Weft
reads, a repository whose settings name programs, data that is deep, large or has odd names.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.file_tree import files_holding
from tests.support.hostile_project import CANARY, FOLDERS, SLOTS, TRAPS, Outside, sparse_file
from tests.support.weft_program import WeftProgram

DEEP = 100_000


def bomb(project: Path, ran: Path) -> None:
    """YAML whose aliases grow to more than any memory."""
    rows = ["a0: &a0 [lol]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    for kind in ("skills/bomb/SKILL.md", "agents/bomb.md", "commands/bomb.md"):
        place = project / ".claude" / kind
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("---\n" + "\n".join(rows) + "\ndescription: *a29\n---\n")


def deep_json(project: Path, ran: Path) -> None:
    (project / ".weft").mkdir(exist_ok=True)
    (project / ".weft" / "hooks.json").write_text("[" * DEEP + "]" * DEEP)


def deep_toml(project: Path, ran: Path) -> None:
    (project / ".weft").mkdir(exist_ok=True)
    (project / ".weft" / "config.toml").write_text("a = " + "[" * DEEP + "]" * DEEP)


def hooks(project: Path, ran: Path) -> None:
    """Hooks and local settings of a folder that was not trusted."""
    (project / ".weft").mkdir(exist_ok=True)
    for event in ("SessionStart", "UserPromptSubmit", "Stop"):
        with (project / ".weft" / "config.toml").open("a") as file:
            file.write(f"[[hooks.{event}]]\ncommand = 'touch {ran}'\n")


def git_programs(project: Path, ran: Path) -> None:
    """A repository that names a program wherever git knows a place for one."""
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    program = f"touch {ran}; true"
    names = (
        *("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "diff.external"),
        *("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.textconv"),
        *("credential.helper", "gpg.program", "uploadpack.packObjectsHook", "alias.status"),
    )
    for name in names:
        # In these two a value is the name of a command of git, unless it begins with this sign.
        sign = "!" if name in ("credential.helper", "alias.status") else ""
        subprocess.run(["git", "-C", str(project), "config", name, sign + program], check=True)
    (project / ".gitattributes").write_text("* filter=x diff=x\n")
    for hook in ("post-index-change", "post-checkout", "pre-commit", "reference-transaction"):
        place = project / ".git" / "hooks" / hook
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"#!/bin/sh\ntouch {ran}\n")
        place.chmod(0o755)


def programs_by_name(project: Path, ran: Path) -> None:
    """Programs that would be taken for the system's, where the folder is searched first."""
    for name in ("git", "bwrap", "rg", "sh", "python3", "sitecustomize.py", "weft.py", ".envrc"):
        with contextlib.suppress(FileExistsError), (project / name).open("x") as file:
            file.write(f"#!/bin/sh\ntouch {ran}\n")
            (project / name).chmod(0o755)


def odd_names(project: Path, ran: Path) -> None:
    for name in (b"\xff\xfe", b"a\nb", b"\x1b]0;x\x07", b"-rf", b"$(touch ran)", b"x" * 255):
        with contextlib.suppress(OSError):
            Path(str(project), name.decode("utf-8", "surrogateescape")).write_text("x")


def huge_file(project: Path, ran: Path) -> None:
    with contextlib.suppress(FileExistsError, IsADirectoryError):
        sparse_file(project / "CLAUDE.md", "x")


DATA: Sequence[Callable[[Path, Path], None]] = (
    *(bomb, deep_json, deep_toml, hooks, git_programs, programs_by_name, odd_names, huge_file),
)


def fill(project: Path, outside: Outside, ran: Path, number: random.Random) -> list[str]:
    """Make a folder hostile; returns what it holds, for the report."""
    made: list[str] = []
    for make in number.sample(DATA, number.randint(1, 4)):
        make(project, ran)
        made.append(make.__name__)
    for slot in number.sample(sorted(SLOTS), number.randint(1, 5)):
        trap = number.choice(TRAPS)
        # Two traps in one place: the first one stays.
        with contextlib.suppress(OSError):
            trap(project / slot, outside, SLOTS[slot])
            made.append(f"{trap.__name__} at {slot}")
    folder = number.choice(sorted(FOLDERS))
    behind = outside.folder / "behind" / FOLDERS[folder]
    behind.parent.mkdir(parents=True)
    behind.write_text(SLOTS.get(f"{folder}/{FOLDERS[folder]}", CANARY))
    with contextlib.suppress(OSError):
        (project / folder).parent.mkdir(parents=True, exist_ok=True)
        (project / folder).symlink_to(outside.folder / "behind")
        made.append(f"link at {folder}")
    return made


def judge(weft: WeftProgram, ran: Path) -> str:
    """What is wrong about a run in a folder; empty when it is as it should be."""
    try:
        # `python -m weft` would look for modules in the folder; the installed program does not.
        done = weft.run(*("-p", "-m", weft.script("Fine."), "hi"), env={"PYTHONSAFEPATH": "1"})
    except subprocess.TimeoutExpired:
        return "it hangs"
    if (done.returncode, done.stdout) != (0, "Fine.\n"):
        return f"it ended with {done.returncode}: {done.stdout[-200:]!r} {done.stderr[-400:]!r}"
    if ran.exists():
        return "a program of the folder was run"
    if CANARY in done.stderr or files_holding(weft.data, CANARY):
        return "a file outside was read"
    return ""


def attempt(seed: int, number: int) -> str:
    """One folder; what is wrong, with what it holds."""
    with tempfile.TemporaryDirectory(prefix="weft-hostile-") as name:
        base = Path(name)
        weft, ran = WeftProgram(base), base / "ran"
        made = fill(weft.project, Outside(base / "around"), ran, random.Random(f"{seed}:{number}"))
        wrong = judge(weft, ran)
    return f"folder {number} ({', '.join(made)}): {wrong}" if wrong else ""


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folders", type=int, default=200)
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    # One after the other: the trap that is a socket changes the working folder of this process.
    wrong = [said for number in range(chosen.folders) if (said := attempt(chosen.seed, number))]
    for said in wrong:
        print(said, file=sys.stderr)
    line = {
        "claim": "hostile",
        "n": chosen.folders,
        "violations": len(wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
    }
    print(json.dumps(line))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
