"""Skills: folders with a `SKILL.md`, listed to the model by name and description, in full when
used.

Looked for in the project (`.agents/skills`, `.weft/skills`, `.claude/skills`, from the project up
to the repository's root) and in the user's own folders.  The nearest of a name wins.  A skill that
cannot be read is left out and named in `problems`; it hides no other.  The number of a project's
skills is bounded by itself, so that they cannot push out the user's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.errors import UsageError
from weft.workspace import (
    SourceFolder,
    list_folder,
    project_folders,
    read_small_text,
    user_folder,
)

NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
LONGEST_NAME: Final = 64
LONGEST_DESCRIPTION: Final = 1024
LARGEST_FILE: Final = 256 * 1024
MOST_SKILLS: Final = 500
"""Skills that are tried of a project, and as many of the user's own."""
FILE: Final = "SKILL.md"
PROJECT_FOLDERS: Final = (".agents/skills", ".weft/skills", ".claude/skills")
USER_FOLDERS: Final = (".agents/skills", ".config/agents/skills", ".weft/skills", ".claude/skills")


class SkillFile(msgspec.Struct, frozen=True, kw_only=True):
    """One skill."""

    name: str
    description: str
    path: str
    """Its `SKILL.md`."""
    body: str
    for_model: bool = True
    """The model sees it in the list; otherwise only the user can switch it on."""
    is_project: bool = False
    """The project brings it, not the user."""


class SkillSet(msgspec.Struct, frozen=True, kw_only=True):
    """All skills of a project, and what is wrong with those that are left out."""

    found: dict[str, SkillFile] = {}
    problems: tuple[str, ...] = ()


def find_skills(
    project: Path, home: Path, config: Path, folders: Sequence[SourceFolder] | None = None
) -> SkillSet:
    """Every skill that a session on this project may use; `folders` are those of the project,
    where they are known.
    """
    found: dict[str, SkillFile] = {}
    problems: list[str] = []
    # The project's come first because the nearest wins; the user's have a bound of their own, so
    # that hundreds of skills in a project do not push them out.
    own = _own_folders(home, config)
    theirs = project_folders(project) if folders is None else folders
    for places in (_project_skills(theirs, own), own):
        for skill in _read_all(places, problems):
            found.setdefault(skill.name, skill)
    return SkillSet(found=dict(sorted(found.items())), problems=tuple(dict.fromkeys(problems)))


# Kept, because it is asked for with every turn: the user's own folders are never others.
@lru_cache(maxsize=4)
def _own_folders(home: Path, config: Path) -> tuple[SourceFolder, ...]:
    places = (config / "skills", *(home / name for name in USER_FOLDERS))
    return tuple(map(user_folder, places))


def _project_skills(
    folders: Iterable[SourceFolder], own: Iterable[SourceFolder]
) -> Iterator[SourceFolder]:
    """Where a project has skills.

    When the project is the home folder, the user's stay the user's.
    """
    theirs = {folder.path for folder in own}
    for folder in folders:
        below = (folder.below(name) for name in PROJECT_FOLDERS)
        yield from (each for each in below if each.path not in theirs)


def _read_all(folders: Iterable[SourceFolder], problems: list[str]) -> Iterator[SkillFile]:
    """Skill after skill; the bound is on those that are tried, not on those that are right."""
    for number, folder in enumerate(_inner_folders(folders, problems)):
        if number == MOST_SKILLS:
            where = os.path.dirname(folder.path)
            problems.append(
                f"{where}: there are more than {MOST_SKILLS} skills; the rest is left out"
            )
            return
        try:
            skill = read_skill(folder)
        except UsageError as error:
            problems.append(str(error))
            continue
        if skill is not None:
            yield skill


def _inner_folders(folders: Iterable[SourceFolder], problems: list[str]) -> Iterator[SourceFolder]:
    for folder in folders:
        try:
            listing = list_folder(folder)
        except UsageError as error:
            problems.append(str(error))
            continue
        problems += listing.problems
        yield from (folder.below(each.name) for each in listing.entries if each.kind != "file")


def read_skill(folder: SourceFolder) -> SkillFile | None:
    """The skill in one folder; None where there is none.

    Raises:
        UsageError: it is not what a skill must be.
    """
    file = read_small_text(folder, FILE, LARGEST_FILE)
    if file is None:
        return None
    # With the first skill: most projects have none, and it costs start-up time.
    from weft.project.frontmatter import brief, setting_text, split_front_matter

    settings, body = split_front_matter(file.text, file.path)
    name = setting_text(settings, "name", file.path) or os.path.basename(folder.path)
    description = " ".join(setting_text(settings, "description", file.path).split())
    if len(name) > LONGEST_NAME or not NAME.fullmatch(name):
        raise UsageError(
            f"{file.path}: {brief(name)} is not a valid skill name; use a-z, 0-9 and hyphens"
        )
    if not description:
        raise UsageError(f"{file.path}: a skill needs a description")
    return SkillFile(
        name=name,
        description=description[:LONGEST_DESCRIPTION],
        path=file.path,
        body=body,
        for_model=not _is_on(settings.get("disable-model-invocation")),
        is_project=folder.is_project,
    )


def _is_on(value: Any) -> bool:
    # In quotes it is a text to YAML, and its writer meant it all the same.
    return value is True or str(value).lower() == "true"


def skills_text(skills: SkillSet, active: Iterable[str]) -> str:
    """What the system prompt says of skills: those that are on in full, of the others only name and
    description.
    """
    switched_on = [skills.found[name] for name in active if name in skills.found]
    offered = [
        skill for skill in skills.found.values() if skill.for_model and skill not in switched_on
    ]
    pieces = [f"# Skill: {skill.name} ({skill.path})\n\n{skill.body}" for skill in switched_on]
    if offered:
        from weft.project.agent_list import listing_of  # as above

        pieces.append(
            "# Skills\n\nBefore you do something that one of these describes, read it "
            "with the skill tool:\n" + listing_of(offered)
        )
    return "\n\n".join(pieces)
