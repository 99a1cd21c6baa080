"""Every row of the API that is a call: taken away, the tests that show the row go red.

`python -m tests.crash.rows` prints one JSON line; `--only session:abort` tries some.  A row whose
tests stay green without it is shown by nobody, whatever the manifest says.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.support.api_stub_plugin import OWNERS
from tests.support.requirement_marks import marked_tests
from tests.support.requirements import REQUIREMENTS
from tests.support.source_code import ROOT

AT_ONCE = 2
TESTS_FAILED = 1
_OWNER_OF = {"session": "Session", "manager": "SessionManager", "entry": "weft"}


def stub_for(row: str) -> str:
    """What to take away for a row, as `WEFT_STUB` has it; empty when the row is no call."""
    kind, _, rest = row.partition(":")
    name = rest.partition(":")[0]
    owner = _OWNER_OF.get(kind, "")
    is_call = bool(owner) and callable(getattr(OWNERS[owner], name, None))
    return f"{owner}.{name}" if is_call else ""


def rows() -> list[str]:
    """The rows that are calls, and are not to come later."""
    return [row for row in REQUIREMENTS if not REQUIREMENTS[row].deferred and stub_for(row)]


def judge(row: str, stub: str = "") -> str:
    """What is wrong about a row; empty when its tests go red without it, or without `stub`."""
    stub = stub or stub_for(row)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.support.api_stub_plugin"),
            *("-p", "no:cacheprovider", *marked_tests()[row]),
        ],
        cwd=ROOT,
        env={**os.environ, "WEFT_STUB": stub},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == TESTS_FAILED:
        return ""
    return f"{row}: without {stub} its tests end with {done.returncode}\n{done.stdout[-400:]}"


def main(argv: Sequence[str]) -> int:
    """Prove it and print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="means nothing here")
    parser.add_argument("--only", nargs="*", help="these rows alone")
    chosen = parser.parse_args(argv)
    start = time.monotonic()
    tried = chosen.only or rows()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        wrong = [said for said in pool.map(judge, tried) if said]
    for said in wrong:
        print(said, file=sys.stderr)
    line = {
        "claim": "rows",
        "n": len(tried),
        "violations": len(wrong),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - start, 1),
    }
    print(json.dumps(line))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
