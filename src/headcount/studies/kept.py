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
from headcount.head_roles.evidence import held
from headcount.head_roles.measure import roles
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

    def roles(self, model: nn.Module) -> Held:
        """Roles of the heads that read the sentences: those of the encoder, or of the only stack."""
        return self.look(model)[0]

    def look(self, model: nn.Module) -> tuple[Held, tuple[str, ...]]:
        """The same, and the heads without a role of the paper for which the sentences do not exclude one."""
        by_head = roles(model, self.sentences, tokenizer=self.tokenizer, frequencies=self.frequencies)
        seen = [head for head in by_head.heads if by_head[head]]
        by_name = {
            str(head): tuple(
                HeldRole(evidence.role, evidence.label, evidence.value, evidence.baseline)
                for evidence in held(by_head[head])
            )
            for head in seen
        }
        return by_name, tuple(str(head) for head in seen if _may_have_a_role(by_head[head]))


def _may_have_a_role(evidence: Sequence[Evidence]) -> bool:
    """Whether no role of the paper holds, and not all are excluded: an interval reaches the threshold."""
    of_paper = [item for item in evidence if item.role in PAPER_ROLES]
    return not any(item.holds for item in of_paper) and any(not item.high < item.threshold for item in of_paper)


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
