"""Provider table of this installation, by name.

Each is made when it is first asked for, because loading one costs time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from weft.clock import Clock, SystemClock
from weft.config.api_keys import KeyFile
from weft.config.paths import places
from weft.config.settings import Config, load_config
from weft.errors import UsageError
from weft.providers import Provider
from weft.providers.catalogue import shipped
from weft.providers.credentials import ProviderAccess
from weft.providers.vendors import ADAPTERS, access_from, make_provider
from weft.transport import HttpClient, HttpTimeouts, ProxySettings

PREFERRED: Final = ("anthropic", "openai", "google")
"""Whose key is looked for first, where no model is configured."""


class CustomEndpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider as the settings name it: `[providers.NAME]`."""

    base_url: str = ""
    key_env: str = ""
    """The environment variable that holds the key."""
    headers: dict[str, str] = {}
    first_byte_timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """Seconds to wait for the beginning of an answer; None for the usual."""
    idle_timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """Seconds to wait for more of an answer that has begun; None for the usual."""

    @property
    def timeouts(self) -> HttpTimeouts:
        """Those that are set, and the usual for the others."""
        usual = HttpTimeouts()
        return HttpTimeouts(
            first_byte=self.first_byte_timeout or usual.first_byte,
            idle=self.idle_timeout or usual.idle,
        )


class ProviderTable(Mapping[str, Provider]):
    """Every provider by name, made on demand."""

    def __init__(
        self,
        *,
        environ: Mapping[str, str],
        keys: Mapping[str, str],
        endpoints: Mapping[str, CustomEndpoint],
        home: Path,
        clock: Clock,
    ) -> None:
        self._environ = environ
        self._keys = keys
        self._endpoints = endpoints
        self._home = home
        self._clock = clock
        self._client: HttpClient | None = None
        self._made: dict[str, Provider] = {}

    def __getitem__(self, name: str) -> Provider:
        if name not in self._made:
            if name not in self._names():
                raise KeyError(name)
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

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

    def _names(self) -> dict[str, None]:
        known = ("scripted", "replay", "local", *ADAPTERS, *shipped().providers, *self._endpoints)
        return dict.fromkeys(known)

    def _make(self, name: str) -> Provider:
        if name == "scripted":
            from weft.providers.scripted import ScriptedProvider

            return ScriptedProvider()
        if name == "replay":
            from weft.providers.replay import ReplayProvider

            return ReplayProvider()
        if name == "local":
            return self._local()
        return make_provider(name, self.access(name), self.client, shipped(), clock=self._clock)

    def _local(self) -> Provider:
        from weft.providers.local.stream import LocalProvider

        return LocalProvider(
            self.models_folder, self._home / "run", self.client, shipped(), clock=self._clock
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

    def default_model(self) -> str:
        """The default of the first provider that has a key here.

        Without any, the embedded model.
        """
        for name in PREFERRED:
            if self.access(name).key:
                return f"{name}:{shipped().default(name)}"
        return f"local:{shipped().default('local')}"

    def access(self, name: str) -> ProviderAccess:
        """How a provider is reached: by the settings, then the environment, then the saved key."""
        endpoint = self._endpoints.get(name, CustomEndpoint())
        given = ProviderAccess(
            key=self._environ.get(endpoint.key_env, "") if endpoint.key_env else "",
            base_url=endpoint.base_url,
            headers=tuple(endpoint.headers.items()),
            timeouts=endpoint.timeouts,
        )
        found = access_from(name, self._environ, shipped(), given)
        # Last: a key in the environment is meant for this run, and must not lose to one that was
        # saved long ago, for another account perhaps.
        key = found.key or self._keys.get(name, "")
        return msgspec.structs.replace(found, key=key)


def endpoints_of(value: Mapping[str, Any]) -> dict[str, CustomEndpoint]:
    """The `providers` setting, typed.

    Raises:
        UsageError: a provider has a field that there is not, or a value that does not fit.
    """
    return {name: _endpoint(name, each) for name, each in value.items()}


def _endpoint(name: str, value: Any) -> CustomEndpoint:
    try:
        return msgspec.convert(value, CustomEndpoint)
    except msgspec.ValidationError as error:
        raise UsageError(f"[providers.{name}] of the settings: {error}") from error


def proxies_of(environ: Mapping[str, str]) -> ProxySettings:
    """The proxies that the environment names, in either spelling."""

    def value(name: str) -> str:
        # Lower case first, as curl does.
        return environ.get(name) or environ.get(name.upper(), "")

    return ProxySettings(
        https=value("https_proxy") or value("all_proxy"),
        http=value("http_proxy") or value("all_proxy"),
        no_proxy=value("no_proxy"),
    )


def default_providers(
    environ: Mapping[str, str], config: Config | None = None, clock: Clock | None = None
) -> ProviderTable:
    """Every provider, with the keys and addresses that environment, settings and the private file
    name.
    """
    where = places(environ)
    settings = config or load_config(user=where.config, environ=environ)
    return ProviderTable(
        environ=environ,
        keys=KeyFile(where.config).keys(),
        endpoints=endpoints_of(settings.get("providers")),
        home=where.home,
        clock=clock or SystemClock(),
    )
