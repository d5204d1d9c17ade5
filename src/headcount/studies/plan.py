"""Plan: the points of a trade-off, and the pipeline of each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headcount.errors import UsageError
from headcount.pruning.pipeline import Data as Data
from headcount.pruning.pipeline import Pipeline
from headcount.pruning.tuning import AFTER_GATES, Tuning
from headcount.pruning.way import SCRATCH, Way


@dataclass(frozen=True)
class Arm:
    """One point to be measured: a way, a number of heads to keep and a seed."""

    way: Way
    keep: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.way.file}-{self.keep}-{self.seed}"


@dataclass(frozen=True)
class Plan:
    """The points to measure: each way with each number of remaining heads, for each seed."""

    keep: tuple[int, ...]
    ways: tuple[str, ...] = ("l0", "subset", "rank-gradient", "random", "scratch")
    kinds: tuple[str, ...] | None = None
    seeds: tuple[int, ...] = (0,)
    gate_steps: int = 150  # of ways with gates
    tuning: Tuning = AFTER_GATES  # after gates; other ways that train get the steps of both
    scratch_steps: int = 3200  # of the models trained from random weights, with the heads of `donor`
    against: str = "rank-gradient"  # the way that others are compared with
    distill: float = 0.5  # weight of the distillation loss, for ways with /distilled

    def __post_init__(self) -> None:
        if not self.keep or not self.ways or not self.seeds:
            raise UsageError("A trade-off needs at least one number of heads, one way of pruning and one seed.")
        object.__setattr__(self, "ways", tuple(Way.parse(name).name for name in self.ways))
        object.__setattr__(self, "against", Way.parse(self.against).name)
        for what in ("keep", "ways", "seeds"):
            values = getattr(self, what)
            if len(set(values)) < len(values):
                raise UsageError(f"{what} repeats a value: {', '.join(map(str, values))}. Give each value once.")
        if self.tuning.distill:
            raise UsageError(
                "tuning.distill must be 0 in a trade-off: set the plan's distill, used by ways with /distilled."
            )
        if not 0 < self.distill <= 1:
            raise UsageError(
                f"distill (weight of the distillation loss) must be above 0 and at most 1; got {self.distill}."
            )
        if min(self.keep) < 1:
            raise UsageError(f"keep must be at least 1 head; got {min(self.keep)}.")

    def check_control(self, gated: int) -> None:
        """Check that the reference way tunes: with all heads kept it is the control of tuning alone."""
        way = Way.parse(self.against)
        if self.against not in self.ways or not way.tuned or way.distilled or way.learned or way.scratch:
            raise UsageError(
                f"Keeping all {gated} heads measures fine-tuning alone, with the way that others are compared with: "
                f"{self.against}. It must be one of the ways, and one that ranks heads and fine-tunes without a "
                "teacher, such as rank-gradient."
            )

    def arms(self, gated: int) -> list[Arm]:
        """All points, seed by seed, those that depend on others last. Deterministic ways have only the first seed.

        gated: number of heads that may be removed. If all are kept, one way measures tuning alone.
        """
        ways = sorted(map(Way.parse, self.ways), key=lambda way: way.scratch)
        return [
            Arm(way, keep, seed)
            for seed in self.seeds
            for keep in self.keep
            for way in ways
            if (not way.steady or seed == self.seeds[0]) and (keep < gated or way.name == self.against)
        ]

    @property
    def steps(self) -> int:
        """Number of steps of every way that trains."""
        return self.gate_steps + (self.tuning.steps or 0)

    def pipeline(self, arm: Arm) -> Pipeline:
        """The pipeline of a point; models from scratch have the heads of another point."""
        way = arm.way
        tuning = replace(self.tuning, distill=self.distill if way.distilled else 0.0)
        if way.learned:
            return way.pipeline(arm.keep, tuning, kinds=self.kinds, seed=arm.seed, steps=self.gate_steps)
        return way.pipeline(arm.keep, replace(tuning, steps=self.steps), kinds=self.kinds, seed=arm.seed)

    @property
    def scratch_tuning(self) -> Tuning:
        """Settings of ordinary training, with its own rate and warm-up."""
        return replace(self.tuning, steps=self.scratch_steps, tuner=SCRATCH, rate=None, warmup=None)

    @property
    def trains(self) -> bool:
        """Whether any way trains weights."""
        return any(way.tuned or way.learned for way in map(Way.parse, self.ways))

    @property
    def distilled(self) -> bool:
        """Whether any way has a teacher."""
        return any(Way.parse(name).distilled for name in self.ways)

    @property
    def donor_way(self) -> Way:
        """The way whose heads a model from scratch has: l0 if listed, else the first, else l0."""
        ways = [way for way in map(Way.parse, self.ways) if not way.scratch]
        learned = [way for way in ways if way.chooser is not None and way.chooser.name == "l0"]
        return min(learned, key=lambda way: way.distilled) if learned else ways[0] if ways else Way.parse("l0")

    def donor(self, arm: Arm) -> Arm:
        """The point whose heads a model from scratch has."""
        way = self.donor_way
        return Arm(way, arm.keep, self.seeds[0] if way.steady else arm.seed)
