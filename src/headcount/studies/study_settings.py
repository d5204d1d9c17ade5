"""StudySettings: all settings of a whole study, from a TOML file or the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import UnionType
from typing import Any, Self, get_args, get_origin

from headcount.corpora.location import Location
from headcount.corpora.source import Source, default_split
from headcount.errors import UnknownName, UsageError
from headcount.record.codec import field_types
from headcount.record.model_folder import training_record

_LEAST = {
    "beams": 1, "train_limit": 0, "batch_size": 1, "max_length": 2, "followed": 1, "role_limit": 0, "random": 0,
    "repeats": 1, "gate_steps": 0, "tune_steps": 0, "scratch_steps": 0, "limit": 1, "longest": 1,
}  # fmt: skip
_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


@dataclass(frozen=True)
class StudySettings:
    """All settings of a whole study. A TOML file can have any of them, the source as a table."""

    model: str
    source: Source  # its split is for scores and masks; its limit applies to each split
    task: str = "translation"
    measure_split: str = ""  # for measuring quality; if empty, test, or half of the texts if there is no test split
    other_split: str = ""  # a second split, to test whether the same heads matter there; none if empty
    metric: str = ""  # the default of the task if empty
    beams: int = 1  # of translations; 1 is greedy, with which ablation is faster
    train_limit: int = 0  # texts for training in the trade-off and for token frequencies; 0: all
    batch_size: int = 16
    max_length: int = 256
    followed: int = 200  # sentences for relevance, which is propagated from each prediction
    role_limit: int = 0  # sentences for roles; the limit of a split if 0
    trees: str = ""  # treebank for roles (.conllu); the data if empty
    orders: tuple[str, ...] = ("gradient", "ablation")
    random: int = 5  # random orders as control
    step: float = 0.1  # share of heads to remove at a time
    epochs: tuple[int, ...] = ()  # of the training run in the model's folder; all if empty
    batches: tuple[int, ...] = (1, 4, 16, 64)
    lengths: tuple[int, ...] = (32, 128)
    repeats: int = 7
    keep: tuple[int, ...] = ()  # numbers of remaining heads in the trade-off; a half, a third and an eighth if empty
    kinds: tuple[str, ...] = ("encoder",)  # that the trade-off prunes, if the model has them; else all
    ways: tuple[str, ...] = ("l0", "rank-gradient", "random")  # of pruning, in the trade-off
    seeds: tuple[int, ...] = (0,)  # of the trade-off
    gate_steps: int = 150  # with gates
    tune_steps: int = 450  # of fine-tuning afterwards; few, as there are many models
    all_kinds_keep: tuple[int, ...] = ()  # remaining heads if all kinds are pruned; a half and a third if empty
    all_kinds_ways: tuple[str, ...] = ("l0", "scratch")  # of pruning all kinds; skipped if empty
    scratch_steps: int = 3200  # of models trained from random weights

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """Settings from a TOML file, a command line or a record. Raises for unknown names and wrong values."""
        _check("setting", values, cls)
        source = dict(values.get("source") or {})
        _check("setting of the source", source, Source)
        for name, value in (("model", values.get("model")), ("data", source.get("data"))):
            if not value:
                in_file = "data = ... in its table [source]" if name == "data" else "model = ..."
                hint = "--data" if name == "data" else "MODEL"
                raise UsageError(f"A study needs a {name}: give {hint}, or {in_file} in the file.")
        source = {"split": default_split(source["data"], "dev"), **_with_tuples(source)}
        return cls(**{**_with_tuples(values), "source": Source(**source)})

    def to_toml(self) -> str:
        """All settings as a TOML file, without unset ones."""
        return "\n".join(_table(asdict(self), ""))


def trained_on(model: str) -> str:
    """The embedded corpus that `headcount train` trained a model on; empty if it was another one or is unknown."""
    record = training_record(model)
    data = str(record.signature.arguments.get("data", "")) if record else ""
    return data if data and Location.of(data).kind == "grammar" else ""


def _check(what: str, values: Mapping[str, Any], settings: Any) -> None:
    """Raise for a name that is not a setting, and for a value of another type or below the least."""
    kinds, _ = field_types(settings)
    for name, value in values.items():
        if name not in kinds:
            raise UnknownName(what, name, kinds)
        if not _fits(value, kinds[name]):
            raise UsageError(f"The {what} {name} must be {_in_words(kinds[name])}; got {value!r}.")
        if name in _LEAST and value is not None and value < _LEAST[name]:
            raise UsageError(f"The {what} {name} must be at least {_LEAST[name]}; got {value}.")


def _fits(value: object, kind: Any) -> bool:
    """Whether a value of a TOML file, or of a record, has the type of a setting."""
    inner = get_args(kind)
    if get_origin(kind) is UnionType:
        return any(_fits(value, each) for each in inner)
    if get_origin(kind) is tuple:
        return isinstance(value, list | tuple) and all(_fits(item, inner[0]) for item in value)
    if get_origin(kind) is Mapping:
        return isinstance(value, Mapping) and all(_fits(item, inner[1]) for item in value.values())
    if kind is Source:
        return isinstance(value, Mapping)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _in_words(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return f"a list of {'whole numbers' if get_args(kind)[0] is int else 'texts'}"
    if get_origin(kind) is UnionType:
        return _in_words(get_args(kind)[0])
    return _WORDS.get(kind, "a table")


def _with_tuples(values: Mapping[str, object]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _toml(value: object) -> str:
    """JSON, without its two escapes for one character beyond 16 bits, which TOML does not have."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(values: Mapping[str, object], name: str) -> list[str]:
    """The lines of a TOML table and its subtables."""
    lines = [f"[{name}]"] if name else []
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in values.items() if value is not None and key not in tables}
    lines += [f"{key} = {_toml(value)}" for key, value in plain.items()]
    for key, value in tables.items():
        lines += ["", *_table(value, f"{name}.{key}".strip("."))] if value else []
    return lines if name else [*lines, ""]
