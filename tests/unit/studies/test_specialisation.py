"""specialisation: planted truths in both directions, and the statistics against enumeration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import headcount as hc
import laboratory
import zoo
from headcount.corpora.grammar.corpus import Grammar
from headcount.corpora.sentences import Sentences
from headcount.errors import UsageError
from headcount.metrics import ACCURACY, LOSS
from headcount.pruning.tuning import Tuning
from headcount.record import Record, Signature
from headcount.record.codec import decode
from headcount.record.result import MeasuredOn
from headcount.record.results.specialisation import BestOfRole, HeadRow, ModelRow, SmallerModel
from headcount.report.sections.specialisation import SECTION
from headcount.statistics import Comparison, Interval, chance_of_overlap, mean_interval, permutation_of_groups
from headcount.studies import specialisation as module
from headcount.studies.kept import Looking
from headcount.studies.plan import Data
from headcount.studies.specialisation import Costs, ModelWithData, SpecialisationPlan, pooled, specialisation
from headcount.tasks.translation import Translation
from records import MEASURED_ON, evidence
from tokens import word_tokenizer

MEASURED = decode(MeasuredOn, MEASURED_ON, source="the sample")


def model(costs: list[float], roles: list[int], kept: list[int]) -> ModelRow:
    """Two layers of four heads; roles, kept: numbers of heads from 0 to 7."""
    by_head = {
        f"encoder.{number // 4}.{number % 4}": HeadRow(
            role_names=("positional",) if number in roles else (),
            labels=(),
            head_confidence=0.9,
            at_neighbour=0.9 if number in roles else 0.01 * number,
            loss_added=costs[number],
            survives=number in kept,
        )
        for number in range(8)
    }
    smaller = SmallerModel(2, 29.0, Comparison(-1.0, -2.0, 0.0, 0.1))
    best = BestOfRole(
        **evidence("positional", "-1", 0.9), head="encoder.0.0", head_confidence=0.9, has_role=bool(roles)
    )
    return ModelRow("a1", MEASURED, "BLEU", Interval(30.0, 29.0, 31.0), smaller, smaller, (best,), by_head)


def several(*models: ModelRow) -> dict[str, ModelRow]:
    return {str(number): row for number, row in enumerate(models)}


def test_specialised_heads_that_survive() -> None:
    models = [model([1.0, 0, 0, 0, 2.0, 0.1, 0, 0], [0, 4], [0, 4]) for _ in range(4)]
    parts = pooled(several(*models))
    assert parts.survival.survivors == parts.survival.num_heads == 8
    assert parts.survival.expected == pytest.approx(8 * 0.25)
    assert parts.survival.p == pytest.approx(0.25**8)
    assert parts.masking.p < 0.001
    assert parts.masking.mean_with_role == pytest.approx(1.5)
    assert parts.mean_neighbour_correlation is not None
    assert parts.mean_neighbour_correlation.value > 0.5
    assert parts.models_with_label == {"positional -1": 4}


def test_specialised_heads_that_do_not_matter() -> None:
    models = [model([0.0, 1, 1, 1, 0.0, 1, 1, 1], [0, 4], [1, 5]) for _ in range(4)]
    parts = pooled(several(*models))
    assert parts.survival.survivors == 0
    assert parts.survival.p == pytest.approx(1.0)
    assert parts.masking.p > 0.9


def test_a_model_without_roles_says_nothing() -> None:
    parts = pooled(several(model([0.1] * 8, [], [0, 4])))
    assert parts.survival.num_heads == 0
    assert parts.masking.difference is None
    assert np.isnan(parts.masking.p)


def test_models_without_roles_have_no_part_in_the_costs() -> None:
    """Heads with a role cost .5 more in the one model that has some; over both models they seemed to cost .25 less."""
    rows = [model([1.0, 0.5, 0.5, 0.5, 1.0, 0.5, 0.5, 0.5], [0, 4], [0]), model([2.0] * 8, [], [0])]
    masking = pooled(several(*rows)).masking
    assert (masking.mean_with_role, masking.mean_without_role) == pytest.approx((1.0, 0.5))
    assert masking.num_models == 1


def test_the_cost_is_said_with_its_interval_over_models() -> None:
    def answer(*rows: ModelRow) -> str:
        return SECTION.answer(Record("specialisation", Signature("m"), pooled(several(*rows)))).replace("\u2212", "-")

    rows = [model([cost, 0, 0, 0, cost, 0.0, 0, 0], [0, 4], [0]) for cost in (-0.1, 0.2, 0.2, 0.3)]
    half = 3.1824 * np.std([-0.1, 0.2, 0.2, 0.3], ddof=1) / 2
    assert f"0.150 (95% {0.15 - half:.3f} to {0.15 + half:.3f} over 4 models and their examples); p = " in answer(*rows)
    assert "among the heads of a layer, for these models only." in answer(*rows)
    assert ", for these models only)." in answer(*rows)
    assert "over " not in answer(rows[1])
    assert "among the heads of a layer, for this model only." in answer(rows[1])
    apart = answer(model([0.3] * 4 + [0.1] * 4, [0, 1, 2, 3], [0]))
    assert "no layer has heads with and without a role" in apart
    assert "nan" not in apart


def test_examples_that_models_share_are_in_the_interval_of_the_cost() -> None:
    rows = [model([cost, 0, 0, 0, cost, 0.0, 0, 0], [0, 4], [0]) for cost in (0.1, 0.2, 0.3)]
    own = [Interval(cost, cost - 0.2, cost + 0.2) for cost in (0.1, 0.2, 0.3)]
    measured = [replace(row, more_with_role=interval) for row, interval in zip(rows, own, strict=True)]
    alone, both = (pooled(several(*models)).masking.difference for models in (rows, measured))
    assert alone is not None
    assert both is not None
    assert both.high - 0.2 == pytest.approx(np.hypot(alone.high - 0.2, 0.2))
    assert pooled(several(measured[0])).masking.difference == measured[0].more_with_role


def test_the_cost_of_a_role_is_a_loop_over_masked_heads_and_its_interval_covers_the_texts() -> None:
    gpt = zoo.build("gpt2").eval()
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(["a", "bird", "sees", "the", "moon"], 3 + number % 7)) for number in range(40)]
    task = hc.task("language-modelling", texts=texts, tokenizer=word_tokenizer())
    heads = list(hc.locate(gpt).heads)
    with_role = [number % 3 == 0 for number in range(len(heads))]
    costs = Costs.of(gpt, task, heads)
    whole, tokens = task.quality(gpt).statistics.T
    added = []
    for head in heads:
        with hc.masked(gpt, hc.locate(gpt).mask(off=[str(head)])):
            added.append(task.quality(gpt).statistics[:, 0] - whole)
    assert costs.of_heads() == pytest.approx([part.sum() / tokens.sum() for part in added], abs=1e-7)
    more = np.mean([part for part, has in zip(added, with_role, strict=True) if has], axis=0) - np.mean(
        [part for part, has in zip(added, with_role, strict=True) if not has], axis=0
    )
    difference = costs.difference(with_role)
    assert difference is not None
    assert difference.value == pytest.approx(more.sum() / tokens.sum(), abs=1e-7)
    drawn = random.integers(len(texts), size=(4000, len(texts)))
    ratios = more[drawn].sum(1) / tokens[drawn].sum(1)
    assert difference.deviation == pytest.approx(ratios.std(), rel=0.15)
    assert costs.difference([True] * len(heads)) is None


def test_a_layer_that_costs_more_does_not_make_its_roles_cost_more() -> None:
    """Masking any head of the first layer costs .3, and most of its heads have a role: roles themselves cost nothing.

    With roles dealt over whole models, p was .02.
    """
    rows = [model([0.3, 0.31, 0.32, 0.31, 0.1, 0.11, 0.12, 0.11], [0, 1, 2, 4], [0]) for _ in range(3)]
    assert pooled(several(*rows)).masking.p > 0.2


def test_held_out_are_texts_that_no_model_has_seen() -> None:
    """The sentence of the report and the verdicts are about all models, in whatever order they are given."""
    unknown = replace(MEASURED, overlap=None, held_out=None)
    some, all_of_them = (replace(MEASURED, examples=10, overlap=seen, held_out=False) for seen in (1, 10))
    in_doubt = [MEASURED, unknown, some, all_of_them]
    for count in range(1, 5):
        rows = [replace(model([0.1] * 8, [0], [0]), measured_on=each) for each in in_doubt[:count]]
        for order in (rows, rows[::-1]):
            assert pooled(several(*order)).measured_on == in_doubt[count - 1]


def test_chance_of_overlap_by_enumeration() -> None:
    layers = [(4, 2, 1), (5, 3, 2)]
    counts = np.zeros(4)
    for first in combinations(range(4), 1):
        for second in combinations(range(5), 2):
            counts[sum(head < 2 for head in first) + sum(head < 3 for head in second)] += 1
    assert chance_of_overlap(layers) == pytest.approx(counts / counts.sum())


def test_permutation_by_enumeration() -> None:
    """All deals of two marks among five values, and of one among three."""
    values, marked = [5.0, 3.0, 1.0, 2.0, 0.5, 1.0, 4.0, 2.0], [1, 1, 0, 0, 0, 0, 1, 0]
    groups = [0] * 5 + [1] * 3

    def statistic(first: tuple[int, ...], second: tuple[int, ...]) -> float:
        total = 0.0
        for members, chosen in ((range(5), first), (range(5, 8), second)):
            inside = [values[place] for place in chosen]
            outside = [values[place] for place in members if place not in chosen]
            total += float(np.mean(inside) - np.mean(outside))
        return total

    every = [statistic(first, second) for first in combinations(range(5), 2) for second in combinations(range(5, 8), 1)]
    exact = np.mean([value >= statistic((0, 1), (6,)) - 1e-12 for value in every])
    assert permutation_of_groups(values, marked, groups, rounds=50_000) == pytest.approx(exact, abs=0.004)


def test_interval_of_a_mean() -> None:
    """Student's t with two degrees of freedom: 4.303."""
    interval = mean_interval([1.0, 2.0, 3.0])
    assert interval.value == 2
    assert interval.high - 2 == pytest.approx(4.3027 / 3**0.5, rel=1e-4)
    assert np.isnan(mean_interval([1.0]).low)


def test_a_folder_goes_on_only_with_the_models_data_and_plan_it_was_begun_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, bert = model([0.1] * 8, [0], [0, 4]), zoo.build("bert")
    part: Any = SimpleNamespace(
        fingerprint="texts", metric=ACCURACY, tokenizer=None, identity={"beams": 1}, writes=False
    )
    measured: list[str] = []

    def measure(subject: ModelWithData, *_: object) -> ModelRow:
        measured.append(subject.name)
        return row

    def begin(name: str, plan: SpecialisationPlan, sentences: Any = part, **measuring: Any) -> None:
        measured_part = SimpleNamespace(**{**vars(part), **measuring})
        data: Any = SimpleNamespace(training=part, choosing=part, measuring=measured_part)
        studied = ModelWithData(name, bert, data, sentences, sentences, sentences)
        specialisation({name: lambda: studied}, plan, folder=tmp_path)

    monkeypatch.setattr(module, "_measure", measure)
    begin("first", SpecialisationPlan())
    begin("first", SpecialisationPlan())
    assert measured == ["first"]
    for other in (
        lambda: begin("second", SpecialisationPlan()),
        lambda: begin("first", SpecialisationPlan(gate_steps=3)),
        lambda: begin("first", SpecialisationPlan(), SimpleNamespace(fingerprint="other texts")),
        lambda: begin("first", SpecialisationPlan(), metric=LOSS),
        lambda: begin("first", SpecialisationPlan(), identity={"beams": 4}),
    ):
        with pytest.raises(UsageError, match="begun with other settings"):
            other()


def test_a_copy_of_a_model_is_no_further_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before anything is measured, and the folder is free for the right models."""
    part: Any = SimpleNamespace(
        fingerprint="texts", metric=ACCURACY, tokenizer=None, identity={"beams": 1}, writes=False
    )
    data: Any = SimpleNamespace(training=part, choosing=part, measuring=part)
    measured: list[str] = []

    def subject(name: str, seed: int) -> Callable[[], ModelWithData]:
        return lambda: ModelWithData(name, zoo.build("bert", seed=seed), data, part, part, part)

    def measure(studied: ModelWithData, *_: object) -> ModelRow:
        measured.append(studied.name)
        return model([0.1] * 8, [0], [0, 4])

    def study(**seeds: int) -> None:
        subjects = {name: subject(name, seed) for name, seed in seeds.items()}
        specialisation(subjects, SpecialisationPlan(), folder=tmp_path)

    monkeypatch.setattr(module, "_measure", measure)
    epochs = {f"run/epochs/00{number}": subject(str(number), number) for number in (1, 2)}
    with pytest.raises(UsageError, match="run/epochs/001 and run/epochs/002 are of one training"):
        specialisation(epochs, SpecialisationPlan(), folder=tmp_path)
    with pytest.raises(UsageError, match="first and copy have the same weights"):
        study(first=0, copy=0, second=1)
    assert not measured
    study(first=0, second=1)
    assert measured == ["first", "second"]


def test_a_model_is_measured_with_other_texts_for_training_and_relations_that_only_the_choice_has(
    tmp_path: Path,
) -> None:
    tokenizer = laboratory.vocabulary(tmp_path / "vocabulary")
    untrained = laboratory.model(tokenizer, dropout=0.0)

    def task(split: str) -> Translation:
        pairs = laboratory.parallel()[split]
        return Translation(source=pairs["source"], target=pairs["target"], tokenizer=tokenizer, metric="loss")

    trees = [row.tree for row in Grammar("light", "dialogue", train=300).splits()["dev"][:60]]
    with_adverbs = [tree for tree in trees if "advmod" in tree.relations]
    others = [tree for tree in trees if tree not in with_adverbs]
    data = Data(task("train"), task("dev"), task("test"))
    choose, measure = (Looking(Sentences(part), tokenizer) for part in (with_adverbs, others))
    studied = ModelWithData("m", untrained, data, data.measuring, choose, measure)
    plan = SpecialisationPlan(keep=2, gate_steps=2, tuning=Tuning(steps=2, warmup=1, batch=100, chunk=50))
    first, again = (specialisation({"m": lambda: studied}, plan, folder=tmp_path / "work") for _ in range(2))
    assert first.parts.models == again.parts.models
    row = first.parts.models["m"]
    labels = {best.label for best in row.best_of_roles if best.role == "syntactic"}
    assert "nsubj v->s" in labels
    assert "advmod v->a" not in labels
    assert sum(head.survives for head in row.by_head.values()) == 2


def test_heads_of_the_decoder_are_studied_on_translations(tmp_path: Path) -> None:
    """Roles were those of the encoder alone: an AttributeError, after the gates had been trained."""
    tokenizer = laboratory.vocabulary(tmp_path / "vocabulary")
    pairs = {split: laboratory.parallel()[split][:60] for split in ("train", "dev", "test")}
    data = Data(
        *(
            Translation(source=texts["source"], target=texts["target"], tokenizer=tokenizer, metric="loss")
            for texts in pairs.values()
        )
    )
    plan = SpecialisationPlan(
        keep=2, gate_steps=2, tuning=Tuning(steps=2, warmup=1, batch=100, chunk=50), kind="decoder"
    )

    def study(folder: str, *, translated: bool) -> ModelRow:
        choose, measure = (
            Looking(Sentences(pairs[split]["source"], pairs[split]["target"] if translated else None), tokenizer)
            for split in ("dev", "test")
        )
        whole = laboratory.model(tokenizer, dropout=0.0)
        studied = ModelWithData("m", whole, data, data.measuring, choose, measure)
        return specialisation({"m": lambda: studied}, plan, folder=tmp_path / folder).parts.models["m"]

    row = study("translated", translated=True)
    assert {name.partition(".")[0] for name in row.by_head} == {"decoder"}
    assert sum(head.survives for head in row.by_head.values()) == 2
    assert {best.role for best in row.best_of_roles} == {"positional"}
    with pytest.raises(UsageError, match="Roles of decoder heads cannot be measured"):
        study("source alone", translated=False)
    assert not (tmp_path / "source alone" / "0" / "arms").exists(), "before any training"
