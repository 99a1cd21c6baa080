"""Proposed rules: narrow, useful, and enough for the line that they are proposed for."""

from __future__ import annotations

import pytest

from tests.support.attack_corpus import BENIGN, action_of, cases
from weft.permissions import decide, read_rule, rule_problem
from weft.permissions.shell.rule_proposal import proposed_patterns


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("git commit -m 'a b'", ("git commit *",)),
        ("git diff src", ()),
        ("cd src && pytest -q tests", ("pytest *",)),
        ("npm run build", ("npm run build *",)),
        ("npm run build && cargo test -q", ("npm run build *", "cargo test *")),
        ("git commit -m x | tail -3", ("git commit *",)),
        ("timeout 60 pytest -q", ("pytest *",)),
        ("make lint", ("make lint",)),
        ("rm -rf build", ("rm -rf build",)),
        ("./run --fast", ("./run --fast",)),
        ("git push --force", ("git push --force",)),
        ("git -C x commit", ("git -C x commit",)),
        ("kill 3", ("kill 3",)),
        ("go run ./x", ("go run ./x",)),
        ("rails runner x", ("rails runner x",)),
        ("npm install left-pad", ("npm install left-pad",)),
        ("gcloud compute list", ("gcloud compute list *",)),
        # Behind what a star would leave open there is still a word that says what is done.
        ("gcloud compute instances list", ("gcloud compute instances list",)),
        ("doctl compute droplet list", ("doctl compute droplet list",)),
        ("aws ec2 describe-instances", ("aws ec2 describe-instances *",)),
        ("aws s3 ls bucket", ("aws s3 ls bucket",)),
        ("mongo --eval x", ("mongo --eval x",)),
        ("heroku run x", ("heroku run x",)),
        ("systemctl restart x", ("systemctl restart x",)),
        ("gh repo view x", ("gh repo view *",)),
        ("kubectl get pods", ("kubectl get *",)),
        ("terraform destroy", ("terraform destroy",)),
        ("cargo run -- x", ("cargo run *",)),
        ("git add src", ("git add *",)),
        ("eslint src", ("eslint *",)),
        ("python -c 'x'", ()),
        ("A=b pytest", ()),
        ("pytest $x", ()),
        ("pytest > out", ()),
        ("for i in a; do pytest $i; done", ()),
        ("if true; then", ()),
        ("", ()),
    ],
)
def test_the_narrowest_useful_rules_are_proposed(line: str, wanted: tuple[str, ...]) -> None:
    assert proposed_patterns(line) == wanted


def test_without_a_sandbox_what_only_reads_needs_a_rule_too() -> None:
    line = "git diff src | head -5"
    assert proposed_patterns(line, reads_unasked=False) == ("git diff *", "head *")


def test_what_is_proposed_is_a_rule_and_allows_the_line() -> None:
    every = {case.text for kind in ("shell", "rule", BENIGN) for case in cases(kind)}
    for line in sorted(text for text in every if len(text) < 1_000):
        patterns = proposed_patterns(line, "/p")
        rules = [f"shell({pattern})" for pattern in patterns]
        assert [rule_problem(rule) for rule in rules if rule_problem(rule)] == [], line
        if patterns:
            read = tuple(each for rule in rules for each in read_rule("allow", rule))
            decision = decide(action_of("shell", line), mode="default", rules=read)
            assert decision.verdict == "allow", (line, patterns, decision.reason)
