"""Statistics that every measurement shares. Pure functions of numpy arrays."""

from headcount.statistics.betting import Bets, anytime_interval
from headcount.statistics.bootstrap import (
    Comparison,
    Resampling,
    bootstrap_sums,
    paired_bootstrap,
    percentile_interval,
    resamples_for,
)
from headcount.statistics.correlation import Correlation, pearson, spearman, spearman_pairs
from headcount.statistics.interval import (
    Interval,
    bootstrap_interval,
    mean_difference,
    mean_interval,
    median_interval,
)
from headcount.statistics.runs import Runs, over_runs, t_interval
from headcount.statistics.significance import chance_of_overlap, holm, mcnemar, permutation_of_groups

__all__ = [
    "Bets",
    "Comparison",
    "Correlation",
    "Interval",
    "Resampling",
    "Runs",
    "anytime_interval",
    "bootstrap_interval",
    "bootstrap_sums",
    "chance_of_overlap",
    "holm",
    "mcnemar",
    "mean_difference",
    "mean_interval",
    "median_interval",
    "over_runs",
    "paired_bootstrap",
    "pearson",
    "percentile_interval",
    "permutation_of_groups",
    "resamples_for",
    "spearman",
    "spearman_pairs",
    "t_interval",
]
