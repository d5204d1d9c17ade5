"""chosen_on.json of a pruned model: the examples that its heads were chosen, calibrated or trained on, as hashes.

A later evaluation can then tell whether its examples are held out, without the texts themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headcount import journal
from headcount.checkpoints.export_list import is_export
from headcount.checkpoints.folder import CONFIG, read_json
from headcount.errors import CheckpointError
from headcount.record.model_folder import folder_record
from headcount.surgery.manifest import KEY
from headcount.tasks.overlap import UNKNOWN, Examples

FILE = "chosen_on.json"
MOST_HASHES = 500_000  # about 18 MB; of more examples, only the hash of all of them is written
_VERSION = 1


def write_chosen_on(folder: Path, examples: Iterable[Examples]) -> None:
    """Write the file, also without examples: a folder that is replaced must not keep an older one."""
    entries = []
    for part in dict.fromkeys(examples):
        hashes = part.example_hashes if len(part.example_hashes or ()) <= MOST_HASHES else None
        entries.append({"split": part.split, "data": part.fingerprint, "hashes": hashes})
    journal.write_text(folder / FILE, json.dumps({"version": _VERSION, "examples": entries}) + "\n")


def read_chosen_on(model: str) -> tuple[Examples, ...]:
    """The examples that the heads of a model were chosen on; none if it was not pruned, or is not a local folder.

    model: a folder or hub id; empty for a model without one.
    Of a folder without the file, only the hash of all examples together is known, from its record. Of an export that
    is loaded as a model, of a pruned model that `hc.save` wrote, and of heads that were given by name, which earlier
    versions did not note, it is unknown whether there are any.
    """
    if not model:
        return ()
    file, record = Path(model) / FILE, folder_record(model, "prune")
    if not file.is_file():
        if record is not None and record.signature.data:
            return (Examples(None, record.signature.data, None),)
        return (UNKNOWN,) if file.parent.is_dir() and (is_export(file.parent) or _is_pruned(file.parent)) else ()
    content = read_json(file)
    entries = content.get("examples") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not all(map(_is_entry, entries)):
        raise CheckpointError(f"{file} is damaged: it is not a list of examples. Delete it, or prune the model again.")
    examples = [
        Examples(entry["split"], entry["data"], None if entry["hashes"] is None else tuple(entry["hashes"]))
        for entry in entries
    ]
    unnoted = record is not None and record.parts.named_heads and UNKNOWN not in examples
    return (*examples, UNKNOWN) if unnoted else tuple(examples)


def _is_pruned(folder: Path) -> bool:
    """Whether the config of a model says that heads were removed."""
    config = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else None
    return isinstance(config, dict) and KEY in config


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("data"), str) or not {"split", "hashes"} <= entry.keys():
        return False
    split, hashes = entry["split"], entry["hashes"]
    listed = hashes is None or (isinstance(hashes, list) and all(isinstance(item, str) for item in hashes))
    return listed and (split is None or isinstance(split, str))
