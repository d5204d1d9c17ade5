"""What roles and scores over many sentences take in memory: a tiny model, sentences from a file, a process per case.

`python -m benchmarks.memory 1000 10000 100000` prints a table; the benchmark itself compares 2,000 with 20,000.
"""

from __future__ import annotations

import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

import headcount as hc
from benchmarks.row import Row
from headcount.statistics import Interval

WORDS, FEW, MANY = 200, 2_000, 20_000
_ALLOWED = 50.0  # MB; below that the allocator's own noise is all there is


def rows() -> Iterator[Row]:
    for name in WORK:
        (few, seconds_few), (many, seconds_many) = (measured(name, count) for count in (FEW, MANY))
        ratio = (many + _ALLOWED) / (few + _ALLOWED)
        yield Row(
            f"memory of {name}, {MANY} against {FEW} sentences",
            Interval(ratio, ratio, ratio),
            {"MB few": few, "MB many": many, "seconds few": seconds_few, "seconds many": seconds_many},
            at_most=1.5,
        )


def measured(name: str, sentences: int) -> tuple[float, float]:
    """Megabytes above what the process had before it read the file, at most, and seconds."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=_measure, args=(name, sentences, writer))
    process.start()
    writer.close()
    result: tuple[float, float] = reader.recv()
    process.join()
    return result


def _measure(name: str, sentences: int, writer: Any) -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.tsv"
        _write(file, sentences)
        model, tokenizer = _model(), _tokenizer()
        WORK[name](model, tokenizer, hc.Source(str(file), limit=100))  # what is loaded once
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        before, start = _memory("VmRSS"), time.monotonic()
        WORK[name](model, tokenizer, hc.Source(str(file)))
        writer.send((_memory("VmHWM") - before, time.monotonic() - start))


def _memory(field: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1e3


def _write(file: Path, sentences: int) -> None:
    draw = random.Random(0)
    with file.open("w", encoding="utf-8") as table:
        table.write("text\tlabel\n")
        for number in range(sentences):
            words = " ".join(f"w{draw.randrange(WORDS)}" for _ in range(draw.randint(3, 20)))
            table.write(f"{words}\t{number % 2}\n")


def _model() -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    return BertForSequenceClassification(BertConfig(vocab_size=WORDS + 3, **sizes)).eval()


def _tokenizer() -> Any:
    vocabulary = {"<pad>": 0, "<s>": 1, "</s>": 2, **{f"w{number}": number + 3 for number in range(WORDS)}}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<s>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", bos_token="<s>", eos_token="</s>")


def _roles(model: Any, tokenizer: Any, source: Any) -> None:
    hc.roles(model, source.labelled().texts, tokenizer=tokenizer)


def _score(name: str) -> Callable[[Any, Any, Any], None]:
    def work(model: Any, tokenizer: Any, source: Any) -> None:
        hc.score(name, model, hc.task.read("classification", source, tokenizer))

    return work


WORK: dict[str, Callable[[Any, Any, Any], None]] = {
    "roles": _roles,
    "gradient": _score("gradient"),
    "ablation": _score("ablation"),
}


def main(counts: list[int]) -> None:
    print("| | " + " | ".join(f"{count:,} sentences" for count in counts) + " |")
    print("|---|" + "---|" * len(counts))
    for name in WORK:
        cells = [f"{megabytes:.0f} MB, {seconds:.0f} s" for megabytes, seconds in (measured(name, n) for n in counts)]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]] or [1_000, 10_000])
