"""Shape: constraints on the remaining heads of each layer, so that a runtime accepts the model. Imports no torch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headcount.errors import UnknownName, UsageError
from headcount.heads import Head, HeadGrid
from headcount.options import Options, option

_WORDS = {"uniform": ("rule", "uniform"), "even": ("groups", "even"), "group": ("unit", "group")}
_NUMBERS = {"at-least": "at_least", "first": "at_least_first", "multiple": "multiple"}
_SEPARATOR = ":"


@dataclass(frozen=True)
class Shape(Options):
    """Constraints on the heads that every pruned layer keeps. By default there are none.

    Attributes:
        rule: "top" keeps the best heads anywhere; "uniform" keeps equally many in every layer.
        at_least: Fewest heads that every layer keeps.
        at_least_first: Fewest heads that the first layer keeps.
        multiple: Every layer keeps a multiple of this many heads, for tensor parallelism.
        groups: "even": in each layer, every remaining key/value head serves equally many heads. "any": no constraint.
        unit: "group" removes only whole groups of heads that share a key/value head. "head" removes single heads.
    """

    rule: Literal["top", "uniform"] = option(
        "top",
        "How the budget is spread: the best heads anywhere (top) or equally many per layer (uniform).",
        choices=("top", "uniform"),
    )
    at_least: int = option(0, "Fewest heads that every layer keeps.", minimum=0)
    at_least_first: int = option(0, "Heads that the first layer keeps.", minimum=0)
    multiple: int = option(1, "Every layer keeps a multiple of this many heads: for tensor parallelism.", minimum=1)
    groups: Literal["any", "even"] = option(
        "any",
        "Which groups may stay: any, or even ones, where every key/value head of a layer serves as many heads.",
        choices=("any", "even"),
    )
    unit: Literal["head", "group"] = option(
        "head", "What stays or goes as a whole: heads, or groups that share a key/value head.",
        choices=("head", "group"),
    )  # fmt: skip

    @property
    def free(self) -> bool:
        """Whether there are no constraints."""
        return self == FREE

    @property
    def nested(self) -> bool:
        """Whether the best heads of a smaller budget are always among those of a larger one."""
        return self.rule == "top" and self.multiple == 1 and self.groups == "any" and self.unit == "head"

    def and_also(self, other: Shape) -> Shape:
        """The combined constraints of two shapes."""
        return Shape(
            rule="uniform" if "uniform" in (self.rule, other.rule) else "top",
            at_least=max(self.at_least, other.at_least),
            at_least_first=max(self.at_least_first, other.at_least_first),
            multiple=math.lcm(self.multiple, other.multiple),
            groups="even" if "even" in (self.groups, other.groups) else "any",
            unit="group" if "group" in (self.unit, other.unit) else "head",
        )

    def least(self, layer: int) -> int:
        """Fewest heads that a layer keeps."""
        return max(self.at_least, self.at_least_first if layer == 0 else 0)

    def __str__(self) -> str:
        """The text form that `parse` reads, such as `uniform:at-least=1`; empty without constraints."""
        words = [word for word, (name, value) in _WORDS.items() if getattr(self, name) == value]
        defaults = self.defaults()
        numbers = [
            f"{word}={getattr(self, name)}" for word, name in _NUMBERS.items() if getattr(self, name) != defaults[name]
        ]
        return _SEPARATOR.join([*words, *numbers])

    @classmethod
    def parse(cls, text: str) -> Shape:
        """Parse the text form of a shape, such as `uniform:at-least=1`."""
        values: dict[str, Any] = {}
        for part in filter(None, text.split(_SEPARATOR)):
            word, _, number = part.partition("=")
            if part in _WORDS:
                name, value = _WORDS[part]
                values[name] = value
            elif word in _NUMBERS and number.isdecimal():
                values[_NUMBERS[word]] = int(number)
            else:
                raise UnknownName("constraint", part, (*_WORDS, *(f"{word}=N" for word in _NUMBERS)))
        return cls.of(values)

    def in_words(self) -> str:
        """The constraints in words, for messages."""
        words = {
            "rule": "the same number in every layer", "at_least": f"at least {self.at_least} in every layer",
            "at_least_first": f"at least {self.at_least_first} in the first layer",
            "multiple": f"multiples of {self.multiple} in every layer", "groups": "even groups", "unit": "whole groups",
        }  # fmt: skip
        return ", ".join(words[name] for name, value in self.defaults().items() if getattr(self, name) != value)

    def violations(self, mask: HeadGrid, groups: Sequence[Sequence[Head]]) -> list[str]:
        """Where a mask breaks the constraints. `groups`: the heads that may be removed, by key/value head."""
        layers: dict[tuple[str, int], list[tuple[int, int]]] = {}  # (heads to keep, heads) of each group
        for group in groups:
            layers.setdefault(group[0].site, []).append((sum(bool(mask[head]) for head in group), len(group)))
        problems = [f"{kind}.{layer} {text}" for (kind, layer), sizes in layers.items()
                    for text in self._layer_violations(layer, sizes)]  # fmt: skip
        counts = {key: sum(remaining for remaining, _ in sizes) for key, sizes in layers.items()}
        if self.rule == "uniform" and len(set(counts.values())) > 1:
            common = Counter(counts.values()).most_common(1)[0][0]
            other = next(key for key, count in counts.items() if count != common)
            problems.append(f"{other[0]}.{other[1]} keeps {counts[other]} heads where other layers keep {common}")
        return problems

    def _layer_violations(self, layer: int, sizes: Sequence[tuple[int, int]]) -> Iterator[str]:
        count, serving = sum(remaining for remaining, _ in sizes), [remaining for remaining, _ in sizes if remaining]
        if count < self.least(layer):
            yield f"keeps {count} heads, fewer than {self.least(layer)}"
        if count % self.multiple:
            yield f"keeps {count} heads, no multiple of {self.multiple}"
        if self.groups == "even" and len(set(serving)) > 1:
            yield f"keeps {', '.join(map(str, serving))} heads of its groups, not as many of each"
        if self.unit == "group" and any(remaining not in (0, size) for remaining, size in sizes):
            yield "keeps a part of a group"

    def check(self, mask: HeadGrid, groups: Sequence[Sequence[Head]]) -> None:
        """Raise UsageError if a mask breaks the constraints."""
        problems = self.violations(mask, groups)
        if problems:
            further = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
            raise UsageError(
                f"The heads to keep do not fit the shape ({self.in_words()}): {problems[0]}{further}. "
                "Choose other heads, or relax the constraint."
            )


FREE = Shape()
