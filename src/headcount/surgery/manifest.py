"""The manifest: which heads a pruned model has, written into its config. Keyed by kind and layer, never by module path.

    "head_pruning": {"version": 3, "digest": "5f1d...", "sites": {
        "encoder.0": {"heads": [0, 2], "of": 4, "kv_of": 4, "built": [0, 1, 2, 3]}, ...}}

`built` are the heads that stock code makes from the config: all of them, or those of an evenly pruned model whose
config states the smaller shape. Sites that no family describes carry their module's path and layout as well. A site
with `"bias": true` has a bias in its output projection that its architecture lacks. `digest` is a hash of the sites
and of their projections' shapes, not of values: training does not change it, editing a head number does.
Versions 1 and 2 have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from torch import nn

from headcount.errors import CheckpointError
from headcount.hooks import config_of
from headcount.sites.attention import Attention
from headcount.sites.locate import MANIFEST, locate
from headcount.sites.projection import width_in, width_out
from headcount.sites.site import Site
from headcount.surgery.plan import has_added_bias, plan_site
from headcount.surgery.reshape import reshape

KEY = MANIFEST
VERSION = 3  # of manifests written; earlier versions are read too
_WITH_DIGEST = 3  # since this version
NOTE = "Attention heads were removed by headcount: load this folder with headcount.load."
_MOST_HEADS = 65_536  # at one site; limits the work that a malicious file can cause


def note(model: nn.Module) -> None:
    """Write the remaining heads into the model's config. A model that lost none gets no manifest."""
    config = config_of(model)
    if config is None:
        return
    sites = locate(model)
    if any(len(site.heads) < site.total for site in sites):
        entries = {
            site.name: _entry(site) for site in sites if len(site.heads) < site.total or site.family == "generic"
        }
        setattr(config, KEY, {"version": VERSION, "note": NOTE, "digest": digest(entries, sites), "sites": entries})
    elif hasattr(config, KEY):
        delattr(config, KEY)


def is_stale(model: nn.Module) -> bool:
    """Whether the manifest in the config is that of another model: a new model made from a pruned model's config.

    All of its modules are as the config builds them, but the manifest says that some of them lost heads.
    """
    manifest = getattr(config_of(model), KEY, None)
    if manifest is None or any(hasattr(module, "headcount") for module in model.modules()):
        return False
    return any(entry["heads"] != entry["built"] for entry in check(manifest).values())


def _entry(site: Site) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "heads": list(site.heads),
        "of": site.total,
        "kv_of": site.kv_total,
        "built": list(site.built),
    }
    if has_added_bias(site):
        entry["bias"] = True
    if site.family == "generic":  # a loader cannot confirm the layout again: it has no weights yet
        entry |= {"path": site.path, "layout": site.attention.to_plain()}
    return entry


def digest(entries: Mapping[str, Mapping[str, object]], sites: Iterable[Site]) -> str:
    """A hash of a manifest's sites and of the shapes these have in the model."""
    shapes = {site.name: _shapes(site) for site in sites if site.name in entries}
    return json_hash({"sites": entries, "shapes": shapes})


def json_hash(content: object) -> str:
    """A hash of plain data that is the same before writing as JSON and after reading."""
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _shapes(site: Site) -> dict[str, list[int]]:
    """Inputs and outputs of every projection of a site."""
    projections = {name: getattr(site.module, name) for name in site.attention.projections} | {"output": site.output}
    return {name: [width_in(projection), width_out(projection)] for name, projection in projections.items()}


def check(manifest: object) -> Mapping[str, Mapping[str, Any]]:
    """The sites of a manifest. Raises a clear error for anything wrong; the file is not trusted."""
    if not isinstance(manifest, Mapping) or type(manifest.get("version")) is not int:
        raise CheckpointError(f"config.json has a {KEY!r} entry that is not a manifest: it has no version number.")
    if manifest["version"] > VERSION:
        raise CheckpointError(
            f"This checkpoint was pruned by a newer headcount (manifest {manifest['version']}, this one reads "
            f"{VERSION}): update headcount."
        )
    if manifest["version"] >= _WITH_DIGEST and not isinstance(manifest.get("digest"), str):
        raise CheckpointError(f"The manifest {KEY!r} in config.json has no digest: it is damaged.")
    sites = manifest.get("sites")
    if not isinstance(sites, Mapping) or not all(isinstance(entry, Mapping) for entry in sites.values()):
        raise CheckpointError(f"The manifest {KEY!r} in config.json has no table of sites.")
    for name, entry in sites.items():
        heads, built, total, kv_total = (entry.get(key) for key in ("heads", "built", "of", "kv_of"))
        lists = isinstance(heads, list) and isinstance(built, list)
        if not lists or not all(type(number) is int for number in (*heads, *built, total, kv_total)):
            raise CheckpointError(f"The manifest entry for {name} is damaged: {dict(entry)!r:.200}.")
        if entry.get("bias", True) is not True:
            raise CheckpointError(
                f"The manifest entry for {name} gives bias the value {entry['bias']!r:.50}, not true."
            )
        if not 0 < kv_total <= total <= _MOST_HEADS or total % kv_total:
            raise CheckpointError(
                f"The manifest gives {name} {total} heads on {kv_total} key/value heads, which cannot be."
            )
        if not (_rising(heads, total) and _rising(built, total) and set(heads) <= set(built)):
            raise CheckpointError(
                f"The manifest keeps heads {heads!r:.100} of {name}, built with {built!r:.100} of {total}."
            )
    return sites


def rebuild(model: nn.Module, manifest: Any) -> None:
    """Turn the model that stock code built from a config into the one that the manifest describes."""
    entries = check(manifest)
    for name, entry in entries.items():
        if "layout" in entry:
            _lay_out(model, name, entry)
    sites = {site.name: site for site in locate(model)}
    for name, entry in entries.items():
        site = sites.get(name)
        if site is None or len(entry["built"]) != site.num_heads:
            heads_there = "no such site" if site is None else f"{site.num_heads} heads there"
            raise CheckpointError(
                f"The manifest gives {name} {len(entry['built'])} heads as built; the model of this config "
                f"has {heads_there}. config.json and its manifest are from different models."
            )
        _renumber(site, entry)
    reshape(model, plan_from(model, manifest))
    if manifest["version"] >= _WITH_DIGEST and manifest["digest"] != digest(entries, locate(model)):
        raise CheckpointError(
            f"The manifest {KEY!r} in config.json does not match its digest: config.json was changed after the model "
            "was saved, and no longer fits the weights. Restore it, or prune the model again."
        )


def plan_from(model: nn.Module, manifest: object) -> list[dict[str, Any]]:
    """The plan for the sites of a renumbered model that lose heads."""
    entries = check(manifest)
    return [
        plan_site(site, list(entries[site.name]["heads"]), biased=bool(entries[site.name].get("bias")))
        for site in locate(model)
        if site.name in entries and entries[site.name]["heads"] != list(site.heads)
    ]


def _renumber(site: Site, entry: Mapping[str, Any]) -> None:
    """Set the original head numbers that a module was built with."""
    size = entry["of"] // entry["kv_of"]
    kv = sorted({head // size for head in entry["built"]})
    if len(kv) != site.kv_heads:
        raise CheckpointError(f"The manifest gives {site.name} {len(kv)} key/value heads, its config {site.kv_heads}.")
    site.module.headcount = {  # type: ignore[assignment]
        "heads": entry["built"],
        "of": entry["of"],
        "built": entry["built"],
        "kv": kv,
        "kv_of": entry["kv_of"],
    }


def _lay_out(model: nn.Module, name: str, entry: Mapping[str, object]) -> None:
    try:
        module: Any = model.get_submodule(str(entry.get("path")))
        module.headcount_layout = Attention.from_plain(entry["layout"])
    except (AttributeError, ValueError) as error:
        raise CheckpointError(f"The manifest entry for {name} is damaged: {error}.") from error


def _rising(numbers: list[int], total: int) -> bool:
    """Whether these are distinct indices below `total`, in order."""
    return numbers == sorted(set(numbers)) and all(0 <= number < total for number in numbers)
