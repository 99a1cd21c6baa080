"""The models that write: which, how many branches of each, how long, how warm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from weft.cli.chat.paint.text_cells import cells, fit
from weft.cli.chat.screens.terminal.region_painter import ScreenSize
from weft.cli.chat.screens.terminal.styles import RowStyles
from weft.cli.loom_view.panels.view_panel import NOTHING, ViewPanel
from weft.cli.loom_view.text_rows import ViewFrame, panel_frame
from weft.cli.loom_view.view_command import ViewCommand
from weft.cli.sanitize import clean_line
from weft.loom import ModelPlanEntry
from weft.loom.model_plan import clamped_branches, clamped_temperature, clamped_tokens

FIELDS: Final = ("n", "tokens", "temperature")
TOKEN_STEP: Final = 10
LOGPROBS: Final = 5
"""Alternatives of each token that are asked for."""
_KEYS: Final = (
    "Enter keeps it · Esc · h l + - or a number · a adds · D removes · Space on or off · "
    "P probabilities of tokens"
)


class PlanPanel(ViewPanel):
    """A plan that is being changed."""

    def __init__(self, plan: Sequence[ModelPlanEntry], logprobs: int) -> None:
        self._plan = list(plan)
        self._logprobs = logprobs
        self._row = 0
        self._field = 0
        self._typed = ""
        self.notice = ""
        self.is_over = False

    @property
    def plan(self) -> tuple[ModelPlanEntry, ...]:
        """As it is now."""
        return tuple(self._plan)

    def add(self, model: str) -> None:
        """One more model, with the settings of the one that is picked."""
        if any(each.model == model for each in self._plan):
            self.notice = "it is in the list already"
            return
        like = self._plan[self._row]
        entry = replace(like, model=model, enabled=True, strategy="")
        # A plan that names no model stands for the default one, which has no name yet.
        self._plan = [*(each for each in self._plan if each.model), entry]
        self._row = len(self._plan) - 1

    def press(self, key: str) -> Sequence[ViewCommand]:
        self.notice = ""
        if key.isdigit() or (key == "." and self._field == 2):
            self._typed += key
            return NOTHING
        if key == "backspace" and self._typed:
            self._typed = self._typed[:-1]
            return NOTHING
        self._take_typed()
        if key in ("escape", "q", "c-c"):
            self.is_over = True
        elif key == "enter":
            self.is_over = True
            return (ViewCommand("plan", plan=self.plan, logprobs=self._logprobs),)
        elif key == "a":
            return (ViewCommand("add_model"),)
        else:
            self._change(key)
        return NOTHING

    def _change(self, key: str) -> None:
        entry = self._plan[self._row]
        if key in ("j", "down", "k", "up"):
            step = 1 if key in ("j", "down") else -1
            self._row = (self._row + step) % len(self._plan)
        elif key in ("l", "right", "tab", "h", "left"):
            step = -1 if key in ("h", "left") else 1
            self._field = (self._field + step) % len(FIELDS)
        elif key == "space":
            self._plan[self._row] = replace(entry, enabled=not entry.enabled)
        elif key in ("+", "=", "-"):
            self._plan[self._row] = self._stepped(entry, -1 if key == "-" else 1)
        elif key == "P":
            self._logprobs = 0 if self._logprobs else LOGPROBS
        elif key == "D" and len(self._plan) > 1:
            del self._plan[self._row]
            self._row = min(self._row, len(self._plan) - 1)
        elif key == "D":
            self.notice = "one model has to stay"

    def _stepped(self, entry: ModelPlanEntry, step: int) -> ModelPlanEntry:
        match FIELDS[self._field]:
            case "n":
                return replace(entry, n_branches=clamped_branches(entry.n_branches + step))
            case "tokens":
                size = TOKEN_STEP if entry.max_tokens + step <= 100 else 5 * TOKEN_STEP
                return replace(entry, max_tokens=clamped_tokens(entry.max_tokens + step * size))
            case _:
                warmer = round(entry.temperature + step / 10, 2)
                return replace(entry, temperature=clamped_temperature(warmer))

    def _take_typed(self) -> None:
        typed, self._typed = self._typed, ""
        entry = self._plan[self._row]
        try:
            number = float(typed)
        except ValueError:
            return
        match FIELDS[self._field]:
            case "n":
                changed = replace(entry, n_branches=clamped_branches(int(number)))
            case "tokens":
                changed = replace(entry, max_tokens=clamped_tokens(int(number)))
            case _:
                changed = replace(entry, temperature=clamped_temperature(number))
        self._plan[self._row] = changed

    def paste(self, text: str) -> Sequence[ViewCommand]:
        return NOTHING

    # -- drawing

    def frame(self, size: ScreenSize, styles: RowStyles) -> ViewFrame:
        width = size.columns - 4
        names = max(8, width - 34)
        head = f"    {'model':{names}}  branches  tokens  temp."
        body = [styles("quiet", fit(head, width))]
        body += [self._line(number, names, styles) for number in range(len(self._plan))]
        total = sum(each.n_branches for each in self._plan if each.enabled)
        asked = f"on ({self._logprobs} alternatives)" if self._logprobs else "off"
        body += ["", styles("quiet", fit(f"Probabilities of tokens: {asked}", width))]
        if self.notice:
            body.append(styles("ask", fit(self.notice, width)))
        words = f"{total} branches" if total != 1 else "1 branch"
        return ViewFrame(panel_frame("Models", words, body, _KEYS, size, styles))

    def _line(self, number: int, names: int, styles: RowStyles) -> str:
        entry = self._plan[number]
        is_picked = number == self._row
        name = fit(clean_line(entry.model) or "(the default model)", names)
        mark = "●" if entry.enabled else "○"
        lead = f"{'❯' if is_picked else ' '} {mark} {name}{' ' * (names - cells(name))}"
        values = (f"{entry.n_branches}", f"{entry.max_tokens}", f"{entry.temperature:g}")
        fields = []
        for place, (value, room) in enumerate(zip(values, (8, 6, 5), strict=True)):
            is_field = is_picked and place == self._field
            shown = (f"{self._typed}_" if self._typed else value) if is_field else value
            fields.append(styles("picked" if is_field else "", shown.rjust(room)))
        style = "bold" if is_picked else "" if entry.enabled else "quiet"
        return f"{styles(style, lead)}  {'  '.join(fields)}"
