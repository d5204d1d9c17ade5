"""headcount: find out what each attention head of a Transformer does and which heads matter, and remove the others.

import headcount as hc

model = hc.load("path-or-hub-id")
sites = hc.locate(model)
mask = sites.mask(off=["encoder.0.3"])
with hc.masked(model, mask):
    ...
small = hc.remove(model, mask)
hc.save(small, "dir")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from headcount.checkpoints.load import load as load
    from headcount.checkpoints.save import save as save
    from headcount.corpora.source import Source as Source
    from headcount.errors import HeadcountError as HeadcountError
    from headcount.exports.export import Export as Export
    from headcount.exports.export import export as export
    from headcount.exports.export import shape_for as shape_for
    from headcount.head_roles.evidence import Evidence as Evidence
    from headcount.head_roles.measure import Roles as Roles
    from headcount.head_roles.measure import roles as roles
    from headcount.head_roles.playing import played as played
    from headcount.heads import Head as Head
    from headcount.heads import HeadGrid as HeadGrid
    from headcount.probes.gated import gated as gated
    from headcount.probes.head_mask import head_mask as head_mask
    from headcount.probes.masks import masked as masked
    from headcount.probes.means import mean_outputs as mean_outputs
    from headcount.probes.taps import tapped as tapped
    from headcount.pruning.prune import prune as prune
    from headcount.pruning.run import Pruned as Pruned
    from headcount.pruning.tuning import Tuning as Tuning
    from headcount.record import Record as Record
    from headcount.record import Signature as Signature
    from headcount.scores.score import Scores as Scores
    from headcount.scores.score import score as score
    from headcount.selection.budget import Budget as Budget
    from headcount.selection.select import select as select
    from headcount.selection.shape import Shape as Shape
    from headcount.sites.locate import add_family as add_family
    from headcount.sites.locate import locate as locate
    from headcount.surgery.compensate import Compensation as Compensation
    from headcount.surgery.compensate import compensate as compensate
    from headcount.surgery.cost import cost as cost
    from headcount.surgery.fold_gates import fold_gates as fold_gates
    from headcount.surgery.remove import remove as remove
    from headcount.surgery.verify import verify as verify
    from headcount.tasks.factory import task as task
    from headcount.tasks.quality import Quality as Quality
    from headcount.training.callback import GateCallback as GateCallback

# Each name is imported when it is first used: `import headcount` must not pay for torch.
_HOMES = {
    "Budget": "selection.budget", "Compensation": "surgery.compensate", "Evidence": "head_roles.evidence",
    "Export": "exports.export", "GateCallback": "training.callback", "Head": "heads", "HeadGrid": "heads",
    "HeadcountError": "errors", "Pruned": "pruning.run", "Quality": "tasks.quality", "Record": "record",
    "Roles": "head_roles.measure", "Scores": "scores.score", "Shape": "selection.shape", "Signature": "record",
    "Source": "corpora.source", "Tuning": "pruning.tuning", "add_family": "sites.locate",
    "compensate": "surgery.compensate", "cost": "surgery.cost", "export": "exports.export",
    "fold_gates": "surgery.fold_gates", "gated": "probes.gated", "head_mask": "probes.head_mask",
    "load": "checkpoints.load", "locate": "sites.locate", "masked": "probes.masks", "mean_outputs": "probes.means",
    "played": "head_roles.playing", "prune": "pruning.prune", "remove": "surgery.remove", "roles": "head_roles.measure",
    "save": "checkpoints.save", "score": "scores.score", "select": "selection.select", "shape_for": "exports.export",
    "tapped": "probes.taps", "task": "tasks.factory", "verify": "surgery.verify",
}  # fmt: skip
__all__ = sorted(_HOMES)  # noqa: PLE0605  (a list of str, made from the table above)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headcount' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"headcount.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
