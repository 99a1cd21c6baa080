"""`python -m bench.ranking_table DATA TREES`: how well requests find the files and symbols that
real commits changed, beside baselines.

DATA holds `NAME.cases.jsonl` (`request`, `request_hard`, `files`, `symbols`) and
`NAME.history.jsonl`; TREES holds the tree of each NAME as it was before those commits.  Neither is
part of this repository.  The lines of the changes are not in the cases, so lines are not counted.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from weft.repo.index_cache import IndexCache
from weft.repo.indexer import ParentLink, index_project
from weft.repo.indexer_order import CACHE, IndexOrder
from weft.repo.project_index import ProjectIndex

MEASURES = ("MRR", "R@5", "R@10", "files@512", "symbols@512", "symbols@1024", "symbols@2048")
BUDGETS = (512, 1024, 2048)
Ranker = Callable[[str], Sequence[str]]


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    data, trees = map(Path, argv)
    names = sorted(path.name.removesuffix(".cases.jsonl") for path in data.glob("*.cases.jsonl"))
    rows: dict[str, list[dict[str, float]]] = {}
    for name in names:
        for row, measured in _project(name, data, trees / name):
            rows.setdefault(row, []).append(measured)
    print(f"{'mean over ' + ', '.join(names):<48}" + "".join(f"{each:>14}" for each in MEASURES))
    for row, values in rows.items():
        means = (mean(each[measure] for each in values) for measure in MEASURES)
        print(f"{row:<48}" + "".join(f"{value:>14.3f}" for value in means))
    return 0


def _project(name: str, data: Path, tree: Path) -> Iterator[tuple[str, dict[str, float]]]:
    cases = [json.loads(line) for line in (data / f"{name}.cases.jsonl").open()]
    with tempfile.TemporaryDirectory() as folder:
        order = IndexOrder(
            project=str(tree), folder=folder, history=str(data / f"{name}.history.jsonl")
        )
        cache = IndexCache(Path(folder) / CACHE, writes=True)
        index_project(cache, order, ParentLink(None))
        index = ProjectIndex(str(tree), Path(folder))
        paths = sorted(cache.ids())
        texts = {path: (tree / path).read_text("utf-8", "replace").lower() for path in paths}
        for field in ("request", "request_hard"):
            asked = [(case[field], case) for case in cases if field in case]
            yield f"ours, {field}", _measured(asked, index.rank, index)
        asked = [(case["request"], case) for case in cases]
        yield "request words in the file (grep)", _measured(asked, _by_grep(texts), None)
        yield "alphabetical", _measured(asked, lambda _: paths, None)


def _by_grep(texts: dict[str, str]) -> Ranker:
    def rank(request: str) -> list[str]:
        words = set(re.findall(r"\w{4,}", request.lower()))
        count = {path: -sum(word in text for word in words) for path, text in texts.items()}
        return sorted(texts, key=lambda path: (count[path], path))

    return rank


def _measured(
    asked: Sequence[tuple[str, dict[str, Any]]], rank: Ranker, index: ProjectIndex | None
) -> dict[str, float]:
    found: dict[str, list[float]] = {measure: [] for measure in MEASURES}
    for request, case in asked:
        order = list(rank(request))
        places = [order.index(file) + 1 for file in case["files"] if file in order]
        found["MRR"].append(1 / min(places) if places else 0.0)
        for most in (5, 10):
            hits = sum(place <= most for place in places)
            found[f"R@{most}"].append(hits / min(most, len(case["files"])))
        maps = {size: index.map(request, (), size) if index else "" for size in BUDGETS}
        shown = {size: _sections(text) for size, text in maps.items()}
        found["files@512"].append(mean(file in shown[512] for file in case["files"]))
        symbols = [
            (file, name) for file, names in case.get("symbols", {}).items() for name in names
        ]
        for size in BUDGETS if symbols else ():
            named = (_names(name, shown[size].get(file, "")) for file, name in symbols)
            found[f"symbols@{size}"].append(mean(named))
    return {measure: mean(values) if values else 0.0 for measure, values in found.items()}


def _sections(text: str) -> dict[str, str]:
    """What a map shows under each file."""
    sections: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith(" "):
            path = line
            sections[path] = ""
        else:
            sections[path] += f"{line}\n"
    return sections


def _names(name: str, section: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", section) is not None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
