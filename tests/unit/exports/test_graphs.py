"""ONNX and OpenVINO: graphs of any batch and length compute what the pruned model computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnxruntime
import pytest

import headcount as hc
import zoo
from headcount.errors import NotExportable, UsageError
from tokens import word_tokenizer

OFF = {
    "bert": ["encoder.1.*", "encoder.2.0"],
    "llama": ["decoder.1.*", "decoder.2.0"],
    "pegasus": ["encoder.1.*", "decoder.2.0", "cross.0.1"],
    "t5": ["encoder.1.*", "decoder.0.0", "cross.0.1"],
}


def pruned(architecture: str) -> Any:
    model = zoo.build(architecture)
    return hc.remove(model, hc.locate(model).mask(off=OFF[architecture]), verify=False)


# Tracing takes seconds for each graph: one architecture always, the others with the slow tests.
@pytest.mark.parametrize(
    "architecture", ["bert", *(pytest.param(name, marks=pytest.mark.slow) for name in OFF if name != "bert")]
)
def test_onnx_runtime_computes_what_the_model_computes(architecture: str, tmp_path: Path) -> None:
    model = pruned(architecture)
    out = tmp_path / ("half" if model.config.is_encoder_decoder else "half.onnx")
    done = hc.export(model, "onnx", out, tokenizer=word_tokenizer())
    assert done.agreement is not None
    # PyTorch's own float32 is 1e-4 away from float64 on this T5, on the others 1e-6.
    assert done.agreement.difference < (1e-3 if architecture == "t5" else 1e-4)
    assert done.agreement.same_tokens == done.agreement.tokens
    assert (done.agreement.tokens > 0) == (architecture != "bert")
    files = [path.name for path in (out.glob("*.onnx") if out.is_dir() else [out])]
    assert sorted(files) == (["decoder_model.onnx", "encoder_model.onnx"] if out.is_dir() else ["half.onnx"])


@pytest.mark.slow
def test_openvino_takes_an_encoder_and_a_decoder(tmp_path: Path) -> None:
    done = hc.export(pruned("pegasus"), "openvino", tmp_path / "half", tokenizer=word_tokenizer())
    assert done.agreement is not None
    assert done.agreement.difference < 1e-4
    assert done.agreement.same_tokens == done.agreement.tokens > 0
    assert len(list((tmp_path / "half").glob("openvino_*.xml"))) == 2


def test_openvino_computes_what_the_model_computes(tmp_path: Path) -> None:
    done = hc.export(pruned("bert"), "openvino", tmp_path / "half")
    assert done.agreement is not None
    assert done.agreement.difference < 1e-4


def test_weights_in_eight_bits_are_smaller_and_close(tmp_path: Path) -> None:
    model = pruned("bert")
    done = hc.export(model, "onnx", tmp_path / "half.onnx", dtype="int8")
    assert done.agreement is not None
    assert 0 < done.agreement.difference < 0.5
    assert done.size < 0.7 * sum(parameter.numel() * 4 for parameter in model.parameters())
    assert str(Path(hc.__file__).parent).encode() not in (tmp_path / "half.onnx").read_bytes()
    shapes = {one.name: one.shape for one in onnxruntime.InferenceSession(tmp_path / "half.onnx").get_inputs()}
    assert set(shapes) == {"input_ids", "attention_mask", "token_type_ids"}
    assert all(isinstance(size, str) for shape in shapes.values() for size in shape)


def test_what_cannot_be_written_is_refused_before_work(tmp_path: Path) -> None:
    with pytest.raises(NotExportable, match="takes pixel_values"):
        hc.export(zoo.build("vit"), "onnx", tmp_path / "vit.onnx")
    with pytest.raises(UsageError, match="is a folder of files"):
        hc.export(zoo.build("t5"), "onnx", tmp_path / "t5.onnx")
    with pytest.raises(UsageError, match=r"ends in \.onnx"):
        hc.export(zoo.build("bert"), "onnx", tmp_path / "bert")
    assert not list(tmp_path.iterdir())
