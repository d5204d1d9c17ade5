"""What every role promises: labels, trials that depend on the text alone, hits that never exceed them."""

from __future__ import annotations

import pytest
import torch

from headcount.corpora.frequencies import counted
from headcount.probes.positions import Positions
from headcount.roles.encoding import Batch, Encoder, windows
from headcount.roles.reading import Reading
from headcount.roles.role import roles
from headcount.roles.sight import Sight, View
from planted import tokenizer, trees


def view(kind: str, *, causal: bool) -> View:
    marks = tokenizer()
    encoder = Encoder(marks, longest=200, relations=Reading().relations)
    ((_, found),) = windows(encoder, trees(6), None)
    batch = Batch(found)
    side = Positions(batch.ids_BT, batch.real_BT, batch.special_BT)
    frequencies = counted([tree.text for tree in trees(60)], marks).table(len(marks))
    return View(batch, kind, causal, side, side, Reading(common=10), frequencies)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", roles)
def test_hits_are_among_trials(name: str, causal: bool) -> None:
    role = roles[name]
    labels = role.labels(Reading())
    assert labels
    assert len(set(labels)) == len(labels)
    for kind in role.kinds:
        before = view(kind, causal=causal and kind == "self")
        trials = role.trials(before)
        assert trials is not None
        assert trials.trials_BL.shape == (6, len(labels))
        assert (trials.chance_BL <= trials.trials_BL + 1e-6).all()
        rows, length = before.queries.ids_BT.shape
        generator = torch.Generator().manual_seed(0)
        weights = torch.rand(rows, 3, length, length, generator=generator).masked_fill(
            ~before.keys.real_BT[:, None, None], 0
        )
        if before.causal:
            weights = weights.tril()
        hits_BHL = role.hits(trials, Sight(before, weights / weights.sum(-1, keepdim=True).clamp_min(1e-9)))
        assert hits_BHL.shape == (rows, 3, len(labels))
        assert (hits_BHL.abs() <= trials.trials_BL[:, None] + 1e-6).all()
        assert role.verdict(labels[0], 0.5, Reading()).threshold > 0
