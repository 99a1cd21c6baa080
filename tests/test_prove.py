"""`make prove` says "holds" only for a claim that ran and found nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import proof_runner

pytestmark = pytest.mark.process

Claim = Callable[[str, str], str]


@pytest.fixture
def claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Claim:
    """Write a claim's module and return its importable name."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def write(name: str, body: str) -> str:
        (tmp_path / f"claim_{name}.py").write_text(f"import sys\ndef main(argv):\n    {body}\n")
        return f"claim_{name}"

    return write


def line(name: str, violations: int = 0, n: int = 10) -> str:
    """The line that a claim prints."""
    fields = {"claim": name, "n": n, "violations": violations, "seed": 1, "seconds": 0.1}
    return json.dumps(fields)


def test_a_claim_without_violations_holds(claim: Claim, capfd: pytest.CaptureFixture[str]) -> None:
    module = claim("good", f"print({line('good')!r}); return 0")
    assert proof_runner.main(["good"], {"good": module}) == 0
    assert json.loads(capfd.readouterr().out) == json.loads(line("good"))


@pytest.mark.parametrize(
    "body",
    [
        f"print({line('bad', violations=1)!r}); return 0",
        f"print({line('bad')!r}); return 1",
        f"print({line('bad', n=0)!r}); return 0",
        f"print({line('other')!r}); return 0",
        f"print({line('bad')!r}); print(1); return 0",
        "print('fine'); return 0",
        "return 0",
        "raise SystemError",
        "import os; os._exit(0)",
    ],
)
def test_anything_else_does_not_hold(
    claim: Claim, capfd: pytest.CaptureFixture[str], body: str
) -> None:
    claims = {
        "good": claim("good", f"print({line('good')!r}); return 0"),
        "bad": claim("bad", body),
    }
    assert proof_runner.main([], claims) == proof_runner.FAILED
    assert [json.loads(each)["claim"] for each in capfd.readouterr().out.splitlines()] == [
        "good",
        "bad",
    ]


def test_a_claim_that_does_not_exist_is_reported_as_missing(
    claim: Claim, capfd: pytest.CaptureFixture[str]
) -> None:
    claims = {"none": "no.such.module", "good": claim("good", f"print({line('good')!r}); return 0")}
    assert proof_runner.main([], claims) == proof_runner.MISSING
    first, second = capfd.readouterr().out.splitlines()
    assert json.loads(first) == {"claim": "none", "missing": True}
    assert json.loads(second)["violations"] == 0


def test_words_after_two_dashes_reach_the_claim(
    claim: Claim, capfd: pytest.CaptureFixture[str]
) -> None:
    module = claim("good", f"print({line('good')!r}); return 0 if argv == ['--n', '3'] else 1")
    assert proof_runner.main(["good", "--", "--n", "3"], {"good": module}) == 0
    assert proof_runner.main(["good"], {"good": module}) == proof_runner.FAILED


def test_a_claim_that_no_one_registered_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert proof_runner.main(["kill10"]) == proof_runner.FAILED
    assert "kill9" in capfd.readouterr().err
