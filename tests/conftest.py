"""Shared by all tests: quiet libraries, no hub, one thread.

Imports are inside: the process that hands out the tests reads this file too, and would load torch before the others
start.
"""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from torch import nn

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@pytest.fixture(scope="session", autouse=True)
def _quiet() -> None:
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # the million objects of torch and transformers are not searched for garbage again and again
    gc.set_threshold(10_000)  # a model has thousands of objects: 700 would mean a search for garbage with each


def _built(architecture: str) -> nn.Module:
    import zoo

    return zoo.build(architecture)


@pytest.fixture
def bert() -> nn.Module:
    return _built("bert")


@pytest.fixture
def marian() -> nn.Module:
    return _built("marian")


@pytest.fixture
def llama() -> nn.Module:
    return _built("llama")
