"""What handles, screens and servers ask the manager for on behalf of a session.

The ways to sessions, and what the application has for all of them: models, skills, agents, commands, tools that are lent.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from weft.errors import SessionNotFound, UsageError
from weft.ids import SessionId
from weft.messages import ModelName
from weft.project.instructions import InstructionSet
from weft.project.skills import SkillSet
from weft.providers import Model, ModelInfo
from weft.runtime.command_expansion import MarkdownCommands
from weft.runtime.port import LocalPort, SessionPort
from weft.runtime.registry import SessionRegistry
from weft.runtime.services import Services
from weft.runtime.tool_table import as_tool
from weft.store import Store
from weft.thinking import KnownLevels, ThinkingLevel
from weft.tools import OutputSchema

if TYPE_CHECKING:  # loaded when somebody uses commands or agents: it costs start-up time
    from weft.project.agent_definitions import AgentDefinitions
    from weft.project.markdown_commands import Ask, ExpandedCommand, MarkdownCommandSet


class SessionHost:
    """The part of the manager that its sessions lean on."""

    def __init__(self, equipment: Services) -> None:
        self._equipment = equipment
        self._registry = SessionRegistry(equipment)
        self._markdown = MarkdownCommands(equipment, self._registry)

    # -- the way to a session

    async def port(self, session_id: SessionId) -> SessionPort:
        """The way to a session, wherever it lives; starts a stored one without calling a model."""
        return await self._registry.port(session_id)

    def store_of(self, session_id: SessionId) -> Store:
        """The store that a session was started in."""
        return self._registry.stores.of(session_id)

    def running(self, session_id: SessionId) -> SessionPort | None:
        """The way to a session that is open here; None when it is not."""
        return self._registry.running(session_id)

    async def local_port(self, session_id: SessionId) -> SessionPort:
        """The way to a session of this process; for other processes that ask us to drive it."""
        known = self._registry.running(session_id)
        if not isinstance(known, LocalPort):
            raise SessionNotFound(session_id)
        return known

    def runs_command(self, session_id: SessionId, name: str) -> bool:
        """True while a background command of this name runs in this process."""
        return self._registry.families.runs_command(session_id, name)

    # -- what handles ask for

    async def available_models(self) -> list[ModelInfo]:
        """Every model that could be used."""
        return await self._equipment.models.available()

    def default_model(self) -> str:
        """The model of a new session that names none."""
        return self._default_named().name

    def default_effort(self, model: str | None = None) -> ThinkingLevel:
        """How hard a new session thinks that names this model, or none, and says no more."""
        named = self.model_named(model) if model else self._default_named()
        configured: ThinkingLevel = self._equipment.config.get("model.effort")
        return named.effort or configured

    def _default_named(self) -> ModelName:
        configured = self._equipment.config.get("model.default")
        return self.model_named(configured or self._equipment.models.default())

    def model(self, name: str) -> Model:
        """The model that a session's log names."""
        return self._equipment.models.resolve(name)

    def levels_of(self, model: str) -> KnownLevels:
        """The thinking levels of a model; none if it does not think, None when not known."""
        return self._equipment.models.levels(model)

    def skills(self, project_path: str) -> SkillSet:
        """The skills of a project."""
        return self._equipment.prompter.skills(project_path)

    def instructions(self, project_path: str) -> InstructionSet:
        """The instructions that a model reads which works on a project."""
        return self._equipment.prompter.instructions(project_path)

    async def agents(self, project_path: str) -> AgentDefinitions:
        """The agents that a session on this project may use."""
        return await anyio.to_thread.run_sync(self._equipment.prompter.agents, project_path)

    def rotation(self) -> list[str]:
        """The models that `cycle_model` goes through."""
        return list(self._equipment.config.get("model.rotation"))

    async def keep_handover(self, session_id: SessionId, text: str) -> str:
        """Keep a handover document beside the data, under the session's id; returns its path."""
        path = self._equipment.handovers / f"{session_id}.md"
        await anyio.to_thread.run_sync(write_private, path, text)
        return str(path)

    def command_names(self) -> list[str]:
        """The slash commands that every screen has."""
        from weft.project.slash_commands import (
            COMMANDS,  # only for those who ask: it costs start-up time
        )

        return [command.name for command in COMMANDS]

    async def commands(self, project_path: str) -> MarkdownCommandSet:
        """The slash commands from Markdown files that a session on this project may use."""
        return await self._markdown.of(project_path)

    async def expand_command(
        self, session_id: SessionId, text: str, ask: Ask | None, client: str = ""
    ) -> ExpandedCommand:
        """What a line `/name arguments` stands for; `Session.expand_command` says how.

        Raises:
            UsageError: there is no such command, or a shell command in it may not be run.
        """
        return await self._markdown.expand(session_id, text, ask, client)

    def lend_tools(self, session_id: SessionId, wanted: Any) -> Any:
        """The names of these tools, for one message; functions become known to the session by them, in this process.

        Raises:
            UsageError: one is no tool, or the session lives in another process.
        """
        if isinstance(wanted, str) or not isinstance(wanted, Sequence):
            return wanted  # the session says what is wrong with it
        names: list[str] = []
        for each in wanted:
            made = each if isinstance(each, str) else as_tool(each)
            if isinstance(made, str):
                names.append(made)
                continue
            if not isinstance(self._registry.ports.get(session_id, None), LocalPort | None):
                raise UsageError(f"{made.name!r} cannot go to the process that has the session")
            self._registry.lent.setdefault(session_id, {})[made.name] = made
            names.append(made.name)
        return names

    def now(self) -> float:
        """Wall-clock time."""
        return self._equipment.clock.now()

    def shape(self, wanted: Any) -> OutputSchema:
        """What a result must look like, from a JSON Schema or a type.

        Raises:
            UsageError: it is neither.
        """
        return self._registry.shapes.add(wanted)

    def model_named(self, model: str | Model) -> ModelName:
        """The model that is meant, and the effort that is named with it.

        A model object becomes known by its name.

        Raises:
            UsageError: the name is not right.
        """
        models = self._equipment.models
        if isinstance(model, str):
            return models.named(model)
        if not isinstance(getattr(model, "info", None), ModelInfo):
            raise UsageError(f"{model!r} is no model: write provider:model, or give a Model")
        return models.named(models.register(model))

    def normal_model(self, model: str | Model) -> str:
        """The name that the log has for a model; otherwise as `model_named`."""
        return self.model_named(model).name


def write_private(path: Path, text: str) -> None:
    """Write a file that only the person can read."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
