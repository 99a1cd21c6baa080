"""A plain model of a session: a list of messages, a queue, and what it waits for.

No log, no actor, no store: this is what the real one is compared with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from weft.loop.tool_results import NOT_RUN

Delivery: TypeAlias = Literal["steering", "follow_up"]
Mode: TypeAlias = Literal["default", "plan", "bypass"]
Situation: TypeAlias = Literal["idle", "model", "permission", "interrupted"]

DENIED_BY_PLAN = "Denied: plan mode changes nothing; switch to another mode to act."
DENIED_BY_USER = "Denied by the user."


@dataclass
class Call:
    """One call and what came of it."""

    key: str
    result: str = ""


@dataclass
class Node:
    """Something that was said."""

    role: Literal["user", "assistant"]
    text: str
    calls: list[Call] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Queued:
    """Something that waits."""

    text: str
    delivery: Delivery


@dataclass
class PlainSession:
    """The whole of it."""

    nodes: list[Node] = field(default_factory=list)
    first_notes: list[str] = field(default_factory=list)
    queue: list[Queued] = field(default_factory=list)
    situation: Situation = "idle"
    before_crash: Situation = "idle"
    streamed: str = ""
    """What has come of the answer that the model is giving."""
    given_early: bool | None = None
    """Permission that was given (or not) while no turn ran; it counts when the turn goes on."""
    mode: Mode = "default"
    """What was set."""
    is_mode_trusted: bool = True
    """It was set in this process, so `bypass` holds."""
    thinking: str = "default"
    last_reason: str | None = None

    # -- reading

    @property
    def is_busy(self) -> bool:
        return self.situation in ("model", "permission")

    @property
    def is_asked(self) -> bool:
        """A request for permission waits for its answer."""
        waits = self.situation == "interrupted" and self.before_crash == "permission"
        return self.situation == "permission" or (waits and self.given_early is None)

    @property
    def mode_in_force(self) -> Mode:
        return "default" if self.mode == "bypass" and not self.is_mode_trusted else self.mode

    @property
    def open_calls(self) -> list[Call]:
        """The calls of the newest answer that nothing came of yet."""
        answers = [node for node in self.nodes if node.role == "assistant"]
        return [call for call in answers[-1].calls if not call.result] if answers else []

    def waiting(self, delivery: Delivery) -> list[Queued]:
        return [each for each in self.queue if each.delivery == delivery]

    def rows(self) -> list[tuple[str, str]]:
        """Role and words of everything, as `session.messages()` has it."""
        rows = [("system", note) for note in self.first_notes]
        for node in self.nodes:
            rows.append((node.role, node.text))
            rows += [("tool", call.result) for call in node.calls if call.result]
            rows += [("system", note) for note in node.notes]
        return rows

    # -- what people do

    def say(self, text: str, delivery: Delivery) -> str:
        """Returns the status that the caller gets."""
        if self.is_busy:
            self.queue.append(Queued(text, delivery))
            return delivery
        if self.situation == "interrupted":
            self._end("halted")
        self._promote()
        self.nodes.append(Node("user", text))
        self.situation = "model"
        return "started"

    def go_on(self) -> None:
        """`continue_turn`."""
        came_from = self.before_crash if self.situation == "interrupted" else "model"
        if came_from == "permission":
            self._settle_calls()
            return
        self._keep_streamed()
        self._promote()
        self.situation = "model"

    def abort(self) -> None:
        if self.is_busy:
            self._end("aborted")

    def answer(self, *, allow: bool) -> None:
        """Allow the first open call, or deny it."""
        if self.situation == "interrupted":
            self.given_early = allow
            return
        call = self.open_calls[0]
        call.result = f"did {call.key}" if allow else DENIED_BY_USER
        self._settle_calls()

    def note(self, text: str) -> None:
        (self.nodes[-1].notes if self.nodes else self.first_notes).append(text)

    def set_mode(self, mode: Mode) -> None:
        self.mode, self.is_mode_trusted = mode, True

    def recall(self) -> list[Queued]:
        recalled, self.queue = self.queue, []
        return recalled

    def dequeue(self) -> list[Queued]:
        """All steering is taken back."""
        taken, self.queue = self.waiting("steering"), self.waiting("follow_up")
        return taken

    def reorder(self, first: list[Queued]) -> None:
        self.queue = first + [each for each in self.queue if each not in first]

    # -- what the model does

    def model_begins(self, text: str) -> None:
        self.streamed += text

    def model_says(self, text: str) -> None:
        self._add_answer(text, [])
        if self._promote():
            return
        self._end("stop")
        if waiting := self.waiting("follow_up"):
            self.queue.remove(waiting[0])
            self.nodes.append(Node("user", waiting[0].text))
            self.situation = "model"

    def model_calls(self, text: str, keys: list[str]) -> None:
        self._add_answer(text, keys)
        self._settle_calls()

    def model_fails(self) -> None:
        self._end("provider_error")

    # -- what happens to the process

    def close(self) -> None:
        """The program ends in order, and starts again."""
        if self.is_busy:
            # Unlike after a crash, what had come of an answer is on record at once.
            self._keep_streamed()
        self.crash()

    def crash(self) -> None:
        """The program dies, and another one starts."""
        if self.is_busy:
            self.before_crash, self.situation = self.situation, "interrupted"
        self.is_mode_trusted = False

    # -- inside

    def _add_answer(self, text: str, keys: list[str]) -> None:
        self.nodes.append(Node("assistant", self.streamed + text, [Call(key) for key in keys]))
        self.streamed = ""

    def _keep_streamed(self) -> None:
        """An answer that broke off is kept as far as it came."""
        if self.streamed:
            self._add_answer("", [])

    def _promote(self) -> bool:
        """All steering becomes part of the conversation."""
        steering = self.waiting("steering")
        self.nodes += [Node("user", each.text) for each in steering]
        self.queue = self.waiting("follow_up")
        return bool(steering)

    def _settle_calls(self) -> None:
        """Go through the open calls as far as no permission is needed."""
        for call in self.open_calls:
            match self.mode_in_force:
                case "default" if self.given_early is None:
                    self.situation = "permission"
                    return
                case "default":
                    call.result = f"did {call.key}" if self.given_early else DENIED_BY_USER
                case "plan":
                    call.result = DENIED_BY_PLAN
                case "bypass":
                    call.result = f"did {call.key}"
            self.given_early = None
        self._promote()
        self.situation = "model"

    def _end(self, reason: str) -> None:
        self._keep_streamed()
        for call in self.open_calls:
            # A call that the user denied while nothing ran is denied, and not only stopped.
            call.result = DENIED_BY_USER if self.given_early is False else NOT_RUN
            self.given_early = None
        self.given_early = None
        self.situation, self.last_reason = "idle", reason
