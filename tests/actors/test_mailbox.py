"""Messages to one actor: in order, bounded, and answered or failed, never forgotten."""

from __future__ import annotations

import anyio
import pytest
from anyio import fail_after
from anyio.lowlevel import checkpoint

from tests.support.idle_loop import all_tasks_blocked
from weft.actors import Mailbox
from weft.errors import SessionStopped, WeftError

pytestmark = pytest.mark.anyio


async def test_messages_are_taken_in_the_order_in_which_they_were_posted() -> None:
    mailbox: Mailbox[int] = Mailbox("m")
    for number in range(10):
        await mailbox.post(number)
    assert len(mailbox) == 10
    assert [(await mailbox.take()).message for _ in range(10)] == list(range(10))


async def test_a_call_returns_the_answer() -> None:
    mailbox: Mailbox[int] = Mailbox("m")

    async def actor() -> None:
        while True:
            envelope = await mailbox.take()
            envelope.answer(envelope.message * 2)

    with fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(actor)
            assert [await mailbox.call(n) for n in range(3)] == [0, 2, 4]
            group.cancel_scope.cancel()


async def test_an_error_as_answer_is_raised_at_the_caller_and_nowhere_else() -> None:
    mailbox: Mailbox[str] = Mailbox("m")
    envelope = await mailbox.post("x")
    (await mailbox.take()).fail(WeftError("no"))
    with pytest.raises(WeftError, match="no"):
        await envelope.wait()


async def test_an_actor_that_waits_is_woken_by_a_message() -> None:
    mailbox: Mailbox[str] = Mailbox("m")
    taken: list[str] = []

    async def actor() -> None:
        while len(taken) < 2:
            taken.append((await mailbox.take()).message)

    with fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(actor)
            for word in ("a", "b"):
                await all_tasks_blocked()
                await mailbox.post(word)
    assert taken == ["a", "b"]


async def test_a_sender_waits_while_the_mailbox_is_full_and_goes_on_in_turn() -> None:
    mailbox: Mailbox[int] = Mailbox("m", capacity=2)
    posted: list[int] = []

    async def send(number: int) -> None:
        await mailbox.post(number)
        posted.append(number)

    with fail_after(5):
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(send, number)
            await all_tasks_blocked()
            assert len(mailbox) == 2
            assert posted == [0, 1]
            taken = []
            for _ in range(5):
                taken.append((await mailbox.take()).message)
                await all_tasks_blocked()
                assert len(mailbox) <= 2
    assert taken == [0, 1, 2, 3, 4]


async def test_a_sender_that_gives_up_while_waiting_for_room_posts_nothing() -> None:
    mailbox: Mailbox[str] = Mailbox("m", capacity=1)
    await mailbox.post("first")
    with anyio.move_on_after(0.01):
        await mailbox.post("never")
    assert (await mailbox.take()).message == "first"
    with fail_after(5):
        await mailbox.post("next")
    assert (await mailbox.take()).message == "next"
    assert len(mailbox) == 0


async def test_a_caller_that_stops_waiting_does_not_undo_the_message() -> None:
    mailbox: Mailbox[str] = Mailbox("m")
    async with anyio.create_task_group() as group:
        group.start_soon(mailbox.call, "work")
        await all_tasks_blocked()
        group.cancel_scope.cancel()
    envelope = await mailbox.take()
    assert envelope.message == "work"
    envelope.answer("done")
    assert await envelope.wait() == "done"


async def test_closing_fails_those_that_wait_for_an_answer_and_those_that_wait_for_room() -> None:
    mailbox: Mailbox[int] = Mailbox("m", capacity=2)
    failed: list[tuple[int, str]] = []

    async def call(number: int) -> None:
        try:
            await mailbox.call(number)
        except SessionStopped as error:
            failed.append((number, str(error)))

    with fail_after(5):
        async with anyio.create_task_group() as group:
            for number in range(6):
                group.start_soon(call, number)
            await all_tasks_blocked()
            mailbox.close(SessionStopped("ses_a", "told to"))
    assert sorted(number for number, _ in failed) == list(range(6))
    assert {words for _, words in failed} == {"session 'ses_a' has stopped: told to"}
    assert len(mailbox) == 0


async def test_a_closed_mailbox_takes_nothing_and_says_why() -> None:
    mailbox: Mailbox[int] = Mailbox("ses_a")
    mailbox.close()
    with pytest.raises(SessionStopped, match=r"'ses_a' has stopped: it was closed"):
        await mailbox.post(1)


async def test_a_message_that_was_taken_before_the_close_can_still_be_answered() -> None:
    mailbox: Mailbox[int] = Mailbox("m")
    envelope = await mailbox.post(1)
    taken = await mailbox.take()
    mailbox.close()
    taken.answer("in time")
    assert await envelope.wait() == "in time"


async def test_refusing_many_callers_keeps_nothing_of_them() -> None:
    """One error serves all callers: its traceback must not grow with them (each frame holds its
    caller's variables).
    """
    mailbox: Mailbox[int] = Mailbox("m")
    mailbox.close()
    lengths = []
    for _ in range(3):
        with pytest.raises(SessionStopped) as caught:
            await mailbox.post(1)
        lengths.append(len(caught.traceback))
        await checkpoint()
    assert len(set(lengths)) == 1


async def test_an_end_that_must_not_get_lost_needs_no_room() -> None:
    mailbox: Mailbox[str] = Mailbox("m", capacity=1)
    await mailbox.post("a")
    mailbox.post_now("end")
    assert [(await mailbox.take()).message for _ in range(2)] == ["a", "end"]
    await mailbox.post("b")
    with anyio.move_on_after(0.01) as scope:
        await mailbox.post("c")
    assert scope.cancelled_caught, "what took no room must not give any back"
    mailbox.close()
    with pytest.raises(SessionStopped):
        mailbox.post_now("end")
