"""Head and HeadGrid."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from headcount.errors import UnknownHead, UsageError
from headcount.heads import Head, HeadGrid


def grid(*values: object) -> HeadGrid:
    """Ragged: two heads in encoder.0, the rest in cross.3."""
    heads = [Head("encoder", 0, 0), Head("encoder", 0, 1), *(Head("cross", 3, i) for i in range(len(values) - 2))]
    return HeadGrid(list(zip(heads, values, strict=True)))


def test_a_head_is_written_as_it_is_read() -> None:
    assert str(Head.parse("encoder.0.3")) == "encoder.0.3"
    assert Head.parse(Head("cross", 5, 11)) == Head("cross", 5, 11)


@pytest.mark.parametrize(
    "name", ["", "encoder", "encoder.0", "encoder.0.x", "encoder.-1.0", "0.0.0", "a.b.c.d", 7, None]
)
def test_what_is_not_a_head_is_named_in_the_error(name: object) -> None:
    with pytest.raises(UnknownHead, match=r"kind\.layer\.index"):
        Head.parse(name)  # type: ignore[arg-type]


def test_values_by_name_head_and_site() -> None:
    scores = grid(0.5, 2.0, -1.0)
    assert scores["encoder.0.1"] == scores[Head("encoder", 0, 1)] == 2.0
    assert scores.layer("encoder", 0).tolist() == [0.5, 2.0]
    assert scores.kinds == ("encoder", "cross")
    assert scores.sites == (("encoder", 0), ("cross", 3))
    assert "encoder.0.1" in scores
    assert "encoder.0.7" not in scores
    assert "nonsense" not in scores
    assert dict(scores.items())[Head("cross", 3, 0)] == -1.0
    with pytest.raises(UnknownHead, match=r"encoder\.0\.9"):
        scores["encoder.0.9"]
    with pytest.raises(UnknownHead, match=r"encoder\.4"):
        scores.layer("encoder", 4)


def test_a_head_twice_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"encoder\.0\.0 is given twice"):
        HeadGrid([(Head("encoder", 0, 0), 1), (Head("encoder", 0, 0), 2)])


def test_kept_map_zip_replace_of() -> None:
    mask = grid(1, 0, 1, 0)
    assert [str(head) for head in mask.kept] == ["encoder.0.0", "cross.3.0"]
    assert mask.map(lambda value: 1 - value).kept == tuple(head for head in mask if not mask[head])
    assert mask.zip(grid(5, 6, 7, 8), lambda a, b: a * b).numbers().tolist() == [5, 0, 7, 0]
    assert mask.replace({"encoder.0.1": 1})["encoder.0.1"] == 1
    assert mask["encoder.0.1"] == 0
    assert mask.of("cross").heads == mask.heads[2:]
    with pytest.raises(UsageError, match="different heads"):
        mask.zip(grid(1, 2), max)
    with pytest.raises(UnknownHead):
        mask.replace({"encoder.9.9": 1})
    with pytest.raises(UnknownHead, match="vision"):
        mask.of("vision")


def test_rank_one_is_highest_ties_share_nan_last() -> None:
    assert list(grid(3.0, 9.0, 3.0, math.nan, -1.0).rank().numbers()) == [2, 1, 2, 5, 4]


@pytest.mark.parametrize(
    "values",
    [
        (1, 0, 1),
        (True, False, True),
        (0.1, -2.5, 1e-300),
        (math.nan, math.inf, -math.inf),
        ("a", "b", "c"),
        ([1], {}, None),
        ((1, 2.5), (), [(0.1, "a"), {"b": (None,)}]),
        ((math.nan, math.inf), [-math.inf], 1),
        (None, math.nan, -math.inf, 1.5, "nan"),
    ],
)
def test_json_round_trip_keeps_values_and_types(values: tuple[object, ...]) -> None:
    before = grid(*values)
    text = before.to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"not strict JSON: {name}"))
    after = HeadGrid.from_json(text)
    assert repr(list(after.values())) == repr(list(before.values()))
    assert after == before or "nan" in text
    assert [type(after[head]) for head in after] == [type(before[head]) for head in before]


def test_values_that_json_does_not_have_are_refused() -> None:
    with pytest.raises(UsageError, match=r"encoder\.0\.1 .*Head.*grid\.map"):
        grid(1, [Head("encoder", 0, 0)]).to_json()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"dtype": "int64", "values": {"x": 1}}', '{"dtype": 3, "values": 4}']
)
def test_json_that_is_no_grid_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        HeadGrid.from_json(text)


def test_frame_has_a_row_per_head() -> None:
    frame = grid(0.5, 2.0, -1.0).to_frame()
    assert list(frame.columns) == ["kind", "layer", "index", "value"]
    assert frame.loc["cross.3.0", "value"] == -1.0


def test_a_grid_cannot_be_changed_from_outside() -> None:
    scores = grid(1.0, 2.0)
    scores.numbers()[0] = 9
    assert scores["encoder.0.0"] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        scores._values[0] = 9


def test_numbers_of_words_is_an_error() -> None:
    with pytest.raises(UsageError, match="not numbers"):
        grid("a", "b").numbers()


def test_numpy_numbers_come_back_as_python_numbers() -> None:
    assert type(HeadGrid([(Head("encoder", 0, 0), np.float32(0.5))])["encoder.0.0"]) is float


def test_an_edited_mask_is_not_rounded() -> None:
    text = HeadGrid({Head("encoder", 0, 0): 1, Head("encoder", 0, 1): 1}).to_json()
    with pytest.raises(UsageError, match="it would be rounded"):
        HeadGrid.from_json(text.replace("1}", "0.5}"))
