"""What every model is told first: who it is, where it works, and what the person and the project want it to know."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft.app.instructions import instructions
from weft.app.skills import Skills, find_skills, told
from weft.state import SessionState

if TYPE_CHECKING:  # loaded when somebody asks for commands: it costs start-up time
    from weft.app.commands_md import MarkdownCommands

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


class Prompter:
    """Writes system prompts."""

    def __init__(self, config: Path, home: Path) -> None:
        self._config = config
        self._home = home

    def skills(self, project: str) -> Skills:
        """The skills of a project, as they are now."""
        return find_skills(Path(project), self._home, self._config)

    def commands(self, project: str) -> MarkdownCommands:
        """The slash commands from Markdown files of a project and of the person, as they are now."""
        from weft.app.commands_md import find_commands

        return find_commands(Path(project), self._config)

    def system(self, state: SessionState, *, has_tools: bool = True) -> str:
        """The system prompt of a session as it is now: its own or ours, then the instructions, then what was appended.

        A model that can call no tools is too small for all of that, and is told only who it is.
        """
        project = state.about.project_path
        own = state.settings.get("system_prompt")
        if not has_tools and own is None:
            return WITHOUT_TOOLS.strip()
        pieces = [
            SYSTEM.format(project=project) if own is None else str(own),
            instructions(Path(project), self._config),
            told(self.skills(project), state.skills.names),
            str(state.settings.get("append_system_prompt", "")),
        ]
        return "\n\n".join(piece.strip() for piece in pieces if piece.strip())
