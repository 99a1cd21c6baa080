"""Message composition: what the model sees, a pure function of a line of the tree.

Whatever happened before (a crash, an abort, a switch of model, a broken stream), the messages that
come out are legal: each call of an assistant message is answered exactly once by the `CallResults`
behind it, in call order; nothing is empty; the first message is the user's and so is the last,
unless results stand there; reasoning is shown only to the model that signed it.  The log is never
repaired for this: legality is made here, from the tree, every time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from weft.context.digest import MessageDigests
from weft.context.sizes import estimate
from weft.ids import CallUid, NodeId
from weft.messages import (
    CallResult,
    CallResults,
    ChatMessage,
    File,
    Image,
    Message,
    Node,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from weft.tree import ConversationTree

NO_RESULT: Final = (
    "No result of this call is on record: the turn ended before it was settled. "
    "Whether it took effect is unknown; check before you rely on it or repeat it."
)
CUT_OFF: Final = "[The answer above was cut off before it was finished.]"
CONTINUE_PROMPT: Final = "[Go on from where you stopped.]"
BEGINNING: Final = "[The conversation begins here.]"
NO_NOTES: Final[Mapping[NodeId | None, Sequence[str]]] = {}


class LineEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node of the line with its words, and the results that hang on it."""

    node: Node
    results: Mapping[CallUid, ToolResult] = {}
    at: float = 0.0
    """When it was said."""
    result_times: Mapping[CallUid, float] = {}
    """When each result came."""


class ContextTarget(msgspec.Struct, frozen=True):
    """The model that the messages are for."""

    provider: str
    model: str


class ComposedMessages(msgspec.Struct, frozen=True, gc=False):
    """The messages of a request, and about how many tokens they are."""

    messages: tuple[Message, ...]
    tokens: int


class _ComposedBeginning:
    """The messages of a line's first entries, which all later requests begin with too."""

    def __init__(
        self,
        summary: str,
        upto: NodeId | None,
        notes: Mapping[NodeId | None, Sequence[str]],
        rendered: RenderedLine,
    ) -> None:
        self.head = (summary, upto)
        self.notes = notes
        self.entries: list[LineEntry] = []
        self.messages: list[Message] = [rendered.note(summary)] if summary else []
        self.messages += [rendered.note(text) for text in notes.get(None, ())]
        if upto is not None:
            self.messages += [rendered.note(text) for text in notes.get(upto, ())]
        self.tokens = estimate(self.messages)

    def is_of(self, line: Sequence[LineEntry]) -> bool:
        """Whether the line begins with these entries."""
        # One comparison without a step in Python for each entry: they are the same objects, up to
        # the first that differs.
        return list(line[: len(self.entries)]) == self.entries


class RenderedLine:
    """What was made of the entries of a line so far, for those who compose it again.

    Belongs to what holds the entries, and goes with them.
    """

    def __init__(self) -> None:
        self.entries: dict[NodeId, tuple[LineEntry, ContextTarget, list[Message], int]] = {}
        self.digests = MessageDigests()
        self._notes: dict[str, Message] = {}

    def note(self, text: str) -> Message:
        """The message of a note or summary: the same object for the same text, so that its digest
        is found again by identity.
        """
        if text not in self._notes:
            self._notes[text] = _user(text)
        return self._notes[text]


class MessageComposer:
    """Builds the messages for one target again and again, and renders each entry of a growing line
    only once.
    """

    def __init__(self, target: ContextTarget, rendered: RenderedLine | None = None) -> None:
        self._target = target
        self._rendered = rendered or RenderedLine()
        self._without_pictures: set[NodeId] = set()
        self._beginning: _ComposedBeginning | None = None
        """Of the line that was composed last, all but its last entry."""

    def use(self, rendered: RenderedLine) -> None:
        """Go on with what others have rendered of the line."""
        self._rendered = rendered
        for node in self._without_pictures:
            rendered.entries.pop(node, None)

    def leave_out_pictures(self, node: NodeId) -> None:
        """Name the pictures of a node from now on, in place of showing them."""
        self._without_pictures.add(node)
        self._rendered.entries.pop(node, None)
        self._beginning = None

    def digests(self, messages: Sequence[Message]) -> bytes:
        """The digests of what was composed, joined."""
        return self._rendered.digests.joined(messages)

    def compose(
        self,
        line: Sequence[LineEntry],
        *,
        summary: str = "",
        upto: NodeId | None = None,
        notes: Mapping[NodeId | None, Sequence[str]] | None = None,
    ) -> ComposedMessages:
        """The summary of what was compacted (`upto` there), then the line, with the notes where
        they were said.

        What was noted at the very place where the summary ends comes after it: it may have been
        said after the summary was made.  A mapping of notes is not changed once it was given here.
        """
        notes = NO_NOTES if notes is None else notes
        begun = self._beginning
        if (
            begun is None
            or begun.notes is not notes
            or begun.head != (summary, upto)
            or not begun.is_of(line)
        ):
            begun = self._beginning = _ComposedBeginning(summary, upto, notes, self._rendered)
        for entry in line[len(begun.entries) : -1]:
            begun.tokens += self._say(entry, notes, begun.messages)
            begun.entries.append(entry)
        said, tokens = begun.messages.copy(), begun.tokens
        # The last entry stays apart: it is replaced when its calls are settled, and a note may
        # still come behind it.
        if len(line) > len(begun.entries):
            tokens += self._say(line[-1], notes, said)
        return ComposedMessages(_with_legal_ends(said), tokens)

    def _say(
        self,
        entry: LineEntry,
        notes: Mapping[NodeId | None, Sequence[str]],
        said: list[Message],
    ) -> int:
        """Add the messages of one entry, and the notes behind it; returns their tokens."""
        messages, tokens = self._render(entry)
        said += messages
        if entry.node.id in notes:
            noted = [self._rendered.note(text) for text in notes[entry.node.id]]
            said += noted
            tokens += estimate(noted)
        return tokens

    def _render(self, entry: LineEntry) -> tuple[list[Message], int]:
        known = self._rendered.entries.get(entry.node.id)
        # By identity: an entry that changed is a new object, and comparing them would cost as much
        # as rendering.
        if known is None or known[0] is not entry or known[1] != self._target:
            shown = entry
            if entry.node.id in self._without_pictures:
                shown = without_pictures(entry)
            messages = render(shown, self._target)
            known = (entry, self._target, messages, estimate(messages))
            self._rendered.entries[entry.node.id] = known
        return known[2], known[3]


def build(
    line: Sequence[LineEntry],
    target: ContextTarget,
    *,
    summary: str = "",
    upto: NodeId | None = None,
    notes: Mapping[NodeId | None, Sequence[str]] | None = None,
) -> tuple[Message, ...]:
    """The messages for `target`: the summary of what was compacted, then the line."""
    return MessageComposer(target).compose(line, summary=summary, upto=upto, notes=notes).messages


def notes_for_model(tree: ConversationTree) -> dict[NodeId | None, tuple[str, ...]]:
    """What the system said to the model too, by the node that it was said after; a mapping of the
    caller's own.
    """
    return tree.notes_by_node.sent.copy()


def _with_legal_ends(said: list[Message]) -> tuple[Message, ...]:
    """The first message is the user's, and so is the last, unless results stand there."""
    if not said or (isinstance(said[0], ChatMessage) and said[0].role == "assistant"):
        said.insert(0, _BEGINNING)
    last = said[-1]
    if isinstance(last, ChatMessage) and last.role == "assistant":
        said.append(_user(CONTINUE_PROMPT))
    return tuple(said)


def render(entry: LineEntry, target: ContextTarget) -> list[Message]:
    """The messages that one node gives: none, one, or an answer with its results."""
    node = entry.node
    if node.role == "assistant":
        return _render_answer(entry, target)
    parts = tuple(part for part in node.parts if _has_content(part))
    if not parts:
        return []
    return [ChatMessage(role="user", parts=parts)]


def _render_answer(entry: LineEntry, target: ContextTarget) -> list[Message]:
    node = entry.node
    parts = tuple(part for part in node.parts if _may_be_shown(part, node, target))
    calls = tuple(part for part in parts if isinstance(part, ToolCall))
    rendered: list[Message] = []
    # Vendors refuse an answer of nothing but thoughts; it is as if it had not been given.
    if any(not isinstance(part, Thinking) for part in parts):
        rendered.append(ChatMessage(role="assistant", parts=parts, model=node.model))
    if calls:
        rendered.append(
            CallResults(results=tuple(_result(call, entry.results, target) for call in calls))
        )
    if node.is_partial and rendered and not calls:
        rendered.append(_user(CUT_OFF))
    return rendered


def pictures_of(entry: LineEntry) -> list[str]:
    """The names of what a node and its results show."""
    shown = [part for part in entry.node.parts if isinstance(part, Image)]
    for result in entry.results.values():
        shown += result.images
    return [image.name or image.media_type for image in shown]


def without_pictures(entry: LineEntry) -> LineEntry:
    """The same entry with a line in the place of each picture."""
    replace = msgspec.structs.replace
    parts = tuple(
        Text(text=_left_out(part)) if isinstance(part, Image) else part for part in entry.node.parts
    )
    results = {
        uid: replace(
            result, images=(), text="\n".join([result.text, *map(_left_out, result.images)])
        )
        for uid, result in entry.results.items()
    }
    return LineEntry(node=replace(entry.node, parts=parts), results=results)


def without_words(entry: LineEntry) -> LineEntry:
    """The same entry, saying nothing: a message that was excluded, with the results of its calls.

    It stays on the line, for what the system said behind it was not excluded.
    """
    return LineEntry(node=msgspec.structs.replace(entry.node, parts=()), at=entry.at)


def _left_out(image: Image) -> str:
    return f"[{image.kind} {image.name or image.media_type!r} left out: the vendor refused it]"


def _may_be_shown(part: Part, node: Node, target: ContextTarget) -> bool:
    if isinstance(part, Thinking):
        signed_by_target = part.provider == target.provider and part.model == target.model
        # A signature covers the whole thought and is checked by the model that made it: sent to
        # another model, or after a stream that broke off, it may have the whole request refused.
        return signed_by_target and not node.is_partial and bool(part.signature or part.redacted)
    return _has_content(part)


def _has_content(part: Part) -> bool:
    match part:
        case Text(text=text):
            return bool(text.strip())
        case File(text=text, blob=blob):
            return bool(text) or blob is not None
        case Image(data=data, blob=blob):
            return bool(data) or blob is not None
        case _:
            return True


def _result(
    call: ToolCall, results: Mapping[CallUid, ToolResult], target: ContextTarget
) -> CallResult:
    # Vendors check the form of ids, each in its own way, so a foreign one is not passed on.
    provider_id = call.provider_id if call.provider == target.provider else ""
    result = results.get(call.call_uid)
    if result is None:
        return CallResult(
            call_uid=call.call_uid,
            provider_id=provider_id,
            tool_name=call.name,
            text=NO_RESULT,
            is_error=True,
        )
    return CallResult(
        call_uid=call.call_uid,
        provider_id=provider_id,
        tool_name=call.name,
        # Some vendors refuse an empty result.
        text=result.text or "(no output)",
        images=result.images,
        is_error=result.is_error,
    )


def _user(text: str) -> ChatMessage:
    return ChatMessage(role="user", parts=(Text(text=text),))


_BEGINNING: Final = _user(BEGINNING)
