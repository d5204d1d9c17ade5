"""The families of the table in docs/how-to/deploy.md, and heads whose removal leaves layers that differ."""

from __future__ import annotations

from typing import Any

import headcount as hc
import zoo

FAMILIES: dict[str, tuple[str, ...]] = {
    "Llama, Mistral, Qwen2": ("llama", "mistral", "qwen2"),
    "Qwen3, tied embeddings": ("qwen3 tied",),
    "Qwen3": ("qwen3",),
    "GPT-2, OPT, Gemma 2": ("gpt2", "opt", "gemma2"),
    "BERT, RoBERTa, ModernBERT": ("bert", "roberta", "modernbert"),
    "Pegasus (`headcount train`), Marian": ("pegasus", "marian"),
    "T5, BART": ("t5", "bart"),
    "ViT and other models of images or speech": ("vit", "whisper", "wav2vec2", "clip"),
}
_DECODER = ["decoder.1.*", "decoder.2.0"]
_ENCODER = ["encoder.1.*", "encoder.2.0"]
_PAIR = ["encoder.1.*", "decoder.2.0", "cross.0.1"]
UNEVEN: dict[str, list[str]] = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "qwen3 tied", "opt", "gemma2"), _DECODER),
    "gpt2": ["decoder.0.*", "decoder.1.2"],
    **dict.fromkeys(("bert", "roberta", "modernbert"), _ENCODER),
    **dict.fromkeys(("pegasus", "marian", "bart"), _PAIR),
    "t5": ["encoder.1.*", "decoder.0.0", "cross.0.1", "cross.1.*"],
}


def build(architecture: str) -> Any:
    name, _, tied = architecture.partition(" ")
    model = zoo.build(name)
    if tied:
        model.config.tie_word_embeddings = True
        model.tie_weights()
    return model


def pruned(architecture: str) -> Any:
    """A small model of random weights, in which layers have different numbers of heads."""
    model = build(architecture)
    return hc.remove(model, hc.locate(model).mask(off=UNEVEN[architecture]), verify=False)
