"""A new translation model: the Transformer of Vaswani et al. 2017 as a plain Marian model, with its first weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, MarianConfig, MarianMTModel

from headcount.errors import UsageError
from headcount.surgery.manifest import KEY, note, rebuild


@dataclass(frozen=True)
class Size:
    """How large a translation model is."""

    encoder_layers: int
    decoder_layers: int
    heads: int
    width: int
    inner: int  # width of the feed-forward layers
    dropout: float
    attention_dropout: float = 0.0

    def __post_init__(self) -> None:
        if min(self.encoder_layers, self.decoder_layers, self.heads, self.width, self.inner) < 1:
            raise UsageError(f"Every size of a model is at least 1; got {self}.")
        if self.width % (2 * self.heads):
            raise UsageError(
                f"The width of a model is a multiple of twice its heads; got width {self.width}, {self.heads} heads."
            )
        if not 0 <= self.dropout < 1:
            raise UsageError(f"Dropout is a share from 0 to below 1; got {self.dropout}.")


def new_translation_model(size: Size, tokenizer: Any, *, seed: int, longest: int = 512) -> MarianMTModel:
    """Random weights for the vocabularies of a tokenizer made by `learn_vocabulary`."""
    shared = not tokenizer.separate_vocabs
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    config = MarianConfig(
        vocab_size=len(tokenizer.encoder),
        decoder_vocab_size=len(tokenizer.encoder if shared else tokenizer.target_encoder),
        share_encoder_decoder_embeddings=shared,
        tie_word_embeddings=True,  # the decoder's input and output
        d_model=size.width,
        encoder_layers=size.encoder_layers,
        decoder_layers=size.decoder_layers,
        encoder_attention_heads=size.heads,
        decoder_attention_heads=size.heads,
        encoder_ffn_dim=size.inner,
        decoder_ffn_dim=size.inner,
        dropout=size.dropout,
        attention_dropout=size.attention_dropout,
        activation_dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=longest,
        decoder_start_token_id=tokenizer.pad_token_id,
        forced_eos_token_id=None,
        **ids,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MarianMTModel(config)
        _initialise(model, size.width)
    return model


def size_like(folder: str | Path) -> Size:
    """The size that the model in a folder had before heads were removed."""
    config = AutoConfig.from_pretrained(str(folder))
    if not isinstance(config, MarianConfig) or config.encoder_attention_heads != config.decoder_attention_heads:
        raise UsageError(
            f"{folder} is a {config.model_type} model; only models like those of headcount train can be made."
        )
    return Size(
        encoder_layers=config.encoder_layers,
        decoder_layers=config.decoder_layers,
        heads=config.encoder_attention_heads,
        width=config.d_model,
        inner=config.encoder_ffn_dim,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
    )


def without_heads_like(model: MarianMTModel, folder: str | Path) -> MarianMTModel:
    """A new model with the heads that the model in a folder has, each as large as ever."""
    manifest = getattr(AutoConfig.from_pretrained(str(folder)), KEY, None)
    if manifest is not None:
        rebuild(model, manifest)
        note(model)
    return model


def forget(model: nn.Module, *, seed: int) -> None:
    """Give a model new random weights in place: those that training begins with."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if isinstance(model, MarianMTModel):
            _initialise(model, int(model.config.d_model))
            return
        fresh = type(model)(model.config)
        manifest = getattr(model.config, KEY, None)
        if manifest is not None:
            rebuild(fresh, manifest)
    with torch.no_grad():
        for mine, new in zip(model.parameters(), fresh.parameters(), strict=True):
            mine.copy_(new)


def _initialise(model: MarianMTModel, width: int) -> None:
    """Glorot for matrices; embeddings that, once scaled, are as loud as the sinusoids of their positions.

    Marian's own 0.02 drowns the words in their positions: small models then never leave the plateau. Queries, keys and
    values count as one matrix, and each residual branch starts as small as its stack is deep: layers normalised after
    the sum then learn from the first epoch on (docs/decisions/009).
    """
    for stack, branches in ((model.model.encoder, 2), (model.model.decoder, 3)):
        depth = branches * len(stack.layers)
        for name, module in stack.layers.named_modules():
            if isinstance(module, nn.Linear):
                ends_branch = name.endswith(("out_proj", "fc2"))
                gain = depth**-0.5 if ends_branch else 2**-0.5 if "attn" in name else 1.0
                nn.init.xavier_uniform_(module.weight, gain=gain)
                nn.init.zeros_(module.bias)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()
    nn.init.zeros_(model.final_logits_bias)  # a buffer, which hub models have learned
    for embedding in (model.model.encoder.embed_tokens, model.model.decoder.embed_tokens):
        nn.init.normal_(embedding.weight, std=width**-0.5)
        with torch.no_grad():
            embedding.weight[embedding.padding_idx].zero_()
