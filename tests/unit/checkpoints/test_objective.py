"""What the class of a checkpoint says of its task."""

from __future__ import annotations

from pathlib import Path

import pytest

import zoo
from headcount.checkpoints.objective import objective
from headcount.errors import CheckpointError

TASKS = {
    "bert": "classification",
    "roberta": "masked-language-modelling",
    "modernbert": "masked-language-modelling",
    "xlm-roberta": None,
    "electra": None,
    "gpt2": "language-modelling",
    "llama": "language-modelling",
    "t5": "translation",
    "bart": "translation",
    "marian": "translation",
    "whisper": None,
    "vit": None,
}


@pytest.mark.parametrize("architecture", TASKS)
def test_the_class_says_the_task(architecture: str, tmp_path: Path) -> None:
    zoo.build(architecture).config.save_pretrained(tmp_path)
    assert objective(str(tmp_path)).task == TASKS[architecture]


@pytest.mark.parametrize(
    ("architecture", "saved", "task"),
    [
        ("bert", "BertForPreTraining", "masked-language-modelling"),
        ("electra", "ElectraForPreTraining", None),  # finds replaced tokens
        ("bart", "BartModel", "translation"),  # its output layer is its embedding
        ("llama", "LlamaModel", None),
        ("bert", None, None),
    ],
)
def test_base_models_and_old_names(architecture: str, saved: str | None, task: str | None, tmp_path: Path) -> None:
    config = zoo.build(architecture).config
    config.architectures = [saved] if saved else None
    config.save_pretrained(tmp_path)
    assert objective(str(tmp_path)) == (saved or "", task)


def test_a_folder_that_is_not_there() -> None:
    with pytest.raises(CheckpointError, match="There is no folder"):
        objective("/no/such/model")
