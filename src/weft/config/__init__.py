"""Settings and where things are kept: the config files, the environment, API keys, and the models
that they name.

Reads values and checks them; opens no session and starts nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.config.paths import WeftPaths, places
from weft.config.setting_keys import KEYS, SettingKey
from weft.config.settings import Config

if TYPE_CHECKING:  # loaded when they are first used
    from weft.config.api_keys import check_key, key_variables, provider_of_key, provider_title
    from weft.config.key_check import KeyCheck

__all__ = [
    "KEYS",
    "Config",
    "KeyCheck",
    "SettingKey",
    "WeftPaths",
    "check_key",
    "key_variables",
    "places",
    "provider_of_key",
    "provider_title",
]

_HOMES = {
    "KeyCheck": "key_check",
    "check_key": "api_keys",
    "key_variables": "api_keys",
    "provider_of_key": "api_keys",
    "provider_title": "api_keys",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
