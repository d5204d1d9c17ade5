"""headcount study michel2019: every experiment of Michel et al. 2019."""

from headcount.cli.whole import whole

COMMAND = whole("michel2019", "Every experiment of Michel et al. 2019 on a model and data of your own.")
