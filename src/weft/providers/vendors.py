"""Providers by name.

A vendor's adapter is imported only when it is asked for: imports cost start-up time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

from weft.clock import Clock
from weft.providers.base import Provider
from weft.providers.catalogue import ModelCatalogue
from weft.providers.credentials import ProviderAccess
from weft.transport import HttpTransport

if TYPE_CHECKING:
    from weft.providers.http_model import RemoteVendor

ADAPTERS: Final[Mapping[str, str]] = {
    "anthropic": "anthropic.stream:AnthropicWire",
    "openai": "openai.stream:ResponsesWire",
    "openai-chat": "openai_chat.stream:ChatWire",
    "google": "google.stream:GeminiWire",
    "ollama": "ollama.stream:OllamaWire",
}
"""Vendors with an adapter of their own; every other name speaks Chat Completions."""

KEY_VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openai-chat": ("OPENAI_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "ollama": ("OLLAMA_API_KEY",),
}
"""Where keys are looked for in the environment, in this order."""

URL_VARIABLES: Final[Mapping[str, str]] = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai": "OPENAI_BASE_URL",
    "openai-chat": "OPENAI_BASE_URL",
    "google": "GOOGLE_GEMINI_BASE_URL",
    "ollama": "OLLAMA_HOST",
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
    names = KEY_VARIABLES.get(name) or (catalogue.vendor(name).key,)
    keys = (environment.get(variable, "").strip() for variable in names if variable)
    return ProviderAccess(
        key=given.key or next((key for key in keys if key), ""),
        base_url=given.base_url or environment.get(URL_VARIABLES.get(name, ""), "").strip(),
        headers=given.headers,
        timeouts=given.timeouts,
        unix_socket=given.unix_socket,
    )


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
    from weft.providers.http_model import (
        HttpProvider,
    )  # with the first vendor: it costs start-up time

    module, _, found = ADAPTERS.get(name, ADAPTERS["openai-chat"]).partition(":")
    vendor: Callable[..., RemoteVendor] = getattr(import_module(f"weft.providers.{module}"), found)
    wire = vendor(access, name, catalogue.vendor(name))
    return HttpProvider(wire, transport, catalogue, clock=clock)
