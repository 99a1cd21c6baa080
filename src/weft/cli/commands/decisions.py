"""`weft decisions …`: list, show, why, log, supersede, accept, pulse, narrative, export, import."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from weft.api.decisions import WhyReport
from weft.app import App
from weft.cli.commands.confirmation import confirm
from weft.cli.commands.table import print_table, when
from weft.cli.commands.with_app import with_app
from weft.cli.exit_codes import FAILED, OK
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import tell, write, write_line, write_pretty
from weft.decisions import DecisionNode
from weft.decisions.narrative import day, shown_status
from weft.errors import UsageError
from weft.messages import clean_text

MOST_FOUND = 1_000
_PLACE = re.compile(r"(.+):(\d{1,18})")
_NONE = "no decisions yet; `weft decisions log TITLE` adds one"


def run(arguments: ParsedArguments) -> int:
    """Carry out a `decisions` command."""
    work = _COMMANDS[arguments.verb.removeprefix("decisions ")]
    return with_app(arguments, lambda app: work(app, arguments))


async def _list(app: App, arguments: ParsedArguments) -> int:
    status, kind = arguments.text("status"), arguments.text("kind")
    words = " ".join(arguments.words)
    nodes = await app.decisions.nodes()
    if kind is not None and kind not in {*app.decisions.kinds(), *(node.kind for node in nodes)}:
        raise UsageError(f"no kind {kind!r}; there are {', '.join(app.decisions.kinds())}")
    found = await app.decisions.query(words, limit=MOST_FOUND) if words else nodes
    rows = [
        node
        for node in found
        if status in (None, node.status)
        and (kind == node.kind or (kind is None and (words or node.kind != "option")))
    ]
    if arguments.flag("json"):
        write_pretty([msgspec.to_builtins(node) for node in rows])
        return OK
    if not rows:
        tell(_NONE if not nodes else "no such decisions")
        return OK
    head = ("id", "date", "kind", "status", "title")
    graph = await app.decisions.graph()
    print_table(
        [
            (node.id, day(node.at), node.kind, shown_status(graph, node), node.title)
            for node in rows
        ],
        head=head,
    )
    return OK


async def _show(app: App, arguments: ParsedArguments) -> int:
    node = await app.decisions.get(_words(arguments, "ID")[0])
    if arguments.flag("json"):
        edges = await app.decisions.edges(node.id)
        write_pretty(
            {"node": msgspec.to_builtins(node), "edges": [msgspec.to_builtins(e) for e in edges]}
        )
        return OK
    graph = await app.decisions.graph()
    from weft.decisions import narrative_of

    write_line(narrative_of(graph, [node]))
    for name, words in (("scope", node.scope), ("tags", node.tags)):
        if words:
            write_line(f"  {name}: {' '.join(words)}")
    if node.by != "user" or node.author:
        write_line(f"  by: {' '.join(filter(None, (node.by, node.author)))}")
    return OK


async def _why(app: App, arguments: ParsedArguments) -> int:
    path, line = _place(_words(arguments, "PATH[:LINE]")[0])
    report = await app.decisions.why(path, line)
    if arguments.flag("json"):
        shown = {**msgspec.to_builtins(report), "path": clean_text(report.path)}
        write_pretty(shown)
        return OK
    for each in _why_lines(report):
        write_line(each)
    graph = await app.decisions.graph()
    from weft.decisions import narrative_of

    text = narrative_of(graph, report.decisions)
    write_line(f"\n{text}" if text else "nothing was decided about it")
    return OK


def _place(given: str) -> tuple[str, int | None]:
    """A path and a line; a file may have a colon in its name."""
    place = None if os.path.lexists(given) else _PLACE.fullmatch(given)
    return (place[1], int(place[2])) if place else (given, None)


def _why_lines(report: WhyReport) -> list[str]:
    from weft.decisions.sound_values import LONGEST_SCOPE, one_line

    path = one_line(report.path, LONGEST_SCOPE)  # a file may have any letters in its name
    place = path if report.line is None else f"{path}:{report.line}"
    commit, turn = report.commit, report.turn
    if report.git_error:
        lines = [f"{place}: git failed, its commit is not known: {one_line(report.git_error)}"]
    elif commit is None:
        lines = [f"{place}: in no commit"]
    else:
        about = f"{commit.author}, {when(commit.at)[:10]}: {commit.summary}"
        lines = [f"{place}: commit {commit.commit[:12]} ({about})"]
    if turn is not None:
        asked = f": “{turn.prompt}”" if turn.prompt else ""
        lines.append(f"changed in session {turn.session_id}, {when(turn.at)}{asked}")
    return lines


async def _log(app: App, arguments: ParsedArguments) -> int:
    options: list[Any] = [
        {"title": title, "verdict": verdict, "why": why}
        for verdict in ("chosen", "rejected")
        for title, why in map(_option, arguments.many(verdict))
    ]
    node = await app.decisions.log(
        " ".join(_words(arguments, "TITLE...")),
        kind=arguments.text("kind") or "decision",
        why=arguments.text("why") or "",
        scope=arguments.many("scope"),
        options=options,
        supersedes=arguments.text("supersedes"),
        parent=arguments.text("parent"),
        tags=arguments.many("tag"),
        confidence=_percent(arguments.text("confidence")),
    )
    return _said(arguments, node)


def _percent(given: str | None) -> int | None:
    if given is None:
        return None
    try:
        return int(given)
    except ValueError:
        raise UsageError(f"--confidence needs a number from 0 to 100, not {given!r}") from None


def _option(given: str) -> tuple[str, str]:
    """A title, and why behind a colon."""
    title, _, why = given.partition(": ")
    return title, why


async def _supersede(app: App, arguments: ParsedArguments) -> int:
    old, new = _words(arguments, "OLD", "NEW")
    return _said(arguments, await app.decisions.supersede(old, new, arguments.text("why") or ""))


async def _accept(app: App, arguments: ParsedArguments) -> int:
    reason = arguments.text("why") or ""
    names = [(await app.decisions.get(name)).id for name in _words(arguments, "ID...")]
    nodes = [await app.decisions.accept(name, reason) for name in dict.fromkeys(names)]
    return _said(arguments, *nodes)


async def _abandon(app: App, arguments: ParsedArguments) -> int:
    reason = arguments.text("why") or ""
    nodes = [await app.decisions.get(name) for name in _words(arguments, "ID...")]
    for node in nodes:
        if node.status == "superseded":
            raise UsageError(f"{node.id} is superseded: it counts no longer anyway")
    changed = [
        await app.decisions.change(name, status="abandoned", reason=reason)
        for name in dict.fromkeys(node.id for node in nodes)
    ]
    return _said(arguments, *changed)


async def _purge(app: App, arguments: ParsedArguments) -> int:
    names = _words(arguments, "ID...")
    nodes = [await app.decisions.get(name) for name in names]
    if not arguments.flag("yes"):
        what = "this decision" if len(nodes) == 1 else f"these {len(nodes)} decisions"
        confirm(
            f"Purge {what} permanently?",
            unasked=f"purging cannot be undone; add --yes to purge {what}",
            refused="nothing was purged",
        )
    report = await app.decisions.purge(*(node.id for node in nodes))
    if arguments.flag("json"):
        write_pretty(msgspec.to_builtins(report))
        return OK
    for name in report.ids:
        write_line(f"{name}  purged")
    if report.sessions:
        tell(
            "its words may still be in the conversations that it comes from; "
            f"`weft session delete {' '.join(report.sessions)}` removes them"
        )
    return OK


async def _pulse(app: App, arguments: ParsedArguments) -> int:
    report = await app.decisions.pulse()
    if arguments.flag("json"):
        write_pretty({**msgspec.to_builtins(report), "summary": report.summary})
    else:
        write_line(report.summary)
        print_table([(each.id, each.check, each.text) for each in report.findings])
    # For scripts: a graph in order is 0.
    return FAILED if report.findings and arguments.flag("check") else OK


async def _narrative(app: App, arguments: ParsedArguments) -> int:
    text = await app.decisions.narrative(
        session=arguments.text("session"), goal=arguments.text("goal")
    )
    if arguments.flag("json"):
        write_pretty({"text": text})
    elif text:
        write_line(text)
    else:
        tell(_NONE)
    return OK


async def _export(app: App, arguments: ParsedArguments) -> int:
    path = arguments.text("output")
    format_ = arguments.text("format") or "json"
    text = await app.decisions.export(format_, path)  # type: ignore[arg-type]  # it is checked
    if path is None:
        write(text)
    return OK


async def _import(app: App, arguments: ParsedArguments) -> int:
    nodes: list[DecisionNode] = []
    for path in _words(arguments, "PATH..."):
        nodes += await app.decisions.import_adr(path)
    if arguments.flag("json"):
        write_pretty([msgspec.to_builtins(node) for node in nodes])
        return OK
    for node in nodes:
        write_line(f"{node.id}  {node.title}")
    if not nodes:
        tell("nothing new: these are decisions of this project already")
    return OK


def _said(arguments: ParsedArguments, *nodes: DecisionNode) -> int:
    if arguments.flag("json"):
        # One value, whatever it is asked for: an object for one, a list for several.
        shown = [msgspec.to_builtins(node) for node in nodes]
        write_pretty(shown[0] if len(shown) == 1 else shown)
        return OK
    for node in nodes:
        write_line(f"{node.id}  {node.status}  {node.title}")
    return OK


def _words(arguments: ParsedArguments, *names: str) -> tuple[str, ...]:
    """The words behind a command; as many as are named, or more where the last ends in dots."""
    given = arguments.words
    if len(given) < len(names):
        needed = " and ".join(name.removesuffix("...") for name in names)
        raise UsageError(f"`weft {arguments.verb}` needs {needed}")
    if len(given) > len(names) and not names[-1].endswith("..."):
        raise UsageError(
            f"`weft {arguments.verb}` takes only {' and '.join(names)}, no {given[len(names)]!r}"
        )
    return given


_COMMANDS: Mapping[str, Callable[[App, ParsedArguments], Awaitable[int]]] = {
    "list": _list,
    "show": _show,
    "why": _why,
    "log": _log,
    "supersede": _supersede,
    "accept": _accept,
    "abandon": _abandon,
    "purge": _purge,
    "pulse": _pulse,
    "narrative": _narrative,
    "export": _export,
    "import-adr": _import,
}
