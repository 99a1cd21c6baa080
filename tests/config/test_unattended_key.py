"""The key that seals what may be done with no user there."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.config.unattended_key import VARIABLE, UnattendedKey
from weft.errors import UsageError


def test_one_key_is_made_and_kept_for_the_user_alone(tmp_path: Path) -> None:
    place = tmp_path / "home" / "unattended.key"
    first, second = UnattendedKey(place, {}), UnattendedKey(place, {})
    assert first.seal(["a"]) == second.seal(["a"])
    assert place.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in place.parent.iterdir()] == [place.name]


def test_a_seal_is_over_each_word(tmp_path: Path) -> None:
    key = UnattendedKey(tmp_path / "key", {})
    assert len({key.seal(each) for each in (["ab"], ["a", "b"], ["a", "b", ""], ["", "ab"])}) == 4


def test_hosts_share_a_key_by_the_environment(tmp_path: Path) -> None:
    shared = {VARIABLE: "k" * 32}
    one, two = UnattendedKey(tmp_path / "one", shared), UnattendedKey(tmp_path / "two", shared)
    assert one.seal(["a"]) == two.seal(["a"])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="at least 32 characters"):
        UnattendedKey(tmp_path / "one", {VARIABLE: "short"}).seal(["a"])


def test_a_key_that_cannot_be_kept_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be kept"):
        UnattendedKey(tmp_path / "file" / "key", {}).seal(["a"])


@pytest.mark.parametrize("kept", [b"", b"short"])
def test_a_key_that_is_too_short_seals_nothing(tmp_path: Path, kept: bytes) -> None:
    place = tmp_path / "unattended.key"
    place.write_bytes(kept)
    with pytest.raises(UsageError, match="has no whole key; remove it"):
        UnattendedKey(place, {}).seal(["a"])
    assert place.read_bytes() == kept
