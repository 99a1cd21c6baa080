"""Azure OpenAI as a provider.

There are two interfaces.  The v1 one is OpenAI's own below `/openai/v1`, with the deployment as the
model.  The classic one has the deployment in the address and wants a version, `api-version`; it is
spoken where one is set, because only then does the user know that they need it.
"""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from weft.errors import UsageError
from weft.providers.base import ModelInfo, ModelRequest
from weft.providers.catalogue import CatalogueProvider
from weft.providers.credentials import ProviderAccess
from weft.providers.http_model import RemoteVendor
from weft.providers.openai.stream import ResponsesWire
from weft.providers.openai_chat.encode import OPENAI
from weft.providers.openai_chat.stream import ChatWire
from weft.transport import HttpRequest

V1_VERSIONS = ("v1", "latest", "preview")
"""Values of `api-version` that the v1 interface takes."""


def azure_wire(access: ProviderAccess, provider: str, catalogue: CatalogueProvider) -> RemoteVendor:
    """The interface that is meant."""
    endpoint = access.base_url or access.variable("AZURE_OPENAI_ENDPOINT")
    if not endpoint:
        return UnplacedWire(access, provider, catalogue)
    # Users paste the address of the resource, or that of its v1 interface.
    resource = endpoint.rstrip("/").removesuffix("/v1").removesuffix("/openai")
    version = dict(access.query).get("api-version") or access.variable(
        "AZURE_OPENAI_API_VERSION", "OPENAI_API_VERSION"
    )
    query = tuple(each for each in access.query if each[0] != "api-version")
    if version and version not in V1_VERSIONS:
        query = (*query, ("api-version", version))
        reached = msgspec.structs.replace(access, base_url=resource, query=query)
        return AzureChatWire(reached, provider, catalogue)
    query = (*query, ("api-version", version)) if version else query
    reached = msgspec.structs.replace(access, base_url=f"{resource}/openai/v1", query=query)
    return AzureResponsesWire(reached, provider, catalogue)


class UnplacedWire(ResponsesWire):
    """Stands for a resource whose address is not known; its models can be listed, and not asked."""

    completes = False

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        raise UsageError(
            f"{self.provider} has no address; set AZURE_OPENAI_ENDPOINT, or base_url of "
            f"[providers.{self.provider}], to https://RESOURCE.openai.azure.com"
        )


class AzureResponsesWire(ResponsesWire):
    """The Responses API of the v1 interface."""

    completes = False

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        return _keyed(self, super().http(request, info))


class AzureChatWire(ChatWire):
    """Chat Completions of one deployment."""

    completes = False

    def __init__(self, access: ProviderAccess, provider: str, catalogue: CatalogueProvider) -> None:
        super().__init__(access, provider, catalogue)
        self._resource = access.base_url
        self._dialect = OPENAI

    def http(self, request: ModelRequest, info: ModelInfo) -> HttpRequest:
        place = f"/openai/deployments/{quote(request.model, safe='')}/chat/completions"
        sent = msgspec.structs.replace(super().http(request, info), url=f"{self._resource}{place}")
        return _keyed(self, sent)

    def models_request(self) -> HttpRequest | None:
        # Azure lists the models that could be deployed, not the deployments.
        return None


def _keyed(wire: RemoteVendor, request: HttpRequest) -> HttpRequest:
    """The request with the key in Azure's own header; a token of Entra ID stays a bearer."""
    key = wire.api_key("AZURE_OPENAI_API_KEY", "azure")
    kept = tuple(each for each in request.headers if each[0] != "authorization")
    return msgspec.structs.replace(request, headers=(*kept, *key))
