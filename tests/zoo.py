"""Tiny random models of every architecture: hidden 64, 4 heads of 16, 3 layers, 2 key/value heads where grouped."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import transformers as tf
from torch import nn

VOCABULARY = 99
_SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": VOCABULARY,
}
_POSITIONS = {"max_position_embeddings": 64}
_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_GROUPED = {**_SMALL, **_POSITIONS, **_IDS, "num_key_value_heads": 2, "head_dim": 16}
_NO_HEAD_DIM = {name: value for name, value in _GROUPED.items() if name != "head_dim"}  # as published checkpoints
_BART = {
    "vocab_size": VOCABULARY,
    "d_model": 64,
    "encoder_layers": 3,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    **_POSITIONS,
    **_IDS,
    "decoder_start_token_id": 2,
}


def _encoder(config: str, model: str, **options: object) -> nn.Module:
    settings = {**_SMALL, **_POSITIONS, **options}
    return getattr(tf, model)(getattr(tf, config)(**settings))


def _other(config: str, model: str, **settings: object) -> nn.Module:
    return getattr(tf, model)(getattr(tf, config)(**settings))


_TOWER = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96}

_BUILDERS: dict[str, Callable[[], nn.Module]] = {
    "bert": partial(_encoder, "BertConfig", "BertForSequenceClassification"),
    "roberta": partial(_encoder, "RobertaConfig", "RobertaForMaskedLM"),
    "xlm-roberta": partial(_encoder, "XLMRobertaConfig", "XLMRobertaModel"),
    "electra": partial(_encoder, "ElectraConfig", "ElectraForTokenClassification", embedding_size=64),
    "distilbert": partial(
        _other, "DistilBertConfig", "DistilBertForSequenceClassification",
        vocab_size=VOCABULARY, dim=64, n_heads=4, n_layers=3, hidden_dim=96, max_position_embeddings=64,
    ),
    "albert": partial(_encoder, "AlbertConfig", "AlbertForSequenceClassification", embedding_size=32),
    "deberta-v2": partial(
        _encoder, "DebertaV2Config", "DebertaV2ForSequenceClassification",
        relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"], share_att_key=False, norm_rel_ebd="layer_norm",
    ),
    "mpnet": partial(_encoder, "MPNetConfig", "MPNetForSequenceClassification"),
    "modernbert": partial(
        _encoder, "ModernBertConfig", "ModernBertForMaskedLM",
        **_IDS, cls_token_id=1, sep_token_id=2, local_attention=8, global_attn_every_n_layers=2,
    ),
    "gpt2": partial(_other, "GPT2Config", "GPT2LMHeadModel", vocab_size=VOCABULARY, n_embd=64, n_layer=3, n_head=4, n_positions=64, **_IDS),
    "gpt_neo": partial(
        _other, "GPTNeoConfig", "GPTNeoForCausalLM",
        vocab_size=VOCABULARY, hidden_size=64, num_layers=3, num_heads=4, intermediate_size=96,
        attention_types=[[["global", "local", "global"], 1]], window_size=6, **_POSITIONS, **_IDS,
    ),
    "gptj": partial(
        _other, "GPTJConfig", "GPTJForCausalLM",
        vocab_size=VOCABULARY, n_embd=64, n_layer=3, n_head=4, n_positions=64, rotary_dim=8, **_IDS,
    ),
    "gpt_neox": partial(_encoder, "GPTNeoXConfig", "GPTNeoXForCausalLM", **_IDS),
    "opt": partial(
        _other, "OPTConfig", "OPTForCausalLM",
        vocab_size=VOCABULARY, hidden_size=64, word_embed_proj_dim=64, num_hidden_layers=3, num_attention_heads=4, ffn_dim=96, **_POSITIONS, **_IDS,
    ),
    "bloom": partial(_other, "BloomConfig", "BloomForCausalLM", vocab_size=VOCABULARY, hidden_size=64, n_layer=3, n_head=4, **_IDS),
    "llama": partial(_other, "LlamaConfig", "LlamaForCausalLM", **_GROUPED),
    "mistral": partial(_other, "MistralConfig", "MistralForCausalLM", **_GROUPED),
    "qwen2": partial(_other, "Qwen2Config", "Qwen2ForCausalLM", **_NO_HEAD_DIM),
    "qwen3": partial(_other, "Qwen3Config", "Qwen3ForCausalLM", **_GROUPED),
    "gemma2": partial(_other, "Gemma2Config", "Gemma2ForCausalLM", **_GROUPED, query_pre_attn_scalar=16, sliding_window=8),
    "gemma3": partial(_other, "Gemma3TextConfig", "Gemma3ForCausalLM", **_GROUPED, query_pre_attn_scalar=16, sliding_window=8),
    "phi3": partial(_other, "Phi3Config", "Phi3ForCausalLM", **_NO_HEAD_DIM),
    "t5": partial(
        _other, "T5Config", "T5ForConditionalGeneration",
        vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=96, num_layers=3, num_heads=4,
        pad_token_id=0, eos_token_id=2, decoder_start_token_id=0, feed_forward_proj="gated-gelu",
    ),
    "mt5": partial(
        _other, "MT5Config", "MT5ForConditionalGeneration",
        vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=96, num_layers=3, num_heads=4, tie_word_embeddings=False,
        pad_token_id=0, eos_token_id=2, decoder_start_token_id=0,
    ),
    "bart": partial(_other, "BartConfig", "BartForConditionalGeneration", **_BART, forced_eos_token_id=None),
    "marian": partial(_other, "MarianConfig", "MarianMTModel", **_BART, forced_eos_token_id=None),
    "mbart": partial(_other, "MBartConfig", "MBartForConditionalGeneration", **_BART, forced_eos_token_id=None),
    "m2m_100": partial(_other, "M2M100Config", "M2M100ForConditionalGeneration", **_BART),
    "pegasus": partial(_other, "PegasusConfig", "PegasusForConditionalGeneration", **_BART, forced_eos_token_id=None),
    "whisper": partial(
        _other, "WhisperConfig", "WhisperForConditionalGeneration",
        **{k: v for k, v in _BART.items() if k != "max_position_embeddings"},
        num_mel_bins=16, max_source_positions=20, max_target_positions=32,
        suppress_tokens=None, begin_suppress_tokens=None,
    ),
    "vit": partial(_other, "ViTConfig", "ViTForImageClassification", **_TOWER, image_size=16, patch_size=4, num_channels=3),
    "wav2vec2": partial(
        _other, "Wav2Vec2Config", "Wav2Vec2ForCTC",
        **_TOWER, vocab_size=VOCABULARY, conv_dim=(16, 16), conv_stride=(4, 4), conv_kernel=(8, 4), num_feat_extract_layers=2,
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4,
    ),
    "clip": partial(
        _other, "CLIPConfig", "CLIPModel",
        text_config={**_TOWER, **_IDS, "vocab_size": VOCABULARY, **_POSITIONS},
        vision_config={**_TOWER, "image_size": 16, "patch_size": 4},
        projection_dim=32,
    ),
}  # fmt: skip

ARCHITECTURES = tuple(_BUILDERS)
DECODERS = tuple(
    name for name, builder in _BUILDERS.items() if builder.args[1].endswith(("ForCausalLM", "LMHeadModel"))
)  # type: ignore[attr-defined]
_WRITING = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "MTModel")
WRITERS = frozenset(name for name, builder in _BUILDERS.items() if builder.args[1].endswith(_WRITING))  # type: ignore[attr-defined]
EAGER_ONLY = frozenset({"deberta-v2", "mpnet", "gpt_neo", "gptj", "bloom", "gemma2"})
GROUPED = frozenset({"llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3", "phi3"})


def backends(architecture: str) -> tuple[str, ...]:
    return ("eager",) if architecture in EAGER_ONLY else ("eager", "sdpa")


CASES = [(architecture, backend) for architecture in ARCHITECTURES for backend in backends(architecture)]
WRITING_CASES = [(architecture, backend) for architecture, backend in CASES if architecture in WRITERS]
SEPARATE_CASES = [case for case in CASES if case[0] != "clip"]  # clip's outputs compare all texts with all images


def _t5gemma() -> nn.Module:
    side = tf.T5GemmaModuleConfig(**{**_GROUPED, "num_hidden_layers": 2})
    config = tf.T5GemmaConfig(encoder=side, decoder=side, vocab_size=VOCABULARY, **_IDS)
    return tf.T5GemmaForConditionalGeneration(config)


_WITHOUT_START_TOKEN = {name: value for name, value in _BART.items() if name != "decoder_start_token_id"}
_NO_START: dict[str, Callable[[], nn.Module]] = {
    "mbart": partial(_other, "MBartConfig", "MBartForConditionalGeneration", **_WITHOUT_START_TOKEN),
    "plbart": partial(_other, "PLBartConfig", "PLBartForConditionalGeneration", **_WITHOUT_START_TOKEN),
    "t5gemma": _t5gemma,
}


def without_start_token(architecture: str) -> nn.Module:
    """An encoder-decoder whose config has no decoder_start_token_id: it wraps its labels, or its decoder has one."""
    torch.manual_seed(0)
    model = _NO_START[architecture]()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad and parameter.dim() >= 2:
                parameter.mul_(2.5)
    return model.eval()


def build(architecture: str, backend: str = "sdpa", *, seed: int = 0, dtype: torch.dtype = torch.float32) -> nn.Module:
    """A tiny model in eval mode, its weights scaled up so that every head matters."""
    torch.manual_seed(seed)
    model = _BUILDERS[architecture]()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:  # sinusoids: made anew at every load, never saved
                continue
            if parameter.dim() >= 2 and "norm" not in name.lower():
                parameter.mul_(2.5)
            elif name.endswith("bias"):
                parameter.uniform_(-0.3, 0.3)  # biases start at zero and would hide a lost one
    if architecture not in EAGER_ONLY:
        model.set_attn_implementation(backend)
    model.config.architectures = [type(model).__name__]
    return model.eval().to(dtype)


def idle_cross() -> nn.Module:
    """A decoder of two layers without an encoder: its cross-attention never runs."""
    torch.manual_seed(0)
    settings = {**_BART, "decoder_layers": 2, "encoder_layers": 2, "forced_eos_token_id": None}
    return tf.BartForCausalLM(tf.BartConfig(**settings)).eval()  # type: ignore[arg-type]
