"""headcount study all: the experiments of both papers."""

from headcount.cli.whole import whole

COMMAND = whole("all", "The experiments of both papers on a model and data of your own.")
