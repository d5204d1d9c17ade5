"""Import ONNX Runtime and OpenVINO with telemetry disabled: by default both send usage data when imported."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_NOT_IMPORTED: Any = object()


def import_onnxruntime() -> ModuleType:
    """Import ONNX Runtime without telemetry, unless the user has set `ORT_DISABLE_TELEMETRY`.

    The telemetry also leaves files in TMPDIR.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    module: ModuleType = onnxruntime
    return module


def import_openvino() -> ModuleType:
    """Import OpenVINO without `openvino_telemetry`, whose separate processes outlive a killed parent process."""
    with _hidden("openvino_telemetry"):
        import openvino

    module: ModuleType = openvino
    return module


@contextlib.contextmanager
def _hidden(name: str) -> Iterator[None]:
    """Hide a package from imports, as if it were not installed."""
    package = sys.modules.get(name, _NOT_IMPORTED)
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if package is _NOT_IMPORTED:
            del sys.modules[name]
        else:
            sys.modules[name] = package
