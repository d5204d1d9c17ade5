"""`python tests/fuzz --cases 100000 --seed 0`: mutated input for every reader; the failures, and a table of counts."""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parent.parent))

from fuzz.readers import READERS
from fuzz.runner import Outcome, limit_memory, tried

_MEMORY = 2_000_000_000  # bytes above what Python, torch and transformers take
_SEEDS_APART = 10_000_000  # numbers of the cases of one seed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", choices=READERS, action="append", help="Only this one; may be given again.")
    parser.add_argument("--number", type=int, help="Only the case of this number, with its whole failure.")
    parser.add_argument("--out", type=Path, help="A file for the table.")
    arguments = parser.parse_args()
    names = arguments.reader or list(READERS)
    whole = sum(READERS[name].share for name in names)
    outcomes: list[Outcome] = []
    import torch

    torch.set_num_threads(1)
    for name in names:
        READERS[name].seeds()
    limit_memory(_MEMORY)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        for name in names:
            if arguments.number is not None:
                outcomes.append(tried(name, arguments.number, Path(place) / "case"))
                continue
            count = max(1, round(arguments.cases * READERS[name].share / whole))
            start = arguments.seed * _SEEDS_APART
            for number in range(start, start + count):
                outcomes.append(tried(name, number, Path(place) / "case"))
    lines = _table(outcomes, arguments.seed)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    failures = [outcome for outcome in outcomes if outcome.failure]
    shown: Counter[str] = Counter()
    for outcome in failures:
        kind = f"{outcome.reader} {outcome.failure.strip().splitlines()[-1][:60]}"
        shown[kind] += 1
        if shown[kind] <= 2:
            print(f"\n{outcome.reader} {outcome.number}: {outcome.failure[-1500:]}", file=sys.stderr)
    print(f"\n{len(failures)} failures of {len(shown)} kinds", file=sys.stderr)
    return 1 if failures else 0


def _table(outcomes: list[Outcome], seed: int) -> list[str]:
    lines = [
        f"Seed {seed}, {len(outcomes)} cases, {time.process_time():.0f} s of CPU, "
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB at most.",
        "",
        "| reader | cases | read | refused | failed | slowest case (s) |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(outcome.reader for outcome in outcomes):
        own = [outcome for outcome in outcomes if outcome.reader == name]
        results = Counter(outcome.result for outcome in own)
        counts = " | ".join(str(results[result]) for result in ("read", "refused", "failed"))
        lines.append(f"| {name} | {len(own)} | {counts} | {max(outcome.seconds for outcome in own):.2f} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
