"""The trade-off study: every way has the heads asked for and the steps of the others, and goes on where it stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import laboratory
from headcount.errors import UsageError
from headcount.methods.course import Course
from headcount.studies.tradeoff import Data, Plan, tradeoff
from headcount.tasks.translation import Translation
from headcount.training.log import Log


def test_ways_are_compared_at_equal_sizes_and_steps(tmp_path: Path) -> None:
    tokenizer = laboratory.vocabulary(tmp_path / "v")
    model = laboratory.model(tokenizer)

    def task(split: str, **options: Any) -> Translation:
        pairs = laboratory.parallel()[split]
        return Translation(source=list(pairs["source"]), target=list(pairs["target"]), tokenizer=tokenizer, **options)

    data = Data(task("train"), task("dev"), task("test", metric="loss"))
    course = Course(steps=4, tune=3, warmup=1, batch=100, chunk=100, rate=1e-3)
    ways = ("l0", "rank-gradient", "random", "scratch")
    plan = Plan((3,), ways, ("encoder",), course=course, scratch_steps=5)
    record = tradeoff(model, data, plan, name="m", folder=tmp_path / "work")
    json.loads(record.to_json())
    points = {point["way"]: point for point in record.parts["tradeoff"]}
    assert set(points) == set(ways)
    assert all(point["kept"] == {"encoder": 3, "decoder": 8, "cross": 8} for point in points.values())
    assert points["scratch"]["heads"] == points["l0"]["heads"]
    assert "statistics" not in json.dumps(record.parts)
    arms = tmp_path / "work" / "arms"
    steps = {way: Log(arms / f"{way}-3-0" / "metrics.jsonl").lines()[-1]["step"] for way in ways[1:]}
    assert steps == {"rank-gradient": 7, "random": 7, "scratch": 5}
    rows = {row["way"]: row for row in record.parts["compared"]}
    lost = points["l0"]["after"]["value"] - record.parts["whole"]["value"]
    assert rows["l0"]["lost"]["difference"] == pytest.approx(lost)
    against = points["l0"]["after"]["value"] - points["rank-gradient"]["after"]["value"]
    assert rows["l0"]["against"]["difference"] == pytest.approx(against)
    assert rows["l0"]["against"]["low"] <= against <= rows["l0"]["against"]["high"]
    assert "against" not in rows["rank-gradient"]
    (arms / "random-3-0.json").unlink()
    again = tradeoff(model, data, plan, name="m", folder=tmp_path / "work")
    assert again.parts["tradeoff"] == record.parts["tradeoff"]
    other = Plan((3,), ways, ("encoder",), course=Course(steps=4, tune=2, warmup=1, batch=100, chunk=100, rate=1e-3))
    with pytest.raises(UsageError, match="begun with other settings"):
        tradeoff(model, data, other, name="m", folder=tmp_path / "work")


def test_plans_that_cannot_be() -> None:
    with pytest.raises(UsageError, match="Unknown way"):
        Plan((3,), ("l1",))
    with pytest.raises(UsageError, match="at least one"):
        Plan(())
