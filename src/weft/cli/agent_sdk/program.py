"""The program that drives a session, as the one who is asked: for permission, about plans, and what
the model wants to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.api.session import Session
from weft.cli.agent_sdk.control_channel import withdraw
from weft.cli.agent_sdk.permission_answers import PendingRequest, mode_of, read_answer, suggestions
from weft.cli.headless.json_output import StreamSink
from weft.cli.headless.turn_driver import DENIED, RequestAsker
from weft.errors import NoPendingRequest, UsageError
from weft.events import ArchitectPlan, PermissionRequest, QuestionAsked

NEVER_ASKED = "nothing is asked in this permission mode, and no rule allows it"
NOT_KNOWN = "what it would do is not known here, so it cannot be judged"
NO_ANSWER = "(no answer was given)"


class ProgramAsker(RequestAsker):
    """Sends requests to the program on the other side, and carries out its answers; what is no
    clear yes is a no."""

    def __init__(self, session: Session, sink: StreamSink) -> None:
        self._session = session
        self._sink = sink
        self._asked: dict[str, PendingRequest | ArchitectPlan | QuestionAsked] = {}
        """What was asked and is not answered."""
        self._has_hung_up = False
        self._never_asks = False

    # -- asking

    async def ask(self, request: PermissionRequest) -> None:
        # Without the input a guard would judge an empty object, and might allow it.
        args = self._sink.args_of(request)
        if self._has_hung_up or self._never_asks or args is None:
            why = DENIED if self._has_hung_up else NEVER_ASKED if self._never_asks else NOT_KNOWN
            await self._deny(request.request_id, why)
            return
        asked = PendingRequest(request, args)
        # Before it is written: the answer may be read by another task as soon as the line is out.
        self._asked[request.request_id] = asked
        self._sink.tell_state("requires_action")
        self._sink.ask(request, args, suggestions(asked, self._sink.dialect))

    async def ask_plan(self, event: ArchitectPlan) -> None:
        if (await self._session.editor_snapshot()).permission_mode == "bypass":
            return  # approved already
        if self._has_hung_up:
            await self._session.reject_plan(DENIED)
            return
        self._asked[event.plan_id] = event
        self._sink.tell_state("requires_action")
        self._sink.ask_plan(event)

    async def ask_question(self, event: QuestionAsked) -> None:
        if self._has_hung_up or self._sink.dialect.is_ours:
            await self._session.answer_question(event.request_id, f"({DENIED})")
            return
        self._asked[event.request_id] = event
        self._sink.tell_state("requires_action")
        self._sink.ask_question(event)

    async def resolved(self, request_id: str) -> None:
        if self._asked.pop(request_id, None) is not None:
            withdraw(request_id)
            self._tell_work()

    async def set_mode(self, name: str) -> None:
        """Set the permission mode, by the SDK's name or ours."""
        await self._session.set_permission_mode(mode_of(name))
        self._never_asks = name == "dontAsk"

    # -- answers

    async def take(self, response: Mapping[str, Any]) -> None:
        """Take the other side's answer to something it was asked; one to anything else says
        nothing."""
        request_id = str(response.get("request_id", ""))
        # Removed first: a second answer to the same request finds nothing and does nothing.
        asked = self._asked.pop(request_id, None)
        said = response.get("response") or {}
        if response.get("subtype") == "error":
            said = {"behavior": "deny", "message": f"its callback failed: {response.get('error')}"}
        if asked is not None:
            await self._answer(asked, said)

    async def hang_up(self) -> None:
        """The program sends nothing more: what it was asked is denied, and so is what it would be
        asked."""
        self._has_hung_up = True
        while self._asked:
            _, asked = self._asked.popitem()
            await self._answer(asked, {"behavior": "deny", "message": DENIED})

    async def _answer(
        self, asked: PendingRequest | ArchitectPlan | QuestionAsked, said: Mapping[str, Any]
    ) -> None:
        self._tell_work()
        try:
            match asked:
                case PendingRequest():
                    await self._resolve(asked, said)
                case ArchitectPlan():
                    await self._decide_plan(said)
                case QuestionAsked():
                    text = _answer_in(said, asked.question)
                    await self._session.answer_question(asked.request_id, text)
        except NoPendingRequest:
            return  # it was answered elsewhere, or the turn is over

    def _tell_work(self) -> None:
        if not self._asked:
            self._sink.tell_state("running")

    async def _resolve(self, asked: PendingRequest, said: Mapping[str, Any]) -> None:
        request_id = asked.request.request_id
        try:
            answer = read_answer(said, asked, self._sink.dialect)
            # Set before the call is released, so that whatever the turn does next is judged under
            # it.
            if answer.mode:
                await self.set_mode(answer.mode)
            await self._session.respond_to_permission(
                answer.action, request_id=request_id, meta=answer.meta
            )
        except UsageError as error:
            # Whatever of it could not be done, the rest of it is not what was meant.
            self._sink.complain(str(error))
            await self._deny(request_id, str(error))

    async def _deny(self, request_id: str, reason: str) -> None:
        await self._session.respond_to_permission(
            "deny", request_id=request_id, meta={"reason": reason}
        )

    async def _decide_plan(self, said: Mapping[str, Any]) -> None:
        """A plan that comes back changed takes the place of the one that was asked about; what is
        no plan is no yes."""
        if not str(said.get("behavior", "")).startswith("allow"):
            await self._session.reject_plan(str(said.get("message") or ""))
            return
        changed = (said.get("updatedInput") or {}).get("plan")
        try:
            if changed is not None:
                # The edited plan is stored before it is approved, so that what is carried out is
                # what the log shows.
                await self._session.edit_plan(changed)
            await self._session.approve_plan()
        except UsageError as error:
            await self._session.reject_plan(str(error))


def _answer_in(said: Mapping[str, Any], question: str) -> str:
    """The answer to a question of the model, as it comes back in the input of the tool that asks
    it."""
    if not str(said.get("behavior", "")).startswith("allow"):
        return f"({said.get('message') or DENIED})"
    given = said.get("updatedInput")
    answers = given.get("answers") if isinstance(given, Mapping) else None
    answer = answers.get(question) if isinstance(answers, Mapping) else None
    if isinstance(answer, list):
        answer = ", ".join(str(each) for each in answer)
    return str(answer) if answer else NO_ANSWER
