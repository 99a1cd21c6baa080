"""The neutral conversation, made ready for any vendor: what all encoders share.

`turns()` takes the messages of a request and gives turns that alternate, where every call stands
with its result, ids and names are legal on the wire, nothing is empty, and what the model cannot
take (foreign reasoning, pictures for a model that cannot see) is gone or replaced by a short note.
The encoders then only choose words.

It trusts the request less than it must: a call without a result gets one that says so, a result
without a call is dropped.  A request must never brick a session, whatever its history.
"""

from __future__ import annotations

import binascii
import functools
import operator
import re
from collections.abc import Container, Iterable, Sequence
from typing import Any, TypeAlias, assert_never

import msgspec

from weft.messages import (
    IMAGE_TYPES,
    CallResult,
    CallResults,
    ChatMessage,
    File,
    Image,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
)
from weft.providers.base import ModelInfo, ModelRequest, ToolSpec
from weft.providers.schema import remembered

# Vendors refuse blank text and calls without a result, and a refused history would be refused at
# every later request: these stand in for what is missing.
NO_OUTPUT = "(no output)"
NO_RESULT = "No result was recorded for this call."
CONTINUE_PROMPT = "Go on from where you stopped."
BEGINNING = "(The conversation goes on from here.)"
TOO_MANY = "[an older image left out: there are too many]"
FOREIGN_SIGNATURE = "skip_thought_signature_validator"
"""What Google documents for calls that did not come from Gemini."""
MOST_IMAGES = 20
_AT_ONCE = 10

_LEGAL = re.compile(r"[a-zA-Z0-9_-]+")
_ILLEGAL = r"[^a-zA-Z0-9_-]"
MAX_NAME = 64
"""The longest tool name that every vendor takes."""
CACHED_NAME = 4 * MAX_NAME
"""The longest tool name that is remembered with what it becomes."""


class WireCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call with its id and name as they go over the wire."""

    id: str
    name: str
    args: dict[str, Any]
    signature: str
    """Empty unless the model that is asked now made the call."""
    is_own: bool
    """The provider that is asked now made the call, so `id` is its own."""


class WireResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a call gave."""

    call: WireCall
    text: str
    """Never empty."""
    images: tuple[Image, ...]
    is_error: bool


class UserTurn(msgspec.Struct, frozen=True):
    """What the user said; never empty."""

    parts: tuple[Text | Image, ...]

    @property
    def picture_count(self) -> int:
        return sum(map(_is_picture, self.parts))


class ModelTurn(msgspec.Struct, frozen=True, dict=True):
    """What the model said, and what its calls gave, in call order.

    Without its thoughts it is not empty.
    """

    parts: tuple[Text | Thinking | WireCall, ...]
    outcomes: tuple[WireResult, ...] = ()

    @functools.cached_property
    def encoded(self) -> dict[str, Any]:
        """What an encoder made of it, by a name of the encoder's.

        A turn that comes again in the next request is the same object, so the work is done once.
        """
        return {}

    @functools.cached_property
    def picture_count(self) -> int:
        return sum(_is_picture(image) for outcome in self.outcomes for image in outcome.images)

    @functools.cached_property
    def shows_something(self) -> bool:
        """True where a call gave pictures or documents."""
        return any(outcome.images for outcome in self.outcomes)

    @property
    def text(self) -> str:
        """All that it says, for vendors that take one text.

        Blocks that came one after the other are one text; others begin on a line of their own.
        """
        said = ""
        before: Text | Thinking | WireCall | None = None
        for part in self.parts:
            if isinstance(part, Text):
                said += part.text if isinstance(before, Text) or not said else f"\n{part.text}"
            before = part
        return said


Turn: TypeAlias = UserTurn | ModelTurn


def turns(request: ModelRequest, info: ModelInfo, *, max_id: int = 64) -> list[Turn]:
    """The conversation as turns: the user's first, and two of the model's in a row only where the
    first has outcomes.
    """
    shaper = _Shaper(request, info, max_id)
    messages: Sequence[Message] = request.messages[shaper.take_over() :]
    if any(map(_holds_pdf, messages)):
        from weft.providers.documents import with_documents  # few have one: start-up time

        # A document more: which ones go as they are depends on all that the request holds.
        shaper = _Shaper(request, info, max_id)
        messages = with_documents(request.messages, info)
    for at, message in enumerate(messages):
        if isinstance(message, CallResults):
            continue  # taken with the message before
        if message.role == "user":
            shaper.user(message)
            continue
        following = messages[at + 1] if at + 1 < len(messages) else None
        shaper.model(message, following if isinstance(following, CallResults) else None)
    shaper.keep()
    # Vendors want the user to speak first; a line of the tree need not begin so.
    if not shaper.turns or isinstance(shaper.turns[0], ModelTurn):
        shaper.turns.insert(0, UserTurn((Text(text=BEGINNING),)))
    return _with_few_pictures(shaper.turns)


_picture_count = operator.attrgetter("picture_count")


def _with_few_pictures(found: list[Turn]) -> list[Turn]:
    """The turns with only the newest pictures: with more, vendors take only small ones.

    They go ten at a time, so that what a vendor has in its cache stays the same for a while.
    """
    total = sum(map(_picture_count, found))
    if total <= MOST_IMAGES:
        return found
    left_out = -(-(total - MOST_IMAGES) // _AT_ONCE) * _AT_ONCE
    thinned: list[Turn] = []
    for turn in found:
        here = min(left_out, turn.picture_count)
        left_out -= here
        thinned.append(_thinned(turn, here) if here else turn)
    return thinned


def _is_picture(part: Text | Image) -> bool:
    return isinstance(part, Image) and not part.is_pdf


def _thinned(turn: Turn, count: int) -> Turn:
    """The turn without its first pictures."""
    if isinstance(turn, UserTurn):
        parts: list[Text | Image] = []
        for part in turn.parts:
            is_out = _is_picture(part) and count > 0
            count -= is_out
            parts.append(Text(text=TOO_MANY) if is_out else part)
        return UserTurn(tuple(parts))
    outcomes = []
    for outcome in turn.outcomes:
        pictures = [image for image in outcome.images if _is_picture(image)]
        out = min(count, len(pictures))
        count -= out
        text = "\n".join([outcome.text, *[TOO_MANY] * out])
        gone = set(map(id, pictures[:out]))
        kept = tuple(image for image in outcome.images if id(image) not in gone)
        outcomes.append(msgspec.structs.replace(outcome, text=text, images=kept))
    return ModelTurn(turn.parts, tuple(outcomes))


def proofs_of(request: ModelRequest) -> set[str]:
    """Every vendor's proof of reasoning that the request holds."""
    return {
        proof
        for message in request.messages
        if isinstance(message, ChatMessage)
        for part in message.parts
        if isinstance(part, Thinking | Text | ToolCall) and (proof := _proof(part))
    }


def _ordered_proofs(request: ModelRequest) -> list[str]:
    """The proofs of a request, each once, in the order in which they stand in it."""
    found = dict.fromkeys(
        _proof(part)
        for message in request.messages
        if isinstance(message, ChatMessage)
        for part in message.parts
    )
    return [proof for proof in found if proof]


def proof_places(request: ModelRequest, refused: Container[str]) -> str:
    """Which proofs of a request are among these: ranges of their numbers, as `0-3,7`; empty for
    none.
    """
    ranges: list[list[int]] = []
    for number, proof in enumerate(_ordered_proofs(request)):
        if proof not in refused:
            continue
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{a}-{b}" if a < b else f"{a}" for a, b in ranges)


def proofs_at(request: ModelRequest, places: str) -> set[str]:
    """The proofs of a request at the places that `proof_places` has named."""
    proofs, found = _ordered_proofs(request), set[str]()
    for each in places.split(","):
        first, _, last = each.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(proofs[int(first) : int(last or first) + 1])
    return found


def without_proofs(request: ModelRequest, refused: Container[str]) -> ModelRequest:
    """The request without the reasoning that a vendor refuses to see again."""
    messages = tuple(
        msgspec.structs.replace(message, parts=_unproved(message.parts, refused))
        if isinstance(message, ChatMessage) and any(_proof(p) in refused for p in message.parts)
        else message
        for message in request.messages
    )
    return msgspec.structs.replace(request, messages=messages)


def _unproved(parts: tuple[Part, ...], refused: Container[str]) -> tuple[Part, ...]:
    kept: list[Part] = []
    for part in parts:
        if _proof(part) not in refused:
            kept.append(part)
        elif isinstance(part, Text | ToolCall):
            kept.append(msgspec.structs.replace(part, signature=""))
    return tuple(kept)


def _proof(part: Part) -> str:
    if isinstance(part, Thinking):
        return part.signature or part.redacted
    return part.signature if isinstance(part, Text | ToolCall) else ""


class _Known(msgspec.Struct, frozen=True):
    """A model turn that was shaped for an earlier request, and for which target.

    Valid while no other call has taken its ids.
    """

    said: ChatMessage
    results: CallResults | None
    target: tuple[ModelInfo, str, int]
    turn: ModelTurn
    ids: tuple[str, ...]


def _holds_pdf(message: Message) -> bool:
    if isinstance(message, CallResults):
        return any(image.is_pdf for result in message.results for image in result.images)
    return any(isinstance(part, Image) and part.is_pdf for part in message.parts)


class _ShapedRequest(msgspec.Struct, frozen=True):
    """The turns of a request, with which the next one begins that repeats its messages."""

    messages: tuple[Message, ...]
    target: tuple[ModelInfo, str, int]
    turns: tuple[Turn, ...]
    ids: set[str]


_LAST = 0
"""Where it is kept in a request's scratch; no object has this identity."""


class _Shaper:
    """Builds the turns one by one."""

    def __init__(self, request: ModelRequest, info: ModelInfo, max_id: int) -> None:
        self._request = request
        self._info = info
        self._ids = _Ids(info.provider, max_id)
        self._target = (info, request.model, max_id)
        self.turns: list[Turn] = []

    def take_over(self) -> int:
        """Begin with the turns of the request before; returns how many messages they are made of.

        A session's requests only grow, and to walk over all that was said would make each round
        cost more than the one before.
        """
        last = self._request.scratch.get(_LAST)
        if last is None or last.target != self._target:
            return 0
        # At the speed of comparing addresses: what is repeated is the same objects.
        if self._request.messages[: len(last.messages)] != last.messages:
            return 0
        self.turns = list(last.turns)
        self._ids = _Ids(self._info.provider, self._target[2], last.ids)
        return len(last.messages)

    def keep(self) -> None:
        """Let the next request begin with these turns."""
        messages = self._request.messages
        # The results of an answer's calls may still come behind it, and belong to its turn.
        if messages and (isinstance(messages[-1], CallResults) or messages[-1].role == "user"):
            self._request.scratch[_LAST] = _ShapedRequest(
                messages, self._target, tuple(self.turns), self._ids.used
            )

    def user(self, said: ChatMessage) -> None:
        parts = tuple(self._user_parts(said.parts))
        if not parts:
            return
        last = self.turns[-1] if self.turns else None
        if isinstance(last, UserTurn):
            self.turns[-1] = UserTurn((*last.parts, *parts))
        else:
            self.turns.append(UserTurn(parts))

    def model(self, said: ChatMessage, results: CallResults | None) -> None:
        turn = self._known(said, results) or self._shaped(said, results)
        if turn is None:
            return
        last = self.turns[-1] if self.turns else None
        if isinstance(last, ModelTurn) and not last.outcomes:
            self.turns[-1] = _joined(last, turn)
        else:
            self.turns.append(turn)

    def _known(self, said: ChatMessage, results: CallResults | None) -> ModelTurn | None:
        """What was made of it for an earlier request, unless it would be something else now."""
        # By identity: comparing two long messages costs what shaping one costs. The entry holds the
        # message, so its id cannot be given to another one.
        known = self._request.scratch.get(id(said))
        if (
            known is None
            or known.said is not said
            or known.results is not results
            or known.target != self._target
            or not self._ids.take(known.ids)
        ):
            return None
        found: ModelTurn = known.turn
        return found

    def _shaped(self, said: ChatMessage, results: CallResults | None) -> ModelTurn | None:
        parts = tuple(
            shaped
            for part in said.parts
            if (shaped := self._model_part(part, said.model)) is not None
        )
        # No vendor takes a message that is empty, or has nothing but reasoning.
        if all(isinstance(part, Thinking) for part in parts):
            return None
        given = {result.call_uid: result for result in results.results} if results else {}
        calls = [part for part in said.parts if isinstance(part, ToolCall)]
        wired = [part for part in parts if isinstance(part, WireCall)]
        # Strict: shaping drops blank text and foreign reasoning, but never a call.
        outcomes = tuple(
            self._outcome(call, given.get(ours.call_uid))
            for ours, call in zip(calls, wired, strict=True)
        )
        turn = ModelTurn(parts, outcomes)
        ids = tuple(call.id for call in wired)
        # A turn whose ids had to make room for others depends on what stands before it, and so may
        # differ in the next request.
        if ids == tuple(map(self._ids.first_choice, calls)):
            known = _Known(said, results, self._target, turn, ids)
            self._request.scratch[id(said)] = known
        return turn

    def _user_parts(self, parts: Iterable[Part]) -> Iterable[Text | Image]:
        for part in parts:
            match part:
                case Text():
                    shown: Text | Image = _whole(part)
                case Image():
                    shown = self._image(part)
                case File():
                    shown = Text(text=_file(part))
                case Thinking() | ToolCall():
                    continue  # only a model has these
                case _:
                    assert_never(part)
            if not isinstance(shown, Text) or shown.text.strip():
                yield shown

    def _model_part(self, part: Part, model: str) -> Text | Thinking | WireCall | None:
        match part:
            case Text():
                return self._text(part, model) if part.text.strip() else None
            case Thinking():
                return part if self._is_own_thought(part) else None
            case ToolCall():
                return self._call(part, model)
            case Image():
                return Text(text=f"[{part.kind}: {part.name or part.media_type}]")
            case File():
                return Text(text=_file(part))
            case _:
                assert_never(part)

    def _text(self, part: Text, model: str) -> Text:
        whole = _whole(part)
        if not part.signature:
            return whole
        is_own = self._is_own_model(model) and model.partition(":")[0] == self._info.provider
        return msgspec.structs.replace(whole, signature=part.signature if is_own else "")

    def _is_own_model(self, model: str) -> bool:
        # A signature is bound to the model, not only to the vendor; of an unnamed model it is
        # tried.
        return model.partition(":")[2] in ("", self._request.model, self._info.name)

    def _call(self, call: ToolCall, model: str) -> WireCall:
        is_own = call.provider == self._info.provider
        is_own_model = is_own and self._is_own_model(model)
        wire_id = self._ids.of(call)
        return WireCall(
            id=wire_id,
            name=wire_name(call.name),
            args=call.args,
            signature=call.signature if is_own_model else "",
            is_own=is_own and wire_id == call.provider_id,
        )

    def _outcome(self, call: WireCall, result: CallResult | None) -> WireResult:
        if result is None:
            return WireResult(call=call, text=NO_RESULT, images=(), is_error=True)
        shown = [self._image(image) for image in result.images]
        notes = [note.text for note in shown if isinstance(note, Text)]
        text = "\n".join([result.text, *notes]) if result.text.strip() else "\n".join(notes)
        return WireResult(
            call=call,
            text=text or NO_OUTPUT,
            images=tuple(image for image in shown if isinstance(image, Image)),
            is_error=result.is_error,
        )

    def _image(self, image: Image) -> Image | Text:
        if image.is_pdf:
            return image  # `with_documents` left only those that the vendor takes
        name = image.name or image.media_type
        if not self._info.sees_images:
            return Text(text=f"[image {name!r} left out: this model cannot see images]")
        if image.media_type not in IMAGE_TYPES:
            return Text(text=f"[image {name!r} left out: {image.media_type} is not supported]")
        if not image.data:
            return Text(text=f"[image {name!r} left out: its content is not at hand]")
        return image

    def _is_own_thought(self, part: Thinking) -> bool:
        """Only the service that signed it accepts it: even the same model on another cloud refuses
        it.
        """
        return (
            part.provider == self._info.provider
            and part.model in (self._request.model, self._info.name)
            and bool(part.signature or part.redacted)
        )


class _Ids:
    """Legal ids, each once in a request.

    The vendor's own where it made the call and the id is still free.
    """

    def __init__(self, provider: str, longest: int, used: Iterable[str] = ()) -> None:
        self._provider = provider
        self._longest = longest
        self.used = set(used)

    def of(self, call: ToolCall) -> str:
        proposed = self.first_choice(call)
        # Servers that number the calls of each answer from 0 repeat their ids, and vendors refuse a
        # conversation in which two calls have the same.
        if not self._is_free(proposed):
            proposed = legal(call.call_uid, self._longest)
        found, number = proposed, 1
        while not self._is_free(found):
            number += 1
            found = f"{proposed[: self._longest - 6]}_{number}"
        self.used.add(found)
        return found

    def first_choice(self, call: ToolCall) -> str:
        """The id that the call gets if it is free."""
        theirs = call.provider_id if call.provider == self._provider else ""
        return theirs if self._is_legal(theirs) else legal(call.call_uid, self._longest)

    def take(self, ids: tuple[str, ...]) -> bool:
        """Take all of these, or none."""
        if not self.used.isdisjoint(ids):
            return False
        self.used.update(ids)
        return True

    def _is_free(self, proposed: str) -> bool:
        return self._is_legal(proposed) and proposed not in self.used

    def _is_legal(self, proposed: str) -> bool:
        return len(proposed) <= self._longest and _LEGAL.fullmatch(proposed) is not None


def _joined(earlier: ModelTurn, later: ModelTurn) -> ModelTurn:
    """Two halves of what the model said.

    Reasoning must open a message; the earlier half's would stand in its middle.
    """
    spoken = [part for part in earlier.parts if not isinstance(part, Thinking)]
    parts = later.parts
    first = next((i for i, part in enumerate(parts) if not isinstance(part, Thinking)), 0)
    return ModelTurn((*parts[:first], *spoken, *parts[first:]), later.outcomes)


def legal(text: str, longest: int) -> str:
    """`text` itself where it is a legal id or name, else one made from it.

    The same text gives the same one.
    """
    if len(text) <= longest and _LEGAL.fullmatch(text):
        return text
    # The same in every process, unlike `hash()`: an id that changed with a restart would miss the
    # vendor's prompt cache.
    mark = f"{binascii.crc32(text.encode('utf-8', 'replace')):08x}"
    return f"{re.sub(_ILLEGAL, '_', text)[: longest - 9]}_{mark}"


def wire_name(name: str) -> str:
    """A tool's name as every vendor accepts it: no odd characters, and a letter or underscore
    first.
    """
    # A model may call a tool by a name of any length.
    return _cached_wire_name(name) if len(name) <= CACHED_NAME else _wire_name(name)


def _wire_name(name: str) -> str:
    if name[:1].isascii() and (name[:1].isalpha() or name[:1] == "_"):
        return legal(name, MAX_NAME)
    # Gemini wants a letter or an underscore first.
    return legal(f"_{name}", MAX_NAME)


_cached_wire_name = functools.lru_cache(maxsize=512)(_wire_name)


@remembered
def real_names(tools: tuple[ToolSpec, ...]) -> dict[str, str]:
    """What each name on the wire means, for those that differ."""
    return {wire_name(t.name): t.name for t in tools if wire_name(t.name) != t.name}


def _whole(part: Text) -> Text:
    """The text; one whose rest is still in a blob says so, or the model would take the beginning
    for all of it.
    """
    if part.blob is None:
        return part
    return Text(text=f"{part.text}\n[the rest of this text is left out: it is not at hand]")


def _file(part: File) -> str:
    if part.text:
        return f'<file name="{part.name}">\n{part.text}\n</file>'
    return f"[file {part.name!r} ({part.media_type}) left out: it is not text]"


def schema_in_words(schema: dict[str, Any]) -> str:
    """The request for structured output as an instruction, for models that have no field for it."""
    text = msgspec.json.encode(schema).decode()
    return f"Answer with one JSON value that fits this JSON Schema, and nothing else:\n{text}"
