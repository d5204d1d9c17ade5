"""From scores to a mask: budgets and rules, pure functions."""
