"""ONNX Runtime and OpenVINO without their telemetry: both send usage data when imported, unless told not to."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_NOT_IMPORTED: Any = object()


def import_onnxruntime() -> ModuleType:
    """The package, told to send nothing; a user who has set the variable decides. It also leaves files in TMPDIR."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    module: ModuleType = onnxruntime
    return module


def import_openvino() -> ModuleType:
    """The package without `openvino_telemetry`: it sends from processes of its own, which outlive a killed one."""
    with _hidden("openvino_telemetry"):
        import openvino

    module: ModuleType = openvino
    return module


@contextlib.contextmanager
def _hidden(name: str) -> Iterator[None]:
    """As if a package were not installed."""
    package = sys.modules.get(name, _NOT_IMPORTED)
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if package is _NOT_IMPORTED:
            del sys.modules[name]
        else:
            sys.modules[name] = package
