"""A pool: claims of several models are decided together, and the page has one ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from claimed import ablation, curves, model, tradeoff
from headcount.claims.claim import least, ordered, pooled
from headcount.claims.ledger import decide
from headcount.claims.pool import ledger_of, pool, pooled_records
from headcount.claims.studied import StudiedModel
from headcount.record import Record, Signature
from headcount.record.results.combined import Combined
from headcount.record.results.pool import Pool
from headcount.report.section import labelled_for, sections
from headcount.report.subject import subjects
from headcount.statistics import Interval
from headcount.studies.whole import with_ledger
from truths import SITES, TRUTHS, by_depth, late

CLAIMS = {claim.number: claim for claim in ordered()}
SHALLOW = {"encoder.0": 4, "encoder.1": 4, "encoder.2": 4, "decoder.0": 4, "cross.0": 4}


def study(model: str, harmful: int, settings: Mapping[str, str] | None = None, name: str = "michel2019") -> Record:
    return with_ledger(
        Record("combined", Signature(model), Combined(name, {"ablation": ablation(harmful)}, {}, settings or {}))
    )


def test_models_are_in_the_interval() -> None:
    record = pool([study("run/m-0", 4), study("run/m-1", 6), study("run/m-2", 40)])
    verdict = next(row for row in record.parts.ledger.parts.verdicts if row.number == "M1")
    assert verdict.models == 3
    assert verdict.holds is None, "two models of three do not decide it"
    alike = pool([study(f"run/m-{number}", 4) for number in range(3)])
    assert next(row for row in alike.parts.ledger.parts.verdicts if row.number == "M1").holds is True
    again = Record.from_json(record.to_json())
    assert again.to_json() == record.to_json()


def test_the_page_has_one_ledger_that_says_how_many_models() -> None:
    records = pooled_records([study("run/m-0", 4), study("run/m-1", 6)])
    labelled = labelled_for(sections["ledger"], subjects(records))
    assert len(labelled) == 1
    answer = sections["ledger"].answer(labelled[0][1])
    assert answer.startswith("2 models (m-0, m-1): 9 claims of the papers")
    assert len(labelled_for(sections["ablation"], subjects(records))) == 2


def test_a_pool_takes_more_models() -> None:
    (record,) = pooled_records([pool([study("m-0", 4), study("m-1", 6)]), study("m-2", 5)])
    assert record.parts.ledger.parts.models == ("m-0", "m-1", "m-2")


def test_what_is_not_alike_is_not_pooled() -> None:
    translation, other = {"task": "translation"}, {"task": "classification"}
    for records in (
        [study("a", 4, translation), study("b", 4, other)],
        [study("a", 4), study("a", 6)],
        [study("a", 4), study("b", 4, name="all")],
    ):
        assert not any(isinstance(record.parts, Pool) for record in pooled_records(records))


def test_the_interval_of_models_has_no_random_part() -> None:
    intervals = [Interval(value, value - 0.2, value + 0.2) for value in (0.1, 0.4, 0.6)]
    error = (np.var([0.1, 0.4, 0.6], ddof=1) / 3 + (0.2 / 1.959964) ** 2 / 3) ** 0.5
    assert pooled(intervals).low == pytest.approx(np.mean([0.1, 0.4, 0.6]) - 4.3027 * error, rel=1e-4)
    assert pooled(intervals) == pytest.approx(pooled(intervals[::-1]))


def shallow(cross: int, name: str) -> StudiedModel:
    """One layer of a decoder, which keeps so many of its four cross-attention heads, two of its own, and one other."""
    kept = [f"cross.0.{index}" for index in range(cross)] + ["decoder.0.0", "decoder.0.1", "encoder.0.0"]
    return model(tradeoff({(len(kept), 0): kept}, sites=SHALLOW, pruned="heads of all kinds"), name=name)


@pytest.mark.parametrize("holds", [True, False])
def test_deep_decoders_alone_decide_where_heads_stay(holds: bool) -> None:
    """Models of one decoder layer are neither low nor high; of the others, both directions are found."""
    deep = [replace(by_depth(holds)[0], name=f"deep-{number}") for number in range(3)]
    verdict = decide(CLAIMS["V11"], [*(shallow(4, f"tiny-{number}") for number in range(5)), *deep])
    assert (verdict.holds, verdict.models) == (holds, 3)


def test_models_of_another_shape_are_not_in_the_mean() -> None:
    """Five of one shape decide; what the three of another shape say is a detail, and their order does not matter."""
    tiny = [shallow(4 - number % 2, f"tiny-{number}") for number in range(5)]
    kept = {(9, 0): [*(f"encoder.{layer}.{index}" for layer in range(2) for index in range(4)), "decoder.0.0"]}
    deep = [model(tradeoff(kept, sites=SITES, pruned="heads of all kinds"), name=f"deep-{n}") for n in range(3)]
    alone, together = decide(CLAIMS["V10"], tiny), decide(CLAIMS["V10"], [*deep, *tiny])
    assert alone.holds is True
    assert (together.value, together.low, together.high, together.models) == (alone.value, alone.low, alone.high, 5)
    assert together.detail.startswith(alone.detail)
    assert "apart: -0.33" in together.detail
    assert "3 models (encoder 6 x 4, decoder 6 x 4, cross 6 x 4)" in together.detail


@pytest.mark.parametrize("number", ["V6", "V7"])
def test_languages_and_domains_are_not_compared_across_shapes(number: str) -> None:
    """Three models of 6 x 8 heads of one domain, three of 3 x 4 of another: shapes differ as much as domains do."""

    def smaller(studied: StudiedModel) -> StudiedModel:
        (record,) = studied.records
        rows = record.parts.confidence.items()
        few = {head: value for head, value in rows if head[8] in "012" and head[-1] in "0123"}
        return replace(studied, records=(replace(record, parts=replace(record.parts, confidence=few)),))

    models = TRUTHS[number](True)
    first, *_ = models
    apart = [one if one.settings == first.settings else smaller(one) for one in models]
    assert {one.shape for one in apart} == {"encoder 6 x 8", "encoder 3 x 4"}
    assert decide(CLAIMS[number], models).holds is True
    verdict = decide(CLAIMS[number], apart)
    assert (verdict.models, verdict.holds) == (0, None)
    assert "no shape has both" in verdict.detail


@pytest.mark.parametrize(
    ("data", "models"),
    [("corpus/", 2), ("./corpus", 2), ("a/../corpus", 2), ("other", 1), ("hf:corpus", 1)],
)
def test_a_folder_that_is_spelled_in_two_ways_is_one(data: str, models: int) -> None:
    studied = [
        model(ablation(4), name="a", source={"data": "corpus"}),
        model(ablation(6), name="b", source={"data": data}),
    ]
    assert decide(CLAIMS["M1"], studied).models == models


def test_a_model_in_two_studies_counts_once() -> None:
    """Records of the same weights are joined; of two records of a part, the first counts."""

    def part(harmful: int, weights: str) -> Record:
        record = ablation(harmful)
        return replace(record, signature=replace(record.signature, weights=weights))

    def whole(name: str, *records: Record) -> Record:
        parts = {f"{number}": record for number, record in enumerate(records)}
        return Record("combined", Signature(name), Combined("all", parts, {}, {}))

    curve = replace(curves(late), signature=Signature("m", "w0"))
    studies = [whole("tiny-0", part(4, "w0")), whole("a/tiny-0", curve, part(40, "w0")), whole("tiny-1", part(6, "w1"))]
    ledger = ledger_of(studies).parts
    verdicts = {verdict.number: verdict for verdict in ledger.verdicts}
    assert ledger.models == ("tiny-0", "tiny-1")
    assert verdicts["M1"].models == 2
    assert verdicts["M1"].value == pytest.approx(1 - (4 / 48 + 6 / 48) / 2)
    assert verdicts["M4"].models == 1


def test_examples_that_all_models_share_do_not_average_out() -> None:
    """Twenty models on the same few examples: the examples' part stays as wide as for one."""
    intervals = [Interval(0.3, 0.1, 0.5)] * 20
    assert pooled(intervals, shared=True).high - 0.3 == pytest.approx(2.093 * 0.2 / 1.959964, rel=1e-3)
    assert pooled(intervals).high - 0.3 < 0.06


def test_the_smallest_of_several_is_not_called_low_by_chance() -> None:
    """Three numbers of 0, each with noise: the smallest is below 0, and its upper end is corrected for that."""
    random = np.random.default_rng(0)
    called = [0, 0]
    for _ in range(1000):
        values_3M = random.normal(size=(3, 5))
        row = least([[Interval(value, float("nan"), float("nan")) for value in values] for values in values_3M])
        called[0] += row.low > 0
        called[1] += row.high < 0
    assert called[0] <= 35
    assert called[1] <= 35  # 2.5% and the error of 1,000 draws


def test_two_groups_of_the_same_size_do_not_decide_by_their_order() -> None:
    few, many = ([model(ablation(worse), name=f"{data}{seed}", source={"data": data}) for seed in range(3)]
                 for worse, data in ((4, "x"), (40, "y")))  # fmt: skip
    for models in ([*few, *many], [*many, *few]):
        verdict = decide(CLAIMS["M1"], models)
        assert verdict.holds is None
        assert "apart" in verdict.detail
    assert decide(CLAIMS["M1"], few).holds is True
    assert decide(CLAIMS["M1"], [*few, *many[:2]]).holds is True
