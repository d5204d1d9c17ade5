"""Other processes, forked from this one: a fresh interpreter would import torch for seconds first."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from typing import Any

PATIENCE = 300.0  # seconds; a machine may be busy
_FORK = multiprocessing.get_context("fork")


def started(work: Callable[[], Any]) -> ForkProcess:
    """A process that does the work and nothing else; the caller kills it or waits for it."""
    process = _FORK.Process(target=work, daemon=True)
    process.start()
    return process


def shared_by(count: int, work: Callable[[], Any]) -> list[Any]:
    """What `work` returns in each of several processes that know each other as `accelerate launch` lets them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    ends = [_FORK.Pipe(duplex=False) for _ in range(count)]
    processes = []
    for rank, (_, writer) in enumerate(ends):
        ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "ACCELERATE_USE_CPU": "true"}
        processes.append(_FORK.Process(target=_member, args=({**ranks, **address}, work, writer), daemon=True))
    for process, (_, writer) in zip(processes, ends, strict=True):
        process.start()
        writer.close()
    try:
        return _results([reader for reader, _ in ends])
    finally:
        for process in processes:
            process.kill()
            process.join()


def _member(environment: dict[str, str], work: Callable[[], Any], writer: Any) -> None:
    from accelerate.state import AcceleratorState, GradientState, PartialState

    os.environ.update(environment)
    for state in (AcceleratorState, GradientState, PartialState):  # what the parent knew of itself
        state._reset_state()
    result = work()
    assert PartialState().num_processes == int(environment["WORLD_SIZE"]), "the work did not bring them together"
    PartialState().wait_for_everyone()
    writer.send(result)


def _results(readers: list[Any]) -> list[Any]:
    results: dict[int, Any] = {}
    while len(results) < len(readers):
        ready = wait([reader for rank, reader in enumerate(readers) if rank not in results], PATIENCE)
        assert ready, f"no answer; only the processes {sorted(results)} are done"
        for reader in ready:
            rank = readers.index(reader)
            try:
                results[rank] = reader.recv()
            except EOFError:
                raise AssertionError(f"process {rank} failed; its traceback is on stderr") from None
    return [results[rank] for rank in range(len(readers))]
