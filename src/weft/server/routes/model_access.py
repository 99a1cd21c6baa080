"""Operations for users who have no model yet: what could answer here, and a key for it."""

from __future__ import annotations

from typing import Final

import anyio
import msgspec

from weft.app import App
from weft.config import KeyCheck
from weft.errors import UsageError
from weft.server.operation import ApiCall, ApiOperation, ChangeBody

LOCAL_SERVERS: Final = frozenset({"ollama", "lmstudio"})
PROBE_SECONDS: Final = 1.5
"""A server that accepts and says nothing must not hold the first screen back."""


class KeyProvider(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that takes a key."""

    name: str
    title: str
    is_usable: bool
    """It has a key here."""
    shown: str = ""
    """The beginning and the end of its key."""
    source: str = ""
    """The variable or setting that has the key, or `your file`."""


class ModelAccess(msgspec.Struct, frozen=True, kw_only=True):
    """What could answer here."""

    default_model: str
    """Of a new session."""
    has_default: bool
    """Settings or a key name it; otherwise it is a stand-in."""
    providers: list[KeyProvider]
    local_models: list[str] = []
    """Models of servers that run on this machine."""


class KeyBody(ChangeBody, frozen=True, kw_only=True):
    """A key; it is kept in a file that only the user can read."""

    key: str


class KeyCheckBody(ChangeBody, frozen=True, kw_only=True):
    """A key that is tested; without one, that which the provider has here."""

    key: str = ""


async def _access(call: ApiCall) -> ModelAccess:
    from weft.config import key_variables, provider_title  # few ask for it

    app = await call.app()
    host = app.host
    usable = host.usable_providers()
    names = [name for name in key_variables() if name not in ("openai-chat", "ollama")]
    found: list[str] = []
    with anyio.move_on_after(PROBE_SECONDS):
        models = await host.available_models(usable & LOCAL_SERVERS)
        found = [f"{each.provider}:{each.name}" for each in models if "embed" not in each.name]
    return ModelAccess(
        default_model=host.default_model(),
        has_default=host.has_default_model(),
        providers=[
            _key_provider(app, name, provider_title(name), is_usable=name in usable)
            for name in names
        ],
        local_models=found,
    )


def _key_provider(app: App, name: str, title: str, *, is_usable: bool) -> KeyProvider:
    shown, source = app.host.shown_key(name) if is_usable else ("", "")
    return KeyProvider(name=name, title=title, is_usable=is_usable, shown=shown, source=source)


def _provider_of(named: str, key: str) -> str:
    from weft.config import key_variables, provider_of_key  # as above

    provider = provider_of_key(key) if named == "any" else named
    if provider not in key_variables():
        raise UsageError("say whose key it is: its beginning does not tell")
    return provider


async def _save_key(call: ApiCall) -> ModelAccess:
    from weft.config import check_key  # as above

    key = call.body.key.strip()
    check_key(key)
    provider = _provider_of(call.path["provider"], key)
    profile = (await call.app()).config.get("profile")
    # The other projects that are open would not know of it before the server is started again.
    for app in call.parts.projects.apps:
        if app.config.get("profile") == profile:
            await app.save_key(provider, key)
    return await _access(call)


async def _test_key(call: ApiCall) -> KeyCheck:
    from weft.config import check_key  # as above

    key = call.body.key.strip()
    if key:
        check_key(key)
    provider = _provider_of(call.path["provider"], key)
    return await (await call.app()).host.check_key(provider, key)


MODEL_ACCESS: tuple[ApiOperation, ...] = (
    ApiOperation(
        method="GET",
        path="/projects/{project}/model-access",
        name="model_access",
        says="What could answer here: keys that there are, and models on this machine.",
        run=_access,
        answer=ModelAccess,
    ),
    ApiOperation(
        method="PUT",
        path="/projects/{project}/keys/{provider}",
        name="save_key",
        says="Save a provider's key for this user; `any` finds the provider by the key.",
        run=_save_key,
        body=KeyBody,
        answer=ModelAccess,
        calls=("app.save_key",),
        remembers=False,
    ),
    ApiOperation(
        method="POST",
        path="/projects/{project}/keys/{provider}/test",
        name="test_key",
        says="Ask a provider's server whether it takes a key, before it is saved or later.",
        run=_test_key,
        body=KeyCheckBody,
        answer=KeyCheck,
        remembers=False,
    ),
)
