"""StudySettings: all settings of a whole study, from a TOML file or the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from headcount.corpora.location import Location
from headcount.corpora.source import Source
from headcount.errors import UnknownName, UsageError
from headcount.record.model_folder import training_record


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
        """Settings from a TOML file, a command line or a record. Raises for unknown names."""
        _check_names("setting", values, cls)
        source = dict(values.get("source") or {})
        _check_names("setting of the source", source, Source)
        for name, value in (("model", values.get("model")), ("data", source.get("data"))):
            if not value:
                in_file = "data = ... in its table [source]" if name == "data" else "model = ..."
                hint = "--data" if name == "data" else "MODEL"
                raise UsageError(f"A study needs a {name}: give {hint}, or {in_file} in the file.")
        source = {"split": "dev", **_with_tuples(source)}
        return cls(**{**_with_tuples(values), "source": Source(**source)})

    def to_toml(self) -> str:
        """All settings as a TOML file, without unset ones."""
        return "\n".join(_table(asdict(self), ""))


def trained_on(model: str) -> str:
    """The embedded corpus that `headcount train` trained a model on; empty if it was another one or is unknown."""
    record = training_record(model)
    data = str(record.signature.arguments.get("data", "")) if record else ""
    return data if data and Location.of(data).kind == "grammar" else ""


def _check_names(what: str, values: Mapping[str, object], settings: type[Any]) -> None:
    allowed = [field.name for field in fields(settings)]
    for name in values:
        if name not in allowed:
            raise UnknownName(what, name, allowed)


def _with_tuples(values: Mapping[str, object]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _table(values: Mapping[str, object], name: str) -> list[str]:
    """The lines of a TOML table and its subtables."""
    lines = [f"[{name}]"] if name else []
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in values.items() if value is not None and key not in tables}
    lines += [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for key, value in tables.items():
        lines += ["", *_table(value, f"{name}.{key}".strip("."))] if value else []
    return lines if name else [*lines, ""]
