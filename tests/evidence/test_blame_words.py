"""A blame in words: what comes with a commit is no claim about its author, and what a log brings is
one line.
"""

from __future__ import annotations

from weft.api.evidence.blame_note import trailers_of
from weft.evidence import Blame
from weft.evidence.blame import LineCommit, LineTurn
from weft.evidence.blame_words import sentence_of
from weft.ids import SessionId, TurnId

COMMIT = LineCommit(commit="a" * 40, author="Grace")


def test_a_line_of_a_commit_is_of_its_author_and_one_of_none_of_the_user() -> None:
    said = [
        sentence_of("user", None, None, commit, is_first=is_first, has_versions=is_first)
        for is_first in (False, True)
        for commit in (COMMIT, None)
    ]
    came = f"it came with commit {'a' * 12} of Grace"
    assert said == [
        f"no session has ever changed this file: {came}",
        "no session has ever changed this file: the line is yours",
        f"{came}, before a session first changed the file",
        "you wrote it, before a session first changed the file",
    ]


def test_a_turn_of_a_log_from_elsewhere_adds_no_trailer_of_its_own() -> None:
    turn = LineTurn(session_id=SessionId("s"), turn_id=TurnId("t\nSigned-off-by: \x1b[31mMallory"))
    found = Blame(path="a", line=1, text="", made_by="session", sentence="", turn=turn)
    trailers = trailers_of(found)
    assert len(trailers) == 2
    assert all(each.isprintable() for each in trailers)
