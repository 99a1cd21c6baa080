"""That the soak finds what grows, and takes nothing else for it."""

from __future__ import annotations

import json
import random

import msgspec
import pytest

from tests.crash import soak
from tests.support.crash.soak_series import SoakSample, trends

SEATS = 20
MEASURES = ("memory_mb", "descriptors", "threads", "tasks", "latency")


def series(**growth: float) -> list[SoakSample]:
    """An hour of samples: noise, some that a busy machine has disturbed, and this growth."""
    dice = random.Random(1)
    found = []
    for number in range(120):
        level = {"memory_mb": 80.0, "descriptors": 24.0, "threads": 14.0, "tasks": 36.0}
        level["latency"] = 1.5 * dice.choice((1, 1, 1, 1, 1, 1, 1, 1, 1, 4))
        for name in MEASURES:
            level[name] += growth.get(name, 0.0) * number / 119
            level[name] += dice.uniform(-0.02, 0.02) * level[name]
        found.append(SoakSample(minute=number / 2, ended=number * 6, **level))
    return found


def test_noise_and_disturbed_samples_are_flat() -> None:
    assert [each.name for each in trends(series(), SEATS) if not each.is_flat] == []


def test_what_shrinks_is_no_fault() -> None:
    assert all(each.is_flat for each in trends(series(memory_mb=-30.0, tasks=-10.0), SEATS))


@pytest.mark.parametrize(
    ("name", "grown"),
    [("memory_mb", 8.0), ("descriptors", 3.0), ("threads", 3.0), ("tasks", 3.0), ("latency", 0.8)],
)
def test_growth_that_is_small_beside_the_noise_is_found(name: str, grown: float) -> None:
    found = trends(series(**{name: grown}), SEATS)
    assert [each.name for each in found if not each.is_flat] == [name]


def risen(until: int, ended: int) -> list[SoakSample]:
    """Samples whose memory rises by 20 MB until one of them, and so many sessions end at each."""
    return [
        msgspec.structs.replace(
            each, memory_mb=80.0 + 20.0 * min(number, until) / until, ended=number * ended
        )
        for number, each in enumerate(series())
    ]


@pytest.mark.parametrize(
    ("until", "ended", "is_flat"),
    [(50, 2, True), (90, 2, False), (50, 60, False), (119, 0, False)],
    ids=["while each seat ends five", "later", "each has ended five", "none ends"],
)
def test_only_what_grows_after_the_warm_up_counts(until: int, ended: int, is_flat: bool) -> None:
    memory, *_ = trends(risen(until, ended), SEATS)
    assert memory.is_flat is is_flat


@pytest.mark.process
@pytest.mark.parametrize("plant", ["descriptors", "tasks", "replay"])
def test_a_planted_leak_is_found(
    plant: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soak, "PROBES", 1)
    arguments = ["--minutes", "0.02", "--sessions", "3", "--pace", "0.01", "--plant", plant]
    assert soak.main(arguments) == 1
    output = capfd.readouterr()
    assert json.loads(output.out)["violations"] > 0
    sentence = "is not the fold" if plant == "replay" else f"{plant} grew by"
    assert sentence in output.err
