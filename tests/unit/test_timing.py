"""Interleaved timing and the interval of a median, on a clock that is made up."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from headcount.statistics import median_interval
from headcount.timing import interleave, timed


def test_ratio_of_paired_times_on_a_fake_clock() -> None:
    now = 0.0
    cost = {"slow": itertools.cycle([2.0, 4.0]), "fast": itertools.cycle([1.0, 2.0])}
    ran: list[str] = []

    def work(name: str) -> None:
        nonlocal now
        ran.append(name)
        now += next(cost[name])

    times = interleave({name: lambda name=name: work(name) for name in cost}, repeats=20, warmup=2, clock=lambda: now)  # type: ignore[misc]
    assert len(times.seconds["slow"]) == 20
    assert len(ran) == 2 * 22
    assert {frozenset(ran[i : i + 2]) for i in range(0, len(ran), 2)} == {frozenset(cost)}  # every round runs both
    assert times.ratio("slow", "fast") == (2.0, 2.0, 2.0)
    assert times.median("fast") == 1.5


class _Queue:
    """A device: a call returns as soon as its work is queued, which is done while something waits for it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self._queued = 0.0, [0.0]
        monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
        monkeypatch.setattr(torch.accelerator, "device_count", lambda: 1)
        monkeypatch.setattr(torch.accelerator, "synchronize", self._wait)

    def put(self, seconds: float) -> None:
        self._queued[0] += seconds

    def _wait(self, device: int) -> None:
        self.now, self._queued[device] = self.now + self._queued[device], 0.0

    def clock(self) -> float:
        return self.now


def test_the_clock_waits_for_work_that_is_only_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model twice as fast on an accelerator was as fast: only the queueing was measured."""
    device = _Queue(monkeypatch)
    device.put(9.0)  # earlier work counts for nobody
    work = {"whole": lambda: device.put(2.0), "half": lambda: device.put(1.0)}
    times = interleave(work, repeats=6, warmup=0, clock=device.clock)
    assert times.ratio("whole", "half") == (2.0, 2.0, 2.0)
    assert times.seconds["whole"].tolist() == [2.0] * 6


def test_nothing_is_waited_for_without_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(torch.accelerator, "synchronize", lambda *_: pytest.fail("there is no accelerator"))
    assert timed(lambda: None) >= 0


def test_median_interval_covers_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        interval = median_interval(random.normal(3.0, 1.0, size=40))
        assert interval.low <= interval.value <= interval.high
        hits += interval.low <= 3.0 <= interval.high
    assert 180 <= hits <= 200  # 95% of 200, give or take


def test_median_interval_of_few_repeats_is_exact() -> None:
    """Seven repeats, the default of `bench`: medians of resamples leave out the truth in 12% of cases."""
    random = np.random.default_rng(1)
    found = [median_interval(random.lognormal(size=7)) for _ in range(1000)]
    assert np.mean([row.low <= 1.0 <= row.high for row in found]) > 0.97  # 1 - 2 / 2^7
    assert np.isnan([median_interval([1.0, 2.0, 3.0, 4.0, 5.0]).low, median_interval([1.0]).high]).all()


def test_median_of_nothing() -> None:
    with pytest.raises(ValueError, match="at least one"):
        median_interval([])
