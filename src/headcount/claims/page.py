"""Page: docs/claims.md, written from the claims; `python -m headcount.claims.page RECORD...` adds figures of records.

Each RECORD is the combined record of a whole study; records of several models are pooled.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import isnan

from headcount.claims.claim import Claim, ordered
from headcount.claims.ledger import decide
from headcount.claims.studied import StudiedModel
from headcount.record import Record
from headcount.record.results.ledger import Verdict

TITLES = {"voita2019": "Voita et al. 2019", "michel2019": "Michel et al. 2019"}
_HEAD = """# Claims of the papers

Every claim has one file in `src/headcount/claims/` with the statistic that decides it. It holds, or does not hold, only
where the whole 95% interval is on one side; otherwise it is open. `headcount study all` decides them at its end, the
page shows them right after the map. This page is written by `python -m headcount.claims.page`; with the `record.json`
of whole studies it has their figures too.
"""


def page(models: Sequence[StudiedModel] = ()) -> str:
    """The whole page as Markdown; with figures where there are models."""
    sections = [_HEAD]
    if models:
        sections.append(f"Figures: {', '.join(model.name.rstrip('/').rpartition('/')[2] for model in models)}.\n")
    for paper, title in TITLES.items():
        rows = [_row(claim, decide(claim, models) if models else None) for claim in ordered([paper])]
        head = ["claim", "the paper", "statistic", *(["value (95% interval)", "verdict"] if models else []), "command"]
        sections.append("\n".join([f"## {title}", "", _line(head), _line(["---"] * len(head)), *map(_line, rows), ""]))
    return "\n".join(sections)


def _row(claim: Claim, verdict: Verdict | None) -> list[str]:
    measured = (
        [] if verdict is None else [_figure(verdict), f"**{verdict.word}**: {verdict.detail or verdict.changed_by}"]
    )
    return [f"{claim.number}. {claim.sentence}", claim.where, claim.statistic, *measured, f"`{claim.command}`"]


def _figure(verdict: Verdict) -> str:
    if isnan(verdict.value):
        return ""
    ends = "" if isnan(verdict.low) else f" ({verdict.low:.2f} to {verdict.high:.2f})"
    return f"{verdict.value:.2f}{ends}, {verdict.models} model{'s' if verdict.models > 1 else ''}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


if __name__ == "__main__":
    sys.stdout.write(page([StudiedModel.of(Record.load(path)) for path in sys.argv[1:]]))
