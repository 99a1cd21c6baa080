"""Secrets out of text, and nothing else."""

from __future__ import annotations

import itertools
import re
import sysconfig
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.example_count import cases, examples
from tests.support.secret_samples import PLACED, TOKENS
from weft.redact import Redactor, redact
from weft.redact.named_values import BEHIND_NAME, HAS_CALL, HAS_RARE_VALUE, HAS_VALUE

AROUND = [
    "{}",
    "the key is {}, keep it",
    'api = "{}"\n',
    "API={}",
    "[{}]",
    "({})",
    "\x1b[32m{}\x1b[0m",
    "a\n{}\nb",
    '{{"token":"{}"}}',
    "é{}é",
    "curl -H 'X: {}' https://example.com",
    "/{}/",
    r'"text\n{}\n"',
    r"x\u0022{}\u0022",
    "?q%3D{}%26",
]


@pytest.mark.parametrize(("name", "around"), cases(itertools.product(TOKENS, AROUND)))
def test_a_secret_is_masked_wherever_it_stands(name: str, around: str) -> None:
    secret = TOKENS[name]
    masked = redact(around.format(secret))
    assert "[redacted" in masked
    for line in secret.split("\n"):
        if "-----" not in line:
            assert line not in masked
            assert line[-12:] not in masked


@pytest.mark.parametrize("name", cases(PLACED))
def test_a_secret_that_is_known_by_its_place_is_masked_and_the_place_stays(name: str) -> None:
    place, secret = PLACED[name]
    masked = redact(f"first\n{place.format(secret)}\nlast")
    assert secret not in masked
    head, tail = place.format("{}").split("{}")
    assert masked.startswith(f"first\n{head}[redacted ")
    assert masked.endswith(f"]{tail}\nlast")


@pytest.mark.parametrize(
    "text",
    [
        "task-management-dashboard-component-2",
        "class='sk-cube-grid-wrapper sk-fading-circle'",
        "risk-assessment-for-quarter-4-of-the-year",
        "password = get_password()",
        "https://user:password@example.com/",
        "https://user:$PASSWORD@example.com/",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer <your token here>",
        "API_KEY=your-api-key-here-1",
        "API_KEY=${API_KEY:-1}",
        "TOKEN=",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
        'BEGIN = "-----BEGIN RSA PRIVATE KEY-----"\nEND = "-----END RSA PRIVATE KEY-----"',
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "550e8400-e29b-41d4-a716-446655440000",
        "npm_config_registry=https://registry.example.com/npm_packages",
        "eyJhbGciOiJIUzI1NiJ9",
        "def test_a_very_long_name_that_says_everything_about_what_is_tested_1(): ...",
        "----------------------------------------------------------------",
        "key=value&token=abc",
        'password = "password"',
        'password = os.environ["PASSWORD_1"]',
        '{"password": "string", "token": "required"}',
        '{"max_tokens": 12345678, "token": 123456789012}',
        "max_token: 123456789012",
        "def login(password: str, token: Token) -> Sha256:",
        'password="$(cat /run/secret1)"',
        "password = `pass show mail/1`",
        "docker run -u user1:group1 image; curl https://example.com",
        "curl -u $USER1:$PASSWORD1 https://example.com",
        "curl -u ann https://example.com:8443/x1",
        "login and password authentication in 3 steps",
        "Cookie: sid=<session id>",
        "the cookie: a small biscuit, 12 grams",
        'tokens = ["a1b2c3d4e5f6g7h8"]',
        "secret_name: my-secret",
        "PWD=/home/ann/project1",
        "connect(password=config2, token=token_v2_of_ann)",
        "password = userPassword2",
        "token = nextToken12345",
        "RE_PAT=^[a-z]+[0-9]{4}$",
        '{"auth": "none"}',
        "<token>string</token>",
        "password: |\n  What you sign in with.\nuser: x",
        "token: |\n  a text about tokens 1\n",
        "docker run --name mysql -p3306:3306 -d mysql",
        "docker run --name mysql -p 127.0.0.1:3306:3306 mysql",
        "mysql -u root -p shop",
        "mysql -p$PASSWORD shop",
        "tool --password=$(cat file1)",
        "tool --password FILE",
        "src/main.c:5432:12: error: no such file",
        "root:*:19000:0:99999:7:::",
        "x.py:*:1:2:three",
        "Set-Cookie: theme=dark; Max-Age=31536000; Path=/",
        "Cookie: theme=dark; lang=en",
        "x\tTRUE\t1\t2\tname\tvalue",
        "password:  !secret db_password",
        "- name: LOG_LEVEL\n  value: debug-level-12",
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: 1",
        '{"name": "PASSWORD", "value": "$DB_PASSWORD_1"}',
        '{"name": "max_tokens", "value": 123456789012}',
        "cache --key build-linux-x86_64-v12",
        "tool --token FILE --api-key",
        "tool --api-key ./keys/api1.txt.gpg",
        "ENV PASSWORD_FILE /run/secrets/db1",
        "ssh -p 2222 ann@example.com; docker run -p 8080:80 login",
        "account.setPassword(value)",
        "account.setPassword(passwords[1]);",
        'account.setPassword("password")',
        'account.setPassword("<your password 1>")',
        'account.setPassword("${DB_PASSWORD_1}")',
        'getPassword("database-1")',
        'client.get_secret("projects/shop/secrets/db-1")',
        'oauth.fetch_token("https://auth.example.com/oauth2/token")',
        'session.setToken(tokens.get("session-token-2"))',
        'setTokenUrl("https://auth.example.com/oauth2/token")',
        'client.withToken("https://auth.example.com/oauth2/token")',
        'NAMES = ("password", "password2", "passphrase3")',
        'isin(("api_key", "x-goog-api-key-2"))',
        'assertEqual("password", "username1")',
        "password%3D%24PASSWORD1%26",
        "password%3Dyour-password-1",
        "a%20password%20is%203%20words%3D",
        r"password\u003d$PASSWORD1",
        r"password\u003d\u003cmine-1-or-yours\u003e",
        "https://git@github.com/a/b.git",
        "https://ann.example1@dev.azure.com/shop",
        "ssh://5f2a7c9be4b0a1d2c3e4f5a6@app.example.com/~/git/app.git",
        "https://YOUR_TOKEN_1_HERE_@example.com",
        "https://$GITHUB_TOKEN_12345678@example.com",
        "https://unpkg.com/package-name-123456/@scope/x",
        "if password:\n    return code2\n",
        "if token:\n    headers=make_headers_v2\n",
        "else token:\n    self.total_v2.update_all()\n",
        "password:\n  valueFrom:\n    secretKeyRef: 1",
        "token:\n  - abcdefgh12345678\n",
        "password:\n  *default_password1\n",
        "password:\n\n  hunter22 is what nobody should use\n",
        "password: # the one of 2024\n  string\n",
    ],
)
def test_what_only_looks_like_a_secret_stays(text: str) -> None:
    assert redact(text) == text


def test_code_without_secrets_stays_as_it_is() -> None:
    """The standard library as a sample: less than one line in a thousand may be touched."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    lines = touched = 0
    for file in cases(sorted(folder.glob("*.py"))):
        text = file.read_text(encoding="utf-8", errors="replace")
        lines += text.count("\n")
        masked = redact(text)
        if masked != text:
            touched += sum(
                one != other
                for one, other in zip(text.split("\n"), masked.split("\n"), strict=False)
            )
    assert lines > examples(50_000)
    assert touched / lines < 0.001


pieces = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        [*TOKENS.values(), *(place.format(secret) for place, secret in PLACED.values())]
    ),
    st.sampled_from(
        ["sk-", "ghp_", "=", "://", ":", "@", "-----BEGIN ", "eyJ", ".", "KEY=", '"', " ", "\n"]
    ),
)
texts = st.lists(pieces, max_size=8).map("".join)


@given(texts)
@example("mariadb -p/login?next=%2Fx%3Fpassword%3Dhunter22%26y%3D1$")
def test_masking_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


HOSTILE = [
    "sk-" + "a" * 1_000_000,
    "sk-" * 300_000,
    "sk-1" * 250_000,
    "eyJ" * 300_000,
    "eyJaaaaaaaa." * 80_000,
    "-----BEGIN PRIVATE KEY-----" * 40_000,
    "-----BEGIN PRIVATE KEY-----\n" + "a b-" * 250_000,
    "://" * 300_000,
    "://a:" * 200_000,
    "://" + "a:" * 400_000,
    "Authorization: Bearer " * 50_000,
    "TOKEN=" * 150_000,
    "?token=" * 150_000,
    "KEY=" + "a" * 1_000_000,
    "AKIA" * 250_000,
    "hf_" + "a" * 1_000_000,
    "x-api-key: " * 100_000,
    "_" + "a" * 1_000_000,
    "curl " * 200_000,
    "curl -u " + "a" * 1_000_000,
    'password: "' * 100_000,
    'password = "' + "a1" * 500_000,
    "token: " * 150_000,
    "token: " + "a" * 1_000_000,
    "cookie: a=" * 100_000,
    "Cookie: " + "a=1;" * 250_000,
    "machine a login b password " * 40_000,
    "machine " + "a " * 500_000,
    "mysql " * 160_000,
    "mysql -p" * 120_000,
    "--password " * 90_000,
    ":5432:" * 160_000,
    ":*:a:" * 200_000,
    "password: |\n" * 80_000,
    "password: |\n" + "  a1\n" * 200_000,
    "password: |\n" + "\n" * 900_000,
    'setPassword("' * 80_000,
    "setset" * 170_000,
    "set" + "a" * 1_000_000 + 'assword("',
    'setPassword("' + "a1" * 500_000,
    'password", "' * 90_000,
    'password", "' + "a1" * 500_000,
    "password%3D" * 90_000,
    "password%3D" + "%41" * 330_000,
    "password%22" * 90_000,
    r"password\u003d" * 70_000,
    r"password\u003d" + r"\u0041" * 160_000,
    "password" + "\\" * 900_000,
    "https://" * 120_000,
    "https://" + "a1" * 500_000,
    "https://a1b2c3d4e5f6a7b8" * 40_000,
    "password:\n" * 90_000,
    "password:\n " + " " * 900_000,
    "password:\n  " + "a1" * 500_000,
]


@pytest.mark.parametrize("text", cases(HOSTILE), ids=lambda text: str(text)[:12])
@pytest.mark.timeout(20)
def test_a_hostile_megabyte_takes_no_more_than_a_moment(text: str) -> None:
    """Anything worse than linear runs into the time-out: a quadratic pattern takes minutes here.

    The inner loop takes a tenth of each text.
    """
    redact(text[: examples(len(text))])


# --- values that we know
# --------------------------------------------------------------------------------


def test_known_values_are_masked_as_they_are_in_urls_and_by_line() -> None:
    redactor = Redactor(["hunter2/&secret", "line one here\nline two here", "short", ""])
    masked = redactor("a hunter2/&secret b hunter2%2F%26secret c line two here d short")
    assert masked == "a [redacted] b [redacted] c [redacted] d short"


def test_the_longest_known_value_goes_first() -> None:
    assert Redactor(["abcdef", "abcdefghij"])("abcdefghij") == "[redacted]"


@given(
    st.text(alphabet="abcXYZ019+/=%", min_size=6, max_size=40),
    st.text(max_size=30),
    st.text(max_size=30),
)
def test_a_known_value_never_comes_through(value: str, before: str, after: str) -> None:
    assert value not in Redactor([value])(before + value + after)


# --- text in pieces
# ---------------------------------------------------------------------------------------


whole_lines = st.lists(
    st.one_of(
        st.text(alphabet=st.characters(exclude_characters="\r\n"), max_size=20),
        st.sampled_from(
            [*TOKENS.values(), *(place.format(secret) for place, secret in PLACED.values())]
        ),
    ),
    max_size=8,
).map("\n".join)


@given(whole_lines, st.integers(1, 40), st.booleans())
def test_however_a_text_is_cut_the_same_is_shown(text: str, size: int, ends: bool) -> None:
    text = text + "\n" * ends
    redactor = Redactor(["known-value-1"])
    live = redactor.live()
    shown = [live.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join([*shown, live.finish()]) == redactor(text)


def test_a_block_of_yaml_is_held_back_until_it_ends() -> None:
    live = Redactor().live()
    assert live.feed("a: 1\npassword: |\n") == "a: 1\n"
    assert live.feed("  hunter22\n") == ""
    assert live.feed("user: ann\n") == "password: |\n  [redacted password]\nuser: ann\n"
    assert live.feed("a:\n  token: |\n    abcdefgh12345\n  b: 2\n").endswith("  b: 2\n")
    # Bounded: what goes on for ever is shown in time.
    fed = sum(len(live.feed("password: |\n" + "  word 1\n" * 1000)) for _ in range(20))
    assert fed > 50_000


def test_whole_lines_are_shown_at_once_and_endless_ones_in_time() -> None:
    live = Redactor().live()
    assert live.feed("one\ntwo") == "one\n"
    assert live.feed(" more\n") == "two more\n"
    assert live.feed("50 %\r") == "50 %\r"
    fed = sum(len(live.feed("word " * 1000)) for _ in range(20))
    assert fed > 50_000
    assert live.finish()


@pytest.mark.parametrize("name", cases(TOKENS))
def test_a_secret_cut_anywhere_is_masked_all_the_same(name: str) -> None:
    text = f"before {TOKENS[name]} after\n"
    for cut in range(1, len(text), 7):
        live = Redactor().live()
        shown = live.feed(text[:cut]) + live.feed(text[cut:]) + live.finish()
        assert shown == redact(text)


@pytest.mark.parametrize(
    "behind",
    [
        *('":', "' =", '\\":', " :", "\t=", "=", ">", ":"),
        *(",\nvalue:", "\r\n  value:", "\nvalue=", "Value=", "value:"),
        *("%22:", "%253A", "\\u0022=", "\\x3a", "&quot;:", "&#58;"),
        *(" :\n", "=\r\n", '("', " = SecretStr(", ': a.SecretStr("', '", "'),
    ],
)
def test_what_may_stand_behind_a_name_gets_through_the_gate_before_all_others(behind: str) -> None:
    assert any(re.match(each, behind) for each in (HAS_VALUE, HAS_RARE_VALUE, HAS_CALL))
    assert re.match(BEHIND_NAME, behind)
