"""`rules.json` as a user may have edited it: what is right counts, what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.app import open_app
from weft.errors import UsageError
from weft.project.saved_rules import SavedRules

PROJECT = "/home/me/project"


def rules(tmp_path: Path, text: str) -> SavedRules:
    made = SavedRules(tmp_path)
    made.path.write_text(text)
    made.path.chmod(0o600)
    return made


def kept(saved: SavedRules) -> list[tuple[str, str]]:
    return [(rule.tool, rule.pattern) for rule in saved.of(PROJECT)]


EDITED = """{
  "/home/me/project": [
    "shell(npm test)",
    "Bash(npm run lint)",
    "npm run build",
    7,
    "sehll(ls)",
    "announce(lunch)"
  ],
  "/home/me/other": "shell(ls)"
}
"""


def test_each_line_that_counts_for_nothing_is_named_and_the_others_count(tmp_path: Path) -> None:
    saved = rules(tmp_path, EDITED)
    assert kept(saved) == [("shell", "npm test"), ("announce", "lunch")]
    assert saved.problems(PROJECT) == [
        f"{saved.path}, line 4: the rule 'Bash(npm run lint)' is ignored: the tool is called "
        "'shell' here",
        f"{saved.path}, line 5: the rule 'npm run build' is ignored: write tool(target), such as "
        "shell(npm test)",
        f"{saved.path}, line 6: the rule 7 is ignored: write tool(target), such as shell(npm test)",
        f"{saved.path}, line 7: the rule 'sehll(ls)' is ignored: there is no tool 'sehll'; did you "
        "mean 'shell'?",
    ]


def test_rules_that_are_no_list_are_named(tmp_path: Path) -> None:
    saved = rules(tmp_path, EDITED)
    [problem] = saved.problems("/home/me/other")
    assert problem == (
        f"{saved.path}, line 10: the rules of '/home/me/other' are ignored: they must be a list"
    )
    assert saved.of("/home/me/other") == ()


def test_a_file_that_is_no_json_is_named_with_its_line(tmp_path: Path) -> None:
    saved = rules(tmp_path, '{\n  "/home/me/project": [\n    "shell(ls)",\n  ]\n}\n')
    assert kept(saved) == []
    [problem] = saved.problems(PROJECT)
    assert problem.startswith(f"{saved.path}, line 4: no rule in it counts: it is not JSON")
    assert rules(tmp_path, "[]").problems(PROJECT) == [
        f"{saved.path}, line 1: no rule in it counts: it must be an object, with a list for each "
        "project"
    ]


def test_there_is_nothing_to_say_of_a_file_that_is_right_or_not_there(tmp_path: Path) -> None:
    assert SavedRules(tmp_path / "none").problems(PROJECT) == []
    saved = SavedRules(tmp_path)
    saved.add(PROJECT, "shell(echo ')' > a)")
    saved.add(PROJECT, "shell(cat <<'E'\nE\n)")
    assert saved.problems(PROJECT) == []
    assert len(kept(saved)) == 2


def test_a_rule_is_not_added_to_a_file_that_would_lose_something(tmp_path: Path) -> None:
    saved = rules(tmp_path, EDITED)
    with pytest.raises(UsageError, match="cannot be saved"):
        saved.add("/home/me/other", "shell(ls)")
    assert saved.path.read_text() == EDITED
    saved.add(PROJECT, "shell(make)")
    assert ("shell", "make") in kept(saved)
    assert len(saved.problems(PROJECT)) == 4, "what the user wrote stays"


@pytest.mark.anyio
async def test_the_application_names_them_with_what_else_is_left_out(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    app = open_app(project, "memory", environ=environ)
    app.places.config.mkdir(parents=True)
    saved = SavedRules(app.places.config)
    saved.path.write_text(f'{{"{project}": ["shell"]}}')
    saved.path.chmod(0o600)
    async with app:
        [problem] = await app.project_problems()
    assert "line 1: the rule 'shell' is ignored" in problem
