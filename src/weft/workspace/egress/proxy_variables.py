"""The variables by which programs find the proxy; certificates are left as they are, for nothing is
decrypted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from weft.workspace.sandbox.machine import PROXY_PORT

_URL: Final = f"http://127.0.0.1:{PROXY_PORT}"
_OWN: Final = ("localhost", "127.0.0.1", "::1")
"""Names by which a program in the sandbox means itself."""
_PROXIES: Final = (
    *("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
    # Settings of the user's own would come before the variables above.
    *("npm_config_proxy", "npm_config_https_proxy", "CARGO_HTTP_PROXY"),
    *("YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"),
)
_WITHOUT: Final = ("no_proxy", "NO_PROXY", "npm_config_noproxy")


def proxy_variables(
    environ: Mapping[str, str], local_names: Collection[str] = ()
) -> dict[str, str]:
    """What a command gets besides `environ`; `local_names` mean this machine, not the sandbox."""
    direct = ",".join(name for name in _OWN if not {name, f"[{name}]"} & set(local_names))
    count = int(environ.get("GIT_CONFIG_COUNT", "0"))
    return {
        **dict.fromkeys(_PROXIES, _URL),
        **dict.fromkeys(_WITHOUT, direct),
        "NODE_USE_ENV_PROXY": "1",
        "GIT_CONFIG_COUNT": str(count + 1),
        f"GIT_CONFIG_KEY_{count}": "http.proxy",
        f"GIT_CONFIG_VALUE_{count}": _URL,
    }
