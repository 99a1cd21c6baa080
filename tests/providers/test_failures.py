"""What vendors say when they refuse, and what becomes of it."""

from __future__ import annotations

import json

import pytest

from weft.errors import (
    AuthFailed,
    ContextTooLong,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    RequestRefused,
)
from weft.providers.errors import from_reply, short

NOW = 1_800_000_000.0
SECRET = "sk-ant-api03-verysecretkey"


def failed(status: int, body: object = b"", headers: dict[str, str] | None = None) -> ProviderError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return from_reply("acme", status, headers or {}, raw, now=NOW, secret=SECRET)


def said(message: str, kind: str = "invalid_request_error", code: str | None = None) -> object:
    return {"error": {"message": message, "type": kind, "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "expected", "retryable"),
    [
        (401, said("bad key"), AuthFailed, False),
        (403, said("not yours"), AuthFailed, False),
        (400, said("max_tokens is required"), RequestRefused, False),
        (404, said("model not found"), RequestRefused, False),
        (422, {"detail": "field required"}, RequestRefused, False),
        (413, said("too big"), ContextTooLong, False),
        (400, said("prompt is too long: 210000 tokens > 200000 maximum"), ContextTooLong, False),
        (400, said("This model's maximum context length is 8192 tokens"), ContextTooLong, False),
        (400, said("x", code="context_length_exceeded"), ContextTooLong, False),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "message": "The input token count (9) exceeds the maximum (8)",
                }
            },
            ContextTooLong,
            False,
        ),
        (
            400,
            said("input length and `max_tokens` exceed context limit: 199 + 64 > 200"),
            ContextTooLong,
            False,
        ),
        (400, said("the request exceeds the available context size"), ContextTooLong, False),
        (429, said("slow down", "rate_limit_error"), RateLimited, True),
        (
            429,
            said("You exceeded your current quota", code="insufficient_quota"),
            RateLimited,
            False,
        ),
        (429, said("This would exceed your monthly spend limit"), RateLimited, False),
        (402, said("Insufficient Balance"), RateLimited, False),
        (500, said("oops"), ProviderUnavailable, True),
        (502, b"<html><title>502 Bad Gateway</title></html>", ProviderUnavailable, True),
        (503, b"", ProviderUnavailable, True),
        (529, said("Overloaded", "overloaded_error"), ProviderUnavailable, True),
        (408, b"", ProviderUnavailable, True),
        (418, b"short and stout", RequestRefused, False),
    ],
)
def test_each_refusal_is_the_right_error(
    status: int, body: object, expected: type[ProviderError], retryable: bool
) -> None:
    error = failed(status, body)
    assert type(error) is expected
    assert error.retryable is retryable
    assert error.status == status
    assert str(error).startswith("acme ")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:20 GMT"}, 20.0),
        ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, 0.0),
        ({"retry-after": "1m2s"}, 62.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_time_to_wait_is_read_in_every_form(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert failed(429, said("x"), headers).retry_after_seconds == seconds


def test_googles_delay_is_found_in_its_details_and_makes_a_quota_worth_waiting_for() -> None:
    details: list[object] = [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.074824224s"}
    ]
    quota = {"code": 429, "message": "You exceeded your current quota", "details": details}
    error = failed(429, [{"error": quota}])
    assert error.retry_after_seconds == pytest.approx(34.07, abs=0.01)
    assert error.retryable


def test_a_page_of_html_is_reduced_to_its_title() -> None:
    page = b"<!DOCTYPE html><html><head><title>  Just a\n moment... </title><style>x</style></head>"
    text = str(failed(403, page + b"<body>" + b"lorem " * 9999, {"content-type": "text/html"}))
    assert text == (
        "acme does not allow this (403): an HTML page instead of an answer: 'Just a moment...'"
    )


def test_a_redirect_says_where_to() -> None:
    error = failed(301, b"", {"location": "https://elsewhere.test/v1"})
    assert "redirects to https://elsewhere.test/v1" in str(error)
    assert type(error) is RequestRefused


def test_no_key_and_no_novel_reaches_a_message() -> None:
    echo = f"Incorrect API key provided: {SECRET}. Bearer abcdefghijklmnop. {'x' * 9000}"
    text = str(failed(401, said(echo)))
    assert SECRET not in text
    assert "abcdefghijklmnop" not in text
    assert len(text) < 500
    assert short("key AIzaSyA-1234567890abcdef is wrong") == "key *** is wrong"


@pytest.mark.parametrize(
    "body",
    [b"null", b"[]", b"7", b'{"error": null}', b'{"error": []}', b"[" * 100_000, b"\xff\xfe"],
)
def test_a_senseless_body_is_no_trouble(body: bytes) -> None:
    assert type(failed(500, body)) is ProviderUnavailable


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (said("no more", code="insufficient_quota"), {"retry-after": "5"}),
        (said("Your credit balance is too low"), {"retry-after": "5"}),
        (said("slow down"), {"x-should-retry": "false"}),
        (
            {
                "error": {
                    "code": 429,
                    "message": "You exceeded your current quota",
                    "details": [
                        {"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]},
                        {"retryDelay": "3s"},
                    ],
                }
            },
            {},
        ),
    ],
)
def test_what_waiting_does_not_mend_is_not_tried_again(
    body: object, headers: dict[str, str]
) -> None:
    error = failed(429, body, headers)
    assert isinstance(error, RateLimited)
    assert not error.retryable
