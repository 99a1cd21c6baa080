"""Pairing: a code becomes a token once, and a server that comes back knows its pages."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.support.served_world import serving
from tests.support.world import World
from weft.clock import ManualClock
from weft.providers.scripted import ScriptedModel
from weft.server.page_tokens import CODE_SECONDS, MOST_CODES, PAGE_SECONDS, TokenStore

pytestmark = pytest.mark.anyio


def token_store(folder: Path, clock: ManualClock, *, forget: bool = False) -> TokenStore:
    store = TokenStore(folder / "server", "7717", clock)
    store.open(forget=forget)
    return store


def test_a_code_is_good_for_one_token(tmp_path: Path) -> None:
    store = token_store(tmp_path, ManualClock())
    code = store.new_code()
    token = store.pair(code)
    assert token is not None
    assert store.role_of(token) == "driver"
    assert store.pair(code) is None
    assert store.pair("") is None


def test_a_code_is_too_old_after_a_minute(tmp_path: Path) -> None:
    clock = ManualClock()
    store = token_store(tmp_path, clock)
    code = store.new_code()
    clock.advance(CODE_SECONDS + 1)
    assert store.pair(code) is None


def test_codes_that_nobody_takes_do_not_pile_up(tmp_path: Path) -> None:
    store = token_store(tmp_path, ManualClock())
    codes = [store.new_code() for _ in range(MOST_CODES + 1)]
    assert store.pair(codes[0]) is None
    assert store.pair(codes[-1]) is not None


def test_a_server_that_comes_back_knows_its_pages_for_a_month(tmp_path: Path) -> None:
    clock = ManualClock()
    store = token_store(tmp_path, clock)
    token = store.pair(store.new_code("viewer"))
    assert token is not None
    again = token_store(tmp_path, clock)
    assert again.role_of(token) == "viewer"
    assert again.program_token == store.program_token
    clock.advance(PAGE_SECONDS + 1)
    assert again.role_of(token) is None


def test_what_is_forgotten_lets_nobody_in(tmp_path: Path) -> None:
    clock = ManualClock()
    store = token_store(tmp_path, clock)
    token = store.pair(store.new_code())
    assert token is not None
    again = token_store(tmp_path, clock, forget=True)
    assert again.role_of(token) is None
    assert again.role_of(store.program_token) is None


def test_the_files_are_the_users_alone_and_hold_no_token_of_a_page(tmp_path: Path) -> None:
    store = token_store(tmp_path, ManualClock())
    token = store.pair(store.new_code())
    assert token is not None
    files = [path for path in (tmp_path / "server").iterdir() if path.is_file()]
    assert {path.name for path in files} == {"7717.token", "7717.pages.json"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "server").stat().st_mode) == 0o700
    assert not [path for path in files if token.encode() in path.read_bytes()]


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff", b'{"pages": 1}'])
def test_a_damaged_file_costs_a_pairing_and_lets_nobody_in(tmp_path: Path, damage: bytes) -> None:
    clock = ManualClock()
    store = token_store(tmp_path, clock)
    token = store.pair(store.new_code())
    (tmp_path / "server" / "7717.pages.json").write_bytes(damage)
    assert token is not None
    assert token_store(tmp_path, clock).role_of(token) is None


async def test_a_page_pairs_over_http_and_uses_its_token(plain_world: World) -> None:
    async with serving(plain_world, ScriptedModel([])) as served:
        code = served.server.pairing_url.partition("#code=")[2]
        token = (await served.good("POST", "/pair", {"code": code}, Authorization=""))["token"]
        headers: dict[str, str | None] = {
            "Authorization": f"Bearer {token}",
            "Origin": served.origin,
            "Sec-Fetch-Site": "same-origin",
        }
        assert (await served.call("GET", "/sessions", headers=headers)).status == 200
        assert (await served.call("POST", "/sessions", {}, headers)).status == 201
        assert (await served.call("POST", "/pair", {"code": code})).status == 401
