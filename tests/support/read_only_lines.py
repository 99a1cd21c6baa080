"""Lines that are judged to only read, and a folder in which a sandbox shows that they do.

The lines are made of the rows of the table: a command, options of its row in any number, values and
files, joined by operators, and changed a little.  Which of them only read is asked of the judge.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.support.attack_corpus import action_of
from tests.support.bash_words import SANDBOX
from weft.permissions import decide
from weft.permissions.shell.tables import ReadOnlyRow, read_only_rows

FILES = (
    "a.txt",
    "src/b.py",
    "src",
    "c d.md",
    "data.json",
    "nope",
    ".",
    "src/../a.txt",
    "docs/*.md",
)
VALUES = ("1", "x", "2,3", "%s", "out", "a.txt", "--output=y", "p", "s/a/b/w out", "e", "/x/w out")
PROGRAMS = (
    *("'p'", "'s/a/b/'", "'s/a/b/e'", "'w out'", "'{print > \"out\"}'", "'{print $1}'", "'.'"),
    *(
        "'{system(\"touch out\")}'",
        "'1!G;h;$!d'",
        "'.a|input'",
        "-exec touch out ';'",
        "-name '*.py'",
    ),
    *(
        "-delete",
        "-fprint out",
        "-type f",
        "-newer a.txt",
        "-o out",
        "-w",
        "-e 1w\\ out",
        "-n",
        "--",
    ),
)
JOINTS = (" | ", " ; ", " && ", " || ", "\n", " & ", " 2>/dev/null | ", " > out ; ", " 2>&1 | ")
ENDLESS = frozenset({"sleep", "tail", "seq", "ps", "factor"})
"""Commands that may not end, or print what is another each time."""


def read_only_line(random: Random) -> str:
    """A line of commands of the table; not all of them only read."""
    rows = [row for name, row in read_only_rows().items() if name.split()[0] not in ENDLESS]
    pieces = [_command(random, random.choice(rows))]
    while random.random() < 0.35:
        pieces += [random.choice(JOINTS), _command(random, random.choice(rows))]
    line = "".join(pieces)
    if random.random() < 0.2:
        place = random.randrange(len(line) + 1)
        line = f"{line[:place]}{random.choice(';|&$`<>*~ ')}{line[place:]}"
    return line


def _command(random: Random, row: ReadOnlyRow) -> str:
    words = [row.command]
    options = list(row.options.items())
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        if not options:
            break
        name, kind = random.choice(options)
        value = random.choice((*VALUES, *FILES))
        if kind in ("text", "path"):
            words.append(f"{name}={value}" if name.startswith("--") else f"{name} {value!r}")
        elif kind == "two":
            words.append(f"{name} x {value!r}")
        else:
            words.append(name)
    count = random.choice((0, 1, 1, 2))
    return " ".join((*words, *random.choices((*FILES, *PROGRAMS, *VALUES[:3]), k=count)))


def only_reads(line: str) -> bool:
    """Whether the policy lets it run unasked, for it changes nothing."""
    return (
        decide(action_of("shell", line), mode="default").reason == "it only reads, in the sandbox"
    )


def changing(lines: Sequence[str], place: Path) -> list[str]:
    """The lines that change something, found by halves; each try has a folder of its own."""
    with tempfile.TemporaryDirectory(dir=place) as fresh:
        if not CanaryFolder(Path(fresh)).is_changed_by(lines):
            return []
    if len(lines) == 1:
        return list(lines)
    half = len(lines) // 2
    found = [*changing(lines[:half], place), *changing(lines[half:], place)]
    return found or [f"some of these, together: {lines!r}"]


class CanaryFolder:
    """A project, a home and a folder for temporary files, of which every change is seen."""

    def __init__(self, root: Path) -> None:
        self._root = root
        for name in ("p/src", "p/docs", "home", "tmp"):
            (root / name).mkdir(parents=True)
        project = root / "p"
        for name, text in (
            *(("a.txt", "a b\nc 1\n"), ("src/b.py", "x = 1\n"), ("c d.md", "# c\n")),
            *(("data.json", '{"a": [1]}\n'), ("docs/d.md", "d\n"), ("docs/-rf.md", "d\n")),
        ):
            (project / name).write_text(text)
        (root / "home" / ".profile").write_text("# nothing\n")
        self._git("init", "-q", "-b", "main")
        self._git("add", ".")
        self._git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "one")
        (project / "a.txt").write_text("a b\nc 2\n")
        self.before = self.seen()

    def _git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self._root / "p", check=True)

    def seen(self) -> dict[str, str]:
        """Every file and folder, with what is in it."""
        found = {}
        for folder, folders, files in os.walk(self._root):
            for name in (*folders, *files):
                path = Path(folder) / name
                about = path.lstat()
                body = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                what = hashlib.sha256(body).hexdigest()
                found[str(path)] = f"{about.st_mode} {about.st_nlink} {what}"
        return found

    def is_changed_by(self, lines: Sequence[str]) -> bool:
        """Whether something is another when they have run."""
        self._run(lines)
        return self.seen() != self.before

    def _run(self, lines: Sequence[str]) -> None:
        """Every line in a shell of its own, in a sandbox without a network."""
        script = "".join(f"{line}\0" for line in lines).encode("utf-8", "surrogatepass")
        each = (
            "while IFS= read -r -d '' line; do "
            'timeout 3 /bin/bash --norc -c "$line" < /dev/null; done'
        )
        root = self._root
        # At places that are there: a new one below /tmp would be an effect itself.
        places = (("tmp", "/tmp"), ("p", "/mnt"), ("home", "/srv"))
        binds = [word for name, at in places for word in ("--bind", str(root / name), at)]
        subprocess.run(
            [
                *(*SANDBOX, *binds, "--chdir", "/mnt", "--clearenv"),
                *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/srv"),
                # Refreshing its index is no effect that is meant here; the product drops it.
                *("--setenv", "GIT_OPTIONAL_LOCKS", "0", "--setenv", "LC_ALL", "C.UTF-8"),
                *("/bin/bash", "--norc", "-c", each),
            ],
            input=script,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
