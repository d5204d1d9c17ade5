"""Files of a checkpoint besides the weights: tokenizer, processor and sentence-transformers files, copied unchanged."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig
from transformers.utils import CHAT_TEMPLATE_DIR, cached_file, list_repo_templates

from headcount.checkpoints.folder import MODULES, check_config, check_settings_files, check_source, module_folders
from headcount.errors import CheckpointError

_NAMES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "vocab.txt", "merges.txt", "normalizer.json", "source.spm", "target.spm", "target_vocab.json", "spiece.model",
    "sentencepiece.bpe.model", "spm.model", "tokenizer.model", "chat_template.jinja", "preprocessor_config.json",
    "processor_config.json", "config_sentence_transformers.json", "sentence_bert_config.json", "bpe.codes",
    "byte_maps.json", "entity_vocab.json", "prophetnet.tokenizer", "sentencepiece.model", "spm_char.model",
    "vocab-src.json", "vocab-tgt.json", "word_pronunciation.json", "word_shape.json",
)  # fmt: skip
_ANYONES = ("dict.txt", "emoji.json")  # of BARTpho and GPT-NeoX-Japanese; such a file may as well be the user's
_MODULE_FILES = ("config.json", "model.safetensors")  # of a module of sentence-transformers, such as 1_Pooling


def load_tokenizer(source: str, *, revision: str | None = None, trust_remote_code: bool = False) -> Any:
    """The tokenizer of a model. If it has no padding token, the end token is used."""
    check_source(source)
    options = {"revision": revision} if revision else {}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses")
            tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=trust_remote_code, **options)
    except Exception as error:
        check_config(source)
        check_settings_files(source, (name for name in _NAMES if name.endswith(".json")))
        reason = " ".join(str(error).split())  # of several lines
        raise CheckpointError(
            f"{source} has no tokenizer that can be loaded ({reason}). Save one in the model's folder."
        ) from error
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_config(source: str, *, revision: str | None = None, trust_remote_code: bool = False) -> PreTrainedConfig:
    """The config of a checkpoint, without its weights."""
    check_source(source)
    check_config(source)
    options = {"revision": revision} if revision else {}
    try:
        return AutoConfig.from_pretrained(source, trust_remote_code=trust_remote_code, **options)
    except Exception as error:
        raise CheckpointError(f"Cannot load the config of {source}: {error}") from error


def class_names(source: str, *, revision: str | None = None, trust_remote_code: bool = False) -> tuple[str, ...] | None:
    """The class names of a checkpoint, by number; None if they are the default ones (LABEL_0, LABEL_1, ...)."""
    config = load_config(source, revision=revision, trust_remote_code=trust_remote_code)
    names = tuple(str(name) for _, name in sorted((config.id2label or {}).items()))
    return None if not names or all(name.startswith("LABEL_") for name in names) else names


def copy_companions(source: str, folder: Path, *, revision: str | None = None) -> list[str]:
    """Copy the tokenizer, processor and sentence-transformers files of a checkpoint into a folder.

    Args:
        source: Folder or hub id of the checkpoint.
        folder: Folder to copy to.
        revision: Revision of a hub id.

    Returns:
        Names of the files copied.
    """
    check_source(source)
    names = (*_NAMES, *_ANYONES, *_further_templates(source, revision))
    copied = [name for name in names if _copy(source, name, folder, revision)]
    modules = find_file(source, MODULES, revision)
    if modules is None:
        return copied
    for name in module_folders(modules):
        copied += [file for file in _MODULE_FILES if _copy(source, f"{name}/{file}", folder, revision)]
        if (
            find_file(source, f"{name}/pytorch_model.bin", revision)
            and not (folder / name / "model.safetensors").is_file()
        ):
            warnings.warn(
                f"The weights of {name} in {source}, pytorch_model.bin, are not safetensors and were not copied: "
                "sentence-transformers cannot load the pruned folder without them. Convert them to model.safetensors.",
                stacklevel=2,
            )
    shutil.copyfile(modules, folder / MODULES)
    return [*copied, MODULES]


def _further_templates(source: str, revision: str | None) -> list[str]:
    """Files of the chat templates besides the default one, which tokenizers keep in a folder."""
    if Path(source).is_dir():
        names = sorted(path.name for path in (Path(source) / CHAT_TEMPLATE_DIR).glob("*.jinja"))
    else:
        names = list_repo_templates(source, local_files_only=False, revision=revision)
    return [f"{CHAT_TEMPLATE_DIR}/{name.removesuffix('.jinja')}.jinja" for name in names]  # offline without the suffix


def is_companion(path: Path) -> bool:
    """Whether a file or folder in the folder of a checkpoint is one of these files, or a module of modules.json."""
    if path.name in (*_NAMES, MODULES, CHAT_TEMPLATE_DIR):
        return True
    modules = path.with_name(MODULES)
    try:
        return path.is_dir() and modules.is_file() and path.name in module_folders(modules)
    except CheckpointError:  # a damaged modules.json names no folders
        return False


def _copy(source: str, name: str, folder: Path, revision: str | None) -> bool:
    """Copy one file of a checkpoint, if it exists."""
    path = find_file(source, name, revision)
    if path is None:
        return False
    (folder / name).parent.mkdir(exist_ok=True)
    shutil.copyfile(path, folder / name)
    return True


def find_file(source: str, name: str, revision: str | None) -> Path | None:
    """The path of one file of a checkpoint; None if it has no such file."""
    path = cached_file(
        source, name, revision=revision, _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False, _raise_exceptions_for_gated_repo=False,
    )  # fmt: skip
    return None if path is None else Path(path)
