"""Held-out data: what is measured must not have been learned, chosen or calibrated on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def measured_line(measured: Mapping[str, Any]) -> str:
    """One sentence on the `measured_on` of a record: which texts, and whether they were held out."""
    texts, overlap = _texts(measured), measured["overlap"]
    if measured["held_out"]:
        chosen = " and ".join(dict.fromkeys(map(_texts, measured["chosen_on"])))
        return f"Measured on {texts}, held out: heads were chosen on {chosen}."
    if measured["held_out"] is None:
        return f"Measured on {texts}. Whether heads were chosen on the same examples is unknown."
    if overlap is None or overlap == measured["examples"]:
        return f"NOT held out: measured on {texts}, the same that heads were chosen on."
    return f"NOT all held out: measured on {texts}, and heads were chosen on {overlap} of them."


def _texts(data: Mapping[str, Any]) -> str:
    """Such as `40 texts of test`."""
    count = data["examples"]
    texts = "examples" if count is None else "1 text" if count == 1 else f"{count} texts"
    return f"{texts} of {data['split']}" if data["split"] else texts
