"""Facts of a related project, as this one has them: paths lead to the same files from here.

A repository's folders may each have a stream of decisions.  A scope that is written in one of them
begins there; seen from another, it begins elsewhere.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TypeVar

import msgspec

from weft.decisions.facts import (
    DecisionAdded,
    DecisionChanged,
    DecisionEvidence,
    DecisionFact,
    FileEvidence,
)
from weft.decisions.scope import is_symbol

_F = TypeVar("_F", DecisionAdded, DecisionChanged)


def related_fact(fact: DecisionFact, there: str, here: str) -> DecisionFact | None:
    """A fact that was written in the folder `there` of a repository, for the folder `here`; None
    for a node that is only about files outside of it.
    """
    if there == here:
        return fact
    match fact:
        case DecisionAdded(node=node):
            scope = _scopes(node.scope, there, here)
            if node.scope and not scope:
                return None
            evidence = _evidence(node.evidence, there, here)
            return _with(fact, node=msgspec.structs.replace(node, scope=scope, evidence=evidence))
        case DecisionChanged(scope=scopes, evidence=evidence):
            new = None if scopes is None else _scopes(scopes, there, here)
            # To have no scope is to be about everything: one that has gone elsewhere stays.
            new = None if scopes and not new else new
            return _with(fact, scope=new, evidence=_evidence(evidence, there, here))
        case _:
            return fact


def _with(fact: _F, **fields: object) -> _F:
    return msgspec.structs.replace(fact, **fields)


def _scopes(scopes: tuple[str, ...], there: str, here: str) -> tuple[str, ...]:
    found = (_scope(each, there, here) for each in scopes)
    return tuple(dict.fromkeys(each for each in found if each is not None))


def _scope(scope: str, there: str, here: str) -> str | None:
    if is_symbol(scope):
        return scope
    parts = [part for part in scope.split("/") if part not in ("", ".")]
    # A bare name is looked for at any depth of its own folder.
    if len(parts) == 1 and there:
        parts = ["**", *parts]
    if there:
        parts = [*there.split("/"), *parts]
    elif len(parts) == 1:
        is_inside = any(_may_be(name, parts[0]) for name in here.split("/"))
        return "**" if is_inside and "{" not in scope else scope
    return _below(parts, here)


def _may_be(name: str, part: str) -> bool:
    """Whether a part of a pattern fits the name of a folder; what `{a,b}` stands for is not looked
    into.
    """
    return "{" in part or fnmatchcase(name, part)


def _below(parts: list[str], here: str) -> str | None:
    """What a pattern from the top of the repository is below a folder; None where it holds nothing
    of it.
    """
    for name in here.split("/") if here else ():
        if not parts:
            return "**"  # a folder above this one: it holds all of it
        if parts[0] == "**":
            break
        if not _may_be(name, parts[0]):
            return None
        parts = parts[1:]
    return "/".join(parts) or "**"


def _evidence(
    evidence: tuple[DecisionEvidence, ...], there: str, here: str
) -> tuple[DecisionEvidence, ...]:
    found: list[DecisionEvidence] = []
    for each in evidence:
        if not isinstance(each, FileEvidence):
            found.append(each)
            continue
        whole = f"{there}/{each.path}" if there else each.path
        if not here:
            found.append(msgspec.structs.replace(each, path=whole))
        elif whole.startswith(f"{here}/"):
            found.append(msgspec.structs.replace(each, path=whole.removeprefix(f"{here}/")))
    return tuple(found)
