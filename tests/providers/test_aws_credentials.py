"""AWS credentials: the environment, profiles, logins, programs, containers and machines."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from tests.support.loopback_server import Handler, LoopbackConnection, serving
from weft.clock import ManualClock
from weft.errors import AuthFailed, ProviderUnavailable
from weft.providers.bedrock.aws_credentials import AwsCredentialChain, find_region
from weft.providers.bedrock.sigv4 import AwsCredentials
from weft.providers.credentials import ProviderAccess
from weft.transport import HttpClient

pytestmark = pytest.mark.anyio
NOW = 1_790_000_000.0
LATER = "2026-09-21T15:13:20Z"
"""An hour after `NOW`."""
GIVEN = {"AccessKeyId": "AK", "SecretAccessKey": "SK", "Token": "TK", "Expiration": LATER}
FOUND = AwsCredentials(access_key="AK", secret_key="SK", session_token="TK")


def chain(home: Path, **variables: str) -> AwsCredentialChain:
    access = ProviderAccess(variables={"HOME": str(home), **variables})
    return AwsCredentialChain(access, ManualClock(NOW))


async def found(given: AwsCredentialChain) -> AwsCredentials:
    client = HttpClient()
    try:
        return await given.get(client)
    finally:
        await client.aclose()


def write(home: Path, name: str, text: str) -> None:
    file = home / ".aws" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def answering(*answers: object, status: int = 200) -> Handler:
    waiting = [each if isinstance(each, str) else json.dumps(each) for each in answers]

    async def handler(line: LoopbackConnection) -> None:
        while await line.request():
            body = waiting.pop(0).encode()
            head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n\r\n"
            await line.send(head.encode() + body)

    return handler


async def test_keys_of_the_environment_come_first(tmp_path: Path) -> None:
    write(tmp_path, "credentials", "[default]\naws_access_key_id=X\naws_secret_access_key=Y\n")
    keys = {"AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "SK", "AWS_SESSION_TOKEN": "TK"}
    assert await found(chain(tmp_path, **keys)) == FOUND


async def test_keys_of_a_profile_are_read_anew_for_each_request(tmp_path: Path) -> None:
    text = "[default]\naws_access_key_id={}\naws_secret_access_key=Y\n"
    write(tmp_path, "credentials", text.format("one"))
    given = chain(tmp_path)
    assert (await found(given)).access_key == "one"
    write(tmp_path, "credentials", text.format("two"))
    assert (await found(given)).access_key == "two"


async def test_a_config_file_may_hold_the_keys(tmp_path: Path) -> None:
    write(tmp_path, "config", "[profile w]\naws_access_key_id=A\naws_secret_access_key=B\n")
    assert (await found(chain(tmp_path, AWS_PROFILE="w"))).access_key == "A"
    assert find_region(ProviderAccess(variables={"HOME": str(tmp_path)})) == "us-east-1"


async def test_a_profile_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(AuthFailed, match=r"there is no AWS profile 'nope' \(AWS_PROFILE\)"):
        await found(chain(tmp_path, AWS_PROFILE="nope"))


async def test_a_role_is_refused_with_what_to_do(tmp_path: Path) -> None:
    write(tmp_path, "config", "[profile r]\nrole_arn=arn:aws:iam::1:role/x\nsource_profile=a\n")
    with pytest.raises(AuthFailed, match=r"assumes a role, which is not supported.*export-cred"):
        await found(chain(tmp_path, AWS_PROFILE="r"))


# --- programs ----------------------------------------------------------------------------


def program(home: Path, code: str) -> None:
    script = home / "give me.py"
    script.write_text(code)
    line = f'{sys.executable} "{script}" --account "a b"'
    write(home, "config", f"[default]\ncredential_process = {line}\n")


@pytest.mark.process
async def test_a_program_prints_credentials_that_are_kept_until_they_end(tmp_path: Path) -> None:
    answer = {"Version": 1, "AccessKeyId": "AK", "SecretAccessKey": "SK", "SessionToken": "TK"}
    log = tmp_path / "log"
    program(
        tmp_path,
        f"import sys; open({str(log)!r}, 'a').write(sys.argv[2])\n"
        f"print('''{json.dumps({**answer, 'Expiration': LATER})}''')",
    )
    given = chain(tmp_path)
    assert await found(given) == FOUND
    assert await found(given) == FOUND
    assert log.read_text() == "a b"
    clock = given.clock
    assert isinstance(clock, ManualClock)
    clock.advance(3600)
    await found(given)
    assert log.read_text() == "a ba b"


@pytest.mark.process
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit(3)", "failed with exit code 3"),
        ("print('sk-secret')", "holds no AccessKeyId"),
    ],
)
async def test_a_program_that_fails_is_named_without_what_it_printed(
    tmp_path: Path, code: str, said: str
) -> None:
    program(tmp_path, code)
    with pytest.raises(AuthFailed, match=said) as caught:
        await found(chain(tmp_path))
    assert "credential_process of the AWS profile 'default'" in str(caught.value)
    assert "sk-secret" not in str(caught.value)


@pytest.mark.process
async def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "config", "[default]\ncredential_process = /nowhere/at-all x\n")
    with pytest.raises(AuthFailed, match="could not be run: FileNotFoundError"):
        await found(chain(tmp_path))


# --- logins ------------------------------------------------------------------------------


def login(home: Path, *, expires: str = LATER, form: str = "session") -> None:
    role = "sso_account_id = 42\nsso_role_name = Dev Role\n"
    if form == "session":
        place = "[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://x\n"
        write(home, "config", f"[profile p]\nsso_session = corp\n{role}{place}")
    else:
        place = "sso_region = eu-west-1\nsso_start_url = https://x\n"
        write(home, "config", f"[profile p]\n{role}{place}")
    subject = "corp" if form == "session" else "https://x"
    mark = hashlib.sha1(subject.encode()).hexdigest()
    kept = {"accessToken": "login-token", "expiresAt": expires}
    write(home, f"sso/cache/{mark}.json", json.dumps(kept))


ROLE = {"accessKeyId": "AK", "secretAccessKey": "SK", "sessionToken": "TK"}


@pytest.mark.parametrize("form", ["session", "older"])
async def test_a_login_is_exchanged_for_credentials_of_its_role(tmp_path: Path, form: str) -> None:
    login(tmp_path, form=form)
    answer = {"roleCredentials": {**ROLE, "expiration": int((NOW + 3600) * 1000)}}
    async with serving(answering(answer)) as server:
        given = chain(tmp_path, AWS_PROFILE="p", AWS_ENDPOINT_URL_SSO=server.url)
        assert await found(given) == FOUND
        assert await found(given) == FOUND
    (asked,) = server.asked
    assert asked.path == "/federation/credentials?role_name=Dev+Role&account_id=42"
    assert asked.headers["x-amz-sso_bearer_token"] == "login-token"


@pytest.mark.parametrize("kind", ["none", "expired", "refused"])
async def test_without_a_login_the_command_for_one_is_named(tmp_path: Path, kind: str) -> None:
    login(tmp_path, expires="2020-01-01T00:00:00UTC" if kind == "expired" else LATER)
    if kind == "none":
        for file in (tmp_path / ".aws" / "sso" / "cache").iterdir():
            file.unlink()
    async with serving(answering("login-token?", status=401)) as server:
        given = chain(tmp_path, AWS_PROFILE="p", AWS_ENDPOINT_URL_SSO=server.url)
        with pytest.raises(AuthFailed, match="aws sso login --profile p") as caught:
            await found(given)
    assert "login-token" not in str(caught.value)


# --- containers and machines -------------------------------------------------------------


@pytest.mark.parametrize("how", ["token", "file", "none"])
async def test_a_container_is_asked_with_its_token(tmp_path: Path, how: str) -> None:
    async with serving(answering(GIVEN)) as server:
        variables = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/creds?x=1"}
        if how == "token":
            variables["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "tok"
        if how == "file":
            (tmp_path / "token").write_text("tok\n")
            variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = str(tmp_path / "token")
        assert await found(chain(tmp_path, **variables)) == FOUND
    (asked,) = server.asked
    assert asked.path == "/creds?x=1"
    assert asked.headers.get("authorization", "") == ("" if how == "none" else "tok")


async def test_credentials_are_not_asked_for_in_the_clear_elsewhere(tmp_path: Path) -> None:
    given = chain(tmp_path, AWS_CONTAINER_CREDENTIALS_FULL_URI="http://evil.test/creds")
    with pytest.raises(AuthFailed, match=r"'evil\.test' without https"):
        await found(given)


async def test_a_machine_is_asked_for_a_session_its_role_and_credentials(tmp_path: Path) -> None:
    async with serving(answering("session-1", "my-role\n", GIVEN)) as server:
        given = chain(tmp_path, AWS_EC2_METADATA_SERVICE_ENDPOINT=server.url)
        assert await found(given) == FOUND
    first, second, third = server.asked
    assert (first.method, first.path) == ("PUT", "/latest/api/token")
    assert second.headers["x-aws-ec2-metadata-token"] == "session-1"
    assert third.path == "/latest/meta-data/iam/security-credentials/my-role"


async def test_a_machine_that_does_not_answer_is_named(tmp_path: Path) -> None:
    given = chain(tmp_path, AWS_EC2_METADATA_SERVICE_ENDPOINT="http://127.0.0.1:9")
    with pytest.raises(ProviderUnavailable, match="the metadata service of this machine"):
        await found(given)


async def test_a_machine_whose_metadata_are_off_is_not_asked(tmp_path: Path) -> None:
    given = chain(
        tmp_path,
        AWS_EC2_METADATA_SERVICE_ENDPOINT="http://127.0.0.1:9",
        AWS_EC2_METADATA_DISABLED="true",
    )
    with pytest.raises(AuthFailed, match="there are no credentials for bedrock"):
        await found(given)
