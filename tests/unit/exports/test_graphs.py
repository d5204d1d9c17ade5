"""ONNX and OpenVINO: graphs of any batch and length compute what the pruned model computes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import transformers

import headcount as hc
import zoo
from deployed import UNEVEN, pruned
from headcount.errors import NotExportable, UsageError, VerificationError
from headcount.exports.agreement import STEPS
from headcount.exports.export import RUNTIMES, Export, fits
from headcount.exports.graphs.runtime import GraphRuntime
from headcount.exports.graphs.session import GraphModel
from headcount.exports.load_export import load_export
from headcount.exports.openvino import RUNTIME as OPENVINO
from headcount.exports.runtime import ExportedModel
from headcount.sites.inputs import example_batch
from tokens import word_tokenizer

ALWAYS = {("onnx", "bert"), ("onnx", "llama"), ("onnx", "t5"), ("openvino", "llama")}  # the others with the slow tests
GRAPHS = [name for name in UNEVEN if name != "qwen3 tied"]  # the same graph as that of qwen3


def cases(architectures: Iterable[str]) -> list[Any]:
    return [
        pytest.param(runtime, name, marks=[] if (runtime, name) in ALWAYS else [pytest.mark.slow])
        for runtime in ("onnx", "openvino")
        for name in architectures
    ]


def place(folder: Path, runtime: str, model: Any) -> Path:
    return folder / ("half" if model.config.is_encoder_decoder or runtime == "openvino" else "half.onnx")


Exporter = Callable[[str, str], tuple[Any, Path, Export]]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    """A pruned model by runtime and architecture, the place of its graphs and what was checked; each is made once."""

    @cache
    def export(runtime: str, architecture: str) -> tuple[Any, Path, Export]:
        model = pruned(architecture)
        out = place(tmp_path_factory.mktemp("graphs"), runtime, model)
        return model, out, hc.export(model, runtime, out, tokenizer=word_tokenizer())

    return export


def greedy(model: Any, runtime: GraphModel, batch: dict[str, torch.Tensor]) -> list[list[int]]:
    """What a runtime writes with its cache, each token read once."""
    text = {name: batch[name].numpy() for name in ("input_ids", "attention_mask")}
    progress = runtime.begin(text)
    ids, mask = text["input_ids"], text["attention_mask"]
    if model.config.is_encoder_decoder:
        ids, mask = np.full((len(ids), 1), model.config.decoder_start_token_id), None
    written = []
    for _ in range(STEPS):
        ids, mask = runtime.step(progress, ids, mask)[:, -1:].argmax(-1), None
        written.append(ids[:, 0])
    return np.stack(written, axis=1).tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(("runtime", "architecture"), cases(GRAPHS))
def test_graphs_compute_what_the_model_computes(runtime: str, architecture: str, exported: Exporter) -> None:
    model, out, done = exported(runtime, architecture)
    assert done.agreement is not None
    # PyTorch's own float32 is 1e-4 away from float64 on this T5, on the others 1e-6.
    assert done.agreement.difference < (1e-3 if architecture == "t5" else 1e-4)
    assert done.agreement.same_tokens == done.agreement.tokens
    assert (done.agreement.tokens > 0) == model.can_generate()
    suffix = ".onnx" if runtime == "onnx" else ".xml"
    files = [path for path in (out.iterdir() if out.is_dir() else [out]) if path.suffix == suffix]
    assert len(files) == (2 if model.config.is_encoder_decoder else 1)


@pytest.mark.parametrize(("runtime", "architecture"), cases(["llama", "gpt2", "gemma2", "pegasus", "t5"]))
def test_writing_with_the_cache_gives_the_tokens_of_generate(
    runtime: str, architecture: str, exported: Exporter
) -> None:
    model, out, _ = exported(runtime, architecture)
    batch = example_batch(model, batch=3, length=6, seed=4)
    text = {name: batch[name] for name in ("input_ids", "attention_mask")}
    limits = {"max_new_tokens": STEPS, "min_new_tokens": 0, "eos_token_id": None}
    with torch.no_grad():
        expected = model.generate(**text, do_sample=False, **limits)[:, -STEPS:]
    graphs = RUNTIMES[runtime]
    assert isinstance(graphs, GraphRuntime)
    assert greedy(model, graphs.model(out), batch) == expected.tolist()


def decoder_of_encoders(family: str) -> Any:
    """A decoder of a family that is mostly used for encoders."""
    settings = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "vocab_size": zoo.VOCABULARY}
    config = getattr(transformers, f"{family}Config")(**settings, **ids, max_position_embeddings=66, is_decoder=True)
    torch.manual_seed(0)
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4 if weight.dim() > 1 else 1)
    return model


COUNT_AFTER_PADDING = ("Roberta", "XLMRoberta", "Camembert", "RobertaPreLayerNorm", "Data2VecText")
BUILDERS = {
    **{name: partial(decoder_of_encoders, name) for name in (*COUNT_AFTER_PADDING, "Electra")},
    **{name: partial(zoo.build, name) for name in zoo.DECODERS},
}
AT_ONCE = {("onnx", "Roberta"), ("openvino", "Roberta")}  # the others with the slow tests


@pytest.mark.parametrize(
    ("runtime", "architecture"),
    [
        pytest.param(runtime, name, marks=[] if (runtime, name) in AT_ONCE else [pytest.mark.slow])
        for runtime, name in sorted({*AT_ONCE, *(("onnx", name) for name in BUILDERS)})
    ],
)
def test_a_text_has_the_logits_of_the_plain_call_alone_and_after_padding(
    runtime: str, architecture: str, tmp_path: Path
) -> None:
    """RoBERTa counts positions from after its padding index."""
    model = BUILDERS[architecture]()
    out = place(tmp_path, runtime, model)
    hc.export(model, runtime, out)
    measured = load_export(out)
    assert measured is not None
    ids = torch.randint(3, zoo.VOCABULARY, (1, 7), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    for padding in (0, 3):
        padded = torch.nn.functional.pad(ids, (padding, 0), value=model.config.pad_token_id)
        mask = torch.nn.functional.pad(torch.ones_like(ids), (padding, 0))
        computed = measured.module()(input_ids=padded, attention_mask=mask).logits[:, padding:]
        assert torch.allclose(computed, expected, atol=1e-4)


@pytest.mark.parametrize("architecture", ["mbart", "t5gemma"])
def test_a_translator_without_a_start_token_is_written(architecture: str, tmp_path: Path) -> None:
    model: Any = zoo.without_start_token(architecture)
    done = hc.export(model, "onnx", tmp_path / "graphs", tokenizer=word_tokenizer(framed=True))
    assert done.agreement is not None
    assert done.agreement.difference < 1e-4


def test_positions_that_the_model_does_not_use_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.exports.graphs.modules.first_position", lambda _: 0)
    with pytest.raises(VerificationError, match="computes something else than the model"):
        hc.export(decoder_of_encoders("Roberta"), "onnx", tmp_path / "roberta.onnx")


def test_the_cache_has_the_heads_of_each_layer(tmp_path: Path) -> None:
    model = zoo.build("llama")
    small = hc.remove(model, hc.locate(model).mask(off=["decoder.1.0", "decoder.1.1"]), verify=False)
    hc.export(small, "onnx", tmp_path / "half.onnx", check=False)
    entries = onnxruntime.InferenceSession(tmp_path / "half.onnx").get_inputs()
    shapes = {entry.name: entry.shape for entry in entries if entry.name.endswith("key")}
    assert shapes == {
        f"past_key_values.{layer}.key": ["batch", heads, "past", 16] for layer, heads in enumerate([2, 1, 2])
    }


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


def test_blocks_of_eight_bits_survive_a_large_activation(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Llamas have a few activations that are hundreds of times as large as the others before `down_proj`."""
    level = logging.root.level
    model = zoo.build("llama")
    with torch.no_grad():
        for layer in model.model.layers:  # the same function as before
            layer.mlp.up_proj.weight[0] *= 1000
            layer.mlp.down_proj.weight[:, 0] /= 1000
    ids = torch.arange(5, 29).view(2, 12)
    with torch.no_grad():
        expected = torch.log_softmax(model(input_ids=ids).logits, -1)
    difference = {}
    for dtype in ("int8", "q8_0"):
        path = tmp_path / f"{dtype}.onnx"
        hc.export(model, "onnx", path, dtype=dtype, check=False)
        measured = load_export(path)
        assert measured is not None
        computed = measured.module()(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        difference[dtype] = float((torch.log_softmax(computed, -1) - expected).abs().max())
    assert difference["q8_0"] < 0.5 * difference["int8"]  # one of few blocks has the large activation
    assert hc.export(model, "onnx", tmp_path / "checked.onnx", dtype="q8_0").agreement is not None
    assert "quantiz" not in capfd.readouterr().err
    assert logging.root.level == level, "the quantizers set up logging when they are imported"


def test_positions_that_depend_on_the_length_of_a_text_are_noted() -> None:
    llama = zoo.build("llama")

    def notes() -> str:
        return " ".join(RUNTIMES["onnx"].costs(ExportedModel(llama, None, "llama")))

    assert "right up to" not in notes()
    llama.config.rope_parameters = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    assert f"right up to {llama.config.max_position_embeddings} tokens" in notes()


def test_what_cannot_be_written_is_refused_before_work(tmp_path: Path) -> None:
    with pytest.raises(NotExportable, match="takes pixel_values"):
        hc.export(zoo.build("vit"), "onnx", tmp_path / "vit.onnx")
    with pytest.raises(UsageError, match="is a folder of files"):
        hc.export(zoo.build("t5"), "onnx", tmp_path / "t5.onnx")
    with pytest.raises(UsageError, match=r"ends in \.onnx"):
        hc.export(zoo.build("bert"), "onnx", tmp_path / "bert")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("QuestionAnswering", "returns start_logits, end_logits"),
        ("PreTraining", "returns prediction_logits, seq_relationship_logits"),
        ("MultipleChoice", "takes several texts for one answer"),
    ],
)
def test_a_model_without_one_main_output_is_refused_before_work(kind: str, reason: str, tmp_path: Path) -> None:
    model = getattr(transformers, f"BertFor{kind}")(zoo.build("bert").config)
    for runtime in ("onnx", "openvino"):
        with pytest.raises(NotExportable, match=reason):
            hc.export(model, runtime, tmp_path / "model")
    assert not fits(model)["onnx"].fits
    assert not list(tmp_path.iterdir())


def test_a_model_that_cannot_run_is_refused_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """headcount inspect asks about any model that can be loaded."""
    model = zoo.build("xlm-roberta")
    assert fits(model)["onnx"].fits

    def fail(input_ids: torch.Tensor, attention_mask: torch.Tensor) -> None:
        raise ValueError(f"no language for {len(input_ids)} text\n{attention_mask}")

    monkeypatch.setattr(model, "forward", fail)
    fit = fits(model)["onnx"]
    assert not fit.fits
    assert "cannot run on a text alone (no language for 1 text)." in " ".join(fit.words)


@pytest.mark.parametrize("tokenizer", [None, word_tokenizer()], ids=["alone", "tokenizer"])
def test_a_decoder_that_classifies_without_a_padding_token_is_refused(tokenizer: Any, tmp_path: Path) -> None:
    """PyTorch refuses batches of it; a graph classified the shorter texts by their padding."""
    config = transformers.GPT2Config(vocab_size=32, n_embd=16, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=2)
    model = transformers.GPT2ForSequenceClassification(config).eval()
    with pytest.raises(NotExportable, match=r"cannot run on several texts .* Set pad_token_id in its config"):
        hc.export(model, "onnx", tmp_path / "classifier.onnx", tokenizer=tokenizer, check=tokenizer is not None)
    model.config.pad_token_id = 0
    assert fits(model)["onnx"].fits


def test_a_graph_that_openvino_cannot_run_is_one_line(tmp_path: Path) -> None:
    """DeBERTa: the graph is written, but OpenVINO refuses one of its operations."""
    path = tmp_path / "openvino_model.xml"
    path.write_text("<net/>")
    with pytest.raises(NotExportable, match=r"^OpenVINO cannot run the graph openvino_model.xml: .*Try onnx\.$"):
        OPENVINO.load(path)
