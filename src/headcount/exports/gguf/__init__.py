"""Export to GGUF, the single-file format of llama.cpp, with weights, vocabulary and chat template."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.errors import NotExportable
from headcount.exports.agreement import Agreement, compare_next_tokens, prompts
from headcount.exports.gguf import layout as layouts
from headcount.exports.gguf import vocabulary as vocabularies
from headcount.exports.gguf.llama_cpp import loaded
from headcount.exports.gguf.measured import MeasuredGguf
from headcount.exports.gguf.tensors import named_tensors
from headcount.exports.gguf.vocabulary import Vocabulary
from headcount.exports.measured import Measured
from headcount.exports.runtime import ExportedModel, Obstacle, Runtime
from headcount.selection.shape import Shape
from headcount.sites.locate import locate

if TYPE_CHECKING:
    from gguf import GGUFWriter

_CONTEXT = 64  # context length in tokens for the check
_Q8_BLOCK = 32  # weights of a row that share a scale


class Gguf(Runtime):
    """Export to a GGUF file for llama.cpp, checked with xllamacpp."""

    title = "llama.cpp"
    types = ("f32", "f16", "q8_0")
    writers = ("gguf",)
    checkers = ("gguf", "xllamacpp")
    suffixes = (".gguf",)
    extra = "gguf"

    def suffix(self, model: PreTrainedModel) -> str:
        return ".gguf"

    def obstacle(self, model: PreTrainedModel) -> Obstacle | None:
        return layouts.obstacle(model)

    def shape(self, model: PreTrainedModel) -> Shape:
        return layouts.shape(model)

    def tokenizer_obstacle(self, tokenizer: PreTrainedTokenizerBase) -> Obstacle | None:
        return vocabularies.obstacle(tokenizer)

    def check_rows(self, subject: ExportedModel) -> None:
        tokens, rows = len(subject.tokenizer), _rows(subject)
        if tokens > rows:
            raise NotExportable(f"The tokenizer has {tokens} tokens, but the embedding has {rows} rows.")

    def costs(self, subject: ExportedModel) -> list[str]:
        layout = layouts.layout(subject.model)
        return [f"stated to llama.cpp as {layout.architecture}", *layout.notes, *vocabularies.notes(subject.tokenizer)]

    def write(self, subject: ExportedModel, target: Path, *, dtype: str) -> None:
        import gguf

        layout = layouts.layout(subject.model)
        self.check_rows(subject)
        rows = _rows(subject)
        vocabulary = vocabularies.vocabulary(subject.tokenizer, rows)
        writer = gguf.GGUFWriter(target, layout.architecture)
        _write_settings(writer, subject, layout, rows)
        _write_vocabulary(writer, subject.tokenizer, vocabulary)
        writer.add_file_type(gguf.LlamaFileType[f"{'ALL' if dtype == 'f32' else 'MOSTLY'}_{dtype.upper()}"])
        writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        for name, tensor in named_tensors(subject.model, layout):
            array, kind = _stored(tensor, dtype)
            writer.add_tensor(name, array, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    def open(self, path: Path, *, threads: int) -> Measured | None:
        return MeasuredGguf(path, threads=threads) if path.suffix == ".gguf" and path.is_file() else None

    def check(self, subject: ExportedModel, target: Path) -> Agreement:
        import xllamacpp

        starts = prompts(subject.model, subject.tokenizer)
        with loaded(target, context=_CONTEXT) as llama_cpp:
            return compare_next_tokens(
                subject.model,
                starts,
                llama_cpp.predict,
                runtime="llama.cpp (xllamacpp)",
                version=xllamacpp.__version__,
            )


def _rows(subject: ExportedModel) -> int:
    return int(subject.model.get_input_embeddings().weight.shape[0])


def _write_settings(writer: GGUFWriter, subject: ExportedModel, layout: layouts.Layout, rows: int) -> None:
    """Write the hyperparameters; heads and feed-forward sizes are lists if the architecture reads them per layer."""
    model, blocks = subject.model, layout.blocks
    config: Any = model.config
    heads, kv_heads = [block.heads for block in blocks], [block.kv_heads for block in blocks]
    inner = [int(config.intermediate_size)] * len(blocks)
    size = locate(model)[0].head_dim  # configs of Qwen2 do not state it
    writer.add_name(Path(subject.name).name)
    writer.add_context_length(layout.context)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(len(blocks))
    writer.add_feed_forward_length(inner if layout.uneven else inner[0])
    writer.add_head_count(heads if layout.uneven else heads[0])
    writer.add_head_count_kv(kv_heads if layout.uneven else kv_heads[0])
    writer.add_key_length(size)
    writer.add_value_length(size)
    writer.add_rope_dimension_count(size)
    writer.add_rope_freq_base(float(config.rope_parameters["rope_theta"]))
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(rows)


def _write_vocabulary(writer: GGUFWriter, tokenizer: PreTrainedTokenizerBase, vocabulary: Vocabulary) -> None:
    writer.add_tokenizer_model(vocabulary.model)
    writer.add_tokenizer_pre(vocabulary.pre)
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_types(vocabulary.types)
    if vocabulary.scores is not None:
        writer.add_token_scores(vocabulary.scores)
        writer.add_add_space_prefix(vocabulary.space_prefix)
    if vocabulary.merges is not None:
        writer.add_token_merges(vocabulary.merges)
    for name, number in vocabularies.special_ids(tokenizer).items():
        getattr(writer, f"add_{name}_token_id")(number)
    prefix, last = vocabularies.frames(tokenizer)
    writer.add_add_bos_token(prefix)
    writer.add_add_eos_token(last)
    templates = tokenizer.chat_template
    if isinstance(templates, dict):
        templates = [{"name": name, "template": template} for name, template in templates.items()]
    if templates:
        writer.add_chat_template(templates)


def _stored(tensor: np.ndarray, dtype: str) -> tuple[np.ndarray, Any]:
    """Convert a tensor to the number format; vectors stay float32, rows that blocks do not divide become float16."""
    import gguf

    if dtype == "f32" or tensor.ndim == 1:
        return tensor, gguf.GGMLQuantizationType.F32
    if dtype == "q8_0" and tensor.shape[-1] % _Q8_BLOCK == 0:
        kind = gguf.GGMLQuantizationType.Q8_0
        return gguf.quants.quantize(tensor, kind), kind
    return tensor.astype(np.float16), gguf.GGMLQuantizationType.F16


RUNTIME = Gguf()
