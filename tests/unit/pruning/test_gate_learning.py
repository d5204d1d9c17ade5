"""Learned pruning: budgets met exactly, the crucial head stays, the decoder is not touched, kills change nothing."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import shutil
from dataclasses import astuple
from functools import cache
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
from headcount.errors import FolderError, UsageError, VerificationError
from headcount.probes.gated import HardConcreteGates
from headcount.probes.gates import exact_mask, groups
from headcount.pruning.adaptation import adapting_recipe, only_trained, ordinary_recipe
from headcount.pruning.folder import prune_in_folder, sweep
from headcount.pruning.gate_learning import gate_steps
from headcount.pruning.pipeline import Data, Execution, Pipeline, chooser_of
from headcount.pruning.run import run
from headcount.pruning.saving import Saving
from headcount.record import Record
from headcount.surgery.fold_gates import check_foldable, fold_open_gates
from headcount.tasks.translation import Translation
from headcount.training.log import Log
from headcount.training.penalty import Penalty
from headcount.training.preset import PRESETS

pytestmark = pytest.mark.usefixtures("unverified")


def tuning(steps: int, **change: Any) -> hc.Tuning:
    return hc.Tuning(**{"steps": steps, "warmup": 2, "batch": 150, "chunk": 100, "rate": 1e-3, **change})


SHORT = {"steps": 12, "gate_rate": 0.8, "tune": tuning(2)}


def pipeline(tune: int = 2, keep: int | None = 4, seed: int = 0, **gates: Any) -> Pipeline:
    chooser = chooser_of("l0", {"steps": 10, "gate_rate": 0.8, **gates})
    budget = None if keep is None else hc.Budget(heads=keep)
    return Pipeline(chooser, budget, ("encoder",), tuning=tuning(tune), seed=seed)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return laboratory.vocabulary(tmp_path_factory.mktemp("vocabulary") / "v")


@cache
def task(split: str, tokenizer: Any) -> Translation:
    pairs = laboratory.parallel()[split]
    return Translation(source=list(pairs["source"]), target=list(pairs["target"]), tokenizer=tokenizer)


@pytest.fixture
def model(tokenizer: Any) -> Any:
    return laboratory.model(tokenizer, encoder_layers=3)


def count(mask: hc.HeadGrid, kind: str) -> int:
    return sum(head.kind == kind for head in mask.kept)


@pytest.mark.parametrize(
    ("method", "keep"),
    [
        ("l0", 0),
        ("l0", 7),
        ("l0", 12),
        ("subset", 7),
        pytest.param("l0", 1, marks=pytest.mark.slow),
        pytest.param("subset", 1, marks=pytest.mark.slow),
    ],
)
def test_budgets_of_encoder_heads_are_met_exactly(model: Any, tokenizer: Any, method: str, keep: int) -> None:
    before = weights(model)
    found = hc.prune(
        model, task("train", tokenizer), choose=method, keep=hc.Budget(heads=keep), kinds=("encoder",), **SHORT
    )
    assert [count(found.mask, kind) for kind in ("encoder", "decoder", "cross")] == [keep, 8, 8]
    assert [head for head in hc.locate(found.model).heads if head.kind == "encoder"] == [
        head for head in found.mask.kept if head.kind == "encoder"
    ]
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items()), "the original stays"
    assert not hooks(model)
    assert not hooks(found.model)
    parts = found.record.parts
    assert parts.kept_by_kind["encoder"] == keep
    assert 0 <= parts.gates.settled <= 1
    assert parts.training["gates"].steps == 12
    assert parts.training["tuning"].steps == 2
    json.loads(found.record.to_json())


@pytest.mark.parametrize("method", ["l0", pytest.param("subset", marks=pytest.mark.slow)])
def test_budgets_over_all_kinds_by_share_and_by_kind(model: Any, tokenizer: Any, method: str) -> None:
    train = task("train", tokenizer)
    found = hc.prune(model, train, choose=method, keep=hc.Budget(share=0.25), **SHORT)
    assert len(found.mask.kept) == 7
    by_kind = {"encoder": hc.Budget(heads=2), "cross": hc.Budget(share=0.5)}
    found = hc.prune(model, train, choose=method, keep=by_kind, **SHORT)
    assert [count(found.mask, kind) for kind in ("encoder", "decoder", "cross")] == [2, 8, 4]


@pytest.mark.parametrize(("method", "norm"), [("l0", "pre"), ("l0", "post"), ("subset", "pre")])
def test_encoder_alone_leaves_every_bit_of_the_decoder(tmp_path: Path, method: str, norm: str) -> None:
    """Embeddings are trained only where they are not the decoder's too."""
    tokenizer = laboratory.vocabulary(tmp_path / "v", shared=norm == "pre")
    model = laboratory.model(tokenizer, encoder_layers=3, norm=norm)
    found = hc.prune(
        model, task("train", tokenizer), choose=method, keep=hc.Budget(heads=4), kinds=("encoder",), **SHORT
    )
    shared = " without its embeddings, which the decoder shares"
    assert found.record.parts.training["gates"].trained == "encoder" + (shared if norm == "pre" else "")
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
    trains, writes = True, False
    example_hashes = split = None

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
ALONE = hc.Tuning(steps=0, rate=1e-6, batch=90, chunk=90)


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
        ("l0", {"steps": 75, "gate_rate": 0.2}),
        ("l0", {"steps": 75, "gate_rate": 0.2, "variant": "paper"}),
        ("subset", {"pipelined": True, "hot": 1.0}),
        pytest.param("subset", {"hot": 1.0}, marks=pytest.mark.slow),
        ("subset", {"straight_through": True, "hot": 1.0}),
    ],
)
@pytest.mark.parametrize("seed", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_the_crucial_head_stays(planted: nn.Module, method: str, options: dict[str, Any], seed: int) -> None:
    """So few steps are not enough for every seed: with one of eight, subset keeps a dead head."""
    course = {"steps": 150, "tune": ALONE, "gate_rate": 0.1, "seed": seed, **options}
    found = hc.prune(planted, Imitation(planted), choose=method, keep=hc.Budget(heads=1), **course)
    assert [str(head) for head in found.mask.kept] == [CRUCIAL]
    if options.get("pipelined"):
        assert found.record.parts.training["gates"].trained == "gates only"


def test_a_fixed_factor_closes_what_is_dead_and_says_if_all_close(planted: nn.Module) -> None:
    course = {"steps": 75, "tune": ALONE, "gate_rate": 0.2}
    found = hc.prune(planted, Imitation(planted), choose="l0", penalty=0.01, **course)
    assert [str(head) for head in found.mask.kept] == [CRUCIAL]
    assert found.record.parts.gates.settled > 0.9
    with pytest.warns(UserWarning, match="Every gate has closed"):
        none = hc.prune(planted, Imitation(planted), choose="l0", penalty=1e6, **course)
    assert not none.mask.kept


def test_soft_gates_of_test_time_become_part_of_the_weights(planted: nn.Module) -> None:
    """The authors' variant: what is saved does what the gated model did at test time."""
    course = {"steps": 30, "tune": hc.Tuning(steps=0, rate=1e-12, batch=90, chunk=90), "gate_rate": 0.05}
    live = copy.deepcopy(planted)
    found = hc.prune(planted, Imitation(planted), choose="l0", penalty=0.001, variant="voita2019-code", **course)
    gates = HardConcreteGates(live, variant="voita2019-code")
    with torch.no_grad():
        gates.logits_G.copy_(torch.tensor([found.record.parts.gates.values[str(head)] for head in gates.heads]))
    ids = torch.randint(5, 90, (3, 6), generator=torch.Generator().manual_seed(1))
    mask = dict(zip(gates.heads, gates.chosen().tolist(), strict=True))
    assert any(0 < value < 1 for value in mask.values())
    with torch.no_grad(), hc.masked(live, torch.tensor([mask[head] for head in hc.locate(live).heads])):
        expected = live(input_ids=ids).logits
        torch.testing.assert_close(found.model(input_ids=ids).logits, expected, rtol=0, atol=1e-4)
    hc.fold_gates(live, gates)
    with torch.no_grad():
        torch.testing.assert_close(hc.remove(live, gates.mask())(input_ids=ids).logits, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("variant", ["default", "voita2019-code"])
@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_folded_weights_compute_what_the_gates_did(architecture: str, variant: str) -> None:
    model, ids = zoo.build(architecture), torch.arange(5, 17).reshape(2, 6)
    with hc.gated(model, variant=variant) as gates, torch.no_grad():
        gates.logits_G.copy_(torch.linspace(-4, 4, len(gates.heads)))
        gated = model(input_ids=ids).logits
    assert 0 < gates.mask().numbers().sum() < len(gates.heads), "some are closed"
    hc.fold_gates(model, gates)
    with torch.no_grad():
        torch.testing.assert_close(model(input_ids=ids).logits, gated)
        torch.testing.assert_close(hc.remove(model, gates.mask())(input_ids=ids).logits, gated, rtol=1e-4, atol=1e-5)


def test_gates_are_not_folded_beside_an_adapter(llama: nn.Module) -> None:
    peft = pytest.importorskip("peft")
    wrapped = peft.get_peft_model(llama, peft.LoraConfig(target_modules=["o_proj"], init_lora_weights=False)).eval()
    gates, before = HardConcreteGates(wrapped, variant="voita2019-code"), weights(wrapped)
    for fold in (hc.fold_gates, check_foldable):
        with pytest.raises(UsageError, match=r"decoder\.0 cannot be folded.*adapter \(PEFT\).*merge_and_unload"):
            fold(wrapped, gates)
    assert all(torch.equal(before[name], value) for name, value in weights(wrapped).items())


def test_layers_with_one_weight_are_folded_once_if_their_gates_agree(llama: nn.Module) -> None:
    first, second = (layer.self_attn for layer in llama.model.layers[:2])
    second.o_proj.weight = first.o_proj.weight
    gates, before, ids = HardConcreteGates(llama, variant="voita2019-code"), weights(llama), torch.arange(5, 11)[None]
    with torch.no_grad():
        gates.logits_G.copy_(torch.linspace(-2, 2, len(gates.heads)))
    for fold in (hc.fold_gates, check_foldable):
        with pytest.raises(UsageError, match=r"decoder\.0 and decoder\.1 cannot be folded.*the same output projection"):
            fold(llama, gates)
    assert all(torch.equal(before[name], value) for name, value in weights(llama).items())
    with hc.gated(llama, gates=gates), torch.no_grad():
        gates.logits_G.fill_(0.5)
        gated = llama(input_ids=ids).logits
    hc.fold_gates(llama, gates)
    with torch.no_grad():
        torch.testing.assert_close(llama(input_ids=ids).logits, gated)


def test_the_pipeline_keeps_the_weights_of_closed_heads(bert: nn.Module) -> None:
    gates, before = HardConcreteGates(bert, variant="voita2019-code"), weights(bert)
    with torch.no_grad():
        gates.logits_G.fill_(-4)
    fold_open_gates(bert, gates)
    assert all(torch.equal(before[name], value) for name, value in weights(bert).items())


def test_open_gates_are_part_of_the_weights_already(planted: nn.Module) -> None:
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
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_interruptions_change_nothing(
    model: Any, tokenizer: Any, tmp_path: Path, method: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped three times at random steps, in both parts: the same gates, the same weights, the same log."""
    from headcount.training import loop

    monkeypatch.setattr(loop, "LOG_EVERY", 1)
    train, draw = task("train", tokenizer), random.Random(seed)
    options = {**SHORT, "steps": 10, "tune": tuning(6), "keep": hc.Budget(heads=4), "kinds": ("encoder",)}
    whole = hc.prune(model, train, choose=method, folder=tmp_path / "whole", **options)
    stops = [("gates", draw.randint(2, 7)), ("gates", draw.randint(8, 9)), ("tuning", draw.randint(2, 5))]

    def stop(part: str, step: int, of: int) -> None:
        if stops and stops[0][0] in part and step >= stops[0][1]:
            stops.pop(0)
            raise Interrupted

    for _ in range(3):
        seconds = draw.choice([0.0, 0.02, 100.0])
        with pytest.raises(Interrupted):
            hc.prune(model, train, choose=method, folder=tmp_path / "i", progress=stop, save_seconds=seconds, **options)
    found = hc.prune(model, train, choose=method, folder=tmp_path / "i", progress=stop, **options)
    assert not stops
    assert found.mask == whole.mask
    assert found.record.parts.gates == whole.record.parts.gates
    left, right = found.model.state_dict(), whole.model.state_dict()
    assert all(torch.equal(left[name], value) for name, value in right.items())
    lines = Log(tmp_path / "i" / "gates" / "metrics.jsonl").lines()
    assert [line["step"] for line in lines if "gates" in line] == list(range(1, 11))
    assert set(lines[0]["gates"]) == {str(head) for head in hc.locate(model).heads if head.kind == "encoder"}


@pytest.fixture
def saved(model: Any, tokenizer: Any, tmp_path: Path) -> Path:
    return hc.save(model, tmp_path / "model", tokenizer=tokenizer)


def test_a_folder_is_begun_once_and_gone_on_with(saved: Path, tokenizer: Any, tmp_path: Path) -> None:
    train, dev = task("train", tokenizer), task("dev", tokenizer)

    def run(**change: Any) -> Any:
        place = tmp_path / "small", Saving(str(saved))
        return prune_in_folder(pipeline(**change), hc.load(saved), Data(train, measure=dev), *place)

    record = run()
    assert None not in astuple(record.parts.quality)
    assert record.parts.quality.after.low <= record.parts.quality.after.value
    small = hc.load(tmp_path / "small")
    assert count(hc.locate(small).mask(), "encoder") == 4
    assert hc.HeadGrid.from_json((tmp_path / "small" / "gates.json").read_text()).kinds == ("encoder",)
    assert not list((tmp_path / "small").rglob("*.bin"))
    assert run().signature.time == record.signature.time, "finished: not done again"
    with pytest.raises(UsageError, match="other settings"):
        run(seed=3)
    with pytest.raises(UsageError, match="also in the training data"):
        prune_in_folder(
            pipeline(), hc.load(saved), Data(train, measure=train), tmp_path / "o", Saving(str(saved))
        )  # fmt: skip
    assert not (tmp_path / "o").exists()


def test_gates_of_the_user_stay(saved: Path, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, data = tmp_path / "small", Data(task("train", tokenizer), measure=task("dev", tokenizer))

    def writing(*arguments: Any) -> Any:
        (out / "gates.json").write_text("mine")
        return run(*arguments)

    monkeypatch.setattr("headcount.pruning.folder.run", writing)
    prune_in_folder(pipeline(), hc.load(saved), data, out, Saving(str(saved)))
    assert (out / "gates.json.old").read_text() == "mine"
    assert hc.HeadGrid.from_json((out / "gates.json").read_text()).kinds == ("encoder",)


def test_what_was_learned_is_kept_when_something_goes_wrong_later(
    saved: Path, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Data(task("train", tokenizer))
    arguments = (pipeline(tune=0, steps=6), hc.load(saved), data, tmp_path / "small", Saving(str(saved)))

    with monkeypatch.context() as patch:
        patch.setattr("headcount.pruning.run.remove", hc.remove)
        patch.setattr("headcount.surgery.verify.Expectation.compare", lambda *_: ({}, {"logits": "logits: far."}))
        with pytest.raises(VerificationError, match=r"logits: far\..*--no-verify to save it") as caught:
            prune_in_folder(*arguments)
    assert count(hc.locate(caught.value.model).mask(), "encoder") == 4
    reports: list[Any] = []
    prune_in_folder(*arguments, Execution(verify=False, progress=lambda *report: reports.append(report)))
    assert not reports, "the gates had learned already"


def test_a_sweep_has_a_model_for_each_factor_and_is_shared(saved: Path, tokenizer: Any, tmp_path: Path) -> None:
    from headcount import locks

    pipelines = {f"{value:g}": pipeline(tune=0, keep=None, penalty=value) for value in (0.0, 5.0)}

    def run() -> Any:
        data = Data(task("train", tokenizer))
        return sweep(pipelines, hc.load(saved), data, tmp_path / "s", Saving(str(saved)))

    with locks.alone(tmp_path / "s" / ".5.claim") as mine:
        assert mine
        record = run()
        assert record.parts.elsewhere == ("5",)
        assert not (tmp_path / "s" / "record.json").exists()
    record = run()
    assert record.parts.elsewhere == ()
    assert list(record.parts.sweep) == ["0", "5"]
    kept = {factor: model.kept_by_kind["encoder"] for factor, model in record.parts.sweep.items()}
    assert kept["0"] > kept["5"]
    assert (tmp_path / "s" / "5" / "config.json").is_file()
    assert (tmp_path / "s" / "record.json").is_file()


def test_the_summary_of_a_sweep_keeps_the_models_of_earlier_commands(
    saved: Path, tokenizer: Any, tmp_path: Path
) -> None:
    data, out = Data(task("train", tokenizer)), tmp_path / "s"

    def swept(*values: float, steps: int = 2) -> Any:
        pipelines = {f"{value:g}": pipeline(tune=0, keep=None, penalty=value, steps=steps) for value in values}
        return sweep(pipelines, hc.load(saved), data, out, Saving(str(saved)))

    first = swept(0.0, 5.0)
    second = swept(5.0, 7.0)
    assert list(second.parts.sweep) == ["0", "5", "7"]
    assert second.parts.sweep["0"] == first.parts.sweep["0"]
    assert Record.load(out / "record.json").parts == second.parts
    with pytest.raises(FolderError, match=r"/0 was made with other settings .* another folder"):
        swept(8.0, 9.0, steps=3)
    assert not (out / "8").exists(), "refused before any work"
    shutil.rmtree(out / "0")
    assert list(swept(5.0, 7.0).parts.sweep) == ["5", "7"], "its model is gone"


def test_who_is_done_last_sums_a_shared_sweep_up(saved: Path, tokenizer: Any, tmp_path: Path) -> None:
    """Another process is at the first factor, and done while this one is at the second."""
    from headcount import locks

    other = contextlib.ExitStack()
    assert other.enter_context(locks.alone(tmp_path / "s" / ".0.claim"))
    pipelines = {f"{value:g}": pipeline(tune=0, keep=None, penalty=value, steps=20) for value in (0.0, 5.0)}
    execution = Execution(progress=lambda *_: other.close())
    data = Data(task("train", tokenizer))
    record = sweep(pipelines, hc.load(saved), data, tmp_path / "s", Saving(str(saved)), execution)
    assert list(record.parts.sweep) == ["0", "5"]
    assert (tmp_path / "s" / "record.json").is_file()


def test_from_random_weights_everything_is_trained(model: Any, tokenizer: Any) -> None:
    options = {**SHORT, "steps": 4, "tune": tuning(0, tuner="scratch"), "keep": "encoder=6"}
    found = hc.prune(model, task("train", tokenizer), choose="l0", seed=5, **options)
    name = "model.decoder.layers.0.fc1.weight"
    assert found.record.parts.training["gates"].trained == "all weights"
    assert not torch.allclose(found.model.state_dict()[name], model.state_dict()[name], atol=0.05)


def test_from_random_weights_training_is_ordinary_and_fine_tuning_after_it_is_not(model: Any, tokenizer: Any) -> None:
    scratch = tuning(4, tuner="scratch", rate=None, warmup=None)
    options = {**SHORT, "steps": 8, "tune": scratch, "keep": hc.Budget(heads=6)}
    course = hc.prune(model, task("train", tokenizer), choose="subset", **options).record.parts.training
    assert course["gates"].rate == pytest.approx(3e-3 * (96 / 32) ** 0.5)
    assert course["gates"].warmup == 3
    assert course["tuning"].rate == course["gates"].rate > 0
    assert course["tuning"].warmup == 1


def test_training_from_random_weights_is_as_long_as_training() -> None:
    chooser, keep = chooser_of("l0"), hc.Budget(heads=4)
    usual, scratch = Pipeline(chooser, keep), Pipeline(chooser, keep, tuning=hc.Tuning(tuner="scratch"))
    steps = gate_steps(None, scratch)
    assert usual.tuning is not None
    assert scratch.tuning is not None
    assert (gate_steps(None, usual), usual.tuning.steps) == (150, 1050)
    assert steps + (scratch.tuning.steps or 0) == PRESETS["tiny"].recipe.steps
    recipe = ordinary_recipe(scratch.tuning, steps, None, falls=False, seed=0)
    assert (recipe.warmup, recipe.rate, recipe.cooldown) == (PRESETS["tiny"].post_norm.warmup, None, 0)
    assert adapting_recipe(scratch.tuning, 800, 1e-3, falls=True, seed=0).warmup < 50


# wrong input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keep": hc.Budget(heads=13), "kinds": ("encoder",)}, "keeps 13 heads, but there are only 12"),
        ({"keep": {"encoder": hc.Budget(heads=40)}}, "only 12"),
        ({"keep": hc.Budget(heads=2), "kinds": ("vision",)}, "no vision heads"),
        ({"keep": {"encoder": hc.Budget(heads=2)}, "kinds": ("cross",)}, "give only one"),
        ({"keep": hc.Budget(heads=2), "penalty": 0.1}, "either"),
        ({}, "either"),
        ({"penalty": -1.0}, "0 or more"),
        ({"keep": hc.Budget(heads=2), "variant": "papr"}, "Did you mean 'paper'"),
        ({"keep": hc.Budget(heads=2), "steps": -1}, "0 or more"),
        ({"keep": hc.Budget(heads=2), "kinds": "encoder"}, "kinds must be a list"),
    ],
)
def test_wrong_input_to_l0(model: Any, tokenizer: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        hc.prune(model, task("train", tokenizer), choose="l0", **{**SHORT, **change})


@pytest.mark.parametrize("tune", [0, 3])
def test_nothing_to_train_is_an_error(model: Any, tokenizer: Any, tune: int) -> None:
    model.requires_grad_(False)
    options = {**SHORT, "steps": 3, "tune": tuning(tune), "keep": hc.Budget(heads=4), "kinds": ("encoder",)}
    with pytest.raises(UsageError, match="nothing to train"):
        hc.prune(model, task("train", tokenizer), choose="l0", **options)


def test_a_task_that_cannot_be_trained_on(bert: nn.Module) -> None:
    given = hc.task.of([{"x": torch.zeros(1)}], nll=lambda _, batch: batch["x"])
    with pytest.raises(UsageError, match="has no training objective"):
        hc.prune(bert, given, choose="l0", keep=hc.Budget(heads=1))
    with pytest.raises(UsageError, match=r"needs (a|one) budget \(--keep\)"):
        hc.prune(bert, given, choose="subset")
    with pytest.raises(UsageError, match=r"needs (a|one) budget \(--keep\)"):
        hc.prune(bert, given, choose="gradient", keep={"encoder": hc.Budget(heads=1)})


# the factor


def drive(worth: np.ndarray, keep: int, *, scale: float, variant: str) -> tuple[int, float]:
    """Gates on made-up heads, each worth so much loss: what rank decides at the end, the share of worth kept."""
    model = zoo.build("bert")
    gates = HardConcreteGates(model, variant=variant)
    penalty = Penalty(gates, steps=300, keep=keep)
    optimizer = torch.optim.Adam(penalty.parameters(), lr=penalty.rate, betas=(0.9, 0.98))
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


_WORTHS = [(1, 1.0), (3, 1.0), (6, 1.0), (9, 1.0), (3, 1e3), (6, 1e-3)]


@pytest.mark.parametrize(
    ("keep", "scale", "variant"),
    [
        *((*case, "default") for case in _WORTHS),
        (3, 1e3, "voita2019-code"),
        (6, 1e-3, "voita2019-code"),
        *(pytest.param(*case, "voita2019-code", marks=pytest.mark.slow) for case in _WORTHS[:4]),
    ],
)
def test_the_factor_finds_the_heads_of_most_worth_whatever_the_scale_of_the_loss(
    keep: int, scale: float, variant: str
) -> None:
    worth = np.exp(np.random.default_rng(keep).normal(size=12) * 1.5) * 0.003
    by_rank, share = drive(worth, keep, scale=scale, variant=variant)
    assert by_rank <= 1
    assert share > 0.9
