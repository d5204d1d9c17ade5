"""Files of a folder whose checkpoint is replaced: parts of the old model and what is said about it go, others stay."""

from __future__ import annotations

import os
from pathlib import Path

from headcount import journal
from headcount.checkpoints.card import BESIDE_README, CARD, card_name, is_card
from headcount.checkpoints.chosen_on import FILE as CHOSEN_ON
from headcount.checkpoints.companions import is_companion
from headcount.checkpoints.export_list import FILE as EXPORT_LIST
from headcount.checkpoints.export_list import is_exported
from headcount.checkpoints.folder import CONFIG, GENERATION, is_weight_file
from headcount.checkpoints.standalone import FILES, MODULE
from headcount.record.earlier import is_earlier
from headcount.record.model_folder import folder_record

_STUDIES = ("prune", "train")  # whose records describe the model in the folder


def outlives(old: Path, fresh: Path, *, keep_companions: bool) -> bool:
    """Whether a file of the old folder is kept beside the new model.

    fresh: folder of the new model. Its tokenizer replaces all companions of the old one.
    keep_companions: whether a new model without companions gets those of the old one.
    """
    if _is_part(old) or describes(old):
        return False
    return not is_companion(old) or (keep_companions and not any(map(is_companion, fresh.iterdir())))


def move_in(fresh: Path, folder: Path) -> None:
    """Move the files of a new model into a folder, file by file. Files of the user stay: a README.md under its name.

    Others of the same name as a new one stay as NAME.old. What a killed run has moved is the same, but for its times.
    """
    for file in sorted(fresh.iterdir(), key=Path.is_dir):  # files first: modules.json says whose the folders are
        target = folder / file.name
        if file.name == CARD and card_name(folder) != CARD:
            target = folder / BESIDE_README
        if os.path.lexists(target) and not (journal.same(target, file) or _is_earlier_record(target, file)):
            journal.set_aside(target)
        elif target.is_dir():
            journal.remove_folder(target)
        file.replace(target)


def _is_earlier_record(old: Path, new: Path) -> bool:
    return old.name == "record.json" and is_earlier(old, journal.read_json(new))


def _is_part(path: Path) -> bool:
    """Whether a file is the model itself: its config, weights, code, or export."""
    if path.name in (CONFIG, GENERATION) or is_weight_file(path):
        return True
    if path.name in FILES:
        return path.with_name(f"{MODULE}.py").is_file()  # which imports the others
    return path.with_name(EXPORT_LIST).is_file() and is_exported(path)


def describes(path: Path) -> bool:
    """Whether headcount wrote a file about the model in the folder."""
    if path.name == "record.json":
        return any(folder_record(str(path.parent), study) for study in _STUDIES)
    return path.name == CHOSEN_ON or (path.name in (CARD, BESIDE_README) and is_card(path))
