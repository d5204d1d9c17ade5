"""Verdicts: the test of a share against its threshold, by slow loops and by simulation of its error rate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headcount.head_roles.evidence import Evidence, decided
from headcount.head_roles.reading import Reading
from headcount.head_roles.role import FURTHEST, roles
from headcount.head_roles.tallies import Column, Tally, binomial_p, without_misses
from headcount.statistics import RatioSums, Resampling

POSITIONAL = {"positional": roles["positional"]}


def tally(hits_BH: np.ndarray, trials_B: np.ndarray, counts_RB: np.ndarray | None = None) -> Tally:
    """One label, `positional +1`, threshold .9."""
    rows, heads = hits_BH.shape
    counts_RB = np.ones((10, rows), dtype=np.float32) if counts_RB is None else counts_RB
    found = Tally([Column("positional", "+1")], heads, len(counts_RB))
    hits_BHL = np.repeat(hits_BH[..., None], 3, -1).astype(np.float32)
    trials_BL = np.repeat(trials_B[:, None], 3, -1).astype(np.float32)
    found.add(hits_BHL, trials_BL, 0.1 * trials_BL, {}, counts_RB, np.arange(rows))
    return found


def test_p_is_binomial_over_sentences() -> None:
    """Where all sentences have as many trials: sentences of mere hits or misses are the observations."""
    hits_B = np.array([5] * 48 + [0] * 2)
    (one,), *_ = tally(hits_B[:, None], np.full(50, 5)).evidence(POSITIONAL, Reading())
    assert one.p == pytest.approx(stats.binom.sf(47, 50, 0.9))
    (never,), *_ = tally(0 * hits_B[:, None], np.full(50, 5)).evidence(POSITIONAL, Reading())
    assert never.p == pytest.approx(1)


def test_halves_are_every_other_sentence() -> None:
    random = np.random.default_rng(0)
    trials = random.integers(1, 9, 50)
    hits = random.binomial(trials, 0.8)
    (one,), *_ = tally(hits[:, None], trials).evidence(POSITIONAL, Reading())
    assert one.halves is not None
    for half in (0, 1):
        hits_N, trials_N = hits[half::2], trials[half::2]
        share = hits_N.sum() / trials_N.sum()
        if half:
            assert one.odd_trials == trials_N.sum()
        sentences = trials_N.sum() ** 2 / (trials_N**2).sum()
        error = np.sqrt(sentences / (sentences - 1) * ((hits_N - share * trials_N) ** 2).sum()) / trials_N.sum()
        half_width = stats.t.ppf(0.975, sentences - 1) * error
        found = one.halves[half]
        assert (found.value, found.high) == pytest.approx((share, share + half_width))
        assert share - 2 * half_width < found.low < share - half_width  # some sentences have far fewer hits


@pytest.mark.parametrize("sentences", [12, 30])
def test_intervals_of_nearly_certain_heads_contain_their_share(sentences: int) -> None:
    """2000 heads that hit 97% of sentences: of 30, four in ten hit all, and had 1 (1 to 1)."""
    random, heads, share = np.random.default_rng(2), 2000, 0.97
    hits_BH = random.binomial(1, share, (sentences, heads))
    trials_B, counts_RB = np.ones(sentences, dtype=int), Resampling(400).counts(range(sentences))
    found = [one for (one,) in tally(hits_BH, trials_B, counts_RB).evidence(POSITIONAL, Reading())]
    for rows in (found, [one.halves[1] for one in found if one.halves]):
        assert np.mean([row.low <= share <= row.high for row in rows]) > 0.93
    always_BH = np.ones((sentences, 1), dtype=int)
    (one,) = tally(always_BH, trials_B).evidence(POSITIONAL, Reading())[0]
    assert (one.low, one.high) == (pytest.approx(stats.binomtest(sentences, sentences).proportion_ci().low), 1.0)


def test_two_sentences_have_no_interval() -> None:
    (one,) = tally(np.array([[20], [15]]), np.array([20, 20])).evidence(POSITIONAL, Reading())[0]
    assert np.isnan([one.low, one.high]).all()
    assert not one.holds


def test_the_best_offset_is_chosen_on_other_sentences_than_it_is_measured_on() -> None:
    """Eight offsets are equally likely: the best of them on 400 trials has 15%, none has more than 12.5%."""
    random, found = np.random.default_rng(4), []
    for _ in range(200):
        one = Tally([Column("syntactic", "nsubj v->s")], 1, 2)
        offset_B = FURTHEST + 1 + random.integers(0, 8, 400)
        table_2LO = np.zeros((2, 1, 2 * FURTHEST + 1), dtype=np.int64)
        np.add.at(table_2LO, (np.arange(400) % 2, 0, offset_B), 1)
        ones_BL = np.ones((400, 3), dtype=np.float32)
        one.add(ones_BL[:, None], ones_BL, ones_BL, {0: table_2LO}, np.ones((2, 400), np.float32), np.arange(400))
        found.append((one.baseline(0), one.odd_baseline(0)))
    best, apart = np.mean(found, axis=0)
    assert best > 0.145
    assert apart == pytest.approx(0.125, abs=0.005)


@pytest.mark.parametrize("together", [False, True])
def test_the_error_rate_at_the_threshold_holds(together: bool) -> None:
    """2000 heads at exactly .9; trials of a sentence are independent, or all hit or miss together."""
    random, heads = np.random.default_rng(1), 2000
    trials_B = np.full(200, 6)
    hits_BH = 6 * random.binomial(1, 0.9, (200, heads)) if together else random.binomial(6, 0.9, (200, heads))
    p = [one.p for (one,) in tally(hits_BH, trials_B).evidence(POSITIONAL, Reading())]
    for alpha in (0.05, 0.01):
        wrong = int(np.sum(np.array(p) < alpha))
        assert stats.binomtest(wrong, heads, alpha, alternative="greater").pvalue > 0.001
    if together:
        assert np.mean(np.array(p) < 0.05) > 0.005, "the test can reject"


def test_a_threshold_that_was_measured_is_not_taken_as_known() -> None:
    """1000 heads right 1.1 times as often as the best offset, which is right in 60% of 100 sentences."""
    random, heads = np.random.default_rng(6), 1000
    p_H, known_H = np.empty(heads), np.empty(heads)
    for head in range(heads):
        sums = RatioSums.of(random.binomial(1, 0.66, (100, 1, 1)), np.ones((100, 1, 1)))
        offset = random.binomial(100, 0.6) / 100
        p_H[head] = binomial_p(sums, 0, 1.1 * offset, offset=offset)[0]
        known_H[head] = binomial_p(sums, 0, 1.1 * offset)[0]
    assert np.mean(p_H < 0.05) < 0.06
    assert np.mean(known_H < 0.05) > 0.1, "the case can fail"
    certain = RatioSums.of(random.binomial(1, 0.9, (300, 1, 1)), np.ones((300, 1, 1)))
    assert binomial_p(certain, 0, 0.66, offset=0.6)[0] < 1e-6


def test_intervals_stay_within_what_a_share_can_be() -> None:
    """Also of labels from -1 to 1, such as monotone alignment, that always or never hold."""
    random = np.random.default_rng(3)
    trials_B = random.integers(1, 30, 20)
    hits_BH = random.binomial(trials_B[:, None], [[0.03, 0.1, 0.9, 0.99] * 50])
    counts_RB = Resampling(200).counts(range(20))
    for (one,) in tally(hits_BH, trials_B, counts_RB).evidence(POSITIONAL, Reading()):
        assert 0 <= one.low <= one.value <= one.high <= 1
    ends = [np.array([[1.0, 0.0, -1.0]])] * 3
    low_HL, high_HL = without_misses(*ends, np.full(3, 30.0), np.full(3, -1.0))
    exact = 0.025 ** (1 / 30)
    assert low_HL.tolist() == [[pytest.approx(2 * exact - 1), 0.0, -1.0]]
    assert high_HL.tolist() == [[1.0, 0.0, pytest.approx(1 - 2 * exact)]]


def evidence(low: float, p: float, trials: int = 100, baseline: float = 0.1) -> Evidence:
    holds = None if trials < 30 else low >= 0.5
    return Evidence("rare", "rarest", 0.7, baseline, 0.5, low, 0.9, trials, holds, p)


def test_a_verdict_takes_interval_trials_and_corrected_p() -> None:
    """Holm over the four that have enough trials."""
    found = decided([
        evidence(0.6, 0.001),
        evidence(0.6, 0.04),  # the last of four to be corrected
        evidence(0.4, 0.001),  # the interval has the threshold in it
        evidence(0.6, 0.001, baseline=0.65),  # below what chance gives
        evidence(0.6, 1e-9, trials=20),
    ])  # fmt: skip
    assert [one.holds for one in found] == [True, True, False, False, None]
    assert [one.corrected for one in found] == [pytest.approx(0.004), pytest.approx(0.04), 0.004, 0.004, None]
    crowd = decided([evidence(0.6, 0.04)] + [evidence(0.2, 0.9)] * 20)
    assert crowd[0].holds is False


@pytest.mark.parametrize("shares", [(0.35, 0.2, 0.2, 0.15, 0.1), (0.125,) * 8], ids=["one best offset", "eight alike"])
def test_a_head_at_the_threshold_is_rarely_excluded(shares: tuple[float, ...]) -> None:
    """The best offset was taken as known for a "no": 10% of heads at 1.1 times it were excluded, of eight alike 34%."""
    random, excluded = np.random.default_rng(2), []
    for _ in range(150):
        offset_B = FURTHEST + 1 + random.choice(len(shares), 300, p=shares)
        table_2LO = np.zeros((2, 1, 2 * FURTHEST + 1), dtype=np.int64)
        np.add.at(table_2LO, (np.arange(300) % 2, 0, offset_B), 1)
        ones_BL = np.ones((300, 3), dtype=np.float32)
        hits_BHL = np.repeat((random.random((300, 4)) < 1.1 * max(shares))[..., None], 3, -1).astype(np.float32)
        one = Tally([Column("syntactic", "nsubj v->s")], 4, 200)
        counts_RB = Resampling(200, seed=0).counts(np.arange(300)).astype(np.float32)
        one.add(hits_BHL, ones_BL, ones_BL, {0: table_2LO}, counts_RB, np.arange(300))
        excluded += [row.below for (row,) in one.evidence({"syntactic": roles["syntactic"]}, Reading())]
    assert np.mean(excluded) < 0.05
