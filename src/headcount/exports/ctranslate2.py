"""Export translation models to CTranslate2, with layers padded by heads of zeros to the same number of heads.

CTranslate2 has one number of heads for the encoder, and one for the self and cross attention of the decoder.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headcount.exports.agreement import STEPS, TEXTS, Agreement, largest_difference
from headcount.exports.measured import Measured, token_ids
from headcount.exports.runtime import ExportedModel, Obstacle, Runtime
from headcount.selection.shape import Shape
from headcount.sites.decoder_input import generation_start
from headcount.sites.locate import locate
from headcount.sites.running import evaluating
from headcount.sites.site import Site, Sites
from headcount.timing import TimedCall

_PRE_NORM = {"PegasusForConditionalGeneration": True, "MarianMTModel": False}
_TYPES = {"f32": None, "f16": "float16", "int8": "int8"}
_VOCABULARY = "shared_vocabulary.json"
_PROJECTIONS = ("q_proj", "k_proj", "v_proj")
_NEVER = -1e4  # logit of a token that is never written; within the range of float16


class CTranslate2(Runtime):
    """Export to a folder for the Translator of CTranslate2."""

    title = "CTranslate2"
    types = ("f32", "f16", "int8")
    writers = checkers = ("ctranslate2",)
    extra = "ctranslate2"

    def obstacle(self, model: PreTrainedModel) -> Obstacle | None:
        name, config = type(model).__name__, model.config
        if name not in _PRE_NORM:
            return Obstacle(f"{name} is not among {', '.join(_PRE_NORM)}", "Only these translation models are written")
        if getattr(config, "decoder_vocab_size", None) not in (None, config.vocab_size):
            return Obstacle("its two sides have vocabularies of their own", "Train it with a shared vocabulary")
        return None

    def shape(self, model: PreTrainedModel) -> Shape:
        return Shape(rule="uniform", at_least=1)  # else layers with fewer heads are padded with zeros

    def tokenizer_obstacle(self, tokenizer: PreTrainedTokenizerBase) -> Obstacle | None:
        if tokenizer is None:
            return Obstacle("the folder holds the vocabulary too", "Pass the tokenizer, or save it beside the model")
        return None

    def costs(self, subject: ExportedModel) -> list[str]:
        sites = locate(subject.model)
        return filling(sites, heads_of_stacks(sites))

    def write(self, subject: ExportedModel, target: Path, *, dtype: str) -> None:
        from ctranslate2.converters.transformers import BartLoader

        sites, counts = locate(subject.model), heads_of_stacks(locate(subject.model))
        padded: Any = copy.deepcopy(subject.model)
        padded.config.normalize_before = _PRE_NORM[type(subject.model).__name__]
        padded.config.normalize_embedding = False
        with torch.no_grad():
            for site in locate(padded):
                _fill_up(site, counts[_stack(site)])
            padded.final_logits_bias[:, _ruled_out(padded)] = _NEVER
        loader = BartLoader()
        spec = loader.get_model_spec(padded)
        _state_heads(spec, counts, sites[0].head_dim)
        tokens = _tokens(subject)
        spec.register_source_vocabulary(tokens)
        spec.register_target_vocabulary(tokens)
        _write_config(spec.config, subject, tokens)
        spec.validate()
        spec.optimize(quantization=_TYPES[dtype])
        spec.save(str(target))
        subject.tokenizer.save_pretrained(target)

    def open(self, path: Path, *, threads: int) -> Measured | None:
        return _MeasuredTranslator(path, threads) if (path / _VOCABULARY).is_file() else None

    def check(self, subject: ExportedModel, target: Path) -> Agreement:
        import ctranslate2

        translator = ctranslate2.Translator(str(target), compute_type="default", intra_threads=1)
        pairs, same, total = list[tuple[np.ndarray, np.ndarray]](), 0, 0
        for text in TEXTS:
            source = list(subject.tokenizer(text).input_ids)
            written, log_probabilities = _greedy(subject.model, source)
            tokens = _tokens(subject)
            sources, targets = [tokens[i] for i in source], [tokens[i] for i in written]
            scores = translator.score_batch([sources], [targets])[0].log_probs[: len(written)]
            pairs.append((log_probabilities, np.array(scores)))
            answer = translator.translate_batch(
                [sources], beam_size=1, max_decoding_length=STEPS, min_decoding_length=len(written), end_token=[]
            )
            theirs = answer[0].hypotheses[0][: len(written)]
            same += sum(ours == word for ours, word in zip(targets, theirs, strict=False))
            total += len(written)
        difference = largest_difference(pairs)
        return Agreement("CTranslate2", ctranslate2.__version__, "log-probabilities", difference, same, total)


class _MeasuredTranslator(Measured):
    """An export loaded by CTranslate2. The encoder cannot run alone: the time of writing includes encoding."""

    def __init__(self, path: Path, threads: int) -> None:
        import ctranslate2

        super().__init__(path)
        self._translator = ctranslate2.Translator(str(path), intra_threads=threads)
        self._tokens: list[str] = json.loads((path / _VOCABULARY).read_text(encoding="utf-8"))

    def cache_bytes(self, length: int) -> None:
        return None

    def works(self, batch: int, length: int, written: int) -> dict[str, TimedCall]:
        texts = [[self._tokens[index] for index in row] for row in token_ids(batch, length)]

        def writing(tokens: int) -> None:
            self._translator.translate_batch(
                texts, beam_size=1, max_decoding_length=tokens, min_decoding_length=tokens, end_token=[]
            )

        return {"reading": lambda: writing(1), "writing": lambda: writing(written)}


def heads_of_stacks(sites: Sites) -> dict[str, int]:
    """Return the number of heads that the layers of each stack are padded to: the maximum over its layers."""
    stacks = {_stack(site) for site in sites}
    return {stack: max(1, *(site.num_heads for site in sites if _stack(site) == stack)) for stack in stacks}


def filling(sites: Sites, counts: dict[str, int]) -> list[str]:
    """Describe the cost of padding with heads of zeros."""
    remaining = sum(site.num_heads for site in sites)
    written = sum(counts[_stack(site)] for site in sites)
    if written == remaining:
        return ["every layer of a stack has as many heads: nothing is filled up"]
    return [
        f"short layers are filled up with heads of zeros: {written} heads are computed in place of {remaining}, "
        f"{written / remaining - 1:+.0%}" if remaining else f"short layers are filled up with {written} heads of zeros"
    ]  # fmt: skip


def _stack(site: Site) -> str:
    return "encoder" if site.kind == "encoder" else "decoder"


def _fill_up(site: Site, heads: int) -> None:
    """Pad an attention module to this many heads; the added heads output zeros."""
    module: Any = site.module
    short = (heads - site.num_heads) * site.head_dim
    for name in _PROJECTIONS:
        projection = getattr(module, name)
        setattr(module, name, _linear(_longer(projection.weight, short), _longer(projection.bias, short)))
    output: Any = module.out_proj
    module.out_proj = _linear(_longer(output.weight.T, short).T, output.bias)


def _longer(tensor: Tensor, rows: int) -> Tensor:
    return torch.cat([tensor, tensor.new_zeros(rows, *tensor.shape[1:])])


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    linear.weight = nn.Parameter(weight.contiguous())
    if bias is not None:
        linear.bias = nn.Parameter(bias.contiguous())
    return linear


def _state_heads(spec: Any, counts: dict[str, int], head_dim: int) -> None:
    spec.encoder.num_heads = np.dtype("int16").type(counts["encoder"])
    spec.decoder.num_heads = np.dtype("int16").type(counts["decoder"])
    attentions = [layer.self_attention for stack in (spec.encoder, spec.decoder) for layer in stack.layer]
    for attention in (*attentions, *(layer.attention for layer in spec.decoder.layer)):
        # Specifications reject attributes that they do not declare, but the runtime reads this one.
        vars(attention)["head_dim"] = np.dtype("int32").type(head_dim)


def _tokens(subject: ExportedModel) -> list[str]:
    """Return the vocabulary by token id; embedding rows without a token get a unique placeholder."""
    size = int(subject.model.config.vocab_size)
    tokens = [f"<unused{number}>" for number in range(size)]
    for token, number in subject.tokenizer.get_vocab().items():
        if number < size:
            tokens[number] = token
    return tokens


def _write_config(config: Any, subject: ExportedModel, tokens: list[str]) -> None:
    tokenizer = subject.tokenizer
    config.eos_token = tokenizer.eos_token
    config.unk_token = tokenizer.unk_token
    config.bos_token = tokenizer.pad_token
    config.decoder_start_token = tokens[generation_start(subject.model)]
    config.add_source_eos = False  # the tokenizer adds it


def _ruled_out(model: PreTrainedModel) -> list[int]:
    """Return the token ids that `generate` never writes: the padding of Marian, whose logit is 0 and may be largest."""
    words = getattr(model.generation_config, "bad_words_ids", None) or []
    return [int(ids[0]) for ids in words if len(ids) == 1]


def _greedy(model: PreTrainedModel, source: list[int]) -> tuple[list[int], np.ndarray]:
    """Generate greedily; return the token ids and the log-probability of each token among those that are written."""
    ids, log_probabilities = [generation_start(model)], []
    with evaluating(model):
        for _ in range(STEPS):
            result = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([ids]))
            logits_V = result.logits[0, -1].float()
            logits_V[_ruled_out(model)] = _NEVER
            log_V = torch.log_softmax(logits_V, dim=-1)
            ids.append(int(log_V.argmax()))
            log_probabilities.append(float(log_V.max()))
            if ids[-1] == model.config.eos_token_id:
                break
    return ids[1:], np.array(log_probabilities)


RUNTIME = CTranslate2()
