"""Thinking levels: one order, and the nearest level that a model has."""

from __future__ import annotations

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.source_code import ROOT, SRC, files_with, nodes
from weft.thinking_levels import THINKING_LEVELS, ThinkingLevel, nearest_level, thinking_level

levels = st.sampled_from(THINKING_LEVELS)
available = st.lists(st.sampled_from(THINKING_LEVELS[1:]), unique=True, max_size=7).map(
    lambda found: tuple(sorted(found, key=THINKING_LEVELS.index))
)
order = THINKING_LEVELS.index
NAMED: set[object] = {"minimal", "low", "medium", "high", "xhigh", "max"}


def test_the_levels_go_from_the_vendors_own_over_the_least_to_the_most() -> None:
    assert (
        *("default", "off", "minimal", "low", "medium", "high", "xhigh", "max"),
    ) == THINKING_LEVELS


@pytest.mark.parametrize("word", ["", "High", "none", "default ", None, 3, ["high"]])
def test_another_word_is_no_level(word: object) -> None:
    assert thinking_level(word) is None


@given(wanted=levels, has=available)
def test_a_level_is_one_that_the_model_has_or_the_vendors_own(
    wanted: ThinkingLevel, has: tuple[ThinkingLevel, ...]
) -> None:
    used = nearest_level(wanted, has)
    assert used in has if has and wanted != "default" else used == "default"


@given(wanted=levels, has=available)
def test_a_level_that_the_model_has_is_used_as_it_is(
    wanted: ThinkingLevel, has: tuple[ThinkingLevel, ...]
) -> None:
    used = nearest_level(wanted, has)
    assert wanted not in has or used == wanted
    assert nearest_level(used, has) == used


@given(one=levels, two=levels, has=available)
def test_asking_for_more_never_gives_less(
    one: ThinkingLevel, two: ThinkingLevel, has: tuple[ThinkingLevel, ...]
) -> None:
    less, more = sorted((one, two), key=order)
    assert order(nearest_level(less, has)) <= order(nearest_level(more, has))


@given(wanted=levels, has=available)
def test_no_level_would_have_been_nearer(
    wanted: ThinkingLevel, has: tuple[ThinkingLevel, ...]
) -> None:
    used = nearest_level(wanted, has)
    others = [level for level in has if level != "off" or wanted == "off"]
    if not others or wanted == "default":
        return
    away = [abs(order(level) - order(wanted)) for level in others]
    assert abs(order(used) - order(wanted)) == min(away)


@pytest.mark.parametrize(
    ("wanted", "has", "used"),
    [
        ("off", ("low", "medium", "high"), "low"),
        ("minimal", ("low", "medium", "high"), "low"),
        ("minimal", ("off", "low", "high"), "low"),
        ("xhigh", ("low", "medium", "high", "max"), "high"),
        ("medium", ("low", "high"), "low"),
        ("max", ("high",), "high"),
        ("low", ("off",), "off"),
        ("high", (), "default"),
        ("default", ("high",), "default"),
    ],
)
def test_the_nearest_level_thinks_if_asked_to_and_is_the_cheaper_of_two(
    wanted: ThinkingLevel, has: tuple[ThinkingLevel, ...], used: ThinkingLevel
) -> None:
    assert nearest_level(wanted, has) == used


def test_there_is_no_second_list_of_the_levels() -> None:
    """A vendor's encoder may map levels to budgets of its own; a plain list of them is a copy."""
    lists = {
        str(file.relative_to(SRC))
        for file in files_with(*(f'"{name}"' for name in NAMED))
        for node in nodes(file)
        if isinstance(node, ast.Tuple | ast.List | ast.Set)
        and len({each.value for each in node.elts if isinstance(each, ast.Constant)} & NAMED) > 2
    }
    assert lists == {"thinking_levels.py"}


def test_the_web_page_offers_the_same_levels() -> None:
    """It cannot import them, and offers them where a model of no known levels is chosen."""
    source = (ROOT / "web" / "src" / "screens" / "composer.tsx").read_text("utf-8")
    (listed,) = re.findall(r"^const LEVELS = \[(.*)\];$", source, re.MULTILINE)
    assert tuple(listed.replace('"', "").split(", ")) == THINKING_LEVELS
