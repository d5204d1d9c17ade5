"""Export to ONNX Runtime: one file, or a folder with two for an encoder-decoder, with dynamic batch size and length."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from headcount.exports.graphs.graph import Graph, is_pair, write_onnx
from headcount.exports.graphs.runtime import GraphRuntime
from headcount.exports.graphs.session import PRESENT, Session
from headcount.exports.telemetry import import_onnxruntime


class Onnx(GraphRuntime):
    """Export to ONNX Runtime in float32 or 8 bits."""

    title = "ONNX Runtime"
    types = ("f32", "q8_0", "int8")
    writers = ("onnx",)
    checkers = ("onnxruntime",)
    suffixes = (".onnx",)
    extra = "onnx"
    graph_suffix = ".onnx"

    def suffix(self, model: PreTrainedModel) -> str:
        return "" if is_pair(model) else ".onnx"

    def file(self, target: Path, name: str) -> Path:
        return target / f"{name}.onnx" if target.is_dir() else target

    def store(self, graph: Graph, path: Path, *, dtype: str) -> None:
        write_onnx(graph, path)
        if dtype == "int8":
            _quantise(path)
        elif dtype == "q8_0":
            _quantise_blocks(path)

    def load(self, path: Path, *, threads: int = 1) -> Session:
        return _OnnxSession(path, threads)

    def version(self) -> str:
        return str(import_onnxruntime().__version__)


class _OnnxSession(Session):
    """A graph loaded by ONNX Runtime."""

    def __init__(self, path: Path, threads: int) -> None:
        onnxruntime = import_onnxruntime()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.shapes = {
            entry.name: tuple(size if isinstance(size, int) else None for size in entry.shape)
            for entry in self._session.get_inputs()
        }
        self.outputs = [entry.name for entry in self._session.get_outputs()]
        self._value = onnxruntime.OrtValue

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The cache stays in the runtime: as arrays, it would be copied out and in again for every token."""
        values = {
            name: self._value.ortvalue_from_numpy(np.ascontiguousarray(value))
            if isinstance(value, np.ndarray)
            else value
            for name, value in inputs.items()
        }
        outputs = zip(self.outputs, self._session.run_with_ort_values(self.outputs, values), strict=True)
        return {name: value if name.startswith(PRESENT) else value.numpy() for name, value in outputs}


def _quantise(path: Path) -> None:
    """Quantize the weights of matrix products to int8; activations are quantized dynamically.

    Weights and activations have one scale per matrix. A few large activations, as in Llama, cost much accuracy.
    """
    import_onnxruntime()
    small = path.with_name(f"{path.stem}-int8.onnx")
    with _without_advice():
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(path, small, weight_type=QuantType.QInt8)
    small.replace(path)


def _quantise_blocks(path: Path) -> None:
    """Quantize matrix products to 8 bits in blocks of 32 numbers with a scale each, weights and activations alike."""
    import onnx

    import_onnxruntime()
    with _without_advice():
        from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer

        settings = DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=True, accuracy_level=4, bits=8)
        quantizer = MatMulNBitsQuantizer(onnx.load(path), algo_config=settings)
        quantizer.process()
    onnx.save(quantizer.model.model, path)


@contextmanager
def _without_advice() -> Iterator[None]:
    """Suppress the log messages of the quantizers, and restore the settings of logging, which their import changes."""
    root = logging.root
    disabled, handlers, level = root.manager.disable, list(root.handlers), root.level
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.disable(disabled)


RUNTIME = Onnx()
