"""Which variables a program that a model starts gets."""

from __future__ import annotations

import pytest

from tests.support.example_count import cases
from weft.data_tables import read_table
from weft.workspace.process import environment
from weft.workspace.process.environment import is_secret_name, scrubbed, secret_values

ROWS = read_table(environment.__file__, "secret_names.tsv", 4)


def test_the_table_is_long_and_has_no_name_twice() -> None:
    assert len(ROWS) >= 60
    assert len({name for name, *_ in ROWS}) == len(ROWS)
    assert all(name == name.upper() for name, *_ in ROWS)
    assert {kind for _, kind, *_ in ROWS} == {"secret", "way"}


@pytest.mark.parametrize(("name", "kind"), cases((name, kind) for name, kind, *_ in ROWS))
def test_every_row_is_taken_out_and_its_value_masked_if_it_is_a_secret(
    name: str, kind: str
) -> None:
    name = name.replace("*", "SOME")
    environ = {name: "a value", name.lower(): "another", "HOME": "/home/me"}
    assert not {name, name.lower()} & scrubbed(environ).keys()
    if kind == "secret":
        assert set(secret_values(environ)) == {"a value", "another"}


@pytest.mark.parametrize("name", ["GITHUB_PAT", "SMTP_PASS", "MYSQL_PWD", "SENTRY_DSN", "X_AUTH"])
def test_names_that_were_let_through_once_are_not_any_more(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("HOME", "PATH", "PWD", "OLDPWD", "LANG", "USER", "SHELL", "EDITOR", "DISPLAY", "COMPASS"),
        *(
            "PATTERN",
            "PYTHONPATH",
            "VIRTUAL_ENV",
            "GOPATH",
            "JAVA_HOME",
            "AUTHOR",
            "DESKTOP_SESSION",
        ),
        *("WORKSPACE", "XDG_SESSION_TYPE", "CI", "TERM_SESSION_ID", "NODE_ENV", "BYPASS"),
    ],
)
def test_ordinary_names_stay(name: str) -> None:
    assert not is_secret_name(name)


def test_the_path_of_an_agents_socket_is_not_passed_on_but_is_no_secret_in_texts() -> None:
    environ = {"SSH_AUTH_SOCK": "/run/user/1000/agent"}
    assert "SSH_AUTH_SOCK" not in scrubbed(environ)
    assert secret_values(environ) == ()


def test_the_user_may_let_named_variables_through_but_none_that_repoint_tools() -> None:
    environ = {"NPM_TOKEN": "t", "OTHER_TOKEN": "o", "LD_PRELOAD": "/x.so"}
    found = scrubbed(environ, passed=["NPM_TOKEN", "LD_PRELOAD"])
    assert found["NPM_TOKEN"] == "t"
    assert not {"OTHER_TOKEN", "LD_PRELOAD"} & found.keys()


def test_an_address_with_a_password_is_not_passed_on_whatever_it_is_called() -> None:
    environ = {
        "UPSTREAM": "https://ann:hunter22@example.com/x",
        "BROKER": "redis://:hunter22@example.com",
        "HTTPS_PROXY": "http://ann:hunter22@proxy.example.com:8080",
        "HOMEPAGE": "https://example.com:8443/@ann",
        "NAMED": "https://ann:hunter22@example.com",
    }
    found = scrubbed(environ, passed=["NAMED"])
    assert not {"UPSTREAM", "BROKER"} & found.keys()
    assert {"HTTPS_PROXY", "HOMEPAGE", "NAMED"} <= found.keys()


@pytest.mark.parametrize(
    "name",
    [
        *("CREDS", "DB_CREDS", "COOKIE", "BEARER", "GH_OAUTH", "SEED_PHRASE", "WALLET_SEED_PHRASE"),
        *("CONNECTION_STRING", "STRIPE_SK", "BLOB_SAS", "OTP", "TOTP"),
    ],
)
def test_more_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)
