"""Speed (Michel et al. 2019, Table 4): models compared by batch size and length, separately for reading and writing.

Every repeat runs all models one after the other in a new random order, so that other load affects all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import nn

from headcount.errors import UsageError
from headcount.hooks import is_encoder_decoder
from headcount.progress import Progress, silent
from headcount.record import Record, Signature
from headcount.record.results.bench import ComparedQuality, Size, Speed, Timing
from headcount.sites.devices import compute_device
from headcount.sites.fingerprint import weight_hash
from headcount.sites.inputs import example_batch, longest, position_limit
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.surgery.cost import cache_bytes, cost
from headcount.tasks.overlap import Examples, measured_on
from headcount.tasks.quality import Quality
from headcount.tasks.task import Task
from headcount.timing import TimedCall, Times, interleave

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Bench:
    """Settings of the measurement."""

    batches: tuple[int, ...] = (1, 4, 16, 64)
    lengths: tuple[int, ...] = (32, 128)
    written: int = 16  # tokens to generate
    repeats: int = 7
    warmup: int = 1

    def __post_init__(self) -> None:
        numbers = (*self.batches, *self.lengths, self.written, self.repeats)
        if not self.batches or not self.lengths or min(numbers) < 1 or self.warmup < 0:
            raise UsageError(f"Batch sizes, lengths, generated tokens and repeats must be at least 1; got {self}.")


class Subject(Protocol):
    """Something to measure: a model in PyTorch, or an export loaded by its runtime."""

    @property
    def device(self) -> str: ...

    def fingerprint(self) -> str:
        """A hash of the weights."""

    def limit(self, length: int, written: int) -> int:
        """This many input tokens, or as many as leave positions for the tokens written after them; 0 if none do."""

    def works(self, batch: int, length: int, written: int) -> dict[str, TimedCall]:
        """Functions to time: reading a batch and, if the model generates text, writing tokens after it."""

    def size(self, length: int) -> Size: ...

    def cache_bytes(self, length: int) -> int | None:
        """Bytes of the key/value cache of one text of this length."""

    def module(self) -> nn.Module | None:
        """A module with the outputs of a Hugging Face model, to measure quality; None if the runtime lacks them."""


def speed(
    models: Mapping[str, nn.Module | Subject],
    *,
    bench: Bench | None = None,
    task: Task | None = None,
    chosen_on: Sequence[Examples] = (),
    progress: Progress = silent,
) -> Record[Speed]:
    """The first model against each of the others.

    task: measures the quality of every model too, exports in their runtimes.
    chosen_on: what heads of any of the models were chosen on, as far as it is known.

    Rows have the examples read per second (one forward pass, or the time to the first token), the tokens written per
    second, and the ratio to the first model with its interval.
    """
    bench = bench or Bench()
    if not models:
        raise UsageError("No model to measure: give at least one.")
    subjects = {name: TorchSubject(model) if isinstance(model, nn.Module) else model for name, model in models.items()}
    quality = _quality(subjects, task, progress) if task else {}
    rows: list[Timing] = []
    reference = next(iter(subjects.values()))
    lengths = sorted({_common_length(subjects, length, bench.written) for length in bench.lengths})
    settings = [(batch, length) for length in lengths for batch in bench.batches]
    for number, (batch, length) in enumerate(settings, start=1):
        works = {name: subject.works(batch, length, bench.written) for name, subject in subjects.items()}
        for what in works[next(iter(works))]:
            able = {name: work[what] for name, work in works.items() if what in work}
            times = interleave(able, repeats=bench.repeats, warmup=bench.warmup)
            amount = batch * (bench.written if what == "writing" else 1)
            rows += _rows(times, what, batch, length, amount)
        progress("measuring", number, len(settings))
    parts = Speed(
        rows=tuple(rows),
        models={name: subject.size(max(lengths)) for name, subject in subjects.items()},
        threads=torch.get_num_threads(),
        device=reference.device,
        quality=quality,
        measured_on=measured_on(chosen_on, task) if task and chosen_on else None,
    )
    arguments = {"written": bench.written, "repeats": bench.repeats}
    data = task.fingerprint if task else ""
    return Record("bench", Signature(next(iter(models)), reference.fingerprint(), data, arguments=arguments), parts)


def _common_length(subjects: Mapping[str, Subject], length: int, written: int) -> int:
    """This many input tokens, or as many as all models have positions for."""
    possible = {name: subject.limit(length, written) for name, subject in subjects.items()}
    name = min(possible, key=lambda name: possible[name])
    if possible[name] < 1:
        raise UsageError(f"{name} has too few positions to write {written} tokens: give fewer (--written).")
    return possible[name]


def _quality(subjects: Mapping[str, Subject], task: Task, progress: Progress) -> dict[str, ComparedQuality]:
    """The quality of every model that can be measured, and its paired difference from the first of them."""
    if not task.in_one_run:
        raise UsageError(
            f"Beside speed, quality is measured by one pass over the data, but {task.metric.name} needs generated "
            "text. Give --metric loss."
        )
    measured: dict[str, Quality] = {}
    for number, (name, subject) in enumerate(subjects.items(), start=1):
        progress("measuring the quality of model", number, 0)  # runtimes differ much: no time left can be told
        module = subject.module()
        if module is not None:
            measured[name] = task.quality(module)
    compared, reference = {}, next(iter(measured.values()), None)
    for name, quality in measured.items():
        change = (0.0, 0.0, 0.0)  # of the reference model from itself
        if reference is not None and quality is not reference:
            against = quality.against(reference)
            change = (against.difference, against.low, against.high)
        difference, low, high = change
        compared[name] = ComparedQuality(
            task.metric.name, *quality.interval(), difference=difference, difference_low=low, difference_high=high
        )
    return compared


class TorchSubject:
    """A model in PyTorch."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model

    @property
    def device(self) -> str:
        return str(compute_device(self._model))

    def fingerprint(self) -> str:
        return weight_hash(self._model)

    def limit(self, length: int, written: int) -> int:
        length, table = longest(self._model, length), position_limit(self._model)
        if table is None or not self._writes:
            return length
        if is_encoder_decoder(self._model):  # what is written has positions of its own, after a start token
            return length if written < table else 0
        return min(length, max(0, table - written))

    @property
    def _writes(self) -> bool:
        return hasattr(self._model, "can_generate") and bool(self._model.can_generate())  # type: ignore[operator]

    def works(self, batch: int, length: int, written: int) -> dict[str, TimedCall]:
        model: Any = self._model
        inputs = example_batch(model, batch=batch, length=length, target=1, padded=False)

        def reading() -> None:
            with evaluating(model):
                model(**inputs)

        works: dict[str, TimedCall] = {"reading": reading}
        if self._writes:
            works["writing"] = _writing(model, inputs, written)
        return works

    def size(self, length: int) -> Size:
        spent = cost(self._model, length=length)
        weights = sum(parameter.numel() * parameter.element_size() for parameter in self._model.parameters())
        heads = len(locate(self._model).heads)
        return Size(heads, spent.parameters, weights, spent.cache_bytes, spent.flops, spent.length)

    def cache_bytes(self, length: int) -> int:
        """Nothing runs at this length, which may be longer than memory allows."""
        return cache_bytes(self._model, longest(self._model, length))

    def module(self) -> nn.Module:
        return self._model


def _writing(model: PreTrainedModel, inputs: Mapping[str, torch.Tensor], written: int) -> TimedCall:
    """Generate tokens with a cache of the input; the cache is filled once and truncated after each run."""
    with evaluating(model):
        if model.config.is_encoder_decoder:
            source = {name: value for name, value in inputs.items() if not name.startswith("decoder_")}
            arguments = {
                "encoder_outputs": model.get_encoder()(**source),
                "attention_mask": source.get("attention_mask"),
            }
            now, name = inputs["decoder_input_ids"][:, :1], "decoder_input_ids"
        else:
            arguments, now, name = {}, inputs["input_ids"][:, :1], "input_ids"
        seen = {key: value for key, value in inputs.items() if key in ("input_ids", "attention_mask")}
        start = model(**(arguments | {name: now} if model.config.is_encoder_decoder else seen), use_cache=True)
    cache = start.past_key_values
    if hasattr(cache, "activate_past_recording"):
        cache.activate_past_recording()  # a cache of sliding windows forgets what `crop` needs

    def writing() -> None:
        with evaluating(model):
            for _ in range(written):
                model(**arguments, **{name: now}, past_key_values=cache, use_cache=True)
            cache.crop(-written)

    return writing


def _rows(times: Times, what: str, batch: int, length: int, amount: int) -> list[Timing]:
    base = next(iter(times.seconds))
    return [
        Timing(
            name, what, batch, length, times.median(name), float(seconds.min()), float(seconds.max()),
            amount / times.median(name), *times.ratio(base, name),
        )
        for name, seconds in times.seconds.items()
    ]  # fmt: skip
