"""Shared by all tests: quiet libraries, no hub, one thread.

Imports are inside: the process that hands out the tests reads this file too, and would load torch before the others
start.
"""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from torch import nn

    from headcount.heads import HeadGrid
    from headcount.record.results.inspect import Cost

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
gc.disable()  # until all tests are imported, with the million objects of torch and transformers


@pytest.fixture(scope="session", autouse=True)
def _quiet() -> None:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # what was imported is not searched for garbage again and again
    gc.set_threshold(10_000)  # a model has thousands of objects: 700 would mean a search for garbage with each
    gc.enable()


def _built(architecture: str) -> nn.Module:
    import zoo

    return zoo.build(architecture)


_COSTS: dict[Any, Cost] = {}


@pytest.fixture
def unverified(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of other things: what `prune` removes is not compared with the masked model.

    Costs of models with weights of the same shapes are counted once. Both are a third of the time of small models.
    """
    from headcount.surgery.cost import cost
    from headcount.surgery.remove import remove

    def removed(model: nn.Module, mask: HeadGrid, *, verify: bool, **options: Any) -> nn.Module:
        return remove(model, mask, verify=False, **options)

    def counted(model: nn.Module, *, length: int) -> Cost:
        shapes = (type(model), length, *((name, p.shape, p.dtype) for name, p in model.named_parameters()))
        if shapes not in _COSTS:
            _COSTS[shapes] = cost(model, length=length)
        return _COSTS[shapes]

    monkeypatch.setattr("headcount.pruning.run.remove", removed)
    monkeypatch.setattr("headcount.pruning.run.exercise", lambda _: None)
    monkeypatch.setattr("headcount.pruning.run.cost", counted)


@pytest.fixture
def bert() -> nn.Module:
    return _built("bert")


@pytest.fixture
def marian() -> nn.Module:
    return _built("marian")


@pytest.fixture
def llama() -> nn.Module:
    return _built("llama")
