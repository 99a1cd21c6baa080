"""Rules about hosts: every spelling of a host, ports, subdomains, and addresses inside."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.allowed_hosts import network, rule
from weft.permissions import ToolAction, decide, rule_problem
from weft.permissions.domains import domain_fits, plain_host
from weft.permissions.network_rules import NamedHost, is_public, read_host


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("Example.ORG.", "example.org"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
    ],
)
def test_a_host_has_one_spelling(written: str, plain: str) -> None:
    assert plain_host(written) == plain


@pytest.mark.parametrize(
    "written",
    [
        *("127.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.0.0.01", "1.2.3"),
        *("１２７.0.0.1", "127。0。0。1", "①.1", "::1", "[::1", "[fe80::1%eth0]", "[1.1.1.1]"),
        *("", ".", "a..b", "-a.b", "a-.b", "a_b.c", "a b", "a\0.example.org", "a%2eb", "a/b"),
        *(
            "wi\u212ai.example",
            "user@example.org",
            "example.org:80",
            "x" * 64 + ".org",
            "a." * 127 + "org",
        ),
    ],
)
def test_other_spellings_are_no_hosts(written: str) -> None:
    assert plain_host(written) == ""


@given(st.text(max_size=30))
def test_no_text_breaks_the_reading_of_a_host_and_the_plain_one_is_its_own(text: str) -> None:
    plain = plain_host(text)
    assert plain in ("", plain_host(plain))
    read_host(text)


@pytest.mark.parametrize(
    ("rules", "host", "port", "verdict"),
    [
        (["allow example.org"], "example.org", 443, "allow"),
        (["allow example.org"], "example.org", 80, "allow"),
        (["allow example.org"], "example.org", 22, "ask"),
        (["allow example.org:22"], "example.org", 22, "allow"),
        (["allow example.org:22"], "example.org", 443, "ask"),
        (["allow example.org"], "sub.example.org", 443, "ask"),
        (["allow example.org"], "notexample.org", 443, "ask"),
        (["allow example.org"], "example.org.evil.test", 443, "ask"),
        (["allow *.example.org"], "a.b.example.org", 443, "allow"),
        (["allow *.example.org"], "example.org", 443, "ask"),
        (["allow *.example.org"], "evilexample.org", 443, "ask"),
        (["allow *.example.org", "deny bad.example.org"], "bad.example.org", 443, "deny"),
        (["allow *.example.org", "deny bad.example.org"], "x.bad.example.org", 443, "deny"),
        (["allow example.org", "deny example.org:80"], "example.org", 80, "deny"),
        (["allow example.org", "deny example.org:80"], "example.org", 443, "allow"),
        (["allow example.org", "ask example.org"], "example.org", 443, "ask"),
        (["allow example.org", "deny"], "example.org", 443, "deny"),
        (["allow"], "example.org", 443, "ask"),
        ([], "example.org", 443, "ask"),
        (["allow 127.0.0.1:8080"], "127.0.0.1", 8080, "allow"),
        (["allow [::1]:8080"], "[::1]", 8080, "allow"),
    ],
)
def test_what_rules_say_of_a_host(rules: list[str], host: str, port: int, verdict: str) -> None:
    assert network(*rules).decide(host, port).verdict == verdict


def test_the_rule_that_would_allow_it_is_named() -> None:
    assert network().decide("example.org", 443).rule == "fetch(domain:example.org)"
    assert network().decide("example.org", 22).rule == "fetch(domain:example.org:22)"
    assert network("deny example.org").decide("example.org", 443).rule == ""
    for text in ("fetch(domain:example.org:22)", "fetch(domain:[::1]:80)"):
        assert rule_problem(text) == ""


def test_what_is_named_without_a_port_is_asked_about_at_each_port_of_the_web() -> None:
    for rules in (["allow example.org:443"], ["allow example.org", "ask example.org:80"]):
        found = decide(command("example.org"), mode="auto", rules=list(map(rule, rules)))
        assert (found.verdict, found.reason) == ("ask", "it would reach example.org")
    rules = ["allow example.org", "deny example.org:80"]
    assert decide(command("example.org"), mode="auto", rules=list(map(rule, rules))).verdict == (
        "allow"
    )


def test_a_host_that_nobody_was_asked_about_gives_a_command_no_more_than_its_rule() -> None:
    rules = network("allow example.org", given=[NamedHost("example.org", 443)])
    assert rules.decide("example.org", 443).verdict == "allow"
    assert not rules.names_port("example.org", 443)
    assert network(given=[NamedHost("example.org", 443)]).names_port("example.org", 443)


def test_what_the_user_gave_for_one_command_counts_over_an_ask_and_not_over_a_deny() -> None:
    given_host = [NamedHost("example.org")]
    assert (
        network("ask example.org", given=given_host).decide("example.org", 443).verdict == "allow"
    )
    assert (
        network("deny example.org", given=given_host).decide("example.org", 443).verdict == "deny"
    )


INSIDE = (
    *("127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("0.0.0.0", "100.100.100.200", "192.0.0.192", "198.18.0.1", "224.0.0.1", "255.255.255.255"),
    *("::1", "::", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:10.0.0.1"),
    *("::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:1::1", "fec0::1"),
)


@pytest.mark.parametrize("number", INSIDE)
def test_a_name_does_not_lead_inside(number: str) -> None:
    assert not is_public(number)
    found = network("allow example.org").decide_address("example.org", number, 443)
    assert found.verdict == "ask"
    assert "not a public address" in found.reason


@pytest.mark.parametrize("number", ["1.1.1.1", "2606:4700::1111", "64:ff9b::101:101"])
def test_public_addresses_are_reached(number: str) -> None:
    found = network("allow example.org").decide_address("example.org", number, 443)
    assert found.verdict == "allow"


def test_an_address_inside_is_reached_where_a_rule_names_it_too() -> None:
    rules = network("allow intra.test", "allow 10.0.0.5")
    assert rules.decide_address("intra.test", "10.0.0.5", 443).verdict == "allow"
    assert rules.decide_address("intra.test", "10.0.0.5", 22).verdict == "ask"
    assert rules.decide_address("intra.test", "10.0.0.6", 443).rule == "fetch(domain:10.0.0.6)"


def test_an_address_with_a_zone_is_reached_by_no_name() -> None:
    rules = network("allow example.org", "allow [fe80::1]")
    assert rules.decide_address("example.org", "fe80::1%eth0", 443).verdict == "deny"


def test_a_public_address_of_this_machine_is_inside() -> None:
    rules = network("allow example.org")
    found = rules.decide_address("example.org", "1.1.1.1", 443, is_own=True)
    assert (found.verdict, found.rule) == ("ask", "fetch(domain:1.1.1.1)")
    assert "an address of this machine" in found.reason
    named = network("allow example.org", "allow 1.1.1.1")
    assert named.decide_address("example.org", "1.1.1.1", 443, is_own=True).verdict == "allow"


def test_only_localhost_itself_means_the_loopback() -> None:
    rules = network("allow localhost:80", "allow evil.test:80", "allow x.localhost:80")
    assert rules.decide_address("localhost", "127.0.0.1", 80).verdict == "allow"
    assert rules.decide_address("localhost", "10.0.0.1", 80).verdict == "ask"
    assert rules.decide_address("evil.test", "127.0.0.1", 80).verdict == "ask"
    assert rules.decide_address("x.localhost", "127.0.0.1", 80).verdict == "ask"


@pytest.mark.parametrize("verdict", ["deny", "ask"])
@pytest.mark.parametrize("number", ["1.1.1.1", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_an_address_that_is_restricted_is_reached_by_no_name(verdict: str, number: str) -> None:
    rules = network("allow example.org", f"{verdict} 1.1.1.1")
    found = rules.decide_address("example.org", number, 443)
    assert found.verdict == verdict
    assert f"`{verdict} fetch(domain:1.1.1.1)`" in found.reason


def test_what_was_asked_of_a_host_is_not_asked_of_its_address_again() -> None:
    for asks in ("ask", "ask example.org"):
        rules = network(asks, given=[NamedHost("example.org")])
        assert rules.decide_address("example.org", "1.1.1.1", 443).verdict == "allow"
    local = network("allow localhost:80", "ask 127.0.0.1")
    assert local.decide_address("localhost", "127.0.0.1", 80).verdict == "ask"


@pytest.mark.parametrize(
    ("pattern", "nearest"),
    [
        ("domain:bücher.example", "xn--bcher-kva.example"),
        ("domain:127.1", "127.0.0.1"),
        ("domain:https://example.org/x", "example.org"),
        ("domain:example.org:99999", "example.org"),
        ("example.org", "example.org"),
        ("domain:*.1.2.3.4", "127.0.0.1"),
    ],
)
def test_a_pattern_that_covers_nothing_is_refused_with_the_nearest_right_one(
    pattern: str, nearest: str
) -> None:
    assert f"fetch(domain:{nearest})" in rule_problem(f"fetch({pattern})")


def test_a_port_in_a_rule_is_compared_with_that_of_the_address() -> None:
    pattern = "domain:example.org:8443"
    assert domain_fits("https://example.org:8443/", pattern, restricts=False)
    assert not domain_fits("https://example.org/", pattern, restricts=False)
    assert domain_fits("https://example.org/", "domain:example.org:443", restricts=False)


@pytest.mark.parametrize("port", ["22", "8080", "6379"])
def test_a_rule_without_a_port_allows_the_ports_of_the_web_and_restricts_all(port: str) -> None:
    pattern = "domain:example.org"
    for web in ("http://example.org/", "https://example.org/", "http://example.org:443/"):
        assert domain_fits(web, pattern, restricts=False)
    assert not domain_fits(f"http://example.org:{port}/", pattern, restricts=False)
    assert domain_fits(f"http://example.org:{port}/", pattern, restricts=True)


# --- a command that names hosts


def command(*hosts: str) -> ToolAction:
    line = "pip download x"
    shown = f"# may reach {', '.join(hosts)}\n{line}"
    return ToolAction(
        tool="shell", kind="run", target=shown, line=line, root="/p", sandboxed=True, hosts=hosts
    )


@pytest.mark.parametrize("mode", ["default", "accept_edits", "auto"])
def test_a_host_that_no_rule_allows_is_asked_about_and_only_the_user_can_answer(mode: str) -> None:
    rules = [rule("allow example.org")]
    found = decide(command("example.org", "pypi.org"), mode=mode, rules=rules)  # type: ignore[arg-type]
    assert (found.verdict, found.is_firm) == ("ask", True)
    assert found.reason == "it would reach pypi.org"


def test_hosts_that_rules_allow_are_not_asked_about() -> None:
    rules = [rule("allow pypi.org")]
    assert decide(command("pypi.org"), mode="auto", rules=rules).verdict == "allow"


@pytest.mark.parametrize(("mode", "verdict"), [("default", "ask"), ("plan", "deny")])
def test_a_command_that_only_reads_is_not_unasked_where_it_names_a_host(
    mode: str, verdict: str
) -> None:
    """Git runs what the repository configures, and that would have a way out."""
    rules = [rule("allow pypi.org")]
    reads = msgspec.structs.replace(command("pypi.org"), line="git status")
    assert decide(reads, mode=mode, rules=rules).verdict == verdict  # type: ignore[arg-type]
    alone = msgspec.structs.replace(reads, hosts=())
    assert decide(alone, mode=mode, rules=rules).verdict == "allow"  # type: ignore[arg-type]


def test_a_rule_for_the_command_allows_it_no_host() -> None:
    from tests.support.attack_corpus import rules_of

    rules = rules_of(("allow shell(pip download *)", "allow shell"))
    assert decide(command("pypi.org"), mode="auto", rules=rules).verdict == "ask"
    assert decide(command("pypi.org"), mode="default", rules=rules).verdict == "ask"


def test_a_denied_host_denies_the_command_and_modes_that_never_ask_refuse_an_unknown_one() -> None:
    denied = decide(command("pypi.org"), mode="auto", rules=[rule("deny pypi.org")])
    assert denied.verdict == "deny"
    for mode in ("bypass", "plan"):
        assert decide(command("pypi.org"), mode=mode).verdict == "deny"
    assert "fetch(domain:pypi.org)" in decide(command("pypi.org"), mode="bypass").reason
