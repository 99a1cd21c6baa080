"""Model registry, by name: `provider:model[:effort]` (or `provider/model…`) to something that
streams.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import anyio

from weft.config.providers import ProviderTable, default_providers
from weft.config.setting_keys import MODEL_KEYS
from weft.errors import UsageError, WeftError, did_you_mean
from weft.messages import ModelName, Usage, parse_model_name
from weft.providers import Model, ModelInfo, Provider
from weft.providers.catalogue import shipped
from weft.providers.vendors import check_base_url
from weft.thinking_levels import THINKING_LEVELS, KnownLevels

if TYPE_CHECKING:
    from weft.config.key_check import KeyCheck

FALLBACK = "anthropic:claude-sonnet-5-5"
OWN_CREDENTIALS = ("azure", "bedrock", "vertex")
"""Providers that say themselves what they lack: an address, or credentials from files and servers
of their cloud.
"""

WEAVER = ("weft", "weave")
"""Provider and kind of the models that put files of branches together: each has the calls of one
turn, and lives in the process that began it.
"""
HUNK_EDITOR = ("weft", "hunk")
"""The same of the models that put back or take one hunk of a file."""
_CUT_OFF = {
    WEAVER: "put files of branches together and was cut off; call weave_files again under the same "
    "input_id, or send another message",
    HUNK_EDITOR: "changed one hunk of a file and was cut off; look at the changes and send another "
    "message",
}


class ModelRegistry:
    """The providers of one application, and the model objects that programs handed in."""

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self._providers = providers
        self._given: dict[str, Model] = {}

    def register(self, model: Model) -> str:
        """Make a model object known in this process; returns the name that sessions store."""
        name = f"{model.info.provider}:{model.info.name}"
        self._given[name] = model
        return name

    def resolve(self, name: str) -> Model:
        """The model called `name`.

        Raises:
            UsageError: the name has no provider, or there is no such provider.
        """
        if name in self._given:
            return self._given[name]
        self.check(name)
        named = self.named(name)
        return self._providers[named.provider].model(named.model)

    def check(self, name: str) -> None:
        """Refuse a name that could be no model's here; whether the vendor has it, only the vendor
        knows.

        Raises:
            UsageError: the name has no provider, or there is no such provider.
        """
        named = self.named(name)
        provider = named.provider
        # Before the providers: one that is called the same must not answer for it.
        cut_off = _CUT_OFF.get((provider, named.model.partition("_")[0]))
        if name not in self._given and cut_off is not None:
            raise UsageError(f"this turn {cut_off}")
        if name not in self._given and provider not in self._providers:
            hint = did_you_mean(provider, self._providers)
            known = ", ".join(sorted(self._providers))
            raise UsageError(f"no provider {provider!r} in {name!r}{hint} (there are: {known})")

    def check_setting(self, name: str, text: str) -> None:
        """Refuse a value of a setting, as it was typed, that names what could be no model.

        Raises:
            UsageError: as with `check`.
        """
        for each in text.split(",") if name in MODEL_KEYS else ():
            if each.strip():
                self.check(each.strip())

    def levels(self, name: str) -> KnownLevels:
        """The thinking levels of a model.

        Not known where it cannot be had, which its use will say.
        """
        try:
            info = self.resolve(name).info
        except WeftError:
            return None
        return (info.levels or None) if info.thinks else ()

    def cost(self, name: str, usage: Usage) -> float | None:
        """What so much use of a model costs in US dollars; None when its price is unknown."""
        try:
            return self.resolve(name).info.cost(usage)
        except WeftError:
            # A log may name a model whose provider is gone; its use is still counted, in tokens.
            return None

    def default(self) -> str:
        """The model to take where none is configured: of the provider that has a key here, else the
        embedded one.
        """
        if isinstance(self._providers, ProviderTable):
            return self._providers.default_model()
        return FALLBACK

    def has_default(self) -> bool:
        """Whether a provider here has a key, so that the default is more than a stand-in."""
        if isinstance(self._providers, ProviderTable):
            return any(True for _ in self._providers.with_key())
        return True

    def usable(self) -> frozenset[str]:
        """The providers that have a key here, or need none."""
        if not isinstance(self._providers, ProviderTable):
            return frozenset(self._providers)
        return frozenset(filter(self._providers.is_usable, self._providers))

    def missing_key(self, name: str) -> str:
        """What to say of a model whose provider needs a key and has none; empty when it has one,
        or finds its credentials elsewhere.

        Raises:
            UsageError: there is one that can be no key, or an address that can be none.
        """
        provider = self.named(name).provider
        table = self._providers
        if name in self._given or not isinstance(table, ProviderTable):
            return ""
        if table.is_usable(provider):
            self._check_access(table, provider)
            return ""
        from weft.config.api_keys import key_variables  # only where one is missing

        variables = key_variables().get(provider, ())
        if not variables or provider in OWN_CREDENTIALS:
            return ""
        variable = next((each for each in variables if each.endswith("_API_KEY")), variables[0])
        return (
            f"there is no key for {provider}; set {variable}, or run `weft auth login {provider}`"
        )

    @staticmethod
    def _check_access(table: ProviderTable, provider: str) -> None:
        access = table.access(provider)
        check_base_url(provider, access)
        # In a header it would be cut off, or be another header.
        if access.key and not (access.key.isascii() and access.key.isprintable()):
            raise UsageError(
                f"the key for {provider} from {access.key_source or 'the settings'} is not right: "
                "it must be one line of printable ASCII characters"
            )

    def short_names(self) -> dict[str, tuple[str, ...]]:
        """The short names of models, by `provider:model`; each where it means that model here."""
        table = self._providers if isinstance(self._providers, ProviderTable) else None
        catalogue = table.catalogue if table is not None else shipped()
        found: dict[str, str] = {}
        for provider in table.by_preference() if table is not None else catalogue.providers:
            for word, model in catalogue.short(provider).items():
                found.setdefault(word, f"{provider}:{model}")
        names: dict[str, tuple[str, ...]] = {}
        for word, name in found.items():
            names[name] = (*names.get(name, ()), word)
        return names

    def learn_key(self, provider: str, key: str) -> None:
        """Use a key that was saved just now, from the next model that is asked for."""
        if isinstance(self._providers, ProviderTable):
            self._providers.learn_key(provider, key)

    def key_before_saved(self, provider: str) -> str:
        """The variable or setting whose key comes before a saved one at every start."""
        if isinstance(self._providers, ProviderTable):
            return self._providers.key_before_saved(provider)
        return ""

    async def check_key(self, provider: str, key: str) -> KeyCheck:
        """Ask a provider's server whether it takes a key, or the one that it has here."""
        if isinstance(self._providers, ProviderTable):
            return await self._providers.check_key(provider, key)
        from weft.config.key_check import KeyCheck  # as for the table

        return KeyCheck(state="unknown", why="the models of this program were handed in")

    def shown_key(self, provider: str) -> tuple[str, str]:
        """The beginning and the end of the key that a provider has here, and where it is from;
        empty where it has none.
        """
        from weft.config.key_check import masked_key  # as above

        if not isinstance(self._providers, ProviderTable):
            return "", ""
        key = self._providers.access(provider).key
        source = self._providers.key_before_saved(provider) or "your file"
        return (masked_key(key), source) if key else ("", "")

    def address(self, provider: str) -> str:
        """Where a provider is reached; empty for one with an adapter of its own."""
        own = ""
        if isinstance(self._providers, ProviderTable):
            own = self._providers.access(provider).base_url
        return own or shipped().vendor(provider).url

    def named(self, name: str) -> ModelName:
        """The model that is meant, and the effort that is named with it.

        Raises:
            UsageError: no model is named.
        """
        if name in self._given:
            provider, _, model = name.partition(":")
            return ModelName(provider, model)
        found = parse_model_name(name)
        if found.model and found.provider in self._providers and not found.model.isalpha():
            return found
        return self._by_short_name(name, found)

    def _by_short_name(self, name: str, found: ModelName) -> ModelName:
        """The model that a bare or short name means, or a name of which we know nothing."""
        from weft.config.model_names import find_model, unknown_model  # only for such names

        table = self._providers if isinstance(self._providers, ProviderTable) else None
        catalogue = table.catalogue if table is not None else shipped()
        if found.model and found.provider in self._providers:
            meant = catalogue.short(found.provider).get(found.model.casefold())
            return ModelName(found.provider, meant, found.effort) if meant else found
        order = table.by_preference() if table is not None else catalogue.providers
        if (bare := find_model(name, catalogue, order)) is not None:
            return bare
        if not found.model:
            raise unknown_model(name, catalogue, order)
        before, _, word = name.rpartition(":")
        if find_model(before, catalogue, order) is not None:
            known = ", ".join(THINKING_LEVELS)
            raise UsageError(f"no thinking level {word!r} in {name!r}; there are {known}")
        return found

    def normal(self, name: str) -> str:
        """The name as sessions store it: `provider:model`."""
        return self.named(name).name

    async def available(self, providers: Iterable[str] | None = None) -> list[ModelInfo]:
        """Every model that a provider lists; of these providers, or of all."""
        if providers is None:
            given = [model.info for model in self._given.values()]
            providers = self._providers
        else:
            given = []
        # Made before the group: what is wrong with one is an error, not a group of errors.
        asked = {name: self._providers[name] for name in providers}
        found: dict[str, list[ModelInfo]] = {name: [] for name in asked}

        async def ask(name: str) -> None:
            found[name] = await asked[name].models()

        # All at once: each may ask a server, and one that is silent costs seconds.
        async with anyio.create_task_group() as group:
            for name in found:
                group.start_soon(ask, name)
        return [*given, *(info for each in found.values() for info in each)]

    async def aclose(self) -> None:
        """Close the providers that were used."""
        if isinstance(self._providers, ProviderTable):
            await self._providers.aclose()
            return
        for provider in self._providers.values():
            await provider.aclose()


def environment_models() -> ModelRegistry:
    """Every model that the environment and the user's settings give a key for."""
    return ModelRegistry(default_providers(os.environ))
