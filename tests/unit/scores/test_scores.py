"""Scores against loops over single examples and finite differences, and on planted truths."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import headcount as hc
import zoo
from behaviour import hooks, identical, weights
from headcount.errors import ModelError, UnknownName, UsageError
from headcount.scores.one_pass import mean_scores, moments
from headcount.scores.score import layer_norms, members
from headcount.sites.inputs import example_batch
from headcount.statistics import mean_ends
from tokens import byte_level_tokenizer, sentences, word_tokenizer

QUICK: dict[str, dict[str, int]] = {"shapley": {"permutations": 2}, "integrated-gradients": {"steps": 2}}


def labelled(batch_size: int, count: int = 7) -> Any:
    texts, labels = sentences(count), [i % 2 for i in range(count)]
    return hc.task("classification", texts=texts, labels=labels, tokenizer=word_tokenizer(), batch_size=batch_size)


def noise(model: nn.Module) -> Any:
    """Two batches of noise with a smooth loss per example: enough for any architecture."""
    batches = [example_batch(model, seed=seed) for seed in range(2)]

    def nll(model: nn.Module, batch: Any) -> torch.Tensor:
        output = next(value for value in model(**batch).values() if isinstance(value, torch.Tensor))
        return output.flatten(1).tanh().pow(2).sum(-1)

    return hc.task.of(batches, nll=nll)


def loop(model: nn.Module, task: Any) -> np.ndarray:
    """E_x |dL(x)/dxi_h|: one example at a time, one head at a time, by central differences of the mask."""
    sites, step, values = hc.locate(model), 1e-5, []
    with torch.no_grad():
        for batch in task.batches():
            for row in range(len(batch["input_ids"])):
                single = {name: tensor[row : row + 1] for name, tensor in batch.items()}
                slopes = []
                for place in range(len(sites.heads)):
                    sides = []
                    for sign in (1, -1):
                        mask = torch.ones(len(sites.heads), dtype=torch.float64)
                        mask[place] += sign * step
                        with hc.masked(model, mask):
                            sides.append(float(task.nll(model, single)))
                    slopes.append(abs(sides[0] - sides[1]) / (2 * step))
                values.append(slopes)
    return np.array(values)


def test_intervals_of_normalised_scores_have_the_noise_of_the_norm() -> None:
    """A head that never varies beside one that does: its share of the norm was called certain, and wrong in 90%."""
    model = zoo.build("bert")
    sites, examples, missed = hc.locate(model), 100, np.zeros(2)
    first, second, *_ = sites.heads
    truth = np.array([1.0, np.exp(0.5)]) / np.linalg.norm([1.0, np.exp(0.5)])
    random = np.random.default_rng(0)
    for _ in range(300):
        values_NH = np.zeros((examples, len(sites.heads)))
        values_NH[:, :2] = np.stack([np.ones(examples), random.lognormal(size=examples)], axis=1)
        found = mean_scores(model, moments(values_NH, examples, sites), hc.Signature(), normalize=True)
        ends = [(found.low[head], found.high[head]) for head in (first, second)]
        missed += [not low <= share <= high for (low, high), share in zip(ends, truth, strict=True)]
    assert (missed / 300 < 0.12).all()


@pytest.mark.parametrize("normalize", [pytest.param(False, marks=pytest.mark.slow), True])
def test_intervals_of_scores_reach_into_a_long_tail(normalize: bool) -> None:
    """Of 16 log-normal examples, 13 and 12% of plain t-intervals left out the truth."""
    model = zoo.build("bert")
    sites, random, missed = hc.locate(model), np.random.default_rng(0), 0.0
    size = np.exp(-np.arange(len(sites.heads)) % 4 / 2)
    truth = size * np.exp(0.5)
    truth = truth / layer_norms(sites.heads, truth) if normalize else truth
    for _ in range(400):
        values_NH = size * np.exp(0.8 * random.normal(size=(16, len(size))) + 0.6 * random.normal(size=(16, 1)))
        found = mean_scores(model, moments(values_NH, 16, sites), hc.Signature(), normalize=normalize)
        missed += ((truth < found.low.numbers()) | (truth > found.high.numbers())).mean() / 400
    assert 0.02 < missed < 0.08


def test_intervals_of_absolute_gradients_are_not_negative() -> None:
    model = zoo.build("bert")
    for normalize in (True, False):
        found = hc.score("gradient", model, noise(model), normalize=normalize)
        assert found.low is not None
        assert min(found.low.numbers()) == 0


def test_a_score_of_one_example_has_no_interval() -> None:
    model = zoo.build("bert")
    values_NH = np.arange(1.0, 1 + len(hc.locate(model).heads))[None]
    found = mean_scores(model, moments(values_NH, 1, hc.locate(model)), hc.Signature(), normalize=True)
    assert np.isnan([*found.low.numbers(), *found.high.numbers()]).all()


@pytest.mark.parametrize("architecture", ["bert", "marian", pytest.param("bart", marks=pytest.mark.slow)])
def test_gradient_against_finite_differences(architecture: str) -> None:
    model = zoo.build(architecture, dtype=torch.float64)
    task = noise(model)
    slopes_NH = loop(model, task)
    found = hc.score("gradient", model, task, normalize=False)
    fisher = hc.score("fisher", model, task)
    for site in hc.locate(model):
        places = [place for place, head in enumerate(found.heads) if head.site == site.key]
        expected = slopes_NH.mean(0)[places]
        np.testing.assert_allclose(found.numbers()[places], expected, rtol=0, atol=1e-6 * expected.max())
        error = slopes_NH.std(0, ddof=1)[places] / len(slopes_NH) ** 0.5
        cubes = stats.moment(slopes_NH[:, places], 3) / len(slopes_NH) ** 2
        for side, ends in zip((found.low, found.high), mean_ends(expected, error, cubes, len(slopes_NH)), strict=True):
            np.testing.assert_allclose(side.numbers()[places], np.maximum(ends, 0), rtol=0, atol=1e-4 * expected.max())
        squared = (slopes_NH**2).sum(0)[places]
        np.testing.assert_allclose(fisher.numbers()[places], squared, rtol=0, atol=1e-5 * squared.max())


@pytest.mark.parametrize("batch_size", [1, 3, 7])
def test_batches_and_padding_make_no_difference(bert: nn.Module, batch_size: int) -> None:
    for name in ("gradient", "fisher"):
        expected = hc.score(name, bert, labelled(1), normalize=False).numbers()
        found = hc.score(name, bert, labelled(batch_size), normalize=False).numbers()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * expected.max())


def test_tokens_against_a_loop(marian: nn.Module) -> None:
    """Sum over real positions of |context . gradient| over their number, source or target as the site has it."""
    task = noise(marian)
    found = hc.score("gradient", marian, task, granularity="token", normalize=False)
    for site in hc.locate(marian):
        total, tokens = np.zeros(4), 0
        for batch in task.batches():
            with hc.tapped(marian, "outputs") as taps:
                loss = task.nll(marian, batch).sum()
                (slope,) = torch.autograd.grad(loss, taps[site.key])
            context = taps[site.key]
            for b in range(2):
                for t in range(context.shape[1]):
                    if site.kind != "encoder" or batch["attention_mask"][b, t]:
                        total += [abs(float(context[b, t, h] @ slope[b, t, h])) for h in range(4)]
                        tokens += 1
        expected = total / tokens
        got = found.layer(*site.key)
        np.testing.assert_allclose(got.astype(float), expected, rtol=0, atol=1e-4 * expected.max())


def test_batch_granularity_cancels_where_examples_disagree(bert: nn.Module) -> None:
    per_example = hc.score("gradient", bert, labelled(7), normalize=False).numbers()
    per_batch = hc.score("gradient", bert, labelled(7), granularity="batch", normalize=False).numbers()
    assert (per_batch <= per_example + 1e-9).all()
    assert (per_batch < 0.9 * per_example).any()
    np.testing.assert_allclose(
        hc.score("gradient", bert, labelled(1), granularity="batch", normalize=False).numbers(), per_example, atol=1e-5
    )


def test_planted_heads(bert: nn.Module) -> None:
    """A head whose output goes nowhere scores exactly 0; one made crucial scores highest."""
    dense = [layer.attention.output.dense for layer in bert.bert.encoder.layer]
    with torch.no_grad():
        dense[0].weight[:, 32:48] = 0
        dense[2].weight[:, 16:32] *= 40
    for name in ("gradient", "fisher", "magnitude"):
        found = hc.score(name, bert, labelled(4), normalize=False)
        assert found["encoder.0.2"] == 0.0
        assert found.rank()["encoder.2.1"] == 1, name
        assert found.rank()["encoder.0.2"] == 12


def test_normalisation_is_by_layer_and_a_layer_of_zeros_stays_zero(bert: nn.Module) -> None:
    with torch.no_grad():
        bert.bert.encoder.layer[1].attention.output.dense.weight.zero_()
    found = hc.score("gradient", bert, labelled(4))
    norms = [float(np.linalg.norm(found.layer("encoder", layer).astype(float))) for layer in range(3)]
    assert norms == [pytest.approx(1), 0.0, pytest.approx(1)]


def test_intervals_hold_the_mean_and_shrink_with_data(bert: nn.Module) -> None:
    few, many = (hc.score("gradient", bert, labelled(16, count), normalize=False) for count in (8, 64))
    for head in few:
        assert few.low[head] <= few[head] <= few.high[head]
    widths = [np.mean(found.high.numbers() - found.low.numbers()) for found in (few, many)]
    assert widths[1] < 0.7 * widths[0]


@pytest.mark.parametrize("architecture", ["llama", "t5", "gpt2", "albert", "vit"])
def test_other_architectures(architecture: str) -> None:
    model = zoo.build(architecture)
    task = noise(model)
    for granularity in ("example", "token", "batch"):
        found = hc.score("gradient", model, task, granularity=granularity)
        assert np.isfinite(found.numbers()).all()
        assert found.numbers().min() > 0


def test_magnitudes_beside_an_adapter_are_refused(llama: nn.Module) -> None:
    peft = pytest.importorskip("peft")
    wrapped = peft.get_peft_model(llama, peft.LoraConfig(target_modules=["o_proj"], init_lora_weights=False))
    with pytest.raises(UsageError, match=r"magnitude of decoder\.0.*adapter \(PEFT\).*merge_and_unload"):
        hc.score("magnitude", wrapped)
    assert len(hc.score("magnitude", wrapped.merge_and_unload())) == len(hc.locate(llama).heads)


def test_the_model_is_left_as_it_was(bert: nn.Module) -> None:
    bert.train()
    bert.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    before, trained = weights(bert), [p.requires_grad for p in bert.parameters()]
    for name in members.names():
        hc.score(name, bert, labelled(4), **QUICK.get(name, {}))
    assert identical(weights(bert), before)
    assert [p.requires_grad for p in bert.parameters()] == trained
    assert all(p.grad is None for p in bert.parameters())
    assert bert.training
    assert hooks(bert) == 0


def test_pruned_models_are_scored_under_their_old_numbers(bert: nn.Module) -> None:
    small = hc.remove(bert, hc.locate(bert).mask(off=["encoder.0.1", "encoder.1.*"]))
    for name in members.names():
        assert hc.score(name, small, labelled(4), **QUICK.get(name, {})).heads == hc.locate(small).heads


def test_scores_say_where_they_come_from(bert: nn.Module) -> None:
    found = hc.score("gradient", bert, labelled(4))
    assert found.signature.arguments == {"score": "gradient", "granularity": "example", "normalize": True}
    assert len(found.signature.weights) == len(found.signature.data) == 40
    assert hc.score("random", bert, seed=3) == hc.score("random", bert, seed=3) != hc.score("random", bert, seed=4)
    other = copy.deepcopy(bert)
    next(other.parameters()).data.add_(1)
    assert hc.score("random", other, seed=3) != hc.score("random", bert, seed=3), "each model has its own numbers"


def test_wrong_input(bert: nn.Module) -> None:
    with pytest.raises(UsageError, match="needs a task"):
        hc.score("gradient", bert)
    with pytest.raises(UnknownName, match="Did you mean 'token'"):
        hc.score("gradient", bert, labelled(4), granularity="tokens")
    with pytest.raises(UnknownName, match="Did you mean 'gradient'"):
        hc.score("gradients", bert, labelled(4))
    with pytest.raises(UsageError, match="no batches"):
        hc.score("gradient", bert, hc.task.of([], nll=lambda *_: torch.zeros(1)))


@pytest.mark.parametrize("granularity", ["example", "batch", "token"])
def test_a_loss_without_gradients_is_refused(bert: nn.Module, granularity: str) -> None:
    batches = [{"input_ids": torch.ones(2, 3, dtype=torch.long)}]

    def detached(model: nn.Module, batch: Any) -> torch.Tensor:
        return model(**batch).logits.sum(1).detach()

    def elsewhere(model: nn.Module, batch: Any) -> torch.Tensor:
        model(**batch)
        return torch.ones(2, requires_grad=True) * 2

    for nll in (detached, elsewhere):
        with pytest.raises(UsageError, match=r"The loss has no gradient .*without torch\.no_grad, detach or item"):
            hc.score("gradient", bert, hc.task.of(batches, nll=nll), granularity=granularity)


def test_inference_mode_of_the_caller_makes_no_difference(bert: nn.Module) -> None:
    task, mask = labelled(4), hc.locate(bert).mask(off="encoder.0.1")
    with torch.inference_mode():
        inside, small = hc.score("gradient", bert, task), hc.remove(bert, mask)
    assert inside == hc.score("gradient", bert, task)
    assert hc.score("gradient", small, task) == hc.score("gradient", hc.remove(bert, mask), task)
    with torch.inference_mode():
        bert.to(torch.float64)
    with pytest.raises(ModelError, match=r"inside torch\.inference_mode"):
        hc.score("gradient", bert, task)


def test_texts_without_predictions_are_refused() -> None:
    """The loss would be 0 with every head and without, and the scores as well."""
    llama, tokenizer = zoo.build("llama"), byte_level_tokenizer()
    llama.resize_token_embeddings(320)
    task = hc.task("language-modelling", texts=["a", "b", "ab"], tokenizer=tokenizer, batch_size=2)
    assert any(value for _, value in hc.score("gradient", llama, task).items())
    with pytest.raises(UsageError, match="nothing to predict"):
        hc.score("gradient", llama, hc.task("language-modelling", texts=["a", "b"], tokenizer=tokenizer))


@pytest.mark.filterwarnings("ignore:.*are the same as others")
def test_empty_texts_are_no_sentences_of_confidence() -> None:
    """Eight texts have the interval of eight, whatever the number of empty ones, and four have none."""
    bert, texts, marks = zoo.build("bert"), sentences(8), word_tokenizer(framed=True)

    def found(count: int, empty: int) -> Any:
        labels = [0, 1] * ((count + empty) // 2)
        data = hc.task("classification", texts=texts[:count] + [""] * empty, labels=labels, tokenizer=marks)
        return hc.score("confidence", bert, data)

    plain, padded = found(8, 0), found(8, 40)
    for ends in ((plain.low, padded.low), (plain.high, padded.high)):
        np.testing.assert_allclose(*(end.numbers() for end in ends), rtol=1e-5)
    assert np.isnan(found(4, 40).low.numbers()).all()


def test_confidence_that_is_not_a_number_is_refused() -> None:
    """Eager attention of Llama takes its softmax in float32, where the mask of float64 is infinite."""
    llama = zoo.build("llama").double()
    ids = torch.arange(5, 21).reshape(2, 8)
    mask = torch.ones_like(ids)
    mask[1, :3] = 0
    batches = [{"input_ids": ids, "attention_mask": mask}]
    task = hc.task.of(batches, nll=lambda model, batch: model(**batch).logits[:, -1].square().mean(1))
    with pytest.raises(ModelError, match=r"attention weights at decoder\.0 that are NaN or infinite.*float32"):
        hc.score("confidence", llama, task)
    assert np.isfinite(hc.score("confidence", llama.float(), task).numbers()).all()


def test_special_tokens_of_a_model_of_texts_and_images_are_those_of_its_text() -> None:
    """Its config has a config for each part and names no tokens itself; without a tokenizer all tokens were words."""
    clip = zoo.build("clip")
    text, image = clip.config.text_config, clip.config.vision_config
    ids = torch.tensor(
        [[text.bos_token_id, 5, 6, 7, text.eos_token_id], [text.bos_token_id, 8, 9, 10, text.eos_token_id]]
    )
    pixels = torch.zeros(2, 3, image.image_size, image.image_size)
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "pixel_values": pixels}
    task = hc.task.of([batch], nll=lambda model, batch: model(**batch).logits_per_text.diagonal())
    known = hc.score("confidence", clip, task, specials=[text.bos_token_id, text.eos_token_id])
    found = hc.score("confidence", clip, task)
    assert found.numbers().tolist() == known.numbers().tolist()


@pytest.mark.parametrize("name", [name for name in members.names() if name not in ("magnitude", "random")])
def test_heads_that_do_not_run_have_no_score(name: str) -> None:
    """A decoder without an encoder has cross-attention that never runs; 0 would rank its heads as the least useful."""
    bart, data = zoo.idle_cross(), hc.task("language-modelling", texts=sentences(6), tokenizer=word_tokenizer())
    with pytest.warns(UserWarning, match=r"cross\.0, cross\.1 of .* did not run .* kinds=\('decoder',\)") as caught:
        found = hc.score(name, bart, data, **QUICK.get(name, {}))
    assert len([warning for warning in caught if "did not run" in str(warning.message)]) == 1
    assert np.isnan(found.of("cross").numbers()).all()
    assert np.isfinite(found.of("decoder").numbers()).all()
    with pytest.raises(UsageError, match=r"cross\.0\.0.* did not run .* kinds=\('decoder',\)"):
        hc.select(found, hc.Budget(heads=8))
    assert len(hc.select(found, hc.Budget(heads=3), kinds=("decoder",)).of("decoder").kept) == 3


@pytest.mark.parametrize("granularity", ["token", "batch"])
def test_gradients_of_heads_that_do_not_run(granularity: str) -> None:
    data = hc.task("language-modelling", texts=sentences(6), tokenizer=word_tokenizer())
    with pytest.warns(UserWarning, match="did not run"):
        found = hc.score("gradient", zoo.idle_cross(), data, granularity=granularity)
    assert np.isnan(found.of("cross").numbers()).all()
    assert np.isfinite(found.of("decoder").numbers()).all()


def test_confidence_without_known_special_tokens_warns(bert: nn.Module) -> None:
    """The config of BERT names no [CLS] and [SEP], which counted as words without a word."""
    marks, texts = word_tokenizer(framed=True), sentences(8)
    batch = dict(marks(texts, return_tensors="pt", padding=True, return_token_type_ids=False))
    task = hc.task.of([batch], nll=lambda model, batch: model(**batch).logits[:, 0])
    with pytest.warns(UserWarning, match=r"names no special tokens besides padding.*tokenizer=.*specials="):
        hc.score("confidence", bert, task)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = hc.score("confidence", bert, task, specials=marks.all_special_ids)
        labels = [0, 1] * 4
        whole = hc.task("classification", texts=texts, labels=labels, tokenizer=marks, batch_size=8)
        np.testing.assert_allclose(hc.score("confidence", bert, whole).numbers(), known.numbers(), rtol=1e-5)
        hc.score("confidence", zoo.build("vit"), noise(zoo.build("vit")))


def test_scores_are_read_from_json_as_a_grid(bert: nn.Module) -> None:
    """The JSON has no signature, without which there are no scores; the error said that it was damaged."""
    found = hc.score("magnitude", bert)
    assert type(found).from_json(found.to_json()) == hc.HeadGrid(list(found.items()))
