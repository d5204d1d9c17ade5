"""Budgets: what they count, how they are written, and that the smaller model keeps to them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers as tf
from torch import nn

import headcount as hc
import zoo
from headcount.errors import UnknownName, UsageError
from headcount.heads import HeadGrid
from headcount.selection.select import most_within, select
from headcount.surgery.price import Price, in_heads
from tokens import sentences, word_tokenizer


def labelled() -> Any:
    return hc.task("classification", texts=sentences(10), labels=[i % 2 for i in range(10)], tokenizer=word_tokenizer())


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("10", hc.Budget(heads=10)),
        ("40%", hc.Budget(share=0.4)),
        ("40%heads", hc.Budget(share=0.4)),
        ("90%params", hc.Budget(share=0.9, unit="parameters")),
        ("5Mparams", hc.Budget(parameters=5_000_000)),
        ("1.5Gflops", hc.Budget(flops=1.5e9)),
        ("75%ms", hc.Budget(share=0.75, unit="milliseconds")),
        ("12.5ms", hc.Budget(milliseconds=12.5)),
    ],
)
def test_as_written_on_the_command_line(text: str, budget: hc.Budget) -> None:
    assert hc.Budget.parse(text) == budget


@pytest.mark.parametrize("text", ["", "many", "10%%", "-3", "5apples", "%", "1.5", "1e400"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(UsageError):
        hc.Budget.parse(text)


def test_a_percentage_is_refused_as_it_was_written() -> None:
    with pytest.raises(UsageError, match=r"between 0% and 100%; got '180%flops'"):
        hc.Budget.parse("180%flops")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, UsageError, "one number"),
        ({"heads": 3, "flops": 1e9}, UsageError, "one number"),
        ({"parameters": 0}, UsageError, "above 0"),
        ({"share": 0.5, "unit": "bytes"}, UnknownName, "parameters"),
        ({"heads": 5, "unit": "flops"}, UsageError, "goes with share"),
        ({"heads": "5"}, UsageError, "heads must be a number; got '5'. Budget.parse"),
        ({"share": "50%"}, UsageError, "share must be a number; got '50%'"),
        ({"heads": float("inf")}, UsageError, "whole number"),
    ],
)
def test_wrong_budgets(given: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        hc.Budget(**given)


def test_the_largest_number_within_a_limit() -> None:
    for limit in range(12):
        assert most_within(limit, float, range(11), what="heads") == min(limit, 10)
    with pytest.raises(UsageError, match="still costs 7"):
        most_within(5, lambda number: number + 7.0, range(11), what="flops")


def test_a_price_is_what_the_pruned_model_costs(llama: nn.Module) -> None:
    """Key/value heads go with their last query head: prices are of cut models, not sums over heads."""
    sites = hc.locate(llama)
    for off in (["decoder.0.0"], ["decoder.0.0", "decoder.0.1"], ["decoder.1.*"]):
        mask = sites.mask(off=off)
        small = hc.remove(llama, mask)
        assert Price(llama, "parameters")(mask) == sum(p.numel() for p in small.parameters())
        assert Price(llama, "flops", length=16)(mask) == hc.cost(small, length=16).flops
    assert Price(llama, "milliseconds", length=8)(sites.mask()) > 0


@pytest.mark.parametrize("architecture", ["gpt2", "t5", "albert"])
def test_tied_weights_are_counted_once(architecture: str) -> None:
    """A copy on the meta device had a new parameter for each use of a tied one: too many heads were removed."""
    model = zoo.build(architecture)
    sites, whole = hc.locate(model), sum(p.numel() for p in model.parameters())
    price = Price(model, "parameters")
    assert price(sites.mask()) == whole == hc.cost(model).parameters
    off = sites.mask(off=[sites.heads[0]])
    assert price(off) == sum(p.numel() for p in hc.remove(model, off).parameters())
    assert price.limit(hc.Budget.parse("95%params")) == pytest.approx(0.95 * whole)


@pytest.mark.parametrize("unit", ["parameters", "flops"])
def test_select_keeps_as_many_heads_as_the_budget_pays_for(bert: nn.Module, unit: Any) -> None:
    scores, price = hc.score("magnitude", bert), Price(bert, unit)
    budget = hc.Budget(share=0.9, unit=unit)
    mask = select(scores, budget, price=price)
    best = sorted(scores.heads, key=lambda head: -scores[head])
    count = len(mask.kept)
    assert set(mask.kept) == set(best[:count])
    sites, limit = hc.locate(bert), 0.9 * price(hc.locate(bert).mask())
    assert price(mask) <= limit < price(sites.mask(keep=best[: count + 1]))
    with pytest.raises(UsageError, match="still costs"):
        select(scores, hc.Budget(share=0.1, unit=unit), price=price)
    with pytest.raises(UsageError, match="needs price="):
        select(scores, budget)


@pytest.mark.parametrize("method", ["gradient", "fisher", "greedy"])
def test_every_method_takes_every_budget(bert: nn.Module, method: str) -> None:
    task = labelled()
    whole = sum(p.numel() for p in bert.parameters())
    options = {"candidates": 1} if method == "greedy" else {}
    result = hc.prune(bert, task, choose=method, keep=hc.Budget(share=0.95, unit="parameters"), **options)
    small = sum(p.numel() for p in result.model.parameters())
    head = 4 * 16 * 64 + 3 * 16
    assert 0.95 * whole - head < small <= 0.95 * whole


def test_a_budget_in_heads_is_safe_whichever_heads_go(llama: nn.Module) -> None:
    budget = hc.Budget(share=0.95, unit="parameters")
    heads = in_heads(llama, budget).heads
    sites = hc.locate(llama)
    price = Price(llama, "parameters")
    for seed in range(5):
        scores = hc.score("random", llama, seed=seed)
        assert price(select(scores, hc.Budget(heads=heads))) <= 0.95 * price(sites.mask())


@pytest.fixture(scope="module")
def whisper() -> nn.Module:
    """A Whisper whose encoder reads many more positions than its decoder, so that its heads cost most."""
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in _SIZES.items()}
    config = tf.WhisperConfig(
        vocab_size=99, d_model=64, num_mel_bins=16, max_source_positions=300, max_target_positions=40, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=2, **sizes,
    )  # fmt: skip
    return tf.WhisperForConditionalGeneration(config).eval()


_SIZES = {"layers": 2, "attention_heads": 4, "ffn_dim": 96}


@pytest.mark.parametrize("kinds", [None, ("decoder", "cross")])
def test_a_budget_of_flops_is_safe_whichever_heads_go(whisper: nn.Module, kinds: tuple[str, ...] | None) -> None:
    """Heads of the same size cost more where there are more positions: those of the decoder least, and they go."""
    sites, whole = hc.locate(whisper), hc.cost(whisper).flops
    scores = hc.score("random", whisper).map(float)
    cheap_first = HeadGrid([(head, scores[head] + 10 * (head.kind != "decoder")) for head in sites.heads])
    for share in (0.98, 0.95):
        keep = in_heads(whisper, hc.Budget(share=share, unit="flops"), kinds=kinds)
        mask = select(cheap_first, keep, kinds=kinds)
        assert hc.cost(hc.remove(whisper, mask, verify=False)).flops <= share * whole


def test_savings_are_what_removal_saves(llama: nn.Module, whisper: nn.Module) -> None:
    """One head after the other, in groups that share a key/value head and in others."""
    for model, unit in ((llama, "parameters"), (llama, "flops"), (whisper, "flops")):
        sites, price = hc.locate(model), Price(model, unit, length=16)  # type: ignore[arg-type]
        savings, gone = price.savings(), []
        for head in [head for head in sites.heads if head.layer == 0][:-1]:
            before = price(sites.mask(off=gone))
            gone.append(head)
            left = [other for other in sites[head.site].head_names() if other not in gone]
            if left:  # an empty site has no bias either
                assert before - price(sites.mask(off=gone)) == savings[head]


def test_the_record_has_the_budget_and_an_excess_is_warned_of(bert: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    result = hc.prune(bert, labelled(), choose="magnitude", keep="95%flops")
    assert result.record.signature.arguments["keep"] == "95%flops"
    monkeypatch.setattr("headcount.pruning.run.in_heads", lambda *_, **__: hc.Budget(heads=12))
    with pytest.warns(UserWarning, match=r"costs [\d,]+ flops; the budget 95%flops allows [\d,]+\. Give a smaller"):
        hc.prune(bert, labelled(), choose="l0", steps=1, tune=1, keep="95%flops")


@pytest.mark.parametrize(
    ("share", "recompute"),
    [
        (0.98, False),
        (0.9, True),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((0.98, True), (0.9, False))),
    ],
)
def test_a_ranking_removes_no_more_heads_than_it_needs(whisper: nn.Module, share: float, recompute: bool) -> None:
    """Though heads of the encoder cost most, and a number of heads that is safe for all rankings is much smaller."""
    batch = {"input_features": torch.randn(2, 16, 600), "labels": torch.randint(3, 99, (2, 7))}
    task = hc.task.of([batch], nll=_nll)
    budget = hc.Budget(share=share, unit="flops")
    result = hc.prune(whisper, task, choose="gradient", keep=budget, recompute=recompute, verify=False, length=16)
    price, removed = Price(whisper, "flops", length=16), [head for head in result.mask.heads if not result.mask[head]]
    limit = price.limit(budget)
    back = [price(result.mask.replace({head: 1})) for head in removed]  # with one of the removed heads
    assert price(result.mask) <= limit < max(back)
    safe = in_heads(whisper, budget, length=16).heads
    assert safe is not None
    assert len(result.mask.kept) >= safe


def _nll(model: nn.Module, batch: Any) -> torch.Tensor:
    logits_BTV = model(**batch).logits
    return nn.functional.cross_entropy(logits_BTV.transpose(1, 2), batch["labels"], reduction="none").sum(1)


@pytest.mark.parametrize("name", ["Phi", "Granite", "Mixtral"])
def test_budgets_of_parameters_for_architectures_that_no_family_describes(name: str) -> None:
    config = getattr(tf, f"{name}Config")(
        vocab_size=99, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = getattr(tf, f"{name}ForCausalLM")(config).eval()
    assert {site.family for site in hc.locate(model)} == {"generic"}
    whole = hc.cost(model).parameters
    share = 1 - 4 * 16 * 64 / whole  # two query heads with their columns of the output
    texts = hc.task("language-modelling", texts=sentences(4), tokenizer=word_tokenizer())
    result = hc.prune(model, texts, choose="magnitude", keep=hc.Budget(share=share, unit="parameters"))
    assert share * whole - 8 * 16 * 64 < hc.cost(result.model).parameters <= share * whole


@pytest.mark.parametrize("shape", [{"rule": "uniform"}, {"multiple": 2}])
def test_a_search_with_a_shape_removes_no_more_heads_than_its_budget_needs(
    bert: nn.Module, shape: dict[str, Any]
) -> None:
    """One head after the other, the search came by no allowed number of heads, until none was left."""
    options = {"keep": "95%params", "measured": "nothing", **shape}
    searched, ranked = (hc.prune(bert, labelled(), choose=choose, **options).mask for choose in ("greedy", "magnitude"))
    assert len(searched.kept) == len(ranked.kept) > 0
