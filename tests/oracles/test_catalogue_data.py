"""The catalogue beside genai-prices and litellm's file: every difference is listed in a page.

They run where these are installed: `pip install genai-prices litellm`.
"""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest
from scripts.catalogue_differences import (
    LITELLM,
    PAGE,
    against_genai,
    against_litellm,
    entries,
    litellm_data,
)
from scripts.refresh_catalogue import CATALOGUE

pytestmark = pytest.mark.oracle


def catalogue() -> dict[str, dict[str, object]]:
    return json.loads(CATALOGUE.read_text())  # type: ignore[no-any-return]  # the file's shape


def test_every_price_is_that_of_genai_prices_or_the_difference_is_listed() -> None:
    data = pytest.importorskip("genai_prices.data")
    known = PAGE.read_text()
    found = against_genai(catalogue(), data.providers)
    assert [each.row for each in found if each.row not in known] == []


def test_prices_and_abilities_are_those_of_litellm_or_the_difference_is_listed() -> None:
    data = litellm_data()
    if data is None:
        pytest.skip("litellm is not installed")
    known = PAGE.read_text()
    found = against_litellm(catalogue(), data)
    assert [each.row for each in found if each.row not in known] == []


def test_most_of_the_catalogue_is_judged() -> None:
    """A comparison that finds no model to compare with would agree with everything."""
    data = pytest.importorskip("genai_prices.data")
    listed = litellm_data() or {}
    ours = [each for each in entries(catalogue()) if each[0] in LITELLM and each[2].get("price")]
    known = {name.lower() for each in data.providers for name in (m.id for m in each.models)}
    judged = [
        name
        for provider, name, _ in ours
        if f"{LITELLM[provider]}{name}" in listed or name.lower() in known
    ]
    assert len(judged) >= 0.9 * len(ours)


def test_every_current_model_that_anthropics_sdk_names_is_listed() -> None:
    names = pytest.importorskip("anthropic.types.model_param").ModelParam
    known = {word for each in get_args(names) for word in get_args(each)}
    assert known
    # A dated name is another one's snapshot; a preview was never for everyone.
    current = {name for name in known if not re.search(r"-\d{8}$|-preview$", name)}
    assert current - catalogue()["anthropic"]["models"].keys() == set()  # type: ignore[attr-defined]


def test_a_wrong_price_or_ability_is_found() -> None:
    """The fault, planted."""
    data = pytest.importorskip("genai_prices.data")
    wrong = json.loads(CATALOGUE.read_text())
    entry = wrong["anthropic"]["models"]["claude-opus-5-5"]
    entry["price"][1], entry["sees"], entry["levels"] = 99, False, ["off", "low"]
    known = PAGE.read_text()
    found = [*against_genai(wrong, data.providers), *against_litellm(wrong, litellm_data() or {})]
    told = {(each.what, each.source) for each in found if each.row not in known}
    assert ("price, output", "genai-prices") in told
    assert ("price, output", "litellm") in told
    assert ("vision", "litellm") in told
