"""Presets: sizes of translation models with recipes that train them reliably."""

from __future__ import annotations

from dataclasses import dataclass

from headcount.training.recipe import Recipe
from headcount.training.transformer import Size


@dataclass(frozen=True)
class Preset:
    """A size of model, of vocabulary, and how to train it."""

    size: Size
    vocabulary: int  # pieces of both sides together
    vocabulary_of_each: int  # pieces of each side where they have one each
    recipe: Recipe
    post_norm: Recipe  # for post-norm models, which a linear decay from a high rate saturates


# Few layers and heads, dropout of attention weights and a long straight decay: heads then take one role each
# (docs/decisions/017-a-corpus-that-needs-heads.md).
_TINY = Preset(  # the embedded grammar, minutes on a laptop
    Size(encoder_layers=3, decoder_layers=1, heads=4, width=96, inner=192, dropout=0.1, attention_dropout=0.1),
    vocabulary=1500,
    vocabulary_of_each=1500,
    recipe=Recipe(batch=1000, chunk=1000, rate=3e-3, warmup=150, steps=3200, cooldown=3050, average=1),
    post_norm=Recipe(batch=1000, chunk=1000, factor=1.0, warmup=300, steps=2400, cooldown=900, clip=1.0, average=2),
)
_SMALL = Preset(  # tens of thousands of sentences, an hour on a laptop
    Size(
        encoder_layers=3, decoder_layers=3, heads=8, width=128, inner=256, dropout=0.2, attention_dropout=0.1,
        activation_dropout=0.1, small_branches=True,
    ),
    vocabulary=8000,
    vocabulary_of_each=4000,
    recipe=Recipe(batch=1000, chunk=1000, rate=3e-3, warmup=800, steps=12_000, cooldown=11_200, clip=1.0, average=3),
    post_norm=Recipe(batch=1000, chunk=1000, factor=1.0, warmup=800, steps=12_000, cooldown=4000, clip=1.0, average=3),
)  # fmt: skip
# Voita et al. 2019, appendix B, and their released configuration: 16k source tokens in a batch, dropout .1 on
# residuals, attention and ReLU, learning rate 4 * width^-.5 * min(step^-.5, step * 16000^-1.5).
_BASE = Preset(  # millions of sentences, one or more GPUs
    Size(
        encoder_layers=6, decoder_layers=6, heads=8, width=512, inner=2048, dropout=0.1, attention_dropout=0.1,
        activation_dropout=0.1,
    ),
    vocabulary=32_000,
    vocabulary_of_each=32_000,
    recipe=Recipe(batch=16_000, chunk=4000, factor=4.0, warmup=16_000, patience=10, average=5),
    post_norm=Recipe(batch=16_000, chunk=4000, factor=1.0, warmup=4000, patience=10, average=5),
)  # fmt: skip
_BIG = Preset(  # tens of millions of sentences, several GPUs
    Size(
        encoder_layers=6, decoder_layers=6, heads=16, width=1024, inner=4096, dropout=0.3, attention_dropout=0.1,
        activation_dropout=0.1,
    ),
    vocabulary=32_000,
    vocabulary_of_each=32_000,
    recipe=Recipe(batch=32_000, chunk=4000, factor=4.0, warmup=16_000, patience=10, average=5),
    post_norm=Recipe(batch=32_000, chunk=4000, factor=1.0, warmup=8000, patience=10, average=5),
)  # fmt: skip
PRESETS = {"tiny": _TINY, "small": _SMALL, "base": _BASE, "big": _BIG}
