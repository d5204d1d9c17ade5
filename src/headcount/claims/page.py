"""Page: docs/claims.md, generated from the claims and the figures of `headcount.claims.measured`, if given.

python -m headcount.claims.page docs/results/claims.json > docs/claims.md
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from math import isnan
from pathlib import Path

from headcount.claims.claim import Claim, ordered
from headcount.plural import plural
from headcount.record import Record
from headcount.record.results.ledger import Ledger, Verdict

TITLES = {"voita2019": "Voita et al. 2019", "michel2019": "Michel et al. 2019"}
_HEAD = """# Claims of the papers

Every claim has one file in `src/headcount/claims/` with the statistic that decides it. It holds, or does not hold, only
where the whole 95% interval is on one side of the threshold; otherwise it is open. `headcount study all` decides them
at its end, and its report shows them right after the map. This page is written by `python -m headcount.claims.page
docs/results/claims.json`; the figures are those of that file, a ledger of whole studies (`python -m
headcount.claims.measured`).
"""


def page(measured: Record[Ledger] | None = None) -> str:
    """The whole page as Markdown, with figures of what was measured."""
    verdicts = {verdict.number: verdict for verdict in measured.parts.verdicts} if measured else {}
    sections = [_HEAD, _source(measured)]
    for paper, title in TITLES.items():
        head = [
            "claim",
            "the paper",
            "statistic",
            *(["value (95% interval)", "verdict"] if verdicts else []),
            "command",
        ]
        rows = [_row(claim, verdicts.get(claim.number), figures=bool(verdicts)) for claim in ordered([paper])]
        sections.append("\n".join([f"## {title}", "", _line(head), _line(["---"] * len(head)), *map(_line, rows), ""]))
    return "\n".join(sections)


def _source(measured: Record[Ledger] | None) -> str:
    """What the figures were measured on, and by which command."""
    if measured is None:
        return "Nothing is measured here yet.\n"
    ledger, signature = measured.parts, measured.signature
    counts = plural(len(ledger.models), "model")
    seeds = f", pruned with {plural(ledger.seeds, 'seed')} in all" if ledger.seeds else ""
    names, command = ", ".join(ledger.models), signature.arguments.get("command", "")
    first_command, *notes = command.split("; ")
    lines = [f"Measured on {counts}{seeds}, {signature.time[:10]}: {names}.", "", f"- `{first_command}`"]
    return "\n".join([*lines, *(f"- {note}" for note in notes), ""])


def _row(claim: Claim, verdict: Verdict | None, *, figures: bool) -> list[str]:
    cells = [f"{claim.number}. {claim.sentence}", claim.where, claim.statistic]
    if figures and verdict:
        cells[2] = verdict.statistic  # of which the figure is
        cells += [
            _figure(verdict),
            f"**{verdict.word}**: {verdict.detail}" if verdict.detail else f"**{verdict.word}**",
        ]
    elif figures:
        cells += ["", "not measured"]
    return [*cells, f"`{claim.command}`"]


def _figure(verdict: Verdict) -> str:
    if isnan(verdict.value):
        return ""
    ends = "" if isnan(verdict.low) else f" ({verdict.low:.2f} to {verdict.high:.2f})"
    return f"{verdict.value:.2f}{ends}, {plural(verdict.models, 'model')}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    sys.stdout.write(page(Record.load(file) if file and file.is_file() else None))
