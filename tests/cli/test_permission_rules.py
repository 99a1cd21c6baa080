"""`weft permissions`, and the same for programs."""

from __future__ import annotations

import json

import pytest

from tests.support.weft_program import WeftProgram
from tests.support.world import World
from weft.errors import UsageError
from weft.testing import ScriptedModel


@pytest.mark.process
def test_rules_are_added_listed_explained_and_removed(weft: WeftProgram) -> None:
    rule = "shell(git push *)"
    assert weft.call("permissions", "add", "deny", rule).returncode == 0
    [listed] = json.loads(weft.call("permissions", "--json").stdout)
    assert (listed["verdict"], listed["rule"]) == ("deny", rule)
    told = json.loads(
        weft.call("permissions", "explain", "--json", "--", "ls; git push origin").stdout
    )
    assert told["decision"] == "deny"
    assert [part["decision"] for part in told["parts"]][-1] == "deny"
    assert told["rule"] == f"deny {rule}"
    assert weft.call("permissions", "remove", "deny", rule).returncode == 0
    assert json.loads(weft.call("permissions", "--json").stdout) == []


@pytest.mark.process
def test_what_could_do_nothing_is_refused_with_the_right_spelling(weft: WeftProgram) -> None:
    wrong = weft.call("permissions", "add", "allow", "shell(git log * | head *)")
    assert wrong.returncode == 2
    assert "shell(git log *), shell(head *)" in wrong.stderr
    assert weft.call("permissions", "add", "maybe", "shell").returncode == 2
    assert weft.call("permissions", "explain").returncode == 2
    assert weft.call("permissions", "explain", "--mode", "x", "--", "ls").returncode == 2


@pytest.mark.process
def test_what_bash_refuses_is_denied_with_its_reason(weft: WeftProgram) -> None:
    told = json.loads(weft.call("permissions", "explain", "--json", "--", "if true").stdout)
    assert told["decision"] == "deny"
    [part] = told["parts"]
    assert (part["text"], part["decision"]) == ("if true", "deny")
    assert "syntax error" in part["reason"]


@pytest.mark.process
@pytest.mark.parametrize("line", ["ls", "rm x; ls", "if true", "ls \u202e", "true; " * 600])
def test_an_explanation_as_json_has_three_keys(weft: WeftProgram, line: str) -> None:
    told = json.loads(weft.call("permissions", "explain", "--json", "--", line).stdout)
    assert list(told) == ["decision", "parts", "rule"]
    assert told["decision"] in ("allow", "ask", "deny")
    assert all({"text", "argv", "decision", "reason"} <= set(part) for part in told["parts"])
    assert told["parts"]


@pytest.mark.anyio
@pytest.mark.process
@pytest.mark.requirement("app:permissions")
async def test_a_program_lists_adds_removes_and_explains(plain_world: World) -> None:
    async with plain_world.open(ScriptedModel([])) as app:
        await app.permissions.add("allow", "shell(make *)")
    async with plain_world.open(ScriptedModel([])) as app:
        assert [each.rule for each in app.permissions.list()] == ["shell(make *)"]
        told = await app.permissions.explain("make lint")
        assert (told.decision, told.rule) == ("allow", "allow shell(make *)")
        assert (await app.permissions.explain("make lint; rm x")).decision == "ask"
        edit = await app.permissions.explain(".git/hooks/x", tool="Edit", mode="accept_edits")
        assert edit.decision == "ask"
        with pytest.raises(UsageError, match="no rule"):
            await app.permissions.remove("deny", "shell(make *)")
        await app.permissions.remove("allow", "shell(make *)")


@pytest.mark.anyio
async def test_rules_that_are_added_one_after_the_other_are_all_kept(plain_world: World) -> None:
    app = plain_world.open(ScriptedModel([]))
    await app.permissions.add("allow", "shell(make *)")
    await app.permissions.add("allow", "shell(ls *)")
    await app.permissions.remove("allow", "shell(make *)")
    await app.permissions.add("allow", "shell(pytest *)")
    again = plain_world.open(ScriptedModel([]))
    assert [each.rule for each in again.permissions.list()] == ["shell(ls *)", "shell(pytest *)"]


@pytest.mark.process
def test_a_rule_is_not_kept_when_its_examples_are_otherwise(weft: WeftProgram) -> None:
    rule = "shell(git diff *)"
    add = ("permissions", "add", "allow", rule)
    wrong = weft.call(*add, "--match", "git diff --output=x")
    assert wrong.returncode == 2
    assert "'git diff --output=x' is not covered" in wrong.stderr
    assert "--output" in wrong.stderr
    much = weft.call(*add, "--not-match", "git diff src")
    assert much.returncode == 2
    assert "must not be covered" in much.stderr
    assert json.loads(weft.call("permissions", "--json").stdout) == []
    right = ("--match", "git diff src", "--not-match", "git diff; rm x", "--not-match", "git log")
    assert weft.call(*add, *right).returncode == 0


@pytest.mark.process
def test_examples_in_the_settings_are_checked_when_a_session_starts(weft: WeftProgram) -> None:
    settings = weft.config / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    table = '[permissions]\ndeny = ["shell(rm *)"]\n[permissions.examples."deny shell(rm *)"]\n'
    model = weft.script("Hello.")
    settings.write_text(f'{table}match = ["rm -rf x"]\nnot_match = ["ls"]\n')
    assert weft.call("-p", "-m", model, "hi").returncode == 0
    settings.write_text(f'{table}match = ["unlink x"]\n')
    told = weft.call("-p", "-m", model, "hi")
    assert told.returncode != 0
    assert "the example 'unlink x' is not covered by the rule `deny shell(rm *)`" in told.stderr
    settings.write_text('[permissions.examples."shell(rm *)"]\nmatch = ["rm x"]\n')
    assert "named like their rule" in weft.call("-p", "-m", model, "hi").stderr


CLAUDE = {
    "permissions": {
        "allow": ["Bash(npm run test:*)", "Read(src/**)", "Bash(git diff *)", "WebFetch(*)"],
        "deny": ["Read(.env)", "Bash(a | b *)", "Nonsense(x)"],
        "ask": ["Bash(git push:*)"],
    }
}
CODEX = """
# what codex keeps
prefix_rule(pattern=["git", ["status", "log"]], match=["git status", ["git", "log", "-1"]])
prefix_rule(
    pattern=["rm"], decision="forbidden", match=["rm -rf x"], justification="use the trash",
)
prefix_rule(pattern=["cargo", "test"], decision="prompt", not_match=["cargo test --all"])
host_executable(name="git", paths=["/usr/bin/git"])
"""


@pytest.mark.process
def test_rules_of_other_agents_are_imported(weft: WeftProgram) -> None:
    (weft.home / ".claude").mkdir()
    (weft.home / ".claude" / "settings.json").write_text(json.dumps(CLAUDE))
    (weft.home / ".codex" / "rules").mkdir(parents=True)
    (weft.home / ".codex" / "rules" / "default.rules").write_text(CODEX)
    dry = json.loads(weft.call("permissions", "import", "--dry-run", "--json").stdout)
    assert json.loads(weft.call("permissions", "--json").stdout) == []
    left = {each["rule"].partition("(")[0]: each["why"] for each in dry if each["why"]}
    assert set(left) == {"Bash", "Nonsense", "shell", "host_executable"}
    assert "must not be covered" in left["shell"]
    assert "Nonsense" in left["Nonsense"]
    told = weft.call("permissions", "import")
    assert told.returncode == 0
    rules = {
        (each["verdict"], each["rule"])
        for each in json.loads(weft.call("permissions", "--json").stdout)
    }
    assert rules == {
        *(("allow", "Bash(npm run test:*)"), ("allow", "Read(src/**)")),
        *(("allow", "Bash(git diff *)"), ("allow", "WebFetch"), ("deny", "Read(.env)")),
        *(("ask", "Bash(git push:*)"), ("allow", "shell(git status *)")),
        *(("allow", "shell(git log *)"), ("deny", "shell(rm *)")),
    }
    again = json.loads(weft.call("permissions", "import", "--json").stdout)
    assert {each["state"] for each in again} == {"there", "left out"}


@pytest.mark.process
def test_a_file_that_has_no_rules_is_refused(weft: WeftProgram) -> None:
    assert weft.call("permissions", "import").returncode == 2
    for name, text in (("a.json", "{"), ("b.json", '{"permissions": []}'), ("c.rules", "x = (")):
        (weft.project / name).write_text(text)
        told = weft.call("permissions", "import", name)
        assert (told.returncode, "Traceback" in told.stderr) == (2, False)
        assert name in told.stderr
