"""`export` writes an unpruned or pruned model in the format of another runtime and checks the result there."""

from __future__ import annotations

import copy
import math
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount import journal
from headcount.checkpoints.companions import load_tokenizer
from headcount.checkpoints.export_list import is_export, is_exported, write_export_list
from headcount.checkpoints.folder import weight_files
from headcount.checkpoints.load import load
from headcount.checkpoints.save import check_target, refuse_adapters
from headcount.errors import CheckpointError, FolderError, NotExportable, UnknownName, UsageError, VerificationError
from headcount.exports.agreement import Agreement
from headcount.exports.measured import files_of
from headcount.exports.rounding import explained
from headcount.exports.runtime import ExportedModel, Runtime, missing
from headcount.hooks import original_module
from headcount.record.results.inspect import Fit
from headcount.registry import Registry
from headcount.selection.shape import Shape
from headcount.sites.locate import locate

_ALIKE = 0.9  # share of greedy choices below which a number format is called coarse
RUNTIMES: Registry[Runtime] = Registry("runtime", "headcount.exports", "RUNTIME")


@dataclass(frozen=True)
class Export:
    """The result of `export`: the files that were written, and how well they agree with the PyTorch model.

    Attributes:
        runtime: Name of the runtime, one of `RUNTIMES`.
        path: File or folder that was written.
        dtype: Number format of the weights.
        size: Size on disk in bytes.
        notes: Costs of the format for this model, such as repeated key/value heads or coarse rounding.
        agreement: Result of the comparison with the PyTorch model. None if the export was not checked.
        unchecked: Why the export was not checked. Empty if it was checked.
    """

    runtime: str
    path: Path
    dtype: str
    size: int
    notes: tuple[str, ...]
    agreement: Agreement | None
    unchecked: str

    def to_plain(self) -> dict[str, Any]:
        agreement = asdict(self.agreement) if self.agreement else None
        return {**asdict(self), "path": str(self.path), "notes": list(self.notes), "agreement": agreement}


def export(
    model: nn.Module | str | os.PathLike[str],
    to: str,
    out: str | os.PathLike[str],
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    dtype: str | None = None,
    overwrite: bool = False,
    check: bool = True,
    **loading: Any,
) -> Export:
    """Export a model to another runtime, run it there on a few texts and compare the outputs with the PyTorch model.

    Args:
        model: A model, or the folder or hub id of a checkpoint, unpruned or pruned.
        to: Name of the runtime, one of `RUNTIMES`: "gguf", "vllm", "onnx", "openvino", "ctranslate2".
        out: Path to write: a file for single-file formats, such as half.gguf, otherwise a folder.
        tokenizer: Tokenizer of the model. By default it is loaded from the checkpoint.
        dtype: Number format of the weights, one of the runtime's `types`.
        overwrite: Replace an existing file or folder.
        check: Run the export in its runtime, if the runtime is installed, and compare the outputs.
        loading: Options of `hc.load`, if `model` is a folder or hub id.

    Returns:
        The path, size and costs of the export, and the result of the check.
    """
    runtime = RUNTIMES[to]
    number_format = check_dtype(runtime, to, dtype)
    check_installed(runtime, to)
    target = Path(out)
    origin = _origin(model)
    if origin and target.exists() and Path(origin).resolve() == target.resolve():
        raise UsageError(f"{target} is the model itself; give another path for the export.")
    if isinstance(model, nn.Module):
        refuse_adapters(original_module(model))
    check_free(target, overwrite=overwrite)
    subject = _subject(model, tokenizer, loading)
    refuse(subject, to)
    suffix = runtime.suffix(subject.model)
    check_name(target, suffix, what=f"{to} of a {type(subject.model).__name__}")
    if suffix:
        with journal.new_file(target.resolve()) as fresh:
            agreement, unchecked = _write(runtime, subject, fresh, number_format, check)
    else:
        with journal.new_folder(target.resolve(), carry_over=lambda old: not is_exported(old)) as fresh:
            agreement, unchecked = _write(runtime, subject, fresh, number_format, check)
            write_export_list(fresh, to)
    notes = (*runtime.costs(subject), *_coarse(agreement, number_format, runtime))
    size = sum(file.stat().st_size for file in files_of(target))
    return Export(to, target, number_format, size, notes, agreement, unchecked)


def _origin(model: nn.Module | str | os.PathLike[str]) -> str:
    """Return the folder or hub id that a model is or was loaded from. Empty if it was not loaded."""
    if isinstance(model, nn.Module):
        return str(getattr(original_module(model), "name_or_path", ""))
    return os.fspath(model)


def _coarse(agreement: Agreement | None, dtype: str, runtime: Runtime) -> list[str]:
    """A note if rounding to the number format changes many of the tokens that the model generates."""
    if agreement is None or agreement.same_tokens >= _ALIKE * agreement.tokens:
        return []
    finer = " or ".join(runtime.types[: runtime.types.index(dtype)])
    return [
        f"{dtype} is coarse for this model: {agreement.tokens - agreement.same_tokens} of {agreement.tokens} greedy "
        f"choices change. Measure it with headcount bench MODEL FILE --data DATA{f', or try {finer}' if finer else ''}"
    ]


def shape_for(model: PreTrainedModel, runtime: str) -> Shape:
    """Return the constraint on the heads of a model that is pruned for a runtime.

    Args:
        model: The model to prune.
        runtime: Name of the runtime, one of `RUNTIMES`.

    Raises:
        NotExportable: If the runtime does not support this model, pruned or not.
    """
    obstacle = RUNTIMES[runtime].obstacle(model)
    if obstacle is not None:
        raise NotExportable(f"{type(model).__name__} cannot be pruned for {runtime}: {obstacle}")
    return RUNTIMES[runtime].shape(model)


def check_tokenizer(model: PreTrainedModel, runtime: str, name: str, **loading: Any) -> None:
    """Raise if the runtime does not support the tokenizer of a model that is to be pruned for it.

    Args:
        model: The model to prune.
        runtime: Name of the runtime, one of `RUNTIMES`.
        name: Folder or hub id of the model.
        loading: Options of `hc.load` for the tokenizer.
    """
    tokenizer = _tokenizer_of(name, loading)
    obstacle = RUNTIMES[runtime].tokenizer_obstacle(tokenizer)
    if obstacle is not None:
        raise NotExportable(f"{name} cannot be pruned for {runtime}: {obstacle}")
    RUNTIMES[runtime].check_rows(ExportedModel(model, tokenizer, name))


def check_dtype(runtime: Runtime, name: str, dtype: str | None) -> str:
    """Return the requested number format, or the default of the runtime; raise if the runtime does not support it."""
    if dtype is not None and dtype not in runtime.types:
        raise UnknownName(f"number format of {name}", dtype, runtime.types)
    return dtype or runtime.types[0]


def check_installed(runtime: Runtime, name: str) -> None:
    """Raise if a package that is needed to write the format is not installed."""
    absent = missing(runtime.writers)
    if absent:
        raise UsageError(f"Writing {name} needs {', '.join(absent)}: pip install headcount[{runtime.extra}].")


def refuse(subject: ExportedModel, to: str) -> None:
    """Raise if the runtime does not support the model or its tokenizer, and name the runtimes that do."""
    runtime = RUNTIMES[to]
    obstacle = runtime.obstacle(subject.model)
    if obstacle is None:
        obstacle = runtime.tokenizer_obstacle(subject.tokenizer)
    if obstacle is None:
        return
    able = [
        name
        for name in RUNTIMES
        if name != to
        and RUNTIMES[name].obstacle(subject.model) is None
        and RUNTIMES[name].tokenizer_obstacle(subject.tokenizer) is None
    ]
    nearest = f" As it is, the model can be exported to {', '.join(able)}." if able else ""
    raise NotExportable(f"{subject.name} cannot be exported to {to}: {obstacle}{nearest}")


def check_free(target: Path, *, overwrite: bool) -> None:
    """Raise if the target cannot be written or already exists. Cheap enough to call before a model is loaded."""
    if target.is_dir():
        journal.recover(target.resolve())
        if weight_files(target) and not is_export(target):
            raise CheckpointError(
                f"{target} is a model, not an export; nothing was overwritten. Give another folder for the export."
            )
        check_target(target, overwrite)
        return
    journal.check_place(target)
    journal.recover(target.resolve())  # a killed process may have left its temporary folder next to a finished file
    if target.exists() and not overwrite:
        raise FolderError(f"{target} exists; pass overwrite=True (--overwrite) to replace it.")


def is_one_file(target: Path) -> bool:
    """Return whether the suffix of a path belongs to a single-file format."""
    return any(target.suffix in runtime.suffixes for _, runtime in RUNTIMES.items())


def check_name(target: Path, suffix: str, *, what: str) -> None:
    """Raise if a single-file format gets the name of a folder, or a folder format the name of a file."""
    if suffix and (target.suffix != suffix or target.is_dir()):
        raise UsageError(f"{what} is one file; give the name of a file that ends in {suffix}, not {target}.")
    if not suffix and (is_one_file(target) or target.is_file()):
        raise UsageError(f"{what} is a folder of files; give the name of a folder, not {target}.")


def _subject(
    model: nn.Module | str | os.PathLike[str], tokenizer: PreTrainedTokenizerBase, loading: dict[str, Any]
) -> ExportedModel:
    if isinstance(model, str | os.PathLike):
        name = os.fspath(model)
        live: Any = load(name, **{"dtype": torch.float32, **loading})
        tokenizer = tokenizer or _tokenizer_of(name, loading)
    else:
        live, name = original_module(model), type(model).__name__
        if loading:
            raise UsageError(
                f"{', '.join(loading)} applies only when export loads the model; this one is loaded already."
            )
    if not isinstance(live, PreTrainedModel):
        raise UsageError(f"export expects a Hugging Face model or its folder; got {type(live).__name__}.")
    plain = all(weight.dtype == torch.float32 and weight.device.type == "cpu" for weight in live.parameters())
    return ExportedModel(live if plain else copy.deepcopy(live).float().cpu(), tokenizer, name)


def _tokenizer_of(name: str, loading: dict[str, Any]) -> Any:
    """Load the tokenizer of a checkpoint. Return None if there is none; formats that need one then raise an error."""
    options = {key: loading[key] for key in ("revision", "trust_remote_code") if key in loading}
    try:
        return load_tokenizer(name, **options)
    except CheckpointError:
        return None


def _write(
    runtime: Runtime, subject: ExportedModel, fresh: Path, dtype: str, check: bool
) -> tuple[Agreement | None, str]:
    """Write and check the export at a temporary path, which is discarded if the check fails."""
    runtime.write(subject, fresh, dtype=dtype)
    if not check:
        return None, "not checked, as asked"
    if missing(runtime.checkers):
        return None, f"not checked; pip install headcount[{runtime.extra}] checks it"
    agreement = runtime.check(subject, fresh)
    most = explained(subject, dtype)
    if not agreement.difference <= most < math.inf:
        effect = f"explains at most {most:.2g}" if most < math.inf else "alone makes outputs NaN or infinite"
        raise VerificationError(
            f"The export computes something else than the model: {agreement}; rounding to {dtype} {effect}.",
            "Nothing was kept. Export with check=False (--no-check) to inspect it.",
        )
    return agreement, ""


def fits(model: PreTrainedModel, name: str = "", **loading: Any) -> dict[str, Fit]:
    """Return for each runtime whether it supports a model as it is, with the reason and remedy, or with the costs.

    Args:
        model: The model to check.
        name: Folder or hub id of the model. If given, its tokenizer is checked too.
        loading: Options of `hc.load` for the tokenizer.
    """
    subject = ExportedModel(model, _tokenizer_of(name, loading) if name else None, name)
    rows: dict[str, Fit] = {}
    for key, runtime in RUNTIMES.items():
        obstacle = runtime.obstacle(model)
        if obstacle is None and name:
            obstacle = runtime.tokenizer_obstacle(subject.tokenizer)
        words = [str(obstacle)] if obstacle else [*runtime.costs(subject), *_remedy(key, runtime, model)]
        rows[key] = Fit(runtime.title, obstacle is None, tuple(words))
    return rows


def _remedy(key: str, runtime: Runtime, model: PreTrainedModel) -> list[str]:
    """Return how to prune without the costs, if the selection of removed heads caused them."""
    shape, sites = runtime.shape(model), locate(model)
    empty = [site.name for site in sites if not site.num_heads and (shape.least(site.layer) or shape.rule == "uniform")]
    if not empty and not shape.violations(sites.mask(), sites.groups):
        return []
    return [f"headcount prune --for {key} chooses heads without this cost: {shape.in_words()}"]
