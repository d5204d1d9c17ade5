"""Saving: writes a pruned model with its record and the tokenizer files of the original model."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headcount import processes
from headcount.checkpoints.card import card_name, write_card
from headcount.checkpoints.chosen_on import read_chosen_on, write_chosen_on
from headcount.checkpoints.companions import copy_companions
from headcount.checkpoints.replaced import describes
from headcount.checkpoints.save import check_target, save
from headcount.checkpoints.stock import is_stock
from headcount.errors import FolderError, VerificationError
from headcount.record import Record
from headcount.record.results.prune import Pruning
from headcount.tasks.overlap import Examples

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_RECORD = "record.json"


@dataclass(frozen=True)
class Saving:
    """Settings for saving pruned models."""

    source: str  # folder or hub id of the original model
    revision: str | None = None
    standalone: bool = False
    overwrite: bool = False
    data: str = ""  # path of the texts, for the record; empty without texts, or with those of a harness

    def check_target(self, folder: Path) -> None:
        """Raise if `save` would refuse to write, or replace a record.json of the user. Call it before long work."""
        check_target(folder, self.overwrite)
        file = folder / _RECORD
        if file.is_file() and not describes(file):
            raise FolderError(
                f"{file} is not the record of the model beside it, and that of the pruned model would replace it; "
                "move it, or give another folder."
            )

    def completed(self, small: PreTrainedModel, record: Record[Pruning]) -> Record[Pruning]:
        """The record with the source of the model, the path of the texts, and what loads the pruned model."""
        loaded_by = "stock" if is_stock(small) else "standalone" if self.standalone else "headcount"
        signature = replace(record.signature, model=self.source)
        parts = replace(record.parts, loaded_by=loaded_by)
        return replace(record, signature=signature, parts=parts).on_data(self.data)

    def save(
        self, small: PreTrainedModel, folder: Path, record: Record[Pruning], chosen_on: Sequence[Examples]
    ) -> None:
        """Save a model with its `completed` record. With several processes, only the main one writes.

        A model that failed verification is saved in another folder, which the VerificationError names. Files that the
        user has written into the folder since `check_target` stay: a result of hours is not refused for them.
        chosen_on: the examples that heads were chosen, calibrated or trained on.
        """
        fault = record.parts.fault
        target, folder = folder, unverified_folder(folder) if fault else folder

        def add_files(fresh: Path) -> None:
            copy_companions(self.source, fresh, revision=self.revision)
            write_chosen_on(fresh, [*read_chosen_on(self.source, self.revision), *chosen_on])
            record.save(fresh / _RECORD)
            write_card(fresh, record, source=self.source, revision=self.revision, name=card_name(folder))

        if processes.is_main():
            save(
                small, folder, standalone=self.standalone, overwrite=self.overwrite, keep_companions=False,
                add_files=add_files, beside_files=True,
            )  # fmt: skip
        if fault:
            raise VerificationError(
                fault,
                f"The pruned model is kept in {folder}, not in {target}: hc.load({str(folder)!r}) loads it. To save it "
                "without comparing: verify=False (--no-verify).",
                model=small,
            )


def unverified_folder(folder: Path) -> Path:
    """DIR.unverified, with a number if it exists."""
    endings = itertools.chain(["unverified"], (f"unverified.{number}" for number in itertools.count(2)))
    folders = (folder.with_name(f"{folder.name}.{ending}") for ending in endings)
    return next(path for path in folders if not path.exists())
