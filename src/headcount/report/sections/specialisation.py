"""Whether specialised heads do the work and survive pruning, over several models."""

from __future__ import annotations

from math import isnan

from headcount.plural import plural
from headcount.record import Record
from headcount.record.results.specialisation import CostOfMasking, Specialisation
from headcount.report.section import Labelled, Printed, Section, table_of
from headcount.report.table import Column, Rows, Table, headings, interval
from headcount.statistics import Interval


def _answer(record: Record[Specialisation]) -> str:
    survival, masking = record.parts.survival, record.parts.masking
    models = plural(len(record.parts.models), "model")
    if not survival.num_heads:
        return f"No head of {models} has a role of the paper (positional, syntactic, rare) for certain."
    sentence = (
        f"In {models} {survival.num_heads} heads have a role of the paper. Gates keep {survival.survivors} of "
        f"them; a random choice of as many heads in each layer would keep {survival.expected:.1f} "
        f"(p = {_p(survival.p)}, {_only(len(record.parts.models))})."
    )
    return f"{sentence} {_masked(masking, masking.difference)}" if masking.difference else sentence


def _only(models: int) -> str:
    return "for these models only" if models > 1 else "for this model only"


def _masked(masking: CostOfMasking, difference: Interval) -> str:
    """The costs with their difference over models and examples, and the test within these models.

    The test takes the models as given: where what a role costs is 0 on average, but varies between models by .3 to 1
    standard deviations of a layer's heads, 11 to 16% of p-values of three and five models are below .05.
    """
    means = (masking.mean_with_role, masking.mean_without_role, difference.value)
    with_role, without_role, more = map(Column("", 3).text, means)
    models = masking.num_models
    units = f"{models} models and their examples" if models > 1 else "its examples"
    over = "" if isnan(difference.low) else f" (95% {interval(difference, 3)} over {units})"
    test = "no layer has heads with and without a role"
    if not isnan(masking.p):
        test = f"p = {_p(masking.p)}, among the heads of a layer, {_only(models)}"
    return (
        f"Masking one of them alone costs {with_role} nats a token, masking another head {without_role}: a difference "
        f"of {more}{over}; {test}."
    )


def _p(value: float) -> str:
    return f"{value:.1g}" if value < 0.001 else f"{value:.3f}"


def _tables(labelled: Labelled) -> list[Table]:
    models = headings(
        "trained model", Column("quality", 2), "95% interval", Column("without the heads", 2), Column("pruned", 2),
        "lost by pruning", "heads with a role", "kept of them",
    )  # fmt: skip
    best = headings(
        "trained model", "role", "head", Column("value", 2), "95% interval", Column("baseline", 2),
        Column("threshold", 2), Column("confidence", 2), "has the role",
    )  # fmt: skip
    survival = headings("role", "heads", "kept", Column("kept by chance", 2), Column("p", 4))
    lost = "Lost: difference to the whole model with its 95% interval over examples."
    caption = "The best head of each role, chosen and measured on different sentences."
    chance = (
        "By chance: as many heads in each layer of each model, exactly. p is for these models only: if gates keep "
        "heads with a role in some models and others in other models, it is too small for further ones."
    )
    return [
        table_of("Models", labelled, models, _model_rows, note=lost),
        table_of("Best heads", labelled, best, _best_rows, note=caption),
        table_of("Survival", labelled, survival, _survival_rows, note=chance),
    ]


def _model_rows(record: Record[Specialisation]) -> Rows:
    return [
        [
            name, model.unpruned.value, interval(model.unpruned, 2), model.without.value,
            model.pruned.value,
            f"{model.pruned.lost.difference:+.2f} ({interval(model.pruned.lost, 2)})",
            len(model.with_role), sum(head.survives for head in model.with_role),
        ]
        for name, model in record.parts.models.items()
    ]  # fmt: skip


def _best_rows(record: Record[Specialisation]) -> Rows:
    return [
        [
            name, f"{row.role} {row.label}", row.head, row.value, interval(row, 2), row.baseline,
            row.threshold, row.head_confidence, row.has_role,
        ]
        for name, model in record.parts.models.items()
        for row in model.best_of_roles
        if row.role != "positional" or row.label in ("-1", "+1")
    ]  # fmt: skip


def _survival_rows(record: Record[Specialisation]) -> Rows:
    by_role = {"any role of the paper": record.parts.survival, **record.parts.survival_by_role}
    return [[role, row.num_heads, row.survivors, row.expected, row.p] for role, row in by_role.items()]


def _printed(record: Record[Specialisation]) -> list[Printed]:
    survival = record.parts.survival
    share = f"{survival.survivors} of {survival.num_heads}" if survival.num_heads else None
    return [Printed("heads with a role that are kept", "the last to be pruned", share)]


SECTION = Section(
    order=5,
    title="Specialised heads",
    question="Do specialised heads do the work, and do they survive pruning?",
    studies=("specialisation",),
    parts=("survival",),
    command="headcount study specialisation MODEL... --task translation --data DATA --out DIR",
    answer=_answer,
    method=(
        "A head has a role of the paper (positional, syntactic, rare) if the lower end of its interval clears the "
        "role's threshold. Each head is masked alone and the loss compared. Gates prune to a third of the heads. "
        "Survival: exact test against a random choice of as many heads in each layer; cost: permutation of roles "
        "within each layer of each model, with a p no less than that of a t-test over these layers. Roles, "
        "costs and quality are measured on a split that nothing was trained or chosen on."
    ),
    tables=_tables,
    printed=_printed,
)
