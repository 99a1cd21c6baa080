"""Shell syntax: whether a command line means the same to every shell, and whether bash takes it.

bash takes half a millisecond longer to start than the small shell that many systems have as `sh`,
and most commands that models run are a program and some words (`git diff`, `pytest -q tests`),
which no two shells read differently.
"""

from __future__ import annotations

import re

from weft.permissions import is_broken_line
from weft.workspace import ProcessCommand, Runner

_SYNTAX_SECONDS = 10.0
_WORDS = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:,@%+ -]*")
"""Letters that no shell gives a meaning, in one line: no quotes, expansions, assignments, operators
or comments.
"""

_BASH_HAS_ITS_OWN = frozenset(
    """
    . [ alias bg bind break builtin caller case cd command compgen complete compopt continue \
coproc declare dirs disown do done echo
    elif else enable esac eval exec exit export fc fg fi for function getopts hash help history if \
in jobs kill let local logout
    mapfile popd printf pushd pwd read readarray readonly return select set shift shopt source \
suspend test then time times trap
    type typeset ulimit umask unalias unset until wait while
    """.split()  # noqa: SIM905  # eighty names, one after the other
)
"""What bash does itself, and another shell does differently or not at all.

`true` and `false` are the same everywhere.
"""


def is_plain(command: str) -> bool:
    """True when the command is a program and words, and nothing that one shell could take for
    something else.
    """
    if _WORDS.fullmatch(command) is None:
        return False
    # Only the first word is looked up; `FOO=1 echo` cannot pass, for `=` is not among the letters
    # above.
    return command.split(" ", 1)[0] not in _BASH_HAS_ITS_OWN


async def why_no_bash(line: str, runner: Runner, folder: str) -> str:
    """Why bash would not run a line; empty where it would, or where there is no bash to ask.

    Only a line that our readers do not understand is put to it, with `-n`: it runs nothing.
    """
    if not line or "\0" in line or not is_broken_line(line):
        return ""
    bash = runner.which("bash")
    if not bash:
        return ""
    argv = (bash, "-n", "-c", "--", line)
    command = ProcessCommand(
        argv=argv, cwd=folder, timeout_seconds=_SYNTAX_SECONDS, only_reads=True
    )
    result = await runner.run(command, None)
    if result.exit_code == 0 or result.timed_out:
        return ""
    said = result.output.strip().partition("\n")[0].rpartition("line ")[2]
    return f"it is no bash: {said or 'a syntax error'}"
