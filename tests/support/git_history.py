"""A repository with a history worth keeping, and what of it git can still reach."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

GIT = "git -c user.name=a -c user.email=a@b.c -c advice.detachedHead=false"
EVERY_OBJECT = "git cat-file --batch-all-objects --batch-check='%(objectname)'"
FALSE_PACK = """P=.git/objects/pack/pack-$(printf '%040d' 1)
cat > /tmp/false_pack.py <<'END'
import hashlib, struct, sys, zlib
oids = sorted({bytes.fromhex(line.strip()) for line in sys.stdin})
body, places = b"PACK" + struct.pack(">II", 2, len(oids)), []
for _ in oids:
    places.append(len(body))
    body += bytes([(3 << 4) | 1]) + zlib.compress(b"x")
made = hashlib.sha1(body).digest()
index = b"\\xfftOc\\0\\0\\0\\2"
for first in range(256):
    index += struct.pack(">I", sum(oid[0] <= first for oid in oids))
index += b"".join(oids) + bytes(4 * len(oids))
index += b"".join(struct.pack(">I", place) for place in places) + made
open(sys.argv[1] + ".idx", "wb").write(index + hashlib.sha1(index).digest())
open(sys.argv[1] + ".pack", "wb").write(body + made if sys.argv[2] == "sums" else b"junk")
END
"""
"""A pack that lists every object, and has none of them: with right checksums, or as junk."""
_ENVIRON = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "a" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "a@b.c" for who in ("AUTHOR", "COMMITTER")},
}


def git(folder: Path, *args: str) -> str:
    """What git prints; it must not fail."""
    done = subprocess.run(
        ["git", *args], cwd=folder, env=_ENVIRON, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def make_history(folder: Path) -> None:
    """Three commits on `main`, one of them packed, a merged and an unmerged branch, a tag, a commit
    that only the reflog names, and two stashes.
    """
    git(folder, "init", "-q", "-b", "main", ".")
    for number in range(2):
        _commit(folder, f"one{number}")
    git(folder, "branch", "merged")
    git(folder, "tag", "-a", "v1", "-m", "v1")
    git(folder, "gc", "-q")
    git(folder, "checkout", "-q", "-b", "apart")
    _commit(folder, "apart")
    git(folder, "checkout", "-q", "main")
    _commit(folder, "amended")
    git(folder, "commit", "-q", "--amend", "-m", "other")
    for text in ("first", "second"):
        (folder / "one0").write_text(text)
        git(folder, "stash", "-q")


def _commit(folder: Path, name: str) -> None:
    (folder / name).write_text(f"{name}\n")
    git(folder, "add", name)
    git(folder, "commit", "-qm", name)


def reached(folder: Path) -> set[str]:
    """Every object that refs and reflogs lead to; fails where one of them is missing."""
    listed = git(folder, "rev-list", "--objects", "--all", "--reflog")
    return {line.split()[0] for line in listed.splitlines()}


def refs(folder: Path) -> dict[str, str]:
    """Every ref with what it names."""
    listed = git(folder, "for-each-ref", "--format=%(refname) %(objectname)")
    return dict(line.split() for line in listed.splitlines())
