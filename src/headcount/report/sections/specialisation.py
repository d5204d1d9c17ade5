"""Whether specialised heads do the work and survive pruning, over several models."""

from __future__ import annotations

from typing import Any

from headcount.record import Record
from headcount.report.section import Labelled, Printed, Section, told
from headcount.report.table import Column, Table, interval


def _answer(record: Record) -> str:
    survival, cost = record.parts["survival"], record.parts["cost"]
    models = record.parts["counts"]["models"]
    if not survival["heads"]:
        return f"No head of {_models(models)} has a role of the paper."
    sentence = (
        f"In {_models(models)} {survival['heads']} heads have a role of the paper. Gates keep {survival['kept']} of "
        f"them; a random choice of as many heads in each layer would keep {survival['expected']:.1f} "
        f"(p = {_p(survival['p'])})."
    )
    if cost["difference"]:
        sentence += (
            f" Masking one of them alone costs {cost['with_role']:.3f} nats a token, masking another head "
            f"{cost['without_role']:.3f} (p = {_p(cost['p'])})."
        )
    return sentence


def _models(count: int) -> str:
    return "1 model" if count == 1 else f"{count} models"


def _p(value: float) -> str:
    return f"{value:.1g}" if value < 0.001 else f"{value:.3f}"


def _tables(labelled: Labelled) -> list[Table]:
    columns = [
        Column("trained model"), Column("quality", 2), Column("95% interval"), Column("without the heads", 2),
        Column("pruned", 2), Column("lost by pruning"), Column("heads with a role"), Column("kept of them"),
    ]  # fmt: skip
    shown, rows = told(labelled, _model_rows, columns)
    tables = [Table("Models", shown, rows, "Lost: difference to the whole model with its 95% interval over examples.")]
    columns = [
        Column("trained model"), Column("role"), Column("head"), Column("value", 2), Column("95% interval"),
        Column("baseline", 2), Column("threshold", 2), Column("confidence", 2), Column("has the role"),
    ]  # fmt: skip
    shown, rows = told(labelled, _best_rows, columns)
    note = "The best head of each role, chosen on other sentences than it is measured on."
    tables.append(Table("Best heads", shown, rows, note))
    columns = [Column("role"), Column("heads"), Column("kept"), Column("kept by chance", 2), Column("p", 4)]
    shown, rows = told(labelled, _survival_rows, columns)
    tables.append(Table("Survival", shown, rows, "By chance: as many heads in each layer of each model, exactly."))
    return tables


def _model_rows(record: Record) -> list[list[Any]]:
    rows = []
    for name, model in record.parts["models"].items():
        marked = [head for head in model["heads"].values() if head["roles"]]
        lost = model["pruned"]["lost"]
        rows.append(
            [
                name, model["quality"]["value"], interval(model["quality"]["low"], model["quality"]["high"], 2),
                model["without"]["value"], model["pruned"]["after"]["value"],
                f"{lost['difference']:+.2f} ({interval(lost['low'], lost['high'], 2)})",
                len(marked), sum(head["kept"] for head in marked),
            ]
        )  # fmt: skip
    return rows


def _best_rows(record: Record) -> list[list[Any]]:
    rows = []
    for name, model in record.parts["models"].items():
        for row in model["best"]:
            if row["role"] == "positional" and row["label"] not in ("-1", "+1"):
                continue
            rows.append(
                [
                    name, f"{row['role']} {row['label']}", row["head"], row["value"],
                    interval(row["low"], row["high"], 2), row["baseline"], row["threshold"], row["confidence"],
                    row["has_role"],
                ]
            )  # fmt: skip
    return rows


def _survival_rows(record: Record) -> list[list[Any]]:
    survival = record.parts["survival"]
    every = {"any role of the paper": survival, **survival["by_role"]}
    return [[role, row["heads"], row["kept"], row["expected"], row["p"]] for role, row in every.items()]


def _printed(record: Record) -> list[Printed]:
    survival = record.parts["survival"]
    share = f"{survival['kept']} of {survival['heads']}" if survival["heads"] else None
    return [Printed("heads with a role that are kept", "the last to be pruned", share)]


SECTION = Section(
    order=5,
    title="Specialised heads",
    question="Do specialised heads do the work, and do they survive pruning?",
    studies=("specialisation",),
    parts=("survival", "cost", "models"),
    command="headcount study specialisation MODEL... --task translation --data DATA --out DIR",
    answer=_answer,
    how=(
        "A head has a role of the paper (positional, syntactic, rare) if the lower end of its interval clears the "
        "role's threshold. Each head is masked alone and the loss compared. Gates prune to a third of the heads. "
        "Survival: exact test against a random choice of as many heads in each layer; cost: permutation of roles "
        "within each model. Roles, costs and quality are measured on a split that nothing was trained or chosen on."
    ),
    tables=_tables,
    printed=_printed,
)
