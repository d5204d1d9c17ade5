"""StudiedModel: the records of one model, found by what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headcount.corpora.grammar.corpus import Grammar
from headcount.corpora.location import Location
from headcount.record import Record
from headcount.record.flat import flat
from headcount.record.results.combined import Combined
from headcount.record.results.score import Scoring

Parts = TypeVar("Parts")


@dataclass(frozen=True)
class StudiedModel:
    """One model with all its records."""

    name: str
    records: tuple[Record, ...]
    missing: Mapping[str, str] = field(default_factory=dict)  # part of a whole study -> why it could not be measured
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the whole study

    @classmethod
    def of(cls, record: Record[Combined]) -> StudiedModel:
        """The model of a whole study."""
        parts = record.parts
        return cls(record.signature.model, tuple(flat(record)), parts.missing, parts.settings)

    def every(self, kind: type[Parts]) -> list[Parts]:
        """The results of this kind."""
        return [record.parts for record in self.records if isinstance(record.parts, kind)]

    def first(self, kind: type[Parts]) -> Parts | None:
        """The result of this kind, None if there is none."""
        return next(iter(self.every(kind)), None)

    def scores(self, method: str) -> Scoring | None:
        return next((scoring for scoring in self.every(Scoring) if scoring.method == method), None)

    @property
    def language(self) -> str:
        """The target language that the settings of the study name; empty if they name none."""
        source = self._source
        if source.get("languages"):
            return str(source["languages"][-1])
        return Grammar.named(source["data"]).language if _is_grammar(source) else ""

    @property
    def domain(self) -> str:
        """The data of the study, whatever the target language."""
        source = self._source
        return Grammar.named(source["data"]).domain if _is_grammar(source) else str(source.get("data", ""))

    @property
    def _source(self) -> Mapping[str, Any]:
        return self.settings.get("source") or {}


def _is_grammar(source: Mapping[str, Any]) -> bool:
    return Location.of(source.get("data", "")).kind == "grammar"
