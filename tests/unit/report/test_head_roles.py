"""The figure of relevance, confidence and roles: every record by what was measured of it, every sign visible."""

from __future__ import annotations

import numpy as np

import records
from headcount.report.figure import draw


def test_a_record_without_relevance_is_sorted_by_confidence_and_the_other_is_not() -> None:
    both = [records.roles(), records.roles("shop/model-b", relevance=False)]
    drawing = draw("head-roles", both)
    titles = [axes.get_title() for axes in drawing.canvas.axes]
    assert "model-a, encoder: relevance" in titles
    assert "model-b, encoder: confidence" in titles
    assert "model-b, encoder: relevance" not in titles
    assert "sorted by relevance, or by confidence where no relevance was measured;" in drawing.caption
    assert "sorted by relevance;" in draw("head-roles", both[:1]).caption
    assert "sorted by confidence (no relevance was measured);" in draw("head-roles", both[1:]).caption


def test_negative_relevance_does_not_look_like_none() -> None:
    record = records.roles()
    values = dict.fromkeys(record.parts.relevance, 0.0) | {"encoder.0.0": -0.3, "encoder.0.1": 0.2}
    image = draw("head-roles", [records.changed(record, relevance=values)]).canvas.axes[0].images[0]
    negative, none, positive = (image.cmap(image.norm(value)) for value in (-0.3, 0.0, 0.2))
    assert not np.allclose(negative, none, atol=0.1)
    assert not np.allclose(positive, none, atol=0.1)
    assert image.get_clim() == (-0.3, 0.3)
