"""Commands that attack a repository: every commit that was reachable still is, or was asked about.

`python -m tests.crash.history --n 400 --seed 1` prints one JSON line.  A round is a repository with
branches, tags, packs, stashes and reflogs, and some commands in the sandbox, each a random mix of
attacks (objects, packs, refs, reflogs, `HEAD`, `shallow`, expiry and prune) and everyday git.
After each command git itself, outside the sandbox, says what is left:

- everything that refs and reflogs led to is there, whole;
- a branch or tag that is gone is merged into another;
- all that reflogs named can still be reached, and at most one stash went;
- where the command was refused, nothing of the repository changed.

With `--plant guard` nothing is judged, and the line must count violations.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.support.git_history import (
    EVERY_OBJECT,
    FALSE_PACK,
    GIT,
    git,
    make_history,
    refs,
)
from tests.support.sandboxed_project import SandboxedProject, sandboxed_project
from weft.workspace.sandbox.git_guard import GitGuard, GitJudgement

_OBJECT = "$(find .git/objects -type f | shuf -n1 --random-source=<(yes {seed}))"
_REF = "$(find .git/refs -type f | shuf -n1 --random-source=<(yes {seed}))"
_LOG = "$(find .git/logs -type f | shuf -n1 --random-source=<(yes {seed}))"
_LATER = "-c gc.pruneExpire=now -c gc.reflogExpire=now -c gc.reflogExpireUnreachable=now"

ATTACKS: Mapping[str, str] = {
    "remove an object": f"rm -f {_OBJECT}",
    "empty an object": f"f={_OBJECT}; chmod 600 $f; : > $f",
    "change an object": f"f={_OBJECT}; chmod 600 $f; "
    "printf X | dd of=$f bs=1 seek=12 conv=notrunc status=none",
    "append to an object": f"f={_OBJECT}; chmod 600 $f; echo x >> $f",
    "swap two objects": f"f={_OBJECT}; g=$(ls .git/objects/??/* | head -1); mv -f $f $g",
    "remove packs": "rm -f .git/objects/pack/*",
    "remove loose objects": "rm -rf .git/objects/??",
    "remove a ref": f"rm -f {_REF}",
    "junk in a ref": f"echo junk > {_REF}",
    "another commit in a ref": f"git rev-parse HEAD~1 > {_REF}",
    "no such object in a ref": f"printf '%040d\\n' {{seed}}1 > {_REF}",
    "remove packed refs": "rm -f .git/packed-refs",
    "cut packed refs": "sed -i '$d' .git/packed-refs",
    "remove a log": f"rm -f {_LOG}",
    "cut a log": f"sed -i 1d {_LOG}",
    "cut a log's end": f"sed -i '$d' {_LOG}",
    "remove all logs": "rm -rf .git/logs",
    "junk in HEAD": "echo junk > .git/HEAD",
    "HEAD to nowhere": "echo 'ref: refs/heads/nowhere' > .git/HEAD",
    "delete a branch": "git branch -D apart",
    "delete refs": "git for-each-ref --format='delete %(refname)' | git update-ref --stdin",
    "expire": "git reflog expire --expire=now --expire-unreachable=now --all",
    "expire a branch": "git reflog expire --expire=now --expire-unreachable=now HEAD apart",
    "gc now": f"git {_LATER} gc -q --prune=now",
    "prune": "git prune --expire=now",
    "drop stashes": "git stash clear",
    "shallow": "git rev-parse HEAD > .git/shallow",
    "graft": "git replace --graft HEAD",
    "borrow": "mkdir -p /tmp/o; cp -r .git/objects/. /tmp/o; "
    "echo /tmp/o > .git/objects/info/alternates; rm -rf .git/objects/pack/* .git/objects/??",
    "false pack": f"{FALSE_PACK}{EVERY_OBJECT} | python3 /tmp/false_pack.py $P sums",
    "junk pack": f"{FALSE_PACK}{EVERY_OBJECT} | python3 /tmp/false_pack.py $P junk",
    "junk beside packs": f"for o in $({EVERY_OBJECT}); do "
    "f=.git/objects/${o:0:2}/${o:2}; mkdir -p $(dirname $f); [ -e $f ] || echo junk > $f; done",
    "age objects": "find .git/objects -type f -exec touch -d '40 days ago' {} +",
    "age logs": "sed -i -E 's/> [0-9]{10}/> 1500000000/' $(find .git/logs -type f ! -name stash)",
    "branch to nowhere": "git symbolic-ref refs/heads/apart refs/heads/nowhere",
    "junk in packed refs": "git pack-refs --all; echo junk >> .git/packed-refs",
    "shuffle packed refs": "git pack-refs --all; (head -1 .git/packed-refs; "
    "grep -v '^[#^]' .git/packed-refs | tac) > /tmp/p; cat /tmp/p > .git/packed-refs",
    "link packed refs": "git pack-refs --all; mv .git/packed-refs /tmp/p; "
    "ln -s /tmp/p .git/packed-refs",
    "blob as a branch": "git rev-parse HEAD:one0 > .git/refs/heads/apart",
    "no HEAD": "rm .git/HEAD",
    "start anew": "git checkout -q --orphan z; git branch -D main; "
    "rm -rf .git/logs/refs/heads/main",
}
EVERYDAY: Mapping[str, str] = {
    "commit": f"echo {{seed}} > x; git add x; {GIT} commit -qm x",
    "amend": f"{GIT} commit -q --allow-empty --amend -m y",
    "rebase": f"git checkout -q apart && {GIT} rebase -q main; git checkout -q main",
    "merge": f"{GIT} merge -q apart -m m",
    "delete merged": "git branch -d merged",
    "pop": "git stash pop -q || git checkout -qf .",
    "gc": "git gc -q",
    "repack": "git repack -adq; git pack-refs --all",
    "reset": "git reset -q --hard HEAD~1",
    "switch": "git checkout -q -B other",
}


class Tally(msgspec.Struct):
    """What was tried, and what went wrong."""

    rounds: int = 0
    commands: int = 0
    refused: int = 0
    wrong: list[str] = []
    kinds: Counter[str] = msgspec.field(default_factory=Counter)


class State(msgspec.Struct, frozen=True):
    """What git says of a repository."""

    refs: Mapping[str, str]
    objects: frozenset[str]
    """All that refs and reflogs lead to."""
    named: frozenset[str]
    """Commits that refs and reflogs lead to, without stashes."""
    stashes: int


def state_of(folder: Path) -> State:
    """Ask git; fails when anything that it should reach is missing."""
    options = ("--objects", "--all", "--reflog")
    objects = {line.split()[0] for line in git(folder, "rev-list", *options).splitlines()}
    named = refs(folder)
    reached = set(git(folder, "rev-list", "--all", "--reflog").split())
    # A stash is a commit with two or three parents; the first is of a branch.  With its reflog cut,
    # the ref names one that is in no list.
    listed = git(folder, "stash", "list", "--format=%H %P").splitlines()
    if "refs/stash" in named:
        listed.append(git(folder, "log", "-1", "--format=%H %P", "refs/stash"))
    for line in listed:
        stash, *parents = line.split()
        if len(parents) > 1:  # the ref may name any commit after an attack
            reached -= {stash, *parents[1:]}
    stashes = len(git(folder, "stash", "list").splitlines())
    return State(named, frozenset(objects), frozenset(reached), stashes)


def violations(folder: Path, before: State, *, is_refused: bool) -> list[str]:
    """What is not as it should be after a command."""
    try:
        git(folder, "fsck", "--full", "--no-dangling")
        after = state_of(folder)
    except subprocess.CalledProcessError as error:
        return [f"git fails: {(error.stderr or error.stdout)[-200:]}"]
    if is_refused:
        return [] if after == before else ["it was refused, and something changed"]
    wrong: list[str] = []
    listed = git(folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    if lost := before.objects - set(listed):
        wrong.append(f"{len(lost)} objects are gone")
    if lost := before.named - after.named:
        wrong.append(f"{len(lost)} commits cannot be reached")
    if before.stashes - after.stashes > 1:
        wrong.append(f"{before.stashes - after.stashes} stashes are gone")
    in_refs = set(git(folder, "rev-list", "--exclude=refs/stash", "--all").split())
    gone = before.refs.keys() - after.refs.keys() - {"refs/stash"}
    return wrong + [
        f"{name} is gone"
        for name in sorted(gone)
        if git(folder, "rev-parse", f"{before.refs[name]}^{{commit}}") not in in_refs
    ]


async def one_round(there: SandboxedProject, chance: random.Random, tally: Tally) -> None:
    """A repository, and some commands on it."""
    for _ in range(chance.randint(1, 3)):
        before = state_of(there.project)
        every = {**ATTACKS, **EVERYDAY}
        names = [chance.choice(sorted(every)) for _ in range(chance.randint(1, 3))]
        line = "; ".join(
            every[name].replace("{seed}", str(chance.randint(1, 10**6))) for name in names
        )
        result = await there.shell(line)
        is_refused = any("- .git: " in remark for remark in result.remarks)
        tally.commands += 1
        tally.refused += is_refused
        tally.kinds.update(names)
        if found := violations(there.project, before, is_refused=is_refused):
            tally.wrong += [f"{', '.join(names)}: {each} ({line})" for each in found]
            return  # what comes after says nothing


async def _rounds(n: int, seed: int) -> Tally:
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="weft-history-") as base:
        made = Path(base) / "made"
        made.mkdir()
        make_history(made)
        async with sandboxed_project(Path(base)) as there:
            for number in range(n):
                shutil.rmtree(there.project)
                shutil.copytree(made, there.project, symlinks=True)
                await one_round(there, random.Random(f"{seed}-{number}"), tally)
                tally.rounds += 1
    return tally


def run(n: int, seed: int = 1, plant: str = "") -> Tally:
    """Prove it in `n` rounds."""
    judge = GitGuard.judge
    if plant:
        GitGuard.judge = _judge_nothing  # type: ignore[method-assign,assignment]  # the planted fault
    try:
        return asyncio.run(_rounds(n, seed))
    finally:
        GitGuard.judge = judge  # type: ignore[method-assign]  # as it was


async def _judge_nothing(*_: object) -> GitJudgement:
    return GitJudgement()


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=400, help="rounds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plant", choices=["", "guard"], default="")
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    tally = run(chosen.n, chosen.seed, chosen.plant)
    for wrong in tally.wrong:
        print(wrong, file=sys.stderr)
    line: Mapping[str, Any] = {
        "claim": "history",
        "n": tally.rounds,
        "violations": len(tally.wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
        "commands": tally.commands,
        "refused": tally.refused,
        "happened": dict(sorted(tally.kinds.items())),
    }
    print(json.dumps(line))
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
