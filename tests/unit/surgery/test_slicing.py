"""Slicing: the rows of heads in every layout, counted by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from headcount.surgery.slicing import fused_rows, head_rows, keep_inputs, keep_outputs


def test_rows() -> None:
    assert head_rows([0, 2], 3) == [0, 1, 2, 6, 7, 8]
    # [Q0 Q1 Q2 Q3 | K0 K1 | V0 V1], heads of 2 rows: keep queries 1 and 3, key/value head 1
    assert fused_rows("qkv", [1, 3], [1], (4, 2), 2) == [2, 3, 6, 7, 10, 11, 14, 15]
    assert fused_rows("kv", [9], [0], (4, 2), 1) == [0, 2]
    assert fused_rows("q", [], [], (4, 2), 1) == []


@pytest.mark.parametrize("bias", [True, False])
def test_linear(bias: bool) -> None:
    whole, x = nn.Linear(6, 4, bias=bias), torch.randn(3, 6)
    cut = keep_outputs(whole, [3, 1])
    torch.testing.assert_close(cut(x), whole(x)[:, [3, 1]])
    assert (cut.in_features, cut.out_features, whole.out_features) == (6, 2, 4)
    cut = keep_inputs(whole, [0, 5])
    x[:, 1:5] = 0
    torch.testing.assert_close(cut(x[:, [0, 5]]), whole(x))
    assert (cut.in_features, cut.out_features, whole.in_features) == (2, 4, 6)


def test_conv1d() -> None:
    whole, x = Conv1D(4, 6), torch.randn(3, 6)
    torch.testing.assert_close(keep_outputs(whole, [3, 1])(x), whole(x)[:, [3, 1]])
    x[:, 1:5] = 0
    cut = keep_inputs(whole, [0, 5])
    torch.testing.assert_close(cut(x[:, [0, 5]]), whole(x))
    assert (cut.nx, cut.nf) == (2, 4)


def test_number_format_and_training_are_kept() -> None:
    whole = nn.Linear(4, 4).to(torch.bfloat16)
    whole.weight.requires_grad_(False)
    cut = keep_outputs(whole, [0])
    assert cut.weight.dtype is torch.bfloat16
    assert not cut.weight.requires_grad
    assert cut.bias.requires_grad
    assert cut.weight.untyped_storage().data_ptr() != whole.weight.untyped_storage().data_ptr()
