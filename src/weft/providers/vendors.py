"""Providers by name.

A vendor's adapter is imported only when it is asked for: imports cost start-up time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

import msgspec

from weft.clock import Clock
from weft.errors import UsageError
from weft.providers.base import Provider
from weft.providers.catalogue import ModelCatalogue
from weft.providers.credentials import ProviderAccess
from weft.transport import HttpTransport, target

if TYPE_CHECKING:
    from weft.providers.http_model import RemoteVendor

ADAPTERS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic.stream:AnthropicWire",
    "openai": "openai.stream:ResponsesWire",
    "openai-chat": "openai_chat.stream:ChatWire",
    "google": "google.stream:GeminiWire",
    "ollama": "ollama.stream:OllamaWire",
    "azure": "azure.stream:azure_wire",
    "bedrock": "bedrock.stream:BedrockWire",
    "vertex": "vertex.stream:VertexWire",
}
"""Vendors with an adapter of their own; every other name speaks Chat Completions."""

PROTOCOLS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic",
    "responses": "openai",
    "chat": "openai-chat",
    "google": "google",
    "ollama": "ollama",
    "azure": "azure",
    "bedrock": "bedrock",
    "vertex": "vertex",
}
"""Protocols that settings may name, and the vendor whose adapter speaks each."""

CLOUDS: Final = ("azure", "bedrock", "vertex")
"""Whose addresses are made of a region, a resource or a project."""
CLOUD_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "azure": ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"),
    "bedrock": (
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"),
        *("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"),
        *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        *("AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
        *("AWS_EC2_METADATA_DISABLED", "AWS_EC2_METADATA_SERVICE_ENDPOINT"),
        *("AWS_ENDPOINT_URL_SSO", "HOME"),
    ),
    "vertex": (
        *("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "GCE_METADATA_HOST"),
        *("GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID", "GCLOUD_PROJECT"),
        *("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION", "GOOGLE_CLOUD_REGION", "HOME"),
    ),
}
"""The variables that each cloud's own tools read, as far as they matter here."""

BEARER_VARIABLES: Final = frozenset({"ANTHROPIC_AUTH_TOKEN", "AZURE_OPENAI_AD_TOKEN"})
"""Variables that hold a token for `authorization`, where the vendor's own keys go elsewhere."""

KEY_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    # As in Anthropic's own tools: the token, which is for a gateway, comes before the key.
    "anthropic": ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY"),
    "openai": ("OPENAI_API_KEY",),
    "openai-chat": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "ollama": ("OLLAMA_API_KEY",),
    "azure": ("AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_API_KEY"),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
}
"""Where keys are looked for in the environment, in this order."""

URL_VARIABLES: Final[Mapping[str, str]] = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai": "OPENAI_BASE_URL",
    "openai-chat": "OPENAI_BASE_URL",
    "google": "GOOGLE_GEMINI_BASE_URL",
    "ollama": "OLLAMA_HOST",
    "azure": "AZURE_OPENAI_ENDPOINT",
}
"""Where base URLs are looked for in the environment."""


def access_from(
    name: str,
    environment: Mapping[str, str],
    catalogue: ModelCatalogue,
    given: ProviderAccess | None = None,
) -> ProviderAccess:
    """How to reach a provider: what config gives, and what it leaves open from these environment
    values.
    """
    given = given or ProviderAccess()
    variable, key = "", given.key
    if not key:
        variable, key = _key_in(environment, key_names(name, catalogue))
    base_url, url_source = given.base_url, f"base_url of [providers.{name}]"
    if not base_url and (url_source := URL_VARIABLES.get(name, "")):
        base_url = environment.get(url_source, "").strip()
    return msgspec.structs.replace(
        given,
        key=key,
        key_source=variable or given.key_source,
        base_url=base_url,
        url_source=url_source if base_url else "",
        is_bearer=given.is_bearer or variable in BEARER_VARIABLES,
        variables=_cloud_variables(given.protocol or name, environment),
    )


def _cloud_variables(protocol: str, environment: Mapping[str, str]) -> dict[str, str]:
    found = {each: environment.get(each, "").strip() for each in CLOUD_VARIABLES.get(protocol, ())}
    return {name: value for name, value in found.items() if value}


def key_names(name: str, catalogue: ModelCatalogue) -> tuple[str, ...]:
    """The environment variables that may hold a provider's key, in the order in which they
    count.
    """
    return KEY_VARIABLES.get(name) or tuple(filter(None, (catalogue.vendor(name).key,)))


def _key_in(environment: Mapping[str, str], names: tuple[str, ...]) -> tuple[str, str]:
    """The first of these variables that is set, and its value."""
    for name in names:
        if value := environment.get(name, "").strip():
            return name, value
    return "", ""


def make_provider(
    name: str,
    access: ProviderAccess,
    transport: HttpTransport,
    catalogue: ModelCatalogue,
    *,
    clock: Clock | None = None,
) -> Provider:
    """The provider called `name`.

    Raises:
        UsageError: it has no adapter, and no address to speak Chat Completions with.
    """
    _check_address(name, access, catalogue)
    from weft.providers.http_model import (
        HttpProvider,
    )  # with the first vendor: it costs start-up time

    spoken = PROTOCOLS.get(access.protocol, name)
    module, _, found = ADAPTERS.get(spoken, ADAPTERS["openai-chat"]).partition(":")
    vendor: Callable[..., RemoteVendor] = getattr(import_module(f"weft.providers.{module}"), found)
    wire = vendor(access, name, catalogue.vendor(name))
    return HttpProvider(wire, transport, catalogue, clock=clock)


def check_base_url(name: str, access: ProviderAccess) -> None:
    """Refuse an address that can be none, before anything is sent.

    Raises:
        UsageError: it names the variable or setting that gives the address.
    """
    given = access.base_url
    if PROTOCOLS.get(access.protocol, name) == "ollama" and "://" not in given:
        return  # it may lack scheme and port
    if given:
        target(given, access.url_source)


def _check_address(name: str, access: ProviderAccess, catalogue: ModelCatalogue) -> None:
    # Without an address of its own, a key of one company would be sent to another: to the vendor
    # that the protocol is named after.
    own = (PROTOCOLS["responses"], PROTOCOLS["chat"]) if name == "openai" else (name,)
    if access.protocol in CLOUDS:
        return
    if access.protocol and not access.base_url and PROTOCOLS[access.protocol] not in own:
        is_chat = access.protocol == "chat" and catalogue.vendor(name).url
        if not is_chat:
            raise UsageError(
                f"[providers.{name}] names the protocol {access.protocol!r} and no address; set "
                "its base_url"
            )
