"""ONNX: one file for ONNX Runtime, or a folder with two for an encoder-decoder; with any batch and length."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel

from headcount.exports import graphs
from headcount.exports.agreement import Agreement
from headcount.exports.runtime import ExportedModel, Obstacle, Runtime

_TOLERANCES = {"f32": 1e-3, "int8": 10.0}  # eight bits change a fragile model much: only nonsense is refused


class Onnx(Runtime):
    """Graphs for ONNX Runtime, in float32 or with weights in eight bits."""

    title = "ONNX Runtime"
    types = ("f32", "int8")
    writers = ("onnx", "onnxscript")
    checkers = ("onnxruntime",)
    suffixes = (".onnx",)
    extra = "onnx"

    def suffix(self, model: PreTrainedModel) -> str:
        return "" if graphs.is_pair(model) else ".onnx"

    def obstacle(self, model: PreTrainedModel) -> Obstacle | None:
        return graphs.obstacle(model)

    def tolerance(self, dtype: str) -> float:
        return _TOLERANCES[dtype]

    def costs(self, subject: ExportedModel) -> list[str]:
        return graphs.costs(subject.model)

    def write(self, subject: ExportedModel, target: Path, *, dtype: str) -> None:
        for graph in graphs.graphs(subject.model):
            path = _path(target, graph.name)
            graphs.write_onnx(graph, path)
            if dtype == "int8":
                _quantise(path)
        write_beside(subject, target)

    def check(self, subject: ExportedModel, target: Path) -> Agreement:
        import onnxruntime

        names = ("encoder_model", "decoder_model") if graphs.is_pair(subject.model) else ("model",)
        run = {name: _Session(_path(target, name)) for name in names}
        return graphs.check_graphs(subject, run, runtime="ONNX Runtime", version=onnxruntime.__version__)


class _Session:
    """A file, loaded by ONNX Runtime on one thread."""

    def __init__(self, path: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(self._session.run(None, dict(inputs))[0])


def write_beside(subject: ExportedModel, target: Path) -> None:
    """Config and tokenizer, where the export is a folder."""
    if target.is_dir():
        subject.model.config.save_pretrained(target)
        if subject.tokenizer is not None:
            subject.tokenizer.save_pretrained(target)


def _path(target: Path, name: str) -> Path:
    return target / f"{name}.onnx" if target.is_dir() else target


def _quantise(path: Path) -> None:
    """Weights of matrix products in eight bits, activations in eight bits as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    small = path.with_name(f"{path.stem}-int8.onnx")
    quantize_dynamic(path, small, weight_type=QuantType.QInt8)
    small.replace(path)


RUNTIME = Onnx()
