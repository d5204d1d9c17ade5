"""Selection of heads: from scores and budgets to a mask, as pure functions."""
