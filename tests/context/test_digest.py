"""The digest of a request: its form is fixed, no protocol is in it, and a growing line is cheap."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from tests.support.call_count import lines_run
from weft.context import MessageDigests, RequestDigests, message_digest, request_digest
from weft.ids import BlobId, CallUid
from weft.messages import (
    CallResult,
    CallResults,
    ChatMessage,
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
)

ASKED = ChatMessage(
    role="user",
    parts=(
        Text(text="look"),
        Image(media_type="image/png", data="aGk=", name="a.png"),
        File(name="b.txt", text="words"),
    ),
)
CALLED = ChatMessage(
    role="assistant",
    parts=(
        Thinking(text="hm", signature="s", provider="anthropic", model="m"),
        ToolCall(call_uid=CallUid("cal_1"), name="read", args={"path": "b", "a": 1}),
        ToolCall(call_uid=CallUid("cal_2"), name="read", raw_args="{"),
    ),
)
RESULTS = CallResults(
    results=(
        CallResult(call_uid="cal_1", provider_id="toolu_1", tool_name="read", text="words"),
        CallResult(
            call_uid="cal_2", provider_id="", tool_name="read", text="no JSON", is_error=True
        ),
    )
)
FORMS: list[tuple[Message, list[Any]]] = [
    (
        ASKED,
        [
            "user",
            [
                ["text", "look", ""],
                ["image", "image/png", hashlib.sha256(b"aGk=").hexdigest(), "a.png"],
                ["file", "b.txt", "text/plain", "words"],
            ],
        ],
    ),
    (
        CALLED,
        [
            "assistant",
            [
                ["thinking", "hm", "s", ""],
                ["call", "read", {"path": "b", "a": 1}, ""],
                ["call", "read", "{", ""],
            ],
        ],
    ),
    (RESULTS, ["results", [["read", "words", False, []], ["read", "no JSON", True, []]]]),
]


def compact(form: Any) -> bytes:
    return json.dumps(form, separators=(",", ":")).encode()


@pytest.mark.parametrize(("message", "form"), FORMS)
def test_a_message_is_hashed_in_the_form_that_is_written_down(
    message: Message, form: list[Any]
) -> None:
    assert message_digest(message) == hashlib.sha256(compact(form)).digest()


def test_a_request_is_its_header_and_the_digests_of_its_messages() -> None:
    header = compact([1, "anthropic:m", "ab", "high"]) + b"\n"
    each = b"".join(hashlib.sha256(compact(form)).digest() for _, form in FORMS)
    joined = MessageDigests().joined([message for message, _ in FORMS])
    found = request_digest(
        model="anthropic:m", prefix=BlobId("ab"), thinking="high", messages=joined
    )
    assert found == hashlib.sha256(header + each).hexdigest()


def test_ids_of_a_vendor_are_no_part_of_it() -> None:
    other = CallResults(
        results=tuple(
            CallResult(
                call_uid=f"other_{place}",
                provider_id=f"call_{place}",
                tool_name=each.tool_name,
                text=each.text,
                is_error=each.is_error,
            )
            for place, each in enumerate(RESULTS.results)
        )
    )
    assert message_digest(other) == message_digest(RESULTS)


def test_a_line_that_grows_or_changes_has_the_digests_of_its_messages() -> None:
    digests = MessageDigests()
    lines: list[list[Message]] = [
        [ASKED],
        [ASKED, CALLED],
        [ASKED, CALLED, RESULTS],
        [ASKED, RESULTS, CALLED],
        [CALLED],
        [],
        [CALLED, RESULTS],
    ]
    for line in lines:
        assert digests.joined(line) == b"".join(map(message_digest, line))


def test_what_has_not_changed_is_not_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Message] = []

    def counted(message: Message) -> bytes:
        hashed.append(message)
        return message_digest(message)

    monkeypatch.setattr("weft.context.digest.message_digest", counted)
    digests, line = MessageDigests(), [ASKED, CALLED]
    digests.joined(tuple(line))
    digests.joined((*line, RESULTS))
    assert hashed == [ASKED, CALLED, RESULTS]


def test_one_more_message_is_joined_without_a_step_for_each_one_before() -> None:
    lines = {}
    for length in (10, 1_000):
        digests = MessageDigests()
        said = tuple(ChatMessage(role="user", parts=(Text(text=f"{at}"),)) for at in range(length))
        digests.joined(said)
        more = (*said, CALLED)
        lines[length] = lines_run(lambda one=digests, all_=more: one.joined(all_))
        assert digests.joined(more) == MessageDigests().joined(more)
    assert lines[10] == lines[1_000]


def test_messages_that_were_taken_away_or_replaced_are_joined_anew() -> None:
    digests = MessageDigests()
    for said in ((ASKED, CALLED, RESULTS), (ASKED,), (ASKED, RESULTS, CALLED), (), (RESULTS,)):
        assert digests.joined(said) == MessageDigests().joined(said)


def test_a_conversation_that_grows_has_the_digests_of_its_requests_alone() -> None:
    kept, one, two = RequestDigests(), message_digest(ASKED), message_digest(CALLED)
    prefix, first, both = BlobId("p"), one, one + two
    # It grows, is asked for again, is cut, is sent to another model, and begins in another way.
    for model, messages in (
        *(("m", b""), ("m", first), ("m", both), ("m", both), ("m", first)),
        *(("n", first), ("n", both), ("n", two + one), ("n", two + one + two), ("m", both)),
    ):
        alone = request_digest(model=model, prefix=prefix, thinking="high", messages=messages)
        assert kept.digest(model, prefix, "high", messages) == alone
