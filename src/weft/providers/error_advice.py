"""Advice for errors: what the user can do about what a vendor refused.

Pure.  An error says what the vendor said; this adds where the key came from, which model may have
been meant, or where to turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from weft.errors import ProviderError, did_you_mean


class ErrorContext(msgspec.Struct, frozen=True, kw_only=True):
    """What is known where an error came up."""

    provider: str
    title: str = ""
    """What the vendor calls itself."""
    model: str
    key_source: str = ""
    """Where the key came from: a variable, the settings, the saved keys."""
    url_source: str = ""
    """The variable or setting that names the address, where one does."""
    keys_at: str = ""
    """Where the vendor gives out keys."""
    known_models: Callable[[], Iterable[str]] = tuple


def advised(error: ProviderError, context: ErrorContext) -> ProviderError:
    """The error with what can be done about it; as it is where nothing is known."""
    is_down = context.provider == "ollama" and "could not reach" in str(error)
    advice = "`ollama serve` starts it" if is_down else _advice(error.topic, context)
    # The vendor's sentence goes on, so its full stop goes.
    text = _titled(str(error), context)
    told = f"{text.rstrip('. ')}; {advice}" if advice else text
    return error if told == str(error) else error.reworded(told)


def _titled(text: str, context: ErrorContext) -> str:
    """The sentence with the vendor as it writes itself, where it begins with our name for it."""
    title = context.title.partition(" (")[0]
    is_about_it = bool(title) and text.startswith(f"{context.provider} ")
    return title + text[len(context.provider) :] if is_about_it else text


def _advice(topic: str, context: ErrorContext) -> str:
    match topic:
        case "key":
            return _joined(_source(context), _another_key(context))
        case "permission":
            return _joined(_source(context), "use a key, or a model, that is allowed to")
        case "quota":
            return _joined(_source(context), "add credit with the provider, or use another model")
        case "model":
            return _model(context)
        case "region":
            return "use another provider, or one that passes requests on (OpenRouter, a gateway)"
        case "verification":
            return "the owner of the organization can verify it, or use another model"
        case "context":
            return "/compact shortens the conversation, or use a model with a larger window"
        case "rate":
            return "wait, or use another model"
        case "address":
            return f"is {context.url_source or 'the base URL'} right?"
        case _:
            return ""


def _another_key(context: ErrorContext) -> str:
    where = f" ({context.keys_at})" if context.keys_at else ""
    login = f"`weft auth login {context.provider}`"
    if not context.key_source or login in context.key_source:
        return f"{login} saves another{where}"
    # It comes before a saved one, which would never be used.
    return f"set another there, or unset it and save one with {login}{where}"


def _model(context: ErrorContext) -> str:
    if context.provider == "ollama":
        return f"`ollama pull {context.model}` downloads it"
    # A model that is listed may be gone, or not be this key's.
    others = (name for name in context.known_models() if name != context.model)
    near = did_you_mean(context.model, others).removeprefix("; ")
    return _joined(f"`weft models list {context.provider}` shows those that are known", near)


def _source(context: ErrorContext) -> str:
    return f"the key came from {context.key_source}" if context.key_source else ""


def _joined(*clauses: str) -> str:
    return "; ".join(filter(None, clauses))
