"""OpenVINO: a folder with the graph of a model, or with two for an encoder-decoder; with any batch and length."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from transformers import PreTrainedModel

from headcount.exports import graphs
from headcount.exports.agreement import Agreement
from headcount.exports.onnx import write_beside
from headcount.exports.runtime import ExportedModel, Obstacle, Runtime

if TYPE_CHECKING:
    from openvino import Core

_TOLERANCES = {"f32": 1e-3, "f16": 0.5}


class OpenVino(Runtime):
    """Graphs for OpenVINO, by way of ONNX."""

    title = "OpenVINO"
    types = ("f32", "f16")
    writers = ("onnx", "onnxscript", "openvino")
    checkers = ("openvino",)
    extra = "openvino"

    def obstacle(self, model: PreTrainedModel) -> Obstacle | None:
        return graphs.obstacle(model)

    def tolerance(self, dtype: str) -> float:
        return _TOLERANCES[dtype]

    def costs(self, subject: ExportedModel) -> list[str]:
        return graphs.costs(subject.model)

    def write(self, subject: ExportedModel, target: Path, *, dtype: str) -> None:
        import openvino

        for graph in graphs.graphs(subject.model):
            path = target / f"{graph.name}.onnx"
            graphs.write_onnx(graph, path)
            converted = openvino.convert_model(path)
            openvino.save_model(converted, _path(target, graph.name), compress_to_fp16=dtype == "f16")
            path.unlink()
        write_beside(subject, target)

    def check(self, subject: ExportedModel, target: Path) -> Agreement:
        import openvino

        names = ("encoder_model", "decoder_model") if graphs.is_pair(subject.model) else ("model",)
        core = openvino.Core()
        run = {name: _Compiled(core, _path(target, name)) for name in names}
        return graphs.check_graphs(subject, run, runtime="OpenVINO", version=openvino.__version__.partition("-")[0])


class _Compiled:
    """A graph, compiled by OpenVINO for the CPU in float32."""

    def __init__(self, core: Core, path: Path) -> None:
        settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
        self._model = core.compile_model(core.read_model(path), "CPU", settings)

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(self._model(dict(inputs))[0])


def _path(target: Path, name: str) -> Path:
    return target / f"openvino_{name}.xml"


RUNTIME = OpenVino()
