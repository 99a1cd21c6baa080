"""Slash commands from Markdown files: which there are, and what they stand for; and command lines
that the user types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
import msgspec

from weft.errors import UsageError
from weft.ids import SessionId
from weft.runtime.ports.local import LocalPort
from weft.runtime.registry import SessionRegistry
from weft.runtime.services import Services
from weft.session import AddNote, SessionPort

if TYPE_CHECKING:  # loaded with the first command: it costs start-up time
    from weft.loop import ToolCallEnvironment
    from weft.project.markdown_commands import (
        Ask,
        ExpandedCommand,
        MarkdownCommand,
        MarkdownCommandSet,
        RunShell,
    )
    from weft.project.mentions import AskRead
    from weft.workspace import ChangeReview, RunResult


class MarkdownCommands:
    """The Markdown commands of an application's sessions."""

    def __init__(self, services: Services, registry: SessionRegistry) -> None:
        self._services = services
        self._registry = registry

    async def of(self, project_path: str) -> MarkdownCommandSet:
        """Those from Markdown files that a session on this project may use."""
        # Only for those who ask: it costs start-up time.
        from weft.project.slash_commands import taken_names

        find = self._services.prompter.commands
        commands = await anyio.to_thread.run_sync(find, project_path)
        taken = taken_names()
        free = {k: v for k, v in commands.found.items() if f"/{k}" not in taken}
        return msgspec.structs.replace(commands, found=free)

    async def expand(
        self,
        session_id: SessionId,
        text: str,
        ask: Ask | None,
        client: str = "",
        ask_read: AskRead | None = None,
    ) -> ExpandedCommand:
        """What a line `/name arguments` stands for; `Session.expand_command` says how.

        Raises:
            UsageError: there is no such command, a shell command in it may not be run, or a file
                that it names may not be read.
        """
        from weft.project.markdown_commands import expand, named, split_line

        line = split_line(text)
        if line is None:
            raise UsageError(f"{text[:80]!r} is not a command; write /name arguments")
        port = await self._registry.port(session_id)
        project = port.state.about.project_path
        command = named(await self.of(project), line[0])
        return await expand(
            command,
            line[1],
            files=await self._registry.mention_reader(port, ask_read),
            run_shell=await self._shell_for(port, command, ask, client),
            redact=self._services.redact,
        )

    async def _shell_for(
        self, port: SessionPort, command: MarkdownCommand, ask: Ask | None, client: str
    ) -> RunShell:
        """Runs the shell commands of a slash command, as far as they may be run."""
        from weft.runtime.command_shell import CommandShell

        if (refuse := self._refusal(port)) is not None:
            return refuse
        assert isinstance(port, LocalPort)
        actor, project = port.actor, port.state.about.project_path
        return CommandShell(
            command.name,
            self._environment(port),
            ask,
            # A command of the user's own folder is trusted everywhere, one of the project's only
            # with the project.
            is_trusted=command.source == "user" or await self._services.is_trusted(project),
            check_client=lambda: actor.clients.check(AddNote(text=command.name, client=client)),
        )

    async def run_as_user(
        self, session_id: SessionId, command: str, *, to_model: bool, client: str = ""
    ) -> None:
        """Run a command line that the user typed.  With `to_model`, the model reads what it
        printed with the next message.

        Raises:
            UsageError: it may not be run.
        """
        from weft.runtime.user_shell import UserShell

        port = await self._registry.port(session_id)
        if (refuse := self._refusal(port)) is not None:
            await refuse(command)
        assert isinstance(port, LocalPort)
        actor = port.actor
        run = UserShell(
            self._environment(port),
            to_model=to_model,
            check_client=lambda: actor.clients.check(AddNote(text=command, client=client)),
        )
        await run(command)

    async def run_reviewed(
        self,
        session_id: SessionId,
        command: str,
        review: ChangeReview,
        on_output: Callable[[str], None],
    ) -> RunResult:
        """Run a command of the user's in the sandbox; its changes are carried over if `review` says
        so.

        Raises:
            UsageError: there is no sandbox, or it may not be run.
        """
        from weft.runtime.workspaces.reviewed_run import ReviewedRun

        port = await self._registry.port(session_id)
        if (refuse := self._refusal(port)) is not None:
            await refuse(command)
        assert isinstance(port, LocalPort)
        actor = port.actor
        run = ReviewedRun(
            self._environment(port),
            review=review,
            on_output=on_output,
            check_client=lambda: actor.clients.check(AddNote(text=command)),
        )
        return await run(command)

    def _refusal(self, port: SessionPort) -> RunShell | None:
        """Says why nothing can be run in a session; None where it can."""
        # The tools, the gate and the hooks live in the process that owns the session; over the
        # socket there is no way to ask this client.
        if not isinstance(port, LocalPort):
            return _refuse_elsewhere
        wanted = port.state.settings.get("tools", "all")
        # The same rule as for the model: a session that was started without a shell has none for
        # commands either.
        if "shell" not in self._registry.table_of(port.session_id) or (
            wanted != "all" and "shell" not in wanted
        ):
            return _refuse_without_shell
        return None

    def _environment(self, port: LocalPort) -> ToolCallEnvironment:
        from weft.runtime.command_shell import ActorJournal

        factory = self._registry.factories[port.session_id]
        tools = {"shell": self._registry.table_of(port.session_id)["shell"]}
        return factory.command_environment(ActorJournal(port.actor), port.actor.gate, tools)


async def _refuse_elsewhere(command: str) -> str:
    raise UsageError(
        f"`{command}` cannot be run here: another process has this session; use the command there"
    )


async def _refuse_without_shell(command: str) -> str:
    raise UsageError(f"`{command}` may not be run: this session has no shell")
