"""What a demo shows, and the picture of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.support.terminal_picture import picture

COLUMNS: Final = 100
BOLD, DIM, RED, GREEN, AMBER, PLAIN = (
    f"\x1b[{code}m" for code in ("1", "2", "31", "32", "33", "0")
)


class DemoScreen:
    """What is shown, and kept for the picture."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def show(self, text: str = "") -> None:
        """Show a line."""
        self.lines.append(text)
        print(text, flush=True)

    def save(self, path: str, title: str) -> None:
        """Write the picture; nothing without a path."""
        if path:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(picture("\n".join(self.lines), title, COLUMNS))
