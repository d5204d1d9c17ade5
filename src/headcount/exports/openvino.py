"""Export to OpenVINO: a folder with one graph, or two for an encoder-decoder, with dynamic batch size and length."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from headcount.errors import NotExportable
from headcount.exports.graphs.graph import Graph, write_onnx
from headcount.exports.graphs.runtime import GraphRuntime
from headcount.exports.graphs.session import Arrays, Session
from headcount.exports.telemetry import import_openvino


class OpenVino(GraphRuntime):
    """Export to OpenVINO, converted from ONNX."""

    title = "OpenVINO"
    types = ("f32", "f16")
    writers = ("onnx", "openvino")
    checkers = ("openvino",)
    extra = "openvino"
    graph_suffix = ".xml"

    def file(self, target: Path, name: str) -> Path:
        return target / f"openvino_{name}.xml"

    def store(self, graph: Graph, path: Path, *, dtype: str) -> None:
        openvino = import_openvino()
        source = path.with_suffix(".onnx")
        write_onnx(graph, source)
        openvino.save_model(openvino.convert_model(source), path, compress_to_fp16=dtype == "f16")
        source.unlink()

    def load(self, path: Path, *, threads: int = 1) -> Session:
        return _CompiledGraph(path, threads)

    def version(self) -> str:
        return str(import_openvino().__version__.partition("-")[0])


class _CompiledGraph(Session):
    """A graph compiled by OpenVINO for the CPU in float32."""

    def __init__(self, path: Path, threads: int) -> None:
        openvino = import_openvino()
        core, settings = openvino.Core(), {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
        try:
            self._model = core.compile_model(core.read_model(path), "CPU", settings)
        except RuntimeError as error:  # an operation that it does not have, as in DeBERTa
            reason = [line for line in str(error).splitlines() if line.strip()][-1]
            raise NotExportable(f"OpenVINO cannot run the graph {path.name}: {reason}. Try onnx.") from error
        self.shapes = {
            _name(port): tuple(None if size.is_dynamic else size.get_length() for size in port.partial_shape)
            for port in self._model.inputs
        }
        self.outputs = [_name(port) for port in self._model.outputs]

    def run(self, inputs: Mapping[str, np.ndarray]) -> Arrays:
        results = self._model(dict(inputs), share_outputs=True)  # the next run overwrites them: copied once, here
        return {name: np.array(results[index]) for index, name in enumerate(self.outputs)}


def _name(port: Any) -> str:
    """Return the name that an input or output had in the ONNX graph; internal tensors have names with slashes."""
    return next(name for name in sorted(port.get_names()) if "/" not in name)


RUNTIME = OpenVino()
