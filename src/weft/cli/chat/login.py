"""Getting a model: a key that is pasted, one from OpenRouter, a server on this machine, or the
embedded model.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple, Protocol

import anyio

from weft.cli.chat.conversation import NO_MODEL, ChatConversation
from weft.cli.chat.screens.list_question import ListQuestion, ListRow
from weft.cli.chat.screens.screen import ChatScreen, ChoiceQuestion, ChoiceRow
from weft.cli.exit_codes import sentence_of
from weft.cli.local_model import has_engine, make_ready
from weft.config.api_keys import check_key, key_variables, provider_of_key, provider_title
from weft.config.local_weights import missing_weights, size_of
from weft.errors import UsageError, WeftError
from weft.view import LiveArea, NoteBlock

EMBEDDED = "local:smollm2"
SERVERS = ("ollama", "lmstudio")
"""Servers on this machine that are looked for."""
PROBE_SECONDS = 1.5


class LoginChat(Protocol):
    """What the dialog needs of the chat."""

    screen: ChatScreen
    conversation: ChatConversation

    @property
    def live(self) -> LiveArea:
        """What is in flight."""
        ...


class LoginOption(NamedTuple):
    """One way to a model."""

    label: str
    detail: str
    take: Callable[[], Awaitable[bool]]
    """Says whether there is a model now."""


class LoginDialog:
    """Leads a user without a key to a model."""

    def __init__(self, chat: LoginChat) -> None:
        self._chat = chat
        self._app = chat.conversation.app
        self._screen = chat.screen
        self._browser: subprocess.Popen[bytes] | None = None

    async def offer(self, *, is_asked_for: bool = False) -> None:
        """Offer every way that there is, until one works or the user goes on without."""
        title = "What should answer?"
        title = title if is_asked_for else f"No API key was found. {title}"
        now = self._chat.live.model if is_asked_for else NO_MODEL
        esc = "goes on without" if now in ("", NO_MODEL) else f"keeps {now.rpartition('/')[2]}"
        while True:
            options = await self._options()
            chosen = await self._screen.choose(
                ChoiceQuestion(
                    title=title,
                    rows=tuple(ChoiceRow(option.label, option.detail) for option in options),
                    # The first row asks for a key.
                    paste_row=0,
                    hint=f"1-{len(options)} · Esc {esc} · /login asks again",
                    is_own=is_asked_for,
                )
            )
            if chosen is None:
                return
            try:
                if await options[chosen].take():
                    return
            except WeftError as error:
                self._note(sentence_of(error), is_wrong=True)

    async def login(self, provider: str) -> None:
        """Ask for the key of one provider.

        Raises:
            UsageError: there is no such provider, or it can be no key.
        """
        known = [name for name in key_variables() if name != "openai-chat"]
        if provider not in known:
            raise UsageError(f"no provider {provider!r} takes a key; there are {', '.join(known)}")
        await self._ask_key(provider)

    async def _options(self) -> list[LoginOption]:
        servers = [
            LoginOption(
                f"Use {provider_title(name)}",
                f"runs on this machine: {_some(models)}",
                partial(self._take_server, models),
            )
            for name, models in (await self._running()).items()
        ]
        return [
            LoginOption(
                "Paste an API key",
                "Anthropic, OpenAI, Google, OpenRouter …",
                self._ask_key,
            ),
            LoginOption(
                "Get a key from OpenRouter",
                "in the browser; all vendors' models",
                self._ask_openrouter,
            ),
            *servers,
            LoginOption("Use the small embedded model", _embedded_detail(), self._take_embedded),
        ]

    # -- the ways

    async def _ask_key(self, provider: str = "") -> bool:
        where = f" for {provider_title(provider)}" if provider else ""
        label = f"Paste the key{where} (Esc goes back):"
        given = await self._screen.ask_line(label, is_secret=True)
        key = (given or "").strip()
        if not key:
            return False
        check_key(key)
        provider = provider or provider_of_key(key) or await self._pick_provider()
        if not provider:
            return False
        await self._keep(provider, key)
        return True

    async def _pick_provider(self) -> str:
        """Whose key it is, where its beginning does not say so."""
        names = [name for name in key_variables() if name not in ("openai-chat", "ollama")]
        rows = tuple(ListRow(provider_title(name)) for name in names)
        answer = await self._screen.choose_from(ListQuestion(title="Whose key is it?", rows=rows))
        return "" if answer is None else names[answer.row]

    async def _ask_openrouter(self) -> bool:
        async def paste() -> str | None:
            return await self._screen.ask_line(
                "Waiting for the browser. Is it on another machine? Then paste the address at "
                "which it ended (Esc gives up):"
            )

        from weft.config.openrouter_login import openrouter_key  # only for this way

        where = self._app.host.provider_address("openrouter")
        key = await openrouter_key(where, os.environ, show=self._show_address, paste=paste)
        await self._keep("openrouter", key)
        return True

    def _show_address(self, short: str, url: str) -> None:
        opener = _opener()
        opened = "opening" if opener else "open"
        self._note(f"{opened} {short} in a browser here, or on another machine:\n{url}")
        if opener:
            try:
                # Not waited for: a browser that was not running stays as long as its window.
                self._browser = subprocess.Popen(
                    [*opener, url],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                self._note(f"{opener[0]} cannot be started: {error.strerror}", is_wrong=True)

    async def _keep(self, provider: str, key: str) -> None:
        await self._app.save_key(provider, key)
        self._note(f"saved the key for {provider_title(provider)}; only you can read it")
        if before := self._app.host.key_before_saved(provider):
            self._note(
                f"at the next start the key of {before} comes first again; unset it to use this one"
            )
        # Just the provider's name: it means its default model.
        await self._use(self._app.host.normal_model(provider))

    async def _take_server(self, models: list[str]) -> bool:
        if len(models) > 1:
            rows = tuple(ListRow(name) for name in models)
            answer = await self._screen.choose_from(ListQuestion(title="Model", rows=rows))
            if answer is None:
                return False
            models = [models[answer.row]]
        await self._use(models[0])
        return True

    async def _take_embedded(self) -> bool:
        await make_ready(EMBEDDED, self._note)
        await self._use(EMBEDDED)
        self._note(
            "it is small and not meant for coding: it answers and branches, and uses no tools"
        )
        return True

    async def _use(self, model: str) -> None:
        """Take a model, unless the conversation has one already."""
        conversation = self._chat.conversation
        if conversation.session is None:
            await conversation.set_model(model)
            self._chat.live.model = conversation.blank().model
            self._chat.live.effort = conversation.blank().effort
            self._note(f"the model is {self._chat.live.model}; /model changes it")
        elif self._chat.live.model.partition(":")[0] == model.partition(":")[0]:
            self._note("the next message uses it; after an error, Enter tries again")
        else:
            self._note(f"/model {model} uses it")
        self._screen.refresh()

    async def _running(self) -> dict[str, list[str]]:
        """The servers on this machine that answer, with their models."""
        found: dict[str, list[str]] = {}
        # A server that accepts and says nothing must not hold the first screen back.
        with anyio.move_on_after(PROBE_SECONDS):
            for info in await self._app.host.available_models(SERVERS):
                if "embed" not in info.name:
                    found.setdefault(info.provider, []).append(f"{info.provider}:{info.name}")
        return found

    def _note(self, text: str, *, is_wrong: bool = False) -> None:
        self._screen.show(NoteBlock(text=text, level="warning" if is_wrong else "info"))


def _some(models: list[str]) -> str:
    """A few of the models, by their own names."""
    names = [name.partition(":")[2] for name in models]
    more = f" and {len(names) - 2} more" if len(names) > 3 else ""
    return ", ".join(names[: 2 if more else 3]) + more


def _embedded_detail() -> str:
    if not missing_weights(EMBEDDED, os.environ):
        return "not meant for coding"
    if not has_engine():
        return "needs `pip install 'weft[local]'`"
    size = size_of(EMBEDDED.partition(":")[2]) // 10**6
    return f"{size} MB once; not meant for coding"


def _opener() -> list[str]:
    """The command that opens an address; empty where no browser has a screen."""
    if words := shlex.split(os.environ.get("BROWSER", "")):
        return words
    if sys.platform == "darwin":
        return ["open"]
    # Without a display it would be a browser for terminals, which would draw over ours.
    has_screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return ["xdg-open"] if has_screen and shutil.which("xdg-open") else []
