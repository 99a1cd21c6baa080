"""`/mcp`: the MCP servers of this project, allowed and started anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.cli.chat.commands.command_group import CommandGroup, Handler
from weft.cli.sanitize import clean_line, visible
from weft.errors import UsageError
from weft.view import TableBlock, count_of

if TYPE_CHECKING:  # loaded when the user asks
    from weft.api.mcp.mcp_servers import AppMcp

_VERBS = "allow NAME, refuse NAME and restart [NAME]"


class McpCommands(CommandGroup):
    """Carries out the command on MCP servers."""

    @property
    def handlers(self) -> dict[str, Handler]:
        return {"/mcp": self._command}

    @property
    def _servers(self) -> AppMcp:
        return self._chat.conversation.app.mcp

    async def _command(self, words: str) -> None:
        verb, _, name = words.partition(" ")
        match verb:
            case "":
                self._look()
            case "allow" | "refuse":
                self._answer(verb, name.strip())
            case "restart":
                stopped = await self._servers.restart(name.strip())
                listed = ", ".join(stopped)
                self._say(f"{listed} starts again when it is needed" if stopped else "none runs")
            case _:
                raise UsageError(f"/mcp knows {_VERBS}, not {verb!r}")

    def _answer(self, verb: str, name: str) -> None:
        if not name:
            raise UsageError(f"/mcp {verb} needs the name of a server")
        self._servers.answer(name, "yes" if verb == "allow" else "no")
        may = "may be started" if verb == "allow" else "is not started"
        self._say(f"{name} {may} here; it counts from your next conversation on")

    def _look(self) -> None:
        servers = self._servers
        for problem in servers.problems:
            self._say(f"left out: {clean_line(problem)}")
        rows = servers.status()
        if not rows:
            self._say("no MCP server is configured; `weft mcp add NAME -- COMMAND` adds one")
            return
        table = tuple((clean_line(row.name), _state(row.state, row.why, row.tools)) for row in rows)
        self._show(TableBlock(title="MCP servers", rows=table))
        for row in rows:
            for tool in row.changed:
                self._say(f"{row.name}: {clean_line(tool)} is not as you know it; a call asks")
        for question in servers.questions():
            self._say(question_line(question))


def question_line(question: Any) -> str:
    """What the user is told of a server of the project before they allow it: nothing can hide."""
    name = clean_line(question.name)
    shown = visible(question.shown).replace("\n", "<newline>")
    return (
        f"this project names {name}, which would run `{shown}`{_how(question)}"
        f"{_lent(question.variables)}; /mcp allow {name} lets it"
    )


def _how(question: Any) -> str:
    """What a server of the project takes besides its command."""
    said = [] if question.is_sandboxed or question.is_remote else ["WITHOUT the sandbox"]
    said += [f"with {visible(each)}" for each in (*question.environ, *question.headers)]
    said += ["in the place of your own server of this name"] if question.replaces_own else []
    return "".join(f", {each}".replace("\n", "<newline>") for each in said)


def _state(state: str, why: str, tools: int) -> str:
    counted = f", {count_of(tools, 'tool')}" if tools else ""
    return f"{state}{counted}{f': {clean_line(why)}' if why else ''}"


def _lent(variables: tuple[str, ...]) -> str:
    return f" and get your variables {', '.join(variables)}" if variables else ""
