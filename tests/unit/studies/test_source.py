"""What a command was told, said again for the next one."""

from __future__ import annotations

from headcount.studies.source import ParallelText, TaskText


def test_a_task_is_said_again_as_it_was_asked_for() -> None:
    text = ParallelText("my data/pairs", ("en", "de"), None, 250)
    fields = {"text": None, "label": None, "pair": None}
    quality = {"beams": 1, "lowercase": True, "metric": "loss"}
    work = TaskText("translation", text, "dev", None, 16, 256, fields, quality)
    expected = "--task translation --data 'my data/pairs' --languages en,de --lowercase --metric loss"
    assert work.as_options() == expected
    labelled = {"text": "sentence", "label": "its class", "pair": None}
    plain = TaskText("classification", ParallelText("d", None, None, 250), "dev", None, 16, 256, labelled, {})
    assert plain.as_options() == "--task classification --data d --text sentence --label 'its class'"
