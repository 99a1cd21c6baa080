"""Models: the neutral request and stream, and one adapter a vendor.

Knows messages, not facts: storing, retrying and deciding are the turn's.  The interface is imported
at once; the scripted and the replaying model only when they are asked for, and the vendors'
adapters only by their own files.
"""

from typing import TYPE_CHECKING

from weft.providers.base import (
    SENT_BODY,
    CallArgs,
    CallResult,
    CallResults,
    CallStarted,
    ChatMessage,
    EncodingModel,
    Message,
    Model,
    ModelInfo,
    ModelRequest,
    Provider,
    SentBody,
    StopReason,
    StreamEvent,
    StreamFinished,
    TextDone,
    TextPiece,
    ThinkingDone,
    ThinkingLevel,
    ThinkingPiece,
    ToolSpec,
    UsageSeen,
)

if TYPE_CHECKING:
    from weft.providers.abilities import FimTokens, TextAbilities, text_abilities
    from weft.providers.logprobs import ScoredPiece, TokenLogprob
    from weft.providers.replay import RecordingModel, ReplayModel, ReplayProvider
    from weft.providers.script import Script, ScriptedAnswer
    from weft.providers.scripted import ScriptedModel, ScriptedProvider

__all__ = [
    "SENT_BODY",
    "CallArgs",
    "CallResult",
    "CallResults",
    "CallStarted",
    "ChatMessage",
    "EncodingModel",
    "FimTokens",
    "Message",
    "Model",
    "ModelInfo",
    "ModelRequest",
    "Provider",
    "RecordingModel",
    "ReplayModel",
    "ReplayProvider",
    "ScoredPiece",
    "Script",
    "ScriptedAnswer",
    "ScriptedModel",
    "ScriptedProvider",
    "SentBody",
    "StopReason",
    "StreamEvent",
    "StreamFinished",
    "TextAbilities",
    "TextDone",
    "TextPiece",
    "ThinkingDone",
    "ThinkingLevel",
    "ThinkingPiece",
    "TokenLogprob",
    "ToolSpec",
    "UsageSeen",
    "text_abilities",
]

_LATER = {
    "ScriptedAnswer": "script",
    "Script": "script",
    "ScriptedModel": "scripted",
    "ScriptedProvider": "scripted",
    "RecordingModel": "replay",
    "ReplayModel": "replay",
    "ReplayProvider": "replay",
    "ScoredPiece": "logprobs",
    "TokenLogprob": "logprobs",
    "FimTokens": "abilities",
    "TextAbilities": "abilities",
    "text_abilities": "abilities",
}


def __getattr__(name: str) -> object:
    """Import what the way to a first request does not need, when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
