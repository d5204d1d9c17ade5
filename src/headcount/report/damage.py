"""Damage: errors that a malformed record raises while it is shown; the rest of the page stays readable."""

from __future__ import annotations

from headcount.errors import HeadcountError

OUT_OF_SHAPE = (LookupError, ValueError, TypeError, ArithmeticError, HeadcountError)
