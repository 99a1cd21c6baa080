"""The rows of the bottom region above its rule: running tools, activity, to-do, queue.  Pure."""

from __future__ import annotations

from weft.cli.chat.paint.card_text import long_duration
from weft.cli.chat.paint.text_cells import cells, fit, tail_rows, word_wrap
from weft.cli.chat.screens.terminal.activity import TurnActivity
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.sanitize import clean, clean_line
from weft.view import (
    LiveArea,
    RetryNotice,
    RunningTool,
    TaskRow,
    WaitNotice,
    count_of,
    verb_of,
)

OUTPUT_ROWS = 4
THOUGHT_ROWS = 2
WIDEST_THOUGHT = 118
"""Longer rows are hard to read; answers keep to the same."""
QUEUE_HINTS = ("Up edits · Esc stops and brings them back", "Up edits · Esc returns them")
"""The longest that fits is shown."""
QUEUE_ROWS = 3
RETRY_ROWS = 3
_PREPARING_ROOM = 36
"""Cells that the rest of that line takes: the verb, seconds, and which key stops it."""
_WAIT_ROOM = 34
"""The same for the line of a turn that waits."""
_STATE_ROOM = 12
"""Cells in which what an agent does is worth saying beside its counts."""
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
STILL = "·"
FRAMES_PER_SECOND = 8
_PHASES = {"planning": "Planning", "replanning": "Replanning", "checking": "Checking the step"}
"""What the architect is at, where that says more."""


class RegionRows:
    """Builds rows for one width and one moment."""

    def __init__(
        self, live: LiveArea, activity: TurnActivity, *, width: int, styles: RowStyles, mark: str
    ) -> None:
        """`mark` is the spinner's frame of this moment."""
        self._live = live
        self._activity = activity
        self._width = width
        self._styles = styles
        self._mark = mark

    # -- tools and agents

    def tools(self) -> list[str]:
        """A row for each tool that runs, and the end of the output of the latest."""
        live = self._live
        rows: list[str] = []
        agents = {each.call_uid for each in live.tasks.values() if each.call_uid}
        shown = {uid: tool for uid, tool in live.running.items() if uid not in agents}
        for call_uid, tool in shown.items():
            seconds = self._activity.tool_seconds(call_uid)
            rows.append(self._tool(tool, seconds))
        if shown:
            latest = list(shown.values())[-1]
            rows += [
                self._styles("quiet", f"  {row}")
                for row in tail_rows(clean(latest.output), self._width - 2, OUTPUT_ROWS)
            ]
        return rows

    def _tool(self, tool: RunningTool, seconds: int) -> str:
        time = f" {seconds} s" if seconds else ""
        text = fit(running_text(tool.name), self._width - 2 - len(time))
        return f"{self._styles('good', self._mark)} {text}{self._styles('quiet', time)}"

    def agents(self) -> list[str]:
        """A row for each agent and each background command."""
        tasks = list(self._live.tasks.values())
        labels = [fit(_task_label(task), max(8, self._width // 2)) for task in tasks]
        room = max(map(cells, labels), default=0)
        rows = []
        for number, (task, label) in enumerate(zip(tasks, labels, strict=True)):
            edge = "└" if number == len(tasks) - 1 else "├"
            gap = " " * (room - cells(label) + 2)
            about = self._task_state(task, self._width - 4 - room - 2)
            rows.append(f"  {edge} {label}{gap}{self._styles('quiet', about)}".rstrip())
        return rows

    def _task_state(self, task: TaskRow, room: int) -> str:
        """What it does, and how much it has done where that fits beside it."""
        doing = clean_line(task.doing)
        if not doing:
            return fit(task.tally, room)
        for tally in (task.tally, task.tally.partition(" · ")[0]):
            left = room - cells(tally) - 3
            if tally and left >= min(_STATE_ROOM, cells(doing)):
                return f"{fit(doing, left)} · {tally}"
        return fit(doing, room)

    # -- the activity line

    def activity(self) -> list[str]:
        """What the turn is at, and below it the last of its thoughts."""
        live = self._live
        if live.retry is not None:
            return self._retry(live.retry)
        if not live.can_stop or live.status == "awaiting_permission":
            return []
        if not live.is_busy:  # a command of the user's own; its row has the seconds
            return [self._line([self._verb()], "")]
        if live.wait is not None and live.status == "waiting":
            return [self._line(self._wait(live.wait), "")]
        silent = self._activity.silent_seconds
        parts = [self._doing()]
        if silent and not live.running:
            parts.append(f"no data for {silent} s")
        elif live.text or live.thinking:
            tokens = self._activity.tokens
            if tokens:
                parts.append(f"↓ {_thousands(tokens)} tokens")
        style = "ask" if silent and not live.running else ""
        room = min(self._width - 2, WIDEST_THOUGHT)
        thoughts = tail_rows(clean(live.thinking), room, THOUGHT_ROWS)
        return [
            self._line(parts, style),
            *(self._styles("quiet italic", f"  {row}") for row in thoughts),
        ]

    def waiting(self) -> str:
        """The activity of a message that has no turn yet."""
        return self._line([f"Waiting for {short_model(self._live.model)}"], "")

    def _line(self, parts: list[str], style: str) -> str:
        """The parts, and which key stops it; what does not fit goes from the end, the key last
        where nothing is wrong."""
        parts = [*parts, "Esc stops"]
        while len(parts) > 1 and cells(" · ".join(parts)) > self._width - 2:
            parts.pop(-2 if len(parts) > 2 and not style else -1)
        text = fit(" · ".join(parts), self._width - 2)
        head, mark, rest = text.partition(" · ")
        shown = self._styles(style, head) + self._styles(style or "quiet", mark + rest)
        return f"{self._styles(style or 'you', self._mark)} {shown}"

    def _doing(self) -> str:
        seconds = self._activity.seconds
        # From a second on: before, the number would only flicker.
        time = f" {seconds} s" if seconds else ""
        return f"{self._verb()}{time}"

    def _verb(self) -> str:
        live = self._live
        agents = [task for task in live.tasks.values() if task.purpose != "command"]
        if live.running:
            waiting = [task for task in agents if task.call_uid in live.running]
            if waiting and len(waiting) == len(live.running):
                return count_of(len(waiting), "agent")
            return f"Running {count_of(len(live.running), _kind(live))}"
        if live.phase in _PHASES:
            return _PHASES[live.phase]
        if live.text:
            return "Writing"
        if live.preparing:
            target = clean_line(f"{live.preparing} {live.preparing_target}")
            return f"Preparing {fit(target, max(8, self._width - _PREPARING_ROOM))}"
        if live.thinking:
            return "Thinking"
        return f"Waiting for {short_model(live.model)}"

    def _wait(self, wait: WaitNotice) -> list[str]:
        """What the turn waits for, since when, and until when."""
        waited = long_duration(self._activity.waited_seconds(wait))
        until = "" if wait.until is None else f"until {self._activity.clock_time(wait.until)}"
        if not wait.name:
            return [f"Waiting {until}".strip(), waited]
        until = until and f"{until} at the latest"
        shown = f"{wait.name} ({clean_line(wait.text)})" if wait.text else wait.name
        room = self._width - len(waited) - len(until) - _WAIT_ROOM
        return [f"Waiting for {fit(shown, max(8, room))}", waited, *([until] if until else [])]

    def _retry(self, retry: RetryNotice) -> list[str]:
        left = self._activity.retry_seconds(retry.wait_ms)
        place = f"{retry.attempt + 1} of {retry.tries}" if retry.tries else f"{retry.attempt + 1}"
        when = f"next try in {left} s, {place}" if left else f"try {place}"
        # The countdown always fits in the first row: a head that leaves no room for it, or a reason
        # that has none, goes whole into the wrapped rows.
        reason = clean_line(retry.reason)
        head, mark, rest = reason.partition(": ")
        room = self._width - 2 - len(when) - 2
        if not mark or cells(head) > room:
            head, rest = fit("Trying again", room), reason
        first = self._line([f"{head}: {when}"], "ask")
        words = word_wrap(rest.strip(), self._width - 2)
        if len(words) > RETRY_ROWS:
            last = fit(" ".join(words[RETRY_ROWS - 1 :]), self._width - 2)
            words = [*words[: RETRY_ROWS - 1], last]
        return [first, *(self._styles("quiet", f"  {row}") for row in words)]

    # -- the to-do list

    def todo(self, *, unfolded: bool) -> list[str]:
        """One row while the list is open, or all of it."""
        items = [each for each in self._live.todos if each.status != "cancelled"]
        open_items = [each for each in items if each.status != "done"]
        if not open_items:
            return []
        current = next((each for each in items if each.status == "in_progress"), open_items[0])
        done = len(items) - len(open_items)
        head = fit(f"☐ {done}/{len(items)} {clean_line(current.text)}", self._width)
        if not unfolded:
            return [self._styles("quiet", head[:1]) + head[1:]]
        rows = []
        for each in items:
            mark = "☑" if each.status == "done" else "☐"
            text = fit(f"{mark} {clean_line(each.text)}", self._width)
            style = "bold" if each is current else "quiet" if each.status == "done" else ""
            rows.append(self._styles(style, text))
        return rows

    # -- the goal

    def goal(self) -> list[str]:
        """What is worked for turn after turn."""
        goal = self._live.goal
        if goal is None:
            return []
        said = clean_line(goal.line(self._live.cost_usd))
        hint = " · /goal resume" if goal.paused else ""
        return [self._styles("quiet", fit(f"◎ {said}{hint}", self._width))]

    # -- the queue

    def queue(self, *, hints: bool) -> list[str]:
        """What waits to be said; `hints` says how to get it back."""
        rows: list[str] = []
        queue = sorted(self._live.queue, key=lambda each: each.delivery == "follow_up")
        for number, entry in enumerate(queue[:QUEUE_ROWS]):
            when = "after" if entry.delivery == "follow_up" else "next"
            text = fit(clean_line(entry.text), self._width - 11)
            rows.append(self._styles("quiet", f"  {when:<5}  › {text}"))
            if number == 0 and hints:
                room = self._width - 9
                hint = next((each for each in QUEUE_HINTS if cells(each) <= room), QUEUE_HINTS[-1])
                rows.append(self._styles("quiet", f"         {fit(hint, room)}"))
        if len(queue) > QUEUE_ROWS:
            rows.append(
                self._styles("quiet", f"         … {len(queue) - QUEUE_ROWS} more · /queue")
            )
        return rows


def running_text(name: str) -> str:
    """What a running tool does: `Running make`."""
    tool, space, rest = clean_line(name).partition(" ")
    verb = verb_of(tool).capitalize()
    return f"{verb} {rest}".rstrip() if verb else f"{tool}{space}{rest}"


def short_model(model: str) -> str:
    """A model's name without its provider and folder."""
    model = clean_line(model)
    return model.partition(":")[2].rpartition("/")[2] or model


def _kind(live: LiveArea) -> str:
    names = {clean_line(tool.name).partition(" ")[0] for tool in live.running.values()}
    return "command" if all(verb_of(name) == "running" for name in names) else "tool"


def _task_label(task: TaskRow) -> str:
    beside = " (background)" if task.background else ""
    return clean_line(f"{task.title or task.name}{beside}")


def _thousands(count: int) -> str:
    return f"{count / 1000:.1f}k" if count >= 1000 else str(count)
