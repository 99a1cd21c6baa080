"""AWS credentials: the environment's, or those of a profile in `~/.aws`.

Only keys that stand there: single sign-on, roles and instance metadata are the AWS command line's,
which exports what it gets.
"""

from __future__ import annotations

import configparser
from pathlib import Path

from weft.errors import AuthFailed
from weft.providers.bedrock.sigv4 import AwsCredentials
from weft.providers.credentials import ProviderAccess


def find_credentials(access: ProviderAccess) -> AwsCredentials:
    """The credentials that the environment names.

    Raises:
        AuthFailed: there are none.
    """
    key, secret = access.variable("AWS_ACCESS_KEY_ID"), access.variable("AWS_SECRET_ACCESS_KEY")
    # A profile that is named comes first, as in the AWS command line.
    if key and secret and not access.variable("AWS_PROFILE"):
        return AwsCredentials(
            access_key=key,
            secret_key=secret,
            session_token=access.variable("AWS_SESSION_TOKEN"),
        )
    profile = access.variable("AWS_PROFILE") or "default"
    table = _profile(access, "AWS_SHARED_CREDENTIALS_FILE", "credentials", profile)
    table = table or _profile(access, "AWS_CONFIG_FILE", "config", f"profile {profile}")
    if table.get("aws_access_key_id") and table.get("aws_secret_access_key"):
        return AwsCredentials(
            access_key=table["aws_access_key_id"],
            secret_key=table["aws_secret_access_key"],
            session_token=table.get("aws_session_token", ""),
        )
    raise AuthFailed(
        "there are no credentials for bedrock; set AWS_BEARER_TOKEN_BEDROCK (`weft auth login "
        "bedrock` saves it), or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (`aws configure "
        "export-credentials --format env` prints those of a login)"
    )


def find_region(access: ProviderAccess) -> str:
    """The region that the environment or the profile names; N. Virginia where none does."""
    named = access.region or access.variable("AWS_REGION", "AWS_DEFAULT_REGION")
    if named:
        return named
    profile = access.variable("AWS_PROFILE") or "default"
    section = profile if profile == "default" else f"profile {profile}"
    return _profile(access, "AWS_CONFIG_FILE", "config", section).get("region", "us-east-1")


def _profile(access: ProviderAccess, variable: str, name: str, section: str) -> dict[str, str]:
    place = access.variable(variable) or str(Path(access.variable("HOME"), ".aws", name))
    # Without interpolation: a secret may hold a percent sign.
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read(place, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return {}  # the error would quote the line, and the line may be a secret
    return dict(parser[section]) if parser.has_section(section) else {}
