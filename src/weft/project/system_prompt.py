"""System prompt: who the model is, where it works, and what the user and the project want it to
know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from weft.project.instructions import InstructionSet, find_instructions
from weft.project.skills import SkillSet, find_skills, skills_text
from weft.state import SessionState
from weft.workspace import SourceFolder, is_there, project_folders, user_folder

if TYPE_CHECKING:  # loaded with the first use: it costs start-up time
    from weft.project.agent_definitions import AgentDefinitions
    from weft.project.markdown_commands import MarkdownCommandSet

AGENT_FOLDERS = (".weft/agents", ".claude/agents", ".opencode/agents")
COMMAND_FOLDERS = (".weft/commands", ".claude/commands")
MOST_PROBLEMS = 20
"""Sentences about files that are left out; a folder full of such files deserves no more."""

SYSTEM = """\
You are Weft, a coding agent. You work on the project in {project} through the tools you are given.

- Find out before you change: read the files that matter, and the ones that use them.
- Make the change that was asked for, in the style of the code around it, and nothing else.
- Check your work: run the tests or the program where there is a way to.
- If a tool's result says that an effect is unknown, look before you repeat it.
- Say plainly what you did, what you could not do, and what you are not sure of. Be brief.
"""


WITHOUT_TOOLS = """\
You are Weft, a helpful assistant. Answer in one or two short sentences.
"""


class SystemPromptWriter:
    """Writes system prompts.

    Secrets in files are masked; what the user said for this session stays as it is.
    """

    def __init__(self, config: Path, home: Path, redact: Callable[[str], str] = str) -> None:
        self._config = config
        self._home = home
        self.redact = redact

    def instructions(self, project: str) -> InstructionSet:
        """The instructions of the user and of a project, as they are now."""
        return find_instructions(Path(project), self._config, self.redact)

    def skills(self, project: str) -> SkillSet:
        """The skills of a project, as they are now."""
        return find_skills(Path(project), self._home, self._config)

    def commands(self, project: str) -> MarkdownCommandSet:
        """The slash commands from Markdown files of a project and of the user, as they are now."""
        from weft.project.markdown_commands import find_commands

        return find_commands(command_folders(project, self._config))

    def agents(self, project: str) -> AgentDefinitions:
        """The agents that a project and the user define, as they are now."""
        from weft.project.agent_definitions import find_definitions

        return find_definitions(self._agent_folders(project))

    def agents_text(self, project: str) -> str:
        """What the system prompt says of the agents that are defined; nothing where none is."""
        if not any(map(is_there, self._agent_folders(project))):
            return ""
        listing = self.redact(self.agents(project).listing())
        return f"# Agents\n\nThe tool `agent` knows these:\n{listing}"

    def problems(self, project: str) -> list[str]:
        """What a project and the user bring along that is left out, a sentence each."""
        found = [*self.instructions(project).problems, *self.skills(project).problems]
        if any(map(is_there, self._agent_folders(project))):
            found += self.agents(project).problems
        if any(map(is_there, command_folders(project, self._config))):
            found += self.commands(project).problems
        return found

    def _agent_folders(self, project: str) -> list[SourceFolder]:
        """Where agents are defined, nearest first."""
        return [*_below(project, AGENT_FOLDERS), user_folder(self._config / "agents")]

    def system(self, state: SessionState, *, has_tools: bool = True) -> str:
        """The system prompt of a session as it is now: its own or ours, then the instructions, then
        what was appended.

        A model that can call no tools is too small for all of that, and learns only who it is.
        """
        project = state.about.project_path
        own = state.settings.get("system_prompt")
        if not has_tools and own is None:
            return WITHOUT_TOOLS.strip()
        pieces = [
            SYSTEM.format(project=project) if own is None else str(own),
            self.instructions(project).text,
            self.redact(skills_text(self.skills(project), state.skills.names)),
            str(state.settings.get("append_system_prompt", "")),
        ]
        return "\n\n".join(piece.strip() for piece in pieces if piece.strip())


def command_folders(project: str, config: Path) -> list[SourceFolder]:
    """Where slash commands lie, nearest first."""
    return [*_below(project, COMMAND_FOLDERS), user_folder(config / "commands")]


def _below(project: str, names: Iterable[str]) -> Iterator[SourceFolder]:
    return (folder.below(name) for folder in project_folders(project) for name in names)
