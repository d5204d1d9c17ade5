"""Spill: storage for intermediate values, in memory while there is room, then on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.utils import _pytree as trees

ROOM = 2**30  # bytes


class Spill:
    """Nested values with tensors, by key. Everything is deleted after the block."""

    def __init__(self, room: int = ROOM) -> None:
        """room: bytes of tensors to hold in memory."""
        self._room = room
        self._near: dict[Hashable, tuple[Any, int]] = {}
        self._far: dict[Hashable, tuple[Path, list[Any], Any]] = {}
        self._used = 0
        self._written = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @property
    def on_disk(self) -> int:
        """Number of values that are on disk now."""
        return len(self._far)

    def put(self, key: Hashable, value: object) -> None:
        """Store a value, replacing an earlier one."""
        self.drop(key)
        leaves, form = trees.tree_flatten(value)
        size = sum(leaf.nbytes for leaf in leaves if isinstance(leaf, Tensor))
        if self._used + size <= self._room:
            self._near[key] = value, size
            self._used += size
            return
        tensors = {str(index): leaf for index, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
        path = self._path()
        save_file({name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}, path)
        rest = [leaf.device if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self._far[key] = path, rest, form

    def get(self, key: Hashable) -> Any:
        if key in self._near:
            return self._near[key][0]
        path, rest, form = self._far[key]
        tensors = load_file(path)
        leaves = [
            tensors[str(index)].to(leaf) if isinstance(leaf, torch.device) else leaf for index, leaf in enumerate(rest)
        ]
        return trees.tree_unflatten(leaves, form)

    def drop(self, key: Hashable) -> None:
        """Delete a value, if it exists."""
        if key in self._near:
            self._used -= self._near.pop(key)[1]
        elif key in self._far:
            self._far.pop(key)[0].unlink()

    def _path(self) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="headcount-")
        self._written += 1
        return Path(self._folder.name) / f"{self._written}.safetensors"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._near.clear()
        self._far.clear()
        if self._folder is not None:
            self._folder.cleanup()
