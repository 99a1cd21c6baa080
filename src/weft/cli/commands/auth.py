"""`weft auth`: which providers have a key, and keeping one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from weft.cli.commands.table import print_table
from weft.cli.exit_codes import FAILED, OK
from weft.cli.parse import ParsedArguments
from weft.cli.stdio import tell, write_pretty
from weft.config.api_keys import LONGEST, KeyFile, check_key, key_variables
from weft.config.paths import places
from weft.config.settings import Config, load_config
from weft.errors import UsageError, did_you_mean


def run(arguments: ParsedArguments) -> int:
    """Carry out an `auth` command."""
    where = places(os.environ)
    given = {"profile": arguments.text("profile")} if arguments.text("profile") else {}
    # Loaded for the profile, and to refuse one that does not exist.
    config = load_config(user=where.config, environ=os.environ, given=given)
    profile = config.get("profile")
    keys = KeyFile(where.config, profile)
    match arguments.verb:
        case "auth login":
            return _login(keys, _known(_provider(arguments), config, where.config), profile)
        case "auth logout":
            return _logout(keys, _provider(arguments))
        case "auth status":
            return _status(keys, arguments)
        case _:
            return _list(keys, arguments)


def _provider(arguments: ParsedArguments) -> str:
    if len(arguments.words) > 1:
        more = arguments.words[1]
        raise UsageError(f"`weft {arguments.verb}` takes one provider, not {more!r} besides")
    if not arguments.words:
        first, *others = key_variables()
        raise UsageError(
            f"a provider is missing: `weft {arguments.verb} {first}`, or {', '.join(others)}"
        )
    name = arguments.words[0].lower()
    if not all(letter.isalnum() or letter in "-_." for letter in name):
        raise UsageError(f"{name!r} cannot be a provider's name")
    return name


def _known(provider: str, config: Config, folder: Path) -> str:
    """A provider that is listed, or that the user has described: a key for a name with a typo would
    never be used.
    """
    names = {*key_variables(), *config.get("providers")}
    if provider in names:
        return provider
    near = did_you_mean(provider, sorted(names))
    made = f"; [providers.{provider}] in {folder / 'config.toml'} makes one"
    raise UsageError(f"there is no provider {provider!r}{near or made}")


def _login(keys: KeyFile, provider: str, profile: str) -> int:
    key = _read_key(provider)
    if not key:
        raise UsageError(f"no key was given; type it, or pipe it into `weft auth login {provider}`")
    check_key(key)
    keys.keep(provider, key)
    of = f" in the profile {profile}" if profile else ""
    tell(f"saved the key for {provider}{of} in {keys.path} (only you can read it)")
    for variable in key_variables().get(provider, ()):
        if os.environ.get(variable):
            tell(f"note: {variable} is set and takes precedence")
    return OK


def _read_key(provider: str) -> str:
    if sys.stdin is None or not sys.stdin.isatty():
        return "" if sys.stdin is None else sys.stdin.readline(LONGEST + 2).strip()
    from getpass import getpass  # only at a terminal

    return getpass(f"Key for {provider} (not shown): ").strip()


def _logout(keys: KeyFile, provider: str) -> int:
    if not keys.forget(provider):
        raise UsageError(f"no key for {provider!r} is saved")
    tell(f"deleted the key for {provider}")
    return OK


def _list(keys: KeyFile, arguments: ParsedArguments) -> int:
    found = sources(keys)
    if arguments.flag("json"):
        write_pretty(found)
        return OK
    if not found:
        tell(
            "no provider has a key; set one in the environment, or save it: "
            "`weft auth login anthropic` (or openai, google, openrouter, …)"
        )
        return OK
    print_table([(name, source) for name, source in found.items()], head=("provider", "key from"))
    if not keys.is_private():
        tell(f"{keys.path} can be read by others; `chmod 600 {keys.path}` fixes that")
    return OK


def _status(keys: KeyFile, arguments: ParsedArguments) -> int:
    found = sources(keys)
    if arguments.flag("json"):
        first = next(iter(found.values()), None)
        # The fields that programs of the Agent SDK read.
        said = {"loggedIn": bool(found), "authMethod": "api_key" if found else "none"}
        write_pretty({**said, "apiProvider": "firstParty", "apiKeySource": first})
    elif found:
        tell(f"there are keys for {', '.join(found)}")
    else:
        tell("no provider has a key; `weft auth login PROVIDER` saves one")
    return OK if found else FAILED


def sources(keys: KeyFile) -> dict[str, str]:
    """Where the key of each provider that has one comes from; never the key."""
    found = dict.fromkeys(keys.keys(), str(keys.path))
    for provider, variables in key_variables().items():
        variable = next((each for each in variables if os.environ.get(each)), None)
        if variable is not None:
            found[provider] = variable
    return dict(sorted(found.items()))
