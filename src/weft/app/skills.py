"""Skills: folders with a `SKILL.md`, told to the model by name and description, in full when they are used.

Looked for in the project (`.agents/skills`, `.weft/skills`, `.claude/skills`, from the project up to the repository's root) and with the
person.  The nearest of a name wins.  A skill that cannot be read is left out and named in `problems`; it hides no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from weft.agents.frontmatter import split_front_matter
from weft.app.instructions import up_to_root
from weft.errors import FinalToolError, UsageError
from weft.events import Effect
from weft.permissions import Action
from weft.tools import Arguments, Outcome, Prepared, Tool, ToolContext, parse, schema_of

NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LONGEST_NAME: Final = 64
LONGEST_DESCRIPTION: Final = 1024
LONGEST_BODY: Final = 256 * 1024
PROJECT_FOLDERS: Final = (".agents/skills", ".weft/skills", ".claude/skills")
USER_FOLDERS: Final = (".agents/skills", ".config/agents/skills", ".weft/skills", ".claude/skills")


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """One skill."""

    name: str
    description: str
    path: str
    """Its `SKILL.md`."""
    body: str
    for_model: bool = True
    """The model is told of it; otherwise only the person can switch it on."""


class Skills(msgspec.Struct, frozen=True, kw_only=True):
    """All skills of a project, and what is wrong with those that are left out."""

    found: dict[str, Skill] = {}
    problems: tuple[str, ...] = ()


def find_skills(project: Path, home: Path, config: Path) -> Skills:
    """Every skill that a session on this project may use."""
    found: dict[str, Skill] = {}
    problems: list[str] = []
    for file in _files(_folders(project, home, config)):
        try:
            skill = read_skill(file)
        except UsageError as error:
            problems.append(str(error))
            continue
        found.setdefault(skill.name, skill)
    return Skills(found=dict(sorted(found.items())), problems=tuple(problems))


def _folders(project: Path, home: Path, config: Path) -> Iterator[Path]:
    for folder in up_to_root(project):
        for name in PROJECT_FOLDERS:
            yield folder / name
    yield config / "skills"
    for name in USER_FOLDERS:
        yield home / name


def _files(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        if folder.is_dir():
            yield from sorted(folder.glob("*/SKILL.md"))


def read_skill(file: Path) -> Skill:
    """The skill in one `SKILL.md`.

    Raises:
        UsageError: it is not what a skill must be.
    """
    try:
        text = file.read_bytes()[:LONGEST_BODY].decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    settings, body = split_front_matter(text, str(file))
    name = str(settings.get("name", file.parent.name))
    description = " ".join(str(settings.get("description", "")).split())
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise UsageError(f"{file}: {name!r} is no name for a skill; use a-z, 0-9 and hyphens")
    if not description:
        raise UsageError(f"{file}: a skill needs a description")
    return Skill(
        name=name,
        description=description[:LONGEST_DESCRIPTION],
        path=str(file),
        body=body,
        for_model=not _is_on(settings.get("disable-model-invocation")),
    )


def _is_on(value: Any) -> bool:
    return value is True or str(value).lower() == "true"


def told(skills: Skills, active: Iterable[str]) -> str:
    """What the system prompt says of skills: those that are on in full, of the others only name and description."""
    switched_on = [skills.found[name] for name in active if name in skills.found]
    offered = [
        skill for skill in skills.found.values() if skill.for_model and skill not in switched_on
    ]
    pieces = [f"# Skill: {skill.name} ({skill.path})\n\n{skill.body}" for skill in switched_on]
    if offered:
        lines = "\n".join(f"- {skill.name}: {skill.description}" for skill in offered)
        pieces.append(
            "# Skills\n\nBefore you do something that one of these describes, read it with the skill tool:\n"
            + lines
        )
    return "\n\n".join(pieces)


class SkillArguments(Arguments, frozen=True, kw_only=True):
    """What `skill` takes."""

    name: Annotated[str, Meta(description="The skill's name.")]


class SkillTool(Tool):
    """Hands the model a skill in full."""

    name = "skill"
    description = "Read a skill in full, by its name. The system prompt lists the skills there are."
    schema = schema_of(SkillArguments)
    effect: Effect = "pure"
    timeout_seconds = 10.0

    def __init__(self, skills: Skills) -> None:
        self._skills = skills

    async def prepare(self, args: dict[str, Any], context: ToolContext) -> Prepared:
        wanted = parse(SkillArguments, args).name
        skill = self._skills.found.get(wanted)
        if skill is None or not skill.for_model:
            offered = [each.name for each in self._skills.found.values() if each.for_model]
            raise FinalToolError(f"no skill {wanted!r}; there are {', '.join(offered) or 'none'}")

        async def run() -> Outcome:
            folder = str(Path(skill.path).parent)
            return Outcome(text=f"{skill.body}\n\n[The skill's other files are in {folder}]")

        action = Action(tool=self.name, kind="read", target=wanted, has_effect=False)
        return Prepared(action=action, run=run)
