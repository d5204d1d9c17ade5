"""A pool: claims of several models are decided together, and the page has one ledger."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from claimed import ablation
from headcount.claims.claim import pooled
from headcount.claims.pool import pool, pooled_records
from headcount.record import Record, Signature
from headcount.record.results.combined import Combined
from headcount.record.results.pool import Pool
from headcount.report.section import labelled_for, sections
from headcount.report.subject import subjects
from headcount.statistics import Interval
from headcount.studies.whole import with_ledger


def study(model: str, harmful: int, settings: Mapping[str, str] | None = None, name: str = "michel2019") -> Record:
    return with_ledger(
        Record("combined", Signature(model), Combined(name, {"ablation": ablation(harmful)}, {}, settings or {}))
    )


def test_models_are_in_the_interval() -> None:
    record = pool([study("run/m-0", 4), study("run/m-1", 6), study("run/m-2", 40)])
    verdict = next(row for row in record.parts.ledger.parts.verdicts if row.number == "M1")
    assert verdict.models == 3
    assert verdict.holds is None, "two models of three do not decide it"
    alike = pool([study(f"run/m-{number}", 4) for number in range(3)])
    assert next(row for row in alike.parts.ledger.parts.verdicts if row.number == "M1").holds is True
    again = Record.from_json(record.to_json())
    assert again.to_json() == record.to_json()


def test_the_page_has_one_ledger_that_says_how_many_models() -> None:
    records = pooled_records([study("run/m-0", 4), study("run/m-1", 6)])
    labelled = labelled_for(sections["ledger"], subjects(records))
    assert len(labelled) == 1
    answer = sections["ledger"].answer(labelled[0][1])
    assert answer.startswith("2 models (m-0, m-1): 9 claims of the papers")
    assert len(labelled_for(sections["ablation"], subjects(records))) == 2


def test_a_pool_takes_more_models() -> None:
    (record,) = pooled_records([pool([study("m-0", 4), study("m-1", 6)]), study("m-2", 5)])
    assert record.parts.ledger.parts.models == ("m-0", "m-1", "m-2")


def test_what_is_not_alike_is_not_pooled() -> None:
    translation, other = {"task": "translation"}, {"task": "classification"}
    for records in (
        [study("a", 4, translation), study("b", 4, other)],
        [study("a", 4), study("a", 6)],
        [study("a", 4), study("b", 4, name="all")],
    ):
        assert not any(isinstance(record.parts, Pool) for record in pooled_records(records))


def test_the_interval_of_models_has_no_random_part() -> None:
    intervals = [Interval(value, value - 0.2, value + 0.2) for value in (0.1, 0.4, 0.6)]
    error = (np.var([0.1, 0.4, 0.6], ddof=1) / 3 + (0.2 / 1.959964) ** 2 / 3) ** 0.5
    assert pooled(intervals).low == pytest.approx(np.mean([0.1, 0.4, 0.6]) - 4.3027 * error, rel=1e-4)
    assert pooled(intervals) == pytest.approx(pooled(intervals[::-1]))
