"""`weft loom`: what each command prints, stores and refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import anyio
import pytest

import weft
from tests.support.source_code import ROOT
from tests.support.weft_program import WeftProgram, text
from weft.cli.help import verb_help
from weft.cli.loom.loom_options import LOOM_VERBS
from weft.cli.loom.node_references import short_id
from weft.loom import LoomNode

FIRST = " there was a loom that kept every thread.\n\nIt stood by the sea."
SECOND = " there was a loom that kept every song.\n\nIt stood in a cellar."


class LoomProgram:
    """`weft loom` with a model that writes two branches."""

    def __init__(self, weft: WeftProgram) -> None:
        self.weft = weft
        self.model = weft.script([text(FIRST)], [text(SECOND)], by="position", loop=True)

    def said(self, *words: str, stdin: str = "", code: int = 0) -> str:
        """What a command prints."""
        done = self.weft.call("loom", *words, stdin=stdin)
        assert done.returncode == code, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout if not code else done.stderr

    def data(self, *words: str, stdin: str = "") -> Any:
        """What it prints as JSON."""
        return json.loads(self.said(*words, "--json", stdin=stdin))

    def grown(self, beginning: str = "Once upon a time") -> dict[str, Any]:
        """A new tree with two branches."""
        made: dict[str, Any] = self.data("new", beginning, "-n", "2", "-m", self.model)
        return made


@pytest.fixture
def loom(weft: WeftProgram) -> LoomProgram:
    return LoomProgram(weft)


# --- growing -----------------------------------------------------------------------------


def test_a_pipe_gets_each_branch_once_whole_with_its_number_and_id(loom: LoomProgram) -> None:
    said = loom.said("new", "Once", "-n", "2", "-m", loom.model)
    listed = loom.data("children")
    assert sorted(each["text"] for each in listed) == sorted([FIRST, SECOND])
    for number, node in enumerate(listed, start=1):
        head = f"{number}  {node['id']}  {loom.model}  $"
        assert said.count(node["text"]) == said.count(head) == 1
        assert said.index(head) < said.index(node["text"])
    assert "\x1b" not in said


def test_a_new_tree_as_json_names_everything_that_goes_on_from_it(loom: LoomProgram) -> None:
    made = loom.grown()
    assert made["root"] == made["source"] == made["active"]
    assert made["name"] == "Once upon a time"
    assert (made["failures"], made["cancelled"]) == ([], False)
    assert [each["number"] for each in made["branches"]] == [1, 2]
    assert {each["parent_id"] for each in made["branches"]} == {made["root"]}
    assert made["cost_usd"] > 0


@pytest.mark.parametrize("given", [["-"], []], ids=["dash", "nothing"])
def test_a_text_may_come_from_a_pipe_and_loses_its_last_newline(
    loom: LoomProgram, given: list[str]
) -> None:
    made = loom.data("new", *given, "-n", "1", "-m", loom.model, stdin="From a pipe\n")
    assert loom.said("show", made["root"]) == "From a pipe\n"
    assert loom.data("show", made["root"])["text"] == "From a pipe"


def test_a_text_may_come_from_a_file(loom: LoomProgram) -> None:
    (loom.weft.project / "draft.txt").write_text("A draft\n")
    for given in (["@draft.txt"], ["--file", "draft.txt"]):
        root = loom.said("new", *given, "--empty", "-m", loom.model).strip()
        assert loom.data("show", root)["text"] == "A draft"


def test_one_model_writes_three_branches_and_several_one_each(loom: LoomProgram) -> None:
    assert len(loom.data("new", "x", "-m", loom.model)["branches"]) == 3
    other = loom.weft.script("another one")
    made = loom.data("new", "x", "-m", loom.model, "-m", other)
    assert sorted(each["model"] for each in made["branches"]) == sorted([loom.model, other])


def test_several_children_have_to_be_chosen_from(loom: LoomProgram) -> None:
    made = loom.grown()
    told = loom.said("continue", code=2)
    for each in made["branches"]:
        assert short_id(each["id"]) in told
    second = made["branches"][1]["id"]
    grown = loom.data("continue", "-b", "2", "-n", "1")
    assert grown["source"] == second
    assert grown["active"] == grown["branches"][0]["id"]
    more = loom.data("continue", "/", "--here", "-n", "1")
    assert (more["source"], more["branches"][0]["number"]) == (made["root"], 3)


def test_a_line_with_one_way_on_is_followed_to_its_end(loom: LoomProgram) -> None:
    made = loom.data("new", "x", "-n", "1", "-m", loom.model)
    grown = loom.data("continue", made["root"], "-n", "1")
    assert grown["source"] == made["branches"][0]["id"]


def test_what_continue_is_given_is_kept_for_the_tree(loom: LoomProgram) -> None:
    loom.grown()
    loom.data("continue", "-b", "1", "-n", "1", "-t", "77", "--context", "sad")
    found = loom.data("settings")
    assert found["model_plan"] == [
        {
            "model": loom.model,
            "n_branches": 1,
            "max_tokens": 77,
            "temperature": 0.9,
            "enabled": True,
            "strategy": "",
        }
    ]
    assert loom.data("settings", "/1")["context"] == "sad"


def test_a_tree_without_a_plan_grows_as_a_new_one_does(loom: LoomProgram) -> None:
    loom.said("import", str(ROOT / "tests/loom/files/tinyloom.json"))
    assert "weft auth login" in loom.said("continue", "--here", code=3)
    assert len(loom.data("continue", "--here", "-m", loom.model)["branches"]) == 3
    assert [each["model"] for each in loom.data("settings")["model_plan"]] == [loom.model]


def test_a_long_text_is_named_before_the_command_ends(loom: LoomProgram) -> None:
    named = [{"do": "pause", "seconds": 0.05}, text("A Tale of Words")]
    model = loom.weft.script([text(" and more")], named, by="position")
    made = loom.data("new", "word " * 600, "-n", "1", "-m", model)
    assert made["branches"][0]["text"] == " and more"
    assert [each["name"] for each in loom.data("list")] == ["A Tale of Words"]


def test_a_failure_of_all_branches_keeps_the_text_and_exits_1(loom: LoomProgram) -> None:
    failing = loom.weft.script([{"do": "error", "error": "RequestRefused", "message": "no"}])
    done = loom.weft.call("loom", "new", "Kept", "-n", "2", "-m", failing)
    assert (done.returncode, done.stdout) == (1, "")
    why, kept = done.stderr.splitlines()
    assert why == "weft: script2.json: no (2 branches)"
    assert "the text is kept" in kept
    assert [each["text"] for each in loom.data("roots")] == ["Kept"]


def test_a_failure_of_one_branch_shows_the_others_and_exits_0(loom: LoomProgram) -> None:
    failing = loom.weft.script([{"do": "error", "error": "RequestRefused", "message": "no"}])
    made = loom.data("new", "x", "-m", failing, "-m", loom.model, "-n", "1")
    assert len(made["branches"]) == 1
    assert [each["model"] for each in made["failures"]] == [failing]


def test_a_race_ends_with_the_first_branch_and_keeps_the_others_in_part(loom: LoomProgram) -> None:
    slow = loom.weft.script([text(" and so on" * 5_000, 5)], loop=True, pace_seconds=0.01)
    made = loom.data("new", "x", "-n", "1", "-m", loom.model, "-m", slow, "--stop-when", "first")
    assert made["cancelled"] is False
    assert {each["model"]: each["partial"] for each in made["branches"]}[loom.model] is False


def test_adaptive_branches_share_what_the_model_was_sure_of(loom: LoomProgram) -> None:
    tokens = [
        [" a", -0.1, [[" a", -0.1], [" the", -4.0]]],
        [" loom", -0.7, [[" loom", -0.7], [" song", -0.8]]],
    ]
    scored = {"do": "text", "text": " a loom", "tokens": tokens}
    model = loom.weft.script([scored], [text(" of old")], by="position", loop=True)
    made = loom.data("new", "Once", "-n", "2", "-m", model, "--adaptive")
    assert sorted(each["text"] for each in made["branches"]) == [" a loom", " a song of old"]


def test_without_a_key_a_tree_is_refused_and_nothing_is_made(loom: LoomProgram) -> None:
    done = loom.weft.call("loom", "new", "Once")
    assert (done.returncode, done.stdout) == (3, "")
    assert "-m local:smollm2" in done.stderr
    assert loom.weft.call("loom", "new", "x", "-m", "openai:gpt-5-mini").returncode == 3
    assert loom.data("list") == []


def test_an_empty_tree_needs_no_key_and_grows_with_the_first_model(loom: LoomProgram) -> None:
    root = loom.said("new", "Once", "--empty").strip()
    assert [each["root_id"] for each in loom.data("list")] == [root]
    made = loom.data("continue", "-n", "2", "-m", loom.model)
    assert (made["root"], len(made["branches"])) == (root, 2)


def test_a_model_of_no_provider_is_refused_before_a_tree_keeps_it(loom: LoomProgram) -> None:
    loom.grown()
    before = loom.data("settings")
    for words in (["continue", "--here"], ["settings"], ["new", "x"], ["new", "x", "--empty"]):
        said = loom.said(*words, "-m", "nosuch:thing", code=2)
        assert "no provider 'nosuch' in 'nosuch:thing'" in said
    assert loom.data("settings") == before
    assert len(loom.data("list")) == 1


@pytest.mark.process
def test_without_a_key_the_embedded_model_is_taken_where_it_is_installed(weft: WeftProgram) -> None:
    weights = weft.data / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"")
    planted = weft.plant("")
    (weft.home / "xllamacpp.py").write_text("")
    done = weft.run("loom", "new", "Once", "--empty", env=planted)
    assert done.returncode == 0, done.stderr
    assert "the embedded model local:smollm2 writes" in done.stderr
    (entry,) = json.loads(weft.run("loom", "settings", "--json", env=planted).stdout)["model_plan"]
    assert (entry["model"], entry["n_branches"], entry["max_tokens"]) == ("local:smollm2", 3, 40)


# --- finding nodes -----------------------------------------------------------------------


def test_nodes_are_named_by_steps_from_the_active_one(loom: LoomProgram) -> None:
    made = loom.grown()
    first, second = (each["id"] for each in made["branches"])
    assert loom.data("select", "2")["id"] == second
    assert loom.data("active")["id"] == second
    for given, meant in (
        (".", second),
        ("..", made["root"]),
        ("/", made["root"]),
        ("../1", first),
        ("/1", first),
        (f"{made['root']}/2", second),
        (first[:-2], first),
        (short_id(first), first),
    ):
        assert loom.data("show", given, "--segment")["id"] == meant, given


def test_a_tree_that_is_selected_is_the_active_one_wherever_it_was_left(loom: LoomProgram) -> None:
    first = loom.grown("First")
    loom.grown("Second")
    loom.said("select", first["root"])
    assert loom.data("active")["id"] == first["root"]


def test_an_id_of_another_program_may_be_a_number_or_have_a_slash(loom: LoomProgram) -> None:
    nodes = [
        {"id": "77", "parent_id": None, "tree_id": "77", "kind": "root", "text": "root"},
        {"id": "a/b", "parent_id": "77", "tree_id": "77", "kind": "text", "text": " child"},
    ]
    (loom.weft.project / "t.json").write_text(json.dumps({"version": 1, "nodes": nodes}))
    loom.said("import", "t.json")
    assert "id:77" in loom.said("list")
    assert loom.data("show", "id:77")["text"] == "root"
    assert loom.data("show", "id:77/1")["text"] == "root child"
    assert loom.data("show", "a/b")["text"] == "root child"


def test_a_number_is_a_child_and_never_the_beginning_of_an_id(loom: LoomProgram) -> None:
    """`delete 3` where there is no third child has to leave a node that is called so alone."""
    nodes = [
        {"id": name, "parent_id": parent, "kind": "text", "text": f" {name}"}
        for name, parent in (("root", None), ("3", "root"), ("31", "root"), ("4x", "root"))
    ]
    (loom.weft.project / "t.json").write_text(json.dumps({"version": 1, "nodes": nodes}))
    loom.said("import", "t.json")
    loom.said("select", "4x")
    refused = loom.said("delete", "3", "-y", code=2)
    assert "there is no branch '3': 4x has no children" in refused
    assert "`id:3` is the node of that id" in refused
    assert "no branch '4'" in loom.said("delete", "4", "-y", code=2)
    assert "has no number" in loom.said("restore", "3", code=2)
    assert [each["id"] for each in loom.data("children", "root")] == ["3", "31", "4x"]
    assert "`weft loom restore id:3`" in loom.said("delete", "id:3", "-y")
    assert [each["id"] for each in loom.data("children", "root")] == ["31", "4x"]
    loom.said("restore", "id:3")
    assert len(loom.data("children", "root")) == 3
    assert loom.data("show", "root/2", "--segment")["id"] == "31"


def test_a_wrong_reference_is_told_with_what_there_is(loom: LoomProgram) -> None:
    loom.grown()
    assert "has 2 children" in loom.said("select", "9", code=2)
    assert "nothing above" in loom.said("select", "..", code=2)
    assert "there is no node 'zzz'" in loom.said("select", "zzz", code=2)
    assert "could be any of" in loom.said("select", "nod_", code=2)
    loom.said("select", "1")
    assert "`../N` is a sibling" in loom.said("select", "2", code=2)


def test_a_root_without_children_is_told_to_grow_some(loom: LoomProgram) -> None:
    loom.said("new", "Once", "--empty")
    refused = loom.said("select", "2", code=2)
    assert "has no children; `weft loom continue` grows some" in refused
    assert "../N" not in refused


def test_nodes_of_two_trees_are_not_compared(loom: LoomProgram) -> None:
    one, two = loom.grown("First"), loom.grown("Second")
    for verb in ("compare", "weave"):
        refused = loom.said(verb, f"{one['root']}/1", f"{two['root']}/1", code=2)
        assert "only nodes of one tree can be put beside each other" in refused
        assert short_id(one["root"]) in refused


@pytest.mark.parametrize("given", [[], [""]], ids=["nothing", "empty"])
def test_a_tree_of_no_text_is_told_how_to_give_one(loom: LoomProgram, given: list[str]) -> None:
    assert "there is no text to begin with" in loom.said("new", *given, code=2)


def test_one_node_is_not_called_nodes(loom: LoomProgram) -> None:
    nodes = [{"id": "root", "parent_id": None, "kind": "root", "text": "root"}]
    (loom.weft.project / "t.json").write_text(json.dumps({"version": 1, "nodes": nodes}))
    assert "1 tree of basemode, 1 node new" in loom.said("import", "t.json")
    assert "1 node, 1 end, " in loom.said("stats")


def test_without_a_tree_each_command_says_how_to_make_one(loom: LoomProgram) -> None:
    for verb in ("active", "show", "children", "continue", "settings", "stats", "export", "edit"):
        assert "there are no trees yet" in loom.said(verb, code=2), verb
    done = loom.weft.call("loom")
    assert (done.returncode, done.stdout) == (0, "")
    assert "there are no trees yet" in done.stderr


# --- lists -------------------------------------------------------------------------------


def test_the_list_has_facets(loom: LoomProgram) -> None:
    one, two = loom.grown("First tree"), loom.grown("Second tree")
    loom.said("bookmark", f"{one['root']}/1")

    def listed(*words: str) -> list[str]:
        return [each["root_id"] for each in loom.data("list", *words)]

    assert sorted(listed()) == sorted([one["root"], two["root"]])
    assert listed("--bookmarked") == listed("First") == [one["root"]]
    assert listed("--sort", "created", "--limit", "1") == [two["root"]]
    assert listed("--sort", "name") == [one["root"], two["root"]]
    assert listed("--model", "script") == listed()
    assert listed("--model", "haiku") == listed("--before", "2020-01-01") == []
    assert listed("--after", "2020-01-01") == listed()
    loom.said("settings", two["root"], "--archive")
    assert listed() == [one["root"]]
    assert sorted(listed("--archived")) == sorted([one["root"], two["root"]])
    assert loom.data("roots")[0]["id"] == one["root"]


def test_the_list_shows_the_model_that_a_tree_was_made_for_and_finds_it_by_others(
    loom: LoomProgram,
) -> None:
    loom.grown()
    assert [each["model"] for each in loom.data("list")] == [loom.model]
    assert loom.data("list", "--model", "script2") == []
    loom.data("continue", "--here", "-n", "1", "-m", loom.weft.script("another one"))
    assert [each["model"] for each in loom.data("list", "--model", "script2")] == [loom.model]


def test_a_search_takes_filters_as_options_and_among_its_words(loom: LoomProgram) -> None:
    made = loom.grown()
    song = next(each["id"] for each in made["branches"] if "song" in each["text"])
    assert [each["id"] for each in loom.data("search", "song")] == [song]
    assert loom.data("search", "song", "--model", "haiku") == []
    assert loom.data("search", "song", "--bookmarked") == []
    loom.said("bookmark", song)
    for words in (["song", "--bookmarked"], ["--bookmarked"], ["is:bookmarked"]):
        assert [each["id"] for each in loom.data("search", *words)] == [song], words
    assert "say what to look for" in loom.said("search", code=2)
    assert "is no day" in loom.said("search", "x", "--after", "soon", code=2)


def test_stats_of_a_tree_and_of_its_file_agree(loom: LoomProgram) -> None:
    loom.grown()
    loom.said("rate", "1", "up")
    loom.said("export", "-o", "t.json")
    from_store, from_file = loom.data("stats"), loom.data("stats", "--file", "t.json")
    assert from_store["models"] == from_file["models"] == loom.data("stats", "--all")["models"]
    (model,) = from_store["models"]
    assert (model["nodes"], model["kept"], model["win_rate"]["mean"]) == (2, 0.5, 0.5)


def test_branches_of_two_generations_do_not_compete(loom: LoomProgram) -> None:
    loom.grown()
    loom.data("continue", "--here", "-n", "1")
    (model,) = loom.data("stats")["models"]
    assert (model["nodes"], model["win_rate"]["count"]) == (3, 2)


# --- texts -------------------------------------------------------------------------------


def _numbers(loom: LoomProgram) -> tuple[str, str]:
    """The numbers of the two branches."""
    listed = loom.data("children")
    found = {each["text"]: str(each["number"]) for each in listed}
    return found[FIRST], found[SECOND]


def test_two_branches_are_compared_word_by_word(loom: LoomProgram) -> None:
    loom.grown()
    one, two = _numbers(loom)
    said = loom.said("compare", one, two)
    assert "kept every [-thread-]{+song+}." in said
    assert "stood [-by the sea-]{+in a cellar+}." in said
    found = loom.data("compare", one, two)
    assert (found["first_text"], found["second_text"]) == (FIRST, SECOND)
    assert found["shared"] == "Once upon a time"
    loom.grown("Another")
    assert "only nodes of one tree" in loom.said("compare", found["first"], "1", code=2)


def test_two_branches_are_woven_into_one(loom: LoomProgram) -> None:
    made = loom.grown()
    one, two = _numbers(loom)
    listed = loom.data("weave", one, two, "--list")
    assert [each["name"] for each in listed] == ["a1", "a2", "b1", "b2"]
    assert "no paragraph b3" in loom.said("weave", one, two, "--paragraphs", "b3", code=2)
    assert "not '1'" in loom.said("weave", one, two, "--paragraphs", "1", code=2)
    woven = loom.data("weave", one, two, "--paragraphs", "b1,a2")
    assert woven["text"] == " there was a loom that kept every song.\n\nIt stood by the sea."
    assert sorted(woven["metadata"]["parents"]) == sorted(each["id"] for each in made["branches"])
    assert loom.data("active")["id"] == woven["id"]


def test_branches_of_a_fork_are_woven_below_a_node_that_it_shares(loom: LoomProgram) -> None:
    made = loom.grown()
    shared = made["branches"][0]["id"]

    async def branched() -> list[str]:
        async with weft.open(loom.weft.project, environ=loom.weft.environment) as app:
            fork = await app.sessions.fork_session(await app.loom.session_of(shared))
            _, nodes = await app.loom.save_continuations(
                "", [" One.", " Two."], parent_id=f"{fork.id}/{shared}"
            )
            return [node.id for node in nodes]

    one, two = anyio.run(branched)
    woven = loom.data("weave", one, two, "--paragraphs", "b1,a1")
    assert (woven["number"], woven["metadata"]["parents"]) == (3, [one, two])
    assert loom.said("children", shared) == ""


def test_the_outline_shows_every_branch(loom: LoomProgram) -> None:
    made = loom.grown()
    lines = loom.said("show", "/", "--tree").splitlines()
    assert len(lines) == 3
    assert "(active)" in lines[0]
    for line, each in zip(lines[1:], made["branches"], strict=True):
        assert line.startswith(f"  {each['number']} {each['id']}")


# --- changes -----------------------------------------------------------------------------


def test_a_node_is_edited_by_text_by_pipe_and_in_an_editor(loom: LoomProgram) -> None:
    loom.grown()
    loom.said("edit", "1", "--text", " one")
    assert loom.said("show", "1", "--segment") == " one\n"
    loom.said("edit", "1", "-", stdin=" two\n")
    assert loom.said("show", "1", "--segment") == " two\n"
    assert "nothing was changed" in loom.said("edit", "1", "--text", " two")
    forked = loom.data("edit", "1", "--fork", "--text", " three")
    assert loom.data("active")["id"] == forked["id"]
    assert loom.said("show", "../1", "--segment") == " two\n"


@pytest.mark.process
def test_an_editor_that_ends_the_file_with_a_newline_adds_none_to_the_node(
    loom: LoomProgram,
) -> None:
    loom.grown()
    script = loom.weft.home / "editor"
    script.write_text("#!/bin/sh\necho ' edited' > \"$1\"\n")
    script.chmod(0o755)
    done = loom.weft.call("loom", "edit", "1", env={"VISUAL": str(script)})
    assert done.returncode == 0, done.stderr
    assert loom.data("show", "1", "--segment")["text"] == " edited"


def test_what_is_deleted_is_asked_for_first_and_can_be_restored(loom: LoomProgram) -> None:
    made = loom.grown()
    first = made["branches"][0]["id"]
    assert "add --yes" in loom.said("delete", "1", code=2)
    told = loom.said("delete", "1", "2", "--yes")
    assert f"`weft loom restore {short_id(first)}`" in told
    assert loom.data("children") == []
    assert loom.data("restore", short_id(first)) == [{"id": short_id(first), "restored": 1}]
    assert [each["id"] for each in loom.data("children")] == [first]
    assert "was not deleted" in loom.said("restore", first, code=2)


def test_a_tree_is_deleted_restored_and_purged_by_its_root(loom: LoomProgram) -> None:
    root = loom.grown()["root"]
    loom.said("delete", root, "--yes")
    assert loom.data("list") == []
    loom.said("restore", root)
    assert [each["root_id"] for each in loom.data("list")] == [root]
    assert "is no root" in loom.said("delete", "1", "--purge", "--yes", code=2)
    loom.said("delete", root, "--purge", "--yes")
    assert "there is no node" in loom.said("restore", root, code=2)


def test_marks_are_set_and_taken_away(loom: LoomProgram) -> None:
    loom.grown()
    assert loom.data("bookmark", "1")["bookmarked"] is True
    assert loom.data("bookmark", "1", "--off")["bookmarked"] is False
    assert loom.data("rate", "1", "up")["rating"] == 1
    assert json.loads(loom.said("rate", "1", "--json", "--", "-3"))["rating"] == -3
    assert loom.data("rate", "1", "--off")["rating"] is None
    assert "a rating is" in loom.said("rate", "1", "wow", code=2)


# --- files -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "begins"), [("t.md", "Once upon a time there"), ("t.html", "<!DOCTYPE html>")]
)
def test_the_format_of_an_export_is_what_the_name_of_its_file_says(
    loom: LoomProgram, name: str, begins: str
) -> None:
    loom.grown()
    assert loom.said("export", "1", "-o", name) == ""
    assert (loom.weft.project / name).read_text().startswith(begins)
    assert [path.name for path in loom.weft.project.iterdir()] == [name]
    assert "no format is called 'xyz'" in loom.said("export", "-o", "t.xyz", code=2)
    assert "cannot write" in loom.said("export", "-o", "no/t.json", code=2)


@pytest.mark.parametrize("form", ["json", "basemode"])
def test_an_export_comes_back_with_its_ids_and_only_once(loom: LoomProgram, form: str) -> None:
    made = loom.grown()
    exported = loom.said("export", "--format", form)
    loom.said("delete", made["root"], "--purge", "--yes")
    (done,) = loom.data("import", "-", stdin=exported)
    assert (done["added"], done["known"], done["roots"]) == (3, 0, [made["root"]])
    (again,) = loom.data("import", "-", stdin=exported)
    assert (again["added"], again["known"]) == (0, 3)
    texts = {each["id"]: each["text"] for each in loom.data("children", made["root"])}
    assert texts == {each["id"]: each["text"] for each in made["branches"]}


@pytest.mark.parametrize(
    "file", sorted((ROOT / "tests/loom/files").iterdir()), ids=lambda f: f.stem
)
def test_the_files_of_other_programs_are_imported(loom: LoomProgram, file: Path) -> None:
    (done,) = loom.data("import", str(file))
    assert done["source"] == file.stem
    assert done["added"] > 0
    assert len(loom.data("list")) == len(done["roots"])
    (again,) = loom.data("import", str(file))
    assert (again["added"], again["known"]) == (0, done["added"])


def test_one_file_that_is_no_tree_does_not_keep_the_others_out(loom: LoomProgram) -> None:
    (loom.weft.project / "bad.json").write_text("no tree")
    good = str(ROOT / "tests/loom/files/basemode.json")
    done = loom.weft.call("loom", "import", "bad.json", "gone.json", good)
    assert done.returncode == 1
    assert "1 tree of basemode" in done.stdout
    bad, gone = done.stderr.splitlines()
    assert bad.startswith("weft: bad.json: the file is not JSON")
    assert gone == "weft: cannot read 'gone.json': No such file or directory"
    assert loom.weft.call("loom", "import", "bad.json").returncode == 2


# --- bad input ---------------------------------------------------------------------------


BAD_INPUT: list[tuple[list[str], str]] = [
    (["nwe", "x"], "did you mean 'new'?"),
    (["new", ""], "there is no text to begin with"),
    (["new", "@gone"], "cannot read 'gone'"),
    (["new", "x", "--file", "y"], "not both"),
    (["new", "x", "-n", "65"], "-n takes 1 to 64, not 65"),
    (["new", "x", "-t", "9"], "-t takes 10 to 8000, not 9"),
    (["new", "x", "--temperature", "hot"], "--temperature takes a number from 0 to 2"),
    (["new", "x", "--temperature", "nan"], "--temperature takes a number from 0 to 2"),
    (["new", "x", "-m", "nope"], "unknown model 'nope'"),
    (["new", "x", "--strategy", "sistem"], "did you mean 'system'?"),
    (["new", "x", "--stop-when", "soon"], "is no rule to stop by"),
    (["new", "\udcff"], "not UTF-8"),
    (["new", "x", "--name", "\udcff"], "is no name for a tree"),
    (["settings", "--name", " "], "is no name for a tree"),
    (["select", "\udcff"], "there is no node"),
    (["restore", "\udcff"], "there is no node"),
    (["select"], "takes a node"),
    (["select", "1", "2"], "takes one node, not 2"),
    (["select", ""], "there is no node ''"),
    (["compare", "1"], "takes two nodes"),
    (["weave", "1", "2", "3"], "takes two nodes"),
    (["rate", "1"], "takes a node and a number"),
    (["delete"], "takes at least one node"),
    (["restore"], "takes the id of a node"),
    (["import"], "takes files"),
    (["list", "--sort", "size"], "needs one of updated, created, oldest, name, nodes, cost"),
    (["list", "--after", "soon"], "is no day"),
    (["roots", "x"], "takes no 'x'"),
    (["stats", "x", "--all"], "give one of ID, --all and --file"),
    (["settings", "--logprobs", "many"], "--logprobs takes off, or 1 to 20"),
    (["settings", "--archive", "--unarchive"], "not both"),
    (["show", "--segmnt"], "did you mean '--segment'?"),
]


def test_bad_input_gets_one_sentence_and_exit_code_2(loom: LoomProgram) -> None:
    loom.grown()
    for words, told in BAD_INPUT:
        done = loom.weft.call("loom", *words)
        assert (done.returncode, done.stdout) == (2, ""), words
        first, *more = done.stderr.splitlines()
        assert told in first, words
        assert more == []
    assert len(loom.data("list")) == 1


def test_what_is_piped_in_and_is_no_text_is_refused(loom: LoomProgram) -> None:
    for data, told in (
        (b"\xff", "not UTF-8"),
        (b"a\0b", "NUL bytes"),
        (b"", "nothing is piped in"),
    ):
        done = loom.weft.call("loom", "new", "-", "-m", loom.model, stdin=data)
        assert done.returncode == 2
        assert told in done.stderr
    assert loom.data("list") == []


def test_each_command_has_help_with_an_example() -> None:
    for verb in LOOM_VERBS:
        shown = verb_help(("loom", verb.name), 100)
        assert "\nExamples:\n  " in shown, verb.name
        assert f"weft loom {verb.name}" in shown.partition("Examples:")[2], verb.name


JSON_COMMANDS = {
    "new": ["x", "-n", "1"],
    "continue": ["--here", "-n", "1"],
    "list": [],
    "roots": [],
    "children": ["/"],
    "active": [],
    "show": [],
    "search": ["loom"],
    "compare": ["/1", "/2"],
    "stats": [],
    "select": ["/"],
    "edit": ["/1", "--text", " other"],
    "bookmark": ["/1"],
    "rate": ["/1", "up"],
    "weave": ["/1", "/2"],
    "delete": ["/2", "--yes"],
    "settings": [],
    "import": [str(ROOT / "tests/loom/files/basemode.json")],
}


def test_the_fields_of_json_are_those_that_are_documented(loom: LoomProgram) -> None:
    page = (ROOT / "docs" / "loom.md").read_text("utf-8").partition("## For scripts")[2]
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    documented = {
        name: set(re.findall(r"`(\w+)`", fields.partition(";")[0]))
        | (set(LoomNode.__struct_fields__) - {"tokens"} if fields.startswith("a node") else set())
        for names, fields in rows
        for name in re.findall(r"`(\w+)`", names)
    }
    lists = {name for names, _ in rows if "…" in names for name in re.findall(r"`(\w+)`", names)}
    assert documented.keys() == {*JSON_COMMANDS, "restore"}
    loom.grown()
    for name, words in JSON_COMMANDS.items():
        if name == "new":
            words = [*words, "-m", loom.model]
        found = loom.data(name, *words)
        assert isinstance(found, list) == (name in lists), name
        shown = found[0] if isinstance(found, list) else found
        assert set(shown) == documented[name], name
        if name == "new":
            loom.said("select", loom.data("list", "Once")[0]["root_id"])


def test_a_tree_of_another_folder_is_found_from_anywhere(loom: LoomProgram) -> None:
    made = loom.grown()
    other = loom.weft.home / "other"
    other.mkdir()
    assert loom.data("active", "-C", str(other))["id"] == made["root"]
    assert "does not exist" in loom.said("list", "-C", "gone", code=2)


def test_the_newest_session_that_is_resumed_is_never_a_tree_of_text(loom: LoomProgram) -> None:
    loom.grown()
    assert loom.weft.call("-p", "-c", "-m", loom.model, "go on").returncode == 2
    assert loom.weft.call("-p", "-m", loom.weft.script("first"), "begin").returncode == 0
    made = loom.grown("Another")
    again = loom.weft.call("-p", "-c", "-m", loom.weft.script("first", "second"), "go on")
    assert (again.returncode, again.stdout) == (0, "second\n")
    assert len(loom.data("children", made["root"])) == 2
