"""Operations on what a session does with no user there: waits, and prompts that are sent later."""

from __future__ import annotations

from weft.api import Answer, Goal, SessionWait, SideQuestion
from weft.events import WaitSubject
from weft.server.operation import ApiCall, ApiOperation, ChangeBody, session_call


class LaterBody(ChangeBody, frozen=True, kw_only=True):
    """A prompt that is sent later."""

    at: str
    """`17:00`, ISO 8601 or `+2h`."""
    prompt: str
    every: str | None = None
    """`5m`: again and again, so often."""
    max_rounds: int | None = None
    until: str | None = None
    """No round begins after this time."""


class ScheduleBody(LaterBody, frozen=True, kw_only=True):
    """A prompt that is sent later, in a new session or in one that there is."""

    session_id: str | None = None


async def _schedule(call: ApiCall) -> SessionWait:
    body: ScheduleBody = call.body
    app = await call.app()
    if body.session_id is not None:
        app = await call.parts.projects.home_of(body.session_id, opens=True)
    return await app.schedule(**call.fields("input_id"))


class WaitBody(ChangeBody, frozen=True, kw_only=True):
    """What a session waits for."""

    on: WaitSubject
    until: str | None = None
    """`17:00`, ISO 8601 or `+2h`: when it is woken at the latest."""


class AsideBody(ChangeBody, frozen=True, kw_only=True):
    """A question beside the line."""

    content: str


class GoalBody(ChangeBody, frozen=True, kw_only=True):
    """What is worked for turn after turn."""

    text: str
    check: str | None = None
    """A command line; exit code 0 says that it is reached."""
    judge: str | None = None
    """A model that is asked where the check passes, or there is none."""
    max_budget_usd: float | None = None
    max_seconds: float | None = None
    max_rounds: int | None = None
    outside_sandbox: bool = False
    """Where there is no sandbox, the check runs all the same."""


class GoalEditBody(ChangeBody, frozen=True, kw_only=True):
    """What of a goal is another from now on; what is not given stays."""

    text: str | None = None
    check: str | None = None
    judge: str | None = None
    max_budget_usd: float | None = None
    max_seconds: float | None = None
    max_rounds: int | None = None
    outside_sandbox: bool = False


class GoalResumeBody(ChangeBody, frozen=True, kw_only=True):
    """That a goal goes on."""

    outside_sandbox: bool = False
    """As of a goal that is set, where it has to be given anew."""


UNATTENDED = (
    session_call(
        "GET",
        "/waits",
        "waits",
        "What a session waits for: the wait of its turn, and prompts that are to be sent.",
        answer=list[SessionWait],
    ),
    session_call(
        "POST",
        "/waits",
        "wait_for",
        "Begin a turn that is asleep until something has come.",
        body=WaitBody,
        answer=SessionWait,
        status=201,
    ),
    session_call(
        "DELETE",
        "/waits/{wait}",
        "cancel_wait",
        "End a wait of the turn, or a schedule; true when it had not ended.",
        answer=bool,
        path_as={"wait": "id"},
    ),
    session_call(
        "POST",
        "/schedules",
        "schedule",
        "Send a prompt to a session at a time, once or again and again.",
        body=LaterBody,
        answer=SessionWait,
        status=201,
    ),
    session_call(
        "POST",
        "/aside",
        "ask_aside",
        "Ask a side question; it is in no later request.",
        body=AsideBody,
        answer=Answer,
    ),
    session_call(
        "GET",
        "/asides",
        "asides",
        "The side questions of the present line, with their answers.",
        answer=tuple[SideQuestion, ...],
    ),
    session_call(
        "GET",
        "/goal",
        "goal",
        "The goal of a session, and what its checks came to; null without one.",
        answer=Goal | None,
    ),
    session_call(
        "PUT",
        "/goal",
        "set_goal",
        "Work turn after turn until a check passes, or a judge says so.",
        body=GoalBody,
        answer=Goal,
        status=201,
    ),
    session_call(
        "DELETE", "/goal", "clear_goal", "End the goal; true when there was one.", answer=bool
    ),
    session_call(
        "POST",
        "/goal/edit",
        "edit_goal",
        "Change the goal from its next round on.",
        body=GoalEditBody,
        answer=Goal,
    ),
    session_call(
        "POST",
        "/goal/pause",
        "pause_goal",
        "Let the present step end, and begin nothing more for the goal.",
        answer=Goal,
    ),
    session_call(
        "POST",
        "/goal/resume",
        "resume_goal",
        "Continue a goal that is paused, or that no process works for.",
        body=GoalResumeBody,
        answer=Goal,
    ),
    ApiOperation(
        method="POST",
        path="/projects/{project}/schedules",
        name="schedule_in_project",
        says="Send a prompt at a time, in a new session of the project or in one that there is.",
        run=_schedule,
        body=ScheduleBody,
        answer=SessionWait,
        status=201,
        calls=("app.schedule",),
        remembers=False,
    ),
)
