"""The fingerprint of a model's weights: what makes a number traceable to one model."""

from __future__ import annotations

import hashlib

import torch
from torch import nn


def weight_hash(model: nn.Module) -> str:
    """A hash of every parameter and saved buffer: names, types, shapes and bytes."""
    digest = hashlib.blake2b(digest_size=20)
    for name, tensor in sorted(model.state_dict().items()):
        if not isinstance(tensor, torch.Tensor):  # extra state of quantised modules
            continue
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        if not tensor.is_meta and tensor.numel():
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
