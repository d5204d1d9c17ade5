"""The trade-off study: every way has the heads asked for and the steps of the others, and goes on where it stopped."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import headcount as hc
import laboratory
import records
import zoo
from forks import PATIENCE, shared_by
from headcount import journal, locks
from headcount.checkpoints.chosen_on import read_chosen_on, write_chosen_on
from headcount.corpora.grammar.corpus import Grammar
from headcount.corpora.sentences import Sentences
from headcount.errors import UsageError
from headcount.metrics import ACCURACY
from headcount.pruning.folder import sweep
from headcount.pruning.pipeline import Pipeline, chooser_of
from headcount.pruning.saving import Saving
from headcount.pruning.way import Way
from headcount.record import Record
from headcount.record.results.tradeoff import Point
from headcount.studies import point as points
from headcount.studies.kept import Looking, drift
from headcount.studies.plan import Arm
from headcount.studies.point import PointFile, PointInputs, point
from headcount.studies.tradeoff import Data, Models, Plan, _difference, tradeoff
from headcount.tasks.overlap import Examples
from headcount.tasks.translation import Translation
from headcount.training.log import Log
from subjects import training
from tokens import sentences, word_tokenizer

TUNING = hc.Tuning(steps=3, warmup=1, batch=100, chunk=50, rate=1e-3)
TRAINING: dict[str, Any] = {"gate_steps": 4, "tuning": TUNING}


pytestmark = pytest.mark.usefixtures("unverified")
_MADE: dict[str, Any] = {}


@pytest.fixture(scope="module", autouse=True)
def _made(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Learn the vocabulary and encode the data once."""
    place = tmp_path_factory.mktemp("vocabulary") / "v"
    tokenizer = laboratory.vocabulary(place)

    def task(split: str, **options: Any) -> Translation:
        pairs = laboratory.parallel(held_out=16)[split]
        return Translation(source=list(pairs["source"]), target=list(pairs["target"]), tokenizer=tokenizer, **options)

    trees = [row.tree for row in Grammar("light", "dialogue", train=300).splits()["dev"][:20]]
    data = Data(task("train"), task("dev"), task("test", metric="loss"))
    _MADE.update(place=place, tokenizer=tokenizer, data=data, looking=Looking(Sentences(trees), tokenizer))


def subject() -> tuple[Any, Data, Looking]:
    """An untrained model without dropout, data, and sentences with trees to look at."""
    return laboratory.model(_MADE["tokenizer"], dropout=0.0), _MADE["data"], _MADE["looking"]


def by_way(record: Record) -> dict[str, Any]:
    return {found.way: found for found in record.parts.points}


def test_ways_are_compared_at_equal_sizes_and_steps(tmp_path: Path) -> None:
    model, data, _ = subject()
    ways = ("l0", "rank-gradient", "random", "scratch")
    plan = Plan((3,), ways, ("encoder",), **TRAINING, scratch_steps=5)
    record = tradeoff(model, data, plan, name="m", folder=tmp_path / "work")
    json.loads(record.to_json())
    found = by_way(record)
    assert set(found) == set(ways)
    assert all(one.kept_by_kind == {"encoder": 3, "decoder": 8, "cross": 8} for one in found.values())
    assert found["scratch"].heads == found["l0"].heads
    assert "statistics" not in record.to_json()
    arms = tmp_path / "work" / "arms"
    steps = {way: Log(arms / f"{way}-3-0" / "tune" / "metrics.jsonl").lines()[-1]["step"] for way in ways[1:]}
    assert steps == {"rank-gradient": 7, "random": 7, "scratch": 5}
    assert {way: one.steps for way, one in found.items()} == {**steps, "l0": 7}
    rows = {row.way: row for row in record.parts.compared}
    lost = found["l0"].after.value - record.parts.whole.value
    assert rows["l0"].lost.difference == pytest.approx(lost)
    against = found["l0"].after.value - found["rank-gradient"].after.value
    assert rows["l0"].against.difference == pytest.approx(against)
    assert rows["l0"].against.low <= against <= rows["l0"].against.high
    assert rows["rank-gradient"].against is None
    assert record.parts.pruned == "encoder heads"
    assert record.parts.heads_by_site == {f"{kind}.{layer}": 4 for kind in record.parts.of for layer in range(2)}
    assert record.parts.all_kinds is None
    assert record.parts.lacking == {"whole_roles": "there were no sentences to look at"}
    heaps = [
        round(share, 2) for gate in record.parts.hard_concrete if gate.beta == 0.5 for share in (gate.zero, gate.one)
    ]
    assert heaps == [0.23, 0.23, 0.04, 0.69, 0.86, 0.01], "the paper's Figure 6"
    for one in found.values():
        spent = one.seconds
        assert spent.total == spent.choosing + spent.tuning > 0
    (arms / "random-3-0.json").unlink()
    again = tradeoff(model, data, plan, name="m", folder=tmp_path / "work")
    for one, other in zip(again.parts.points, record.parts.points, strict=True):
        assert replace(one, seconds=other.seconds) == other
    short = Plan((3,), ways, ("encoder",), gate_steps=4, tuning=replace(TUNING, steps=2), scratch_steps=5)
    with pytest.raises(UsageError, match="begun with other settings"):
        tradeoff(model, data, short, name="m", folder=tmp_path / "work")
    pairs = {"source": data.measure.source, "target": data.measure.target, "tokenizer": data.measure.tokenizer}
    beams = Translation(**pairs, metric="bleu", beams=4)
    with pytest.raises(UsageError, match="begun with other settings \\(measured"):
        tradeoff(model, Data(data.train, data.choose, beams), plan, name="m", folder=tmp_path / "work")
    with pytest.raises(UsageError, match="is also in the training data"):
        tradeoff(model, Data(data.train, data.choose, data.train), plan)


def test_the_whole_model_tuned_as_long_is_a_control(tmp_path: Path) -> None:
    """With all heads left one way is fine-tuning alone, and the others are compared with it."""
    model, data, _ = subject()
    plan = Plan((8, 3), ("l0", "rank-gradient"), ("encoder",), **TRAINING)
    training().save(tmp_path / "trained" / "record.json")
    record = tradeoff(model, data, plan, name=str(tmp_path / "trained"), folder=tmp_path / "work")
    assert (record.parts.steps.gates, record.parts.steps.whole) == (4, training().parts.steps)
    found = {(one.way, one.keep): one.after.value for one in record.parts.points}
    assert set(found) == {("rank-gradient", 8), ("l0", 3), ("rank-gradient", 3)}
    rows = {(row.way, row.keep): row for row in record.parts.compared}
    for way in ("l0", "rank-gradient"):
        difference = rows[way, 3].lost_tuned.difference
        assert difference == pytest.approx(found[way, 3] - found["rank-gradient", 8])
    assert rows["rank-gradient", 8].lost_tuned is None
    assert record.parts.unfinished == 0


def test_a_teacher_changes_training_and_nothing_else(tmp_path: Path) -> None:
    """With the teacher's predictions alone asked for, models come closer to it than to the references."""
    model, data, _ = subject()
    ways = ("rank-gradient", "rank-gradient/distilled", "l0", "l0/distilled")
    plan = Plan((8, 4), ways, ("encoder",), gate_steps=4, tuning=replace(TUNING, steps=16), distill=1.0)
    record = tradeoff(model, data, plan, folder=tmp_path / "work")
    points = {(one.way, one.keep): one for one in record.parts.points}
    assert ("rank-gradient", 8) in points, "the control is tuned as ever"
    assert ("rank-gradient/distilled", 8) not in points
    found = {way: points[way, 4] for way in ways}
    assert {one.steps for one in found.values()} == {20}
    assert found["rank-gradient"].heads == found["rank-gradient/distilled"].heads
    whole = record.parts.whole.value
    for way in ("rank-gradient", "l0"):
        off, kept_off = (abs(found[name].after.value - whole) for name in (way, f"{way}/distilled"))
        assert kept_off < 0.25 * off, "labels are not seen: what an untrained model says is what is learned"
    assert record.parts.distill == 1.0
    with pytest.raises(UsageError, match=r"other settings \(distill: 1\.0 there, 0\.5 now"):
        tradeoff(model, data, replace(plan, distill=0.5), folder=tmp_path / "work")


def test_a_folder_without_a_teacher_does_not_ask_for_its_share(tmp_path: Path) -> None:
    model, data, _ = subject()
    plan = Plan((3,), ("random/untuned",), ("encoder",), **TRAINING)
    tradeoff(model, data, plan, folder=tmp_path / "work")
    settings = (tmp_path / "work" / "work.json").read_text()
    assert "distill" not in settings
    tradeoff(model, data, replace(plan, distill=0.9), folder=tmp_path / "work")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"distill": 1.5}, "above 0 and at most 1; got 1.5"),
        ({"distill": 0.0}, "above 0 and at most 1; got 0.0"),
        ({"tuning": hc.Tuning(steps=3, distill=0.5)}, "set the plan's distill"),
    ],
)
def test_shares_of_a_teacher_that_cannot_be(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Plan((3,), ("l0/distilled",), **asked)


def test_a_control_has_no_teacher() -> None:
    plan = Plan((8, 3), ("rank-gradient/distilled",), against="rank-gradient/distilled")
    with pytest.raises(UsageError, match="without a teacher"):
        plan.check_control(8)


def test_a_search_goes_on_for_smaller_sizes_and_its_seconds_count(tmp_path: Path) -> None:
    model, data, _ = subject()
    plan = Plan((6, 4), ("greedy",), ("encoder",), **TRAINING, against="greedy")
    record = tradeoff(model, data, plan, folder=tmp_path / "work")
    first, second = record.parts.points
    assert set(second.heads) < set(first.heads)
    steps = journal.read_json(tmp_path / "work" / "greedy-lstsq.json")
    assert len(steps) == 4
    assert second.seconds.choosing > sum(step["seconds"] for step in steps)


@pytest.mark.parametrize(
    ("keep", "kinds", "message"),
    [(9, ("encoder",), "keeps 9 heads, but there are only 8"), (3, ("nose",), "no nose heads")],
)
def test_a_plan_that_does_not_fit_the_model_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: int, kinds: tuple[str, ...], message: str
) -> None:
    model, data, _ = subject()
    monkeypatch.setattr(Translation, "quality", lambda *_, **__: pytest.fail("measured first"))
    with pytest.raises(UsageError, match=message):
        tradeoff(model, data, Plan((3, keep) if keep != 3 else (3,), ("l0",), kinds, **TRAINING))


def test_a_number_that_a_way_cannot_have_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data, _ = subject()
    monkeypatch.setattr(Translation, "quality", lambda *_, **__: pytest.fail("measured first"))
    with pytest.raises(UsageError, match=r"Cannot keep 3 of 8 heads in 2 layers .* is 2 or 4"):
        tradeoff(model, data, Plan((4, 3), ("random", "l0:uniform"), ("encoder",), **TRAINING))


def test_a_point_in_a_shape_names_it_in_its_way_and_command(tmp_path: Path) -> None:
    model, data, _ = subject()
    plan = Plan((4,), ("rank-gradient:uniform/untuned",), ("encoder",), against="rank-gradient", **TRAINING)
    (point,) = tradeoff(model, data, plan, folder=tmp_path / "work").parts.points
    assert point.way == "rank-gradient:uniform/untuned"
    assert "--rule uniform" in point.command
    assert [sum(head.startswith(f"encoder.{layer}.") for head in point.heads) for layer in (0, 1)] == [2, 2]


def test_a_folder_keeps_to_the_heads_that_models_from_scratch_have(tmp_path: Path) -> None:
    model, data, _ = subject()
    plan = Plan((3,), ("rank-gradient", "scratch"), ("encoder",), **TRAINING, scratch_steps=2)
    tradeoff(model, data, plan, folder=tmp_path / "work")
    other = Plan((3,), ("l0", "scratch"), ("encoder",), **TRAINING, scratch_steps=2)
    with pytest.raises(UsageError, match="donor: rank-gradient there, l0 now"):
        tradeoff(model, data, other, folder=tmp_path / "work")


def test_a_folder_is_not_gone_on_with_by_another_tokenizer(tmp_path: Path) -> None:
    """The hash of texts does not tell one tokenizer from another."""

    def run(tokenizer: Any, keep: tuple[int, ...]) -> None:
        tasks = [
            hc.task("classification", texts=sentences(12, seed=seed), labels=[0, 1] * 6, tokenizer=tokenizer)
            for seed in (1, 2, 3)
        ]
        plan = Plan(keep, ("rank-gradient/untuned",), against="rank-gradient/untuned")
        tradeoff(zoo.build("bert").eval(), Data(*tasks), plan, folder=tmp_path)

    run(word_tokenizer(), (5,))
    run(word_tokenizer(), (5, 3))
    with pytest.raises(UsageError, match=r"tokens: .* there, .* now"):
        run(word_tokenizer(framed=True), (5, 3, 2))


def test_ways_without_training(tmp_path: Path) -> None:
    model, data, _ = subject()
    ways = ("rank-gradient/untuned", "rank-gradient+lstsq", "fisher", "greedy", "random/untuned", "greedy/tuned")
    plan = Plan((3,), ways, ("encoder",), seeds=(0, 1), **TRAINING, against="rank-gradient/untuned")
    record = tradeoff(model, data, plan, folder=tmp_path / "work")
    assert record.parts.unfinished == 0
    seeds = {way: [one.seed for one in record.parts.points if one.way == way] for way in ways}
    twice = ("random/untuned", "greedy/tuned")
    assert seeds == {way: [0, 1] if way in twice else [0] for way in ways}, "what no seed changes is measured once"
    found = by_way(record)
    assert {way: one.steps for way, one in found.items()} == {**dict.fromkeys(ways, 0), "greedy/tuned": 7}
    assert all(one.cut == one.after for one in found.values() if not one.steps)

    order = hc.score("gradient", model, data.choose)
    mask = hc.select(order, hc.Budget(heads=3), kinds=("encoder",))
    assert found["rank-gradient/untuned"].heads == tuple(str(head) for head in mask.kept)
    plain = data.measure.quality(hc.remove(model, mask)).value
    made_up = data.measure.quality(hc.remove(model, mask, compensate="lstsq", task=data.choose)).value
    assert found["rank-gradient/untuned"].after.value == pytest.approx(plain)
    assert found["rank-gradient+lstsq"].after.value == pytest.approx(made_up)
    for way in ("fisher", "greedy"):
        result = hc.prune(
            model, data.choose, choose=way, keep=hc.Budget(heads=3), kinds=("encoder",), measure_on=data.measure
        )
        assert found[way].heads == tuple(str(head) for head in result.mask.kept)
        assert found[way].after.value == pytest.approx(data.measure.quality(result.model).value)
    rows = {row.way: row for row in record.parts.compared}
    assert rows["greedy"].seeds == (0,)
    assert rows["greedy/tuned"].seeds == rows["random/untuned"].seeds == (0, 1)
    mean = sum(one.after.value for one in record.parts.points if one.way == "random/untuned") / 2
    assert rows["random/untuned"].against.difference == pytest.approx(mean - plain)
    each = {str(one.seed): one.after.value for one in record.parts.points if one.way == "random/untuned"}
    assert rows["random/untuned"].against.by_seed == {
        seed: pytest.approx(value - plain) for seed, value in each.items()
    }
    differences = np.array([value - plain for value in each.values()])
    half = 12.706 * differences.std(ddof=1) / 2**0.5  # Student's t with one degree of freedom; examples come on top
    against = rows["random/untuned"].against
    assert against.high - against.difference >= half - 1e-3, "two seeds say little, however many examples there are"
    assert against.behind.startswith("1 model, 2 seeds")
    assert rows["greedy"].against.behind.startswith("1 model, 1 seed:"), "no seed changes either of them"


@pytest.mark.parametrize(
    ("ways", "seen"),
    [
        (("random/untuned",), ()),
        (("rank-magnitude/untuned", "random/untuned"), ()),
        (("random",), ("train",)),
        (("random/untuned", "rank-magnitude+lstsq"), ("choose",)),
        (("random", "rank-gradient/untuned"), ("train", "choose")),
        (("random/untuned", "scratch"), ("train",)),
    ],
)
def test_only_what_a_way_reads_counts_as_seen(ways: tuple[str, ...], seen: tuple[str, ...]) -> None:
    """Models are measured on the data that heads are chosen on by other ways."""
    model, data, _ = subject()
    data = replace(data, measure=data.choose)
    plan = Plan((3,), ways, ("encoder",), **TRAINING, scratch_steps=2, against=ways[0])
    measured = tradeoff(model, data, plan).parts.measured_on
    tasks = {"train": data.train, "choose": data.choose}
    assert [texts.examples for texts in measured.chosen_on] == [len(tasks[name]) for name in seen]
    assert measured.held_out is ("choose" not in seen)


def test_roles_of_an_earlier_version_are_looked_for_again(tmp_path: Path) -> None:
    """Not mixed with those of now: verdicts were corrected for other heads."""
    model, data, looking = subject()
    plan = Plan((3,), ("rank-gradient/untuned",), ("encoder",), **TRAINING, against="rank-gradient/untuned")
    (point,) = tradeoff(model, data, plan, folder=tmp_path, looking=looking).parts.points
    (file,) = (tmp_path / "arms").glob("*.json")
    written = PointFile.read(file)
    replace(written, point=replace(written.point, roles={}), looked=looking.fingerprint).write(file)
    (again,) = tradeoff(model, data, plan, folder=tmp_path, looking=looking).parts.points
    assert again == point


def test_roles_are_looked_for_in_every_smaller_model(tmp_path: Path) -> None:
    model, data, looking = subject()
    plan = Plan((3,), ("l0", "rank-gradient", "scratch"), ("encoder",), **TRAINING, scratch_steps=5)
    record = tradeoff(model, data, plan, folder=tmp_path / "work", looking=looking)
    assert record.parts.whole_roles == looking.roles(model)
    assert record.parts.looked.trees == 20
    for one, row in zip(record.parts.points, record.parts.drift, strict=True):
        assert list(one.roles) == [head for head in one.heads if head.startswith("encoder")]
        assert row.changes == drift(record.parts.whole_roles, one.roles)
    # the model of the rank, from its training state, looked at by hand
    found = by_way(record)["rank-gradient"]
    small = hc.remove(model, hc.locate(model).mask(keep=found.heads))
    state = load_file(tmp_path / "work" / "arms" / "rank-gradient-3-0" / "tune" / "state.safetensors")
    with torch.no_grad():
        for name, parameter in small.named_parameters():
            parameter.copy_(state[f"model.{name}"])
    assert looking.roles(small) == found.roles


def test_a_folder_begun_without_roles_goes_on_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is trained or measured again."""
    model, data, looking = subject()
    plan = Plan((3,), ("l0", "rank-gradient", "scratch"), ("encoder",), **TRAINING, scratch_steps=5)
    before = tradeoff(model, data, plan, folder=tmp_path / "work")

    def never(*_: Any) -> Any:
        raise AssertionError("measured again")

    monkeypatch.setattr("headcount.pruning.run.measured_quality", never)
    monkeypatch.setattr("headcount.training.loop.Loop._step", never)
    after = tradeoff(model, data, plan, folder=tmp_path / "work", looking=looking)
    for one, other in zip(before.parts.points, after.parts.points, strict=True):
        assert replace(other, roles=None, unsure=None) == one
        assert other.roles
    looked_at: list[Any] = []

    def seen(self: Looking, live: Any) -> Any:
        looked_at.append(live)
        return measure(self, live)

    measure = Looking.evidence
    monkeypatch.setattr(Looking, "evidence", seen)
    tradeoff(model, data, plan, folder=tmp_path / "work", looking=looking)
    assert looked_at == [model], "what was looked at is not looked at again"


@pytest.mark.parametrize("measured", [False, True], ids=["a new point", "a point measured before"])
def test_a_model_that_other_settings_left_is_replaced(tmp_path: Path, measured: bool) -> None:
    """A finished command leaves its models, and no points."""
    model, data, _ = subject()
    models = Models(tmp_path / "models", Saving(str(_MADE["place"])))
    plan = Plan((3,), ("random",), ("encoder",), against="random", **TRAINING)
    tradeoff(model, data, plan, folder=tmp_path / "first", models=models)
    longer = replace(plan, gate_steps=5)
    if measured:
        tradeoff(model, data, longer, folder=tmp_path / "second")
    record = tradeoff(model, data, longer, folder=tmp_path / "second", models=models)
    (found,) = record.parts.points
    saved = tmp_path / "models" / "random-3-0"
    kept = hc.load(saved)
    assert data.measuring.quality(kept).value == pytest.approx(found.after.value, abs=1e-6)
    before = (saved / "model.safetensors").stat().st_mtime_ns
    assert tradeoff(model, data, longer, folder=tmp_path / "second", models=models).parts == record.parts
    assert (saved / "model.safetensors").stat().st_mtime_ns == before, "a saved model is not saved again"


def test_a_saved_model_remembers_what_its_heads_were_chosen_on(tmp_path: Path) -> None:
    """A model from scratch has the heads of another point, and those were chosen on data too."""
    model, data, _ = subject()
    hc.save(model, tmp_path / "whole")
    write_chosen_on(tmp_path / "whole", [Examples("dev", "before", ("an example",))])
    models = Models(tmp_path / "models", Saving(str(tmp_path / "whole")))
    plan = Plan((3,), ("greedy", "scratch"), ("encoder",), against="greedy", **TRAINING, scratch_steps=2)
    tradeoff(model, data, plan, name=str(tmp_path / "whole"), folder=tmp_path / "work", models=models)
    for name, seen in (("greedy-3-0", [data.choose]), ("scratch-3-0", [data.choose, data.train])):
        prints = ["before", *(task.fingerprint for task in seen)]
        assert [part.fingerprint for part in read_chosen_on(str(tmp_path / "models" / name))] == prints
        measured = Record.load(tmp_path / "models" / name / "record.json").parts.measured_on
        assert [part.examples for part in measured.chosen_on] == [1, *(len(task.example_hashes) for task in seen)]


def test_all_kinds_stand_beside_models_from_scratch(tmp_path: Path) -> None:
    model, data, _ = subject()
    plan = Plan((12, 6), ("l0", "scratch"), None, **TRAINING, scratch_steps=5, against="l0")
    record = tradeoff(model, data, plan, folder=tmp_path / "work")
    rows = record.parts.all_kinds
    assert [row.keep for row in rows] == [12, 6]
    for row in rows:
        one, other = (
            next(p for p in record.parts.points if (p.way, p.keep) == (way, row.keep)) for way in ("l0", "scratch")
        )
        assert sum(row.kept_by_kind.values()) == row.keep
        assert row.kept_by_kind == {
            kind: count
            for kind in ("encoder", "decoder", "cross")
            if (count := sum(head.startswith(kind) for head in one.heads))
        }
        assert (row.trained, row.scratch) == (one.after, other.after)
    assert record.parts.pruned == "heads of all kinds"


def test_all_kinds_with_heads_that_no_seed_changes_have_a_row_for_every_seed(tmp_path: Path) -> None:
    model, data, _ = subject()
    ways = ("rank-gradient/untuned", "scratch")
    plan = Plan((6,), ways, None, (0, 1), **TRAINING, scratch_steps=2, against=ways[0])
    record = tradeoff(model, data, plan, folder=tmp_path / "work")
    rows = record.parts.all_kinds
    assert [row.seed for row in rows] == [0, 1]
    assert rows[0].trained == rows[1].trained
    fresh = {p.seed: p.after for p in record.parts.points if p.way == "scratch"}
    assert [row.scratch for row in rows] == [fresh[0], fresh[1]]


def test_a_model_from_scratch_makes_the_point_whose_heads_it_has(tmp_path: Path) -> None:
    model, data, _ = subject()
    plan = Plan((3,), ("scratch", "rank-gradient", "random"), ("encoder",), **TRAINING, scratch_steps=5)
    work = PointInputs(model, data, plan, tmp_path)
    # heads of another way that happens to be finished are not taken
    point(work, Arm(Way.parse("random"), 3, 0))
    found = point(work, Arm(Way.parse("scratch"), 3, 0))
    assert found is not None
    assert found.point.like == "rank-gradient"
    assert found.point.heads == PointFile.read(tmp_path / "arms" / "rank-gradient-3-0.json").point.heads


def test_a_point_that_another_process_is_at_is_left_or_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data, _ = subject()
    plan = Plan((3,), ("rank-gradient/untuned",), ("encoder",), **TRAINING)
    work, arm = PointInputs(model, data, plan, tmp_path), Arm(Way.parse("rank-gradient/untuned"), 3, 0)
    monkeypatch.setattr(points, "_PAUSE", 0.01)
    claim = work.file(arm).with_suffix(".claim")
    finished = PointFile(records.tradeoff().parts.points[0], ((1.0,),))
    free = threading.Event()
    monkeypatch.setattr(points.time, "sleep", lambda _: free.set())

    with locks.alone(claim) as mine:
        assert mine
        assert point(work, arm) is None
        found: list[Any] = []
        waiting = threading.Thread(target=lambda: found.append(point(work, arm, wait=True)))
        waiting.start()
        assert free.wait(PATIENCE), "it waits"
        finished.write(work.file(arm))
        waiting.join(PATIENCE)
    assert found == [finished]


def shared(place: Path, folder: Path | None, ways: tuple[str, ...]) -> list[Any]:
    """A trade-off and a sweep of penalties, by as many processes as there are."""
    model, data, looking = subject()
    plan = Plan((3,), ways, ("encoder",), **TRAINING, scratch_steps=5, against=ways[-1])
    record = tradeoff(model, data, plan, looking=looking, folder=folder)
    choosers = {f"{value:g}": chooser_of("l0", {"steps": 4, "penalty": value}) for value in (0.01, 0.1)}
    pipelines = {name: Pipeline(chooser, None, ("encoder",), tuning=TUNING) for name, chooser in choosers.items()}
    found = sweep(pipelines, model, Data(data.train, measure=data.measure), place / "sweep", Saving("m"))
    return [record.parts.points, found.parts.sweep]


@pytest.mark.parametrize(
    "ways",
    [
        ("l0", "rank-gradient/distilled"),
        pytest.param(("l0", "scratch", "greedy", "rank-gradient"), marks=pytest.mark.slow),
    ],
)
def test_two_processes_give_the_points_of_one(tmp_path: Path, ways: tuple[str, ...]) -> None:
    """The same global batches, dropout off: the same heads and roles, and nearly the same qualities."""
    place = tmp_path / "two"
    results = shared_by(2, lambda: shared(place, None, ways))
    assert results[0] == results[1], "every process knows the same points"
    two, swept_by_two = results[0]
    one, swept_by_one = shared(tmp_path / "one", tmp_path / "work", ways)
    for first, second in zip(one, two, strict=True):
        assert (first.way, first.heads) == (second.way, second.heads)
        assert first.after.value == pytest.approx(second.after.value, rel=1e-3)
        assert functions(first) == functions(second)
    assert list(swept_by_one) == list(swept_by_two) == ["0.01", "0.1"]
    for first, second in zip(swept_by_one.values(), swept_by_two.values(), strict=True):
        assert first.heads == second.heads
        after = [found.quality.after.value for found in (first, second)]
        assert after[0] == pytest.approx(after[1], rel=1e-3)
    saved = [Record.load(folder / "sweep" / "record.json").parts.sweep for folder in (tmp_path / "one", place)]
    assert [list(found) for found in saved] == [list(swept_by_one)] * 2


def functions(found: Point) -> dict[str, list[tuple[str, str]]]:
    return {head: [(one.role, one.label) for one in some] for head, some in (found.roles or {}).items()}


def test_accuracy_of_one_seed_is_compared_by_the_answers_that_change() -> None:
    """None of 20 answers changes in 29% of cases with 5% lost and 1% won: the difference was 0 (0 to 0)."""
    answers = np.ones((20, 2))
    same = _difference({0: answers}, {0: answers}, ACCURACY)
    assert same.low < -0.05 < 0.05 < same.high
    fewer = answers.copy()
    fewer[:4, 0] = 0
    lost = _difference({0: answers}, {0: fewer}, ACCURACY)
    (compared,) = ACCURACY.compare(answers, fewer[None], resamples=1000)
    assert (lost.difference, lost.low, lost.high, lost.p) == compared
