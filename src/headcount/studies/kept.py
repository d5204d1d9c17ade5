"""Roles of the remaining heads, in the whole model and in the pruned one (Voita et al. 2019, section 6.2).

Pruning and the training after it may give a head another role: roles drift.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from headcount.corpora.frequencies import Frequencies
from headcount.corpora.sentences import Sentences
from headcount.head_roles.evidence import decided, held
from headcount.head_roles.measure import Roles, roles
from headcount.heads import PAPER_ROLES
from headcount.record.results.roles import Evidence
from headcount.record.results.tradeoff import BeforeAfter, HeldRole, LookedAt, RoleChanges

Held = Mapping[str, tuple[HeldRole, ...]]  # name of a head -> roles it has


@dataclass(frozen=True)
class Looking:
    """Sentences to measure roles on, the same for the whole model and every pruned one."""

    sentences: Sentences
    tokenizer: Any
    frequencies: Frequencies | None = None  # in the training data; by default counted in the sentences

    @property
    def fingerprint(self) -> str:
        counted = self.frequencies.source if self.frequencies else "the sentences"
        return f"{self.sentences.fingerprint}, frequencies of {counted}"

    def to_result(self) -> LookedAt:
        return LookedAt(len(self.sentences), self.sentences.trees, self.fingerprint)

    def evidence(self, model: nn.Module) -> Roles:
        return roles(model, self.sentences, tokenizer=self.tokenizer, frequencies=self.frequencies)

    def roles(self, model: nn.Module) -> Held:
        """Roles of the heads that read the sentences: those of the encoder, or of the only stack."""
        return held_roles(self.evidence(model))

    def look(self, pruned: nn.Module, unpruned: Roles) -> tuple[Held, tuple[str, ...]]:
        """Roles of the remaining heads, and the heads without a role of the paper for which none is excluded.

        unpruned: evidence of the model with all heads. Verdicts are corrected for the heads that are gone too: with
        fewer tests a head would gain roles though it looks where it looked before.
        """
        left = self.evidence(pruned)
        seen = [head for head in left.heads if left[head]]
        gone = [item for head in unpruned.heads if head not in left.heads for item in unpruned[head]]
        verdicts = iter(decided([*(item for head in seen for item in left[head]), *gone]))
        by_head = {head: [next(verdicts) for _ in left[head]] for head in seen}
        unsure = tuple(str(head) for head in seen if _may_have_a_role(by_head[head]))
        return {str(head): _held_roles(by_head[head]) for head in seen}, unsure


def held_roles(measured: Roles) -> Held:
    """The roles of each head that ran."""
    return {str(head): _held_roles(measured[head]) for head in measured.heads if measured[head]}


def _held_roles(evidence: Sequence[Evidence]) -> tuple[HeldRole, ...]:
    return tuple(HeldRole(item.role, item.label, item.value, item.baseline) for item in held(evidence))


def _may_have_a_role(evidence: Sequence[Evidence]) -> bool:
    """Whether no role of the paper holds, and not all are excluded: an interval reaches the threshold.

    A role without evidence is not excluded: without trees, nothing is known of syntactic heads.
    """
    of_paper = [item for item in evidence if item.role in PAPER_ROLES]
    unmeasured = set(PAPER_ROLES) - {item.role for item in of_paper}
    return not any(item.holds for item in of_paper) and (bool(unmeasured) or any(not item.below for item in of_paper))


def drift(before_roles: Held, left: Held) -> RoleChanges:
    """Changes of the roles of the remaining heads."""
    changes = Counter(_change(_names(before_roles.get(head, ())), _names(now)) for head, now in left.items())
    before, after = (
        Counter(role for head in left for role in _names(roles.get(head, ()))) for roles in (before_roles, left)
    )
    functions = _functions(before_roles)
    return RoleChanges(
        len(left),
        same=changes["same"],
        gained=changes["gained"],
        lost_roles=changes["lost"],
        exchanged=changes["exchanged"],
        by_role={role: BeforeAfter(before[role], after[role]) for role in sorted({*before, *after})},
        functions=BeforeAfter(len(functions), len(functions & _functions(left))),
    )


def _names(held_roles: Sequence[HeldRole]) -> set[str]:
    return {row.role for row in held_roles}


def _change(before: set[str], now: set[str]) -> str:
    if before == now:
        return "same"
    return "gained" if before < now else "lost" if now < before else "exchanged"


def _functions(roles: Held) -> set[tuple[str, str]]:
    return {(row.role, row.label) for held_roles in roles.values() for row in held_roles}
