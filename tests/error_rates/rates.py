"""Rates: how many measurements of a case err, and whether that is more than is promised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from scipy.stats import binomtest

from error_rates.cases import Case, cases


@dataclass(frozen=True)
class Rate:
    """Errors of a case with one number of examples, heads or models."""

    case: Case
    size: int
    errors: int
    repeats: int

    @property
    def share(self) -> float:
        return self.errors / self.repeats

    @property
    def broken(self) -> bool:
        """Whether more errors were made than chance explains at the promised rate (one-sided, p below .001)."""
        return bool(binomtest(self.errors, self.repeats, self.case.promise, alternative="greater").pvalue < 0.001)


def rate(case: Case, size: int, repeats: int, seed: int) -> Rate:
    random = np.random.default_rng([seed, crc32(case.name.encode()), size])
    return Rate(case, size, sum(case.trial(random, size) for _ in range(repeats)), repeats)


def measured(repeats: int, seed: int, only: str = "") -> Iterator[Rate]:
    for case in cases():
        if only in case.name:
            for size in case.sizes:
                yield rate(case, size, repeats, seed)


def reads(rate: Rate) -> str:
    end = ", BROKEN" if rate.broken else ""
    return (
        f"{rate.case.name}: {rate.share:.1%} of {rate.repeats}, size {rate.size}, promised {rate.case.promise:.0%}{end}"
    )


def page(rates: Sequence[Rate]) -> list[str]:
    """The table of a results page."""
    lines = ["| number | population | errors (size of the sample) | nominal | promised |", "|---|---|---|---|---|"]
    for case in dict.fromkeys(rate.case for rate in rates):
        shares = ", ".join(f"{100 * rate.share:.1f}% ({rate.size})" for rate in rates if rate.case is case)
        lines.append(f"| {case.number} | {case.population} | {shares} | {case.nominal:.0%} | {case.promise:.0%} |")
    return lines
