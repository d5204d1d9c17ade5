"""Batching: which examples each step of an epoch trains on. Pure functions of lengths and a seed.

An epoch is a list of steps; a step is a list of chunks; a chunk is rows of similar length, run through the model at
once. The content of a step depends only on the data, the sizes and the seed, not on the number of processes.
"""

from __future__ import annotations

import numpy as np

from headcount.errors import UsageError

Step = list[np.ndarray]  # row numbers of each chunk
_NOISE = 1.0  # tokens; chunks differ between epochs at the price of little padding


def epoch_steps(lengths_N2: np.ndarray, *, batch: int, chunk: int, seed: int, epoch: int) -> list[Step]:
    """All rows once, in steps of about `batch` source tokens, run in chunks of at most `chunk` padded source tokens."""
    if not 1 <= chunk <= batch:
        raise UsageError(f"chunk must be at least 1 token and at most batch; got chunk {chunk}, batch {batch}.")
    random = np.random.default_rng([seed, epoch])
    chunks = _chunks(lengths_N2, chunk, random)
    random.shuffle(chunks)
    sizes = np.array([int(lengths_N2[rows, 0].sum()) for rows in chunks])
    number_of_step = ((np.cumsum(sizes) - sizes / 2) / batch).astype(int)
    steps: dict[int, Step] = {}
    for number, rows in zip(number_of_step, chunks, strict=True):
        steps.setdefault(int(number), []).append(rows)
    return list(steps.values())


def _chunks(lengths_N2: np.ndarray, tokens: int, random: np.random.Generator) -> Step:
    """Chunks of rows of similar length, with at most `tokens` padded source tokens and twice as many target tokens."""
    noise_N = random.uniform(0, _NOISE, len(lengths_N2))
    source_N, target_N = lengths_N2[:, 0], lengths_N2[:, 1] + noise_N
    # By source length, then by target length, alternately up and down: neighbours are similar on both sides.
    order = np.lexsort((np.where(source_N % 2, -target_N, target_N), source_N))
    sorted_lengths = lengths_N2[order].tolist()  # plain numbers: millions of rows take seconds
    chunks, start, longest_source, longest_target = [], 0, 0, 0
    for index, (source, target) in enumerate(sorted_lengths):
        longest_source, longest_target = max(longest_source, source), max(longest_target, target)
        rows = index - start + 1
        if rows > 1 and (rows * longest_source > tokens or rows * longest_target > 2 * tokens):
            chunks.append(order[start:index])
            start, longest_source, longest_target = index, source, target
    return [*chunks, order[start:]]


def share(step: Step, rank: int, processes: int) -> Step:
    """The chunks of one process: at least one each; over all processes every chunk once."""
    chunks = list(step)
    while len(chunks) < processes:
        largest = max(range(len(chunks)), key=lambda index: len(chunks[index]))
        rows = chunks.pop(largest)
        if len(rows) < 2:
            raise UsageError(
                f"A step of {sum(map(len, step))} sentences cannot be shared by {processes} processes: "
                "use fewer processes or larger batches."
            )
        chunks += [rows[0::2], rows[1::2]]
    return chunks[rank::processes]


def padding_share(lengths_N2: np.ndarray, steps: list[Step]) -> float:
    """Share of padding among all tokens that the model processes, both sides together."""
    real = padded = 0
    for step in steps:
        for rows in step:
            real += int(lengths_N2[rows].sum())
            padded += len(rows) * int(lengths_N2[rows].max(0).sum())
    return 1 - real / padded
