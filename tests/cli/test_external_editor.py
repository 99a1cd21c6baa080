"""The user's own editor gets a text as it is, and gives it back as they left it."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.cli.chat.screens.external_editor import edited


@pytest.fixture
def appending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor that writes a line at the end, in Latin-1 and with the ending of DOS."""
    script = tmp_path / "append.sh"
    script.write_text("#!/bin/sh\nprintf 'gr\\374n\\r\\n' >> \"$1\"\n")
    script.chmod(0o700)
    monkeypatch.setenv("VISUAL", str(script))


@pytest.mark.process
@pytest.mark.usefixtures("appending")
def test_bytes_that_are_no_text_and_the_ends_of_lines_come_back_as_they_were() -> None:
    before = b"# M\r\n\r\n- caf\xe9\r\n".decode("utf-8", "surrogateescape")
    after = edited(before, ".md").encode("utf-8", "surrogateescape")
    assert after == b"# M\r\n\r\n- caf\xe9\r\ngr\xfcn\r\n"


@pytest.mark.process
@pytest.mark.usefixtures("appending")
def test_a_text_without_them_gets_none_from_an_editor() -> None:
    assert edited("a\n", ".md") == "a\ngr\N{REPLACEMENT CHARACTER}n\n"
