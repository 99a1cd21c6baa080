"""One row of the table, and how the table is printed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple


class Row(NamedTuple):
    """One measured thing."""

    name: str
    value: float
    unit: str
    floor: float | None = None
    """The same work done bare, in the same run and unit; None where there is no such thing."""
    limit: float | None = None
    """The value that has to be kept; None where nothing is promised."""
    of: Literal["value", "ratio"] = "value"
    """What the limit is a limit of."""
    better: Literal["less", "more"] = "less"
    """Which side of the limit is the good one."""

    @property
    def ratio(self) -> float | None:
        """How many times the floor it costs; for rates, how much of the floor's rate is kept."""
        return self.value / self.floor if self.floor else None

    @property
    def holds(self) -> bool | None:
        """Whether the limit is kept; None where there is none."""
        measured = self.value if self.of == "value" else self.ratio
        if self.limit is None or measured is None:
            return None
        return measured <= self.limit if self.better == "less" else measured >= self.limit


HEADINGS = ("what", "value", "unit", "floor", "ratio", "limit", "")


def as_table(rows: Sequence[Row]) -> str:
    """All rows, aligned: names to the left, numbers to the right."""
    cells = [HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (0, 2) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def as_json(row: Row) -> str:
    """One row as a JSON line."""
    return json.dumps(row._asdict() | {"ratio": row.ratio, "holds": row.holds})


def _cells(row: Row) -> tuple[str, ...]:
    sign = "≤" if row.better == "less" else "≥"
    limit = "" if row.limit is None else f"{sign} {_number(row.limit)}"
    verdict = {None: "", True: "ok", False: "MISSED"}[row.holds]
    return (
        row.name,
        _number(row.value),
        row.unit,
        _number(row.floor),
        "" if row.ratio is None else f"{row.ratio:.2f} ×",
        f"{limit} ×" if limit and row.of == "ratio" else limit,
        verdict,
    )


def _number(value: float | None) -> str:
    """Three digits that mean something."""
    if value is None:
        return ""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"
