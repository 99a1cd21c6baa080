"""The digest of a request: which words a model was sent, in a form that no protocol changes.

`docs/formats/facts.md` writes down what is hashed: a header (model, prefix, thinking), and behind
it the SHA-256 of each message in its neutral form.  So a request that is rebuilt from the log can
be compared with the one that was sent, whichever vendor's protocol it went out in.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import is_not
from typing import Any, Final, assert_never

import msgspec

from weft.context.prefix import PromptPrefix, render_prefix
from weft.ids import BlobId
from weft.messages import (
    CallResult,
    CallResults,
    File,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
)
from weft.sha256 import sha256

FORM: Final = 1
"""Which form is hashed; another form is another number, so that old digests keep their meaning."""
_SIZE: Final = 32

_encoder = msgspec.json.Encoder()


class MessageDigests:
    """The digests of the messages of one conversation, each computed once while it only grows."""

    def __init__(self) -> None:
        self._messages: Sequence[Message] = ()
        self._joined = b""

    def joined(self, messages: Sequence[Message]) -> bytes:
        """The SHA-256 of each message, one behind the other."""
        # By identity: the words of a long conversation must not be read again for every call.
        # A composer gives the same object for what has not changed.  In one go and not message by
        # message: a turn of many rounds asks twice in each.
        if messages is self._messages:
            return self._joined
        differing = map(is_not, self._messages, messages)
        most = min(len(self._messages), len(messages))
        shared = next(compress(count(), differing), most)
        new = (message_digest(each) for each in messages[shared:])
        self._joined = b"".join((self._joined[: shared * _SIZE], *new))
        self._messages = messages
        return self._joined


def request_digest(*, model: str, prefix: BlobId, thinking: str, messages: bytes) -> str:
    """The digest of a request; `messages` are their digests, joined."""
    return RequestDigests().digest(model, prefix, thinking, messages)


class RequestDigests:
    """The digests of the requests of one conversation, which mostly grows from one to the next."""

    def __init__(self) -> None:
        self._header: tuple[str, str, str] | None = None
        self._messages = b""
        self._hash = sha256()
        self._digest = ""

    def digest(self, model: str, prefix: BlobId, thinking: str, messages: bytes) -> str:
        """The digest of the next request; `messages` are their digests, joined."""
        header = (model, prefix, thinking)
        is_same = header == self._header
        if is_same and messages is self._messages:
            return self._digest
        # The hash goes on from where the last request ended: the cost of a round must not grow with
        # the conversation.
        if is_same and messages.startswith(self._messages):
            self._hash.update(messages[len(self._messages) :])
        else:
            begin = _encoder.encode([FORM, *header])
            self._hash = sha256(begin + b"\n" + messages)
        self._header, self._messages = header, messages
        self._digest = self._hash.hexdigest()
        return self._digest


def lone_request_digest(
    *, model: str, system: str, thinking: str, messages: Sequence[Message]
) -> str:
    """The digest of a request without tools that stands alone: for a summary."""
    prefix = render_prefix(PromptPrefix(system=system)).id
    joined = MessageDigests().joined(messages)
    return request_digest(model=model, prefix=prefix, thinking=thinking, messages=joined)


def message_digest(message: Message) -> bytes:
    """The SHA-256 of one message in its neutral form."""
    return sha256(_encoder.encode(_message_form(message))).digest()


def _message_form(message: Message) -> list[Any]:
    if isinstance(message, CallResults):
        return ["results", [_result_form(each) for each in message.results]]
    return [message.role, [_part_form(part) for part in message.parts]]


# Without ids: ours are never sent, and a vendor's is only its own name for what the order says.
def _result_form(result: CallResult) -> list[Any]:
    images = [_part_form(image) for image in result.images]
    return [result.tool_name, result.text, result.is_error, images]


def _part_form(part: Part) -> list[Any]:
    match part:
        case Text():
            return ["text", part.text, part.signature]
        case Thinking():
            return ["thinking", part.text, part.signature, part.redacted]
        case ToolCall():
            return ["call", part.name, part.raw_args or part.args, part.signature]
        case Image():
            content = sha256(part.data.encode()).hexdigest()
            return ["image", part.media_type, content, part.name]
        case File():
            return ["file", part.name, part.media_type, part.text]
        case _:
            assert_never(part)
