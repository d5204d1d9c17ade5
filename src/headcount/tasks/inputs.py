"""Inputs: the tokenizer and the configuration that work in a folder was begun with.

Neither is in the hashes of weights and data, and each changes the numbers.
"""

from __future__ import annotations

from pathlib import Path

from torch import nn

from headcount import journal
from headcount.sites.fingerprint import config_hash
from headcount.tasks.task import Task, token_hash

_TOKENS, _CONFIGURATION = "tokens.json", "configuration.json"
FILES = (_TOKENS, _CONFIGURATION)


def claim_inputs(folder: Path, model: nn.Module, task: Task | None) -> None:
    """Write the hashes of tokenizer and configuration, or raise if the work in the folder was begun with others."""
    journal.claim(folder, _TOKENS, {"tokens": token_hash(task)})
    writes = task is not None and task.writes
    journal.claim(folder, _CONFIGURATION, {"configuration": config_hash(model, writes=writes)})
