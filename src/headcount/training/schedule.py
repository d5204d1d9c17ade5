"""The learning rate of Vaswani et al. 2017: linear warm-up, then falling with the square root of the step.

Or, where a recipe gives the rate itself, held after warm-up.
"""

from __future__ import annotations

from headcount.training.recipe import Recipe


def learning_rate(step: int, width: int, recipe: Recipe) -> float:
    """factor * width^-0.5 * min(step^-0.5, step * warmup^-1.5); steps from 1.

    Over the last `cooldown` steps it is brought down to zero in a straight line besides: short runs end far better.
    """
    if recipe.rate is not None:
        rate = recipe.rate * min(1.0, step / recipe.warmup)
    else:
        rate = recipe.factor * width**-0.5 * min(step**-0.5, step * recipe.warmup**-1.5)
    if recipe.cooldown and recipe.steps is not None:
        rate *= min(1.0, (recipe.steps - step + 1) / (recipe.cooldown + 1))
    return rate
