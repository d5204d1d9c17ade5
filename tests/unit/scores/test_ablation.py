"""Ablation: fast equals the obvious loop, planted heads are found, statistics are those of the definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import nn

import headcount as hc
import laboratory
import zoo
from behaviour import hooks
from headcount.errors import UnknownHead, UsageError
from headcount.scores.ablation import effects
from headcount.scores.variants import Variant, all_but_one, measure, one_out
from headcount.statistics import holm
from headcount.tasks.translation.decoding import decode
from headcount.training.loop import Loop
from tokens import sentences, word_tokenizer


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """A translation model that learned a little: it ends its sentences and is often unsure."""
    from dataclasses import replace

    from accelerate import Accelerator

    folder = tmp_path_factory.mktemp("translator")
    tokenizer = laboratory.vocabulary(folder / "v")
    model = laboratory.model(tokenizer)
    pairs = laboratory.parallel()["train"]
    task = hc.task("translation", source=list(pairs["source"]), target=list(pairs["target"]), tokenizer=tokenizer)
    recipe = replace(laboratory.RECIPE, epochs=None, steps=150, batch=300, chunk=300, factor=2.0, warmup=50)
    Loop(
        model, task, recipe, folder, 32, judge=lambda _: {"loss": 0.0}, keep=lambda _: None,
        accelerator=Accelerator(cpu=True),
    ).run()  # fmt: skip
    return model.eval(), tokenizer


def translation(translator: tuple[Any, Any], **options: Any) -> Any:
    dev = laboratory.parallel(held_out=20)["dev"]
    return hc.task(
        "translation", source=list(dev["source"]), target=list(dev["target"]), tokenizer=translator[1], **options
    )


def classification(**options: Any) -> Any:
    return hc.task(
        "classification", texts=sentences(21), labels=[i % 2 for i in range(21)], tokenizer=word_tokenizer(), **options
    )


def language(**options: Any) -> Any:
    return hc.task("language-modelling", texts=sentences(13), tokenizer=word_tokenizer(), **options)


def both(model: nn.Module, task: Any, variants: list[Variant]) -> tuple[Any, Any]:
    return measure(model, task, variants), measure(model, task, variants, fast=False)


@pytest.mark.parametrize(
    ("architecture", "batch_size"),
    [
        ("bert", 1),
        ("bert", 4),
        ("bert", 50),
        ("distilbert", 4),
        pytest.param("distilbert", 1, marks=pytest.mark.slow),
        pytest.param("distilbert", 50, marks=pytest.mark.slow),
    ],
)
def test_fast_equals_naive_on_classifiers(architecture: str, batch_size: int) -> None:
    model = zoo.build(architecture)
    task = classification(batch_size=batch_size, metric="accuracy")
    fast, naive = both(model, task, one_out(model))
    np.testing.assert_array_equal(fast.variants, naive.variants)
    np.testing.assert_array_equal(fast.base, naive.base)


@pytest.mark.parametrize("architecture", ["gpt2", "llama", "opt", "gpt_neox"])
def test_fast_equals_naive_on_language_models(architecture: str) -> None:
    model = zoo.build(architecture)
    fast, naive = both(model, language(batch_size=4), one_out(model))
    np.testing.assert_allclose(fast.variants, naive.variants, rtol=1e-6)
    assert not np.allclose(fast.variants[0], fast.base, rtol=1e-9)


def test_fast_equals_naive_on_translation_loss(translator: Any) -> None:
    task = translation(translator, metric="loss", tokens=150)
    fast, naive = both(translator[0], task, [*one_out(translator[0]), *all_but_one(translator[0])])
    np.testing.assert_allclose(fast.variants, naive.variants, rtol=1e-6)


@pytest.mark.parametrize(("tokens", "every"), [(250, 8), pytest.param(4096, 4, marks=pytest.mark.slow)])
def test_fast_writes_what_generate_writes(translator: Any, tokens: int, every: int) -> None:
    """Token for token, for heads alone and for heads off; small batches take long, so with fewer heads."""
    model, _ = translator
    task = translation(translator, tokens=tokens)
    fast, naive = both(model, task, [*one_out(model)[::every], *all_but_one(model)[:: 2 * every]])
    np.testing.assert_array_equal(fast.variants, naive.variants)
    np.testing.assert_array_equal(fast.base, naive.base)
    assert (fast.variants != fast.base).any(), "the heads change what is written"


def test_drafts_become_the_greedy_output(translator: Any) -> None:
    """Also from drafts that are nonsense, and for outputs that never end."""
    model, tokenizer = translator
    task = translation(translator)
    rows = np.arange(len(task))
    expected = task.written(model)
    assert improved(task.drafted(model, rows, [[5, 6, 7]] * len(rows)), model) == _in_one_batch(task, model)
    assert improved(task.drafted(model, rows, expected), model) == _in_one_batch(task, model)
    endless = laboratory.model(tokenizer)
    with torch.no_grad():
        endless.final_logits_bias[0, tokenizer.eos_token_id] = -1e9
    found = improved(task.drafted(endless, rows, expected), endless)
    assert found == _in_one_batch(task, endless)
    assert [len(ids) for ids in found] == [2 * length + 10 for length in task.source_ids.lengths]


@pytest.mark.parametrize("architecture", ["mbart", "plbart", "t5gemma"])
def test_drafts_begin_with_the_token_that_generation_begins_with(architecture: str) -> None:
    """Also if the config names none, or the decoder has a config of its own."""
    model, tokenizer = zoo.without_start_token(architecture), word_tokenizer(framed=True)
    data = {"source": sentences(3, shortest=5), "target": sentences(3, seed=1), "tokenizer": tokenizer}
    task = hc.task("translation", **data)
    fast, naive = both(model, task, one_out(model)[:3])
    assert np.array_equal(fast.base, naive.base)
    assert np.array_equal(fast.variants, naive.variants)


def test_generation_without_a_token_to_begin_with_is_refused_in_one_line() -> None:
    model: Any = zoo.build("t5")
    model.generation_config.decoder_start_token_id = None
    data = {"source": sentences(3), "target": sentences(3, seed=1), "tokenizer": word_tokenizer(framed=True)}
    with pytest.raises(UsageError, match=r"decoder_start_token_id, or bos_token_id in its place, is None\. Set"):
        hc.score("ablation", model, hc.task("translation", **data))


def improved(drafts: Any, model: Any) -> list[list[int]]:
    with torch.no_grad():
        while len(drafts.pending_P):
            drafts.improve(model)
    return drafts.outputs


def _in_one_batch(task: Any, model: Any) -> list[list[int]]:
    padding, end = task.tokenizer.pad_token_id, task.tokenizer.eos_token_id
    ids = decode(model, task.source_ids, padding=padding, tokens=10**6)
    return [row[1 : row.index(end) + 1] if end in row else row[1:] for row in ids]


def test_nothing_is_left_behind(bert: nn.Module) -> None:
    before, forwards = hooks(bert), [module.__dict__.get("forward") for module in bert.modules()]
    measure(bert, classification(), one_out(bert))
    task = hc.task.of([{"input_ids": torch.ones(2, 3, dtype=torch.long)}], nll=_fails)
    with pytest.raises(RuntimeError, match="on purpose"):
        measure(bert, task, one_out(bert))
    assert hooks(bert) == before
    assert [module.__dict__.get("forward") for module in bert.modules()] == forwards


def _fails(model: nn.Module, batch: Any) -> torch.Tensor:
    model(**batch)
    raise RuntimeError("on purpose")


def test_batches_of_ones_own(bert: nn.Module) -> None:
    ids = torch.randint(3, 90, (6, 5), generator=torch.Generator().manual_seed(0))
    batches = [
        {"input_ids": ids[:4], "labels": torch.zeros(4).long()},
        {"input_ids": ids[4:], "labels": torch.ones(2).long()},
    ]

    def nll(model: nn.Module, batch: Any) -> torch.Tensor:
        return nn.functional.cross_entropy(model(batch["input_ids"]).logits, batch["labels"], reduction="none")

    fast, naive = both(bert, hc.task.of(batches, nll=nll), one_out(bert))
    np.testing.assert_allclose(fast.variants, naive.variants, rtol=1e-6)


def test_a_loss_against_the_other_examples_of_a_batch(bert: nn.Module) -> None:
    """Variants in one batch would be further wrong answers; and each example's loss depends on every row."""
    ids = torch.randint(3, 90, (3, 5), generator=torch.Generator().manual_seed(0))

    def contrastive(model: nn.Module, batch: Any) -> torch.Tensor:
        texts, others = (model(batch["input_ids"].roll(places, 1)).logits for places in (0, 1))
        return nn.functional.cross_entropy(20 * texts @ others.T, torch.arange(len(texts)), reduction="none")

    task = hc.task.of([{"input_ids": ids}], nll=contrastive)
    fast, naive = both(bert, task, one_out(bert))
    np.testing.assert_allclose(fast.variants, naive.variants, rtol=1e-6)
    mask = torch.ones(12, requires_grad=True)
    with hc.masked(bert, mask):
        losses = contrastive(bert, {"input_ids": ids})
    slopes = torch.stack([torch.autograd.grad(loss, mask, retain_graph=True)[0] for loss in losses])
    scores = hc.score("gradient", bert, task, normalize=False)
    np.testing.assert_allclose(scores.numbers(), slopes.abs().mean(0).numpy(), rtol=1e-5)


def attentions(model: nn.Module, batch: Any) -> torch.Tensor:
    """Of all layers: of those that do not run the model would give none."""
    weights = model(batch["input_ids"], output_attentions=True).attentions
    return sum(torch.special.entr(weights_BHQK).sum((1, 2, 3)) for weights_BHQK in weights)


def two_runs(model: nn.Module, batch: Any) -> torch.Tensor:
    """With two wrong answers for each example, which run first."""
    ids = batch["input_ids"]
    wrong = model(torch.cat([ids.roll(1, 1), ids.roll(2, 1)])).logits[:, 0].reshape(2, -1).mean(0)
    return -nn.functional.logsigmoid(model(ids).logits[:, 0] - wrong)


@pytest.mark.parametrize("nll", [attentions, two_runs])
def test_a_loss_that_reads_more_than_the_output_of_one_run(nll: Any) -> None:
    model = zoo.build("bert")
    model.set_attn_implementation("eager")
    ids = torch.randint(3, 90, (3, 5), generator=torch.Generator().manual_seed(0))
    fast, naive = both(model, hc.task.of([{"input_ids": ids}], nll=nll), one_out(model))
    np.testing.assert_allclose(fast.variants, naive.variants, rtol=1e-5)


@pytest.mark.parametrize("part", ["attention.self.query", "intermediate.dense", ""])
def test_a_loss_that_reads_what_a_hook_keeps(bert: nn.Module, part: str) -> None:
    kept: dict[str, torch.Tensor] = {}
    layer = bert.bert.encoder.layer[1]
    layer.get_submodule(part).register_forward_hook(lambda *call: kept.update(states=call[2]))
    ids = torch.randint(3, 90, (3, 5), generator=torch.Generator().manual_seed(0))

    def nll(model: nn.Module, batch: Any) -> torch.Tensor:
        return model(batch["input_ids"]).logits[:, 0] + kept["states"].square().mean((1, 2))

    fast, naive = both(bert, hc.task.of([{"input_ids": ids}], nll=nll), one_out(bert))
    np.testing.assert_allclose(fast.variants, naive.variants, rtol=1e-5)


def test_a_hook_that_changes_a_layer_acts_once(bert: nn.Module) -> None:
    bert.bert.encoder.layer[0].register_forward_hook(lambda *call: call[2] + torch.arange(call[2].shape[-1]).cos())
    ids = torch.randint(3, 90, (3, 5), generator=torch.Generator().manual_seed(0))
    task = hc.task.of([{"input_ids": ids}], nll=lambda model, batch: model(**batch).logits[:, 0])
    fast, naive = both(bert, task, one_out(bert))
    np.testing.assert_allclose(fast.variants, naive.variants, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("architecture", ["gpt2", "llama"])
def test_layers_below_a_head_are_skipped_where_that_changes_nothing(architecture: str) -> None:
    model, runs = zoo.build(architecture), []
    texts = language(batch_size=13)
    texts.quality(model)  # tests once whether the model is causal
    lowest = next(module for module in model.modules() if isinstance(module, nn.ModuleList))[0]
    list(lowest.modules())[-1].register_forward_hook(lambda *_: runs.append(1))
    heads = [variant for variant in one_out(model) if variant.site[1] == 2]
    measure(model, texts, heads)
    assert len(runs) == 1, "the whole model"
    ids = torch.randint(3, 90, (2, 5), generator=torch.Generator().manual_seed(0))
    measure(model, hc.task.of([{"input_ids": ids}], nll=lambda m, batch: m(**batch).logits[:, 0, 0]), heads)
    assert len(runs) == 6, "once, three times for separate examples, and once before a replay of it is compared"


def test_a_dead_head_loses_nothing_and_a_crucial_one_is_found(bert: nn.Module) -> None:
    sites = hc.locate(bert)
    with torch.no_grad():
        dead = sites["encoder.0"]
        dead.output.weight[:, : dead.head_dim] = 0
        crucial = sites["encoder.1"]
        crucial.output.weight[:, -crucial.head_dim :] *= 40
    ids = torch.randint(3, 90, (30, 6), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        labels = bert(ids).logits.argmax(-1)  # what the whole model says is right

    def nll(model: nn.Module, batch: Any) -> torch.Tensor:
        return nn.functional.cross_entropy(10 * model(batch["input_ids"]).logits, batch["labels"], reduction="none")

    scores = hc.score("ablation", bert, hc.task.of([{"input_ids": ids, "labels": labels}], nll=nll))
    assert scores["encoder.0.0"] == 0.0
    assert scores.p is not None
    assert scores.p["encoder.0.0"] == 1.0
    assert str(max(scores.heads, key=lambda head: abs(scores[head]))) == f"encoder.1.{crucial.num_heads - 1}"


def test_scores_are_losses_of_the_metric(translator: Any) -> None:
    """Higher = keep, for metrics that rise and for metrics that fall; intervals the right way round."""
    model, _ = translator
    bleu, loss = (hc.score("ablation", model, translation(translator, metric=name)) for name in ("bleu", "loss"))
    for scores in (bleu, loss):
        assert scores.low is not None
        assert scores.high is not None
        assert all(
            scores.low[head] <= scores[head] + 1e-9 and scores[head] <= scores.high[head] + 1e-9 for head in scores
        )
    head = next(iter(loss))
    with hc.masked(model, hc.locate(model).mask(off=head)):
        worse = translation(translator, metric="loss").quality(model).value
    assert loss[head] == pytest.approx(worse - translation(translator, metric="loss").quality(model).value, abs=1e-6)


def test_effects_are_corrected_for_the_number_of_heads(translator: Any) -> None:
    model, _ = translator
    task = translation(translator, metric="loss")
    found = effects(task.metric, measure(model, task, one_out(model)))
    assert [effect.corrected for effect in found] == pytest.approx(holm([effect.p for effect in found]).tolist())


def test_all_but_one_covers_every_head(bert: nn.Module) -> None:
    sites = hc.locate(bert)
    variants = all_but_one(bert)
    assert len(variants) == len(sites.heads)
    assert all(len(variant.off) == sites[variant.site].num_heads - 1 for variant in variants)


def test_wrong_input(bert: nn.Module) -> None:
    with pytest.raises(UsageError, match="needs a task"):
        hc.score("ablation", bert)
    with pytest.raises(UsageError, match="no variants"):
        measure(bert, classification(), [])
    with pytest.raises(UsageError, match="no batches"):
        measure(bert, hc.task.of([], nll=_fails), one_out(bert))
    with pytest.raises(hc.HeadcountError, match="metric of classification"):
        classification(metric="bleu")


def autoencoder() -> nn.Module:
    """A model that samples in eval mode too: the patches that it does not see."""
    torch.manual_seed(0)
    config = transformers.ViTMAEConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, image_size=16, patch_size=4,
        decoder_hidden_size=32, decoder_num_hidden_layers=1, decoder_num_attention_heads=2,
        decoder_intermediate_size=64,
    )  # fmt: skip
    return transformers.ViTMAEForPreTraining(config).eval()


@pytest.mark.parametrize("name", ["ablation", "shapley", "integrated-gradients"])
def test_models_that_sample_are_compared_on_the_same_draws(name: str) -> None:
    """A dead head has no effect, whatever patches the model draws."""
    model, images = autoencoder(), torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    (site,) = [site for site in hc.locate(model) if site.name == "decoder.0"]
    with torch.no_grad():
        site.output.weight[:, : site.head_dim] = 0
    drawn: dict[bytes, set[bytes]] = {}  # masks of each batch

    def nll(model: nn.Module, batch: Any) -> torch.Tensor:
        output = model(batch["pixel_values"])
        drawn.setdefault(batch["pixel_values"].numpy().tobytes(), set()).add(output.mask.numpy().tobytes())
        wanted = model.patchify(batch["pixel_values"])
        return ((output.logits - wanted).square().mean(-1) * output.mask).sum(1)

    task = hc.task.of([{"pixel_values": part} for part in images.split(4)], nll=nll)
    options: dict[str, Any] = {"shapley": {"permutations": 2}, "integrated-gradients": {"steps": 3}}.get(name, {})
    found = hc.score(name, model, task, **options)
    assert found["decoder.0.0"] == 0 != found["decoder.0.1"]
    if name != "shapley":  # whose orders each draw anew
        assert {len(masks) for masks in drawn.values()} == {1}


def test_layers_that_share_their_attention_but_not_their_feed_forward(bert: nn.Module) -> None:
    """The shared module runs in every layer; the output of its last run is not that of the first."""
    layers = bert.bert.encoder.layer  # type: ignore[union-attr]
    for layer in layers[1:]:
        layer.attention = layers[0].attention
    task = classification()
    variants = one_out(bert)
    fast, slow = (measure(bert, task, variants, fast=fast).variants for fast in (True, False))
    np.testing.assert_array_equal(fast, slow)
    losses = hc.task.of(list(task.batches()), nll=task.nll)
    fast, slow = (measure(bert, losses, variants, fast=fast).variants for fast in (True, False))
    np.testing.assert_allclose(fast, slow, rtol=1e-5)


def test_heads_by_name(bert: nn.Module) -> None:
    found = hc.score("ablation", bert, classification(), heads=["encoder.0.1", "encoder.1.*"])
    assert [str(head) for head in found.heads[:2]] == ["encoder.0.1", "encoder.1.0"]
    with pytest.raises(UnknownHead, match=r"encoder\.0\.9"):
        hc.score("ablation", bert, classification(), heads=["encoder.0.9"])
