"""Statistics that every measurement shares. Pure functions of numpy arrays."""

from headcount.statistics.betting import Bets as Bets
from headcount.statistics.betting import anytime_interval as anytime_interval
from headcount.statistics.bootstrap import Comparison as Comparison
from headcount.statistics.bootstrap import Resampling as Resampling
from headcount.statistics.bootstrap import bootstrap_sums as bootstrap_sums
from headcount.statistics.bootstrap import paired_bootstrap as paired_bootstrap
from headcount.statistics.bootstrap import percentile_interval as percentile_interval
from headcount.statistics.bootstrap import resamples_for as resamples_for
from headcount.statistics.correlation import Correlation as Correlation
from headcount.statistics.correlation import pearson as pearson
from headcount.statistics.correlation import spearman as spearman
from headcount.statistics.correlation import spearman_pairs as spearman_pairs
from headcount.statistics.interval import Interval as Interval
from headcount.statistics.interval import bootstrap_interval as bootstrap_interval
from headcount.statistics.interval import half_width as half_width
from headcount.statistics.interval import mean_difference as mean_difference
from headcount.statistics.interval import mean_interval as mean_interval
from headcount.statistics.interval import median_interval as median_interval
from headcount.statistics.runs import Runs as Runs
from headcount.statistics.runs import over_runs as over_runs
from headcount.statistics.runs import t_interval as t_interval
from headcount.statistics.significance import chance_of_overlap as chance_of_overlap
from headcount.statistics.significance import examples_for as examples_for
from headcount.statistics.significance import holm as holm
from headcount.statistics.significance import mcnemar as mcnemar
from headcount.statistics.significance import permutation_of_groups as permutation_of_groups
