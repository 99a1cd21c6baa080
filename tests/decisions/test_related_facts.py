"""Facts of other folders of a repository: their scopes and files, as they are called from here."""

from __future__ import annotations

import pytest

from weft.decisions import DecisionAdded, DecisionChanged, DecisionNode, FileEvidence
from weft.decisions.related_facts import related_fact
from weft.ids import DecisionId


@pytest.mark.parametrize(
    ("scope", "there", "here", "expected"),
    [
        ("src/store/*.py", "", "src", "store/*.py"),
        ("store/a.py", "src", "", "src/store/a.py"),
        ("a.py", "src/store", "src", "store/**/a.py"),
        ("*.py", "", "src", "*.py"),
        ("sr*", "", "src/store", "**"),
        ("src/store", "", "src/store", "**"),
        ("src/", "", "src", "**"),
        ("src/*/a.py", "", "src/store", "a.py"),
        ("src/**/a.py", "", "src/store", "**/a.py"),
        ("**/a.py", "", "src/store", "**/a.py"),
        ("Store.append()", "src", "docs", "Store.append()"),
        ("a.py", "x", "x", "a.py"),
        ("{src,lib}/a.py", "", "src", "a.py"),
    ],
)
def test_a_scope_means_the_same_files_from_another_folder(
    scope: str, there: str, here: str, expected: str
) -> None:
    fact = DecisionAdded(node=node(scope=(scope,)))
    moved = related_fact(fact, there, here)
    assert isinstance(moved, DecisionAdded)
    assert moved.node.scope == (expected,)


@pytest.mark.parametrize(
    ("scope", "there", "here"),
    [("docs/a.md", "", "src"), ("a.md", "docs", "src"), ("lib/**", "", "src/lib")],
)
def test_what_is_only_about_other_folders_is_left_to_them(
    scope: str, there: str, here: str
) -> None:
    assert related_fact(DecisionAdded(node=node(scope=(scope,))), there, here) is None
    both = related_fact(DecisionAdded(node=node(scope=(scope, "Store.append()"))), there, here)
    assert isinstance(both, DecisionAdded)
    assert both.node.scope == ("Store.append()",)
    changed = DecisionChanged(id=DecisionId("x"), scope=(scope,), title="New")
    moved = related_fact(changed, there, here)
    assert isinstance(moved, DecisionChanged)
    assert (moved.scope, moved.title) == (None, "New")


def test_files_that_are_evidence_are_those_below_the_folder() -> None:
    files = tuple(FileEvidence(path=path) for path in ("src/a.py", "docs/b.md"))
    moved = related_fact(DecisionAdded(node=node(evidence=files)), "", "src")
    assert isinstance(moved, DecisionAdded)
    assert moved.node.evidence == (FileEvidence(path="a.py"),)
    assert moved.node.scope == ()
    back = related_fact(DecisionAdded(node=node(evidence=files[:1])), "x", "")
    assert isinstance(back, DecisionAdded)
    assert back.node.evidence == (FileEvidence(path="x/src/a.py"),)


def node(scope: tuple[str, ...] = (), evidence: tuple[FileEvidence, ...] = ()) -> DecisionNode:
    return DecisionNode(
        id=DecisionId("abcdefgh"), kind="decision", title="T", scope=scope, evidence=evidence
    )
