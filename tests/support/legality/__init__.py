"""Judges of requests, one for each vendor's protocol, written from the vendors' documented rules.

They know nothing of our encoders: each takes a request body and names every rule that it breaks.
"""

from tests.support.legality.anthropic import validate_anthropic
from tests.support.legality.chat import validate_openai_chat
from tests.support.legality.gemini import validate_gemini
from tests.support.legality.responses import validate_openai_responses

__all__ = [
    "validate_anthropic",
    "validate_gemini",
    "validate_openai_chat",
    "validate_openai_responses",
]
