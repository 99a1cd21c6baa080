"""The list of models that a Chat Completions server gives: `GET /models`.

Only `id` is common to all of them; some also say how large the window is, and what a model costs.
"""

from __future__ import annotations

from typing import Any

import msgspec

from weft.providers.catalogue import CatalogueModel


def listed_models(body: bytes) -> dict[str, CatalogueModel]:
    """The models in a server's answer, with what it says of them; nothing where it is no list."""
    try:
        value: Any = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return {}
    # Most wrap the list in `data`; Together sends it bare.
    rows = value.get("data") if isinstance(value, dict) else value
    found: dict[str, CatalogueModel] = {}
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(row.get("id"), str) and row["id"]:
            found[row["id"]] = _entry(row)
    return found


def _entry(row: dict[str, Any]) -> CatalogueModel:
    top = row.get("top_provider")
    top = top if isinstance(top, dict) else {}
    shapes = row.get("architecture")
    inputs = shapes.get("input_modalities") if isinstance(shapes, dict) else None
    return CatalogueModel(
        # OpenRouter and Together; Groq; vLLM; LM Studio.
        window=_first_count(
            row, "context_length", "context_window", "max_model_len", "max_context_length"
        ),
        output=_first_count(top, "max_completion_tokens")
        or _first_count(row, "max_completion_tokens", "max_output_length"),
        price=_price(row.get("pricing")),
        sees=isinstance(inputs, list) and "image" in inputs,
    )


def _first_count(row: dict[str, Any], *names: str) -> int | None:
    counts = (row.get(name) for name in names)
    return next((each for each in counts if type(each) is int and each > 0), None)


def _price(pricing: Any) -> tuple[float, ...]:
    """OpenRouter's prices, which are US dollars for one token, as text; -1 where they vary."""
    if not isinstance(pricing, dict):
        return ()
    names = ("prompt", "completion", "input_cache_read", "input_cache_write")
    prices: list[float] = []
    for name in names:
        try:
            price = float(pricing[name])
        except (KeyError, TypeError, ValueError):
            break
        if not 0 <= price < 1:
            return ()
        prices.append(round(price * 1_000_000, 6))
    return tuple(prices) if len(prices) > 1 else ()
