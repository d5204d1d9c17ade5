"""given: the heads to remove are known. Cut, count, save, and write down what was done."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from headcount import processes
from headcount.checkpoints.card import write_card
from headcount.checkpoints.companions import copy_companions
from headcount.checkpoints.save import check_target, save
from headcount.checkpoints.stock import stock_form
from headcount.errors import VerificationError
from headcount.heads import HeadGrid
from headcount.methods.cutting import Cutting, Progress, cut_out
from headcount.record import Record, Signature
from headcount.sites.fingerprint import weight_hash
from headcount.tasks.task import Task


def prune_given(
    model: PreTrainedModel,
    mask: HeadGrid,
    folder: Path,
    *,
    source: str,
    revision: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    verify: bool = True,
    standalone: bool = False,
    overwrite: bool = False,
    length: int = 128,
    compensate: str = "none",
    add_bias: bool = False,
    task: Task | None = None,
    progress: Progress = lambda *_: None,
) -> Record:
    """Cut the heads that are 0 in `mask` out of the model itself and save it with its tokenizer files and record.json.

    source: where the model came from, a folder or hub id; its tokenizer and processor files come along.
    compensate, add_bias: as in `remove`, calibrated on `task`.
    """
    check_target(folder, overwrite)  # before the work, not after it
    signature = Signature(model=source, weights=weight_hash(model), arguments=arguments or {})
    cutting = Cutting(compensate, add_bias, verify=verify, inplace=True, length=length)
    small, parts = cut_out(model, mask, task, cutting, progress=progress)
    record = Record("prune", signature, parts)
    save_pruned(small, folder, record, source=source, revision=revision, standalone=standalone, overwrite=overwrite)
    return record


def save_pruned(
    small: Any,
    folder: Path,
    record: Record,
    *,
    source: str,
    revision: str | None = None,
    standalone: bool = False,
    overwrite: bool = False,
) -> None:
    """Save a pruned model with its record and the tokenizer files of the model it was made from.

    Of several processes one saves. A model that verification found wrong goes to a folder beside the given one, which
    the VerificationError names.
    """
    fault = record.parts.get("fault")
    target, folder = folder, unverified_folder(folder) if fault else folder
    stock = stock_form(small) is not None
    record.parts["loaded_by"] = "stock" if stock else "standalone" if standalone else "headcount"

    def beside(fresh: Path) -> None:
        copy_companions(source, fresh, revision=revision)
        record.save(fresh / "record.json")
        write_card(fresh, record, source=source, revision=revision)

    if processes.is_main():
        save(small, folder, standalone=standalone, overwrite=overwrite, beside=beside)
    if fault:
        raise VerificationError(
            fault,
            f"The pruned model is kept in {folder}, not in {target}: hc.load({str(folder)!r}) loads it. To save it "
            "without comparing: verify=False (--no-verify).",
            model=small,
        )


def unverified_folder(folder: Path) -> Path:
    """DIR.unverified, or with a number where that is taken."""
    endings = itertools.chain(["unverified"], (f"unverified.{number}" for number in itertools.count(2)))
    folders = (folder.with_name(f"{folder.name}.{ending}") for ending in endings)
    return next(path for path in folders if not path.exists())
