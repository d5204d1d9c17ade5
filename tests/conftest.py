"""Shared by all tests: quiet libraries, no hub, one thread."""

from __future__ import annotations

import gc
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch
import transformers
from torch import nn

import zoo


@pytest.fixture(scope="session", autouse=True)
def _quiet() -> None:
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # the million objects of torch and transformers are not searched for garbage again and again


@pytest.fixture
def bert() -> nn.Module:
    return zoo.build("bert")


@pytest.fixture
def marian() -> nn.Module:
    return zoo.build("marian")


@pytest.fixture
def llama() -> nn.Module:
    return zoo.build("llama")
