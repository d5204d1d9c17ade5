"""What the heads that are left do: in the whole model, and again without the others (Voita et al. 2019, section 6.2).

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

Held = Mapping[str, Sequence[Mapping[str, Any]]]  # name of a head -> roles it holds: role, label, value, baseline


@dataclass(frozen=True)
class Looking:
    """What roles are looked for on, the same for the whole model and for every smaller one."""

    sentences: Sentences
    tokenizer: Any
    frequencies: Frequencies | None = None  # of tokens in the training data; counted in the sentences if not given

    @property
    def fingerprint(self) -> str:
        counted = self.frequencies.source if self.frequencies else "the sentences"
        return f"{self.sentences.fingerprint}, frequencies of {counted}"

    def described(self) -> dict[str, Any]:
        return {"sentences": len(self.sentences), "trees": self.sentences.trees, "fingerprint": self.fingerprint}

    def roles(self, model: nn.Module) -> dict[str, list[dict[str, Any]]]:
        """What the heads that read the sentences do: those of the encoder, or of a model's only stack."""
        by_head = roles(model, self.sentences, tokenizer=self.tokenizer, frequencies=self.frequencies)
        names = ("role", "label", "value", "baseline")
        return {
            str(head): [{name: getattr(evidence, name) for name in names} for evidence in held(by_head[head])]
            for head in by_head.heads
            if by_head[head]
        }


def drift(before_roles: Held, left: Held) -> dict[str, Any]:
    """What became of the roles of the heads that are left.

    same, gained, lost, exchanged: heads by what happened to the set of their roles.
    roles: for each, how many of these heads hold it in the whole model and how many without the others.
    functions: roles with their labels that any head of the whole model holds, and how many of them are still held.
    """
    changes = Counter(_change(_names(before_roles.get(head, ())), _names(now)) for head, now in left.items())
    before, after = (
        Counter(role for head in left for role in _names(roles.get(head, ()))) for roles in (before_roles, left)
    )
    functions = _functions(before_roles)
    return {
        "heads": len(left),
        **{change: changes[change] for change in ("same", "gained", "lost", "exchanged")},
        "roles": {role: {"whole": before[role], "left": after[role]} for role in sorted({*before, *after})},
        "functions": {"whole": len(functions), "left": len(functions & _functions(left))},
    }


def _names(evidence: Sequence[Mapping[str, Any]]) -> set[str]:
    return {row["role"] for row in evidence}


def _change(before: set[str], now: set[str]) -> str:
    if before == now:
        return "same"
    return "gained" if before < now else "lost" if now < before else "exchanged"


def _functions(roles: Held) -> set[tuple[str, str]]:
    return {(row["role"], row["label"]) for evidence in roles.values() for row in evidence}
