"""Runtimes that send usage data by default are imported without that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import headcount

_IMPORTS = """
import sys
from headcount.exports.telemetry import import_onnxruntime, import_openvino
import_onnxruntime()
import_openvino()
print([name for name in sys.modules if name.startswith("openvino_telemetry")])
"""


def test_runtimes_send_nothing_and_leave_no_file(tmp_path: Path) -> None:
    """ONNX Runtime writes `.ses` to TMPDIR and OpenVINO an id to the home folder before they send anything."""
    switches = ("CI", "TF_BUILD", "JENKINS_URL", "ORT_DISABLE_TELEMETRY")  # any of them keeps both from sending
    environment = {name: value for name, value in os.environ.items() if name not in switches}
    environment |= {name: str(tmp_path) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    environment["PYTHONPATH"] = str(Path(headcount.__file__).parents[1])
    output = subprocess.run(
        [sys.executable, "-c", _IMPORTS], env=environment, check=True, capture_output=True, text=True
    )
    assert output.stdout.strip() == "[]"
    assert not list(tmp_path.rglob("*"))
