"""`python -m bench [--json] [name …]`: run the benchmarks and print one table.

Exit 1 when a limit is missed.  Numbers are of this machine at this moment; the floor beside each is
of the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from bench.table import Row, as_json, as_table

PREFIX = "bench_"


def names(folder: Path = Path(__file__).parent) -> list[str]:
    """Every benchmark there is."""
    return sorted(file.stem.removeprefix(PREFIX) for file in folder.glob(f"{PREFIX}*.py"))


def main(argv: Sequence[str]) -> int:
    """Run what is asked for, or all."""
    if options := sorted({word for word in argv if word.startswith("-")} - {"--json"}):
        is_help = options[0] in ("-h", "--help")
        print(__doc__ if is_help else f"no option {options[0]}; there is --json", file=sys.stderr)
        return 0 if is_help else 2
    requested = [word for word in argv if not word.startswith("-")]
    if unknown := sorted(set(requested) - set(names())):
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(names())}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in requested or names():
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        run: Callable[[], list[Row]] = import_module(f"bench.{PREFIX}{name}").run
        rows += run()
    print("\n".join(map(as_json, rows)) if "--json" in argv else as_table(rows))
    return int(any(row.holds is False for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
