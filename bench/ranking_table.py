"""`python -m bench.ranking_table DATA TREES`: how well requests find the files and symbols that
real commits changed, beside baselines.

DATA holds `NAME.cases.jsonl` (`request`, `request_hard`, `files`, `symbols`), `NAME.history.jsonl`
and `NAME.meta.json`; TREES holds the tree of each NAME as it was before those commits.  None of
them is part of this repository.  `--repositories DIR`: DIR/NAME is the git directory of NAME; then
the changed lines are counted too: a line counts when the map shows the innermost definition that it
lies in.  `--aider PYTHON`: an interpreter that has aider, whose maps are measured as ours are.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from bench.gold_lines import GoldLines, innermost
from weft.repo.index_cache import IndexCache
from weft.repo.indexer import ParentLink, index_project
from weft.repo.indexer_order import CACHE, IndexOrder
from weft.repo.project_index import ProjectIndex

BUDGETS = (512, 1024, 2048)
MEASURES = (
    *("MRR", "R@5", "R@10", "files@512", "files@1024"),
    *("symbols@512", "symbols@1024", "symbols@2048", "lines@1024", "lines@2048"),
)
Case = dict[str, Any]
Maps = dict[int, str]


class MeasuredCase(NamedTuple):
    """A case with what is expected of its map."""

    case: Case
    request: str
    files: tuple[str, ...]
    lines: tuple[tuple[str, str | None], ...]
    """File and definition of each changed line."""
    mentioned: tuple[str, ...] = ()


class Answer(NamedTuple):
    """What a mapper makes of a request: the order of files, and maps by their tokens."""

    order: Sequence[str]
    maps: Maps


Mapper = Callable[[MeasuredCase], Answer]


def main(argv: Sequence[str]) -> int:
    """Print the table."""
    options = _options(argv)
    names = sorted(
        path.name.removesuffix(".cases.jsonl") for path in options.data.glob("*.cases.jsonl")
    )
    rows: dict[str, list[dict[str, float]]] = {}
    for name in names:
        for row, measured in _project(name, options):
            rows.setdefault(row, []).append(measured)
    print(f"{'mean over ' + ', '.join(names):<40}" + "".join(f"{each:>13}" for each in MEASURES))
    for row, values in rows.items():
        print(f"{row:<40}" + "".join(f"{_mean(values, each):>13}" for each in MEASURES))
    return 0


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench.ranking_table", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("trees", type=Path)
    parser.add_argument("--repositories", type=Path)
    parser.add_argument("--aider")
    return parser.parse_args(argv)


def _mean(values: Sequence[dict[str, float]], measure: str) -> str:
    found = [each[measure] for each in values if measure in each]
    return f"{mean(found):.3f}" if found else "–"


def _project(name: str, options: argparse.Namespace) -> Iterator[tuple[str, dict[str, float]]]:
    tree = options.trees / name
    with tempfile.TemporaryDirectory() as folder:
        history = str(options.data / f"{name}.history.jsonl")
        order = IndexOrder(project=str(tree), folder=folder, history=history)
        cache = IndexCache(Path(folder) / CACHE, writes=True)
        index_project(cache, order, ParentLink(None))
        index = ProjectIndex(str(tree), Path(folder))
        cases = _cases(name, options, index)
        plain = [_asked(case, "request", lines) for case, lines in cases]
        hard = [_asked(case, "request_hard", lines) for case, lines in cases]
        yield "ours, request", _measured(plain, _ours(index))
        yield "ours, request_hard", _measured(hard, _ours(index))
        mentioning = [_mentioning(each) for each in plain if len(each.files) > 1]
        yield "ours, one changed file mentioned", _measured(mentioning, _ours(index))
        yield "ours, the map in the prefix", _measured(plain, _overview(index))
        if options.aider:
            yield "aider, request", _measured(plain, _by_aider(options.aider, tree, plain))
        paths = sorted(cache.ids())
        texts = {path: (tree / path).read_text("utf-8", "replace").lower() for path in paths}
        yield "request words in the file (grep)", _measured(plain, _by_grep(texts))
        yield "alphabetical", _measured(plain, lambda _: Answer(paths, {}))


def _cases(
    name: str, options: argparse.Namespace, index: ProjectIndex
) -> list[tuple[Case, tuple[tuple[str, str | None], ...]]]:
    cases: list[Case] = [json.loads(line) for line in (options.data / f"{name}.cases.jsonl").open()]
    if options.repositories is None:
        return [(case, ()) for case in cases]
    meta = json.loads((options.data / f"{name}.meta.json").read_text())
    gold = GoldLines(options.repositories / name, meta["snapshot"])
    return [
        (
            case,
            tuple(
                (file, innermost(index.outline(file) or [], line)) for file, line in gold.of(case)
            ),
        )
        for case in cases
    ]


def _asked(case: Case, field: str, lines: tuple[tuple[str, str | None], ...]) -> MeasuredCase:
    return MeasuredCase(case, case.get(field, ""), tuple(case["files"]), lines)


def _mentioning(given: MeasuredCase) -> MeasuredCase:
    """The same with the first changed file in the conversation: the others are looked for."""
    first, *others = given.files
    lines = tuple(each for each in given.lines if each[0] != first)
    return given._replace(files=tuple(others), mentioned=(first,), lines=lines)


# -- mappers


def _ours(index: ProjectIndex) -> Mapper:
    def answer(given: MeasuredCase) -> Answer:
        request, focus = given.request, given.mentioned
        maps = {size: index.map(request, focus, size) for size in BUDGETS}
        return Answer(index.rank(request, focus), maps)

    return answer


def _overview(index: ProjectIndex) -> Mapper:
    maps = {size: index.overview(size) for size in BUDGETS}
    return lambda _: Answer(list(_sections(maps[2048])), maps)


def _by_grep(texts: dict[str, str]) -> Mapper:
    def answer(given: MeasuredCase) -> Answer:
        words = set(re.findall(r"\w{4,}", given.request.lower()))
        count = {path: -sum(word in text for word in words) for path, text in texts.items()}
        return Answer(sorted(texts, key=lambda path: (count[path], path)), {})

    return answer


def _by_aider(python: str, tree: Path, asked: Sequence[MeasuredCase]) -> Mapper:
    """Maps of 1,024 tokens, of a copy of the tree: aider writes into it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / tree.name
        shutil.copytree(tree, copy, symlinks=True)
        script = Path(__file__).with_name("aider_map.py")
        done = subprocess.run(
            [python, str(script), str(copy), "1024"],
            input="".join(f"{json.dumps(each.request)}\n" for each in asked),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
    answers = dict(zip((id(each.case) for each in asked), done.stdout.splitlines(), strict=True))

    def answer(given: MeasuredCase) -> Answer:
        text, order = json.loads(answers[id(given.case)])
        return Answer(order, {1024: re.sub(r"^(\S+):$", r"\1", text, flags=re.MULTILINE)})

    return answer


# -- measures


def _measured(asked: Sequence[MeasuredCase], mapper: Mapper) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for given in asked:
        if given.request:
            for measure, value in _score(given, mapper(given)).items():
                found.setdefault(measure, []).append(value)
    return {measure: mean(values) for measure, values in found.items()}


def _score(given: MeasuredCase, answer: Answer) -> dict[str, float]:
    files, order = given.files, list(answer.order)
    places = [order.index(file) + 1 for file in files if file in order]
    found = {"MRR": 1 / min(places) if places else 0.0}
    for most in (5, 10):
        found[f"R@{most}"] = sum(place <= most for place in places) / min(most, len(files))
    symbols = [
        (file, name)
        for file, names in given.case.get("symbols", {}).items()
        if file in files
        for name in names
    ]
    for size, text in answer.maps.items():
        shown = _sections(text)
        found[f"files@{size}"] = mean(file in shown for file in files)
        if symbols:
            found[f"symbols@{size}"] = _share(symbols, shown)
        if given.lines:
            found[f"lines@{size}"] = _share(given.lines, shown)
    return found


def _share(wanted: Sequence[tuple[str, str | None]], shown: dict[str, str]) -> float:
    """Of definitions by file and name, how many a map shows under their own file."""
    return mean(name is not None and _names(name, shown.get(file, "")) for file, name in wanted)


def _sections(text: str) -> dict[str, str]:
    """What a map shows under each file."""
    sections: dict[str, str] = {}
    path = ""
    for line in text.splitlines():
        if line[:1] not in ("", " ", "│", "⋮"):
            path = line
            sections[path] = ""
        elif path:
            sections[path] += f"{line}\n"
    return sections


def _names(name: str, section: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", section) is not None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
