"""Model card: README.md of a pruned model's folder: what was removed and how, what it costs, how to load it.

Reads a record and the card of the model that was pruned; knows no models.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData
from transformers.utils import cached_file

from headcount import journal
from headcount.record import Record

_CARRIED = ("license", "license_name", "license_link", "language", "pipeline_tag", "datasets")
_TAGS = ["headcount", "pruned", "attention-heads"]
_LOADING = {
    "stock": "AutoModel.from_pretrained and its relatives load the folder: every layer has as many heads.",
    "standalone": "from_pretrained(..., trust_remote_code=True) of transformers loads the folder with the code in it.",
    "headcount": "Stock `from_pretrained` refuses the folder: headcount builds the smaller layers.",
}


def write_card(folder: Path, record: Record, *, source: str, revision: str | None = None) -> None:
    """Write README.md into the folder of a model that was pruned from `source`, a folder or hub id."""
    base = _base_card(source, revision)
    settings = {name: base[name] for name in _CARRIED if base.get(name) is not None}
    hub_id = base.get("base_model") if Path(source).exists() else source  # a local path means nothing to others
    data = ModelCardData(**settings, base_model=hub_id, tags=_TAGS, library_name="transformers")
    journal.write_text(folder / "README.md", f"---\n{data.to_yaml()}\n---\n\n{_text(record, Path(source).name)}")


def _base_card(source: str, revision: str | None) -> dict[str, Any]:
    """The settings at the head of a model's own card; empty where it has none."""
    path = cached_file(
        source,
        "README.md",
        revision=revision,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
        _raise_exceptions_for_gated_repo=False,
    )
    if path is None:
        return {}
    try:
        return dict(ModelCard.load(path, ignore_metadata_errors=True).data.to_dict())
    except (ValueError, OSError):  # a card that cannot be read is no reason to lose a model
        return {}


def _text(record: Record, name: str) -> str:
    parts = record.parts
    removed = parts["removed"]
    lines = [f"# {name} without {len(removed)} of its {parts['heads']} attention heads", ""]
    version = record.signature.versions.get("headcount", "")
    lines += [f"Pruned by headcount {version}: {_way(parts)}.", ""]
    lines += [*_quality(parts), *_costs(parts["cost"]), *_loading(parts), "## Heads that were removed"]
    lines += [", ".join(f"`{head}`" for head in removed) or "none", ""]
    lines += ["`record.json` has every number with its signature: hashes of weights and data, settings, versions.", ""]
    return "\n".join(lines)


def _way(parts: dict[str, Any]) -> str:
    way = f"heads chosen by {parts['method']}" if "method" in parts else "heads chosen by hand"
    compensation = parts.get("compensation")
    return f"{way}, made up for by {compensation['how']}" if compensation else way


def _quality(parts: dict[str, Any]) -> list[str]:
    """Quality before and after, with 95% intervals, where it was measured."""
    curve = {point["removed"]: point for point in parts.get("curve", ())}
    after = (parts.get("compensation") or {}).get("quality") or curve.get(len(parts["removed"]))
    if 0 not in curve or after is None:
        return []
    rows = [
        f"| {name} | {point['value']:.4g} | {point['low']:.4g} to {point['high']:.4g} |"
        for name, point in (("whole", curve[0]), ("pruned", after))
    ]
    return ["## Quality", f"| | {parts['metric']} | 95% interval |", "|---|---|---|", *rows, ""]


def _costs(cost: dict[str, Any]) -> list[str]:
    before, after = cost["before"], cost["after"]
    names = {"parameters": "parameters", "flops": "FLOPs of a forward pass", "cache_bytes": "bytes of cache"}
    rows = [
        f"| {words} | {before[name]:,} | {after[name]:,} | {after[name] / before[name] - 1:+.1%} |"
        for name, words in names.items()
        if before.get(name) and after.get(name) is not None
    ]
    title = f"## Costs, one text of {before['length']} tokens"
    return [title, "| | whole | pruned | |", "|---|---|---|---|", *rows, ""]


def _loading(parts: dict[str, Any]) -> list[str]:
    code = ["```python", "import headcount as hc", 'model = hc.load("this-folder")', "```"]
    runtimes = (
        "`headcount export this-folder --to gguf --out model.gguf` writes it for llama.cpp; vllm, onnx, openvino "
    )
    runtimes += (
        "and ctranslate2 are the other runtimes, and `headcount inspect this-folder` says which of them take it."
    )
    return ["## Load it", *code, _LOADING.get(parts.get("loaded_by", ""), ""), "", runtimes, ""]
