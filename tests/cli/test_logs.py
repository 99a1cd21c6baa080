"""The log file: no secrets, and one record cannot pretend to be another."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.cli.logs import log_to_file
from weft.config.api_keys import KeyFile

KEPT = "kept-key-without-any-shape"
FORGED = "x\n2026-01-01 00:00:00,000 1 ERROR weft all is well\r\x1b[2K\u2028y\x00"
A_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \d+ (ERROR|WARNING) |  \| ")


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MY_SECRET", "environment-secret")
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "WEFT_HOME", "WEFT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    KeyFile(tmp_path / ".config" / "weft").keep("openai", KEPT)
    root = logging.getLogger()
    before = root.handlers[:], root.level
    # A command line that another test ran in this process may have left its own.
    root.handlers[:] = [each for each in before[0] if type(each).__module__ != "weft.cli.logs"]
    log_to_file()
    yield tmp_path / ".local" / "share" / "weft" / "weft.log"
    root.handlers[:], level = before
    root.setLevel(level)


def test_no_secret_is_written(log: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    logging.getLogger("weft.x").warning("failed with %s and %s", token, KEPT)
    try:
        raise ValueError(f"environment-secret in {token}")
    except ValueError:
        logging.getLogger("weft.x").exception("it broke")
    written = log.read_text()
    assert "it broke" in written
    assert "ValueError" in written
    for secret in (token, KEPT, "environment-secret"):
        assert secret not in written


def test_a_record_is_one_line_and_what_follows_it_is_marked(log: Path) -> None:
    logging.getLogger("weft.x").warning("got %s", FORGED)
    try:
        raise ValueError(FORGED)
    except ValueError:
        logging.getLogger("weft.x").exception("it broke")
    text = log.read_bytes().decode()
    lines = text.split("\n")
    assert lines.pop() == ""
    assert all(A_LINE.match(line) for line in lines)
    assert sum(not line.startswith("  | ") for line in lines) == 2
    assert r"got x\n2026" in lines[0]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]", text)
