"""The skill tool: hands the model a skill in full.

Apart from the skills themselves, because its schema costs start-up time and most projects have no
skill.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from weft.errors import FinalToolError
from weft.events import Effect
from weft.permissions import ToolAction
from weft.project.skills import SkillSet
from weft.tools import PreparedCall, Tool, ToolArguments, ToolContext, ToolOutcome, parse, schema_of


class SkillArguments(ToolArguments, frozen=True, kw_only=True):
    """What `skill` takes."""

    name: Annotated[str, Meta(description="The skill's name.")]


class SkillTool(Tool):
    """Hands the model a skill in full."""

    name = "skill"
    description = "Read a skill in full, by its name. The system prompt lists the skills there are."
    schema = schema_of(SkillArguments)
    effect: Effect = "pure"
    timeout_seconds = 10.0

    def __init__(self, skills: SkillSet) -> None:
        self._skills = skills

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> PreparedCall:
        wanted = parse(SkillArguments, args).name
        skill = self._skills.found.get(wanted)
        # A skill that the user keeps to themselves is reported like one that does not exist.
        if skill is None or not skill.for_model:
            offered = [each.name for each in self._skills.found.values() if each.for_model]
            raise FinalToolError(f"no skill {wanted!r}; there are {', '.join(offered) or 'none'}")

        async def run() -> ToolOutcome:
            folder = str(Path(skill.path).parent)
            return ToolOutcome(text=f"{skill.body}\n\n[The skill's other files are in {folder}]")

        action = ToolAction(tool=self.name, kind="read", target=wanted, has_effect=False)
        return PreparedCall(action=action, run=run)
