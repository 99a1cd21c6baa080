"""AWS credentials, found in the order of the AWS command line: the environment; a profile in
`~/.aws` with keys, a login (single sign-on), or a program that prints some; the container or the
machine that this runs on.

What a login, a program or a machine gives lives for an hour or so, and is kept until shortly before
its end.  Roles that a profile assumes, and web identities, are the command line's: it exports what
it gets.
"""

from __future__ import annotations

import configparser
import hashlib
import shlex
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

import anyio
import msgspec

from weft.clock import Clock, SystemClock
from weft.errors import AuthFailed, ProviderUnavailable
from weft.providers.bedrock.sigv4 import AwsCredentials
from weft.providers.credentials import ProviderAccess
from weft.transport import HttpRequest, HttpTimeouts, HttpTransport

_EXPORT: Final = "`aws configure export-credentials --format env` prints credentials that can be"
_NONE: Final = (
    "there are no credentials for bedrock; set AWS_BEARER_TOKEN_BEDROCK (`weft auth login "
    "bedrock` saves it), or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (`aws configure "
    "export-credentials --format env` prints those of a login)"
)
_EARLY_SECONDS: Final = 120.0
"""How long before their end credentials are not used any more."""
_MOST_BYTES: Final = 64 * 1024
_PROGRAM_SECONDS: Final = 60.0
"""A program may open a browser, and wait for its user."""
_NEARBY: Final = HttpTimeouts(connect=1.0, first_byte=5.0, idle=5.0)
_CONTAINER_HOST: Final = "http://169.254.170.2"
_PLAIN_HOSTS: Final = ("127.0.0.1", "localhost", "::1", "169.254.170.2", "169.254.170.23")
"""Where credentials may come from without TLS: this machine, and the agents of ECS and EKS."""
_METADATA: Final = "http://169.254.169.254"
_EC2_MARK: Final = "/sys/class/dmi/id/sys_vendor"


class AwsCredentialChain:
    """The credentials of one provider, looked for when they are needed."""

    def __init__(self, access: ProviderAccess, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self._access = access
        self._found: AwsCredentials | None = None
        self._until = float("-inf")

    async def get(self, transport: HttpTransport) -> AwsCredentials:
        """Credentials that are good for a while.

        Raises:
            AuthFailed: there are none, or they cannot be had.
            ProviderUnavailable: the service that gives them could not be asked.
        """
        if self._found is None or self.clock.now() >= self._until:
            self._found, self._until = await self._find(transport)
        return self._found

    async def _find(self, transport: HttpTransport) -> tuple[AwsCredentials, float]:
        variable = self._access.variable
        key, secret = variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")
        # A profile that is named comes first, as in the AWS command line.
        if key and secret and not variable("AWS_PROFILE"):
            token = variable("AWS_SESSION_TOKEN")
            return _lasting(AwsCredentials(access_key=key, secret_key=secret, session_token=token))
        return (
            await self._of_profile(transport)
            or await self._of_container(transport)
            or await self._of_machine(transport)
            or _fail(_NONE)
        )

    # -- profiles

    async def _of_profile(self, transport: HttpTransport) -> tuple[AwsCredentials, float] | None:
        named = self._access.variable("AWS_PROFILE")
        name = named or "default"
        keys = _section(self._access, "AWS_SHARED_CREDENTIALS_FILE", "credentials", name)
        config = config_profile(self._access, name)
        if named and not keys and not config:
            raise AuthFailed(f"there is no AWS profile {name!r} (AWS_PROFILE) in ~/.aws")
        if "role_arn" in config or "role_arn" in keys:
            raise AuthFailed(
                f"the AWS profile {name!r} assumes a role, which is not supported here; {_EXPORT}"
            )
        if "sso_session" in config or "sso_start_url" in config:
            return await self._of_login(transport, name, config)
        for table in (keys, config):
            if found := _of_table(table):
                return _lasting(found)
            if program := table.get("credential_process"):
                return await self._of_program(program, name)
        return None

    async def _of_login(
        self, transport: HttpTransport, name: str, config: Mapping[str, str]
    ) -> tuple[AwsCredentials, float]:
        """Credentials of the role that a login may have, for the token that the command line
        keeps.
        """
        session = config.get("sso_session", "")
        place = _section(self._access, "AWS_CONFIG_FILE", "config", f"sso-session {session}")
        terms = {**place, **config} if session else dict(config)
        region, account = terms.get("sso_region", ""), terms.get("sso_account_id", "")
        role = terms.get("sso_role_name", "")
        if not (region and account and role):
            raise AuthFailed(
                f"the AWS profile {name!r} needs sso_region, sso_account_id and sso_role_name"
            )
        token = self._login_token(session or terms.get("sso_start_url", ""), name)
        query = urlencode({"role_name": role, "account_id": account})
        base = self._access.variable("AWS_ENDPOINT_URL_SSO")
        base = base.rstrip("/") or f"https://portal.sso.{quote(region)}.amazonaws.com"
        answer = await _json(
            transport,
            f"{base}/federation/credentials?{query}",
            ("x-amz-sso_bearer_token", token),
            HttpTimeouts(first_byte=30.0, idle=30.0),
            f"the login of the AWS profile {name!r}; `aws sso login --profile {name}` renews it",
        )
        given = answer.get("roleCredentials")
        table = given if isinstance(given, dict) else {}
        return _of_answer(
            {
                "AccessKeyId": table.get("accessKeyId"),
                "SecretAccessKey": table.get("secretAccessKey"),
                "Token": table.get("sessionToken"),
            },
            float(table.get("expiration") or 0) / 1000,
            f"the login of the AWS profile {name!r}",
        )

    def _login_token(self, subject: str, name: str) -> str:
        again = f"run `aws sso login --profile {name}`"
        # The name that the command line gives the file.
        mark = hashlib.sha1(subject.encode(), usedforsecurity=False).hexdigest()
        path = Path(self._access.variable("HOME"), ".aws", "sso", "cache", f"{mark}.json")
        try:
            with path.open("rb") as file:
                kept = msgspec.json.decode(file.read(_MOST_BYTES))
        except (OSError, msgspec.MsgspecError) as error:
            raise AuthFailed(f"there is no login of the AWS profile {name!r}; {again}") from error
        kept = kept if isinstance(kept, dict) else {}
        token = kept.get("accessToken")
        if not isinstance(token, str) or _moment(kept.get("expiresAt")) <= self.clock.now():
            raise AuthFailed(f"the login of the AWS profile {name!r} has expired; {again}")
        return token

    async def _of_program(self, program: str, name: str) -> tuple[AwsCredentials, float]:
        what = f"the credential_process of the AWS profile {name!r}"
        try:
            # No shell: it is the user's own line, but a shell would read more into it.
            words = shlex.split(program)
            with anyio.fail_after(_PROGRAM_SECONDS):
                done = await anyio.run_process(words, check=False, stderr=subprocess.DEVNULL)
        except (OSError, ValueError, TimeoutError) as error:
            raise AuthFailed(f"{what} could not be run: {type(error).__name__}") from error
        if done.returncode:
            raise AuthFailed(f"{what} failed with exit code {done.returncode}")
        answer = _table(done.stdout)
        expires = answer.get("Expiration")
        given = {**answer, "Token": answer.get("SessionToken")}
        until = _moment(expires) if expires else float("inf")
        return _of_answer(given, until, what)

    # -- where this runs

    async def _of_container(self, transport: HttpTransport) -> tuple[AwsCredentials, float] | None:
        variable = self._access.variable
        relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        url = f"{_CONTAINER_HOST}{relative}" if relative else ""
        url = url or variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        if not url:
            return None
        parts = urlsplit(url)
        if parts.scheme != "https" and parts.hostname not in _PLAIN_HOSTS:
            raise AuthFailed(
                f"AWS_CONTAINER_CREDENTIALS_FULL_URI names {parts.hostname!r} without https; "
                "credentials are not asked for there"
            )
        token = self._container_token()
        what = "the AWS container credentials"
        answer = await _json(transport, url, ("authorization", token), _NEARBY, what)
        return _of_answer(answer, _moment(answer.get("Expiration")), what)

    def _container_token(self) -> str:
        path = self._access.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        if not path:
            return self._access.variable("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        try:
            # For each request: EKS writes a new one before the old one ends.
            with open(path, encoding="utf-8") as file:
                return file.read(_MOST_BYTES).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise AuthFailed(f"the token in {path} cannot be read") from error

    async def _of_machine(self, transport: HttpTransport) -> tuple[AwsCredentials, float] | None:
        """Those of the role of an EC2 machine, from its metadata service (version 2)."""
        variable = self._access.variable
        given = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT")
        is_off = variable("AWS_EC2_METADATA_DISABLED").lower() == "true"
        # Elsewhere nothing answers at that address, and to wait for it would delay every sentence
        # about a missing key.
        if is_off or not (given or _is_ec2()):
            return None
        base = (given or _METADATA).rstrip("/")
        life = ("x-aws-ec2-metadata-token-ttl-seconds", "21600")
        what = "the metadata service of this machine"
        put = HttpRequest(
            url=f"{base}/latest/api/token", method="PUT", headers=(life,), timeouts=_NEARBY
        )
        session = (await _body(transport, put, what)).decode("ascii", "replace").strip()
        proof = ("x-aws-ec2-metadata-token", session)
        place = f"{base}/latest/meta-data/iam/security-credentials/"
        get = HttpRequest(url=place, method="GET", headers=(proof,), timeouts=_NEARBY)
        role = (await _body(transport, get, what)).decode("utf-8", "replace").split("\n")[0]
        answer = await _json(transport, f"{place}{quote(role)}", proof, _NEARBY, what)
        return _of_answer(answer, _moment(answer.get("Expiration")), what)


def find_region(access: ProviderAccess) -> str:
    """The region that the environment or the profile names; N. Virginia where none does."""
    named = access.region or access.variable("AWS_REGION", "AWS_DEFAULT_REGION")
    if named:
        return named
    profile = access.variable("AWS_PROFILE") or "default"
    return config_profile(access, profile).get("region", "us-east-1")


def config_profile(access: ProviderAccess, name: str) -> dict[str, str]:
    """A profile of `~/.aws/config`, where all but the default one have a word before the name."""
    section = name if name == "default" else f"profile {name}"
    return _section(access, "AWS_CONFIG_FILE", "config", section)


def _section(access: ProviderAccess, variable: str, name: str, section: str) -> dict[str, str]:
    place = access.variable(variable) or str(Path(access.variable("HOME"), ".aws", name))
    # Without interpolation: a secret may hold a percent sign.
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(place, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return {}  # the error would quote the line, and the line may be a secret
    return dict(parser[section]) if parser.has_section(section) else {}


def _of_table(table: Mapping[str, str]) -> AwsCredentials | None:
    if not table.get("aws_access_key_id") or not table.get("aws_secret_access_key"):
        return None
    return AwsCredentials(
        access_key=table["aws_access_key_id"],
        secret_key=table["aws_secret_access_key"],
        session_token=table.get("aws_session_token", ""),
    )


def _lasting(found: AwsCredentials) -> tuple[AwsCredentials, float]:
    """Credentials without an end; read anew for each request, for a login may replace them."""
    return found, float("-inf")


def _of_answer(answer: Mapping[str, Any], until: float, what: str) -> tuple[AwsCredentials, float]:
    key, secret, token = (answer.get(n) for n in ("AccessKeyId", "SecretAccessKey", "Token"))
    if not isinstance(key, str) or not isinstance(secret, str):
        raise AuthFailed(f"{what}: what came holds no AccessKeyId and SecretAccessKey")
    found = AwsCredentials(
        access_key=key, secret_key=secret, session_token=token if isinstance(token, str) else ""
    )
    return found, until - _EARLY_SECONDS


def _moment(text: object) -> float:
    """A time as AWS writes it (`2026-11-16T02:30:00Z`, or with `UTC`), as seconds; 0 for what is
    none.
    """
    if not isinstance(text, str):
        return 0.0
    try:
        found = datetime.fromisoformat(text.removesuffix("UTC").removesuffix("Z"))
    except ValueError:
        return 0.0
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


async def _json(
    transport: HttpTransport, url: str, header: tuple[str, str], timeouts: HttpTimeouts, what: str
) -> dict[str, Any]:
    headers = (header,) if header[1] else ()
    request = HttpRequest(url=url, method="GET", headers=headers, timeouts=timeouts)
    return _table(await _body(transport, request, what))


async def _body(transport: HttpTransport, request: HttpRequest, what: str) -> bytes:
    body = bytearray()
    try:
        async with transport.send(request) as reply:
            while len(body) < _MOST_BYTES and (data := await reply.read()):
                body += data
            status = reply.status
    except ProviderUnavailable as error:
        raise ProviderUnavailable(f"{what} could not be asked: {error}") from error
    if status != 200:
        # Without the body: it may repeat what was sent.
        raise AuthFailed(f"no credentials came from {what} (status {status})")
    return bytes(body)


def _table(data: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(data)
    except msgspec.MsgspecError:
        return {}
    return value if isinstance(value, dict) else {}


def _is_ec2() -> bool:
    try:
        with open(_EC2_MARK, encoding="utf-8") as file:
            return file.read(64).startswith("Amazon EC2")
    except OSError:
        return False


def _fail(why: str) -> tuple[AwsCredentials, float]:
    raise AuthFailed(why)
