"""Timing two ways side by side: interleaved repeats, so that noise of the machine hits both alike."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from headcount.statistics import Interval, median_interval

Clock = Callable[[], float]
TimedCall = Callable[[], object]


@dataclass(frozen=True)
class Times:
    """Seconds of each repeat, by name; repeats of equal number ran next to each other."""

    seconds: Mapping[str, np.ndarray]  # name -> [repeats]

    def median(self, name: str) -> float:
        return float(np.median(self.seconds[name]))

    def ratio(self, above: str, below: str) -> Interval:
        """Median of the paired ratios, with its 95% interval."""
        return median_interval(self.seconds[above] / self.seconds[below])


def interleave(
    work: Mapping[str, TimedCall],
    *,
    repeats: int = 20,
    warmup: int = 2,
    seed: int = 0,
    clock: Clock = time.perf_counter,
) -> Times:
    """Run every piece of work `repeats` times, in a new random order each round."""
    order, shuffle = list(work), random.Random(seed)
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for round_number in range(-warmup, repeats):
        shuffle.shuffle(order)
        for name in order:
            start = clock()
            work[name]()
            if round_number >= 0:
                seconds[name].append(clock() - start)
    return Times({name: np.array(values) for name, values in seconds.items()})
