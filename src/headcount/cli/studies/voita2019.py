"""headcount study voita2019: what Voita et al. 2019 measured."""

from headcount.cli.whole import whole

COMMAND = whole("voita2019", "The analysis of Voita et al. 2019 on a model and data of your own.")
