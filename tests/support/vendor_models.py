"""Models that pose as each vendor's: they think, sign, call with ids as that vendor does, and every
request to them is judged.

Nothing is sent anywhere: a request is encoded as the real adapter would and handed to validators
that know neither our context nor our encoders (`tests.support.legality`).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from tests.support.example_count import is_whole_suite
from tests.support.legality import (
    validate_anthropic,
    validate_gemini,
    validate_openai_chat,
    validate_openai_responses,
)
from tests.support.legality.vendor_requests import own_proofs, sendable
from weft.api.session import Session
from weft.context import INSTRUCTIONS, ContextTarget, build, notes_for_model
from weft.providers import ModelInfo, ModelRequest
from weft.providers.anthropic.encode import encode as encode_anthropic
from weft.providers.catalogue import shipped
from weft.providers.google.encode import encode as encode_gemini
from weft.providers.openai.encode import encode as encode_responses
from weft.providers.openai_chat.encode import COMPATIBLE, DEEPSEEK, MISTRAL, OPENAI
from weft.providers.openai_chat.encode import encode as encode_chat
from weft.providers.script import CallTogether, CallTool, SayText, Step, Think
from weft.providers.scripted import ScriptedModel
from weft.runtime.ports.local import LocalPort
from weft.thinking_levels import THINKING_LEVELS

Json = dict[str, Any]


class VendorProfile(msgspec.Struct, frozen=True):
    """A model of some vendor, how a request to it is written, and how that is judged."""

    info: ModelInfo
    encode: Callable[[ModelRequest, ModelInfo], Json]
    judge: Callable[[Json, Collection[str]], list[str]]
    call_id: str
    """How the vendor's ids of calls begin; empty for one that has none."""
    signs_calls: bool = False

    def illegal(self, request: ModelRequest) -> list[str]:
        """Which of the vendor's rules a request breaks."""
        body = sendable(self.encode(request, self.info))
        found = self.judge(body, own_proofs(request, self.info.provider))
        return [f"{self.info.provider}:{self.info.name}: {rule}" for rule in found]


def _info(provider: str, name: str, *, sees: bool = True) -> ModelInfo:
    known = shipped().info(provider, name)
    return ModelInfo(
        provider=provider,
        name=name,
        thinks=known.thinks,
        levels=known.levels,
        default_level=known.default_level,
        sees_images=sees,
        price_input=1.0,
        price_output=1.0,
    )


def _gemini(name: str) -> VendorProfile:
    return VendorProfile(
        _info("google", name),
        encode_gemini,
        lambda body, signed: validate_gemini(body, model=name, signed=signed),
        "",
        signs_calls=True,
    )


def _claude(name: str) -> VendorProfile:
    return VendorProfile(
        _info("anthropic", name),
        encode_anthropic,
        lambda body, signed: validate_anthropic(body, signed=signed),
        "toolu_",
    )


VENDOR_PROFILES: dict[str, VendorProfile] = {
    "claude": _claude("claude-sonnet-4-6"),
    "old-claude": _claude("claude-sonnet-4-5"),
    "new-claude": _claude("claude-opus-5-5"),
    "gpt": VendorProfile(
        _info("openai", "gpt-5"),
        encode_responses,
        lambda body, signed: validate_openai_responses(body, signed=signed),
        "call_",
    ),
    "chat": VendorProfile(
        _info("openai-chat", "gpt-4.1"),
        lambda request, info: encode_chat(request, info, OPENAI),
        lambda body, signed: validate_openai_chat(body, server="openai"),
        "call_",
    ),
    "mistral": VendorProfile(
        _info("mistral", "mistral-medium-latest"),
        lambda request, info: encode_chat(request, info, MISTRAL),
        lambda body, signed: validate_openai_chat(body, server="mistral"),
        "",
    ),
    "deepseek": VendorProfile(
        _info("deepseek", "deepseek-v4-pro", sees=False),
        lambda request, info: encode_chat(request, info, DEEPSEEK),
        lambda body, signed: validate_openai_chat(body, server="deepseek"),
        "call_",
    ),
    "compatible": VendorProfile(
        _info("elsewhere", "open-model", sees=False),
        lambda request, info: encode_chat(request, info, COMPATIBLE),
        lambda body, signed: validate_openai_chat(body),
        "same",
    ),
    "gemini": _gemini("gemini-3-pro-preview"),
    "old-gemini": _gemini("gemini-2.5-flash"),
    "flash": _gemini("gemini-3.8-flash"),
}


class VendorModel:
    """A model in one of these poses: plays what is laid out for it, then says something short.

    Keeps what was wrong with any request.
    """

    def __init__(self, name: str, *, window: int = 200_000) -> None:
        self.pose = VENDOR_PROFILES[name]
        self.laid_out: list[Sequence[Step]] = []
        self.wrong: list[str] = []
        self.asked = 0
        info = msgspec.structs.replace(
            self.pose.info, context_window=window, max_output_tokens=max(window // 10, 100)
        )
        self.model = ScriptedModel([], choose=self._choose, info=info)

    @property
    def name(self) -> str:
        """As a session's log has it."""
        return f"{self.pose.info.provider}:{self.pose.info.name}"

    def _choose(self, request: ModelRequest) -> Sequence[Step]:
        self.asked += 1
        self.wrong += self.pose.illegal(request)
        if request.system == INSTRUCTIONS:
            return (SayText(text=f"summary {self.asked}"),)
        return self.laid_out.pop(0) if self.laid_out else (SayText(text=f"ok {self.asked}"),)

    def thinks(self, text: str = "hm", *, redacted: bool = False) -> Think:
        """Reasoning with this vendor's proof; one that does not reason only mutters."""
        info = self.pose.info
        if not info.thinks:
            return Think(text=text)
        proof = base64.b64encode(f"{info.provider}/{info.name}/{text}".encode()).decode()
        proof = f"rs_{len(text)} {proof}" if info.provider == "openai" else proof
        hides = redacted and info.provider in ("anthropic", "openai")
        return Think(
            text="" if hides else text,
            signature="" if hides else proof,
            redacted=proof if hides else "",
        )

    def calls(self, tool: str, *args: Json) -> CallTogether:
        """Calls with ids as this vendor makes them: its own, always the same one, or none."""
        made = []
        for place, each in enumerate(args):
            prefix = self.pose.call_id
            call_id = prefix if prefix in ("", "same") else f"{prefix}{self.asked}_{place}"
            signature = base64.b64encode(f"{self.name}/{place}".encode()).decode()
            is_signed = self.pose.signs_calls and place == 0
            made.append(
                CallTool(name=tool, args=each, id=call_id, signature=signature if is_signed else "")
            )
        return CallTogether(calls=tuple(made))


async def illegal_anywhere(session: Session) -> list[str]:
    """Which rules of which vendors the present context breaks, asked with reasoning and without."""
    port = await session._port()
    assert isinstance(port, LocalPort)
    line = await port.actor.log.context_line()
    found: list[str] = []
    levels = THINKING_LEVELS if is_whole_suite() else ("off", "high")
    for pose in VENDOR_PROFILES.values():
        target = ContextTarget(pose.info.provider, pose.info.name)
        messages = build(
            line.entries,
            target,
            summary=line.summary,
            upto=line.upto,
            notes=notes_for_model(port.state.tree),
        )
        for level in levels:
            request = ModelRequest(
                model=pose.info.name, messages=messages, system="You work here.", thinking=level
            )
            found += pose.illegal(request)
    return found
