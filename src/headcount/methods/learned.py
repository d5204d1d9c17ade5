"""Learned pruning, what l0 and subset share: gates learn while the model adapts, heads go, the rest is fine-tuned."""

from __future__ import annotations

import copy
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import nn

from headcount.errors import UsageError
from headcount.heads import HeadGrid
from headcount.methods.course import Course, Progress, learn, only_trained, random_rate, trainable, usual_rate
from headcount.methods.method import Pruned
from headcount.probes.gates import Gates, attached, exact_mask
from headcount.record import Record, Signature
from headcount.selection.budget import Budget
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.statistics import bootstrap_interval
from headcount.surgery.cost import cost
from headcount.surgery.fold_gates import check_foldable, fold_gates
from headcount.surgery.plan import check_removable
from headcount.surgery.remove import remove
from headcount.tasks.distilled import distilled
from headcount.tasks.overlap import measured_on
from headcount.tasks.task import Quality, Task
from headcount.training.log import Log
from headcount.training.loop import LOG
from headcount.training.partner import Partner
from headcount.training.recipe import Recipe
from headcount.training.transformer import forget

Budgets = Budget | Mapping[str, Budget]


@dataclass(frozen=True)
class Work:
    """What the methods that learn are told, whatever their gates."""

    course: Course
    kinds: Sequence[str] | None
    told: Mapping[str, Any]  # what the method itself was told
    weights: bool = True  # train them with the gates (joint), or the gates alone (pipelined)
    measure_on: Task | None = None
    folder: Path | None = None
    verify: bool = True
    inplace: bool = False
    length: int = 128
    save_seconds: float = 60.0
    progress: Progress = lambda *_: None

    @property
    def frozen_for(self) -> Sequence[str] | None:
        """A model that begins at random has to be trained as a whole."""
        return None if self.course.fresh else self.kinds


def prune_learned(
    model: nn.Module, task: Task, method: str, begin: Callable[[nn.Module], tuple[Gates, Partner]], work: Work
) -> Pruned:
    """From a model to a smaller one; `begin` makes the gates and what adapts them."""
    before, train = weight_hash(model), distilled(trainable(task), model, work.course.distill)
    live = model if work.inplace else copy.deepcopy(model)
    parts: dict[str, Any] = {"method": method, "quality": {"before": _quality(live, work)}}
    if work.measure_on is not None:
        parts["measured_on"] = measured_on([task], work.measure_on)
    whole = cost(live, length=work.length)
    if work.course.fresh:
        forget(live, seed=work.course.seed)
    gates, partner = begin(live)
    _check_removable(live, gates)
    with tempfile.TemporaryDirectory() if work.folder is None else nullcontext(str(work.folder)) as place:
        folder = Path(place)
        course, rate = work.course, work.course.rate or usual_rate(live, task)
        recipe = _first_recipe(model, course, rate, task)
        with only_trained(live, work.frozen_for, weights=work.weights) as trained, attached(live, gates, redraw=False):
            first = _learn(live, train, recipe, folder / "gates", work, partner, f"{method}, learning gates")
        mask, by_rank = exact_mask(gates, getattr(partner, "groups", ()) or getattr(gates, "groups", ()))
        parts |= _told(gates, partner, mask, by_rank, folder / "gates")
        fold_gates(live, gates)
        small = remove(live, mask, verify=work.verify, inplace=True)
        parts["quality"]["cut"] = _quality(small, work)
        second = _tuned(small, train, course, rate, folder / "tune", work)
    parts["quality"]["after"] = _quality(small, work) if course.tune else parts["quality"]["cut"]
    parts |= {
        "course": {**asdict(course), "trained": trained, "rate": rate, "gates": first, "tuning": second},
        "removed": [str(head) for head in mask.heads if not mask[head]],
        "heads": len(mask),
        "verified": work.verify,
        "cost": {"before": asdict(whole), "after": asdict(cost(small, length=work.length))},
        **work.told,
    }
    arguments = {"method": method, "kinds": list(work.kinds) if work.kinds else None, **asdict(course)}
    arguments |= {"joint": work.weights, **work.told}
    signature = Signature("", before, task.fingerprint, course.seed, arguments)
    return Pruned(small, mask, Record("prune", signature, parts))


def _check_removable(model: nn.Module, gates: Gates) -> None:
    """What cannot be removed is said before anything is trained."""
    gated = {head.site for head in gates.heads}
    for site in locate(model):
        if site.key in gated:
            check_removable(model, site)
    check_foldable(model, gates)


def _first_recipe(model: nn.Module, course: Course, rate: float, task: Task) -> Recipe:
    """Of the steps with gates; the rate falls there only if no fine-tuning follows."""
    told: dict[str, Any] = {"falls": not course.tune, "seed": course.seed}
    if course.fresh:
        return course.from_random(course.steps, course.rate or random_rate(model, task), warmup=course.warmup, **told)
    return course.recipe(course.steps, rate, **told)


def _learn(
    model: nn.Module, task: Any, recipe: Any, folder: Path, work: Work, partner: Partner | None, part: str
) -> dict[str, Any]:
    options: dict[str, Any] = {"save_seconds": work.save_seconds, "progress": work.progress, "judge": work.measure_on}
    done = learn(model, task, recipe, folder, partner=partner, part=part, **options)
    return {**done, "rate": recipe.rate, "warmup": recipe.warmup}  # without a rate: that of Vaswani et al. 2017


def _tuned(small: nn.Module, task: Any, course: Course, rate: float, folder: Path, work: Work) -> dict[str, Any]:
    if not course.tune:
        return {"steps": 0, "seconds": 0.0, "epochs": []}
    # other random numbers than the first part's, and another order of the data
    recipe = course.recipe(course.tune, rate, falls=True, seed=course.seed + 1_000_003)
    with only_trained(small, work.frozen_for):
        return _learn(small, task, recipe, folder, work, None, "fine-tuning")


def _told(gates: Gates, partner: Partner, mask: HeadGrid, by_rank: int, folder: Path) -> dict[str, Any]:
    """What the record says of the gates."""
    kept = [head for head in mask.kept if head in gates.heads]
    if not kept and any(mask.heads):
        warnings.warn(
            "Every gate has closed: no gated head is left. A smaller factor (lambda), fewer steps or a larger target "
            "(--keep) leaves some.",
            stacklevel=4,
        )
    lines = [line for line in Log(folder / LOG).lines() if "open" in line]
    names = ("step", "loss", "lambda", "temperature", "expected", "open", "settled")
    reached = getattr(partner, "reached", None)
    return {
        "gates": {
            "values": {str(head): value for head, value in gates.ranks().items()},
            "means": {str(head): value for head, value in gates.means().items()},
            "settled": gates.settled(),
            "reached": None
            if reached is None or not reached[0]
            else {"step": int(reached[0]), "settled": float(reached[1])},
            "cut_by_rank": by_rank,
            "trace": [{name: line[name] for name in names if name in line} for line in lines],
        },
        "kept": {
            kind: sum(head.kind == kind for head in mask.kept) for kind in dict.fromkeys(h.kind for h in mask.heads)
        },
        "kept_heads": [str(head) for head in mask.kept],
    }


def _quality(model: nn.Module, work: Work) -> dict[str, Any] | None:
    if work.measure_on is None:
        return None
    return described(work.measure_on.quality(model))


def described(quality: Quality) -> dict[str, Any]:
    """A quality with its interval, and what each example adds to it: for paired comparisons later."""
    interval = bootstrap_interval(quality.statistics, quality.metric.of_sums)
    return {
        "metric": quality.metric.name,
        **dict(zip(("value", "low", "high"), interval, strict=True)),
        "statistics": quality.statistics.tolist(),
    }


def counts(model: nn.Module, budget: Budgets | None, kinds: Sequence[str] | None) -> int | dict[str, int] | None:
    """A budget as numbers of heads: one for all gated heads, or one for each kind."""
    if budget is None:
        return None
    heads = locate(model).heads
    if isinstance(budget, Budget):
        return budget.of(sum(kinds is None or head.kind in kinds for head in heads))
    return {kind: part.of(sum(head.kind == kind for head in heads)) for kind, part in budget.items()}


def kinds_of(model: nn.Module, budget: Budgets | None, kinds: Sequence[str] | None) -> Sequence[str] | None:
    """The kinds that may lose heads: those of the budgets where there is one for each."""
    known = locate(model).kinds
    if isinstance(kinds, str):
        raise UsageError(f"kinds is a list of attention kinds, such as ({kinds!r},); got the text {kinds!r}.")
    if isinstance(budget, Mapping):
        if kinds is not None and set(kinds) != set(budget):
            raise UsageError(f"Budgets are given for {', '.join(budget)}, kinds are {', '.join(kinds)}: give one.")
        kinds = tuple(budget)
    unknown = [kind for kind in kinds or () if kind not in known]
    if unknown:
        raise UsageError(f"The model has no {', '.join(unknown)} heads; it has {', '.join(known)}.")
    return kinds
