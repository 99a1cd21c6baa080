"""The ends of each vendor's streams, as the vendors document them: one fixture per finish reason
and protocol.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.support.vendor_replies import VendorReply, lines, stream
from weft.events import FinishReason
from weft.providers import StopReason

HELLO = "half an answer"


class VendorEnd(NamedTuple):
    """How an answer ends, and what becomes of it."""

    reply: VendorReply
    stop: StopReason
    finish: FinishReason
    """Of a turn in which every answer ends so."""
    says: str
    """What the user reads of it."""


def _anthropic(reason: str, text: str = HELLO, **delta: Any) -> VendorReply:
    words = {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}}
    said = {"type": "text_delta", "text": text}
    block = [
        words,
        {"type": "content_block_delta", "index": 0, "delta": said},
        {"type": "content_block_stop", "index": 0},
    ]
    usage = {"input_tokens": 9, "output_tokens": 5}
    return stream(
        {"type": "message_start", "message": {"role": "assistant", "usage": usage}},
        *(block if text else []),
        {"type": "message_delta", "delta": {"stop_reason": reason, **delta}, "usage": usage},
        {"type": "message_stop"},
    )


def _responses(reason: str, text: str = HELLO) -> VendorReply:
    kind = "response.incomplete" if reason else "response.completed"
    cut = {"reason": reason} if reason else None
    return stream(
        {"type": "response.output_text.delta", "output_index": 0, "delta": text},
        {"type": kind, "response": {"incomplete_details": cut, "usage": {"input_tokens": 9}}},
    )


def _chat(reason: str, text: str = HELLO, **choice: Any) -> VendorReply:
    said = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": reason, **choice}
    return stream({"choices": [said]}, {"choices": [end]})


def _gemini(reason: str, text: str = HELLO, **candidate: Any) -> VendorReply:
    content = {"role": "model", "parts": [{"text": text}]}
    said = {"candidates": [{"content": content}]}
    end = {"candidates": [{"finishReason": reason, **candidate}], "usageMetadata": {}}
    return stream(*([said] if text else []), end)


def _ollama(reason: str, text: str = HELLO) -> VendorReply:
    said = {"message": {"role": "assistant", "content": text}, "done": False}
    end = {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reason}
    return lines(said, end)


_CYBER = {"type": "refusal", "category": "cyber", "explanation": "This looks like an attack."}
_BLOCKED = [
    {"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"},
    {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True},
]
_REFUSED = stream(
    {"type": "response.refusal.delta", "output_index": 0, "delta": "I can't help with that."},
    {"type": "response.completed", "response": {"usage": {"input_tokens": 9}}},
)
_REFUSED_CHAT = stream(
    {"choices": [{"index": 0, "delta": {"refusal": "I can't help."}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
)
_FILTER = {"violence": {"filtered": True, "severity": "high"}, "hate": {"filtered": False}}
_BLOCKED_PROMPT = {"blockReason": "PROHIBITED_CONTENT", "safetyRatings": []}

VENDOR_ENDS: dict[tuple[str, str], VendorEnd] = {
    ("anthropic", "refusal"): VendorEnd(
        _anthropic("refusal", "", stop_details=_CYBER), "refusal", "refusal", "an attack"
    ),
    ("anthropic", "refusal half-way"): VendorEnd(
        _anthropic("refusal"), "refusal", "refusal", "refused to answer"
    ),
    ("anthropic", "max_tokens"): VendorEnd(
        _anthropic("max_tokens"), "length", "length", "output limit"
    ),
    ("anthropic", "model_context_window_exceeded"): VendorEnd(
        _anthropic("model_context_window_exceeded"), "length", "length", "context_window"
    ),
    ("anthropic", "pause_turn"): VendorEnd(
        _anthropic("pause_turn"), "pause", "paused", "pause_turn"
    ),
    ("openai", "refusal"): VendorEnd(_REFUSED, "refusal", "refusal", "refused"),
    ("openai", "content_filter"): VendorEnd(
        _responses("content_filter"), "content_filter", "content_filter", "content filter"
    ),
    ("openai", "max_output_tokens"): VendorEnd(
        _responses("max_output_tokens"), "length", "length", "output limit"
    ),
    ("openai-chat", "refusal"): VendorEnd(_REFUSED_CHAT, "refusal", "refusal", "refused"),
    ("openai-chat", "content_filter"): VendorEnd(
        _chat("content_filter"), "content_filter", "content_filter", "content filter"
    ),
    ("openai-chat", "content_filter of Azure"): VendorEnd(
        _chat("content_filter", content_filter_results=_FILTER),
        "content_filter",
        "content_filter",
        "violence",
    ),
    ("openai-chat", "length"): VendorEnd(_chat("length"), "length", "length", "output limit"),
    ("openai-chat", "a block behind OpenRouter"): VendorEnd(
        _chat("stop", native_finish_reason="SAFETY"), "safety", "safety", "SAFETY"
    ),
    ("openai-chat", "a malformed call behind OpenRouter"): VendorEnd(
        _chat("stop", native_finish_reason="MALFORMED_FUNCTION_CALL"),
        "malformed_call",
        "malformed_call",
        "malformed",
    ),
    ("google", "SAFETY"): VendorEnd(
        _gemini("SAFETY", safetyRatings=_BLOCKED), "safety", "safety", "DANGEROUS_CONTENT"
    ),
    ("google", "PROHIBITED_CONTENT"): VendorEnd(
        _gemini("PROHIBITED_CONTENT", ""), "safety", "safety", "PROHIBITED_CONTENT"
    ),
    ("google", "a blocked prompt"): VendorEnd(
        stream({"promptFeedback": _BLOCKED_PROMPT}), "safety", "safety", "the prompt was blocked"
    ),
    ("google", "RECITATION"): VendorEnd(
        _gemini("RECITATION"), "content_filter", "content_filter", "RECITATION"
    ),
    ("google", "SPII"): VendorEnd(_gemini("SPII"), "content_filter", "content_filter", "SPII"),
    ("google", "MAX_TOKENS"): VendorEnd(_gemini("MAX_TOKENS"), "length", "length", "output limit"),
    ("google", "MALFORMED_FUNCTION_CALL"): VendorEnd(
        _gemini("MALFORMED_FUNCTION_CALL", "", finishMessage="print(default_api.read("),
        "malformed_call",
        "malformed_call",
        "malformed",
    ),
    ("google", "UNEXPECTED_TOOL_CALL"): VendorEnd(
        _gemini("UNEXPECTED_TOOL_CALL", ""), "malformed_call", "malformed_call", "malformed"
    ),
    ("ollama", "length"): VendorEnd(_ollama("length"), "length", "length", "output limit"),
}
GOOD_ENDS: dict[str, VendorReply] = {
    "anthropic": _anthropic("end_turn", ", and the rest."),
    "openai": _responses("", ", and the rest."),
    "openai-chat": _chat("stop", ", and the rest."),
    "google": _gemini("STOP", ", and the rest."),
    "ollama": _ollama("stop", ", and the rest."),
}
"""An answer that comes to its own end."""
CUT_IN_CALL: dict[str, VendorReply] = {
    "anthropic": stream(
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
        {"type": "message_stop"},
    ),
    "openai": stream(
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "function_call", "call_id": "call_1", "name": "look"},
        },
        {
            "type": "response.incomplete",
            "response": {"incomplete_details": {"reason": "max_output_tokens"}},
        },
    ),
    "openai-chat": _chat(
        "length",
        "",
        delta={"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "look"}}]},
    ),
}
"""The output limit falls between a call's name and its arguments."""
