"""Recipe: all settings of training, as plain numbers that are saved with the model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headcount.errors import UsageError

WATCHED = ("loss", "bleu", "accuracy", "f1", "matthews")


@dataclass(frozen=True)
class Recipe:
    """Settings of training. The same recipe, data and initial weights give the same model, interrupted or not."""

    batch: int = 16_000  # source tokens of a step, over all processes
    chunk: int = 4_000  # padded source tokens run through the model at once
    factor: float = 1.0  # of the learning rate of Vaswani et al. 2017
    rate: float | None = None  # or a constant rate after warm-up, for trained models
    warmup: int = 4_000  # steps
    cooldown: int = 0  # last steps, over which the learning rate falls to zero; needs `steps`
    steps: int | None = None  # stop after this many
    epochs: int | None = None  # or after this many passes over the data
    patience: int = 0  # stop after this many epochs without improvement; 0: never
    watch: str = "loss"  # what makes an epoch better on the development data
    average: int = 5  # number of last epochs to average, if that is better than the best one
    smoothing: float = 0.1  # of the labels
    clip: float = 0.0  # largest norm of the gradient; 0: any
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-9
    seed: int = 0

    def with_steps(self, steps: int) -> Recipe:
        """The same recipe for another number of steps, with the same shares of warm-up and cooldown and peak rate.

        The peak of Vaswani et al. 2017 is at the end of warm-up and depends on it: a warm-up a quarter as long would
        double the rate, with which post-norm models diverge.
        """
        if self.steps is None:
            return replace(self, steps=steps)
        scale = steps / self.steps
        warmup = max(1, round(scale * self.warmup))
        return replace(
            self, steps=steps, warmup=warmup, cooldown=round(scale * self.cooldown),
            factor=self.factor * (warmup / self.warmup) ** 0.5,
        )  # fmt: skip

    def learning_rate(self, step: int, width: int) -> float:
        """The rate of a step, from 1, for a model of this width; that of Vaswani et al. 2017 unless `rate` is given:

        factor * width^-0.5 * min(step^-0.5, step * warmup^-1.5): linear warm-up, then falling with the square root.
        Over the last `cooldown` steps it also falls linearly to zero, which improves short runs much.
        """
        if self.rate is not None:
            rate = self.rate * min(1.0, step / self.warmup)
        else:
            rate = self.factor * width**-0.5 * min(step**-0.5, step * self.warmup**-1.5)
        if self.cooldown and self.steps is not None:
            rate *= min(1.0, (self.steps - step + 1) / (self.cooldown + 1))
        return rate

    def __post_init__(self) -> None:
        if self.steps is None and self.epochs is None and not self.patience:
            raise UsageError("Training has no stopping criterion: give steps, epochs or patience.")
        positive = {"batch": self.batch, "chunk": self.chunk, "warmup": self.warmup, "average": self.average}
        positive |= {name: value for name in ("steps", "epochs") if (value := getattr(self, name)) is not None}
        for name, value in positive.items():
            if value < 1:
                raise UsageError(f"{name} must be at least 1; got {value}.")
        if self.factor <= 0 or not 0 <= self.smoothing < 1:
            raise UsageError(
                f"factor must be above 0 and smoothing from 0 to below 1; got {self.factor}, {self.smoothing}."
            )
        if self.rate is not None and self.rate <= 0:
            raise UsageError(f"rate (learning rate) must be above 0; got {self.rate}.")
        if self.cooldown < 0 or (self.cooldown and (self.steps is None or self.cooldown > self.steps)):
            raise UsageError(f"cooldown must be from 0 to steps; got cooldown {self.cooldown}, steps {self.steps}.")
        if self.watch not in WATCHED:
            raise UsageError(f"watch must be one of {', '.join(WATCHED)}; got {self.watch!r}.")
