"""Cases: a number of headcount, the population it is measured on, and the rate of errors that is promised for it.

`docs/results/error-rates.md` has the rates of all cases; each promise is a row of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtri

from error_rates.populations import (
    EFFECTS,
    LAYERS,
    ONE_IN_TEN,
    WORTH,
    Draw,
    Random,
    answers,
    classes,
    layered,
    losses,
    roles_and_importance,
    texts,
    translations,
)
from headcount.head_roles.tallies import binomial_p
from headcount.metrics import ACCURACY, F1, LOSS, MATTHEWS, PERPLEXITY, Metric
from headcount.statistics import (
    NORMAL,
    Interval,
    RatioSums,
    Resampling,
    difference_within,
    holm,
    mean_difference,
    mean_ends,
    median_interval,
    over_models,
    over_runs,
    pearson,
    percentile_interval,
    permutation_of_groups,
    ratio_interval,
    resamples_for,
    share_in_groups,
    spearman,
    t_interval,
)
from headcount.tasks.lm_eval import Measure, mean_over_tasks
from headcount.tasks.quality import Quality
from headcount.tasks.translation.bleu import METRIC as BLEU

Trial = Callable[[Random, int], bool]  # one measurement on so many examples -> whether it errs
_MANY = 400_000  # examples whose value is the truth


@dataclass(frozen=True)
class Case:
    """A number measured again and again on a population."""

    number: str
    population: str
    trial: Trial
    sizes: tuple[int, ...]
    promise: float  # most errors, as a share
    nominal: float = 0.05

    @property
    def name(self) -> str:
        return f"{self.number}, {self.population}"


def _left_out(interval: Interval, truth: float) -> bool:
    return not interval.low <= truth <= interval.high


def _metric(metric: Metric, population: str, draw: Draw, promise: float, sizes: tuple[int, ...]) -> Case:
    @cache
    def truth() -> float:
        return metric.of(draw(np.random.default_rng(12345), _MANY))

    def trial(random: Random, size: int) -> bool:
        return _left_out(Quality.of(metric, draw(random, size)).interval(), truth())

    return Case(metric.name, population, trial, sizes, promise)


def _tasks(count: int, promise: float, sizes: tuple[int, ...]) -> Case:
    """As many examples of each of several tasks of the harness, of which 50 to 100% are right."""
    metric = mean_over_tasks([Measure(f"task {number}", "acc", "mean", True) for number in range(count)])
    truth_T = np.linspace(0.5, 1, count)

    def trial(random: Random, size: int) -> bool:
        table = np.zeros((size, count, 2))
        of_task = np.arange(size) % count
        table[np.arange(size), of_task] = np.stack([random.random(size) < truth_T[of_task], np.ones(size)], axis=1)
        return _left_out(Quality.of(metric, table.reshape(size, -1)).interval(), truth_T.mean())

    return Case(metric.name, f"{count} tasks, 50 to 100% right", trial, sizes, promise)


def _paired(metric: Metric, population: str, draw: Draw, worse: Draw, promise: float, sizes: tuple[int, ...]) -> Case:
    """The second model changes every example into that of another population with the same number."""

    @cache
    def truth() -> float:
        random = np.random.default_rng(12345)
        return metric.of(worse(random, _MANY)) - metric.of(draw(random, _MANY))

    def trial(random: Random, size: int) -> bool:
        first, second = draw(random, size), worse(random, size)
        row = Quality.of(metric, second).against(Quality.of(metric, first))
        return not row.low <= truth() <= row.high

    return Case(f"change of {metric.name}", population, trial, sizes, promise)


def _changed_answers(lost: float, won: float, promise: float, sizes: tuple[int, ...]) -> Case:
    def trial(random: Random, size: int) -> bool:
        first = random.random(size) < 0.85
        chance = random.random(size)
        second = np.where(first, chance >= lost / 0.85, chance < won / 0.15)
        pair = [np.stack([right, np.ones(size)], axis=1).astype(float) for right in (first, second)]
        row = Quality.of(ACCURACY, pair[1]).against(Quality.of(ACCURACY, pair[0]))
        return not row.low <= won - lost <= row.high

    return Case("change of accuracy", f"{lost:.0%} of answers lost, {won:.0%} won", trial, sizes, promise)


def _few_changes(share: float, promise: float, sizes: tuple[int, ...]) -> Case:
    """Most texts lose nothing, and the others by a long tail; the true change is 0."""

    def trial(random: Random, size: int) -> bool:
        first = losses("normal")(random, size)
        second = first.copy()
        second[:, 0] += np.where(random.random(size) < share, EFFECTS["log-normal"](random, (size,)), 0.0)
        row = Quality.of(LOSS, second).against(Quality.of(LOSS, first))
        return not row.low <= 0 <= row.high

    return Case("change of loss", f"{share:.0%} of texts change, log-normal", trial, sizes, promise)


def _p_value(effects: str, level: float, heads: int, promise: float, sizes: tuple[int, ...]) -> Case:
    """Heads without an effect; an error is a p-value below the level, after Holm's correction."""

    def trial(random: Random, size: int) -> bool:
        effects_HN = EFFECTS[effects](random, (heads, size))
        reference = np.stack([np.zeros(size), np.ones(size)], axis=1)
        variants = np.stack([effects_HN, np.ones_like(effects_HN)], axis=-1)
        rows = LOSS.compare(reference, variants, resamples=resamples_for(heads, level))
        return bool(holm([row.p for row in rows]).min() < level)

    what = f"p below {level:g}" + (f" of any of {heads} heads (Holm)" if heads > 1 else "")
    return Case(what, f"effects {effects}", trial, sizes, promise, level)


def _syntactic(agreeing: float, promise: float, sizes: tuple[int, ...]) -> Case:
    """A head that is right 1.1 times as often as the best offset, .6; agreeing: as often where the offset is right."""

    def trial(random: Random, size: int) -> bool:
        by_offset = random.random(size) < 0.6
        right = random.random(size) < np.where(by_offset, agreeing, (0.66 - 0.6 * agreeing) / 0.4)
        sums = RatioSums.of(right[:, None, None], np.ones((size, 1, 1)))
        return bool(binomial_p(sums, 0, 1.1 * by_offset.mean(), offset=float(by_offset.mean()))[0] < 0.05)

    population = f"head at 1.1 times the best offset (.6), {agreeing:.0%} right where that is"
    return Case("p of a syntactic role below 0.05", population, trial, sizes, promise)


def _correlation(name: str, r: float, tail: bool, promise: float, sizes: tuple[int, ...]) -> Case:
    correlate = {"Pearson": pearson, "Spearman": spearman}[name]

    def pairs(random: Random, size: int) -> np.ndarray:
        both = random.multivariate_normal([0, 0], [[1, r], [r, 1]], size).T
        return np.exp(both) if tail else both

    @cache
    def truth() -> float:
        from scipy.stats import spearmanr

        x, y = pairs(np.random.default_rng(12345), _MANY)
        return float(np.corrcoef(x, y)[0, 1] if name == "Pearson" else spearmanr(x, y).statistic)

    def trial(random: Random, size: int) -> bool:
        row = correlate(*pairs(random, size))
        return not row.low <= truth() <= row.high

    population = f"r = {r:g} of {'log-normal' if tail else 'normal'} scores"
    return Case(f"{name}'s correlation", population, trial, sizes, promise)


def _layered(name: str, r: float, share: float, promise: float, sizes: tuple[int, ...]) -> Case:
    """Scores of which a share of the variance is that of the layer; heads and layers correlate equally."""
    correlate = {"Pearson": pearson, "Spearman": spearman}[name]
    truth = r if name == "Pearson" else float(6 / np.pi * np.arcsin(r / 2))

    def trial(random: Random, size: int) -> bool:
        layers = _layers_of(size)
        row = correlate(*layered(random, layers, r, share), groups=layers.tolist())
        return not row.low <= truth <= row.high

    return Case(f"{name}'s correlation", f"r = {r:g} of scores that are {share:.0%} the layer's", trial, sizes, promise)


def _shared_effect(heads: str, promise: float, sizes: tuple[int, ...]) -> Case:
    """What heads are worth on two data sets: the same long-tailed effect, and noise of each."""

    def pairs(random: Random, size: int) -> np.ndarray:
        worth, noise = WORTH[heads]
        return worth(random, size) + noise * random.normal(size=(2, size))

    @cache
    def truth() -> float:
        return float(np.corrcoef(pairs(np.random.default_rng(12345), _MANY))[0, 1])

    def trial(random: Random, size: int) -> bool:
        row = pearson(*pairs(random, size))
        return not row.low <= truth() <= row.high

    return Case("Pearson's correlation", f"effects that two data sets share: {heads}", trial, sizes, promise)


def _marked(marked: int, promise: float, sizes: tuple[int, ...]) -> Case:
    """Having a role, which is worth one standard deviation, against importance."""

    @cache
    def truth(size: int) -> float:
        from scipy.stats import spearmanr

        random, marks = np.random.default_rng(12345), np.arange(size) < marked
        return float(np.mean([spearmanr(marks, marks + random.normal(size=size)).statistic for _ in range(2000)]))

    def trial(random: Random, size: int) -> bool:
        marks = np.arange(size) < marked
        row = spearman(marks.astype(float), marks + random.normal(size=size))
        return not row.low <= truth(size) <= row.high

    return Case("Spearman's correlation", f"having a role ({marked} heads) and importance", trial, sizes, promise)


def _score(effects: str, promise: float, sizes: tuple[int, ...]) -> Case:
    def trial(random: Random, size: int) -> bool:
        values = EFFECTS[effects](random, (size,))
        away = values - values.mean()
        error = np.array([values.std(ddof=1) / size**0.5])
        low, high = mean_ends(np.array([values.mean()]), error, np.array([(away**3).mean() / size**2]), size)
        return not low[0] <= 0 <= high[0]

    return Case("mean score of a head", f"examples {effects}", trial, sizes, promise)


def _share(spread: float, slope: float, promise: float, sizes: tuple[int, ...]) -> Case:
    """Confidence of a head, or its share of hits, which changes with the length of a sentence."""

    def draw(random: Random, size: int) -> tuple[np.ndarray, np.ndarray]:
        length = np.ceil(20 * random.lognormal(sigma=spread, size=size))
        weight = np.clip(0.5 + slope * np.log(length / 20) + 0.08 * random.normal(size=size), 0.02, 1)
        return weight * length, length

    @cache
    def truth() -> float:
        above, below = draw(np.random.default_rng(12345), _MANY)
        return float(above.sum() / below.sum())

    @cache
    def counts(size: int) -> np.ndarray:
        return Resampling(1000).counts(range(size))

    def trial(random: Random, size: int) -> bool:
        above, below = draw(random, size)
        ends = percentile_interval((counts(size) @ above) / (counts(size) @ below), units=size)
        low, high = RatioSums.of(above, below).widen(*ends)
        return not low <= truth() <= high

    population = f"lengths of sentences log-normal, sd {spread:g}" + (", confidence falls with them" if slope else "")
    return Case("confidence of a head", population, trial, sizes, promise)


def _models(spread: str, examples: float, promise: float, sizes: tuple[int, ...]) -> Case:
    """Runs: size is the number of models; all are measured on the same examples."""

    def trial(random: Random, size: int) -> bool:
        shared = examples * random.normal()
        values = EFFECTS[spread](random, (size,)) + shared
        resampled = examples * random.normal(size=200)  # the same examples for all models
        drawn = [[value + resampled] for value in values]
        runs = over_runs([[value] for value in values], drawn, examples=100)
        return not runs.low <= 0 <= runs.high

    return Case("mean over models", f"models {spread}, examples {examples:g} of their sd", trial, sizes, promise)


def _bars_of_models(examples: float, promise: float, sizes: tuple[int, ...]) -> Case:
    """The same from intervals of models, as bars of figures have them."""

    def trial(random: Random, size: int) -> bool:
        values = random.normal(size=size) + examples * random.normal()
        half = NORMAL * examples
        return _left_out(over_models([Interval(value, value - half, value + half) for value in values]), 0)

    return Case("bar of several models", f"models normal, examples {examples:g} of their sd", trial, sizes, promise)


def _counts_of_models(promise: float, sizes: tuple[int, ...]) -> Case:
    """A share of 20 heads in each model."""

    def trial(random: Random, size: int) -> bool:
        return _left_out(t_interval(random.binomial(20, 0.4, size) / 20, grain=1 / 20), 0.4)

    return Case("mean share over models", "20 heads of each model, 40%", trial, sizes, promise)


def _groups(promise: float, sizes: tuple[int, ...]) -> Case:
    def trial(random: Random, size: int) -> bool:
        means = np.exp(0.5), np.exp(0.125)
        groups = random.lognormal(sigma=1, size=size // 3), random.lognormal(sigma=0.5, size=size)
        return _left_out(mean_difference(*groups, rounds=2000), means[0] - means[1])

    return Case("difference of two kinds of heads", "log-normal, sd 1 and .5, a third as many", trial, sizes, promise)


def _layers_of(heads: int) -> np.ndarray:
    """[heads]: the layer of each head of a model."""
    return np.repeat(np.arange(heads // LAYERS[heads]), LAYERS[heads])


def _roles_of_layers(share: float, promise: float, sizes: tuple[int, ...]) -> Case:
    """Heads with and without a role are worth the same; a share of roles and of importance is the layer's."""

    def trial(random: Random, size: int) -> bool:
        layers = _layers_of(size)
        marks, values = roles_and_importance(random, layers, share)
        order = [*layers[marks], *layers[~marks]]
        return _left_out(mean_difference(values[marks], values[~marks], layers=order, rounds=2000), 0.0)

    return Case("difference of two kinds of heads", f"role and worth {share:.0%} the layer's", trial, sizes, promise)


def _masking(models: int, promise: float, sizes: tuple[int, ...]) -> Case:
    """The same in several models; an error is a small p-value that heads with a role are worth more."""

    def trial(random: Random, size: int) -> bool:
        pairs = [roles_and_importance(random, _layers_of(size), 0.4) for _ in range(models)]
        marks, values = (np.concatenate(rows) for rows in zip(*pairs, strict=True))
        layers = np.concatenate([_layers_of(size) + model * size for model in range(models)])
        return permutation_of_groups(values, marks, layers, rounds=2000) < 0.05

    population = f"{models} models, role and worth 40% the layer's"
    return Case("p below 0.05 that a role is worth more", population, trial, sizes, promise)


def _share_of_heads(truth: float, share: float, promise: float, sizes: tuple[int, ...]) -> Case:
    """A true share of the heads has a property; a share of it is the layer's."""

    def trial(random: Random, size: int) -> bool:
        layers = _layers_of(size)
        having = layered(random, layers, 0.0, share)[0] < ndtri(truth)
        interval = share_in_groups(having.tolist(), layers.tolist())
        return interval.low > truth or interval.high < truth  # no interval decides nothing

    return Case("share of the heads of a model", f"{truth:.0%}, {share:.0%} the layer's", trial, sizes, promise)


def _within_layers(marked: tuple[int, ...], layer: int, promise: float) -> Case:
    """Heads with a role are worth 1 more than others of their layer; layers differ by as much."""
    layers = np.repeat(np.arange(len(marked)), layer)
    marks = np.concatenate([np.arange(layer) < count for count in marked])

    def trial(random: Random, size: int) -> bool:
        values = layers + marks + random.normal(size=size)
        return _left_out(difference_within(values, marks, layers, rounds=2000), 1.0)

    population = f"{', '.join(map(str, marked))} of {layer} heads of each layer have a role"
    return Case("difference of heads within layers", population, trial, (len(layers),), promise)


def _spread_within(promise: float, sizes: tuple[int, ...]) -> Case:
    """The same with one head of each layer that has a role, worth no more but three times as spread."""

    def trial(random: Random, size: int) -> bool:
        layers, values, marks = _one_spread_head(random, size)
        return _left_out(difference_within(values, marks, layers, rounds=2000), 0.0)

    return Case("difference of heads within layers", _SPREAD, trial, sizes, promise)


def _spread_masking(promise: float, sizes: tuple[int, ...]) -> Case:
    """The same; an error is a small p-value that heads with a role are worth more."""

    def trial(random: Random, size: int) -> bool:
        layers, values, marks = _one_spread_head(random, size)
        return permutation_of_groups(values, marks, layers, rounds=2000) < 0.05

    return Case("p below 0.05 that a role is worth more", _SPREAD, trial, sizes, promise)


_SPREAD = "one of 12 heads of each layer has a role, three times as spread"


def _one_spread_head(random: Random, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Layers of 12 heads, values around 0, and whether a head has a role."""
    marks = np.arange(size) % 12 == 0
    return np.arange(size) // 12, random.normal(size=size) * np.where(marks, 3.0, 1.0), marks


def _ratio(noise: float, promise: float, sizes: tuple[int, ...]) -> Case:
    """The share of what removal costs that compensation leaves: .6 of log-normal costs."""

    def trial(random: Random, size: int) -> bool:
        below = random.lognormal(size=size)
        above = 0.6 * below + noise * random.normal(size=size)
        return _left_out(ratio_interval(np.stack([above, below], axis=1), lambda sums: sums), 0.6)

    return Case("ratio of costs", f"log-normal, noise {noise:g}", trial, sizes, promise)


def _speed(promise: float, sizes: tuple[int, ...]) -> Case:
    def trial(random: Random, size: int) -> bool:
        return _left_out(median_interval(1.2 * np.exp(0.05 * random.normal(size=size))), 1.2)

    return Case("ratio of speeds", "repeats log-normal, sd .05", trial, sizes, promise)


def cases() -> Iterator[Case]:
    """All cases, in the order of the page."""
    few, usual, many = (10, 30, 100, 300), (30, 100, 300), (100, 300, 1000)
    for right in (0.6, 0.9, 0.98):
        yield _metric(ACCURACY, f"{right:.0%} right", answers(right), 0.05, (20, 100, 500))
    yield _metric(F1, "two classes, 10% and 90%, 90% right", classes((0.9, 0.1), 0.9), 0.06, (60, 200, 600))
    yield _metric(F1, "eight classes, Zipf, 80% right", classes(_zipf(8), 0.8), 0.07, (60, 200, 600))
    yield _metric(F1, "20 classes, Zipf, 80% right", classes(_zipf(20), 0.8), 0.07, (100, 300, 1000))
    yield _metric(F1, "77 classes alike, 80% right", classes((1 / 77,) * 77, 0.8), 0.07, (300, 1000))
    yield _metric(MATTHEWS, "two classes, 30% and 70%, 90% right", classes((0.7, 0.3), 0.9), 0.07, (60, 200, 600))
    for effects in EFFECTS:
        promise = {"normal": 0.06, "exponential": 0.07}.get(effects, 0.1)
        sizes = usual if effects == ONE_IN_TEN else few  # of ten examples, a third have none of one in ten
        yield _metric(LOSS, f"texts of one length, losses {effects}", losses(effects), promise, sizes)
    yield _metric(LOSS, "lengths log-normal, sd .5, loss falls with them", texts(0.5, -0.6), 0.07, usual)
    yield _metric(LOSS, "lengths log-normal, sd 1, loss falls with them", texts(1.0, -0.6), 0.1, usual)
    yield _metric(PERPLEXITY, "lengths log-normal, sd .5", texts(0.5, 0.0), 0.07, usual)
    yield _metric(BLEU, "one translation in ten has a mistake", translations(0.1, 0.0), 0.06, many)
    yield _metric(BLEU, "one in ten has a mistake, one in 100 no right word", translations(0.1, 0.01), 0.1, many)
    yield _tasks(57, 0.08, (2 * 57, 3 * 57, 5 * 57, 20 * 57))
    yield _changed_answers(0.05, 0.01, 0.06, (50, 200, 600))
    yield _changed_answers(0.2, 0.1, 0.06, (50, 200, 600))
    yield _paired(
        LOSS, "losses log-normal, others in each model", losses("log-normal"), losses("log-normal"), 0.07, few
    )
    yield _few_changes(0.05, 0.2, many)
    yield _few_changes(0.2, 0.18, many)
    yield _paired(BLEU, "mistakes in 10 and 15%", translations(0.1, 0.0), translations(0.15, 0.0), 0.07, many)
    for effects in EFFECTS:
        promise, sizes = {"log-normal": 0.1}.get(effects, 0.06), usual if effects == ONE_IN_TEN else few
        yield _p_value(effects, 0.05, 1, promise, sizes)
    for effects in EFFECTS:
        yield _p_value(effects, 0.01, 10, {"log-normal": 0.05, ONE_IN_TEN: 0.08}.get(effects, 0.02), (50, 200))
    for agreeing in (0.6, 0.8):
        yield _syntactic(agreeing, 0.06, (100, 300))
    for name in ("Pearson", "Spearman"):
        for r in (0.0, 0.5, 0.9):
            yield _correlation(name, r, tail=False, promise=0.07, sizes=(12, 20, 72))
        yield _correlation(name, 0.0, tail=True, promise=0.05, sizes=(12, 20, 72))
    for name, r, share in (
        ("Pearson", 0.0, 0.4),
        ("Spearman", 0.0, 0.4),
        ("Spearman", 0.0, 0.86),
        ("Spearman", 0.5, 0.4),
    ):
        yield _layered(name, r, share, 0.07, tuple(LAYERS))
    for heads, promise in zip(WORTH, (0.07, 0.16, 0.16), strict=True):
        yield _shared_effect(heads, promise, (20, 72))
    yield _marked(2, 0.05, (12, 72))
    yield _marked(4, 0.05, (12, 72))
    for effects in EFFECTS:
        promise, sizes = {"normal": 0.06, "exponential": 0.08}.get(effects, 0.1), (16, 32, 128)
        yield _score(effects, promise, sizes[1:] if effects == ONE_IN_TEN else sizes)
    yield _share(0.5, 0.0, 0.06, usual)
    yield _share(0.5, -0.12, 0.07, usual)
    yield _share(1.0, -0.12, 0.1, usual)
    for spread in ("normal", "exponential", "log-normal"):
        promise = {"normal": 0.06, "exponential": 0.1}.get(spread, 0.17)
        yield _models(spread, 0.1, promise, (3, 5, 8, 12))
    for examples in (0.1, 0.5, 2.0):
        yield _bars_of_models(examples, 0.06, (2, 3, 5, 8, 12))
    yield _counts_of_models(0.07, (2, 3, 5, 8))
    yield _groups(0.15, (24, 72, 144))
    for share in (0.0, 0.4):
        yield _roles_of_layers(share, 0.07, (36, 72, 144))
    yield _masking(5, 0.06, (12, 36, 72))
    for truth, share in ((0.5, 0.0), (0.5, 0.2), (0.5, 0.4), (0.9, 0.4), (0.9, 0.8)):
        yield _share_of_heads(truth, share, 0.06, (12, 36, 72, 144))
    yield _within_layers((10, 8, 4, 1, 0, 0), 12, 0.06)
    yield _within_layers((3, 2, 0), 4, 0.06)
    yield _spread_within(0.07, (72, 144))
    yield _spread_masking(0.07, (72, 144))
    yield _ratio(0.3, 0.07, usual)
    yield _ratio(1.0, 0.07, usual)
    yield _speed(0.05, (7, 15, 30))


def _zipf(count: int) -> tuple[float, ...]:
    shares = 1 / np.arange(1, count + 1)
    return tuple(float(share) for share in shares / shares.sum())
