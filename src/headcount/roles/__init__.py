"""What heads do: positional, syntactic, rare tokens and more, each with its evidence. One file per role.

`headcount.roles` is this package and, as the public face has it, a function: `hc.roles(model, corpus, tokenizer=...)`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """A package that can be called: importing a part of it puts the package where the function's name is."""

    def __call__(self, model: Any, corpus: Any, **options: Any) -> Any:
        from headcount.roles.measure import roles

        return roles(model, corpus, **options)


sys.modules[__name__].__class__ = _CallablePackage
