"""Gates in Hugging Face's Trainer: they learn, the weights learn, nothing stays attached."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from datasets import Dataset
from torch import nn
from transformers import Trainer, TrainingArguments

import headcount as hc
from behaviour import hooks


def test_gates_learn_in_the_trainer(bert: nn.Module, tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 90, (64, 6), generator=generator)
    data = Dataset.from_dict({"input_ids": ids.tolist(), "labels": (ids[:, 0] % 2).tolist()})
    callback = hc.GateCallback(keep=5, rate=0.3)
    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=30, per_device_train_batch_size=8, use_cpu=True, report_to=[],
        save_strategy="no", logging_steps=10, disable_tqdm=True, gradient_accumulation_steps=2,
    )  # fmt: skip
    before = bert.state_dict()["bert.encoder.layer.0.attention.self.query.weight"].clone()
    trainer = Trainer(bert, arguments, train_dataset=data, callbacks=[callback])
    trainer.train()
    assert not hooks(bert)
    assert not torch.equal(before, bert.state_dict()["bert.encoder.layer.0.attention.self.query.weight"])
    assert len(callback.mask().kept) == 5
    assert any("gates_open" in line for line in trainer.state.log_history)
    assert len(hc.locate(hc.remove(bert, callback.mask())).heads) == 5


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("load_best_model_at_end", "set it to False"),
        ("fp16", "bf16 or full precision"),
        ("world_size", "single process"),
        ("n_gpu", "single process"),
    ],
)
def test_what_the_trainer_cannot_do_with_gates(bert: nn.Module, argument: str, message: str) -> None:
    arguments = type("Arguments", (), {argument: 2})()
    state = type("State", (), {"max_steps": 3, "global_step": 0})()
    with pytest.raises(hc.HeadcountError, match=message):
        hc.GateCallback(penalty=0.1).on_train_begin(arguments, state, None, model=bert)
    assert not hooks(bert)


def test_a_mask_of_gates_that_have_not_learned(bert: nn.Module) -> None:
    with pytest.raises(hc.HeadcountError, match="not trained yet"):
        hc.GateCallback(keep=5).mask()


def test_attached_gates_go_with_the_training(bert: nn.Module) -> None:
    callback = hc.GateCallback(penalty=0.1)
    state = type("State", (), {"max_steps": 3, "global_step": 0})()
    callback.on_train_begin(None, state, None, model=bert)
    assert hooks(bert)
    callback.on_train_end(None, state, None)
    assert not hooks(bert)
    with pytest.raises(hc.HeadcountError, match="either"):
        hc.GateCallback().on_train_begin(None, state, None, model=bert)
    assert not hooks(bert)


def test_a_training_that_broke_off_can_be_cleared_away(bert: nn.Module) -> None:
    callback = hc.GateCallback(penalty=0.1)
    state = type("State", (), {"max_steps": 3, "global_step": 0})()
    callback.on_train_begin(None, state, None, model=bert)
    callback.close()
    assert not hooks(bert)
    state.global_step = 2
    with pytest.raises(hc.HeadcountError, match="does not hold the gates"):
        callback.on_train_begin(None, state, None, model=bert)
    assert not hooks(bert)
