"""The variables by which programs find the proxy of a command."""

from __future__ import annotations

from weft.workspace.egress.proxy_variables import proxy_variables
from weft.workspace.process.environment import QUIET
from weft.workspace.sandbox.machine import PROXY_PORT

URL = f"http://127.0.0.1:{PROXY_PORT}"


def test_every_way_to_name_a_proxy_leads_to_ours() -> None:
    found = proxy_variables({})
    names = ("http_proxy", "HTTPS_PROXY", "ALL_PROXY", "npm_config_https_proxy", "CARGO_HTTP_PROXY")
    assert {found[name] for name in names} == {URL}
    # Certificates stay what they are: nothing is decrypted.
    assert not [name for name in found if "CERT" in name.upper() or "CA_" in name.upper()]


def test_what_git_is_told_already_stays() -> None:
    found = {**QUIET, **proxy_variables(QUIET)}
    count = int(found["GIT_CONFIG_COUNT"])
    keys = [found[f"GIT_CONFIG_KEY_{number}"] for number in range(count)]
    assert keys == ["safe.bareRepository", "http.proxy"]


def test_the_commands_own_servers_are_asked_directly_unless_a_rule_means_this_machine() -> None:
    assert proxy_variables({})["no_proxy"] == "localhost,127.0.0.1,::1"
    assert proxy_variables({}, {"localhost"})["NO_PROXY"] == "127.0.0.1,::1"
    assert proxy_variables({}, {"127.0.0.1", "[::1]"})["npm_config_noproxy"] == "localhost"
