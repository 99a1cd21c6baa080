"""Commands that show what a conversation uses: `/context`, `/cost`."""

from __future__ import annotations

from collections.abc import Mapping

from weft.api.session import Session
from weft.app.context_report import context_report
from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.chat.commands.turn_outline import summed, turn_outlines
from weft.cli.chat.paint.card_text import long_duration
from weft.cli.chat.paint.context_rows import more_rows, zone_rows
from weft.cli.chat.screens.terminal.region_rows import short_model
from weft.cli.options import MODE_WORDS
from weft.messages import Usage
from weft.view import TableBlock, count_of


class UsageCommands(CommandGroup):
    """Carries out the commands on tokens, money and time."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/context": self._context, "/cost": self._cost}

    # -- the window

    async def _context(self, words: str) -> None:
        session = self._chat.conversation.session
        host = self._chat.conversation.app.host
        report = await context_report(session, host) if session is not None else None
        model = ("model", self._model_words())
        if report is None:
            self._show(TableBlock(title="Context", rows=(model, ("used", "nothing sent yet"))))
            return
        self._show(
            TableBlock(title="Context", rows=zone_rows(report)),
            TableBlock(title="", rows=(model, *more_rows(report, "/compact"))),
        )

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
        outlines = await turn_outlines(self._chat.conversation)
        edits = summed(edit for each in outlines for edit in each.files)
        added, removed = sum(each[1] for each in edits), sum(each[2] for each in edits)
        lines = f"+{added} −{removed} in {count_of(len(edits), 'file')}" if edits else "none"
        return (("time", took), ("lines changed", lines))


def _shortly(models: Mapping[str, Usage]) -> dict[str, Usage]:
    """By the models' own names, where these tell them apart."""
    short = {short_model(name): each for name, each in models.items()}
    return short if len(short) == len(models) else dict(models)


def _usage_row(name: str, usage: Usage) -> tuple[str, ...]:
    cost = "unknown" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return name, f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", f"{cached:,}", cost
