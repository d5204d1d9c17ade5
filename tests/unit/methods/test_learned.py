"""Learned pruning: budgets met exactly, the crucial head stays, the decoder is not touched, kills change nothing."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import headcount as hc
import laboratory
import zoo
from behaviour import hooks, weights
from headcount.errors import UsageError, VerificationError
from headcount.methods.course import Course, only_trained
from headcount.probes.gated import HardConcreteGates
from headcount.probes.gates import exact_mask, groups
from headcount.studies.learned_pruning import Saving, prune_in_folder, sweep
from headcount.tasks.translation import Translation
from headcount.training.log import Log
from headcount.training.penalty import Penalty
from headcount.training.preset import PRESETS

SHORT = {"steps": 12, "tune": 2, "warmup": 2, "batch": 150, "chunk": 100, "rate": 1e-3, "gate_rate": 0.8}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return laboratory.vocabulary(tmp_path_factory.mktemp("vocabulary") / "v")


def task(split: str, tokenizer: Any) -> Translation:
    pairs = laboratory.parallel()[split]
    return Translation(source=list(pairs["source"]), target=list(pairs["target"]), tokenizer=tokenizer)


@pytest.fixture
def model(tokenizer: Any) -> Any:
    return laboratory.model(tokenizer, encoder_layers=3)


def count(mask: hc.HeadGrid, kind: str) -> int:
    return sum(head.kind == kind for head in mask.kept)


@pytest.mark.parametrize(
    ("method", "keep"), [("l0", 0), ("l0", 1), ("l0", 7), ("l0", 12), ("subset", 1), ("subset", 7)]
)
def test_budgets_of_encoder_heads_are_met_exactly(model: Any, tokenizer: Any, method: str, keep: int) -> None:
    before = weights(model)
    found = hc.prune(method, model, task("train", tokenizer), budget=hc.Budget(heads=keep), kinds=("encoder",), **SHORT)
    assert [count(found.mask, kind) for kind in ("encoder", "decoder", "cross")] == [keep, 8, 8]
    assert [head for head in hc.locate(found.model).heads if head.kind == "encoder"] == [
        head for head in found.mask.kept if head.kind == "encoder"
    ]
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items()), "the original stays"
    assert not hooks(model)
    assert not hooks(found.model)
    parts = found.record.parts
    assert parts["kept"]["encoder"] == keep
    assert 0 <= parts["gates"]["settled"] <= 1
    assert parts["course"]["gates"]["steps"] == 12
    assert parts["course"]["tuning"]["steps"] == 2
    json.loads(found.record.to_json())


@pytest.mark.parametrize("method", ["l0", "subset"])
def test_budgets_over_all_kinds_by_share_and_by_kind(model: Any, tokenizer: Any, method: str) -> None:
    train = task("train", tokenizer)
    found = hc.prune(method, model, train, budget=hc.Budget(share=0.25), **SHORT)
    assert len(found.mask.kept) == 7
    by_kind = {"encoder": hc.Budget(heads=2), "cross": hc.Budget(share=0.5)}
    found = hc.prune(method, model, train, budget=by_kind, **SHORT)
    assert [count(found.mask, kind) for kind in ("encoder", "decoder", "cross")] == [2, 8, 4]


@pytest.mark.parametrize(("method", "norm"), [("l0", "pre"), ("l0", "post"), ("subset", "pre")])
def test_encoder_alone_leaves_every_bit_of_the_decoder(tmp_path: Path, method: str, norm: str) -> None:
    """Embeddings are trained only where they are not the decoder's too."""
    tokenizer = laboratory.vocabulary(tmp_path / "v", shared=norm == "pre")
    model = laboratory.model(tokenizer, encoder_layers=3, norm=norm)
    found = hc.prune(method, model, task("train", tokenizer), budget=hc.Budget(heads=4), kinds=("encoder",), **SHORT)
    shared = " without its embeddings, which the decoder shares"
    assert found.record.parts["course"]["trained"] == "encoder" + (shared if norm == "pre" else "")
    changed, same = [], []
    after = dict(found.model.named_parameters())
    for name, value in model.named_parameters():
        equal = after[name].shape == value.shape and torch.equal(after[name], value)
        (same if equal else changed).append(name)
    assert all(name.startswith("model.encoder") for name in changed)
    assert ("model.encoder.embed_tokens.weight" in changed) == (norm == "post")
    assert {name for name, _ in model.named_parameters() if not name.startswith("model.encoder")} <= set(same)
    assert [p.requires_grad for p in found.model.parameters()] == [p.requires_grad for p in model.parameters()]


def test_embeddings_that_the_decoder_shares_are_frozen(tmp_path: Path) -> None:
    tied = laboratory.model(laboratory.vocabulary(tmp_path / "shared", shared=True))
    with only_trained(tied, ("encoder",)) as said:
        assert "shares" in said
        trained = {name for name, parameter in tied.named_parameters() if parameter.requires_grad}
        assert not any("embed" in name or "shared" in name for name in trained)
        assert any(name.startswith("model.encoder.layers") for name in trained)
        assert not any("decoder" in name for name in trained)
    with only_trained(tied, ("encoder", "cross")) as said:
        assert said == "all weights"
    assert tied.model.decoder.layers[0].fc1.weight.requires_grad


# planted truth


class Imitation:
    """To do what a model does: a task on which exactly the heads that do something matter."""

    name = "imitation"
    fingerprint = "planted"

    def __init__(self, model: nn.Module) -> None:
        random_ids = torch.Generator().manual_seed(0)
        self._ids = torch.randint(5, 90, (120, 6), generator=random_ids)
        with torch.no_grad():
            self._wanted = model.eval()(input_ids=self._ids).logits

    @property
    def lengths(self) -> np.ndarray:
        return np.tile([6, 0], (len(self._ids), 1))

    def batch(self, rows: np.ndarray) -> dict[str, Tensor]:
        return {"ids": self._ids[rows], "wanted": self._wanted[rows]}

    def targets(self, rows: np.ndarray) -> int:
        return len(rows)

    def loss_sum(self, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return 100 * (model(input_ids=batch["ids"]).logits - batch["wanted"]).square().sum()

    def held_out(self, model: nn.Module) -> dict[str, float]:
        return {"loss": 0.0}


CRUCIAL = "encoder.1.2"


@pytest.fixture
def planted() -> nn.Module:
    """All heads but one are dead: their part of the output projection is zero."""
    model = zoo.build("bert").eval()
    with torch.no_grad():
        for site in hc.locate(model):
            for head in site.head_names():
                columns = slice(head.index * site.head_dim, (head.index + 1) * site.head_dim)
                site.output.weight[:, columns] *= 6.0 if str(head) == CRUCIAL else 0.0
    return model


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("l0", {}),
        ("l0", {"variant": "paper"}),
        ("subset", {"pipelined": True, "hot": 1.0}),
        ("subset", {"hot": 1.0}),
        ("subset", {"straight_through": True, "hot": 1.0}),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_crucial_head_stays(planted: nn.Module, method: str, options: dict[str, Any], seed: int) -> None:
    course = {"steps": 150, "tune": 0, "rate": 1e-6, "batch": 90, "chunk": 90, "gate_rate": 0.1, "seed": seed}
    found = hc.prune(method, planted, Imitation(planted), budget=hc.Budget(heads=1), **course, **options)
    assert [str(head) for head in found.mask.kept] == [CRUCIAL]
    if options.get("pipelined"):
        assert found.record.parts["course"]["trained"] == "gates only"


def test_a_fixed_factor_closes_what_is_dead_and_says_if_all_close(planted: nn.Module) -> None:
    course = {"steps": 150, "tune": 0, "rate": 1e-6, "batch": 90, "chunk": 90, "gate_rate": 0.1}
    found = hc.prune("l0", planted, Imitation(planted), penalty=0.01, **course)
    assert [str(head) for head in found.mask.kept] == [CRUCIAL]
    assert found.record.parts["gates"]["settled"] > 0.9
    with pytest.warns(UserWarning, match="Every gate has closed"):
        none = hc.prune("l0", planted, Imitation(planted), penalty=1e6, **course)
    assert not none.mask.kept


def test_soft_gates_of_test_time_become_part_of_the_weights(planted: nn.Module) -> None:
    """The authors' variant: what is saved does what the gated model did at test time."""
    course = {"steps": 30, "tune": 0, "rate": 1e-12, "batch": 90, "chunk": 90, "gate_rate": 0.05}
    live = copy.deepcopy(planted)
    found = hc.prune("l0", planted, Imitation(planted), penalty=0.001, variant="voita2019-code", **course)
    gates = HardConcreteGates(live, variant="voita2019-code")
    with torch.no_grad():
        gates.logits_G.copy_(torch.tensor([found.record.parts["gates"]["values"][str(head)] for head in gates.heads]))
    ids = torch.randint(5, 90, (3, 6), generator=torch.Generator().manual_seed(1))
    mask = dict(zip(gates.heads, gates.chosen().tolist(), strict=True))
    assert any(0 < value < 1 for value in mask.values())
    with torch.no_grad(), hc.masked(live, torch.tensor([mask[head] for head in hc.locate(live).heads])):
        expected = live(input_ids=ids).logits
        torch.testing.assert_close(found.model(input_ids=ids).logits, expected, rtol=0, atol=1e-4)
    hc.fold_gates(live, gates)
    with torch.no_grad():
        torch.testing.assert_close(hc.remove(live, gates.mask())(input_ids=ids).logits, expected, rtol=0, atol=1e-4)


def test_gates_of_zero_and_one_are_part_of_the_weights_already(planted: nn.Module) -> None:
    before = weights(planted)
    hc.fold_gates(planted, HardConcreteGates(planted))
    after = weights(planted)
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_rank_decides_only_where_the_gates_miss_the_budget(planted: nn.Module) -> None:
    gates = HardConcreteGates(planted)
    with torch.no_grad():
        gates.logits_G.copy_(torch.tensor([3.0, 2.0, 1.0] + [-1.0] * 8 + [-0.5]))
    mask, by_rank = exact_mask(gates, groups(gates.heads, 3))
    assert (len(mask.kept), by_rank) == (3, 0)
    mask, by_rank = exact_mask(gates, groups(gates.heads, 4))
    assert ([str(head) for head in mask.kept][-1], by_rank) == ("encoder.2.3", 1)
    assert exact_mask(gates, groups(gates.heads, 1))[1] == 2


# interruptions


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("method", ["l0", "subset"])
@pytest.mark.parametrize("seed", [0, 1])
def test_interruptions_change_nothing(
    model: Any, tokenizer: Any, tmp_path: Path, method: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped three times at random steps, in both parts: the same gates, the same weights, the same log."""
    from headcount.training import loop

    monkeypatch.setattr(loop, "LOG_EVERY", 1)
    train, draw = task("train", tokenizer), random.Random(seed)
    options = {**SHORT, "steps": 10, "tune": 6, "budget": hc.Budget(heads=4), "kinds": ("encoder",)}
    whole = hc.prune(method, model, train, folder=tmp_path / "whole", **options)
    stops = [("gates", draw.randint(2, 7)), ("gates", draw.randint(8, 9)), ("tuning", draw.randint(2, 5))]

    def stop(part: str, step: int, of: int) -> None:
        if stops and stops[0][0] in part and step >= stops[0][1]:
            stops.pop(0)
            raise Interrupted

    for _ in range(3):
        seconds = draw.choice([0.0, 0.02, 100.0])
        with pytest.raises(Interrupted):
            hc.prune(method, model, train, folder=tmp_path / "i", progress=stop, save_seconds=seconds, **options)
    found = hc.prune(method, model, train, folder=tmp_path / "i", progress=stop, **options)
    assert not stops
    assert found.mask == whole.mask
    assert found.record.parts["gates"] == whole.record.parts["gates"]
    left, right = found.model.state_dict(), whole.model.state_dict()
    assert all(torch.equal(left[name], value) for name, value in right.items())
    lines = Log(tmp_path / "i" / "gates" / "metrics.jsonl").lines()
    assert [line["step"] for line in lines if "gates" in line] == list(range(1, 11))
    assert set(lines[0]["gates"]) == {str(head) for head in hc.locate(model).heads if head.kind == "encoder"}


@pytest.fixture
def saved(model: Any, tokenizer: Any, tmp_path: Path) -> Path:
    return hc.save(model, tmp_path / "model", tokenizer=tokenizer)


def test_a_folder_is_begun_once_and_gone_on_with(saved: Path, tokenizer: Any, tmp_path: Path) -> None:
    options = {**SHORT, "steps": 10, "tune": 2, "budget": hc.Budget(heads=4), "kinds": ["encoder"]}
    train, dev = task("train", tokenizer), task("dev", tokenizer)

    def run(**change: Any) -> Any:
        return prune_in_folder(
            "l0", hc.load(saved), train, tmp_path / "small", Saving(str(saved)), measure_on=dev, **{**options, **change}
        )

    record = run()
    assert set(record.parts["quality"]) == {"before", "cut", "after"}
    assert record.parts["quality"]["after"]["low"] <= record.parts["quality"]["after"]["value"]
    small = hc.load(tmp_path / "small")
    assert count(hc.locate(small).mask(), "encoder") == 4
    assert hc.HeadGrid.from_json((tmp_path / "small" / "gates.json").read_text()).kinds == ("encoder",)
    assert not list((tmp_path / "small").rglob("*.bin"))
    assert run().signature.time == record.signature.time, "finished: not done again"
    with pytest.raises(UsageError, match="other settings"):
        run(seed=3)
    with pytest.raises(UsageError, match="same data"):
        prune_in_folder("l0", hc.load(saved), train, tmp_path / "o", Saving(str(saved)), measure_on=train, **options)
    assert not (tmp_path / "o").exists()


def test_what_was_learned_is_kept_when_something_goes_wrong_later(
    saved: Path, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**SHORT, "steps": 6, "tune": 0, "budget": hc.Budget(heads=4), "kinds": ["encoder"]}
    arguments = ("l0", hc.load(saved), task("train", tokenizer), tmp_path / "small", Saving(str(saved)))

    with monkeypatch.context() as patch:
        patch.setattr("headcount.surgery.verify.Expectation.compare", lambda *_: ({}, {"logits": "logits: far."}))
        with pytest.raises(VerificationError, match=r"logits: far\..*--no-verify goes on") as caught:
            prune_in_folder(*arguments, **options)
    assert count(hc.locate(caught.value.model).mask(), "encoder") == 4
    reports: list[Any] = []
    prune_in_folder(*arguments, **options, verify=False, progress=lambda *report: reports.append(report))
    assert not reports, "the gates had learned already"


def test_a_sweep_has_a_model_for_each_factor_and_is_shared(saved: Path, tokenizer: Any, tmp_path: Path) -> None:
    from headcount import locks

    options = {**SHORT, "steps": 10, "tune": 0, "kinds": ["encoder"]}

    def run() -> Any:
        arguments = ("l0", hc.load(saved), task("train", tokenizer), tmp_path / "s", Saving(str(saved)))
        return sweep(*arguments, penalties=[0.0, 5.0], **options)

    with locks.alone(tmp_path / "s" / ".5.claim") as mine:
        assert mine
        record = run()
        assert record.parts["elsewhere"] == [5.0]
        assert not (tmp_path / "s" / "record.json").exists()
    record = run()
    assert record.parts["elsewhere"] == []
    assert list(record.parts["sweep"]) == ["0", "5"]
    assert record.parts["sweep"]["0"]["kept"]["encoder"] == 12
    assert (tmp_path / "s" / "5" / "config.json").is_file()
    assert (tmp_path / "s" / "record.json").is_file()


def test_who_is_done_last_sums_a_shared_sweep_up(saved: Path, tokenizer: Any, tmp_path: Path) -> None:
    """Another process is at the first factor, and done while this one is at the second."""
    from headcount import locks

    other = contextlib.ExitStack()
    assert other.enter_context(locks.alone(tmp_path / "s" / ".0.claim"))
    record = sweep(
        "l0", hc.load(saved), task("train", tokenizer), tmp_path / "s", Saving(str(saved)), penalties=[0.0, 5.0],
        progress=lambda *_: other.close(), **{**SHORT, "steps": 20, "tune": 0, "kinds": ["encoder"]},
    )  # fmt: skip
    assert list(record.parts["sweep"]) == ["0", "5"]
    assert (tmp_path / "s" / "record.json").is_file()


def test_from_random_weights_everything_is_trained(model: Any, tokenizer: Any) -> None:
    options = {**SHORT, "steps": 4, "tune": 0, "budget": hc.Budget(heads=6), "kinds": ("encoder",), "fresh": True}
    found = hc.prune("l0", model, task("train", tokenizer), seed=5, **options)
    name = "model.decoder.layers.0.fc1.weight"
    assert found.record.parts["course"]["trained"] == "all weights"
    assert not torch.allclose(found.model.state_dict()[name], model.state_dict()[name], atol=0.05)


def test_from_random_weights_training_is_ordinary_and_fine_tuning_after_it_is_not(model: Any, tokenizer: Any) -> None:
    options = {
        **SHORT,
        "steps": 8,
        "tune": 4,
        "budget": hc.Budget(heads=6),
        "fresh": True,
        "rate": None,
        "warmup": None,
    }
    course = hc.prune("subset", model, task("train", tokenizer), **options).record.parts["course"]
    assert course["gates"]["rate"] == pytest.approx(3e-3 * (96 / 32) ** 0.5)
    assert course["gates"]["warmup"] == 3
    assert course["tuning"]["rate"] == course["rate"] > 0
    assert course["tuning"]["warmup"] == 1


def test_a_course_from_random_weights_is_as_long_as_training() -> None:
    short, fresh = Course.of(steps=None, tune=7), Course.of(fresh=True, steps=None, tune=None, warmup=None)
    assert (short.steps, short.tune) == (Course().steps, 7)
    assert fresh.steps + fresh.tune == PRESETS["tiny"].recipe.steps
    recipe = fresh.from_random(fresh.steps, None, falls=False, seed=0)
    assert (recipe.warmup, recipe.rate, recipe.cooldown) == (PRESETS["tiny"].post_norm.warmup, None, 0)
    assert fresh.recipe(800, 1e-3, falls=True, seed=0).warmup < 50


# wrong input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budget": hc.Budget(heads=13), "kinds": ("encoder",)}, "keeps 13 heads, but there are only 12"),
        ({"budget": {"encoder": hc.Budget(heads=40)}}, "only 12"),
        ({"budget": hc.Budget(heads=2), "kinds": ("vision",)}, "no vision heads"),
        ({"budget": {"encoder": hc.Budget(heads=2)}, "kinds": ("cross",)}, "give one"),
        ({"budget": hc.Budget(heads=2), "penalty": 0.1}, "either"),
        ({}, "either"),
        ({"penalty": -1.0}, "0 or more"),
        ({"budget": hc.Budget(heads=2), "variant": "papr"}, "Did you mean 'paper'"),
        ({"budget": hc.Budget(heads=2), "tune": -1}, "0 or more"),
        ({"budget": hc.Budget(heads=2), "kinds": "encoder"}, "kinds is a list"),
    ],
)
def test_wrong_input_to_l0(model: Any, tokenizer: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hc.prune("l0", model, task("train", tokenizer), **{**SHORT, **change})


@pytest.mark.parametrize("tune", [0, 3])
def test_nothing_to_train_is_an_error(model: Any, tokenizer: Any, tune: int) -> None:
    model.requires_grad_(False)
    options = {**SHORT, "steps": 3, "tune": tune, "budget": hc.Budget(heads=4), "kinds": ("encoder",)}
    with pytest.raises(UsageError, match="nothing to train"):
        hc.prune("l0", model, task("train", tokenizer), **options)


def test_a_task_that_cannot_be_trained_on(bert: nn.Module) -> None:
    given = hc.task.of([{"x": torch.zeros(1)}], nll=lambda _, batch: batch["x"])
    with pytest.raises(UsageError, match="cannot be trained on"):
        hc.prune("l0", bert, given, budget=hc.Budget(heads=1))
    with pytest.raises(UsageError, match="needs a budget"):
        hc.prune("subset", bert, given)
    with pytest.raises(UsageError, match="needs a budget"):
        hc.prune("rank", bert, given, budget={"encoder": hc.Budget(heads=1)})


# the factor


def drive(worth: np.ndarray, keep: int, *, scale: float, variant: str) -> tuple[int, float]:
    """Gates on made-up heads, each worth so much loss: what rank decides at the end, the share of worth kept."""
    model = zoo.build("bert")
    gates = HardConcreteGates(model, variant=variant)
    penalty = Penalty(gates, steps=300, keep=keep)
    optimizer = torch.optim.Adam(penalty.parameters(), lr=penalty.rate(1), betas=(0.9, 0.98))
    worth_G = torch.tensor(worth * scale, dtype=torch.float32)
    for step in range(1, 301):
        penalty.before(step)
        gates.refresh()
        # heads are worth more the fewer there are, as they are in models
        (-(worth_G * (2 - gates.current().detach()) * gates.current()).sum()).backward()
        penalty.penalty().backward()
        optimizer.step()
        optimizer.zero_grad()
        penalty.after(step)
    mask, by_rank = exact_mask(gates, penalty.groups)
    best = np.sort(worth)[::-1][:keep].sum()
    kept = sum(worth[gates.heads.index(head)] for head in mask.kept)
    return by_rank, float(kept / best)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e-3])
@pytest.mark.parametrize("keep", [1, 3, 6, 9])
@pytest.mark.parametrize("variant", ["default", "voita2019-code"])
def test_the_factor_finds_the_heads_of_most_worth_whatever_the_scale_of_the_loss(
    keep: int, scale: float, variant: str
) -> None:
    worth = np.exp(np.random.default_rng(keep).normal(size=12) * 1.5) * 0.003
    by_rank, share = drive(worth, keep, scale=scale, variant=variant)
    assert by_rank <= 1
    assert share > 0.9
