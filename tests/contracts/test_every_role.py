"""What every role promises: labels, trials that depend on the text alone, hits that never exceed them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import headcount as hc
import zoo
from behaviour import hooks
from headcount.corpora.frequencies import count_tokens
from headcount.errors import UsageError
from headcount.head_roles.encoding import Batch, Encoder, windows
from headcount.head_roles.reading import Reading
from headcount.head_roles.role import roles
from headcount.head_roles.sight import Sight, View
from headcount.head_roles.tallies import Column, Tally
from headcount.probes.positions import Positions
from planted import tokenizer, trees


def view(kind: str, *, causal: bool) -> View:
    marks = tokenizer()
    encoder = Encoder(marks, longest=200, relations=Reading().relations)
    ((_, found),) = windows(encoder, trees(6), None)
    batch = Batch(found)
    side = Positions(batch.ids_BT, batch.real_BT, batch.special_BT)
    frequencies = count_tokens([tree.text for tree in trees(60)], marks).table(len(marks))
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
        assert role.threshold(labels[0], 0.5, Reading()) > 0


@pytest.mark.parametrize("name", roles)
def test_no_verdict_below_thirty_trials(name: str) -> None:
    """All trials are hits, one in each sentence: 29 are not enough for any role, 40 are for 90%."""
    labels = roles[name].labels(Reading())
    for trials, verdict in ((29, None), (40, True)):
        tally = Tally([Column(name, label) for label in labels], 1, 20)
        counts_BL = np.ones((trials, len(labels) + 2), dtype=np.float32)
        drawn_RB = np.ones((20, trials), dtype=np.float32)
        tally.add(counts_BL[:, None], counts_BL, 0.1 * counts_BL, {}, drawn_RB, np.arange(trials))
        (found,) = tally.evidence({name: roles[name]}, Reading())
        assert [(one.trials, one.holds) for one in found] == [(trials, verdict)] * len(labels)


TEXT = [name for name in zoo.ARCHITECTURES if name not in ("whisper", "vit", "wav2vec2", "clip")]


@pytest.mark.parametrize("architecture", TEXT)
def test_every_text_architecture_shows_what_its_heads_do(architecture: str) -> None:
    model, marks = zoo.build(architecture), tokenizer()
    chosen = [tree for tree in trees(30) if len(marks(tree.text)["input_ids"]) <= 40][:4]
    translates = bool(getattr(model.config, "is_encoder_decoder", False))
    targets = [tree.text for tree in chosen] if translates else None
    found = hc.roles(model, chosen, tokenizer=marks, targets=targets, resamples=20, common=5)
    for head in found.heads:
        assert found[head], head
        assert 0 < found.confidence[head].value <= 1
        assert 0 <= found.left_out[head] < 1
    assert hooks(model) == 0


@pytest.mark.parametrize("architecture", ["whisper", "vit", "clip"])
def test_what_reads_no_text_is_refused(architecture: str) -> None:
    with pytest.raises(UsageError, match="Roles need a text model"):
        hc.roles(zoo.build(architecture), ["the dog"], tokenizer=tokenizer())


def test_a_pruned_model_keeps_its_numbers() -> None:
    bert = zoo.build("bert")
    small = hc.remove(bert, hc.locate(bert).mask(off=["encoder.0.1", "encoder.1.*"]))
    found = hc.roles(small, trees(4), tokenizer=tokenizer(), resamples=20)
    assert found.heads == hc.locate(small).heads
    assert all(found[head] for head in found.heads)
