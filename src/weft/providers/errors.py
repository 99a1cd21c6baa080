"""Vendors' error replies, translated to our errors.

Pure.  The message names the provider and what it said, short and without secrets: the key is cut
out wherever a vendor echoes it, and an HTML page is reduced to its title.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from weft.errors import (
    AuthFailed,
    ContextTooLong,
    PolicyRefused,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    RequestRefused,
)

MAX_BODY = 64 * 1024
"""Bytes of a refusal that are looked at."""
_MAX_MESSAGE = 400

# Patterns are compiled when something failed, not at every start.
# There is no common code for a prompt that is too long: most answer 400 and say it in words. A form
# that is missing here keeps a session from compacting, so the list is wide.
_TOO_LONG = (
    r"context.?length|context.?window|maximum context|prompt is too long|input is too long"
    r"|exceed_context_size|exceeds? the (maximum|available|model).{0,40}(token|context)"
    r"|input token count.{0,40}exceeds|too many (input )?tokens|context limit|request_too_large"
    r"|string_above_max_length|reduce the length"
)
_SPENT = (
    r"insufficient_quota|spend(ing)? limit|credit balance|out of credits"
    r"|insufficient (balance|funds|credits)|PerDay"
)
_REGION = r"unsupported_country|country, region, or territory|location is not supported"
_UNVERIFIED = r"organi[sz]ation must be verified|verify organi[sz]ation"
_BAD_KEY = r"API_KEY_(INVALID|EXPIRED)|invalid_api_key|api key (is )?(not valid|invalid|expired)"
_NO_MODEL = (
    r"model_not_found|models?/\S+ is not found|not_found_error model\b|not a valid model"
    r"|(invalid|unknown|unsupported|no such) model|try pulling"
    r"|model.{0,80}?(not found|not exist|does not exist|is not available|not supported)"
)
_AGAIN_IN = r"(?:try again|retry)(?: after| in)? ((?:\d+m(?!s))?(?:\d+(?:\.\d+)?s)?(?:\d+ms)?)"
_PERHAPS_SPENT = r"billing|usage limit|exceeded your current quota"
"""What vendors also say when it is only too fast; then they say how long to wait."""
_POLICY = r"\b\w+_policy\b|policy_violation|invalid_prompt|ResponsibleAIPolicy|content_filter"
_POLICY_WORDS = r"usage polic(y|ies)|content filtering policy|flagged as potentially"
"""What vendors call a request that they do not answer for what it says, and say of it."""
_KEY = r"\b(?:(?:sk|pk|gsk|xai|key)[-_]|AIza|Bearer )[A-Za-z0-9*._-]{8,}"
_TITLE = r"<title[^>]*>(.*?)</title>"
_TAG = r"<(script|style).*?</\1>|<[^>]+>"
_DURATION = r"(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+)ms)?"

# An error inside a stream comes after status 200, so its kind stands in for the status. 529 is
# Anthropic's own for an overloaded service.
_KINDS: dict[str, tuple[type[ProviderError], int]] = {
    "overloaded_error": (ProviderUnavailable, 529),
    "api_error": (ProviderUnavailable, 500),
    "timeout_error": (ProviderUnavailable, 504),
    "server_error": (ProviderUnavailable, 500),
    "internal": (ProviderUnavailable, 500),
    "unavailable": (ProviderUnavailable, 503),
    "deadline_exceeded": (ProviderUnavailable, 504),
    "rate_limit_error": (RateLimited, 429),
    "rate_limit_exceeded": (RateLimited, 429),
    "resource_exhausted": (RateLimited, 429),
    "insufficient_quota": (RateLimited, 429),
    "authentication_error": (AuthFailed, 401),
    "permission_error": (AuthFailed, 403),
    "permission_denied": (AuthFailed, 403),
    "unauthenticated": (AuthFailed, 401),
    "invalid_api_key": (AuthFailed, 401),
    "request_too_large": (ContextTooLong, 413),
    "context_length_exceeded": (ContextTooLong, 400),
    "exceed_context_size_error": (ContextTooLong, 400),
}


class VendorError(msgspec.Struct, frozen=True, kw_only=True):
    """What a vendor said of a failure."""

    message: str
    kind: str = ""
    """Its own words for the kind of failure: type, code or status, joined."""
    retry_after: float | None = None
    status: int | None = None


def from_reply(
    provider: str,
    status: int,
    headers: dict[str, str],
    body: bytes,
    *,
    now: float,
    secret: str = "",
) -> ProviderError:
    """The error that an HTTP reply stands for.

    `now` is wall-clock time, for dates in `retry-after`.
    """
    reported = read_body(body, headers.get("content-type", ""))
    # Never followed: the request carries the key, and the other host need not be the vendor's.
    if 300 <= status < 400:
        place = headers.get("location", "another address")[:200]
        reported = VendorError(message=f"it redirects to {place}; set the base URL to that")
    after = _retry_after(headers, now)
    error = _error(
        provider,
        status,
        reported.message,
        kind=reported.kind,
        after=reported.retry_after if after is None else after,
        secret=secret,
    )
    # A header that the clients of OpenAI and Anthropic obey; it knows more than the status.
    if headers.get("x-should-retry") == "false":
        error.retryable = False
    return error


def from_event(
    provider: str, reported: VendorError, *, secret: str = "", fallback_status: int = 500
) -> ProviderError:
    """The error that an event in the middle of a stream stands for."""
    status = reported.status
    if status is None:
        words = reported.kind.lower().split()
        status = next((_KINDS[word][1] for word in words if word in _KINDS), None)
    if status is None:
        status = 400 if "invalid" in reported.kind.lower() else fallback_status
    return _error(
        provider,
        status,
        reported.message,
        kind=reported.kind,
        after=reported.retry_after,
        secret=secret,
    )


class _Verdict(NamedTuple):
    """What kind of error it is, in a few words, and what it is about."""

    error: type[ProviderError]
    words: str
    topic: str = ""
    retryable: bool | None = None
    """None: as the class says."""


def _error(
    provider: str, status: int, message: str, *, kind: str, after: float | None, secret: str
) -> ProviderError:
    everything = f"{kind} {message}"
    after = _wait_in_words(message) if after is None and status == 429 else after
    found = _of_account(status, everything, after) or _of_request(status, kind, message)
    error = found.error(
        f"{provider} {found.words} ({status}): {short(message, secret)}",
        status=status,
        retry_after_seconds=after,
    )
    error.topic = found.topic
    if found.retryable is not None:
        error.retryable = found.retryable
    if isinstance(error, PolicyRefused):
        error.is_filtered = _says("content_filter", everything)
    return error


def _of_account(status: int, everything: str, after: float | None) -> _Verdict | None:
    """What is wrong with the key, the account or where it is used; None for all else."""
    # Vendors give these a 400 or a 403 as well, so the words come before the status.
    if status in (400, 401, 403) and _says(_REGION, everything):
        return _Verdict(RequestRefused, "does not serve this region", "region")
    if status in (400, 401, 403, 404) and _says(_UNVERIFIED, everything):
        return _Verdict(RequestRefused, "wants the organization to be verified", "verification")
    # 429 means both too fast and no credit left. Only the first is worth waiting for.
    spent = status == 402 or (status in (400, 403, 429) and _says(_SPENT, everything))
    spent = spent or (status == 429 and after is None and _says(_PERHAPS_SPENT, everything))
    if spent:
        return _Verdict(RateLimited, "has no budget left for this key", "quota", retryable=False)
    if status == 429:
        # No advice to wait where the vendor names a time: `with_retry_time` adds that.
        return _Verdict(RateLimited, "asks to slow down", "rate" if after is None else "")
    if status == 401 or (status in (400, 403) and _says(_BAD_KEY, everything)):
        return _Verdict(AuthFailed, "refused the key", "key")
    return _Verdict(AuthFailed, "does not allow this", "permission") if status == 403 else None


def _of_request(status: int, kind: str, message: str) -> _Verdict:
    everything = f"{kind} {message}"
    if status == 413 or (400 <= status < 500 and _says(_TOO_LONG, everything)):
        return _Verdict(ContextTooLong, "says that the conversation is too long", "context")
    # Before the status: in a stream it comes as a failure of the server, which would be retried.
    is_policy = _says(_POLICY, kind) or _says(_POLICY_WORDS, message)
    if is_policy and (status == 400 or status >= 500):
        return _Verdict(PolicyRefused, "does not answer this")
    # Timeout and conflict are repeated by the vendors' own clients, too.
    if status >= 500 or status in (408, 409, 425):
        return _Verdict(ProviderUnavailable, "is not available")
    if status in (400, 404) and _says(_NO_MODEL, everything):
        return _Verdict(RequestRefused, "does not have this model", "model")
    # The model wrote a call that the server could not read; it may write another.
    if _says("tool_use_failed", kind):
        return _Verdict(RequestRefused, "could not read the model's tool call", retryable=True)
    return _Verdict(RequestRefused, "refused the request", "address" if status == 404 else "")


def _wait_in_words(message: str) -> float | None:
    """`Please try again in 1m2.5s.`: OpenAI says it here, and not always in a header."""
    found = re.search(_AGAIN_IN, message, re.IGNORECASE)
    return _seconds(found[1]) if found else None


def _says(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


# --- reading ---------------------------------------------------------------------------


def read_body(body: bytes, content_type: str = "") -> VendorError:
    """What a refusal's body says, in whatever form it comes."""
    text = body[:MAX_BODY].decode("utf-8", "replace").strip()
    if not text:
        return VendorError(message="no reason given")
    try:
        value = msgspec.json.decode(text.encode())
    except (msgspec.MsgspecError, RecursionError):
        if "html" in content_type or text.lstrip().lower().startswith(("<!doctype", "<html")):
            return VendorError(message=_page(text))
        return VendorError(message=text)
    return read_value(value)


def read_value(value: Any) -> VendorError:
    """What a decoded error says: OpenAI's, Anthropic's, Google's and the plainer forms."""
    # Google wraps the error of a stream in a list.
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return VendorError(message=str(value))
    # `detail` is what FastAPI servers say; Ollama's `error` is plain text.
    inner = value.get("error", value.get("detail", value))
    if not isinstance(inner, dict):
        return VendorError(message=str(inner))
    kinds = [inner.get("type"), inner.get("code"), inner.get("status")]
    code = inner.get("code")
    # Google names the quota that is used up; one that is counted per day is not worth a retry.
    # It names the reason of a refusal there, too: a bad key is a 400 like any other.
    kinds += [detail.get("reason", "") for detail in _dicts(inner.get("details"))]
    kinds += [
        violation.get("quotaId", "")
        for detail in _dicts(inner.get("details"))
        for violation in _dicts(detail.get("violations"))
    ]
    return VendorError(
        message=str(inner.get("message") or inner),
        kind=" ".join(str(kind) for kind in kinds if kind),
        retry_after=_retry_delay(inner),
        # A word with OpenAI, the HTTP status with Google and OpenRouter.
        status=code if isinstance(code, int) and 400 <= code < 600 else None,
    )


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _retry_delay(error: dict[str, Any]) -> float | None:
    """Google's own place for it: a detail with `retryDelay: "34s"`."""
    for detail in _dicts(error.get("details")):
        if isinstance(detail.get("retryDelay"), str):
            return _seconds(detail["retryDelay"])
    return None


def _retry_after(headers: dict[str, str], now: float) -> float | None:
    if (exact := headers.get("retry-after-ms", "")).replace(".", "", 1).isdigit():
        return float(exact) / 1000
    value = headers.get("retry-after", "").strip()
    if not value:
        return None
    # RFC 9110: seconds or a date. `30s` is no standard, but it is sent.
    seconds = _seconds(value if value[-1].isalpha() else f"{value}s")
    return _until(value, now) if seconds is None else seconds


def _seconds(text: str) -> float | None:
    """`34s`, `1m2.5s` or `120ms` in seconds."""
    found = re.fullmatch(_DURATION, text.strip())
    if not found or not any(found.groups()):
        return None
    minutes, seconds, milliseconds = (float(group or 0) for group in found.groups())
    return minutes * 60 + seconds + milliseconds / 1000


def _until(date: str, now: float) -> float | None:
    try:
        # The one form that RFC 9110 lets servers send; the two obsolete ones count as no answer.
        when = datetime.strptime(date, "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=UTC)
    except ValueError:
        return None
    return max(0.0, when.timestamp() - now)


def _page(text: str) -> str:
    found = re.search(_TITLE, text, re.IGNORECASE | re.DOTALL)
    words = found[1] if found else re.sub(_TAG, " ", text, flags=re.IGNORECASE | re.DOTALL)
    return f"an HTML page instead of an answer: {' '.join(words.split())[:120]!r}"


def short(message: str, secret: str = "") -> str:
    """A message fit to show: one line, bounded, without keys."""
    if secret:
        message = message.replace(secret, "***")
    # Also by shape: vendors echo a wrong key with stars in its middle, which is not `secret`.
    message = " ".join(re.sub(_KEY, "***", message).split())
    return message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]}…"
