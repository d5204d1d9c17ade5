"""Record and Signature."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headcount.errors import RecordError, UsageError
from headcount.record import SCHEMA, Record, Signature, displayed


def test_record_survives_a_file(tmp_path: Path) -> None:
    signature = Signature(model="m", weights="ab" * 20, data="cd", seed=3, arguments={"k": 1})
    record = Record("ablation", signature, {"table": [1.5, None, "</script>"]})
    path = record.save(tmp_path / "deep" / "record.json")
    assert Record.load(path) == record
    assert [file.name for file in path.parent.iterdir()] == ["record.json"]  # no temporary file stays


def test_signature_says_where_a_number_comes_from() -> None:
    signature = Signature(model="bert", weights="0123456789abcdef", seed=7, arguments={"granularity": "example"})
    assert str(signature).startswith("model:bert|weights:0123456789ab|seed:7|granularity:example|headcount:")
    assert signature.versions["torch"].startswith("2.")
    assert signature.time.endswith("+00:00")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "no schema"),
        (json.dumps({"schema": SCHEMA + 1}), "update headcount"),
        (json.dumps({"schema": SCHEMA, "study": "x"}), "damaged"),
        (json.dumps({"schema": SCHEMA, "study": "x", "signature": {"odd": 1}, "parts": {}}), "damaged"),
        (json.dumps({"schema": True, "study": "x", "signature": {}, "parts": {}}), "no schema"),
        (json.dumps({"schema": SCHEMA, "study": ["x"], "signature": {}, "parts": {}}), "study is of type list"),
        (json.dumps({"schema": SCHEMA, "study": "x", "signature": [], "parts": {}}), "signature is of type list"),
        (json.dumps({"schema": SCHEMA, "study": "x", "signature": {}, "parts": []}), "parts is of type list"),
        (json.dumps({"schema": SCHEMA, "study": "x", "signature": {"model": 5}, "parts": {}}), "model is of type int"),
        (json.dumps({"schema": SCHEMA, "study": "x", "signature": {"arguments": 5}, "parts": {}}), "arguments is"),
        (json.dumps({"schema": SCHEMA, "study": "x", "signature": {"seed": "a"}, "parts": {}}), "seed is of type str"),
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


def test_numbers_that_are_not_json_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        Record("x", Signature(), {"bad": float("nan")}).save(tmp_path / "record.json")
    assert not list(tmp_path.iterdir())


def test_json_has_no_characters_that_a_terminal_obeys() -> None:
    record = Record("x", Signature(), {"text": "a\x1b[31mb\x9b31mc\x7f"})
    assert not set("\x1b\x9b\x7f") & set(record.to_json())
    assert Record.from_json(record.to_json()) == record


def test_what_a_record_lacks_is_an_error_of_the_record() -> None:
    message = r"a.json, b.json cannot be shown.*KeyError: 'alpha'.*Run the command again"
    with pytest.raises(RecordError, match=message), displayed(["a.json", "b.json"]):
        raise KeyError("alpha")
    with pytest.raises(UsageError, match="as it is"), displayed(["a.json"]):
        raise UsageError("as it is")
