"""Operations on what a session works with: model, modes, compaction, skills, boundaries."""

from __future__ import annotations

import msgspec

from weft.api import CompactionReport, SkillFile
from weft.server.bodies import (
    CollapseBody,
    CompactBody,
    LevelBody,
    ModeBody,
    ModelBody,
    RangeBody,
    ResumeChoiceBody,
    StatusAnswer,
    TextAnswer,
    ToggleAnswer,
)
from weft.server.operation import ApiCall, ApiOperation, session_call
from weft.state import EditBoundary


async def _cycle_model(call: ApiCall) -> StatusAnswer:
    session = await call.session()
    return StatusAnswer(value=await session.cycle_model(input_id=call.body.input_id))


async def _cycle_thinking(call: ApiCall) -> StatusAnswer:
    session = await call.session()
    return StatusAnswer(value=await session.cycle_thinking_level(input_id=call.body.input_id))


async def _mode(call: ApiCall) -> StatusAnswer:
    return StatusAnswer(value=await (await call.session()).get_mode())


async def _summarize(call: ApiCall) -> TextAnswer:
    text, path = await (await call.session()).summarize()
    return TextAnswer(text=text, path=path)


class SkillList(msgspec.Struct, frozen=True, kw_only=True):
    """The skills of a session."""

    all: list[SkillFile]
    active: list[str]


async def _skills(call: ApiCall) -> SkillList:
    found, active = await (await call.session()).list_skills()
    return SkillList(all=found, active=active)


async def _collapse(call: ApiCall) -> ToggleAnswer:
    session, body = await call.session(), call.body
    if body.message_id is None:
        return ToggleAnswer(value=await session.toggle_all_tool_collapses(input_id=body.input_id))
    value = await session.toggle_tool_collapse(body.message_id, input_id=body.input_id)
    return ToggleAnswer(value=value)


SETTINGS: tuple[ApiOperation, ...] = (
    session_call(
        "PUT",
        "/model",
        "set_model",
        "Use another model from the next call on.",
        body=ModelBody,
        also=("update_model",),
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/model/cycle",
        name="cycle_model",
        says="Use the next model of the configured rotation.",
        run=_cycle_model,
        answer=StatusAnswer,
        calls=("session.cycle_model",),
    ),
    session_call(
        "PUT", "/thinking", "set_thinking_level", "Set the thinking level.", body=LevelBody
    ),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/thinking/cycle",
        name="cycle_thinking_level",
        says="Use the next thinking level.",
        run=_cycle_thinking,
        answer=StatusAnswer,
        calls=("session.cycle_thinking_level",),
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/mode",
        name="get_mode",
        says="The mode: normal or architect.",
        run=_mode,
        answer=StatusAnswer,
        calls=("session.get_mode",),
    ),
    session_call("PUT", "/mode", "set_mode", "Set the mode: normal or architect.", body=ModeBody),
    session_call(
        "PUT",
        "/permission-mode",
        "set_permission_mode",
        "Set the permission mode: plan, default, accept_edits, auto or bypass.",
        body=ModeBody,
    ),
    session_call(
        "PUT",
        "/resume",
        "set_resume",
        "Choose what happens to a turn that a crash cuts off: ask, auto or never.",
        body=ResumeChoiceBody,
    ),
    session_call(
        "POST",
        "/compact",
        "compact",
        "Summarize older messages.",
        body=CompactBody,
        answer=CompactionReport,
    ),
    session_call("POST", "/compact/undo", "undo_compaction", "Undo the last compaction."),
    ApiOperation(
        method="POST",
        path="/sessions/{id}/summarize",
        name="summarize",
        says="Write a handover document for a later session.",
        run=_summarize,
        answer=TextAnswer,
        calls=("session.summarize",),
        remembers=False,
    ),
    ApiOperation(
        method="GET",
        path="/sessions/{id}/skills",
        name="list_skills",
        says="The skills that there are, and the names of those that are active.",
        run=_skills,
        answer=SkillList,
        calls=("session.list_skills",),
    ),
    session_call("PUT", "/skills/{name}", "activate_skill", "Activate a skill."),
    session_call("DELETE", "/skills/{name}", "deactivate_skill", "Deactivate a skill."),
    session_call(
        "GET",
        "/boundaries/{path:path}",
        "boundary_for",
        "The lines of a file that may be edited; null when all may.",
        answer=EditBoundary | None,
    ),
    session_call(
        "PUT",
        "/boundaries/{path:path}",
        "set_boundary",
        "Let only these lines of a file be edited.",
        body=RangeBody,
    ),
    session_call(
        "DELETE", "/boundaries/{path:path}", "clear_boundary", "Let all of a file be edited."
    ),
    session_call(
        "DELETE", "/boundaries", "clear_all_boundaries", "Let all lines of all files be edited."
    ),
    ApiOperation(
        method="PUT",
        path="/sessions/{id}/view/collapse",
        name="toggle_tool_collapse",
        says="Collapse or unfold the tool calls of a message, or of all.",
        run=_collapse,
        body=CollapseBody,
        answer=ToggleAnswer,
        calls=("session.toggle_tool_collapse", "session.toggle_all_tool_collapses"),
    ),
)
