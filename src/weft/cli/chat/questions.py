"""Questions to the user: approval of tool calls and plans, the model's questions, folder trust."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from weft.api.session import Session
from weft.app import App
from weft.cli.chat.approval_text import (
    NO_LABEL,
    NOTE_KEY,
    NOTE_LABEL,
    ApprovalPlace,
    always_question,
    answer_actions,
    permission_question,
)
from weft.cli.chat.input_edit import EditableInput, editable_input
from weft.cli.chat.plan_text import as_text, from_text
from weft.cli.chat.screens.screen import ChatScreen, ChoiceQuestion, ChoiceRow
from weft.cli.chat.trust_text import in_rows, may_act, plain_question, title_of
from weft.cli.exit_codes import sentence_of
from weft.cli.sanitize import clean, visible
from weft.errors import NoPendingRequest, UsageError
from weft.events import PermissionRequest, QuestionAsked
from weft.view import (
    NoteBlock,
    OpenRequest,
    PermissionBlock,
    PlanBlock,
    PlanRequest,
    TableBlock,
)

if TYPE_CHECKING:  # loaded with the first command from a file, or the first chat of our own
    from weft.cli.chat.rule_keeper import RuleKeeper
    from weft.permissions import PermissionRule
    from weft.project.markdown_commands import ShellRequest


class UserQuestions:
    """Puts questions to the user, one after the other."""

    def __init__(
        self,
        screen: ChatScreen,
        interrupt: Callable[[], None],
        place: ApprovalPlace | None = None,
        rules: RuleKeeper | None = None,
    ) -> None:
        """`interrupt` stops the turn from inside one of its questions; `rules` proposes those that
        "always" may mean."""
        self._screen = screen
        self._interrupt = interrupt
        self._place = place or ApprovalPlace()
        self._rules = rules
        self.picked: set[str] = set()
        """Files that the user has dropped on the window, by their real paths: no need to ask."""

    async def put(
        self,
        session: Session,
        request: OpenRequest,
        *,
        number: int = 1,
        count: int = 1,
        args: dict[str, Any] | None = None,
        task: str = "",
    ) -> None:
        """Ask, and hand the answer to the session; `number` of the `count` approvals that wait.

        `args` is the input of the call that is asked about, where it is known; `task` is what the
        agent works on that asks.
        """
        try:
            match request:
                case PermissionRequest():
                    question = permission_question(
                        request, self._place, number=number, count=count, args=args, task=task
                    )
                    await self._ask_permission(session, request, question, args)
                case PlanRequest():
                    if not request.is_shown:
                        self._screen.show(PlanBlock(plan=request.plan))
                    await self._ask_plan(session, request.plan)
                case QuestionAsked():
                    await self._ask_user(session, request, args or {})
        except NoPendingRequest:
            return  # another client answered first

    async def ask_shell(self, request: ShellRequest) -> bool:
        """Whether a shell command of a slash command may be run."""
        preview = PermissionBlock(
            tool=f"/{request.name}",
            target=request.command,
            preview=request.command,
            reason=request.reason,
        )
        question = ChoiceQuestion(
            title="Allow this command?",
            rule=f"/{request.name} runs a command",
            preview=(preview,),
            rows=(
                ChoiceRow("Yes, run it", key="y"),
                ChoiceRow("No, and do not send the command", key="n"),
            ),
            hint="Esc is no",
            picked=-1,
        )
        return await self._screen.choose(question) == 0

    async def ask_read(self, path: str) -> bool:
        """Whether a file outside the project, which a message names, may be read."""
        if path in self.picked:
            return True
        question = ChoiceQuestion(
            title=f"Allow reading {visible(path)}?",
            rule="Attach a file",
            danger="outside this folder",
            rows=(
                ChoiceRow("Yes, attach it", key="y"),
                ChoiceRow("No, and do not send the message", key="n"),
            ),
            hint="Esc is no",
            picked=-1,
        )
        return await self._screen.choose(question) == 0

    async def _ask_permission(
        self,
        session: Session,
        request: PermissionRequest,
        question: ChoiceQuestion,
        args: dict[str, Any] | None,
    ) -> None:
        text: str | None = None
        while (chosen := await self._screen.choose(question)) is not None:
            if chosen < len(question.rows):
                action = answer_actions(request)[chosen]
                if action == "allow_always" and (rules := self._proposed(request, args)):
                    if await self._allow_by_rule(session, request, rules):
                        return
                    continue
                await self._answer(session, request, question, action)
                return
            assert args is not None, "only then a question has other keys"
            if question.other_keys[chosen - len(question.rows)] == NOTE_KEY:
                if await self._allow_with_note(session, request, question):
                    return
                continue
            given = editable_input(request.tool_name, args)
            text = await self._written(given.text if text is None else text, given.suffix) or text
            if text is not None and await self._allow_changed(session, request, given, text):
                return
        self._interrupt()

    def _proposed(
        self, request: PermissionRequest, args: dict[str, Any] | None
    ) -> tuple[PermissionRule, ...]:
        return () if self._rules is None else self._rules.proposed(request, args)

    async def _allow_by_rule(
        self, session: Session, request: PermissionRequest, rules: tuple[PermissionRule, ...]
    ) -> bool:
        """Ask what "always" means, and where to keep it; False to ask the first question again."""
        assert self._rules is not None, "it has proposed them"
        question = always_question(request, rules, await self._rules.history_of(rules))
        chosen = await self._screen.choose(question)
        if chosen is None:
            return False
        if chosen == 0:
            await session.respond_to_permission("allow_always", request_id=request.request_id)
            return True
        if chosen == 2:
            try:
                await self._rules.keep(rules)
            except UsageError as error:
                self._screen.show(NoteBlock(text=sentence_of(error), level="error"))
                return False
        await session.respond_to_permission(
            "allow_once", request_id=request.request_id, meta={"rules": rules}
        )
        if any(rule.tool == "fetch" for rule in rules):
            self._place = self._place._replace(allows_hosts=True)
        return True

    async def _allow_with_note(
        self, session: Session, request: PermissionRequest, question: ChoiceQuestion
    ) -> bool:
        note = (await self._screen.ask_line(NOTE_LABEL, about=question) or "").strip()
        if not note:
            return False
        # First: the call may end before another command of ours arrives.
        await session.queue_steering(note)
        await session.respond_to_permission("allow_once", request_id=request.request_id)
        return True

    async def _written(self, text: str, suffix: str) -> str | None:
        try:
            return await self._screen.edit(text, suffix)
        except UsageError as error:
            self._screen.show(NoteBlock(text=sentence_of(error), level="error"))
            return None

    async def _allow_changed(
        self, session: Session, request: PermissionRequest, given: EditableInput, text: str
    ) -> bool:
        try:
            changed = given.changed(text)
        except UsageError as error:
            self._screen.show(NoteBlock(text=sentence_of(error), level="error"))
            return False
        if changed is None:
            return False
        await session.respond_to_permission(
            "allow_once", request_id=request.request_id, meta={"input": changed}
        )
        return True

    async def _answer(
        self, session: Session, request: PermissionRequest, question: ChoiceQuestion, action: str
    ) -> None:
        reason = ""
        if action == "deny":
            reason = (await self._screen.ask_line(NO_LABEL, about=question) or "").strip()
        if action == "all_edits":
            # First: what the mode allows is no longer asked when this call goes on.
            await session.set_permission_mode("accept_edits")
            action = "allow_once"
        await session.respond_to_permission(
            action,  # type: ignore[arg-type]  # these are the literals
            request_id=request.request_id,
            meta={"reason": reason} if reason else None,
        )

    async def _ask_user(
        self, session: Session, request: QuestionAsked, args: dict[str, Any]
    ) -> None:
        if request.options:
            answer = await self._chosen(request, args)
        else:
            answer = await self._screen.ask_line(clean(request.question).strip("\n"))
        if answer is None:
            self._interrupt()
        else:
            await session.answer_question(request.request_id, answer or "(no answer)")

    async def _chosen(self, request: QuestionAsked, args: dict[str, Any]) -> str | None:
        """An option, or an answer in the user's words; None to stop the turn."""
        described = zip_longest(request.options, _descriptions(request, args), fillvalue="")
        question = ChoiceQuestion(
            title=clean(request.question).strip("\n"),
            rows=(
                *(ChoiceRow(option, detail) for option, detail in described),
                ChoiceRow("Something else…"),
            ),
            hint="Esc stops the turn",
            rule="A question",
            is_from_model=True,
            are_described=True,
        )
        while (chosen := await self._screen.choose(question)) is not None:
            if chosen < len(request.options):
                return request.options[chosen]
            # The question stays in sight while another answer is written; Esc goes back to it.
            written = await self._screen.ask_line(f"{question.title}\nYour answer:")
            if written is not None:
                return written
        return None

    # -- plans

    async def _ask_plan(self, session: Session, plan: dict[str, Any]) -> None:
        """Approve, change or turn down; a plan that was changed is shown and asked about again."""
        while True:
            question = ChoiceQuestion(
                title="Carry out this plan?",
                rows=(
                    ChoiceRow("Yes", key="y"),
                    ChoiceRow("Edit it first", "in your editor", key="e"),
                    ChoiceRow("No, and say what to do instead", key="n"),
                ),
                hint="Esc stops the turn",
                picked=-1,
            )
            match await self._screen.choose(question):
                case 0:
                    await session.approve_plan()
                    return
                case 1:
                    plan = await self._changed(session, plan)
                case 2:
                    reason = await self._screen.ask_line(NO_LABEL)
                    await session.reject_plan((reason or "").strip())
                    return
                case _:
                    self._interrupt()
                    return

    async def _changed(self, session: Session, plan: dict[str, Any]) -> dict[str, Any]:
        """The plan as the user edited it; their text is not lost when it is not a valid plan."""
        text = as_text(plan)
        while True:
            try:
                written = await self._screen.edit(text, ".toml")
            except UsageError as error:
                self._screen.show(NoteBlock(text=sentence_of(error), level="error"))
                return plan
            if written is None or written == text:
                return plan
            try:
                changed = from_text(written)
                await session.edit_plan(changed)
                return changed
            except UsageError as error:
                self._screen.show(NoteBlock(text=sentence_of(error), level="error"))
            again = ChoiceQuestion(
                title="That is not a valid plan.",
                rows=(ChoiceRow("Keep editing"), ChoiceRow("Discard the changes")),
                hint="1-2",
            )
            if await self._screen.choose(again) != 0:
                self._screen.show(PlanBlock(plan=plan))
                return plan
            text = written


def _descriptions(request: QuestionAsked, args: dict[str, Any]) -> list[str]:
    """What the model says of its options, as many as it has."""
    given = args.get("descriptions")
    described = [str(each) for each in given] if isinstance(given, list) else []
    return described[: len(request.options)]


async def ask_trust(app: App, screen: ChatScreen, *, is_asked_for: bool = False) -> None:
    """Ask whether the user trusts the folder; by itself only where something is withheld.

    Raises:
        UsageError: it was asked for, and the folder is trusted already.
    """
    question = await app.trust_question() if may_act(app) else None
    if question is None:
        if not is_asked_for:
            return
        if await app.is_trusted():
            raise UsageError("this folder is trusted already")
        question = plain_question(app)
    screen.show(TableBlock(title=title_of(question), rows=tuple(in_rows(question))))
    chosen = await screen.choose(
        ChoiceQuestion(
            title=f"Do you trust {question.path}?",
            rows=(
                ChoiceRow("No, not now", "its settings and hooks are ignored; /trust asks again"),
                ChoiceRow(
                    "Yes, as it is now", "what is shown above takes effect, until it changes"
                ),
            ),
            hint="1-2; Esc is no",
            picked=-1,
        )
    )
    if chosen == 1:
        try:
            await app.trust()
        except UsageError as error:
            screen.show(NoteBlock(text=f"not trusted: {error}", level="warning"))
            return
        screen.show(NoteBlock(text="trusted, as it is now", level="quiet"))
    else:
        screen.show(
            NoteBlock(text="not trusted: its settings and hooks are ignored", level="quiet")
        )
