"""The keys, as `?` on an empty line shows them below the input."""

from __future__ import annotations

from collections.abc import Mapping

from weft.cli.chat.paint.text_cells import cells, fit
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.keys import CHAT_KEYS

_WIDE = 100
_NAME_CELLS = 10


def key_rows(
    *, width: int, limit: int, styles: RowStyles, names: Mapping[str, str] | None = None
) -> list[str]:
    """The keys of the panel, in two columns where there is room; what does not fit is counted.

    `names` has the names of keys that the user has set, by those that they have else.
    """
    panel = [
        (_short((names or {}).get(key.name, key.name)), key.short) for key in CHAT_KEYS if key.short
    ]
    columns = 2 if width >= _WIDE else 1
    height = -(-len(panel) // columns)
    shown = min(height, max(1, limit))
    if shown < height:
        shown = max(1, shown - 1)
    rows = []
    for number in range(shown):
        row = "".join(
            _entry(*panel[place], width // columns, styles)
            for place in range(number, len(panel), height)
        )
        rows.append(row.rstrip())
    if shown < height:
        rows.append(styles("quiet", f"  … {(height - shown) * columns} more · /help"))
    return rows


def _short(name: str) -> str:
    # The first of several names is enough here: `Ctrl+J`, not also `\\ Enter`.
    return name if len(name) <= _NAME_CELLS else name.partition(",")[0]


def _entry(key: str, about: str, width: int, styles: RowStyles) -> str:
    text = fit(about, width - 14)
    return (
        f"  {key:<{_NAME_CELLS}}  {styles('quiet', text)}{' ' * max(0, width - 14 - cells(text))}"
    )
