"""StudySettings: every setting of a whole study, as a TOML file or a command line gives it."""

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
    """What decides the numbers of a whole study. A TOML file may give any of it, the source as a table of its own."""

    model: str
    source: Source  # its split is what scores and masks come from; its limit is of each split
    task: str = "translation"
    measure_split: str = ""  # what quality is measured on; test, and half of the texts where there is none, if empty
    other_split: str = ""  # a second split, for the question whether the same heads matter there; none if empty
    metric: str = ""  # the task's usual one if empty
    beams: int = 1  # of translations; 1 is greedy, which ablation needs no full decoding for
    train_limit: int = 0  # texts that the trade-off learns on and frequencies are counted in; 0: all
    batch_size: int = 16
    max_length: int = 256
    followed: int = 200  # sentences that relevance is measured on: each of their predictions is followed back
    role_limit: int = 0  # sentences that roles are measured on; as many as of a split if 0
    trees: str = ""  # treebank for the roles (.conllu); the data if empty, which have trees where they are the grammar
    orders: tuple[str, ...] = ("gradient", "ablation")
    random: int = 5  # random orders as control
    step: float = 0.1  # share of the heads that go at a time
    epochs: tuple[int, ...] = ()  # of the training run in the model's folder; all if empty
    batches: tuple[int, ...] = (1, 4, 16, 64)
    lengths: tuple[int, ...] = (32, 128)
    repeats: int = 7
    keep: tuple[int, ...] = ()  # heads left in the trade-off; a half, a third and an eighth if empty
    kinds: tuple[str, ...] = ("encoder",)  # that the trade-off prunes, where the model has them; all otherwise
    ways: tuple[str, ...] = ("l0", "rank-gradient", "random")  # of pruning, in the trade-off
    seeds: tuple[int, ...] = (0,)  # of the trade-off
    gate_steps: int = 150  # with gates
    tune_steps: int = 450  # of fine-tuning after; fewer than one model gets, as there are many
    all_kinds_keep: tuple[int, ...] = ()  # heads left where all kinds are pruned; a half and a third if empty
    all_kinds_ways: tuple[str, ...] = ("l0", "scratch")  # of pruning all kinds; not done if empty
    scratch_steps: int = 3200  # of models trained from random weights

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """Settings from a TOML file, a command line or a record; names that are none are an error."""
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
        """All settings as a TOML file; what is not set is left out."""
        return "\n".join(_table(asdict(self), ""))


def trained_on(model: str) -> str:
    """The embedded corpus that `headcount train` made a model from; empty if it is another one, or not known."""
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
    """The lines of a table and of those in it."""
    lines = [f"[{name}]"] if name else []
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in values.items() if value is not None and key not in tables}
    lines += [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for key, value in tables.items():
        lines += ["", *_table(value, f"{name}.{key}".strip("."))] if value else []
    return lines if name else [*lines, ""]
