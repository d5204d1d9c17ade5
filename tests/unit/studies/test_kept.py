"""What the heads that are left do: drift against a slow count, roles against looking by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import headcount as hc
import laboratory
from headcount.corpora.grammar.corpus import Grammar
from headcount.corpora.sentences import Sentences
from headcount.head_roles.evidence import HalvedEvidence
from headcount.heads import PAPER_ROLES, Head
from headcount.record.results.tradeoff import BeforeAfter, HeldRole
from headcount.studies.kept import Held, Looking, drift

ROLES = {"positional": ("-1", "+1"), "syntactic": ("obj v->o", "nsubj s->v"), "rare": ("two rarest",)}


def held(random: np.random.Generator) -> tuple[HeldRole, ...]:
    every = [(role, label) for role, labels in ROLES.items() for label in labels]
    chosen = random.permutation(len(every))[: random.integers(0, 4)]
    return tuple(HeldRole(*every[place], 0.9, 0.1) for place in chosen)


@pytest.mark.parametrize("seed", range(20))
def test_drift_is_what_a_slow_count_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    whole: Held = {f"encoder.0.{number}": held(random) for number in range(9)}
    left: Held = {head: held(random) for head in whole if random.random() < 0.6}
    found = drift(whole, left)
    same = gained = lost = exchanged = 0
    for head in left:
        before, now = [one.role for one in whole[head]], [one.role for one in left[head]]
        new = [role for role in now if role not in before]
        gone = [role for role in before if role not in now]
        same += not new and not gone
        gained += bool(new) and not gone
        lost += bool(gone) and not new
        exchanged += bool(new) and bool(gone)
    assert (found.same, found.gained, found.lost_roles, found.exchanged) == (same, gained, lost, exchanged)
    assert found.num_heads == len(left) == same + gained + lost + exchanged
    for role in ROLES:
        counts = {"whole": 0, "left": 0}
        for head in left:
            counts["whole"] += any(one.role == role for one in whole[head])
            counts["left"] += any(one.role == role for one in left[head])
        assert found.by_role.get(role, BeforeAfter(0, 0)) == BeforeAfter(**counts)
    functions = still = 0
    for role, labels in ROLES.items():
        for label in labels:
            there = any((one.role, one.label) == (role, label) for some in whole.values() for one in some)
            here = any((one.role, one.label) == (role, label) for some in left.values() for one in some)
            functions, still = functions + there, still + (there and here)
    assert found.functions == BeforeAfter(functions, still)


def test_a_planted_drift_is_seen() -> None:
    one = HeldRole("positional", "-1", 0.95, 0.1)
    other = HeldRole("syntactic", "obj v->o", 0.7, 0.4)
    whole: Held = {"encoder.0.0": (one,), "encoder.0.1": (other,), "encoder.1.0": (one,), "encoder.1.1": ()}
    found = drift(whole, {"encoder.0.0": (one, other), "encoder.1.0": (), "encoder.1.1": ()})
    assert found.by_role == {"positional": BeforeAfter(2, 1), "syntactic": BeforeAfter(0, 1)}
    assert (found.same, found.gained, found.lost_roles, found.exchanged) == (1, 1, 1, 0)
    assert found.functions == BeforeAfter(2, 2), "the syntactic function went to another head"


def test_heads_are_looked_at_where_they_are_left_by_their_old_names(tmp_path: Path) -> None:
    tokenizer = laboratory.vocabulary(tmp_path / "v")
    model = laboratory.model(tokenizer)
    trees = [row.tree for row in Grammar("light", "dialogue", train=300).splits()["dev"][:30]]
    looking = Looking(Sentences(trees, [tree.text for tree in trees]), tokenizer)
    small = hc.remove(model, hc.locate(model).mask(off=["encoder.0.0", "encoder.1.*"]))
    found = looking.roles(small)
    assert list(found) == ["encoder.0.1", "encoder.0.2", "encoder.0.3"], "the encoder's, without translations"
    by_hand = hc.roles(small, trees, tokenizer=tokenizer, resamples=10)
    for head, some in found.items():
        assert [(one.role, one.label, one.value) for one in some] == [
            (one.role, one.label, one.value) for one in by_hand.held()[head]
        ]
    assert set(looking.roles(model)) == {f"encoder.{layer}.{head}" for layer in range(2) for head in range(4)}
    assert looking.to_result().trees == 30
    assert looking.fingerprint != Looking(Sentences(trees[:-1]), tokenizer).fingerprint


def test_a_head_may_have_a_role_that_too_few_sentences_show(tmp_path: Path) -> None:
    """Against the evidence by hand: no role of the paper holds, and an interval reaches its threshold."""
    tokenizer = laboratory.vocabulary(tmp_path / "v")
    model = laboratory.model(tokenizer)
    trees = [row.tree for row in Grammar("light", "dialogue", train=300).splits()["dev"][:30]]
    looking = Looking(Sentences(trees, [tree.text for tree in trees]), tokenizer)
    by_head = hc.roles(model, trees, tokenizer=tokenizer)
    expected = []
    for head in by_head.heads:
        rows = [row for row in by_head[head] if row.role in PAPER_ROLES]
        if rows and not any(row.holds for row in rows) and not all(row.high < row.threshold for row in rows):
            expected.append(str(head))
    assert list(looking.look(model, looking.evidence(model))[1]) == expected


def test_without_trees_any_head_may_be_syntactic(tmp_path: Path) -> None:
    """What was not measured was taken for absent: V13 failed where all heads had a role."""
    tokenizer = laboratory.vocabulary(tmp_path / "v")
    model = laboratory.model(tokenizer)
    trees = [row.tree for row in Grammar("light", "dialogue", train=300).splits()["dev"][:30]]
    looking = Looking(Sentences([tree.text for tree in trees]), tokenizer)
    with_role, unsure = looking.look(model, looking.evidence(model))
    without_role = [head for head, roles in with_role.items() if not {role.role for role in roles} & set(PAPER_ROLES)]
    assert without_role
    assert list(unsure) == without_role


def test_fewer_tests_give_no_head_a_role(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that looks where it looked had no role among ten heads, and got one when nine were gone."""

    class Measured(dict[Head, list[HalvedEvidence]]):
        heads = property(list)

    def row(p: float) -> HalvedEvidence:
        return HalvedEvidence("positional", "-1", 0.95, 0.1, 0.9, 0.92, 0.97, 100, None, p=p)

    heads = [Head("encoder", 0, index) for index in range(10)]
    whole = Measured({head: [row(0.5 if head.index else 0.01)] for head in heads})
    left = Measured({heads[0]: [row(0.01)]})
    monkeypatch.setattr(Looking, "evidence", lambda *_: left)
    names, unsure = Looking(Sentences([]), None).look(torch.nn.Identity(), whole)
    assert names == {"encoder.0.0": ()}
    assert unsure == ("encoder.0.0",)
    names, unsure = Looking(Sentences([]), None).look(torch.nn.Identity(), left)
    assert [role.role for role in names["encoder.0.0"]] == ["positional"], "of one test it is certain"
