"""Corrections of a user: the measures on what was written down before the detector."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.call_count import calls_made
from weft.decisions.corrections import find_correction
from weft.decisions.corrections.foreign_words import in_english
from weft.runtime.decisions.decision_source import may_correct

DATA = Path(__file__).parent / "data"


def rows(name: str) -> list[list[str]]:
    lines = (DATA / name).read_text("utf-8").splitlines()
    return [line.replace("\\n", "\n").split("\t") for line in lines]


CORRECTIONS = rows("corrections.tsv")
OTHERS = rows("no_corrections.tsv")


def is_captured(proposal: str, reply: str, rejected: str, chosen: str) -> bool:
    """Whether what is found says both what was turned down and what is wanted."""
    found = find_correction(proposal, reply)
    if found is None:
        return False
    turned_down = f"{found.rejected} {found.quote}".lower()
    return rejected in turned_down and chosen in found.chosen.lower()


def test_at_least_80_percent_of_the_corrections_are_captured() -> None:
    captured = sum(is_captured(*row) for row in CORRECTIONS)
    assert len(CORRECTIONS) == 50
    assert captured / len(CORRECTIONS) >= 0.80


def test_at_most_5_percent_of_the_other_answers_are_taken_for_one() -> None:
    false = [reply for proposal, reply in OTHERS if find_correction(proposal, reply)]
    assert len(OTHERS) == 50
    assert len(false) / len(OTHERS) <= 0.05, false


def test_other_words_do_as_well() -> None:
    corrections = rows("more_corrections.tsv")
    captured = [find_correction(*row) for row in corrections]
    assert sum(each is not None for each in captured) / len(corrections) >= 0.95
    others = rows("more_no_corrections.tsv")
    false = [reply for proposal, reply in others if find_correction(proposal, reply)]
    assert len(false) / len(others) <= 0.05, false


def test_answers_that_take_a_proposal_as_it_is_correct_nothing() -> None:
    corrections, others = rows("varied_corrections.tsv"), rows("varied_no_corrections.tsv")
    captured = [find_correction(*row) for row in corrections]
    assert sum(each is not None for each in captured) / len(corrections) >= 0.85
    false = [reply for proposal, reply in others if find_correction(proposal, reply)]
    assert len(false) / len(others) <= 0.05, false


@pytest.mark.parametrize(
    "reply",
    [
        "do it, nobody else is on that branch",
        "Makes sense. We had long polling before and it was a pain",
        "that'll do for now, we can clean it up later instead of blocking the release",
        "+1, assign the first one to Dana",
    ],
)
def test_a_clause_of_assent_is_no_correction_whatever_stands_beside_it(reply: str) -> None:
    assert find_correction("I'll use a WebSocket for the notifications.", reply) is None


def test_assent_with_an_exception_is_still_a_correction() -> None:
    reply = "WebSockets are fine elsewhere, but not here: use server-sent events instead"
    assert find_correction("I'll use a WebSocket for the notifications.", reply) is not None


def test_answers_that_no_weight_was_found_on_are_told_apart() -> None:
    corrections, others = rows("final_corrections.tsv"), rows("final_no_corrections.tsv")
    captured = [row for row in corrections if find_correction(*row)]
    assert len(captured) / len(corrections) >= 0.80
    false = [row[1] for row in others if find_correction(*row)]
    assert len(false) / len(others) <= 0.05, false


@pytest.mark.parametrize(
    ("proposal", "reply", "chosen"),
    [
        ("Ich nehme dafür Redis.", "bitte kein Redis, nimm den Cache im Prozess", "nimm den Cache"),
        ("Je vais ajouter un index.", "non, pas d'index, utilise plutôt une vue", "utilise plutôt"),
        ("Voy a usar Redis.", "mejor no, usa la base de datos", "usa la base de datos"),
        ("我会用 Redis。", "不要用 Redis，用内存缓存", "用内存缓存"),
        ("Ich nehme dafür Redis.", "super, danke!", None),
        ("J'ai corrigé le test.", "merci, c'est parfait", None),
        ("He arreglado el test.", "¿por qué fallaba?", None),
        ("我改好了。", "谢谢，继续", None),
    ],
)
def test_answers_in_other_languages_are_told_apart(
    proposal: str, reply: str, chosen: str | None
) -> None:
    found = find_correction(proposal, reply)
    assert (found is None) == (chosen is None), found
    if found is not None and chosen is not None:
        assert chosen in found.chosen
        assert found.quote == reply


@pytest.mark.parametrize(
    "text",
    [
        "I'll use the pool for it, and go on with the rest.",
        "He said that the index is too slow.",
        "npm was so slow, go with MIT",
        "",
    ],
)
def test_english_stays_as_it_is(text: str) -> None:
    assert in_english(text) == text


def test_thanks_before_a_correction_do_not_hide_it() -> None:
    proposal = "I added the handlers. I also changed the error code from 400 to 422."
    found = find_correction(proposal, "Thanks for that! The code must stay 400, apps check for it.")
    assert found is not None
    assert "Thanks" not in found.quote
    assert find_correction(proposal, "Thanks for that! Now write the tests, please.") is None


@pytest.mark.parametrize(
    ("proposal", "reply"),
    [
        ("I'll print progress to stderr.", "does tqdm do this by default"),
        ("I'll start with the parser.", "wait a second, I need to push something first"),
        ("I'll rerun the job.", "don't worry if it takes a while, it has no index"),
        ("I'll drop support for Python 3.8.", "finally! nobody uses it any more"),
        ("I'll open an issue upstream.", "they never answer but ok"),
    ],
)
def test_asking_waiting_warning_and_excusing_correct_nothing(proposal: str, reply: str) -> None:
    assert find_correction(proposal, reply) is None


@pytest.mark.parametrize(
    ("proposal", "reply"),
    [
        ("I changed the button to a link.", "It has to stay a <button>, for a11y"),
        ("Design: jobs in a table, polled each second.", "no polling, use LISTEN/NOTIFY"),
        ("I'll use `git push --force`.", "--force-with-lease please"),
    ],
)
def test_what_was_done_designed_or_only_named_is_corrected_too(proposal: str, reply: str) -> None:
    assert find_correction(proposal, reply) is not None


@pytest.mark.parametrize(("name", "least"), [("unseen", 0.85), ("held_out", 0.80), ("role", 0.80)])
def test_corrections_without_a_no_are_captured_too(name: str, least: float) -> None:
    corrections, others = rows(f"{name}_corrections.tsv"), rows(f"{name}_no_corrections.tsv")
    assert sum(is_captured(*row) for row in corrections) / len(corrections) >= least
    false = [reply for proposal, reply in others if find_correction(proposal, reply)]
    assert len(false) / len(others) <= 0.05, false


def test_a_correction_in_the_middle_of_a_long_message_is_found_and_what_is_pasted_is_not() -> None:
    proposal = "I'll split the export into a job per customer and run them on Celery."
    long = (
        "Hi, thanks for the numbers. It took me a while to read all of it.\n\n"
        "{}\n\nCan you also check that the files land in /exports? They were missing."
    )
    found = find_correction(proposal, long.format("Celery is overkill. Use a plain loop."))
    assert found is not None
    assert (found.chosen, found.quote) == (
        "Use a plain loop",
        "Celery is overkill. Use a plain loop.",
    )
    for pasted in ("> Celery is overkill. Use a plain loop.", "```\nno, use a loop instead\n```"):
        assert find_correction(proposal, long.format(pasted)) is None


@pytest.mark.parametrize(("length", "calls"), [(100, 1_650), (2_400, 10_000), (10_000, 50)])
def test_a_look_costs_little(length: int, calls: int) -> None:
    proposal = "I'll use Celery for the nightly export."
    reply = ("We looked at it, but we should rather use cron and not Celery. " * 200)[:length]
    find_correction(proposal, reply)
    assert calls_made(lambda: find_correction(proposal, reply)) < calls


@pytest.mark.parametrize(
    ("proposal", "reply", "chosen"),
    [
        ("I'll use a lambda.", "a named function is clearer", "a named function is clearer"),
        ("I'll store the blobs in Postgres.", "blobs belong in S3", "blobs belong in S3"),
        ("I'll use WebSockets.", "SSE, please.", "SSE"),
        ("I'll use tabs.", "we use spaces here", "we use spaces here"),
        ("I'll wait 60 seconds.", "5.", "5"),
        ("I'll use a queue.", "limit it to 4", None),
        ("I'll use a queue.", "the queue is called jobs", None),
        ("I'll raise an error.", "a ValueError", None),
        ("I'll use a queue.", "I would never have thought of that, nice", None),
        ("Should I use WebSockets?", "SSE, please.", None),
    ],
)
def test_another_way_is_told_from_a_detail(proposal: str, reply: str, chosen: str | None) -> None:
    found = find_correction(proposal, reply)
    assert (found and found.chosen) == chosen


@pytest.mark.parametrize(
    "name",
    [
        *("", "more_", "unseen_", "held_out_", "role_", "fresh_", "kept_", "sealed_"),
        *("mixed_", "talk_", "shut_", "closed_", "last_", "final_"),
    ],
)
def test_the_first_look_keeps_no_correction_from_the_detector(name: str) -> None:
    for row in rows(f"{name}corrections.tsv"):
        assert may_correct(row[0], row[1]) or find_correction(row[0], row[1]) is None, row
    assert not may_correct("Hello.", "and now the tests")


def test_of_a_long_answer_the_sentence_is_taken_that_was_turned_down() -> None:
    proposal = (
        "The tests pass now. I'll add Redis as a cache. After that I will write the docs.\n"
        "Anything else?"
    )
    found = find_correction(proposal, "Don't use Redis, keep it in memory.")
    assert found is not None
    assert (found.rejected, found.chosen) == ("Add Redis as a cache", "keep it in memory")
    assert not found.is_standing


@pytest.mark.parametrize(
    ("proposal", "rejected"),
    [
        ("I added a global for the router.", "Added a global for the router"),
        ("I've put the SQL into the view.", "Put the SQL into the view"),
        ("I put the SQL into the view.", "Put the SQL into the view"),
    ],
)
def test_what_was_done_is_named_without_who_did_it(proposal: str, rejected: str) -> None:
    found = find_correction(proposal, "no, never do that, undo it and use a parameter instead")
    assert found is not None
    assert found.rejected == rejected


def test_a_standing_order_is_known_as_such() -> None:
    found = find_correction("I'll add a sleep.", "Never use sleep in tests, wait on an event.")
    assert found is not None
    assert found.is_standing


@pytest.mark.parametrize(
    ("proposal", "reply"),
    [("", "no, use X"), ("I'll do it.", ""), ("I'll do it.", "no, " + "use this " * 300)],
)
def test_without_a_proposal_or_in_a_long_text_there_is_none(proposal: str, reply: str) -> None:
    assert find_correction(proposal, reply) is None


@pytest.mark.parametrize(
    "letter", ["a ", "no ", "instead of ", "don't ", "is out ", "x is ", "-'a"]
)
def test_no_text_takes_long(letter: str) -> None:
    find_correction(letter * 2_000, letter * (1_200 // len(letter)))
