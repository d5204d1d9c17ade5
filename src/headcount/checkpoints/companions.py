"""What stands beside the weights in a checkpoint: tokenizer and processor files, taken along as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

from transformers.utils import cached_file

_NAMES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "normalizer.json",
    "source.spm",
    "target.spm",
    "target_vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "spm.model",
    "tokenizer.model",
    "chat_template.jinja",
    "preprocessor_config.json",
    "processor_config.json",
)


def copy_companions(source: str, folder: Path, *, revision: str | None = None) -> list[str]:
    """Copy the tokenizer and processor files of a checkpoint (folder or hub id) into a folder; their names."""
    copied = []
    for name in _NAMES:
        found = cached_file(
            source,
            name,
            revision=revision,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
            _raise_exceptions_for_gated_repo=False,
        )
        if found is not None:
            shutil.copyfile(found, folder / name)
            copied.append(name)
    return copied
