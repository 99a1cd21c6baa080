"""The redrawn part of the chat as styled text: what is in flight, and the status line.  Pure."""

from __future__ import annotations

from typing import TypeAlias

from weft.cli.chat.screens.picker import ListPicker
from weft.cli.sanitize import clean, clean_line
from weft.view import LiveArea, TaskRow

Fragments: TypeAlias = list[tuple[str, str]]
"""Style and text, as the drawing library takes them."""

OUTPUT_LINES = 4
_DOING = {
    "thinking": "thinking",
    "executing_tool": "working",
    "awaiting_permission": "waiting for you",
}
_PHASES = {"planning": "planning", "replanning": "replanning", "checking": "checking the step"}
"""What the architect is at, where that says more."""


def in_flight(live: LiveArea, *, width: int, rows: int, seconds: int) -> Fragments:
    """What is being said and done right now; every line ends with a newline."""
    drawn: Fragments = []
    # At most half the window: the input line and the question must stay in sight. Cleaned as a
    # whole, because an escape sequence may be spread over several pieces.
    for line in tail(clean(live.text), width, max(3, rows // 2)):
        drawn.append(("", f"{line}\n"))
    for line in tail(clean(live.thinking), width - 2, 3):
        drawn.append(("class:quiet", f"∴ {line}\n"))
    working = {each.call_uid: each for each in live.tasks.values() if each.call_uid}
    for call_uid, tool in live.running.items():
        drawn.append(("class:tool", "● "))
        drawn.append(("", f"{fit(clean_line(tool.name), width - 2)}\n"))
        if (worker := working.get(call_uid)) is not None:
            drawn += _progress(worker, width)
            continue
        for line in tail(clean(tool.output), width - 2, OUTPUT_LINES):
            drawn.append(("class:quiet", f"  {line}\n"))
    drawn += _workers(live, width)
    if live.retry is not None:
        seconds_left = f"{live.retry.wait_ms / 1000:.0f} s"
        text = f"! {clean_line(live.retry.reason)}; trying again in {seconds_left}"
        drawn.append(("class:warning", f"{fit(text, width)}\n"))
    if live.is_busy and live.status != "awaiting_permission":
        doing = _DOING[live.status]
        doing = _PHASES.get(live.phase, doing)
        if live.preparing and live.status == "thinking":
            doing = f"preparing {clean_line(live.preparing)}"
        drawn.append(("class:quiet", f"{fit(f'· {doing} {seconds} s (esc stops it)', width)}\n"))
    for entry in sorted(live.queue, key=lambda each: each.delivery == "follow_up"):
        when = "after this turn" if entry.delivery == "follow_up" else "then"
        drawn.append(("class:quiet", f"{fit(f'› {when}: {clean_line(entry.text)}', width)}\n"))
    return drawn


def _workers(live: LiveArea, width: int) -> Fragments:
    """A line for each session that works for this one, but for those that stand with their call."""
    drawn: Fragments = []
    for worker in live.tasks.values():
        if worker.call_uid in live.running:
            continue
        title = f": {worker.title}" if worker.title else ""
        beside = " (background)" if worker.background else ""
        drawn.append(("class:tool", "⤷ "))
        drawn.append(("", f"{fit(clean_line(f'{worker.name}{title}{beside}'), width - 2)}\n"))
        drawn += _progress(worker, width)
    return drawn


def _progress(worker: TaskRow, width: int) -> Fragments:
    if not worker.progress:
        return []
    return [("class:quiet", f"  {fit(clean_line(worker.progress), width - 2)}\n")]


def status_line(live: LiveArea, *, width: int, notice: str = "") -> Fragments:
    """Mode, model, context and cost; the least important goes first when there is little room."""
    if notice:
        return [("class:warning", fit(f" {notice}", width))]
    mode = f"{live.mode} architect" if live.is_architect else live.mode
    mode_style = {"default": "class:status", "bypass": "class:danger"}.get(live.mode, "class:mode")
    model = clean_line(live.model)
    short = model.partition(":")[2].rpartition("/")[2] or model
    effort = f" {live.effort}" if live.effort not in ("default", "") else ""
    parts = [model + effort, _context(live), _cost(live)]
    # The mode is never dropped: it says what runs without asking.
    if len(f" {mode} · {' · '.join(parts)}") > width:
        parts[0] = short + effort
    while len(parts) > 1 and len(f" {mode} · {' · '.join(filter(None, parts))}") > width:
        parts.pop()
    rest = " · ".join(part for part in parts if part)
    return [
        (mode_style, f" {mode}"),
        ("class:status", fit(f" · {rest}", max(0, width - len(mode) - 1))),
    ]


def _context(live: LiveArea) -> str:
    if live.context_window:
        return (
            f"{live.context_used * 100 // live.context_window}% of "
            f"{_thousands(live.context_window)}"
        )
    return f"{_thousands(live.context_used)} tokens" if live.context_used else "0%"


def _thousands(count: int) -> str:
    return f"{count // 1000}k" if count >= 1000 else str(count)


def _cost(live: LiveArea) -> str:
    if live.cost_usd is None:
        return "cost unknown"
    return "under $0.01" if 0 < live.cost_usd < 0.01 else f"${live.cost_usd:.2f}"


def question_lines(choosing: ListPicker, *, width: int, is_ready: bool) -> Fragments:
    """A question with its rows."""
    question = choosing.question
    drawn: Fragments = [("class:question", f"{fit(question.title, width)}\n")]
    picked = choosing.picked()
    for number, row in choosing.visible():
        is_picked = number == picked
        mark = "❯" if is_picked else " "
        label = f" {mark} {number + 1}. {row.margin}{clean_line(row.label)}"
        drawn.append(("class:picked" if is_picked else "", fit(label, width)))
        if row.detail and len(label) + 4 < width:
            drawn.append(("class:quiet", fit(f"  {clean_line(row.detail)}", width - len(label))))
        drawn.append(("", "\n"))
    if not choosing.rows():
        drawn.append(("class:quiet", "   no match\n"))
    hint = question.hint if is_ready else "(finish what you type; then answer)"
    if choosing.words:
        hint = f"/{choosing.words}  {hint}"
    drawn.append(("class:quiet", f" {fit(hint, width - 1)}\n"))
    return drawn


def tail(text: str, width: int, rows: int) -> list[str]:
    """The last rows of a text, wrapped."""
    if not text.strip():
        return []
    lines: list[str] = []
    # Only the last lines are wrapped: a line is measured letter by letter, for every drawing.
    for line in text.expandtabs(4).strip("\n").split("\n")[-rows:]:
        lines += wrapped(line, max(width, 8))
    return lines[-rows:]


def wrapped(line: str, width: int) -> list[str]:
    """A line cut into pieces that fit, by cells, not by letters."""
    from prompt_toolkit.utils import get_cwidth

    pieces, piece, used = [], "", 0
    for letter in line:
        # East Asian characters and most emoji take two cells; counted as one, the line would wrap
        # and the redrawn area would scroll.
        cells = get_cwidth(letter)
        if used + cells > width:
            pieces.append(piece)
            piece, used = "", 0
        piece += letter
        used += cells
    return [*pieces, piece]


def fit(text: str, width: int) -> str:
    """The beginning of a text, as much as fits."""
    pieces = wrapped(text, max(width, 1))
    return pieces[0] if len(pieces) == 1 else f"{wrapped(text, max(width - 1, 1))[0]}…"
