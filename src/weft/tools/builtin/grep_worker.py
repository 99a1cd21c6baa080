"""The program that `grep` starts where there is no ripgrep: an order as JSON in, matching lines
out.

Runs alone, without the rest of Weft, so that it starts fast; it borrows only the file that opens
names without following links.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import stat
import sys
from typing import Any

_MAX_FILE = 16 * 1024 * 1024
_PROBE = 8192
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def main() -> None:
    """Search the files that the order names."""
    order = json.load(sys.stdin)
    try:
        flags = re.MULTILINE if order["crosses_lines"] else 0
        flags |= re.IGNORECASE if order["ignore_case"] else 0
        pattern = re.compile(order["pattern"], flags)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stdout.write(f"bad pattern: {error}\n")
        return
    opener = _opener()
    left = int(order["limit"])
    root = os.open(order["root"], os.O_RDONLY | os.O_DIRECTORY)
    top = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    for name in order["names"]:
        text = _read(opener, top if name.startswith("/") else root, name.lstrip("/"))
        if text is None:
            continue
        for line in _matches(pattern, text, name, order):
            sys.stdout.write(line + "\n")
            left -= 1
            if left <= 0:
                return


def _opener() -> Any:
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    path = os.path.join(package, "workspace", "safe_open.py")
    spec = importlib.util.spec_from_file_location("safe_open", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.walk  # as strict as the system call, and it loads no ctypes


def _read(opener: Any, folder: int, name: str) -> str | None:
    """The text of a regular file; None for all else."""
    try:
        # Non-blocking: to open a pipe that no program writes to would wait for ever. It is looked
        # at after the opening, since before it another file could take the place.
        fd = opener(folder, name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY, 0)
    except OSError:
        return None
    with open(fd, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        data = file.read(_MAX_FILE)
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace")
    if b"\0" in data[:_PROBE]:
        return None
    return data.decode(errors="replace")


def _matches(pattern: re.Pattern[str], text: str, name: str, order: dict[str, Any]) -> list[str]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    if lines and not lines[-1]:
        lines.pop()
    if order["crosses_lines"]:
        hits = _across(pattern, lines, order["limit"])
    else:
        hits = [number for number, line in enumerate(lines) if pattern.search(line)]
    if not hits:
        return []
    if order["files_only"]:
        return [name]
    around, most = order["context"], order["max_line"]
    wanted = sorted(
        {n for hit in hits for n in range(hit - around, hit + around + 1)} & set(range(len(lines)))
    )
    matched = set(hits)
    found: list[str] = []
    for index, number in enumerate(wanted):
        if around and index and number != wanted[index - 1] + 1:
            found.append("--")
        mark = ":" if number in matched else "-"
        line = lines[number]
        shown = line if len(line) <= most else f"{line[:most]} (…)"
        found.append(f"{name}{mark}{number + 1}{mark}{shown}")
    return found


def _across(pattern: re.Pattern[str], lines: list[str], most: int) -> list[int]:
    """The lines of matches that may go over several; their ends are line breaks, whatever stands
    in the file."""
    text = "\n".join(lines)
    hits: list[int] = []
    number, at = 0, 0
    for found in pattern.finditer(text):
        number += text.count("\n", at, found.start())
        at = found.start()
        # A break at the end of a match is that of its last line.
        last = number + text.count("\n", at, max(at, found.end() - 1))
        hits += [each for each in range(number, last + 1) if not hits or each > hits[-1]]
        if len(hits) > most:
            break
    return hits


if __name__ == "__main__":
    main()
