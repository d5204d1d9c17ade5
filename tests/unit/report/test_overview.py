"""The first screen: sentences made of the numbers of a model's records."""

from __future__ import annotations

import pytest

import records
import subjects as made
from headcount.head_roles.role import roles as role_members
from headcount.record import Record
from headcount.record.codec import encode
from headcount.report.overview import overview
from headcount.report.payload import payload
from headcount.report.section import Section
from headcount.report.sections.ablation import SECTION
from headcount.report.sections.alone import SECTION as ALONE
from headcount.report.subject import subjects
from headcount.report.terms import ROLE_WORDS

SITES = made.even(2, 4)


def answers(some: list[Record]) -> list[str]:
    (subject,) = all_subjects = subjects(some)
    return [tile.answer for tile in overview(subject, payload(all_subjects)["subjects"][0]["heads"])]


def effect(change: float, *, sure: bool, examples: int = 90) -> dict[str, float]:
    return {
        "value": 30 + change, "difference": change, "low": change, "high": change, "p": 0.0, "examples": examples,
        "corrected": 0.001 if sure else 1.0,
    }  # fmt: skip


def ablation(*effects: dict[str, float], **parts: object) -> Record:
    one_out = {f"encoder.0.{index}": item for index, item in enumerate(effects)}
    return records.changed(made.ablation(made.ONE_LAYER), one_out=one_out, **parts)


def test_the_model_is_described_by_its_heads_layers_and_quality() -> None:
    assert answers([made.ablation(SITES)])[0] == (
        "model-a has 24 attention heads: 8 in 2 encoder layers, 8 in 2 decoder layers and 8 in 2 cross-attention "
        "layers. With all heads, BLEU is 30.0."
    )
    assert answers([made.score(made.ONE_LAYER), made.explored()])[0] == (
        "model-a is a BertForMaskedLM with 4 attention heads in 1 encoder layer."
    )


def test_heads_that_matter_are_those_whose_loss_is_certain_and_harmful() -> None:
    some = [effect(-3, sure=True), effect(-9, sure=False), effect(2, sure=True), effect(-5, sure=True)]
    assert answers([ablation(*some)])[1] == (
        "2 of 4 heads matter for certain: without encoder.0.3 BLEU falls from 30.0 to 25.0 and without encoder.0.0 to "
        "27.0. No change is certain for the other one. Without encoder.0.2 it is even better."
    )
    large = answers([ablation(effect(-3, sure=True), effect(-9, sure=False), effect(1, sure=False))])[1]
    assert large.endswith("No change is certain for any one of the other 2."), "it may be larger than those that are"
    unsure = answers([ablation(effect(-3, sure=False), effect(1, sure=False))])[1]
    assert unsure.startswith("No single head is needed for certain: switching off any one of 2 harms BLEU too little")
    assert unsure.endswith("encoder.0.0 seems to matter most: without encoder.0.0 BLEU falls from 30.0 to 27.0.")
    unharmed = answers([ablation(effect(0, sure=False), effect(2, sure=True))])[1]
    assert unharmed == (
        "No single head was needed on the examples measured: switching off any one of 2 did not harm BLEU there. "
        "Without encoder.0.1 it is even better."
    )
    rising = answers([ablation(effect(3, sure=True), effect(1, sure=False), higher_is_better=False)])[1]
    assert rising.startswith("1 of 2 heads matters for certain: without encoder.0.0 BLEU rises from 30.0 to 33.0.")
    assert "the output moves most: BLEU 3" in answers([ablation(effect(3, sure=True), distance=True)])[1]


def test_few_examples_only_seem_to_be_better_without_a_head() -> None:
    """Of 270 heads worth nothing, 16 examples with a long tail find one that harms in a fifth of all cases."""
    for examples, verb in ((39, "seems"), (40, "is")):
        some = [effect(-3, sure=True, examples=examples), effect(2, sure=True, examples=examples)]
        assert answers([ablation(*some)])[1].endswith(f"to 27.0. Without encoder.0.1 it {verb} even better.")


def test_the_first_of_many_alike_only_seem_to_matter_most() -> None:
    alike = [effect(-3 - 0.01 * head, sure=True) | {"low": -4.0, "high": -2.0} for head in range(6)]
    assert "6 of 6 heads matter for certain. These seem to matter most: without" in answers([ablation(*alike)])[1]
    ahead = [effect(-9.0 - head, sure=True) | {"low": -15.0, "high": -8.0} for head in range(3)]
    assert "6 of 6 heads matter for certain. Most: without" in answers([ablation(*ahead, *alike[3:])])[1]


def test_a_head_that_harms_nothing_does_not_matter_most() -> None:
    harmless = SECTION.answer(ablation(effect(0, sure=False), effect(2, sure=True)))
    assert "no head's absence harmed it here, not even that of encoder.0.0" in harmless
    unsure = SECTION.answer(ablation(effect(0, sure=False), effect(-2, sure=False)))
    assert "encoder.0.1 seems to matter most" in unsure
    assert "encoder.0.1 matters most" in SECTION.answer(ablation(effect(0, sure=False), effect(-2, sure=True)))


@pytest.mark.parametrize("section", [SECTION, ALONE])
@pytest.mark.parametrize("sign", [1, -1])
def test_one_of_several_alike_does_not_matter_most(section: Section, sign: int) -> None:
    """Of ten heads alike, one was said to matter most in all of 100 draws."""
    near, far = ({**effect(sign * size, sure=True)} for size in (-5, -9))
    for other, seems in (({**near, "difference": sign * -5.1}, True), (far, False)):
        bests = {f"encoder.{index}": {"head": f"encoder.{index}.0", **row} for index, row in enumerate((near, other))}
        answer = section.answer(ablation(near, other, all_but_one=bests, higher_is_better=sign > 0))
        assert ("seems to" in answer) == seems
        assert ("optimistic" in answer) == (section is ALONE)


def test_several_that_tie_all_matter_most() -> None:
    some = [*(effect(-2, sure=False) for _ in range(3)), effect(1, sure=False)]
    bests = {f"encoder.{index}": {"head": f"encoder.{index}.0", **row} for index, row in enumerate(some)}
    record = ablation(*some, all_but_one=bests)
    assert "encoder.0.0 and 2 others alike seem to matter most" in SECTION.answer(record)
    assert "encoder.0.0 and 2 others alike seem to matter most: without encoder.0.0" in answers([record])[1]
    assert "encoder.0 and 2 others alike seem to suffer most (BLEU \u22122.00)" in ALONE.answer(record)


def test_layers_that_nothing_harms_do_not_suffer() -> None:
    bests = {f"encoder.{index}": {"head": f"encoder.{index}.0", **effect(0, sure=False)} for index in range(2)}
    answer = ALONE.answer(ablation(effect(0, sure=False), all_but_one=bests))
    assert "no layer was harmed here, not even encoder.0 (BLEU +0.000)" in answer


def test_a_small_change_is_not_rounded_away() -> None:
    small = {**effect(-0.03, sure=True), "value": 29.97}
    assert "BLEU falls from 30.00 to 29.97" in answers([ablation(small, effect(-0.001, sure=False))])[1]
    tiny = {**effect(-1e-9, sure=True), "value": 30 - 1e-9}
    assert "BLEU falls from 30.0 to 30.0" in answers([ablation(tiny)])[1]


def test_a_change_is_not_doubled_by_rounding() -> None:
    effects = [{**effect(change, sure=True), "value": 0.755 + change} for change in (-0.01, 0.0)]
    answer = answers([records.changed(ablation(*effects), metric="accuracy", value=0.755)])[1]
    assert "without encoder.0.0 accuracy falls from 0.755 to 0.745" in answer


def test_values_of_fewer_examples_are_not_compared_with_that_of_the_whole_model() -> None:
    some = [{**effect(-3, sure=True), "value": 24.0, "examples": 5}, effect(-5, sure=True)]
    assert answers([ablation(*some)])[1] == (
        "2 of 2 heads matter for certain: without encoder.0.1 BLEU falls by 5.0 and without encoder.0.0 by 3.0."
    )
    section = SECTION.answer(ablation(*some))
    assert section.endswith(
        "on 5 to 90 examples: BLEU with a head off is of these, and only its change can be compared."
    )
    assert "can be compared" not in SECTION.answer(ablation(effect(-3, sure=True)))


def test_scores_stand_in_where_no_head_was_masked() -> None:
    scoring = made.score(made.ONE_LAYER)
    ranked = sorted(scoring.parts.scores, key=lambda head: -scoring.parts.scores[head])
    assert answers([scoring])[1] == (
        f"By the gradient score, an estimate, {ranked[0]} and {ranked[1]} matter most and {ranked[2]} and {ranked[3]} "
        "matter least."
    )
    tied = records.changed(scoring, scores={head: float(head == ranked[0]) for head in ranked})
    assert answers([tied])[1] == f"By the gradient score, an estimate, {ranked[0]} matters most."
    equal = records.changed(scoring, scores=dict.fromkeys(ranked, 0.5))
    assert answers([equal])[1] == "By the gradient score, an estimate, no head matters more or less than the others."
    assert answers([made.score(made.ONE_LAYER, "confidence")])[1] == ""


def test_roles_are_told_in_words() -> None:
    text = answers([made.roles(made.ONE_LAYER)])[2]
    assert text.startswith("3 of 4 heads have a role that can be named: 1 looks at a neighbouring token (positional), ")
    assert text.endswith("A head can do several things. For the other 1 no simple description was found.")
    assert set(ROLE_WORDS) == set(role_members.names())


def test_words_for_a_role_are_true_of_its_labels() -> None:
    """Heads at the first token "look at separators or the end", and a head four tokens back at its neighbour."""
    roles = [("positional", "-4"), ("rare", "two rarest"), ("delimiter", "start")]
    held = {f"encoder.0.{index}": [records.evidence(*role, 0.95)] for index, role in enumerate(roles)}
    text = answers([records.changed(made.roles(made.ONE_LAYER), roles=held)])[2]
    assert "1 looks at a token at a fixed distance (positional)" in text
    assert "1 looks at one of the two rarest tokens (rare)" in text
    assert "1 looks at the start, the end or punctuation (delimiter)" in text


def test_what_can_go_is_told_with_its_cost() -> None:
    lines = encode(made.curves(SITES).parts.curves)
    lines[0]["points"][0]["low"] = 25.0  # the steps are 30, 28.7, 24.8 and less
    curves = records.changed(made.curves(SITES), curves=lines)
    text = answers([curves, made.tradeoff(SITES), made.pruned(SITES), made.bench(24)])[3]
    assert text == (
        "5 of 24 heads (21%) can be switched off, the least important by gradient first, before BLEU leaves the "
        "95% interval of the whole model; as the best of 2, it is optimistic. Pruned to 1 of 24 heads and trained "
        "further, the "
        "smallest model measured has BLEU 20.0 instead of 30.0; as the best of 2, it is optimistic. 2 "
        "of 24 heads were removed: 10% fewer parameters and BLEU 28.0 instead of 30.0. The smaller model that"
        " was timed is at best 1.25 times as fast; as the best of 4, it is optimistic."
    )
    rows = [{**row, "faster": 1.04, "low": 0.98} for row in encode(made.bench(24).parts)["rows"]]
    alike = records.changed(made.bench(24), rows=rows)
    assert answers([alike])[3] == "The smaller model that was timed is not faster for certain in any setting."
    assert (
        answers([made.curves(SITES)])[3]
        == "When heads are masked step by step, BLEU leaves the 95% interval of the whole model from the first step."
    )
    assert answers([made.training()])[1:] == ["", "", ""]


def test_what_can_go_is_worse_on_the_same_examples_at_no_step() -> None:
    """The second step is within the interval of the whole model, and yet worse for certain."""
    lines = encode(made.curves(SITES).parts.curves)
    for line in lines:
        line["points"][0]["low"] = 0.0
        for point, high in zip(line["points"], (1.0, 1.01, 0.99, 0.9, 0.5, 0.1), strict=True):
            point["kept"] = {"value": high - 0.02, "low": high - 0.04, "high": high}
    text = answers([records.changed(made.curves(SITES), curves=lines)])[3]
    assert text.startswith("5 of 24 heads (21%) can be switched off")


def test_a_damaged_record_leaves_the_other_answers() -> None:
    cost = encode(made.pruned(SITES).parts.cost)
    cost["before"]["parameters"] = 0
    some = answers([records.changed(made.pruned(SITES), cost=cost), made.roles(SITES)])
    assert "role" in some[2]
    assert some[3] == "This cannot be answered from the record: ZeroDivisionError('division by zero')."


def test_what_heads_were_chosen_on_is_said_beside_each_quality() -> None:
    lines = encode(made.curves(SITES).parts.curves)
    lines[0]["points"][0]["low"] = 25.0
    measured = {**records.MEASURED_ON, "overlap": 20, "held_out": False}
    caveat = ", which is optimistic: it was measured on the texts that heads were chosen on"
    some = [records.changed(made.curves(SITES), curves=lines), made.tradeoff(SITES), made.pruned(SITES)]
    for record in some:
        assert caveat not in answers([record])[3]
        assert caveat in answers([records.changed(record, measured_on=measured)])[3], record.study
    assert caveat in answers([made.inspection(), records.changed(made.evaluation(), measured_on=measured)])[0]
