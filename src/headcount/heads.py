"""Head and HeadGrid: the name of a head, and one value per head. Depends on numpy, not on torch."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount import notebook
from headcount.errors import UnknownHead, UsageError, check_type

if TYPE_CHECKING:
    import pandas as pd

# Roles in Voita et al. 2019, section 5. The other members of `roles` are not from the paper.
PAPER_ROLES = ("positional", "syntactic", "rare")
_NAME = re.compile(r"(?P<kind>[A-Za-z][\w-]*)\.(?P<layer>\d{1,9})\.(?P<index>\d{1,9})")
_TYPES = re.compile("object|bool|u?int(8|16|32|64)|float(16|32|64)")  # of the values of a grid, as numpy names them


@dataclass(frozen=True, order=True)
class Head:
    """One attention head, written `kind.layer.index`. The index is that of the original model, also after pruning.

    Attributes:
        kind: Kind of attention: "encoder", "decoder", "cross", or the name of a tower.
        layer: Layer, from 0.
        index: Number of the head in its layer, from 0.
    """

    kind: str
    layer: int
    index: int

    @classmethod
    def parse(cls, name: str | Head) -> Head:
        """Parse the name of a head, such as "encoder.0.3". Raises UnknownHead if it is not one."""
        if isinstance(name, Head):
            return name
        match = _NAME.fullmatch(name.strip()) if isinstance(name, str) else None
        if match is None:
            raise UnknownHead(
                f"{name!r} is not the name of a head. Heads are written kind.layer.index, from 0: encoder.0.3."
            )
        return cls(match["kind"], int(match["layer"]), int(match["index"]))

    @property
    def site(self) -> tuple[str, int]:
        """Kind and layer of the attention module that the head belongs to."""
        return self.kind, self.layer

    def __str__(self) -> str:
        return f"{self.kind}.{self.layer}.{self.index}"


def sites_of(heads: Iterable[Head | str]) -> list[tuple[str, int]]:
    """The kind and layer of each head: values of heads that share them are not independent."""
    return [Head.parse(head).site for head in heads]


class HeadGrid(Mapping[Head, Any]):
    """One value per head, in the order of the model: a mask, scores, roles or gate values.

    A mapping from `Head` to value; names such as "encoder.0.3" work as keys too. Layers may have different numbers of
    heads. A grid is immutable: `map`, `zip` and `replace` return new grids.

    Args:
        values: Mapping from heads to values, or (head, value) pairs.
        dtype: NumPy type of the values. By default found from the values.
    """

    def __init__(self, values: Mapping[Head, object] | Iterable[tuple[Head, object]], dtype: str | None = None) -> None:
        check_type("values", values, Iterable, "a mapping from heads to values, such as {'encoder.0.3': 1}, or pairs")
        pairs: list[Any] = list(values.items() if isinstance(values, Mapping) else values)
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            raise UsageError(f"A grid is made of a mapping from heads to values, or of pairs; got {values!r:.80}.")
        self.heads: tuple[Head, ...] = tuple(Head.parse(head) for head, _ in pairs)
        self._place = {head: i for i, head in enumerate(self.heads)}
        if len(self._place) != len(self.heads):
            twice = next(h for i, h in enumerate(self.heads) if self._place[h] != i)
            raise UsageError(f"Head {twice} is given twice; give one value per head.")
        self._values = _array([value for _, value in pairs], dtype)

    # reading

    def __getitem__(self, head: Head | str) -> Any:
        key = Head.parse(head)
        if key not in self._place:
            raise UnknownHead(f"There is no head {key} here. {self._extent()}")
        value = self._values[self._place[key]]
        return value.item() if isinstance(value, np.generic) else value

    def __iter__(self) -> Iterator[Head]:
        return iter(self.heads)

    def __len__(self) -> int:
        return len(self.heads)

    def __contains__(self, head: object) -> bool:
        try:
            return isinstance(head, Head | str) and Head.parse(head) in self._place
        except UnknownHead:
            return False

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of attention in the grid."""
        return tuple(dict.fromkeys(head.kind for head in self.heads))

    @property
    def sites(self) -> tuple[tuple[str, int], ...]:
        """(kind, layer) of every attention module in the grid."""
        return tuple(dict.fromkeys(head.site for head in self.heads))

    @property
    def kept(self) -> tuple[Head, ...]:
        """Heads whose value is not zero. For a mask: the heads to keep."""
        return tuple(head for head, value in zip(self.heads, self._values, strict=True) if value)

    def numbers(self) -> np.ndarray:
        """All values as a float64 array, in the order of `heads`."""
        try:
            return self._values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise UsageError(f"This grid holds {self._values.dtype} values, not numbers: {error}.") from error

    def layer(self, kind: str, layer: int) -> np.ndarray:
        """Values of one attention module, in the order of its heads."""
        places = [i for i, head in enumerate(self.heads) if head.site == (kind, layer)]
        if not places:
            raise UnknownHead(f"There is no site {kind}.{layer} here. {self._extent()}")
        return self._values[places]

    def of(self, *kinds: str) -> HeadGrid:
        """The part of the grid with heads of these kinds."""
        missing = set(kinds) - set(self.kinds)
        if missing:
            raise UnknownHead(f"No heads of kind {', '.join(sorted(missing))} here. {self._extent()}")
        return HeadGrid([(head, value) for head, value in self._pairs() if head.kind in kinds])

    # new grids

    def map(self, function: Callable[[Any], Any]) -> HeadGrid:
        """A new grid with the function applied to every value."""
        return HeadGrid([(head, function(value)) for head, value in self._pairs()])

    def zip(self, other: HeadGrid, function: Callable[[Any, Any], Any]) -> HeadGrid:
        """Combine two grids over the same heads, value by value."""
        if set(self.heads) != set(other.heads):
            odd = sorted(set(self.heads) ^ set(other.heads))
            raise UsageError(
                f"The grids have different heads; {len(odd)} are in only one of them, for example {odd[0]}."
            )
        return HeadGrid([(head, function(value, other[head])) for head, value in self._pairs()])

    def replace(self, changes: Mapping[Head | str, object]) -> HeadGrid:
        """A new grid with some values changed."""
        parsed = {Head.parse(head): value for head, value in changes.items()}
        for head in parsed:
            self[head]  # raises for a head that is not here
        return HeadGrid([(head, parsed.get(head, value)) for head, value in self._pairs()])

    def rank(self) -> HeadGrid:
        """Rank of every head: 1 for the highest value. Equal values share the better rank, NaN comes last."""
        numbers = np.where(np.isnan(self.numbers()), -np.inf, self.numbers())
        ranks = [1 + int(np.sum(numbers > number)) for number in numbers]
        return HeadGrid(list(zip(self.heads, ranks, strict=True)))

    # other forms

    def to_frame(self) -> pd.DataFrame:
        """A pandas DataFrame with the columns kind, layer, index and value, and head names as row labels."""
        import pandas as pd

        columns = {
            "kind": [head.kind for head in self.heads],
            "layer": [head.layer for head in self.heads],
            "index": [head.index for head in self.heads],
            "value": list(self._values),
        }
        return pd.DataFrame(columns, index=pd.Index([str(head) for head in self.heads], name="head"))

    def to_json(self) -> str:
        """The grid as strict JSON: the type of the values, then head name -> value.

        In a grid of numbers, infinity and NaN are text. In one of other values they are written as {"float": "nan"},
        and tuples as {"tuple": [...]}.

        Raises:
            UsageError: If a value is of another type than JSON has, such as the evidence for roles.
        """
        values = {}
        for head, value in self._pairs():
            values[str(head)] = _plain(value, self._values.dtype.name)
            try:
                json.dumps(values[str(head)], allow_nan=False)
            except (TypeError, ValueError) as error:
                raise UsageError(
                    f"The value of {head} cannot be written as JSON ({error}): {value!r:.80}. Map values to numbers, "
                    "text, lists or tuples first: grid.map(...)."
                ) from error
        return json.dumps({"dtype": self._values.dtype.name, "values": values}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> HeadGrid:
        """Read a grid that `to_json` wrote: the values. Scores also have a signature, which a record stores."""
        try:
            data = json.loads(text, object_pairs_hook=_unique)
            json.dumps(data, allow_nan=False, ensure_ascii=False).encode()  # no NaN, no 1e999, no half of a character
            dtype, values = data["dtype"], data["values"].items()
            if not _TYPES.fullmatch(dtype):
                raise UsageError(f"dtype is {dtype!r:.40}")
            grid = HeadGrid([(Head.parse(name), _unplain(value, dtype)) for name, value in values], dtype)
            if grid._values.dtype.name != dtype:
                raise UsageError(f"a value is not of its dtype, {dtype}")
            if not dtype.startswith(("float", "object")) and [*grid._values] != [*data["values"].values()]:
                raise UsageError(f"a value is not of its dtype, {dtype}: it would be rounded")
            return grid
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
            raise UsageError(
                f"This is not the JSON of a head grid ({error}); expected what HeadGrid.to_json writes."
            ) from error

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, HeadGrid):
            return NotImplemented
        return self.heads == other.heads and all(
            a is b or a == b or (_is_nan(a) and _is_nan(b)) for a, b in zip(self._values, other._values, strict=True)
        )

    def __hash__(self) -> int:
        return hash(self.heads)

    def __repr__(self) -> str:
        spelled = {head: self._shown(value) for head, value in self._pairs()}
        apart = " | " if any(" " in text for text in spelled.values()) else " "
        lines = [
            f"{kind}.{layer}: {apart.join(text for head, text in spelled.items() if head.site == (kind, layer))}"
            for kind, layer in self.sites
        ]
        return f"{type(self).__name__}, {len(self)} heads\n" + "\n".join(lines)

    def _repr_html_(self) -> str:
        """A table in Jupyter: one row per site, one column per head index; darker cells have larger values."""
        columns = range(1 + max((head.index for head in self.heads), default=-1))
        cells = {
            head: notebook.Cell(self._shown(value), f"{head}: {self._tooltip(head, value)}", strength)
            for (head, value), strength in zip(self._pairs(), notebook.strengths(self._values.tolist()), strict=True)
        }
        rows = [
            (f"{kind}.{layer}", [cells.get(Head(kind, layer, index), notebook.Cell("")) for index in columns])
            for kind, layer in self.sites
        ]
        return notebook.table(
            f"{type(self).__name__}, {len(self)} heads", list(map(str, columns)), rows, below=self._from()
        )

    def _shown(self, value: object) -> str:
        """A value as short text."""
        return _short(value)

    def _tooltip(self, head: Head, value: object) -> str:
        """The tooltip of a cell."""
        return f"{value:.6g}" if isinstance(value, float) else _short(value)

    def _from(self) -> str:
        """The line below the table: where the values come from."""
        return ""

    def _pairs(self) -> Iterator[tuple[Head, Any]]:
        return zip(self.heads, self._values.tolist(), strict=True)

    def _extent(self) -> str:
        parts = []
        for kind in self.kinds:
            layers = [head.layer for head in self.heads if head.kind == kind]
            parts.append(f"{kind} (layers {min(layers)}-{max(layers)}, {len(layers)} heads)")
        return f"There are: {', '.join(parts) or 'no heads at all'}."


def _array(values: list[object], dtype: str | None) -> np.ndarray:
    """A read-only array [heads]: numeric if all values are numbers, otherwise of objects."""
    if dtype != "object" and all(isinstance(value, bool | int | float | np.number | np.bool_) for value in values):
        array = np.array(values, dtype=dtype)
    else:
        array = np.empty(len(values), dtype=object)
        array[:] = values
    array.flags.writeable = False
    return array


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without repeated names; json.loads would silently keep the last value."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise UsageError("a name occurs twice")
    return content


def _plain(value: object, dtype: str) -> Any:
    """A value of a grid of this type as JSON has it. Only among numbers is text known to be one."""
    infinite = isinstance(value, float) and not math.isfinite(value)
    return str(value) if dtype.startswith("float") and infinite else _tagged(value)


def _tagged(value: object) -> Any:
    """A value as JSON has it, with the types that JSON does not have named."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if isinstance(value, tuple):
        return {"tuple": [_tagged(item) for item in value]}
    if isinstance(value, list):
        return [_tagged(item) for item in value]
    if isinstance(value, dict):
        return {key: _tagged(item) for key, item in value.items()}
    return value


def _unplain(value: object, dtype: str) -> Any:
    return float(value) if dtype.startswith("float") and isinstance(value, str) else _untagged(value)


def _untagged(value: object) -> Any:
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"tuple": list(items)} if len(value) == 1:
            return tuple(map(_untagged, items))
        case {"float": str(text)} if len(value) == 1:
            return float(text)
    return {key: _untagged(item) for key, item in value.items()}


def _is_nan(value: object) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)


def _short(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_short, value)) or "-"
    if isinstance(value, float | np.floating):
        return f"{value:.3g}"
    return str(int(value)) if isinstance(value, bool | np.bool_) else str(value)
