"""Comparison of the catalogue with two other collections of prices and abilities.

    pip install -U genai-prices litellm
    python -m scripts.catalogue_differences            # says what differs
    python -m scripts.catalogue_differences --write    # writes docs/catalogue.md

Of litellm only its data file is read: importing it takes ten seconds.  Windows and output limits
are compared where the other one allows less than we do, which would break a request; it counts a
window without the output, and output limits beyond what an answer can use.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from scripts.refresh_catalogue import CATALOGUE, GENAI, genai_names, schedule

Json: TypeAlias = dict[str, Any]

PAGE = CATALOGUE.parents[3] / "docs" / "catalogue.md"
LITELLM = {
    "anthropic": "",
    "openai": "",
    "bedrock": "",
    "google": "gemini/",
    "xai": "xai/",
    "deepseek": "deepseek/",
    "groq": "groq/",
    "mistral": "mistral/",
    "zai": "zai/",
    "openrouter": "openrouter/",
    "together": "together_ai/",
    "cerebras": "cerebras/",
    "fireworks": "fireworks_ai/",
    "moonshot": "moonshot/",
    "minimax": "minimax/",
}
"""What stands before our names in litellm's file."""
FIELDS = ("input", "output", "cache read", "cache write")
_COSTS = (
    *("input_cost_per_token", "output_cost_per_token"),
    *("cache_read_input_token_cost", "cache_creation_input_token_cost"),
)
_MTOK = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")
LEVELS = {"off": "none", "minimal": "minimal", "low": "low", "xhigh": "xhigh", "max": "max"}
"""Our levels by the names of litellm's flags."""


class CatalogueDifference(NamedTuple):
    """One thing on which two collections do not agree."""

    model: str
    what: str
    ours: str
    theirs: str
    source: str

    @property
    def row(self) -> str:
        """A row of the page's table."""
        return f"| `{self.model}` | {self.what} | {self.ours} | {self.theirs} | {self.source} |"


def entries(catalogue: Json) -> Iterator[tuple[str, str, Json]]:
    """Every listed model: provider, name, entry."""
    for provider, vendor in catalogue.items():
        for name, entry in vendor.get("models", {}).items():
            yield provider, name, entry


def against_genai(catalogue: Json, providers: Iterable[Any]) -> list[CatalogueDifference]:
    """What genai-prices says otherwise."""
    known = {each.id: {model.id.lower(): model for model in each.models} for each in providers}
    found: list[CatalogueDifference] = []
    for provider, name, entry in entries(catalogue):
        listed = known.get(GENAI.get(provider, provider), {})
        model = next((listed[each] for each in genai_names(provider, name) if each in listed), None)
        if model is None or not entry.get("price"):
            continue
        prices, _ = schedule(model.prices, date.today())
        theirs = [_number(getattr(prices, field, None)) for field in _MTOK]
        found += _prices(f"{provider}:{name}", entry, theirs, "genai-prices")
    return found


def against_litellm(catalogue: Json, data: Json) -> list[CatalogueDifference]:
    """What litellm's file says otherwise."""
    found: list[CatalogueDifference] = []
    for provider, name, entry in entries(catalogue):
        theirs = data.get(f"{LITELLM.get(provider, '?')}{name}")
        if theirs is None:
            continue
        model = f"{provider}:{name}"
        costs = [theirs[each] * 1e6 if theirs.get(each) else None for each in _COSTS]
        found += _prices(model, entry, costs, "litellm")
        found += _abilities(model, entry, theirs)
    return found


def _prices(
    model: str, entry: Json, theirs: list[float | None], source: str
) -> Iterator[CatalogueDifference]:
    today = f"{date.today():%Y-%m-%d}"
    begun = max((day for day in entry.get("later", {}) if day <= today), default="")
    price = entry["later"][begun] if begun else entry.get("price", ())
    for field, ours, other in zip(FIELDS, price, theirs, strict=False):
        if other is not None and abs(ours - other) > 1e-6:
            yield CatalogueDifference(model, f"price, {field}", f"{ours:g}", f"{other:g}", source)


def _abilities(model: str, entry: Json, theirs: Json) -> Iterator[CatalogueDifference]:
    levels = entry.get("levels", [])
    claims = {
        "vision": (entry.get("sees", False), theirs.get("supports_vision", False)),
        "PDF": (entry.get("pdf", False), theirs.get("supports_pdf_input", False)),
        "thinking can be set": (bool(levels), theirs.get("supports_reasoning", False)),
    }
    for ours, name in LEVELS.items():
        flag = f"supports_{name}_reasoning_effort"
        if levels and flag in theirs:
            claims[f"level {ours}"] = (ours in levels, theirs[flag])
    for what, (mine, other) in claims.items():
        if bool(mine) != bool(other):
            yield CatalogueDifference(model, what, _word(mine), _word(other), "litellm")
    output = theirs.get("max_output_tokens") or 0
    window = theirs.get("max_input_tokens") or 0
    limits = {"window": (window and window + output), "output": output}
    for what, most in limits.items():
        limit = entry.get(what)
        if limit and most and limit > most:
            yield CatalogueDifference(model, what, f"{limit:,}", f"{most:,}", "litellm")


def _word(value: Any) -> str:
    return "yes" if value else "no"


def _number(price: Any) -> float | None:
    base = getattr(price, "base", price)
    return None if base is None else float(base)


def litellm_data() -> Json | None:
    """The file that comes with litellm, without importing it; None where it is not installed."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations)))
    data: Json = json.loads((folder / "model_prices_and_context_window_backup.json").read_text())
    return data


def differences(catalogue: Json) -> list[CatalogueDifference]:
    """All that both collections say otherwise."""
    # Installed only to compare.
    from genai_prices.data import providers  # type: ignore[import-not-found, unused-ignore]

    return [
        *against_genai(catalogue, providers),
        *against_litellm(catalogue, litellm_data() or {}),
    ]


HEAD = """# The catalogue beside two others

`src/weft/providers/catalogue.json` says what a model costs and can do. It is compared with
[genai-prices](https://pypi.org/project/genai-prices/) and the data file of
[litellm](https://pypi.org/project/litellm/); this page lists everything on which they do not agree
(`python -m scripts.catalogue_differences --write`), and a test in `tests/oracles/` fails on a
difference that is not listed. Prices are US dollars for a million tokens.

Why they differ:

- **Prices that change with the hour** (DeepSeek): the higher one is listed, so that a budget is
  never overdrawn.
- **Mistral Large 4**: the price of today; litellm has the list price of October.
- **`grok-code-fast-1`** is served by a newer model at another price, says litellm; genai-prices
  still has the old one, as we do.
- **"thinking can be set"** means that we know words for it that the server takes. Many models of
  compatible servers think without being asked, and their servers differ in how it is set.
- **Levels and limits** of OpenAI and Anthropic are from the vendors' own pages.

| model | what | here | there | source |
|---|---|---|---|---|
"""


def page(found: Iterable[CatalogueDifference]) -> str:
    """The page that lists them."""
    return HEAD + "".join(f"{each.row}\n" for each in found)


def main() -> None:
    """Print the differences, or write the page."""
    found = differences(json.loads(CATALOGUE.read_text()))
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(found))
        return
    sys.stdout.writelines(f"{each.row}\n" for each in found)


if __name__ == "__main__":
    main()
