"""Decisions that start a turn: a prompt, a queued follow-up, and the continuation of a turn.

What the user sends is validated here: text that can be stored, images that are images.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never

import msgspec

from weft.errors import SessionBusy, UsageError
from weft.events import (
    Fact,
    InputQueued,
    NewMessage,
    SessionRestarted,
    TurnParked,
    TurnStarted,
)
from weft.ids import EntryId, NodeId, TurnId, new_id, new_node_id
from weft.loop import promote, revision_of, tip_after, woken_fact
from weft.messages import PDF_TYPE, File, Image, Node, Part, Text, clean_text
from weft.session.answers import Accepted
from weft.session.commands import ContinueTurn, SendPrompt
from weft.session.decide.base import (
    DecidedCommand,
    DecisionContext,
    PromptCommand,
    refuse_while_running,
)
from weft.state import GONE_ON_BY_USER, QueueEntry, SessionState

RESUME_CHOICES: Final = ("ask", "auto", "never")
MOST_RESTARTS: Final = 3
RESTARTS_SECONDS: Final = 3600.0
"""A turn goes on by itself in another process so often in so long: one that kills its process must
not do so without end."""
LONGEST_QUEUE: Final = 500
"""Messages that may wait; one more is refused."""


def decide_prompt(
    command: PromptCommand, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    """What a prompt, or the continuation of a turn, does."""
    match command:
        case SendPrompt():
            return _send(command, state, context)
        case ContinueTurn():
            return _continue(command, state, context)
        case _:
            assert_never(command)


def _send(command: SendPrompt, state: SessionState, context: DecisionContext) -> DecidedCommand:
    parts = clean_parts(command.parts)
    if not parts:
        raise UsageError("there is nothing to send: the message is empty")
    parts += clean_parts(command.context)
    if context.running:
        return _queue(command, parts, state, context)
    return _start(parts, command.options, state, context)


def _queue(
    command: SendPrompt, parts: tuple[Part, ...], state: SessionState, context: DecisionContext
) -> DecidedCommand:
    if command.when_busy == "refuse":
        raise SessionBusy(state.session_id, "send the message again")
    if len(state.queue.entries) >= LONGEST_QUEUE:
        raise UsageError(f"{LONGEST_QUEUE} messages are waiting already; let some be delivered")
    # A sender that waits for the answer must not wait for the end of a turn that waits itself.
    # (What steers ends a wait in any case: `with_wake`.)
    wait = state.turn.asleep if command.waits else None
    # The model reads it in the turn that it woke.  Options hold for a whole turn, so that a message
    # with some has one of its own, after this one.
    delivery = "steering" if wait is not None and not command.options else command.when_busy
    entry_id = EntryId(new_id("ent", context.now))
    queued = InputQueued(entry_id=entry_id, delivery=delivery, parts=parts, options=command.options)
    turn = state.turn.open
    answer = Accepted(
        delivery,
        entry_id=entry_id,
        seq=state.seq,
        turn_id=turn.turn_id if turn is not None else None,
    )
    wakes = () if wait is None else (woken_fact(wait, "message"),)
    return DecidedCommand(facts=(queued, *wakes), answer=answer)


def _start(
    parts: tuple[Part, ...], options: dict[str, Any], state: SessionState, context: DecisionContext
) -> DecidedCommand:
    """The facts of a new turn: steering that still waits, then the prompt."""
    # Steering that no turn took along was sent before this prompt: the model reads it first.
    facts: list[Fact] = promote(state, (), context.now)
    parent = tip_after(state, facts) if facts else state.tree.head
    node = Node(
        id=new_node_id(context.now),
        role="user",
        parts=parts,
        parent=parent,
        parent_revision=revision_of(state, parent),
    )
    facts.append(NewMessage(node=node))
    return with_turn(facts, node.id, options, state, context)


def start_follow_up(
    state: SessionState, context: DecisionContext, entry: QueueEntry | None
) -> DecidedCommand:
    """The facts of the turn that a queued follow-up begins; each follow-up has a turn of its own.

    Without an entry, steering that waits begins it alone.
    """
    facts = promote(state, (), context.now, follow_up=entry)
    options = entry.options if entry is not None else {}
    return with_turn(facts, tip_after(state, facts), options, state, context)


def with_turn(
    facts: Sequence[Fact],
    tip: NodeId | None,
    options: dict[str, Any],
    state: SessionState,
    context: DecisionContext,
) -> DecidedCommand:
    turn_id = TurnId(new_id("trn", context.now))
    started = TurnStarted(turn_id=turn_id, node=tip, options=_with_mode(options, state))
    return DecidedCommand(
        facts=(*facts, started),
        answer=Accepted("started", turn_id=turn_id, seq=state.seq),
        then="start_turn",
    )


def _continue(
    command: ContinueTurn, state: SessionState, context: DecisionContext
) -> DecidedCommand:
    refuse_while_running(state, context, "continue")
    turn = state.turn.open
    if turn is not None:
        # A turn that a dead process left open goes on under its own id.
        return come_back(state, context, by_itself=command.by_itself)
    if state.tree.head is None:
        raise UsageError("there is nothing to continue: the session is empty")
    started = start_at_head(state, context, command.options)
    return DecidedCommand(
        facts=(started, *promote(state, (), context.now)),
        answer=Accepted("started", turn_id=started.turn_id, seq=state.seq),
        then="start_turn",
    )


def come_back(state: SessionState, context: DecisionContext, *, by_itself: bool) -> DecidedCommand:
    """Go on with the turn that a dead process left open, or park it where that was too often.

    Raises:
        UsageError: the user has chosen that it never goes on.
    """
    turn = state.turn.open
    assert turn is not None
    answer = Accepted("started", turn_id=turn.turn_id, seq=state.seq)
    if not by_itself and resume_choice(state) == "never":
        raise UsageError("this session never goes on after a crash; send a message to begin anew")
    if not by_itself:
        again = SessionRestarted(reason=GONE_ON_BY_USER)
        return DecidedCommand(facts=(again,), answer=answer, then="go_on")
    restarts = sum(at > context.now - RESTARTS_SECONDS for at in turn.restarts)
    if restarts >= MOST_RESTARTS:
        said = (
            f"parked: its process ended {restarts + 1} times within an hour; "
            "nothing runs until you continue it"
        )
        parked = TurnParked(turn_id=turn.turn_id, restarts=restarts, detail=said)
        return DecidedCommand(facts=() if turn.parked else (parked,), answer=answer)
    again = SessionRestarted(reason="its process ended; it continues by itself, as you chose")
    return DecidedCommand(facts=(again,), answer=answer, then="go_on")


def resume_choice(state: SessionState) -> str:
    """What the user has chosen for a turn that a crash cut off: ask, auto or never."""
    return str(state.settings.get("resume", "ask"))


def start_at_head(
    state: SessionState, context: DecisionContext, options: Mapping[str, Any] | None = None
) -> TurnStarted:
    """A turn that goes on from what is stored, with no message of its own."""
    return TurnStarted(
        turn_id=TurnId(new_id("trn", context.now)),
        node=state.tree.head,
        options=_with_mode(dict(options or {}), state),
        continued=True,
    )


def _with_mode(options: dict[str, Any], state: SessionState) -> dict[str, Any]:
    """A turn keeps the mode that it started in, whatever is set meanwhile."""
    if state.settings.mode == "normal" or "mode" in options:
        return options
    return {**options, "mode": state.settings.mode}


def clean_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Parts as they may be stored: text without lone surrogates, nothing empty.

    Raises:
        UsageError: an image is none, or a part has no place in a message of the user.
    """
    cleaned: list[Part] = []
    for part in parts:
        match part:
            case Text(text=text, typed=typed):
                if text.strip():
                    said, typed = clean_text(text), clean_text(typed)
                    cleaned.append(msgspec.structs.replace(part, text=said, typed=typed))
            case File(text=text):
                cleaned.append(msgspec.structs.replace(part, text=clean_text(text)))
            case Image():
                cleaned.append(_checked_image(part))
            case _:
                raise UsageError("a message is made of text, images and files")
    return tuple(cleaned)


def _checked_image(image: Image) -> Image:
    """The image, its content known to be base64 without any space."""
    shown = image.name or "the image"
    if not image.media_type.startswith("image/") and not image.is_pdf:
        raise UsageError(
            f"{shown} needs a media_type such as image/png or {PDF_TYPE}, not {image.media_type!r}"
        )
    if image.blob is not None and not image.data:
        return image
    # Vendors refuse base64 with line breaks, and a refusal comes only after the turn has begun.
    data = "".join(image.data.split())
    try:
        content = base64.b64decode(data, validate=True)
    except ValueError as error:
        raise UsageError(f"the content of {shown} is not base64: {error}") from error
    if not content:
        raise UsageError(f"{shown} has no content")
    return msgspec.structs.replace(image, data=data)
