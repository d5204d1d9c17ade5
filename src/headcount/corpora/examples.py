"""Hashes that identify examples by their texts: the same text is the same example, in whatever file."""

from __future__ import annotations

import hashlib


def example_hash(*texts: str) -> str:
    """Hash of one example: a text, or both texts of a pair. The label is not included.

    Nor is white space around a text: some data sets have a space after every sentence, their copies have none.
    """
    return hashlib.blake2b("\x1f".join(text.strip() for text in texts).encode(), digest_size=16).hexdigest()


def in_first_half(example: str) -> bool:
    """Whether an example with this hash is in the first half of its data. Copies of a text are in the same half."""
    return int(example, 16) % 2 == 0
