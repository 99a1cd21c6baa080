"""Which words for thinking each vendor's models accept.

From the vendors' pages and from what their services answer to a wrong word ("Unsupported value:
'minimal' is not supported with the 'gpt-5.1' model. Supported values are: …").  Kept apart from our
catalogue, so that it can judge it.
"""

from __future__ import annotations

import re

_LOW_TO_HIGH = "low medium high"
_ACCEPTED: dict[str, tuple[tuple[str, str], ...]] = {
    "anthropic": (
        (r"claude-(opus|sonnet)-4-6", f"{_LOW_TO_HIGH} max"),
        (r"claude-opus-4-5", _LOW_TO_HIGH),
        (r"claude-(opus-4-[78]|[a-z]+-5)", f"{_LOW_TO_HIGH} xhigh max"),
        (r"claude-\w+-6", f"{_LOW_TO_HIGH} xhigh max"),
    ),
    "openai": (
        (r"gpt-5-pro", "high"),
        (r"gpt-5\.[245]-pro", "medium high xhigh"),
        (r"gpt-5(\.1)?-codex-mini", "medium high"),
        (r"gpt-5\.[23]-codex|gpt-5\.1-codex-max", f"{_LOW_TO_HIGH} xhigh"),
        (r"gpt-5(\.1)?-codex", _LOW_TO_HIGH),
        (r"gpt-6-astra|gpt-6\.1-sol", f"{_LOW_TO_HIGH} xhigh max"),
        (r"gpt-(5\.6|6)", f"none {_LOW_TO_HIGH} xhigh max"),
        (r"gpt-5\.[2-5]", f"none {_LOW_TO_HIGH} xhigh"),
        (r"gpt-5\.1", f"none {_LOW_TO_HIGH}"),
        (r"gpt-5", f"minimal {_LOW_TO_HIGH}"),
        (r"o\d", _LOW_TO_HIGH),
    ),
    "google": (
        (r"gemini-4-argon", _LOW_TO_HIGH),
        (r"gemini-3\.[78]-flash", _LOW_TO_HIGH),
        (r"gemini-3\.1-pro", _LOW_TO_HIGH),
        (r"gemini-3-pro", "low high"),
        (r"gemini-3.*flash", f"minimal {_LOW_TO_HIGH}"),
    ),
    "xai": (
        (r"grok-4\.[67]", f"{_LOW_TO_HIGH} xhigh"),
        (r"grok-4\.5", _LOW_TO_HIGH),
        (r"grok-4\.3", f"none {_LOW_TO_HIGH}"),
    ),
    "deepseek": ((r"deepseek", "low high max"),),
    "mistral": ((r"mistral-(medium-(3-5|latest)|small-latest)", "none high"),),
    "groq": ((r"openai/gpt-oss", _LOW_TO_HIGH),),
    "together": ((r"openai/gpt-oss", _LOW_TO_HIGH),),
    "ollama": ((r"gpt-oss", _LOW_TO_HIGH),),
    # It has its own words for all models, and passes on what each of their vendors takes.
    "openrouter": ((r"(anthropic|openai)/", _LOW_TO_HIGH),),
}
_NOT_IN_CHAT = {"max"}
"""Words that OpenAI's models take in its newer protocol only."""


def accepted(vendor: str, model: str) -> tuple[str, ...]:
    """The words that a model takes; none for one that takes no such word at all."""
    table = _ACCEPTED.get("openai" if vendor == "openai-chat" else vendor, ())
    words = next((words for name, words in table if re.match(name, model)), "").split()
    return tuple(word for word in words if vendor != "openai-chat" or word not in _NOT_IN_CHAT)
