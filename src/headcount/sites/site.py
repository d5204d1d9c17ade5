"""Site and Sites: the multi-head attention modules of one model. Know where heads are, not what is done to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import overload

from torch import nn

from headcount import notebook
from headcount.errors import UnknownHead, UsageError, check_type
from headcount.heads import Head, HeadGrid
from headcount.sites.attention import Attention

HeadNames = str | Head | Iterable[str | Head]
SiteKey = tuple[str, int]  # kind and layer


@dataclass(frozen=True)
class Site:
    """One multi-head attention module of a model."""

    kind: str
    layer: int
    heads: tuple[int, ...]  # remaining heads, by their numbers in the original model
    total: int  # heads in the original model
    built: tuple[int, ...]  # heads the module was built with: all, unless stock code loaded an evenly pruned model
    head_dim: int
    kv_heads: int  # key/value heads now; fewer than `num_heads` in grouped-query attention
    kv_kept: tuple[int, ...]  # remaining key/value heads, by their numbers in the original model
    kv_total: int
    family: str
    path: str  # of the attention module
    attention: Attention = field(repr=False)
    module: nn.Module = field(repr=False, compare=False)
    output: nn.Module = field(repr=False, compare=False)  # the output projection
    entry: nn.Module = field(repr=False, compare=False)  # its input is the concatenated heads; mostly `output`

    @property
    def num_heads(self) -> int:
        return len(self.heads)

    @property
    def name(self) -> str:
        return f"{self.kind}.{self.layer}"

    @property
    def key(self) -> SiteKey:
        return self.kind, self.layer

    @property
    def group_size(self) -> int:
        """Query heads per key/value head in the original model."""
        return self.total // self.kv_total

    @property
    def served(self) -> tuple[int, ...]:
        """Number of query heads of each remaining key/value head."""
        counts = Counter(head // self.group_size for head in self.heads)
        return tuple(counts[head] for head in self.kv_kept)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The remaining heads by the key/value head that they share; single heads if none share."""
        groups: dict[int, list[int]] = {}
        for head in self.heads:
            groups.setdefault(head // self.group_size, []).append(head)
        return tuple(map(tuple, groups.values()))

    def head_names(self) -> tuple[Head, ...]:
        return tuple(Head(self.kind, self.layer, index) for index in self.heads)


class Sites(Sequence[Site]):
    """All sites of a model, in the order of its kinds and layers."""

    def __init__(self, sites: Iterable[Site]) -> None:
        self._sites = tuple(sites)
        self._by_name = {site.name: site for site in self._sites}

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(site.kind for site in self._sites))

    @property
    def heads(self) -> tuple[Head, ...]:
        return tuple(head for site in self._sites for head in site.head_names())

    @property
    def groups(self) -> tuple[tuple[Head, ...], ...]:
        """Groups of heads that share a key/value head, which can be removed as a whole; single heads if none share."""
        return tuple(
            tuple(Head(site.kind, site.layer, index) for index in group)
            for site in self._sites
            for group in site.groups
        )

    def columns(self) -> Iterator[tuple[Site, slice]]:
        """Each site with the range of its heads among all heads of the model."""
        stop = 0
        for site in self._sites:
            start, stop = stop, stop + site.num_heads
            yield site, slice(start, stop)

    def grid(self, value: object) -> HeadGrid:
        """The same value for every head."""
        return HeadGrid([(head, value) for head in self.heads])

    def mask(self, *, off: HeadNames | None = None, keep: HeadNames | None = None) -> HeadGrid:
        """A mask with 0 for the heads in `off`, or with 1 only for those in `keep`. `encoder.0.*` is a whole site."""
        if off is not None and keep is not None:
            raise UsageError("Give the heads to switch off or the heads to keep, not both.")
        if keep is not None:
            return self.grid(0).replace(dict.fromkeys(self.find(keep), 1))
        return self.grid(1).replace(dict.fromkeys(self.find(off or ()), 0))

    def find(self, names: HeadNames) -> tuple[Head, ...]:
        """The heads with these names; `*` and `?` are wildcards. Raises UnknownHead if a name matches no head."""
        if isinstance(names, HeadGrid):
            raise UsageError(
                "Heads are named in a list. A grid has all heads of the model: give grid.kept, those that are not 0."
            )
        check_type("Heads", names, str | Head | Iterable, "named, such as 'encoder.0.3', or a list of names")
        present = self.heads
        heads_in_order: dict[Head, None] = {}
        for name in (names,) if isinstance(names, str | Head) else names:
            if isinstance(name, str) and ("*" in name or "?" in name):
                matches = [head for head in present if fnmatchcase(str(head), name)]
            else:
                matches = [head for head in present if head == Head.parse(name)]
            if not matches:
                raise UnknownHead(self._missing(name))
            heads_in_order.update(dict.fromkeys(matches))
        return tuple(heads_in_order)

    def of_kinds(self, kinds: Sequence[str] | None) -> tuple[Head, ...]:
        """The heads of these kinds of attention; all if None. Raises if the model has no such kind."""
        if isinstance(kinds, str):
            raise UsageError(
                f"kinds must be a list of attention kinds, such as ({kinds!r},); got the string {kinds!r}."
            )
        unknown = [kind for kind in kinds or () if kind not in self.kinds]
        if unknown:
            raise UsageError(f"The model has no {', '.join(unknown)} heads; it has {', '.join(self.kinds)}.")
        return tuple(head for head in self.heads if kinds is None or head.kind in kinds)

    def _missing(self, name: str | Head) -> str:
        if "*" not in str(name) and "?" not in str(name):
            head = Head.parse(name)
            site = self._by_name.get(f"{head.kind}.{head.layer}")
            if site is not None and head.index < site.total:
                return f"Head {head} was removed from this model; {site.name} still has {list(site.heads)}."
            if site is not None:
                return f"There is no head {head}: {site.name} has heads 0 to {site.total - 1}."
        extent = ", ".join(f"{kind}.{self._layers(kind)}" for kind in self.kinds)
        return f"There is no head {name} in this model; it has {extent}."

    def _layers(self, kind: str) -> str:
        layers = [site.layer for site in self._sites if site.kind == kind]
        return f"{min(layers)}" if len(layers) == 1 else f"{min(layers)}-{max(layers)}"

    def __len__(self) -> int:
        return len(self._sites)

    def __iter__(self) -> Iterator[Site]:
        return iter(self._sites)

    @overload
    def __getitem__(self, index: int | str | tuple[str, int]) -> Site: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Site, ...]: ...
    def __getitem__(self, index: int | str | tuple[str, int] | slice) -> Site | tuple[Site, ...]:
        if isinstance(index, int | slice):
            return self._sites[index]
        check_type("A site", index, str | tuple, "named by kind and layer, such as 'encoder.0' (of a head: head.site)")
        name = index if isinstance(index, str) else ".".join(map(str, index))
        if name not in self._by_name:
            raise UnknownHead(f"There is no site {name} in this model. Sites: {', '.join(self._by_name)}.")
        return self._by_name[name]

    def __repr__(self) -> str:
        lines = [
            f"{site.name}: heads {list(site.heads)}, size {site.head_dim}, {site.kv_heads} key/value" for site in self
        ]
        return f"Sites, {len(self.heads)} heads\n" + "\n".join(lines)

    def _repr_html_(self) -> str:
        """A table in Jupyter: one row per site."""
        columns: dict[str, Callable[[Site], object]] = {
            "heads": lambda site: site.num_heads,
            "of": lambda site: site.total,
            "which": lambda site: " ".join(map(str, site.heads)) or "-",
            "size": lambda site: site.head_dim,
            "key/value": lambda site: site.kv_heads,
            "family": lambda site: site.family,
        }
        rows = [(site.name, [notebook.Cell(str(read(site))) for read in columns.values()]) for site in self]
        return notebook.table(f"Sites, {len(self.heads)} heads", list(columns), rows)
