"""Record and Signature."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headcount.errors import RecordError, UsageError
from headcount.heads import Head
from headcount.record import SCHEMA, Record, Signature, displayed
from headcount.record.codec import decode, encode
from headcount.record.results.ablate import Transfer
from headcount.record.results.score import Scoring
from headcount.statistics import Correlation, Interval


def test_record_survives_a_file(tmp_path: Path) -> None:
    signature = Signature(model="m", weights="ab" * 20, data="cd", seed=3, arguments={"k": 1})
    record = Record("score", signature, Scoring("</script>", {"encoder.0.0": 1.5}, {"encoder.0.0": 1}))
    path = record.save(tmp_path / "deep" / "record.json")
    assert Record.load(path) == record
    assert [file.name for file in path.parent.iterdir()] == ["record.json"]  # no temporary file stays


def test_a_signature_says_the_same_before_and_after_it_was_saved(tmp_path: Path) -> None:
    arguments = {"relations": ("nsubj", "obj"), "thresholds": {1: (0.5, math.inf)}}
    record = Record("score", Signature(model="m", arguments=arguments), Scoring("gradient", {}, {}))
    loaded = Record.load(record.save(tmp_path / "record.json"))
    assert str(loaded.signature) == str(record.signature)
    assert "relations:['nsubj', 'obj']" in str(record.signature)


def test_signature_says_where_a_number_comes_from() -> None:
    signature = Signature(model="bert", weights="0123456789abcdef", seed=7, arguments={"granularity": "example"})
    assert str(signature).startswith("model:bert|weights:0123456789ab|seed:7|granularity:example|headcount:")
    assert signature.versions["torch"].startswith("2.")
    assert signature.time.endswith("+00:00")


WHOLE = {"schema": SCHEMA, "version": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no schema"),
        (json.dumps({"schema": SCHEMA + 1}), "update headcount"),
        (json.dumps({"schema": SCHEMA - 1}), "run its command again"),
        (json.dumps({**WHOLE, "version": 2, "study": "score", "signature": {}, "parts": {}}), "score record 2.*update"),
        (json.dumps({"schema": SCHEMA, "study": "x"}), "damaged"),
        (json.dumps({**WHOLE, "study": "x", "signature": {"odd": 1}, "parts": {}}), "damaged"),
        (json.dumps({"schema": True, "study": "x", "signature": {}, "parts": {}}), "no schema"),
        (json.dumps({**WHOLE, "study": ["x"], "signature": {}, "parts": {}}), "study is of type list"),
        (json.dumps({**WHOLE, "study": "x", "signature": [], "parts": {}}), "signature is of type list"),
        (json.dumps({**WHOLE, "study": "x", "signature": {}, "parts": []}), "parts is of type list"),
        (json.dumps({**WHOLE, "study": "x", "signature": {"model": 5}, "parts": {}}), "model is of type int"),
        (json.dumps({**WHOLE, "study": "x", "signature": {"arguments": 5}, "parts": {}}), "arguments is"),
        (json.dumps({**WHOLE, "study": "x", "signature": {"seed": "a"}, "parts": {}}), "seed is of type str"),
        (
            json.dumps({**WHOLE, "study": "x", "signature": {}, "parts": {}}),
            "a record of x, which this",
        ),
        ("[" * 100_000, "nested too deeply"),
        ('{"schema": ' + "1" * 5000 + "}", "4300 digits"),
    ],
)
def test_damaged_records_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=message):
        Record.load(path)


def test_missing_record(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="Cannot read"):
        Record.load(tmp_path / "none.json")


def test_a_number_that_is_not_defined_is_null_in_the_file_and_nan_here(tmp_path: Path) -> None:
    parts = Transfer(1.0, Correlation(math.nan, math.nan, math.nan, 1.0), Correlation(0.5, 0.1, 0.8, 0.02), {})
    plain = encode(parts)
    assert plain["pearson"] == {"r": None, "low": None, "high": None, "p": 1.0}
    again = decode(Transfer, plain, source="a")
    assert math.isnan(again.pearson.r)
    assert again.spearman == parts.spearman
    Record("score", Signature(), Scoring("x", {"encoder.0.0": math.inf}, {})).save(tmp_path / "record.json")
    assert math.isnan(Record.load(tmp_path / "record.json").parts.scores["encoder.0.0"])


@dataclass(frozen=True)
class Sample:
    """Every kind of field."""

    name: str
    counts: Mapping[str, int]
    rows: tuple[tuple[float, ...], ...]
    interval: Interval | None = None
    certain: bool | None = None


GOOD = {"name": "a", "counts": {"b": 1}, "rows": [[1, 2.5], []], "interval": {"value": 1, "low": 0, "high": 2}}


def test_dataclasses_survive_json() -> None:
    sample = decode(Sample, GOOD, source="a.json")
    assert sample == Sample("a", {"b": 1}, ((1.0, 2.5), ()), Interval(1.0, 0.0, 2.0))
    assert decode(Sample, json.loads(json.dumps(encode(sample))), source="a.json") == sample


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 5}, "a.json is a damaged record: parts.name is of type int, expected text"),
        ({"counts": {"b": 1.5}}, "parts.counts.b is of type float, expected a whole number"),
        ({"counts": {"b": True}}, "parts.counts.b is of type bool, expected a whole number"),
        ({"counts": []}, "parts.counts is of type list, expected an object"),
        ({"rows": [[1], ["x"]]}, r"parts.rows\[1\]\[0\] is of type str, expected a number"),
        ({"interval": {"value": 1, "low": 0}}, "parts.interval.high is missing"),
        ({"rows": [[10**400]]}, r"parts.rows\[0\]\[0\] is a number too large"),
        ({"rows": [[math.inf]]}, r"parts.rows\[0\]\[0\] is a number too large"),
        ({"certain": 1}, "parts.certain is of type int, expected true or false"),
        ({"odd": 1}, "parts.odd is unknown; expected name, counts, rows, interval, certain"),
    ],
)
def test_what_is_wrong_is_named_with_its_file_and_key(change: dict[str, Any], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        decode(Sample, {**GOOD, **change}, source="a.json", path="parts")


def test_json_has_no_characters_that_a_terminal_obeys() -> None:
    record = Record("score", Signature(), Scoring("a\x1b[31mb\x9b31mc\x7f", {}, {}))
    assert not set("\x1b\x9b\x7f") & set(record.to_json())
    assert Record.from_json(record.to_json()) == record


def test_what_a_record_lacks_is_an_error_of_the_record() -> None:
    message = r"a.json, b.json cannot be shown.*KeyError: 'alpha'.*Run the command that wrote it again"
    with pytest.raises(RecordError, match=message), displayed(["a.json", "b.json"]):
        raise KeyError("alpha")
    with pytest.raises(UsageError, match="as it is"), displayed(["a.json"]):
        raise UsageError("as it is")
    with (
        pytest.raises(RecordError, match=r"a.json cannot be shown: 'encoder.-1.0' is not.*again"),
        displayed(["a.json"]),
    ):
        Head.parse("encoder.-1.0")


def test_rows_of_numbers_are_read_as_other_values_are() -> None:
    rows = tuple[tuple[float, ...], ...]
    assert decode(rows, [[1.0, 2.5], []], source="a.json") == ((1.0, 2.5), ())
    mixed = decode(rows, [[1, None], [2.5]], source="a.json")
    assert mixed[0][0] == 1.0
    assert isinstance(mixed[0][0], float)
    assert math.isnan(mixed[0][1])
    for wrong, place in (([[1.0], ["2"]], r"at\[1\]\[0\]"), ([[1.0], 2.0], r"at\[1\]"), ([[True]], r"at\[0\]\[0\]")):
        with pytest.raises(RecordError, match=f"{place} is of type"):
            decode(rows, wrong, source="a.json", path="at")
