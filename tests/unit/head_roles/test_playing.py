"""A head replaced by its role: the same as attention built by hand, and nothing where the head plays it already."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from transformers import AttentionInterface, BertConfig, BertModel, PreTrainedTokenizerFast
from transformers.integrations.sdpa_attention import sdpa_attention_forward

import headcount as hc
import zoo
from behaviour import hooks, weights
from headcount.corpora.alignment import pieces, pieces_of_words
from headcount.corpora.frequencies import Frequencies, count_tokens
from headcount.corpora.tree import Tree
from headcount.errors import UnknownName, UsageError
from headcount.sites.inputs import example_batch
from planted import tokenizer, trees
from tokens import word_tokenizer

HEAD = "encoder.1.2"
TREES = trees(20)
FREQUENCIES = count_tokens([tree.text for tree in TREES], tokenizer(), source="test")
COMMON = 5


@pytest.fixture
def bert() -> nn.Module:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=99, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=128, initializer_range=0.5,
    )  # fmt: skip
    return BertModel(config).eval()


def batch(count: int = 3) -> Any:
    return tokenizer()([tree.text for tree in TREES[:count]], padding=True, return_tensors="pt")


# What a role says of one sentence, by hand: the keys of each query, by place.
Says = Callable[[Tree, list[int]], dict[int, list[int]]]


def positional(offset: int) -> Says:
    def says(tree: Tree, ids: list[int]) -> dict[int, list[int]]:
        inside = range(1, len(ids) - 1)  # between [CLS] and [SEP]
        return {place: [place + offset] for place in inside if place + offset in inside}

    return says


def subject(tree: Tree, ids: list[int]) -> dict[int, list[int]]:
    words = pieces_of_words(tree.spans, pieces(tokenizer(), tree.text).spans)
    keys: dict[int, list[int]] = {}
    for arc in tree.arcs("nsubj"):
        for place in words[arc.head]:
            keys.setdefault(place, []).extend(words[arc.dependent])
    return keys


def rarest(tree: Tree, ids: list[int]) -> dict[int, list[int]]:
    inside = list(range(1, len(ids) - 1))
    lowest = min(FREQUENCIES.count(ids[place]) for place in inside)
    targets = [place for place in inside if FREQUENCIES.count(ids[place]) == lowest]
    if min(FREQUENCIES.rank(ids[place]) for place in targets) <= COMMON:
        return {}
    return dict.fromkeys(inside, targets)


CASES: dict[str, Says] = {
    "positional -1": positional(-1),
    "positional +2": positional(2),
    "syntactic nsubj v->s": subject,
    "rare rarest": rarest,
}


@contextmanager
def by_hand(model: Any, says: Says) -> Iterator[None]:
    """Layer 1 computes attention in loops; its head 2 looks where the role says, and elsewhere as it would."""
    attention, inputs = model.encoder.layer[1].attention.self, []
    watching = model.register_forward_pre_hook(lambda _, __, named: inputs.append(named), with_kwargs=True)
    usual = attention.forward

    def forward(states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, None]:
        ids_BT, mask_BT = inputs[-1]["input_ids"], inputs[-1]["attention_mask"]
        query, key, value = (getattr(attention, name)(states) for name in ("query", "key", "value"))
        context = torch.zeros_like(states)
        for row in range(len(states)):
            length = int(mask_BT[row].sum())
            said = says(TREES[row], ids_BT[row, :length].tolist())
            for head in range(4):
                cut = slice(16 * head, 16 * head + 16)
                for place in range(states.shape[1]):
                    scores = torch.stack([query[row, place, cut] @ key[row, k, cut] / 4 for k in range(length)])
                    weight = scores.softmax(0)
                    if head == 2 and place in said:
                        weight = torch.zeros(length)
                        for target in said[place]:
                            weight[target] += 1 / len(said[place])
                    context[row, place, cut] = weight @ value[row, :length, cut]
        return context, None

    attention.forward = forward
    try:
        yield
    finally:
        attention.forward = usual
        watching.remove()


def arguments(part: str) -> dict[str, Any]:
    return {
        "tokenizer": tokenizer(),
        "common": COMMON,
        **({"trees": TREES} if part.startswith("syntactic") else {}),
        **({"frequencies": FREQUENCIES} if part.startswith("rare") else {}),
    }


def states(model: nn.Module) -> Tensor:
    """Of real tokens."""
    with torch.no_grad():
        return model(**batch()).last_hidden_state[batch()["attention_mask"].bool()]


@pytest.mark.parametrize("part", CASES)
def test_a_played_role_is_attention_built_by_hand(bert: nn.Module, part: str) -> None:
    before, attached, parameters = states(bert), hooks(bert), weights(bert)
    with by_hand(bert, CASES[part]):
        expected = states(bert)
        with hc.played(bert, {HEAD: part}, **arguments(part)):
            same = states(bert)  # identity: the head does already what it is told to
    with hc.played(bert, {HEAD: part}, **arguments(part)):
        found = states(bert)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(same, expected, rtol=1e-5, atol=1e-6)
    assert (found - before).abs().max() > 1e-2, "the role changes what the head does"
    assert torch.equal(states(bert), before)
    assert hooks(bert) == attached
    assert all(torch.equal(value, parameters[name]) for name, value in bert.state_dict().items())


def test_padding_on_either_side_changes_nothing(bert: nn.Module) -> None:
    model = zoo.build("llama")
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    padded = torch.tensor([[0, 0, 0, 5, 6, 7, 8, 9]])
    mask, positions = (padded > 0).long(), torch.tensor([[0, 0, 0, 0, 1, 2, 3, 4]])
    with torch.no_grad(), hc.played(model, {"decoder.0.1": "positional -2", "decoder.2.3": "positional -1"}):
        alone = model(input_ids=ids, use_cache=False).logits
        behind = model(input_ids=padded, attention_mask=mask, position_ids=positions, use_cache=False).logits[:, 3:]
    torch.testing.assert_close(alone, behind, rtol=1e-4, atol=1e-4)


def test_a_model_that_does_not_run_its_base_model() -> None:
    """OPT runs the decoder within it."""
    model, ids = zoo.build("opt"), torch.tensor([[5, 6, 7, 8]])
    projected: list[Tensor] = []
    attention = model.model.decoder.layers[1].self_attn  # type: ignore[union-attr, index]
    attention.v_proj.register_forward_hook(lambda *passed: projected.append(passed[2]))  # type: ignore[union-attr]
    with torch.no_grad(), hc.played(model, {"decoder.1.2": "positional -1"}), hc.tapped(model, "outputs") as taps:
        model(input_ids=ids, use_cache=False)
    torch.testing.assert_close(taps["decoder.1"][0, 1:, 2], projected[0][0, :-1, 32:48])


def test_zero_elsewhere_leaves_only_the_role(bert: nn.Module) -> None:
    """A role that says nothing of any query, with nothing elsewhere, is the head switched off."""
    bare = [Tree("a b", ("a", "b"), ((0, 1), (2, 3)), (-1, 0), ("root", "dep"))]
    inputs = tokenizer()(["a b"], return_tensors="pt")
    with torch.no_grad():
        with hc.masked(bert, hc.locate(bert).mask(off=HEAD)):
            off = bert(**inputs).last_hidden_state
        part = {HEAD: "syntactic nsubj v->s"}
        with hc.played(bert, part, tokenizer=tokenizer(), trees=bare, elsewhere="zero"):
            zero = bert(**inputs).last_hidden_state
        with hc.played(bert, part, tokenizer=tokenizer(), trees=bare):
            own = bert(**inputs).last_hidden_state
        plain = bert(**inputs).last_hidden_state
    torch.testing.assert_close(zero, off)
    assert torch.equal(own, plain)


def test_generation_reads_the_source_once(bert: nn.Module) -> None:
    """Encoder heads of a translation model can be played while it writes; decoder heads only without a cache."""
    model = zoo.build("marian")
    source = {"input_ids": torch.tensor([[5, 6, 7, 8, 2]]), "attention_mask": torch.ones(1, 5, dtype=torch.long)}
    settings = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False}
    with hc.played(model, {"encoder.0.0": "positional -1"}):
        cached = model.generate(**source, **settings)
        assert torch.equal(cached, model.generate(**source, **settings, use_cache=False))
    with pytest.raises(UsageError, match="use_cache=False"), hc.played(model, {"decoder.0.0": "positional -1"}):
        model.generate(**source, **settings)
    with hc.played(model, {"decoder.0.0": "positional -1"}):
        model.generate(**source, **settings, use_cache=False)


def test_a_pattern_names_all_its_heads(bert: nn.Module) -> None:
    each = {f"encoder.0.{index}": "positional -1" for index in range(4)}
    with hc.played(bert, each):
        expected = bert(**batch()).last_hidden_state
    with hc.played(bert, {"encoder.0.*": "positional -1"}):
        assert torch.equal(bert(**batch()).last_hidden_state, expected)


def test_wrong_parts_are_refused(bert: nn.Module) -> None:
    wrong: list[tuple[dict[str, str], dict[str, Any], type[Exception], str]] = [
        ({HEAD: "delimiter end"}, {}, UsageError, "only positional, rare, syntactic"),
        ({HEAD: "positional -9"}, {}, UnknownName, "label of the role positional"),
        ({HEAD: "syntactic nsubj v->s"}, {}, UsageError, "needs the dependency trees"),
        ({HEAD: "rare rarest"}, {}, UsageError, "give frequencies"),
        ({HEAD: "positional -1"}, {"trees": TREES}, UsageError, "also need tokenizer="),
        ({HEAD: "positional -1", "encoder.*": "positional +1"}, {}, UsageError, "two roles in parts"),
        ({HEAD: "positional -1"}, {"elsewhere": "mean"}, UnknownName, "elsewhere"),
        ({"encoder.7.0": "positional -1"}, {}, hc.HeadcountError, "no head encoder.7.0"),
    ]
    for parts, options, error, match in wrong:
        with pytest.raises(error, match=match), hc.played(bert, parts, **options):
            bert(**batch())
    with (
        pytest.raises(UsageError, match="none of the 1 sentences"),
        hc.played(bert, {HEAD: "syntactic nsubj v->s"}, trees=TREES[:1], tokenizer=tokenizer()),
    ):
        bert(**batch())


def test_roles_without_known_special_tokens_warn(bert: nn.Module) -> None:
    """Without a tokenizer, [CLS] and [SEP] would be queries and targets."""
    with (
        pytest.warns(UserWarning, match=r"names no special tokens besides padding.*tokenizer="),
        hc.played(bert, {HEAD: "positional -1"}),
    ):
        pass


def test_a_vocabulary_with_gaps(bert: nn.Module) -> None:
    """The largest id is larger than the number of tokens."""
    numbers = [*range(3, 40), *range(60, 90)]
    inner = Tokenizer(models.WordLevel({"<pad>": 0, "<s>": 1, "</s>": 2, **{f"w{i}": i for i in numbers}}, "w3"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    marks = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
    texts = [f"w{number} w89 w88 w70" for number in numbers]
    seen = count_tokens(texts, marks)
    inputs = marks(texts, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        before = bert(**inputs).last_hidden_state
        with hc.played(bert, {HEAD: "rare rarest"}, tokenizer=marks, frequencies=seen, common=1):
            assert not torch.equal(bert(**inputs).last_hidden_state, before)


WINDOWS = {  # a head of a layer with a window, and one of a layer without
    "gemma2": ("decoder.0.0", "decoder.1.0"),
    "gpt_neo": ("decoder.1.0", "decoder.0.0"),
    "modernbert": ("encoder.1.0", "encoder.0.0"),
}


def looking_at_the_first(model: nn.Module, head: str) -> Tensor:
    """The output of a head for the last token, if it attends to the first one, or to nothing."""
    ids_BT = torch.arange(10, 40)[None]
    counts = Frequencies({token: 1 if token == 10 else 9 for token in range(99)}, source="test")
    played = hc.played(
        model, {head: "rare rarest"}, tokenizer=word_tokenizer(), frequencies=counts, common=0, elsewhere="zero"
    )
    with played, hc.tapped(model, "outputs") as taps, torch.no_grad():
        model(input_ids=ids_BT)
    return taps[head.rpartition(".")[0]][0, -1, 0]


@pytest.mark.parametrize("architecture", WINDOWS)
def test_a_played_head_does_not_look_outside_its_window(architecture: str) -> None:
    model, (local, anywhere) = zoo.build(architecture), WINDOWS[architecture]
    assert not looking_at_the_first(model, local).any()
    assert looking_at_the_first(model, anywhere).any()


def test_a_window_that_the_attention_backend_does_not_show_is_refused() -> None:
    """As that of flash attention, which gets no mask."""
    AttentionInterface.register("without_mask", sdpa_attention_forward)
    model = zoo.build("gemma3")
    model.set_attn_implementation("without_mask")
    with pytest.raises(UsageError, match="window of 8 tokens"):
        looking_at_the_first(model, "decoder.0.0")


def test_the_attention_of_a_replaced_head_is_read_with_a_warning(bert: nn.Module) -> None:
    """It is the one that the model computes, which the role does not use."""
    with hc.played(bert, {HEAD: "positional -1"}, tokenizer=tokenizer()):
        with pytest.warns(UserWarning, match="not as the role uses it"), hc.tapped(bert, "attention"):
            pass
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with hc.tapped(bert, "outputs"):
                pass
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with hc.tapped(bert, "attention"):
            pass


@pytest.mark.parametrize("architecture", ["vit", "wav2vec2", "whisper"])
def test_heads_over_images_and_sound_have_no_roles_to_play(architecture: str) -> None:
    model = zoo.build(architecture)
    with (
        pytest.raises(UsageError, match="only if the model is run with input_ids"),
        hc.played(model, {"encoder.0.0": "positional -1"}),
    ):
        model(**example_batch(model))


def test_a_head_of_clip_that_sees_an_image_has_no_role_to_play() -> None:
    model = zoo.build("clip")
    with pytest.raises(UsageError, match="no tokens of a text"), hc.played(model, {"vision.0.0": "positional -1"}):
        pass
    with hc.played(model, {"text.0.0": "positional -1"}):
        model(**example_batch(model))
