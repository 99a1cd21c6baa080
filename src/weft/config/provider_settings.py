"""Providers and models as the settings describe them: `[providers.NAME]` and
`[models."provider:name"]`.

Each table is read into a typed value; a mistake in one is a single sentence that names the table,
the field and the nearest field that there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from weft.errors import UsageError, did_you_mean
from weft.messages import parse_model_name
from weft.providers.catalogue import CatalogueModel, ModelCatalogue
from weft.providers.vendors import PROTOCOLS
from weft.thinking_levels import THINKING_LEVELS, ThinkingLevel
from weft.transport import HttpTimeouts

_Seconds = Annotated[float, msgspec.Meta(gt=0)]
_Price = Annotated[float, msgspec.Meta(ge=0)]
_Tokens = Annotated[int, msgspec.Meta(gt=0)]

_Table = TypeVar("_Table", bound=msgspec.Struct)


class ProviderSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[providers.NAME]`."""

    protocol: str = ""
    """What is spoken there: anthropic, responses, chat, google or ollama, or a cloud: azure,
    bedrock or vertex.
    """
    base_url: str = ""
    key: str = ""
    key_env: str = ""
    """The environment variable that holds the key."""
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    """Added to the address of every request."""
    default_model: str = ""
    region: str = ""
    """Where bedrock and vertex run a model."""
    project: str = ""
    """The project of Google Cloud that vertex bills."""
    connect_timeout: _Seconds | None = None
    """Seconds to wait for the connection; None for the usual."""
    first_byte_timeout: _Seconds | None = None
    """Seconds to wait for the beginning of an answer; None for the usual."""
    idle_timeout: _Seconds | None = None
    """Seconds to wait for more of an answer that has begun; None for the usual."""

    @property
    def timeouts(self) -> HttpTimeouts:
        """Those that are set, and the usual for the others."""
        usual = HttpTimeouts()
        return HttpTimeouts(
            connect=self.connect_timeout or usual.connect,
            first_byte=self.first_byte_timeout or usual.first_byte,
            idle=self.idle_timeout or usual.idle,
        )


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[models."provider:name"]`; what is left out stays as the catalogue has it."""

    window: _Tokens | None = None
    output: _Tokens | None = None
    price_input: _Price | None = None
    price_output: _Price | None = None
    price_cache_read: _Price | None = None
    price_cache_write: _Price | None = None
    vision: bool | None = None
    pdf: bool | None = None
    tools: bool | None = None
    patch: bool | None = None
    """It edits with `apply_patch` instead of exact replacements."""
    levels: tuple[ThinkingLevel, ...] | None = None
    """The thinking levels that it takes; an empty list for a model that does not think."""
    default_level: ThinkingLevel | None = None

    def over(self, known: CatalogueModel) -> CatalogueModel:
        """What is known of the model, corrected by this."""
        given = {
            "window": self.window,
            "output": self.output,
            "price": self._price(known.price),
            "levels": self.levels,
            "default": self.default_level,
            "sees": self.vision,
            "pdf": self.pdf,
            "tools": self.tools,
            "patch": self.patch,
        }
        fields: dict[str, Any] = {k: value for k, value in given.items() if value is not None}
        if self.price_input is not None or self.price_output is not None:
            # Both belong to the prices that were replaced.
            fields |= {"long": (), "later": {}}
        return msgspec.structs.replace(known, **fields)

    def _price(self, known: tuple[float, ...]) -> tuple[float, ...] | None:
        given = (
            self.price_input,
            self.price_output,
            self.price_cache_read,
            self.price_cache_write,
        )
        if not any(price is not None for price in given):
            return None
        base: list[float | None] = [*known, *[None] * (4 - len(known))]
        prices: list[float] = []
        # Up to the first that neither names: behind it, each would stand for another.
        for own, listed in zip(given, base, strict=True):
            price = listed if own is None else own
            if price is None:
                break
            prices.append(price)
        return tuple(prices) if len(prices) > 1 else ()


def provider_settings(
    value: Mapping[str, Any], source: str = "the settings"
) -> dict[str, ProviderSettings]:
    """The `providers` setting, typed; `source` is where it stands.

    Raises:
        UsageError: a provider has a field that there is not, or a value that does not fit.
    """
    found: dict[str, ProviderSettings] = {}
    for name, each in value.items():
        where = f"{source}: [providers.{name}]"
        table = _typed(each, ProviderSettings, where)
        if table.protocol and table.protocol not in PROTOCOLS:
            hint = did_you_mean(table.protocol, PROTOCOLS)
            raise UsageError(
                f"{where} has no protocol {table.protocol!r}{hint} (there are: "
                f"{', '.join(PROTOCOLS)})"
            )
        if table.base_url and "://" not in table.base_url:
            raise UsageError(
                f"{where}: base_url {table.base_url!r} should look like https://host/path"
            )
        found[name] = table
    return found


def model_settings(
    value: Mapping[str, Any], catalogue: ModelCatalogue, source: str = "the settings"
) -> dict[str, dict[str, CatalogueModel]]:
    """The `models` setting over what the catalogue knows: provider → model → entry.

    Raises:
        UsageError: a name is no `provider:model`, a field is not known, or a value does not fit.
    """
    found: dict[str, dict[str, CatalogueModel]] = {}
    for name, each in value.items():
        where = f'{source}: [models."{name}"]'
        named = parse_model_name(name)
        if not named.model:
            raise UsageError(f'{where} should name provider:model, as in [models."{name}:NAME"]')
        table = _typed(each, ModelSettings, where)
        entry = catalogue.entry(named.provider, named.model)
        found.setdefault(named.provider, {})[named.model] = table.over(entry)
    return found


def _typed(value: Any, kind: type[_Table], where: str) -> _Table:
    if isinstance(value, Mapping):
        for name in value:
            if name not in kind.__struct_fields__:
                hint = did_you_mean(name, kind.__struct_fields__)
                known = ", ".join(kind.__struct_fields__)
                raise UsageError(f"{where} has no field {name!r}{hint or f' (there are: {known})'}")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {_words(str(error))}") from error


def _words(error: str) -> str:
    """msgspec's message, with the field before the complaint and the levels that there are."""
    said, _, place = error.replace(" | null", "").partition(" - at `$.")
    text = f"{place.rstrip('`')}: {said}" if place else said
    return f"{text} (there are: {', '.join(THINKING_LEVELS)})" if "enum" in text else text
