"""chosen_on.json of a pruned model: the examples that its heads were chosen, calibrated or trained on, as hashes.

A later evaluation can then tell whether its examples are held out, without the texts themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download, try_to_load_from_cache
from huggingface_hub.errors import HFValidationError

from headcount import journal
from headcount.checkpoints.export_list import FILE as EXPORT_LIST
from headcount.checkpoints.export_list import is_export
from headcount.checkpoints.folder import CONFIG, read_json
from headcount.errors import CheckpointError
from headcount.record.model_folder import RECORD, folder_record
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


def read_chosen_on(model: str, revision: str | None = None) -> tuple[Examples, ...]:
    """The examples that the heads of a model were chosen on; none if it was not pruned.

    model: a folder or hub id; empty for a model without one. Nothing is known of a name that no model was loaded by.
    revision: branch, tag or commit of a hub id.
    Of a folder without the file, only the hash of all examples together is known, from its record. Of an export that
    is loaded as a model, of a pruned model that `hc.save` wrote, and of heads that were given by name, which earlier
    versions did not note, it is unknown whether there are any.
    """
    folder = _folder(model, revision)
    if folder is None:
        return ()
    file, record = folder / FILE, folder_record(str(folder), "prune")
    if not file.is_file():
        if record is not None and record.signature.data:
            return (Examples(None, record.signature.data, None),)
        return (UNKNOWN,) if folder.is_dir() and (is_export(folder) or _is_pruned(folder)) else ()
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


def _folder(model: str, revision: str | None) -> Path | None:
    """The folder of a model; of a hub id, that of its commit in the local cache, with the files that are read here.

    Only a model whose config is in the cache was loaded from the hub: nothing is asked of it about other names.
    """
    if not model or Path(model).exists():
        return Path(model) if model else None
    try:
        config = try_to_load_from_cache(model, CONFIG, revision=revision)
    except HFValidationError:  # a name that is no hub id
        return None
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    if not (folder / FILE).is_file():
        with suppress(OSError):  # the model is loaded, whether or not the hub and the cache still answer
            snapshot_download(model, revision=folder.name, allow_patterns=[FILE, RECORD, EXPORT_LIST])
    return folder


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
