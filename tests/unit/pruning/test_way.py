"""Names of ways say what is done, each in one way only."""

from __future__ import annotations

import pytest

from headcount.errors import UnknownName, UsageError
from headcount.pruning.pipeline import chooser_names
from headcount.pruning.tuning import Tuning
from headcount.pruning.way import Way
from headcount.studies.plan import Arm, Plan


@pytest.mark.parametrize(
    ("name", "choice", "compensate", "tuned", "steady"),
    [
        ("l0", "l0", "none", True, False),
        ("subset", "subset", "none", True, False),
        ("scratch", "scratch", "none", True, False),
        ("random", "random", "none", True, False),
        ("random/untuned", "random", "none", False, False),
        ("rank-gradient", "rank-gradient", "none", True, False),
        ("rank-gradient/untuned", "rank-gradient", "none", False, True),
        ("rank-ablation+lstsq", "rank-ablation", "lstsq", False, True),
        ("rank-gradient+bias/tuned", "rank-gradient", "bias", True, False),
        ("fisher", "fisher", "none", False, True),
        ("fisher+scale", "fisher", "scale", False, True),
        ("fisher/tuned", "fisher", "none", True, False),
        ("greedy", "greedy", "lstsq", False, True),
        ("greedy+none", "greedy", "none", False, True),
        ("greedy/tuned", "greedy", "lstsq", True, False),
        ("l0/distilled", "l0", "none", True, False),
        ("rank-gradient/distilled", "rank-gradient", "none", True, False),
        ("greedy+scale/distilled", "greedy", "scale", True, False),
    ],
)
def test_names_are_read(name: str, choice: str, compensate: str, tuned: bool, steady: bool) -> None:
    way = Way.parse(name)
    assert (way.name, way.compensate, way.tuned, way.steady) == (name, compensate, tuned, steady)
    assert (way.chooser.name if way.chooser else "scratch") == choice
    assert way.distilled is name.endswith("/distilled")
    assert "/" not in way.file


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("l1", "Unknown way of pruning 'l1'; known: ablation, attribution-patching, confidence"),
        ("rank-l0", "Unknown way"),
        ("l0+lstsq", "trains the weights"),
        ("scratch+lstsq", "trains new weights"),
        ("rank-gradient+glue", "no compensation 'glue'; there are bias, lstsq, none, scale"),
        ("l0/untuned", "already records the quality before fine-tuning"),
        ("scratch/untuned", "must be trained"),
        ("rank-gradient/half", "tuned, untuned or distilled; got 'half'"),
        ("scratch/distilled", "trained without a teacher"),
    ],
)
def test_names_that_make_no_sense_are_refused(name: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        Way.parse(name)
    assert said in str(error.value)


def test_every_chooser_is_a_way() -> None:
    for name in chooser_names():
        assert Way.parse(Way.parse(name).name) == Way.parse(name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gradient", "rank-gradient"),
        ("rank-random/untuned", "random/untuned"),
        ("greedy+lstsq/tuned", "greedy/tuned"),
        ("rank-gradient+none/tuned", "rank-gradient"),
        ("fisher/untuned", "fisher"),
        ("gradient+lstsq/untuned", "rank-gradient+lstsq"),
        ("l0/tuned", "l0"),
    ],
)
def test_a_way_has_one_name(text: str, name: str) -> None:
    assert Way.parse(text).name == name
    with pytest.raises(UsageError, match="ways repeats a value"):
        Plan((3,), (text, name))


def test_a_pipeline_is_written_as_its_way() -> None:
    for name in ("greedy+scale/tuned", "rank-gradient/untuned", "l0/distilled", "fisher", "random"):
        way = Way.parse(name)
        tuning = Tuning(steps=5, distill=0.5 if way.distilled else 0.0)
        assert way.pipeline(3, tuning).name == name


@pytest.mark.parametrize("against", ["random", "rank-gradient/untuned", "scratch", "l0"])
def test_all_heads_left_need_a_way_that_tunes(against: str) -> None:
    """random is none of the ways; the others do not say measures fine-tuning alone to the whole model."""
    plan = Plan((8, 4), ("l0", "rank-gradient/untuned", "rank-gradient", "scratch"), against=against)
    with pytest.raises(UsageError, match="measures fine-tuning alone"):
        plan.check_control(8)
    Plan((8, 4), ("l0", "rank-gradient")).check_control(8)


def test_the_points_of_a_plan() -> None:
    plan = Plan((4, 2), ("scratch", "rank-gradient", "greedy"), seeds=(5, 7))
    names = [arm.name for arm in plan.arms(gated=99)]
    assert names == [
        "rank-gradient-4-5", "greedy-4-5", "scratch-4-5", "rank-gradient-2-5", "greedy-2-5", "scratch-2-5",
        "rank-gradient-4-7", "scratch-4-7", "rank-gradient-2-7", "scratch-2-7",
    ]  # fmt: skip
    assert Arm(Way.parse("rank-gradient/untuned"), 3, 0).name == "rank-gradient.untuned-3-0"


@pytest.mark.parametrize(
    ("ways", "donor"),
    [
        (("rank-gradient", "scratch", "l0"), "l0-2-7"),
        (("scratch", "rank-gradient", "subset"), "rank-gradient-2-7"),
        (("greedy", "scratch"), "greedy-2-5"),  # is the same for all seeds, so there is that of the first alone
        (("scratch",), "l0-2-7"),
    ],
)
def test_whose_heads_a_model_from_scratch_has(ways: tuple[str, ...], donor: str) -> None:
    plan = Plan((4, 2), ways, seeds=(5, 7))
    assert plan.donor(Arm(Way.parse("scratch"), 2, 7)).name == donor


def test_plans_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="Unknown way"):
        Plan((3,), ("l1",))
    with pytest.raises(UsageError, match="Unknown way"):
        Plan((3,), against="l1")
    with pytest.raises(UsageError, match="at least one"):
        Plan(())
    with pytest.raises(UsageError, match="ways repeats a value: l0, l0"):
        Plan((3,), ("l0", "l0"))
    with pytest.raises(UsageError, match="keep must be at least 1 head; got 0"):
        Plan((3, 0))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("rank-gradient:even", "rank-gradient:even"),
        ("greedy:first=1:even+lstsq/tuned", "greedy:even:first=1/tuned"),
        ("l0:uniform:multiple=2/distilled", "l0:uniform:multiple=2/distilled"),
    ],
)
def test_a_way_names_the_shape_and_its_command_asks_for_it(text: str, name: str) -> None:
    way = Way.parse(text)
    assert way.name == name
    assert Way.parse(name) == way
    assert "/" not in way.file
    assert ":" not in way.file
    pipeline = way.pipeline(8, Tuning(steps=3, distill=0.5 if way.distilled else 0.0))
    assert pipeline.shape == way.shape
    assert pipeline.name == name
    arguments = pipeline.to_arguments()
    assert set(way.shape.to_arguments()) <= set(arguments)


def test_a_shape_that_there_is_not() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'even'"):
        Way.parse("rank-gradient:evn")
    with pytest.raises(UsageError, match="scratch trains new weights"):
        Way.parse("scratch:even")
