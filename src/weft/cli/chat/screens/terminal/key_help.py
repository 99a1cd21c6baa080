"""The keys, as `?` on an empty line shows them below the input."""

from __future__ import annotations

from weft.cli.chat.paint.text_cells import cells, fit
from weft.cli.chat.screens.terminal.styles import RowStyles

KEYS = (
    ("Enter", "send; while it works: before the next step"),
    ("Alt+Enter", "new line; while it works: after the turn"),
    ("Ctrl+J", "new line"),
    ("Up, Down", "earlier messages; while it works: edit what waits"),
    ("Ctrl+R", "search earlier messages"),
    ("Ctrl+G", "write in your editor"),
    ("Tab", "complete"),
    ("Shift+Tab", "next permission mode"),
    ("Esc", "stop"),
    ("Esc Esc", "rewind"),
    ("Ctrl+C", "stop, clear; twice quits"),
    ("Ctrl+O", "everything unfolded"),
    ("Ctrl+T", "to-do list"),
    ("Alt+P", "model"),
    ("@", "attach a file"),
    ("/", "commands"),
    ("!", "run a command as you; !! keeps it from the model"),
)
_WIDE = 100


def key_rows(*, width: int, limit: int, styles: RowStyles) -> list[str]:
    """All keys, in two columns where there is room; what does not fit is counted."""
    columns = 2 if width >= _WIDE else 1
    height = -(-len(KEYS) // columns)
    shown = min(height, max(1, limit))
    if shown < height:
        shown = max(1, shown - 1)
    rows = []
    for number in range(shown):
        row = "".join(
            _entry(*KEYS[place], width // columns, styles)
            for place in range(number, len(KEYS), height)
        )
        rows.append(row.rstrip())
    if shown < height:
        rows.append(styles("quiet", f"  … {(height - shown) * columns} more · /help"))
    return rows


def _entry(key: str, about: str, width: int, styles: RowStyles) -> str:
    text = fit(about, width - 14)
    return f"  {key:<10}  {styles('quiet', text)}{' ' * max(0, width - 14 - cells(text))}"
