"""The question about MCP servers that a project names, before the chat begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.app import App
from weft.cli.chat.screens.screen import ChatScreen, ChoiceQuestion, ChoiceRow
from weft.cli.sanitize import clean_line, visible
from weft.view import NoteBlock, TableBlock

if TYPE_CHECKING:
    from weft.api.mcp.mcp_servers import AppMcp


async def ask_servers(app: App, screen: ChatScreen) -> None:
    """Ask about each server that the project names and the user has not answered for."""
    servers = app.mcp
    for question in servers.questions():
        await _ask(question, servers, screen)


async def _ask(question: Any, servers: AppMcp, screen: ChatScreen) -> None:
    name = clean_line(question.name)
    title = "has changed" if question.had_answer else "is named by this project"
    screen.show(TableBlock(title=f"The MCP server {name} {title}", rows=tuple(_rows(question))))
    chosen = await screen.choose(
        ChoiceQuestion(
            title=f"{'Use' if question.is_remote else 'Start'} {name}?",
            rows=(
                ChoiceRow("No, not now", f"/mcp allow {name} lets it be started later"),
                ChoiceRow("Yes, as it is now", "its tools ask before each use, until it changes"),
                ChoiceRow("No, never", "it is not asked about again, until it changes"),
            ),
            hint="1-3; Esc is no",
            picked=-1,
        )
    )
    if chosen in (1, 2):
        servers.answer(question.name, "yes" if chosen == 1 else "no", question.digest)
    said = "may be started" if chosen == 1 else "is not started"
    screen.show(NoteBlock(text=f"{name} {said}", level="quiet"))


def _rows(question: Any) -> list[tuple[str, str]]:
    if question.is_remote:
        rows = [("address", visible(question.shown))]
        rows += [("sends", visible(each)) for each in question.headers]
    else:
        where = "in the sandbox" if question.is_sandboxed else "WITHOUT the sandbox"
        network = "with the network" if question.network else "without the network"
        rows = [("runs", visible(question.shown)), ("where", f"{where}, {network}")]
    rows += [("sets", visible(each)) for each in question.environ]
    if question.replaces_own:
        rows.append(("replaces", "your own server of this name; your rules for it would hold"))
    if question.variables:
        rows.append(("gets", f"your variables {', '.join(question.variables)}"))
    return rows
