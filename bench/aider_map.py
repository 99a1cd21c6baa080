"""Maps by aider, for `bench.ranking_table`; run by an interpreter that has aider and not Weft.

    python aider_map.py TREE TOKENS <requests >maps

Each line of the input is a request in JSON; each line of the output its map and the files of it in
the order of aider's own ranking (the map is sorted by name).
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from typing import Any


class PlainModel:
    """Counts tokens roughly: four letters each."""

    def token_count(self, text: str) -> int:
        return len(text) // 4


class SilentIo:
    """Says nothing, and reads files."""

    def read_text(self, path: str, silent: bool = False) -> str | None:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return None

    def tool_output(self, *_: object, **__: object) -> None: ...
    def tool_warning(self, *_: object, **__: object) -> None: ...
    def tool_error(self, *_: object, **__: object) -> None: ...


def main(tree: str, tokens: int) -> None:
    """Answer each request of the input."""
    made: Any = importlib.import_module("aider.repomap").RepoMap(
        # Without a factor: it would take eight times the tokens where no file is in the chat.
        *(tokens, tree, PlainModel(), SilentIo()),
        map_mul_no_files=1,
        refresh="always",
    )
    files = [
        os.path.join(folder, name)
        for folder, folders, names in os.walk(tree)
        for name in sorted(names)
        if not any(part.startswith(".aider") for part in (*folder.split("/"), name))
    ]
    paths = {os.path.relpath(file, tree) for file in files}
    for line in sys.stdin:
        words = set(re.split(r"\W+", json.loads(line)))
        # As in its chat: file names that the message mentions, and all its words as identifiers.
        named = {path for path in paths if path in words or os.path.basename(path) in words}
        ranked = made.get_ranked_tags(set(), files, named, words)
        order = list(dict.fromkeys(str(tag[0]) for tag in ranked))
        text = made.get_repo_map(set(), files, named, words) or ""
        print(json.dumps([text, order]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
