"""Golden view files: events, the blocks that each of them gives, and the live area at the end.

The page's fold in TypeScript is held to the same files.  They are no stored data: a block may be
worded anew.  Then `python -m tests.support.view_golden --write` computes blocks and live area from
the events of each file, and the difference is read before it is committed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from weft.events import decode_event
from weft.view import LiveArea, SessionView

FOLDER = Path(__file__).parent.parent / "golden" / "view"


def read(file: Path) -> dict[str, Any]:
    """A golden file: `about`, `start` (a live area), `steps` and `live`."""
    golden: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return golden


def folded(golden: dict[str, Any]) -> dict[str, Any]:
    """The same file with the blocks and the live area that the fold makes of its events."""
    view = SessionView(msgspec.convert(golden["start"], LiveArea))
    steps = []
    for step in golden["steps"]:
        event = decode_event(msgspec.json.encode(step["event"]))
        steps.append({"event": step["event"], "blocks": plain(view.take(event))})
    return {**golden, "steps": steps, "live": plain(view.live)}


def plain(value: Any) -> Any:
    """A value as it would be read on the other side of a wire."""
    return json.loads(msgspec.json.encode(value))


def write() -> None:
    """Compute every golden file anew."""
    for file in sorted(FOLDER.glob("*.json")):
        text = json.dumps(folded(read(file)), ensure_ascii=False, indent=1)
        file.write_text(text + "\n", "utf-8")


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    write()
