"""Commands that show what a conversation uses: `/context`, `/cost`."""

from __future__ import annotations

from collections.abc import Mapping

from weft.api.session import Session
from weft.app.context_report import ContextReport, context_report
from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.commands.turn_outline import summed, turn_outlines
from weft.cli.chat.paint.card_text import card_target, long_duration
from weft.cli.chat.paint.record_lines import thousands
from weft.cli.chat.screens.terminal.region_rows import short_model
from weft.cli.options import MODE_WORDS
from weft.errors import WeftError
from weft.messages import Usage
from weft.view import TableBlock, count_of

BAR = 30
"""Cells of the bar that shows how full the window is."""
SHOWN = 60
"""Characters of a tool call in a row."""


class UsageCommands(CommandGroup):
    """Carries out the commands on tokens, money and time."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/context": self._context, "/cost": self._cost}

    # -- the window

    async def _context(self, words: str) -> None:
        session = self._chat.conversation.session
        report = await self._report(session) if session is not None else None
        head = [("model", self._model_words())]
        if report is None:
            self._show(TableBlock(title="Context", rows=(*head, ("used", "nothing sent yet"))))
            return
        self._show(TableBlock(title="Context", rows=(*head, *context_rows(report))))

    async def _report(self, session: Session) -> ContextReport | None:
        app = self._chat.conversation.app
        try:
            info = app.host.model(self._chat.live.model).info
        except WeftError:
            info = None  # its provider is gone; what was sent is still known
        return await context_report(session, info, app.store.blob)

    def _model_words(self) -> str:
        live = self._chat.live
        words = MODE_WORDS.get(live.mode, live.mode)
        mode = f"{words}, architect" if live.is_architect else words
        return f"{live.model}, effort {live.effort}, mode {mode}"

    # -- money and time

    async def _cost(self, words: str) -> None:
        session = self._chat.conversation.session
        if session is None:
            self._say("no usage yet")
            return
        used = await session.usage()
        rows = [
            ("", "in", "out", "cache", "cost"),
            *(_usage_row(name, each) for name, each in _shortly(used.by_model).items()),
            _usage_row("all", used.total),
        ]
        self._show(TableBlock(title="Tokens and cost", rows=tuple(rows)))
        self._show(TableBlock(title="", rows=await self._time_and_lines(session)))

    async def _time_and_lines(self, session: Session) -> tuple[tuple[str, str], ...]:
        about = await session.metadata()
        turns = count_of(about.turn_count, "turn")
        seconds = max(0.0, about.last_message - about.created)
        took = f"{long_duration(seconds)} from the first message to the last, {turns}"
        outlines = await turn_outlines(session, self._chat.conversation.app.project_path)
        edits = summed(edit for each in outlines for edit in each.files)
        added, removed = sum(each[1] for each in edits), sum(each[2] for each in edits)
        lines = f"+{added} −{removed} in {count_of(len(edits), 'file')}" if edits else "none"
        return (("time", took), ("lines changed", lines))


def context_rows(report: ContextReport) -> list[tuple[str, str]]:
    """What fills the window, a row each."""
    rows = [("used", _used(report)), ("", _bar(report))] if report.window else []
    rows = rows or [("used", f"{thousands(report.used)} tokens")]
    rows += [
        ("system prompt", _share(report.system, report)),
        ("tools", _share(report.tools, report)),
        ("AGENTS.md", _share(report.instructions, report)),
        ("messages", _share(report.messages, report)),
        ("tool output", _share(report.outputs, report)),
    ]
    for number, each in enumerate(each for each in report.largest if each.tokens):
        target = card_target(each.args)
        said = f"{thousands(each.tokens)}  {each.name} {target}"[:SHOWN].rstrip()
        rows.append(("largest" if number == 0 else "", said))
    if report.window:
        rows.append(("free", _share(max(0, report.window - report.used), report)))
        rows.append(("compacted", _when_compacted(report)))
    return rows


def _used(report: ContextReport) -> str:
    share = report.used * 100 // report.window
    return f"{thousands(report.used)} of {thousands(report.window)} tokens ({share}%)"


def _bar(report: ContextReport) -> str:
    full = min(BAR, round(BAR * report.used / report.window))
    # Something that is used is seen, however little of the window it is.
    full = max(full, 1 if report.used else 0)
    return "█" * full + "░" * (BAR - full)


def _share(tokens: int, report: ContextReport) -> str:
    if not tokens:
        return "none"
    percent = f" ({tokens * 100 / report.window:.1f}%)" if report.window else ""
    return f"{thousands(tokens)}{percent}"


def _when_compacted(report: ContextReport) -> str:
    if report.used >= report.compacts_at:
        return "with the next message; /compact does it now"
    share = report.compacts_at * 100 // report.window
    return f"at {thousands(report.compacts_at)} ({share}%); /compact does it now"


def _shortly(models: Mapping[str, Usage]) -> dict[str, Usage]:
    """By the models' own names, where these tell them apart."""
    short = {short_model(name): each for name, each in models.items()}
    return short if len(short) == len(models) else dict(models)


def _usage_row(name: str, usage: Usage) -> tuple[str, ...]:
    cost = "unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return name, f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", f"{cached:,}", cost
