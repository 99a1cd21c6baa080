"""Which session a user means: an id, the beginning of one, or a title, looked up in one place."""

from __future__ import annotations

import pytest

from tests.support.weft_program import WeftProgram
from weft.app import App
from weft.cli.session_options import find_id
from weft.errors import AmbiguousId, SessionNotFound
from weft.providers import ScriptedModel

pytestmark = pytest.mark.anyio


async def start(app: App, session_id: str, title: str = "") -> None:
    await app.sessions.start_session(
        session_id=session_id, title=title or session_id, model=ScriptedModel(["Fine."] * 9)
    )


async def test_an_id_its_beginning_and_a_title_name_a_session(app: App) -> None:
    await start(app, "ses_abc1", "Parser")
    await start(app, "ses_abc2")
    await start(app, "other")
    for given in ("ses_abc1", "abc1", "Parser", "parser"):
        assert await find_id(app, given) == "ses_abc1"
    assert await find_id(app, "oth") == "other"
    for given in ("ses_abc", "abc"):
        with pytest.raises(AmbiguousId):
            await find_id(app, given)
    for given in ("nothing", "%", "_", "ses_x"):
        with pytest.raises(SessionNotFound):
            await find_id(app, given)


async def test_programs_leave_the_prefix_out_as_users_do(app: App) -> None:
    await start(app, "ses_abc1", "Parser")
    assert await app.sessions.resolve_id("abc") == "ses_abc1"
    assert (await app.sessions.get("abc")).id == "ses_abc1"
    with pytest.raises(SessionNotFound):
        await app.sessions.resolve_id("Parser")


async def test_a_deleted_session_whose_past_a_fork_shares_is_not_found(app: App) -> None:
    await start(app, "ses_parent")
    await (await app.sessions.get("ses_parent")).send_message("hello")
    fork = await app.sessions.fork_session("ses_parent")
    await fork.send_message("more")
    await app.sessions.delete_session("ses_parent")
    with pytest.raises(SessionNotFound):
        await find_id(app, "ses_parent")


REFUSED = [{"do": "error", "error": "RequestRefused"}]
"""An answer that is asked for once: the run fails after its message was stored."""


@pytest.mark.process
def test_a_run_that_failed_is_not_what_the_next_one_continues(weft: WeftProgram) -> None:
    assert weft.run("-p", "-m", weft.script("One."), "the good one").returncode == 0
    failed = weft.run("-p", "-m", weft.script(REFUSED), "the failed one")
    assert failed.returncode == 1
    done = weft.run("-p", "-c", "-m", weft.script("One.", "Two."), "go on")
    assert (done.returncode, done.stdout) == (0, "Two.\n")
    rows = {row["first_prompt"]: row["message_count"] for row in weft.sessions()}
    assert rows == {"the good one": 4, "the failed one": 1}, "it is kept, and listed"


@pytest.mark.process
def test_where_every_run_failed_the_last_one_is_continued(weft: WeftProgram) -> None:
    assert weft.run("-p", "-m", weft.script(REFUSED), "again").returncode == 1
    done = weft.run("-p", "-c", "-m", weft.script("At last."), "try once more")
    assert (done.returncode, done.stdout) == (0, "At last.\n")
