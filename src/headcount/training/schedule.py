"""The learning rate of Vaswani et al. 2017: linear warm-up, then falling with the square root of the step.

If a recipe gives a rate, it is constant after warm-up.
"""

from __future__ import annotations

from headcount.training.recipe import Recipe


def learning_rate(step: int, width: int, recipe: Recipe) -> float:
    """factor * width^-0.5 * min(step^-0.5, step * warmup^-1.5); steps from 1.

    Over the last `cooldown` steps it also falls linearly to zero, which improves short runs much.
    """
    if recipe.rate is not None:
        rate = recipe.rate * min(1.0, step / recipe.warmup)
    else:
        rate = recipe.factor * width**-0.5 * min(step**-0.5, step * recipe.warmup**-1.5)
    if recipe.cooldown and recipe.steps is not None:
        rate *= min(1.0, (recipe.steps - step + 1) / (recipe.cooldown + 1))
    return rate
