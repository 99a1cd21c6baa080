"""`weft stats`: what was used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from weft.app import App
from weft.cli.commands.table import money, print_table
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import OK
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import write_line, write_pretty
from weft.view import count_of

MOST = 100_000


def run(arguments: ParsedArguments) -> int:
    """Show the numbers."""

    async def work(app: App) -> int:
        folder = None if arguments.flag("all") else app.project_path
        rows = await app.sessions.list_saved(project_path=folder, limit=MOST)
        numbers = summary(rows)
        if arguments.flag("json"):
            write_pretty(numbers)
            return OK
        where = "in every folder" if folder is None else f"in {folder}"
        write_line(
            f"{count_of(numbers['sessions'], 'session')}, {count_of(numbers['turns'], 'turn')}, "
            f"{count_of(numbers['messages'], 'message')} {where}; {money(numbers['cost_usd'])}"
        )
        if numbers["price_unknown"]:
            unknown = count_of(numbers["price_unknown"], "session")
            write_line(f"(the price of {unknown} is unknown)")
        models = [
            (name, str(each["sessions"]), str(each["turns"]), money(each["cost_usd"]))
            for name, each in numbers["models"].items()
        ]
        if models:
            write_line("")
            print_table(models, head=("model", "sessions", "turns", "cost"))
        return OK

    return with_app(arguments, work)


def summary(rows: Sequence[Any]) -> dict[str, Any]:
    """The numbers of all these sessions.

    A price that is unknown is counted, never taken for nothing.
    """
    models: dict[str, dict[str, Any]] = {}
    total: Counter[str] = Counter()
    cost = 0.0
    for row in rows:
        total.update(sessions=1, turns=row.turn_count, messages=row.message_count)
        model = models.setdefault(row.model, {"sessions": 0, "turns": 0, "cost_usd": 0.0})
        model["sessions"] += 1
        model["turns"] += row.turn_count
        if row.cost_usd is None:
            total["price_unknown"] += 1
            continue
        cost += row.cost_usd
        model["cost_usd"] += row.cost_usd
    names = ("sessions", "turns", "messages", "price_unknown")
    return {**{name: total[name] for name in names}, "cost_usd": cost, "models": models}
