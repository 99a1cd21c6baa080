"""The model catalogue: windows, prices, abilities, and a default for each provider.

The data is `catalogue.json` beside this file, read once, when first asked; config may add to it and
correct it.  A price that is not known for certain is unknown, never guessed: a dated name of a
known model has its price, a new member of a known family only its abilities.  Where a price changes
with the hour, the higher one is listed; where it changes on a known day, both are.  Of a model that
is not listed only those thinking levels are assumed that all models of its vendor take: one too
many has every request refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from time import gmtime, strftime

import msgspec

from weft.clock import SystemClock
from weft.errors import UsageError
from weft.messages import parse_model_name
from weft.providers.base import ModelInfo
from weft.thinking_levels import ThinkingLevel

# What may stand behind a name without making it another model: a date, a release number, `latest`,
# `preview`, or the size in a tag of Ollama. `-mini` is another model.
_STAMP = r"[-@:](\d{8}|\d{4}-\d{2}-\d{2}|\d{3,4}|latest|preview|preview-[\d-]+|[\w.]*\d+b.*)"

PRICES = ("price_input", "price_output", "price_cache_read", "price_cache_write")
"""The fields of `ModelInfo` that a list of prices fills, in its order."""


class CatalogueModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model, as the file has it."""

    window: int | None = None
    output: int | None = None
    price: tuple[float, ...] = ()
    """US dollars for a million tokens: input, output, and where there are such, read from and
    written to the cache.
    """
    later: dict[str, tuple[float, ...]] = {}
    """Prices that hold from a day on, by that day (`2027-01-01`)."""
    long: tuple[float, ...] = ()
    """From how many tokens on a request costs more, and its prices then, in the same order."""
    levels: tuple[ThinkingLevel, ...] = ()
    """The thinking levels that it takes, from the least on.

    `off` only if it can be switched off.
    """
    default: ThinkingLevel | None = None
    """The level that it thinks at when none is requested; None where that is not known."""
    sees: bool = False
    pdf: bool = False
    """It takes PDF documents as they are."""
    tools: bool = True
    patch: bool = False
    """It edits with patches in the V4A format."""

    def price_on(self, day: str) -> tuple[float, ...]:
        """The prices of a day."""
        begun = max((start for start in self.later if start <= day), default="")
        return self.later[begun] if begun else self.price


class CatalogueProvider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One provider, as the file has it."""

    default: str = ""
    family: CatalogueModel = CatalogueModel()
    """What to assume of a model that is not listed."""
    models: msgspec.Raw = msgspec.Raw(b"{}")
    """Name → `CatalogueModel`, still as JSON: a run has the models of one provider, and all of them
    would take three times the room of their text.
    """
    same_as: str = ""
    """Another provider with the same models, or several, with spaces between them."""
    without: tuple[ThinkingLevel, ...] = ()
    """Thinking levels that those models have there, and not here."""
    url: str = ""
    """Where it speaks Chat Completions; empty for those with an adapter of their own."""
    key: str = ""
    """The environment variable that holds its key."""
    title: str = ""
    """What the vendor calls itself, for sentences and lists."""
    keys_at: str = ""
    """Where users get a key."""
    key_begins: tuple[str, ...] = ()
    """How its keys begin, where no other vendor's do; a pasted key is recognised by it."""
    short: dict[str, str] = {}
    """Short names (`sonnet`) and the newest model that each means."""
    is_free: bool = False
    """Runs on the user's own machine: costs nothing."""


class ModelCatalogue:
    """Everything known of models, with the user's own additions on top."""

    def __init__(
        self,
        vendors: Mapping[str, CatalogueProvider],
        more: Mapping[str, Mapping[str, CatalogueModel]] | None = None,
        *,
        day: str = "",
    ) -> None:
        """`more`: provider → model → what is known of it.

        Replaces the file's entry of that name.  `day` is the one whose prices count (`2026-11-15`).
        """
        self.day = day
        self._vendors = vendors
        self._more = more or {}
        self._read: dict[str, dict[str, CatalogueModel]] = {}

    @property
    def providers(self) -> tuple[str, ...]:
        """Every provider that is listed."""
        return tuple(self._vendors)

    def vendor(self, provider: str) -> CatalogueProvider:
        """What is known of a provider; nothing, for one that is not listed."""
        return self._vendors.get(provider, CatalogueProvider())

    def default(self, provider: str) -> str:
        """The model that a provider is used with when none is named.

        Raises:
            UsageError: it has none.
        """
        name = self.vendor(provider).default
        if not name:
            raise UsageError(f"name a model of {provider!r}: there is no default for it")
        return name

    def info(self, provider: str, name: str) -> ModelInfo:
        """What is known of one model."""
        vendor = self.vendor(provider)
        entry, is_itself = self._find(provider, name)
        levels = self._levels(provider, entry, is_itself=is_itself)
        # A relative's price would be a guess, and a guess would look like a bill.
        price, long = (entry.price_on(self.day), entry.long) if is_itself else ((), ())
        if vendor.is_free:
            price, long = (0.0, 0.0, 0.0, 0.0), ()
        known = dict(zip(PRICES, price, strict=False))
        return ModelInfo(
            provider=provider,
            name=name,
            context_window=entry.window or vendor.family.window or 128_000,
            max_output_tokens=entry.output or vendor.family.output or 8_192,
            thinks=bool(levels),
            levels=levels,
            default_level=entry.default if is_itself else None,
            sees_images=entry.sees,
            reads_pdf=entry.pdf,
            calls_tools=entry.tools,
            edits_by_patch=entry.patch,
            long_prompt=int(long[0]) if long else None,
            long_prices=long[1:],
            **known,
        )

    def models(self, provider: str) -> list[ModelInfo]:
        """Every listed model of a provider."""
        names = [*self._more.get(provider, {}), *self._listed(provider)]
        return [self.info(provider, name) for name in dict.fromkeys(names)]

    def resolve(self, name: str) -> ModelInfo:
        """The model that `provider:model`, `provider/model` or just `provider` means.

        Raises:
            UsageError: the provider is not listed and no model is named.
        """
        named = parse_model_name(name)
        return self.info(named.provider, named.model or self.default(named.provider))

    def short(self, provider: str) -> Mapping[str, str]:
        """The short names of a provider's models."""
        sources = map(self.vendor, self._sources(provider))
        return {name: model for each in sources for name, model in each.short.items()}

    def entry(self, provider: str, name: str) -> CatalogueModel:
        """What the file says of a model or of its nearest relative; without a relative's price."""
        found, is_itself = self._find(provider, name)
        return found if is_itself else msgspec.structs.replace(found, price=(), long=())

    def knows(self, provider: str, name: str) -> bool:
        """Whether a model of this name is listed, a dated one of a listed model included."""
        return self._find(provider, name)[1]

    def _listed(self, provider: str) -> Mapping[str, CatalogueModel]:
        if provider not in self._read:
            self._read[provider] = {
                name: entry
                for each in self._sources(provider)
                for name, entry in _models(self.vendor(each).models).items()
            }
        return self._read[provider]

    def _sources(self, provider: str) -> list[str]:
        """The providers whose models a provider has: itself, or those that it names."""
        return self.vendor(provider).same_as.split() or [provider]

    def _levels(
        self, provider: str, entry: CatalogueModel, *, is_itself: bool
    ) -> tuple[ThinkingLevel, ...]:
        """The levels of an entry that hold for the listed model itself, or for a relative of it."""
        # A relative has only the levels that all models of the vendor take: one too many, and every
        # request is refused.
        common = self.vendor(self._sources(provider)[0]).family
        without = self.vendor(provider).without
        return tuple(
            level
            for level in entry.levels
            if level not in without and (is_itself or level in common.levels)
        )

    def _find(self, provider: str, name: str) -> tuple[CatalogueModel, bool]:
        """The entry, and whether it is of this very model; if not, its price cannot be trusted."""
        own = self._more.get(provider, {})
        if name in own:
            return own[name], True
        listed = self._listed(provider)
        if name in listed:
            return listed[name], True
        # The longest: `gpt-5` begins `gpt-5-mini-2025-08-07`, too.
        near = max((known for known in listed if name.startswith(known)), key=len, default="")
        if not near:
            return self.vendor(provider).family, False
        return listed[near], re.fullmatch(_STAMP, name[len(near) :]) is not None


def _models(data: msgspec.Raw) -> dict[str, CatalogueModel]:
    return msgspec.json.decode(data, type=dict[str, CatalogueModel])


@cache
def shipped() -> ModelCatalogue:
    """The catalogue as it comes with the program."""
    text = Path(__file__).with_name("catalogue.json").read_bytes()
    vendors = msgspec.json.decode(text, type=dict[str, CatalogueProvider])
    # The day on which the program starts: a session that lasts longer is shown that day's prices.
    return ModelCatalogue(vendors, day=strftime("%Y-%m-%d", gmtime(SystemClock().now())))
