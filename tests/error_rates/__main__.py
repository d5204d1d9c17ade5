"""`python tests/error_rates`: how often each number errs, as a table; the exit code is 1 if a promise is broken."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from error_rates.rates import Rate, measured, page, reads


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1000, help="Measurements of a case; default 1000.")
    parser.add_argument("--seed", type=int, default=0, help="Random seed of the measurements; default 0.")
    parser.add_argument("--only", default="", help="Only cases whose name contains this text.")
    parser.add_argument("--out", type=Path, help="File for the table.")
    given = parser.parse_args()
    rates: list[Rate] = []
    for rate in measured(given.repeats, given.seed, given.only):
        print(reads(rate), file=sys.stderr, flush=True)
        rates.append(rate)
    lines = page(rates)
    if given.out:
        given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return 1 if any(rate.broken for rate in rates) else 0


if __name__ == "__main__":
    sys.exit(main())
