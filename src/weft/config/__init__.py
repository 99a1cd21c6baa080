"""Settings and where things are kept: the config files, the environment, API keys, and the models
that they name.

Reads values and checks them; opens no session and starts nothing.
"""

from weft.config.paths import WeftPaths, places
from weft.config.setting_keys import KEYS, SettingKey
from weft.config.settings import Config

__all__ = ["KEYS", "Config", "SettingKey", "WeftPaths", "places"]
