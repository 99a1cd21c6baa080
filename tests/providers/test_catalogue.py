"""What is known of models."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from scripts.refresh_catalogue import CATALOGUE, refreshed, written

from weft.errors import UsageError
from weft.messages import Usage
from weft.providers.catalogue import CatalogueModel, CatalogueProvider, ModelCatalogue, shipped
from weft.providers.vendors import ADAPTERS


def test_every_provider_has_a_default_that_can_be_used() -> None:
    catalogue = shipped()
    for provider in (*ADAPTERS, "local"):
        info = catalogue.resolve(provider)
        assert info.context_window >= 4_096
        assert 0 < info.max_output_tokens < info.context_window
        assert info.name == catalogue.default(provider)


def test_the_defaults_are_the_promised_ones() -> None:
    catalogue = shipped()
    assert catalogue.default("anthropic") == "claude-sonnet-5-5"
    assert catalogue.default("openai") == "gpt-6.1-sol"
    assert catalogue.default("google") == "gemini-3.8-flash"


def test_a_default_that_costs_money_has_a_price() -> None:
    catalogue = shipped()
    for provider in catalogue.providers:
        assert catalogue.resolve(provider).cost(Usage(input_tokens=1)) is not None


def test_a_long_request_costs_its_own_price() -> None:
    info = shipped().info("openai", "gpt-6.1-sol")
    short = Usage(input_tokens=100_000, cache_read_tokens=172_000, output_tokens=10)
    assert info.cost(short) == pytest.approx((100_000 * 2 + 172_000 * 0.1 + 10 * 10) / 1e6)
    longer = Usage(input_tokens=100_001, cache_read_tokens=172_000, output_tokens=10)
    assert info.cost(longer) == pytest.approx((100_001 * 4 + 172_000 * 0.2 + 10 * 15) / 1e6)
    own = CatalogueModel(price=(1.0, 2.0), long=(5, 3.0, 4.0))
    asked = ModelCatalogue({}, {"acme": {"a": own}}).info("acme", "a")
    assert asked.cost(Usage(input_tokens=3, cache_read_tokens=3)) == pytest.approx(18 / 1e6)


def test_a_dated_name_has_the_price_and_an_unknown_relative_has_none() -> None:
    catalogue = shipped()
    dated = catalogue.info("anthropic", "claude-sonnet-4-5-20250929")
    assert (dated.price_input, dated.price_output) == (3, 15)
    assert (dated.price_cache_read, dated.price_cache_write) == (0.3, 3.75)
    relative = catalogue.info("openai", "gpt-5-superduper")
    assert relative.price_input is None
    assert relative.thinks
    assert relative.cost(Usage(input_tokens=1)) is None


def test_the_longest_known_name_wins() -> None:
    info = shipped().info("openai", "gpt-5-mini-2025-08-07")
    assert info.price_input == 0.25


def test_what_runs_at_home_costs_nothing() -> None:
    for name in ("ollama:whatever", "local:/x.gguf", "ollama:qwen2.5-coder:7b"):
        assert shipped().resolve(name).cost(Usage(input_tokens=5, output_tokens=5)) == 0.0


def test_config_adds_and_corrects() -> None:
    own = CatalogueModel(window=1_000, output=100, price=(1.0, 2.0))
    catalogue = ModelCatalogue(
        {
            "acme": CatalogueProvider(
                default="a", models=listed({"a": CatalogueModel(window=5_000)})
            )
        },
        {"acme": {"a": own, "b": own}},
    )
    assert catalogue.info("acme", "a").context_window == 1_000
    assert [info.name for info in catalogue.models("acme")] == ["a", "b"]
    assert catalogue.info("acme", "b").price_cache_read is None


def test_an_unknown_provider_has_no_default_but_can_be_used() -> None:
    with pytest.raises(UsageError, match="name a model of 'nobody'"):
        shipped().resolve("nobody")
    assert shipped().resolve("nobody:x").price_input is None


def test_chat_completions_knows_the_models_of_openai() -> None:
    assert shipped().info("openai-chat", "gpt-4.1").context_window == 1_000_000


# --- refreshing ------------------------------------------------------------------------


class Tiers(msgspec.Struct):
    base: float
    tiers: list[Any]


class Tier(msgspec.Struct):
    start: int
    price: float


class Prices(msgspec.Struct):
    input_mtok: Any = None
    output_mtok: Any = None
    cache_read_mtok: Any = None
    cache_write_mtok: Any = None


class Listed(msgspec.Struct):
    id: str
    prices: Any
    context_window: int | None = None


class Provider(msgspec.Struct):
    id: str
    models: list[Listed]


def test_refreshing_changes_prices_and_nothing_else() -> None:
    catalogue: dict[str, Any] = {
        "acme": {
            "default": "a",
            "models": {
                "a": {"window": 9, "output": 3, "price": [1, 2], "thinks": True},
                "b": {"price": [1, 1]},
            },
        }
    }
    listed = Prices(
        input_mtok=Tiers(4.0, [Tier(200, 8.0)]), output_mtok=Decimal("5.5"), cache_read_mtok=0.5
    )
    data = [Provider("acme", [Listed("a-preview", listed, 77), Listed("new", Prices())])]
    found, said = refreshed(catalogue, data)
    assert found["acme"]["models"]["a"] == {
        "window": 9,
        "output": 3,
        "price": [4, 5.5, 0.5],
        "thinks": True,
        "long": [200, 8, 5.5, 0.5],
    }
    assert found["acme"]["models"]["b"] == {"price": [1, 1]}
    assert any("acme:b: not in the data" in line for line in said)
    assert any("not in the catalogue: a-preview, new" in line for line in said)


class Constraint(msgspec.Struct):
    start_date: Any


class Dated(msgspec.Struct):
    prices: Prices
    constraint: Any = None


def test_refreshing_keeps_the_price_of_today_and_those_of_later_days() -> None:
    catalogue: dict[str, Any] = {"acme": {"models": {"a": {"price": [9, 9]}}}}
    prices = [
        Dated(Prices(input_mtok=1.0, output_mtok=2.0)),
        Dated(Prices(input_mtok=3.0, output_mtok=4.0), Constraint(date(2026, 6, 1))),
        Dated(Prices(input_mtok=5.0, output_mtok=6.0), Constraint(date(2027, 1, 1))),
    ]
    data = [Provider("acme", [Listed("a", prices)])]
    found, _ = refreshed(catalogue, data, date(2026, 11, 15))
    assert found["acme"]["models"]["a"]["price"] == [3, 4]
    assert found["acme"]["models"]["a"]["later"] == {"2027-01-01": [5, 6]}


def test_a_price_changes_on_its_day() -> None:
    own = CatalogueModel(price=(1.0, 2.0), later={"2027-01-01": (3.0, 4.0)})
    vendors = {"acme": CatalogueProvider(models=listed({"a": own}))}
    before = ModelCatalogue(vendors, day="2026-12-31").info("acme", "a")
    assert (before.price_input, before.price_output) == (1, 2)
    after = ModelCatalogue(vendors, day="2027-01-01").info("acme", "a")
    assert (after.price_input, after.price_output) == (3, 4)


def test_the_file_is_written_as_refreshing_writes_it() -> None:
    assert written(json.loads(CATALOGUE.read_text())) == CATALOGUE.read_text()


def listed(models: dict[str, CatalogueModel]) -> msgspec.Raw:
    """Models as the file has them."""
    return msgspec.Raw(msgspec.json.encode(models))
