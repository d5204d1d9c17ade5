"""locate: from a live model to its sites. Reads modules and family data; changes nothing."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from weakref import WeakSet

from torch import nn

from headcount.errors import ModelError, UnknownArchitecture, UsageError
from headcount.hooks import config_of, original_module
from headcount.registry import Registry
from headcount.sites import generic
from headcount.sites.attention import Attention, Family
from headcount.sites.projection import relative, width_in, width_out
from headcount.sites.site import Site, Sites

families: Registry[Family] = Registry("family", "headcount.sites.families", "FAMILY")

_warned: WeakSet[nn.Module] = WeakSet()  # models that were warned about

MANIFEST = "head_pruning"  # config entry with the heads of a pruned model, see surgery/manifest.py
_HOW_TO = "Another architecture is added by one small file: docs/how-to/add-a-family.md shows how."
_KIND_ORDER = {"encoder": 0, "decoder": 1, "cross": 2}


def locate(model: nn.Module) -> Sites:
    """Find all attention heads of a model: plain, pruned, compiled or wrapped.

    Args:
        model: The model.

    Returns:
        One site per attention module, by kind and layer. `.heads` lists all heads, `.mask()` makes a mask.

    Raises:
        UnknownArchitecture: If no attention module is recognised.
    """
    if not isinstance(model, nn.Module):
        raise UsageError(f"Expected a PyTorch model; got {type(model).__name__}. Load one with hc.load(...).")
    model = original_module(model)
    located = [
        (name, attention, path, module)
        for path, module in model.named_modules()
        if (match := _match(module)) is not None
        for name, attention in [match]
    ]
    unknown, refused = generic.find(model, claimed=[module for *_, module in located])
    located += [("generic", attention, path, module) for attention, path, module in unknown]
    if located and refused and model not in _warned:
        _warned.add(model)
        warnings.warn(
            f"{len(refused)} modules look like attention, but their heads cannot be separated; they are left out. "
            f"First: {refused[0]}. {_HOW_TO}",
            stacklevel=2,
        )
    if not located:
        reason = f" {refused[0]}." if refused else ""
        raise UnknownArchitecture(
            f"No attention module of {type(model).__name__} was recognised. Known: {', '.join(families.names())}."
            f"{reason} {_HOW_TO}"
        )
    sites = [_site(model, name, attention, path, module) for name, attention, path, module in located]
    return Sites(sorted((_as_noted(model, site) for site in _unique(sites)), key=_order))


def keep_layouts(sites: Sites, copy: nn.Module) -> None:
    """Give a copy of a model the layouts that a test run confirmed: it may be changed, or have no data to run with."""
    for site in sites:
        if site.family == "generic":
            copy.get_submodule(site.path).headcount_layout = site.attention  # type: ignore[assignment]


def add_family(name: str, family: Family) -> None:
    """Register an architecture for this process. To add it permanently, add a file to `sites/families`.

    Args:
        name: Name of the family.
        family: Description of its attention modules.

    Raises:
        UsageError: If a family of this name exists.
    """
    families.add(name, family)
    _by_class.cache_clear()


@cache
def _by_class() -> dict[str, list[tuple[str, Attention]]]:
    """Attention class name -> its layouts, with the family each comes from."""
    table: dict[str, list[tuple[str, Attention]]] = {}
    for name, family in families.items():
        for attention in family.attentions:
            for class_name in attention.classes:
                table.setdefault(class_name, []).append((name, attention))
    return table


def _match(module: nn.Module) -> tuple[str, Attention] | None:
    """The first layout of this module's class whose projections the module has."""
    layout = getattr(module, "headcount_layout", None)  # confirmed before pruning, which may have emptied the module
    if layout is not None:
        return "generic", layout
    for name, attention in _by_class().get(type(module).__name__, ()):
        if all(hasattr(module, projection) for projection in attention.projections):
            return name, attention
    return None


def _site(model: nn.Module, family: str, attention: Attention, path: str, module: nn.Module) -> Site:
    reason = attention.unsupported(module) if attention.unsupported else None
    if reason:
        raise ModelError(f"The heads of {path} cannot be reached: {reason}.")
    output = relative(model, path, attention.output)
    head_dim = int(getattr(module, attention.head_dim))
    heads, rest = divmod(width_in(output), head_dim)
    if rest:
        raise ModelError(
            f"{path} looks like {family} attention, but its output projection takes {width_in(output)} values, "
            f"which heads of {head_dim} do not fill; docs/how-to/add-a-family.md shows how to describe it."
        )
    kv_heads = _kv_heads(module, attention, heads, head_dim)
    unpruned = {"heads": range(heads), "of": heads, "built": range(heads), "kv": range(kv_heads), "kv_of": kv_heads}
    numbering = getattr(module, "headcount", unpruned)
    return Site(
        kind=_kind(attention, path, module), layer=_layer(attention, path), heads=tuple(numbering["heads"]),
        total=numbering["of"], built=tuple(numbering["built"]), head_dim=head_dim, kv_heads=kv_heads,
        kv_kept=tuple(numbering["kv"]), kv_total=numbering["kv_of"], family=family, path=path, attention=attention,
        module=module, output=output, entry=relative(model, path, attention.entry) if attention.entry else output,
    )  # fmt: skip


def _kv_heads(module: nn.Module, attention: Attention, heads: int, head_dim: int) -> int:
    roles = attention.projections[attention.key]
    blocks = width_out(getattr(module, attention.key)) // head_dim
    return (blocks - heads * roles.count("q")) // (roles.count("k") + roles.count("v"))


def _kind(attention: Attention, path: str, module: nn.Module) -> str:
    if set(path.split(".")) & set(attention.cross):
        return "cross"
    if attention.stack == "flag":
        return "decoder" if getattr(module, "is_decoder", False) else "encoder"
    return attention.stack


def _layer(attention: Attention, path: str) -> int:
    numbers = re.findall(attention.layer or r"(?:^|\.)(\d+)(?=\.|$)", path)
    return int(numbers[-1]) if numbers else 0


def _unique(sites: list[Site]) -> Iterable[Site]:
    """Give every site its own (kind, layer): towers are named by the path component in which they differ."""
    counts = Counter(site.key for site in sites)
    for kind in {site.kind for site in sites if counts[site.key] > 1}:
        same = [site for site in sites if site.kind == kind]
        components = [site.path.split(".") for site in same]
        depth = next(i for i, parts in enumerate(zip(*components, strict=False)) if len(set(parts)) > 1)
        names = [parts[depth].strip("_") or parts[depth] for parts in components]  # a head is named by letters first
        towers = [re.sub(r"_(model|tower|encoder|decoder|backbone)$", "", name) for name in names]
        for site, tower in zip(same, towers, strict=True):
            sites[sites.index(site)] = replace(site, kind=tower) if not tower.isdigit() else site
    seen: Counter[str] = Counter()
    counts = Counter(site.key for site in sites)
    for site in sites:  # several modules have the same layer number: number them in order instead
        yield replace(site, layer=seen[site.kind]) if max(counts.values()) > 1 else site
        seen[site.kind] += 1


def _as_noted(model: nn.Module, site: Site) -> Site:
    """Restore the original head numbers of an evenly pruned model loaded by stock code, from its config."""
    noted = getattr(config_of(model), MANIFEST, None)
    if noted is None or hasattr(site.module, "headcount"):
        return site
    try:
        entry = noted["sites"].get(site.name)
        if entry is None or len(entry["built"]) != site.num_heads:
            return site
        built, size = tuple(entry["built"]), entry["of"] // entry["kv_of"]
        kv = tuple(sorted({head // size for head in built}))
    except (KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise ModelError(f"The entry {MANIFEST!r} in the model's config is damaged: {error!r}.") from error
    return replace(site, heads=built, total=entry["of"], built=built, kv_kept=kv, kv_total=entry["kv_of"])


def _order(site: Site) -> tuple[int, str, int]:
    return _KIND_ORDER.get(site.kind, -1), site.kind if site.kind not in _KIND_ORDER else "", site.layer
