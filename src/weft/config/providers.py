"""Provider table of this installation, by name.

Each is made when it is first asked for, because loading one costs time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from weft.clock import Clock, SystemClock
from weft.config.api_keys import KeyFile
from weft.config.paths import places
from weft.config.provider_settings import ProviderSettings, model_settings, provider_settings
from weft.config.settings import Config, load_config
from weft.providers import Provider
from weft.providers.catalogue import (
    CatalogueModel,
    CatalogueProvider,
    ModelCatalogue,
    shipped,
)
from weft.providers.credentials import ProviderAccess
from weft.providers.vendors import ADAPTERS, PROTOCOLS, access_from, make_provider
from weft.transport import HttpClient, ProxySettings

if TYPE_CHECKING:
    from weft.config.key_check import KeyCheck

PREFERRED: Final = ("anthropic", "openai", "google")
"""Whose key is looked for first, where no model is configured: those who make the models."""
OFFERS: Final = {
    "anthropic": "anthropic",
    "openai": "openai",
    "google": "google",
    "azure": "openai",
    "bedrock": "bedrock",
    "vertex": "google anthropic",
}
"""Whose models the catalogue lists for a protocol."""
NEVER_BY_KEY: Final = ("ollama", "openai-chat", "azure")
"""Whose key picks no default model: it may be for a server that has none, is another's, or needs
the name of a deployment.
"""


class ProviderTable(Mapping[str, Provider]):
    """Every provider by name, made on demand."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        keys: Mapping[str, str],
        endpoints: Mapping[str, ProviderSettings],
        catalogue: ModelCatalogue,
        home: Path,
        clock: Clock,
    ) -> None:
        self._environ = environ
        self._keys = dict(keys)
        self._given_now: set[str] = set()
        self._endpoints = endpoints
        self.catalogue = catalogue
        """What is known of models, with what the settings add."""
        self._home = home
        self._clock = clock
        self._client: HttpClient | None = None
        self._made: dict[str, Provider] = {}

    def __getitem__(self, name: str) -> Provider:
        if name not in self._made:
            if name not in self._names:
                raise KeyError(name)
            self._made[name] = self._make(name)
        return self._made[name]

    # The one of `Mapping` would make the provider, and so load its adapter, only to answer.
    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def made(self) -> tuple[Provider, ...]:
        """The providers that were asked for."""
        return tuple(self._made.values())

    async def aclose(self) -> None:
        """Close every provider that was made, and their connections."""
        for provider in self._made.values():
            await provider.aclose()
        if self._client is not None:
            await self._client.aclose()

    @cached_property
    def _names(self) -> dict[str, None]:
        known = ("scripted", "replay", "local", *ADAPTERS, *self.catalogue.providers)
        return dict.fromkeys((*known, *self._endpoints))

    def _make(self, name: str) -> Provider:
        if name == "scripted":
            from weft.providers.scripted import ScriptedProvider

            return ScriptedProvider()
        if name == "replay":
            from weft.providers.replay import ReplayProvider

            return ReplayProvider()
        if name == "local":
            return self._local()
        return make_provider(
            name, self.access(name), self.client, self.catalogue, clock=self._clock
        )

    def _local(self) -> Provider:
        from weft.providers.local.stream import LocalProvider

        return LocalProvider(
            self.models_folder, self._home / "run", self.client, self.catalogue, clock=self._clock
        )

    @property
    def models_folder(self) -> Path:
        """Where the weights of embedded models are kept."""
        return self._home / "models"

    @property
    def client(self) -> HttpClient:
        """The one HTTP client of the application."""
        if self._client is None:
            self._client = HttpClient(proxies=proxies_of(self._environ))
        return self._client

    def learn_key(self, name: str, key: str) -> None:
        """Use a key that was saved while this runs, whatever else has one."""
        self._keys[name] = key
        self._given_now.add(name)
        # The provider that was made holds the old key, or none; turns that run keep their model.
        self._made.pop(name, None)

    def default_model(self) -> str:
        """The default of the first provider that has a key here.

        Without any, the embedded model.
        """
        name = next(iter(self.with_key()), "local")
        return f"{name}:{self.catalogue.default(name)}"

    def with_key(self) -> Iterator[str]:
        """The providers that have a key here and a default model, those first that make models."""
        for name in dict.fromkeys((*PREFERRED, *self.catalogue.providers)):
            if name in NEVER_BY_KEY or not self.catalogue.vendor(name).default:
                continue
            if self.access(name).key:
                yield name

    def is_usable(self, name: str) -> bool:
        """Whether a provider has a key here, or needs none."""
        if name in ("scripted", "replay") or self.catalogue.vendor(name).is_free:
            return True
        # A server of the user's own may ask for no key.
        has_address = name in self._endpoints and bool(self._endpoints[name].base_url)
        return has_address or bool(self.access(name).key)

    def by_preference(self) -> tuple[str, ...]:
        """Every provider, in the order in which a bare model name is looked up."""
        others = (*PREFERRED, *self.catalogue.providers, *NEVER_BY_KEY)
        return tuple(dict.fromkeys((*self.with_key(), *others)))

    def access(self, name: str) -> ProviderAccess:
        """How a provider is reached: by the settings, then the environment, then the saved key; a
        key that was given while this runs comes before all of them.
        """
        found = self._without_saved(name)
        # A key in the environment is meant for this run, and must not lose to one that was saved
        # long ago, for another account perhaps.
        if found.key and name not in self._given_now:
            return found
        saved = f"the saved keys (`weft auth login {name}`)"
        return msgspec.structs.replace(
            found, key=self._keys.get(name, ""), key_source=saved, is_bearer=False
        )

    def key_before_saved(self, name: str) -> str:
        """The variable or setting whose key comes before a saved one at every start; empty where
        none does.
        """
        found = self._without_saved(name)
        return found.key_source if found.key else ""

    async def check_key(self, name: str, key: str) -> KeyCheck:
        """Ask a provider's server whether it takes a key; the one it has here where none is
        given.
        """
        from weft.config.key_check import checked_key  # few ask

        access = self.access(name)
        if key:
            access = msgspec.structs.replace(access, key=key, is_bearer=False)
        return await checked_key(name, access, self.client)

    def _without_saved(self, name: str) -> ProviderAccess:
        endpoint = self._endpoints.get(name, ProviderSettings())
        given = ProviderAccess(
            key=endpoint.key or self._environ.get(endpoint.key_env, ""),
            key_source=f"providers.{name}.key" if endpoint.key else endpoint.key_env,
            base_url=endpoint.base_url,
            protocol=endpoint.protocol,
            headers=tuple(endpoint.headers.items()),
            query=tuple(endpoint.query.items()),
            timeouts=endpoint.timeouts,
            region=endpoint.region,
            project=endpoint.project,
        )
        return access_from(name, self._environ, self.catalogue, given)


def proxies_of(environ: Mapping[str, str]) -> ProxySettings:
    """The proxies that the environment names, in either spelling."""

    def found(*names: str) -> tuple[str, str]:
        """The first of these that is set, and its value."""
        # Lower case first, as curl does.
        spelled = (each for name in names for each in (name, name.upper()))
        return next(((each, value) for each in spelled if (value := environ.get(each))), ("", ""))

    https_variable, https = found("https_proxy", "all_proxy")
    http_variable, http = found("http_proxy", "all_proxy")
    return ProxySettings(
        https=https,
        http=http,
        no_proxy=found("no_proxy")[1],
        https_variable=https_variable,
        http_variable=http_variable,
    )


def default_providers(
    environ: Mapping[str, str], config: Config | None = None, clock: Clock | None = None
) -> ProviderTable:
    """Every provider, with the keys and addresses that environment, settings and the private file
    name.
    """
    where = places(environ)
    settings = config or load_config(user=where.config, environ=environ)
    providers, models = settings.lookup("providers"), settings.lookup("models")
    endpoints = provider_settings(providers.value, providers.source)
    catalogue = _catalogue(endpoints)
    if models.value:
        more = model_settings(models.value, catalogue, models.source)
        catalogue = _catalogue(endpoints, more)
    return ProviderTable(
        environ=environ,
        keys=KeyFile(where.config, settings.get("profile")).keys(),
        endpoints=endpoints,
        catalogue=catalogue,
        home=where.home,
        clock=clock or SystemClock(),
    )


def _catalogue(
    endpoints: Mapping[str, ProviderSettings],
    more: Mapping[str, Mapping[str, CatalogueModel]] | None = None,
) -> ModelCatalogue:
    """The shipped catalogue with the providers that the settings name, and their models."""
    if not endpoints and not more:
        return shipped()
    vendors = {name: shipped().vendor(name) for name in shipped().providers}
    for name, endpoint in endpoints.items():
        vendor = vendors.get(name)
        if vendor is None:
            # A gateway that speaks a vendor's own protocol offers that vendor's models.
            spoken = PROTOCOLS.get(endpoint.protocol, "")
            vendor = CatalogueProvider(same_as=OFFERS.get(spoken, ""), title=name)
        if endpoint.default_model:
            vendor = msgspec.structs.replace(vendor, default=endpoint.default_model)
        vendors[name] = vendor
    return ModelCatalogue(vendors, more, day=shipped().day)
