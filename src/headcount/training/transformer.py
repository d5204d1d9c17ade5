"""A new translation model: the Transformer of Vaswani et al. 2017 as a Hugging Face model, with initial weights.

norm "pre"    normalised before each sublayer and once at the end, as Voita et al. 2019 trained: the class Pegasus
norm "post"   normalised after each sum, as in Vaswani et al. 2017: the class Marian
Both have sinusoidal positions, ReLU, and the decoder's embedding tied to its output.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import nn
from transformers import (
    AutoConfig,
    MarianConfig,
    MarianMTModel,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PreTrainedTokenizerBase,
)

from headcount.errors import UsageError
from headcount.sites.running import seed_generators
from headcount.surgery.manifest import KEY, note, rebuild

TranslationModel: TypeAlias = PegasusForConditionalGeneration | MarianMTModel
NORMS = ("pre", "post")
_ENTRIES = {  # of a config -> field of Size
    "d_model": "width", "encoder_layers": "encoder_layers", "decoder_layers": "decoder_layers",
    "encoder_attention_heads": "heads", "decoder_attention_heads": "heads", "encoder_ffn_dim": "inner",
    "decoder_ffn_dim": "inner", "dropout": "dropout", "attention_dropout": "attention_dropout",
    "activation_dropout": "activation_dropout",
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """Size of a translation model, and position of its layer norms."""

    encoder_layers: int
    decoder_layers: int
    heads: int
    width: int
    inner: int  # width of the feed-forward layers
    dropout: float  # of residuals
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    norm: str = "pre"
    small_branches: bool = False  # residual branches of a pre-norm model begin small; those of post-norm always do

    def __post_init__(self) -> None:
        if min(self.encoder_layers, self.decoder_layers, self.heads, self.width, self.inner) < 1:
            raise UsageError(f"Every size of a model must be at least 1; got {self}.")
        if self.width % (2 * self.heads):
            raise UsageError(
                f"width must be a multiple of twice the number of heads; got width {self.width}, {self.heads} heads."
            )
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{name} must be from 0 to below 1; got {getattr(self, name)}.")
        if self.norm not in NORMS:
            raise UsageError(f"norm must be one of {', '.join(NORMS)}; got {self.norm!r}.")


def new_translation_model(
    size: Size, tokenizer: PreTrainedTokenizerBase, *, seed: int, longest: int = 512
) -> TranslationModel:
    """Random weights for the vocabularies of a tokenizer made by `learn_vocabulary`."""
    shared = not tokenizer.separate_vocabs
    if size.norm == "pre" and not shared:
        raise UsageError("A model with norm 'pre' has one vocabulary for both sides; use a shared one, or norm 'post'.")
    settings: dict[str, Any] = {
        **{entry: getattr(size, name) for entry, name in _ENTRIES.items()},
        "vocab_size": len(tokenizer.encoder),
        "tie_word_embeddings": True,  # the decoder's input and output
        "activation_function": "relu",
        "scale_embedding": True,
        "max_position_embeddings": longest,
        "decoder_start_token_id": tokenizer.pad_token_id,
        "forced_eos_token_id": None,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": None,
    }
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # built on the CPU, the only generator that is restored
        model: TranslationModel
        if size.norm == "pre":
            first_weights = {"small_branches": True} if size.small_branches else {}
            model = PegasusForConditionalGeneration(PegasusConfig(**settings, **first_weights))
        else:
            decoder_vocabulary = len(tokenizer.encoder if shared else tokenizer.target_encoder)
            model = MarianMTModel(
                MarianConfig(**settings, decoder_vocab_size=decoder_vocabulary, share_encoder_decoder_embeddings=shared)
            )
        _initialise(model)
    return model


def is_pre_norm(model: nn.Module) -> bool:
    """Whether a model is one of those that `headcount train` makes with norm "pre"."""
    return isinstance(model, PegasusForConditionalGeneration)


def size_like(folder: str | Path) -> Size:
    """The size that the model in a folder had before heads were removed."""
    config = AutoConfig.from_pretrained(str(folder))
    of_ours = isinstance(config, MarianConfig | PegasusConfig)
    if not of_ours or config.encoder_attention_heads != config.decoder_attention_heads:
        raise UsageError(
            f"{folder} is a {config.model_type} model; --like works only with models made by headcount train."
        )
    sizes = {name: getattr(config, entry) for entry, name in reversed(_ENTRIES.items())}  # the encoder's, of two
    norm = "pre" if isinstance(config, PegasusConfig) else "post"
    return Size(**sizes, norm=norm, small_branches=getattr(config, "small_branches", False))


def without_heads_like(model: TranslationModel, folder: str | Path) -> TranslationModel:
    """A new model with the heads of the model in a folder, of the original head size."""
    manifest = getattr(AutoConfig.from_pretrained(str(folder)), KEY, None)
    if manifest is not None:
        rebuild(model, manifest)
        note(model)
    return model


def forget(model: nn.Module, *, seed: int) -> None:
    """Replace the weights of a model by new initial weights, in place."""
    with torch.random.fork_rng(devices=[]):
        seed_generators(model, seed)  # weights on a graphics card are drawn there
        if isinstance(model, TranslationModel):
            _initialise(model)
            return
        fresh = type(model)(model.config)
        manifest = getattr(model.config, KEY, None)
        if manifest is not None:
            rebuild(fresh, manifest)
    with torch.no_grad():
        for mine, new in zip(model.parameters(), fresh.parameters(), strict=True):
            mine.copy_(new)


def _initialise(model: TranslationModel) -> None:
    """Glorot for matrices, zero for biases, identity norms, and embeddings by the position of the norms."""
    pre = is_pre_norm(model)
    small = not pre or getattr(model.config, "small_branches", False)
    width = int(model.config.d_model)
    for stack, branches in ((model.model.encoder, 2), (model.model.decoder, 3)):
        depth = branches * len(stack.layers)
        for name, module in stack.layers.named_modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, gain=_small_gain(name, depth) if small else 1.0)
                nn.init.zeros_(module.bias)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()
    nn.init.zeros_(model.final_logits_bias)  # a buffer, which hub models have learned
    embeddings = [model.model.encoder.embed_tokens, model.model.decoder.embed_tokens]
    drawn = {id(embedding.weight) for embedding in embeddings}
    untied = [module for module in (getattr(model.model, "shared", None), model.lm_head) if module is not None]
    for module in [*embeddings, *(module for module in untied if id(module.weight) not in drawn)]:
        nn.init.normal_(module.weight, std=(1.0 if small else _QUIET_EMBEDDING) * width**-0.5)
        if isinstance(module, nn.Embedding):
            with torch.no_grad():
                module.weight[module.padding_idx].zero_()


# Standard deviation of a word's embedding once it is scaled by the square root of the width. Sinusoids have 0.71: at
# first, words must not drown the differences between neighbouring positions, or no positional heads grow in `tiny`.
_QUIET_EMBEDDING = 0.5


def _small_gain(name: str, depth: int) -> float:
    """Queries, keys and values count as one matrix, and each residual branch starts as small as its stack is deep.

    Layers normalised after the sum then learn from the first epoch on, and all layers faster (docs/decisions/009).
    """
    if name.endswith(("out_proj", "fc2")):
        return float(depth**-0.5)
    return 2**-0.5 if "attn" in name else 1.0
