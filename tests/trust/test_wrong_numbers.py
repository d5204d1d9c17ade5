"""Ways to get a wrong number: for each, headcount refuses, warns, or is right."""

from __future__ import annotations

import random
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import headcount as hc
import zoo
from headcount.errors import ModelError, UsageError
from headcount.scores import pieces
from tokens import sentences, word_tokenizer

TESTS = Path(__file__).parent.parent
# What happens, and the test that holds it: here, or elsewhere under tests/.
WAYS = {
    "train mode": ("right", "test_train_mode_and_dropout_change_nothing"),
    "dropout": ("right", "test_train_mode_and_dropout_change_nothing"),
    "half precision": ("right", "test_half_precision_moves_scores_by_its_rounding"),
    "left and right padding": (
        "right", "contracts/test_every_decoder.py::test_other_scores_do_not_depend_on_the_side_of_padding",
    ),
    "batch of 1 against 32": ("right", "test_a_batch_of_32_gives_what_32_batches_give"),
    "gradient checkpointing": ("right", "test_gradient_checkpointing_changes_nothing"),
    "frozen weights": ("right", "test_frozen_weights_change_nothing"),
    "tied layers": ("right", "test_a_head_of_tied_layers_is_one_head"),
    "a mask from another model": ("refuses", "unit/probes/test_masks.py::test_masks_of_other_models"),
    "weights changed while a score is interrupted": ("refuses", "test_a_score_of_other_weights_is_not_resumed"),
    "tokenizer changed while a score is interrupted": ("refuses", "test_a_score_of_other_tokens_is_not_resumed"),
    "weights changed between score and prune": ("right", "test_pruning_scores_the_weights_it_prunes"),
    "another tokenizer": ("refuses", "test_a_tokenizer_with_more_tokens_than_the_model_is_refused"),
    "texts longer than the model": (
        "refuses",
        "unit/tasks/test_tasks.py::test_a_text_longer_than_the_positions_of_a_model_is_refused_with_the_limit",
    ),
    "truncated texts": (
        "warns", "cli/test_translation_commands.py::test_a_sentence_longer_than_the_model_is_cut_with_a_warning",
    ),
    "class names that the model does not know": (
        "refuses", "unit/studies/test_workload.py::test_class_names_need_a_model_that_names_its_classes",
    ),
    "nothing to predict": ("refuses", "unit/scores/test_scores.py::test_texts_without_predictions_are_refused"),
    "two threads on one model": ("refuses", "unit/probes/test_masks.py::test_two_threads_do_not_mask_one_model"),
    "duplicated examples": ("right", "unit/corpora/test_source.py::test_halves_share_nothing_and_leave_nothing_out"),
    "one class only": ("warns", "test_one_class_only_is_warned_of"),
    "NaN or infinity in activations": ("refuses", "test_activations_that_are_no_numbers_are_refused"),
    "a model that ignores its attention mask": ("warns", "test_a_model_that_ignores_its_attention_mask_is_warned_of"),
    "rotary positions scaled by the longest text of a batch": (
        "warns", "unit/tasks/test_rotary_positions.py::test_texts_that_depend_on_a_longer_one_are_counted",
    ),
    "wrong task for the model": ("refuses", "test_a_task_that_the_model_is_not_for_is_refused"),
    "data order": ("right", "test_the_order_of_the_data_changes_nothing"),
    "shuffled batches": (
        "refuses", "unit/tasks/test_tasks.py::test_batches_that_change_from_one_reading_to_the_next_are_refused",
    ),
    "a loss against the other examples of a batch": (
        "right", "unit/scores/test_ablation.py::test_a_loss_against_the_other_examples_of_a_batch",
    ),
    "a loss without gradients": ("refuses", "unit/scores/test_scores.py::test_a_loss_without_gradients_is_refused"),
    "another model of the same name in a report": (
        "right", "unit/report/test_joined.py::test_records_of_other_weights_under_the_same_name_are_of_another_model",
    ),
    "number of threads": ("right", "test_the_number_of_threads_changes_nothing_but_rounding"),
    "number of processes": ("right", "unit/scores/test_pieces.py::test_two_processes_give_the_scores_of_one"),
}  # fmt: skip
TEXTS = sentences(33)
LABELS = [number % 2 for number in range(33)]
ROUNDING = 1e-5  # of float32, relative to the largest score


def a_task(texts: list[str] = TEXTS, labels: list[int] = LABELS, **options: Any) -> Any:
    return hc.task("classification", texts=texts, labels=labels, tokenizer=word_tokenizer(), **options)


def gradient(model: nn.Module, task: Any = None) -> np.ndarray:
    return hc.score("gradient", model, task or a_task(), normalize=False).numbers()


def assert_close(numbers: np.ndarray, expected: np.ndarray, tolerance: float = ROUNDING) -> None:
    np.testing.assert_allclose(numbers, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.parametrize("way", WAYS)
def test_every_way_has_a_test(way: str) -> None:
    file, _, name = WAYS[way][1].rpartition("::")
    path = TESTS / file if file else Path(__file__)
    assert f"def {name}(" in path.read_text(encoding="utf-8")


def test_the_page_lists_every_way() -> None:
    page = (TESTS.parent / "docs/results/wrong-numbers.md").read_text(encoding="utf-8")
    assert [way for way, (end, _) in WAYS.items() if not re.search(rf"^\| {way} \| {end}", page, re.MULTILINE)] == []


def test_train_mode_and_dropout_change_nothing(bert: nn.Module) -> None:
    expected, quality = gradient(bert), a_task().quality(bert).value
    for module in bert.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.9
    bert.train()
    assert np.array_equal(gradient(bert), expected)
    assert a_task().quality(bert).value == quality
    assert all(module.training for module in bert.modules())


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float16, 3e-3), (torch.bfloat16, 2e-2)])
def test_half_precision_moves_scores_by_its_rounding(dtype: torch.dtype, tolerance: float) -> None:
    half, whole = zoo.build("bert", dtype=dtype), zoo.build("bert", dtype=dtype).float()
    assert_close(gradient(half), gradient(whole), tolerance)


def test_a_batch_of_32_gives_what_32_batches_give(bert: nn.Module) -> None:
    alone, together = a_task(batch_size=1), a_task(batch_size=32)
    assert_close(gradient(bert, together), gradient(bert, alone))
    assert_close(hc.score("ablation", bert, together).numbers(), hc.score("ablation", bert, alone).numbers())
    assert together.quality(bert).value == alone.quality(bert).value


def test_gradient_checkpointing_changes_nothing(bert: nn.Module) -> None:
    expected = gradient(bert)
    bert.gradient_checkpointing_enable()
    bert.train()
    assert np.array_equal(gradient(bert), expected)


def test_frozen_weights_change_nothing(bert: nn.Module) -> None:
    expected = gradient(bert)
    bert.requires_grad_(False)
    assert np.array_equal(gradient(bert), expected)
    assert not any(parameter.requires_grad for parameter in bert.parameters())


def test_a_head_of_tied_layers_is_one_head() -> None:
    """ALBERT runs the same layer three times: its head has one score, the slope of all three runs at once."""
    model = zoo.build("albert", dtype=torch.float64)
    tokens, step = torch.randint(3, 99, (1, 8), generator=torch.Generator().manual_seed(0)), 1e-6

    def loss(module: nn.Module, batch: Any) -> torch.Tensor:
        return module(**batch)[0].pow(2).flatten(1).mean(-1)

    task = hc.task.of([{"input_ids": tokens}], nll=loss)
    scores = hc.score("gradient", model, task, normalize=False)
    assert len(scores) == 4
    sides = []
    for sign in (1, -1):
        mask = torch.ones(4, dtype=torch.float64)
        mask[2] += sign * step
        with hc.masked(model, mask), torch.no_grad():
            sides.append(float(loss(model, {"input_ids": tokens})))
    assert scores["encoder.0.2"] == pytest.approx(abs(sides[0] - sides[1]) / (2 * step), rel=1e-4)


def test_a_score_of_other_weights_is_not_resumed(
    bert: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "SECONDS", 0.0)

    def stop(part: str, done: int, of: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hc.score("gradient", bert, a_task(batch_size=8), folder=tmp_path, progress=stop)
    change(bert)
    with pytest.raises(UsageError, match=r"begun with other settings.*weights"):
        hc.score("gradient", bert, a_task(batch_size=8), folder=tmp_path)


def test_a_score_of_other_tokens_is_not_resumed(
    bert: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same texts, read by a tokenizer that adds special tokens."""
    monkeypatch.setattr(pieces, "SECONDS", 0.0)

    def stop(part: str, done: int, of: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hc.score("gradient", bert, a_task(batch_size=8), folder=tmp_path, progress=stop)
    framed = hc.task("classification", texts=TEXTS, labels=LABELS, tokenizer=word_tokenizer(framed=True), batch_size=8)
    with pytest.raises(UsageError, match=r"begun with other settings.*tokens"):
        hc.score("gradient", bert, framed, folder=tmp_path)


def test_pruning_scores_the_weights_it_prunes(bert: nn.Module) -> None:
    before = gradient(bert)
    change(bert)
    assert not np.array_equal(gradient(bert), before)
    pruned = hc.prune(bert, a_task(), keep=hc.Budget(heads=6), choose="gradient")
    assert pruned.mask == hc.select(hc.score("gradient", bert, a_task()), hc.Budget(heads=6))


def change(model: nn.Module) -> None:
    """Another model in the same place."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.flip(0))


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(bert: nn.Module, marian: nn.Module) -> None:
    large, texts = word_tokenizer(500), ["w450 w3", "w4 w5 w6"]
    task = hc.task("classification", texts=texts, labels=[0, 1], tokenizer=large)
    translation = hc.task("translation", source=texts, target=["w4", "w5"], tokenizer=large, metric="loss")
    for measure in (
        lambda: task.quality(bert),
        lambda: hc.score("gradient", bert, task),
        lambda: hc.roles(bert, texts, tokenizer=large),
        lambda: translation.quality(marian),
    ):
        with pytest.raises(UsageError, match=r"produces token 450, but .* has only 99 embeddings.*another model"):
            measure()


@pytest.mark.parametrize("metric", ["accuracy", "f1", "matthews"])
def test_one_class_only_is_warned_of(metric: str) -> None:
    with pytest.warns(UserWarning, match="All 33 texts have the label 1"):
        a_task(labels=[1] * 33, metric=metric)


def test_classes_with_few_texts_are_warned_of_if_their_mean_f1_is_measured(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.warns(UserWarning, match="33 texts have 17 different labels: the mean F1"):
        a_task(labels=[number // 2 for number in range(33)], metric="f1")
    recwarn.clear()
    a_task(labels=[number // 2 for number in range(33)])
    a_task(labels=[number // 3 for number in range(33)], metric="f1")
    assert not [warning for warning in recwarn if "mean F1" in str(warning.message)]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_activations_that_are_no_numbers_are_refused(bert: Any, value: float) -> None:
    with torch.no_grad():
        bert.bert.encoder.layer[1].attention.self.value.weight[0, 0] = value
    for name in ("gradient", "ablation", "confidence"):
        with pytest.raises(ModelError, match="NaN or infinite"):
            hc.score(name, bert, a_task())
    for metric in ("accuracy", "f1"):
        with pytest.raises(ModelError, match="NaN or infinite"):
            a_task(metric=metric).quality(bert)
    with pytest.raises(ModelError, match=r"attention weights at encoder\.2.*NaN or infinite"):
        hc.roles(bert, TEXTS, tokenizer=word_tokenizer())
    with pytest.raises(ModelError, match="NaN or infinite"):
        hc.prune(bert, a_task(), keep=hc.Budget(heads=6), choose="greedy")


@pytest.mark.parametrize("architecture", ["llama", "marian", "roberta"])
def test_losses_that_are_no_numbers_are_refused(architecture: str) -> None:
    model, texts = zoo.build(architecture), TEXTS[:3]
    with torch.no_grad():
        next(module for module in model.modules() if isinstance(module, nn.Linear)).weight[0, 0] = float("nan")
    tokenizer = word_tokenizer(mask="w4")
    task = {
        "llama": lambda: hc.task("language-modelling", texts=texts, tokenizer=tokenizer),
        "marian": lambda: hc.task("translation", source=texts, target=texts, tokenizer=tokenizer),
        "roberta": lambda: hc.task("masked-language-modelling", texts=texts, tokenizer=tokenizer),
    }[architecture]()
    with pytest.raises(ModelError, match="NaN or infinite"):
        task.quality(model)


def test_a_model_that_ignores_its_attention_mask_is_warned_of(bert: nn.Module) -> None:
    def ignore(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        return args, {**kwargs, "attention_mask": torch.ones_like(kwargs["attention_mask"])}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient(bert)
    bert.register_forward_pre_hook(ignore, with_kwargs=True)
    for measure in (lambda: gradient(bert), lambda: a_task().quality(bert)):
        with pytest.warns(UserWarning, match="ignores its attention mask.*batch_size=1"):
            measure()


@pytest.mark.parametrize(
    ("architecture", "task", "message"),
    [
        ("bert", "language-modelling", "attends in both directions"),
        ("roberta", "language-modelling", "attends in both directions"),
        ("llama", "masked-language-modelling", "cannot be measured by masked"),
        ("bert", "masked-language-modelling", "needs an answer for each token.*gives one answer for each text"),
        ("llama", "classification", "needs one answer for each text.*gives an answer for each token"),
        ("bert", "translation", "needs an encoder-decoder"),
    ],
)
def test_a_task_that_the_model_is_not_for_is_refused(architecture: str, task: str, message: str) -> None:
    texts = TEXTS[:4]
    data = {
        "classification": {"texts": texts, "labels": LABELS[:4]},
        "translation": {"source": texts, "target": texts, "metric": "loss"},
    }.get(task, {"texts": texts})
    measured = hc.task(task, **data, tokenizer=word_tokenizer(mask="w4"))
    with pytest.raises(UsageError, match=message):
        measured.quality(zoo.build(architecture))


def test_the_order_of_the_data_changes_nothing(bert: nn.Module) -> None:
    rows = random.Random(0).sample(range(33), 33)
    shuffled = a_task([TEXTS[row] for row in rows], [LABELS[row] for row in rows])
    assert_close(gradient(bert, shuffled), gradient(bert))
    assert_close(hc.score("ablation", bert, shuffled).numbers(), hc.score("ablation", bert, a_task()).numbers())


def test_the_number_of_threads_changes_nothing_but_rounding(bert: nn.Module) -> None:
    expected, threads = gradient(bert), torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert_close(gradient(bert), expected)
    finally:
        torch.set_num_threads(threads)
