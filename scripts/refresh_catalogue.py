"""Update of the catalogue's prices and windows from the data of the package genai-prices.

    pip install -U genai-prices
    python -m scripts.refresh_catalogue            # says what would change
    python -m scripts.refresh_catalogue --write    # changes src/weft/providers/catalogue.json

Only models that the catalogue lists are touched, and of them only `price`, `later`, `long` and an
unknown `window`.  Output limits, abilities and defaults are not in that data: they are read on the
vendors' own pages and kept by hand, and so are new models, which the program names.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

CATALOGUE = Path(__file__).parents[1] / "src" / "weft" / "providers" / "catalogue.json"
GENAI = {"xai": "x-ai", "moonshot": "moonshotai", "bedrock": "aws"}
"""Providers that the data calls by another name than we do."""
_ENDS = ("", "-preview", "-latest", "-v1:0")
_FIELDS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")


def refreshed(
    catalogue: Json, providers: Iterable[Any], today: date | None = None
) -> tuple[Json, list[str]]:
    """The catalogue with the data's prices, and a line for each thing to know."""
    today = today or date.today()
    known = {each.id: {model.id.lower(): model for model in each.models} for each in providers}
    said: list[str] = []
    out: Json = json.loads(json.dumps(catalogue))
    for name, vendor in out.items():
        theirs = known.get(GENAI.get(name, name), {})
        for model, entry in vendor.get("models", {}).items():
            names = genai_names(name, model)
            found = next((theirs[each] for each in names if each in theirs), None)
            if found is not None:
                said += [f"{name}:{model}: {line}" for line in _update(entry, found, today)]
            elif entry.get("price"):
                said.append(f"{name}:{model}: not in the data; its price was not checked")
        ours = {each.lower() for each in vendor.get("models", {})}
        new = [theirs[m].id for m in theirs if m not in ours and "models" in vendor]
        if new:
            said.append(f"{name}: not in the catalogue: {', '.join(sorted(new))}")
    return out, said


def genai_names(provider: str, name: str) -> list[str]:
    """The names under which the data may have a model of ours."""
    name = name.rpartition("/")[2] if provider == "fireworks" else name
    if provider == "bedrock":
        place, _, rest = name.partition(".")
        name = f"{'global' if place == 'global' else 'regional'}.{rest}"
    return [f"{name}{end}".lower() for end in _ENDS]


def _update(entry: Json, model: Any, today: date) -> list[str]:
    """Change an entry; a line for each field that changed."""
    prices, later = schedule(model.prices, today)
    found: Json = {}
    if price := listed(prices):
        found["price"] = price
        found["long"] = _long([getattr(prices, field, None) for field in _FIELDS])
        if later:
            found["later"] = {day: listed(each) for day, each in later.items()}
    if not entry.get("window") and getattr(model, "context_window", None):
        found["window"] = model.context_window
    changed = []
    for key, value in found.items():
        if value != entry.get(key, []):
            changed.append(f"{key} {entry.get(key)} -> {value}")
            entry[key] = value
    return changed


def schedule(prices: Any, today: date) -> tuple[Any, dict[str, Any]]:
    """The prices of today, and those of later days by their first day."""
    if not isinstance(prices, list):
        return prices, {}
    now, later = prices[0].prices, {}
    for each in prices:
        start = getattr(each.constraint, "start_date", None)
        if start is not None and start > today:
            later[f"{start:%Y-%m-%d}"] = each.prices
        # Of prices that change with the hour the higher one counts: a budget must hold at any hour.
        elif not hasattr(each.constraint, "start_time") or _is_higher(each.prices, now):
            now = each.prices
    return now, later


def _is_higher(one: Any, other: Any) -> bool:
    return bool(_base(one.input_mtok) > _base(other.input_mtok))


def listed(prices: Any) -> list[float]:
    """Prices as the catalogue lists them."""
    return _prices([_base(getattr(prices, field, None)) for field in _FIELDS])


def _long(prices: list[Any]) -> list[float]:
    """Where the first tier of long prompts begins, and its prices; nothing when there is none."""
    tiers = [getattr(price, "tiers", None) or [] for price in prices]
    if not tiers[0]:
        return []
    first = [
        tier[0].price if tier else _base(price) for tier, price in zip(tiers, prices, strict=True)
    ]
    return [int(tiers[0][0].start), *_prices(first)]


def _base(price: Any) -> Any:
    return getattr(price, "base", price)


def _prices(prices: list[Any]) -> list[float]:
    """As numbers, as far as they are known."""
    found: list[float] = []
    for price in prices:
        if price is None:
            break
        found.append(float(price))
    return [int(price) if price == int(price) else price for price in found]


def written(catalogue: Json) -> str:
    """The catalogue as the file has it: a line for each model."""
    vendors = []
    for name, vendor in catalogue.items():
        models = vendor.get("models")
        rest = {key: value for key, value in vendor.items() if key != "models"}
        head = json.dumps(rest)[:-1]
        if models is None:
            vendors.append(f"  {json.dumps(name)}: {head}}}")
            continue
        lines = ",\n".join(f"    {json.dumps(m)}: {json.dumps(e)}" for m, e in models.items())
        vendors.append(f'  {json.dumps(name)}: {head}, "models": {{\n{lines}\n  }}}}')
    return "{\n" + ",\n".join(vendors) + "\n}\n"


def main() -> None:
    """Refresh the file, or say what would change."""
    # Installed only to refresh.
    from genai_prices.data import providers  # type: ignore[import-not-found, unused-ignore]

    catalogue = json.loads(CATALOGUE.read_text())
    found, said = refreshed(catalogue, providers)
    sys.stdout.writelines(f"{line}\n" for line in said)
    if "--write" in sys.argv[1:]:
        CATALOGUE.write_text(written(found))


if __name__ == "__main__":
    main()
