"""Write docs/results/chaos.md from summaries: python -m chaos.page chaos-0.json chaos-1.json > docs/..."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_HEAD = """\
# Faults on purpose

`make chaos` (`PYTHONPATH=tests python -m chaos --seed N`) runs every command that takes longer than a second at the smallest size, and breaks it: a signal (SIGKILL,
SIGTERM, SIGINT in turn) at random moments, half of them seconds, half of them right before a change of the disk (a file opened for writing, a name changed or removed),
every fifth followed by a second one during the resumed run; a disk that fills up at a random share of what the command writes (a tmpfs of that size); a limit of file sizes
(`ulimit -f`); a read-only disk; two processes on one folder at the same time; the model's folder as the output. The processes are forked from one that has imported
everything; the moments come from the seed.

A case is survived if, after the fault, every file that has its real name is whole; if the command failed with one clear line, where it could say one; and if the same command, run
again, ends with the files of a run that nothing interrupted, or refuses in one line because they are there already: bit for bit, but for what depends on the clock (the time in
signatures, everything named `seconds`, the record of `bench`, what is drawn from these); without a lock, a temporary file or a process left. Lost are the seconds of both
runs beyond those of one that nothing interrupted.

What is promised, and which test in `make test` holds it: [promises](../promises.md).
"""

_FOUND = """\
## What it found

The first runs, of a few moments for each command, and the reading that they led to, found these; each is mended at its cause and held by a test of [promises](../promises.md).

| fault | what a user met |
|---|---|
| a process killed between making a scratch folder and locking it | `.NAME.headcount-*` stayed for ever |
| SIGTERM | locks and temporary folders stayed until the next run, those under TMPDIR for ever |
| a kill while `unfinished/` was removed | what was left had no note of its settings: a run with others took it for its own |
| `study specialisation` kept no note of models, data and plan | resumed with others, it took the numbers of the first ones |
| a kill between the model and its record | a trained model without record.json, which the demo took for finished |
| a kill before `training/settings.json` | "holds something else already" for an empty folder |
| a kill after the last file of a pruned model | `training/final` stayed |
| a kill while `train --like` copied a vocabulary | half a vocabulary was taken for one |
| a kill while text was encoded | a temporary file stayed in `training/` |
| an epoch measured, and killed before its state was written | its line was in metrics.jsonl twice |
| resumed between two lines of the log | the next line was the mean over fewer steps, also in the record of gates |
| `.claim` files of a sweep | stayed in the folder |
| `ulimit -f` | "Unexpected OSError" instead of a clear line |
| a full disk when the lock was taken | a bare errno instead of the file that was not written |
| `score MODEL --out MODEL` and other measuring commands | the record of training or pruning was replaced |
| `export --to onnx`, `--to openvino` | both runtimes sent usage data: `.ses` in TMPDIR, an id in the home folder, processes that outlived a kill |
| `export --to gguf`, `--to openvino` on a full disk or above `ulimit -f` | "Unexpected OSError", "Unexpected RuntimeError" |
| an export killed after its one file had its name | its scratch folder stayed until `--overwrite` |
| a kill right after a part of a study had its name | its scratch folder stayed for ever |
| `score --method relevance` above `ulimit -f` | "Unexpected DatasetGenerationError" instead of the cache and what to do |
| `explore`, killed or by two processes | tuples in the page where a run without a fault has lists, or the other way round |
| two processes on one study, all points of the trade-off taken by the first | "Unexpected StopIteration" in the second |
| Ctrl-C or SIGTERM while a destructor of a library ran | Python printed a traceback, and the command ran on |
| Ctrl-C while libraries cleaned up at the end | a traceback of torch |
| `prune --choose greedy`, killed between saving and cleaning up | `OUT.unfinished` stayed for ever |
"""


def page(summaries: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        _HEAD,
        "| seed | moments | cases | stopped by the fault | survived | longest loss | minutes |",
        "|" + "---|" * 7,
    ]
    for summary in summaries:
        rows = summary["commands"].values()
        cases, stopped, survived = (sum(row[name] for row in rows) for name in ("cases", "stopped", "survived"))
        lost = max((row["lost"] for row in rows), default=0.0)
        lines.append(
            f"| {summary['seed']} | {summary['moments']} | {cases} | {stopped} | {survived} | {lost:.1f} s "
            f"| {summary['seconds'] / 60:.0f} |"
        )
    lines += ["", *_by_fault(summaries), "", *_by_command(summaries), "", *_load(summaries)]
    for summary in summaries:
        lines += [f"- not survived, seed {summary['seed']}: {fault.splitlines()[0]}" for fault in summary["faults"]]
    return "\n".join([*lines, "", _FOUND]).rstrip() + "\n"


def _by_fault(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for summary in summaries for name in summary["by_fault"])
    lines = ["| fault | cases | stopped | survived |", "|---|---|---|---|"]
    for name in names:
        rows = [summary["by_fault"].get(name, {}) for summary in summaries]
        sums = (str(sum(row.get(key, 0) for row in rows)) for key in ("cases", "stopped", "survived"))
        lines.append(f"| {name} | {' | '.join(sums)} |")
    return lines


def _by_command(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for summary in summaries for name in summary["commands"])
    lines = ["| command | seconds alone | changes of the disk | cases | survived | lost at most |", "|" + "---|" * 6]
    for name in names:
        rows = [summary["commands"][name] for summary in summaries if name in summary["commands"]]
        cases, survived = (sum(row[key] for row in rows) for key in ("cases", "survived"))
        lost = max(row["lost"] for row in rows)
        lines.append(
            f"| {name} | {rows[0]['seconds']:.1f} | {rows[0]['changes']} | {cases} | {survived} | {lost:.1f} s |"
        )
    return lines


def _load(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    return [
        f"A trade-off folder with {load['points']} points of {load['examples']} examples resumes in {load['seconds']} "
        f"s of CPU (seed {summary['seed']}); 5 s are allowed.\n"
        for summary in summaries
        if (load := summary.get("load"))
    ]


if __name__ == "__main__":
    sys.stdout.write(page([json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]))
