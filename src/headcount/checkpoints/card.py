"""Model card: README.md of a pruned model's folder: what was removed and how, what it costs, how to load it.

Reads a record and the card of the model that was pruned; knows no models.
"""

from __future__ import annotations

import hashlib
from math import isnan
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard, ModelCardData

from headcount import journal
from headcount.checkpoints.companions import find_file
from headcount.record import Record
from headcount.record.result import Quality
from headcount.record.results.prune import Costs, Pruning
from headcount.statistics import Comparison

CARD, BESIDE_README = "README.md", "MODEL_CARD.md"  # the second if the user has a README.md
_CARRIED = ("license", "license_name", "license_link", "language", "pipeline_tag", "datasets")
_SEAL = "<!-- As headcount wrote it: "
_TAGS = ["headcount", "pruned", "attention-heads"]
_LOADING = {
    "stock": "AutoModel.from_pretrained and its relatives load the folder: every layer has as many heads.",
    "standalone": "from_pretrained(..., trust_remote_code=True) of transformers loads the folder with the code in it.",
    "headcount": "Stock `from_pretrained` refuses the folder: headcount builds the smaller layers.",
}


def write_card(
    folder: Path, record: Record[Pruning], *, source: str, revision: str | None = None, name: str = CARD
) -> None:
    """Write the card into the folder of a model that was pruned from `source`, a folder or hub id."""
    base = _base_card(source, revision)
    settings = {name: base[name] for name in _CARRIED if base.get(name) is not None}
    hub_id = base.get("base_model") if Path(source).exists() else source  # a local path means nothing to others
    data = ModelCardData(**settings, base_model=hub_id, tags=_TAGS, library_name="transformers")
    text = f"---\n{data.to_yaml()}\n---\n\n{_text(record, Path(source).absolute().name)}"
    journal.write_text(folder / name, f"{text}{_seal(text)}")


def _base_card(source: str, revision: str | None) -> dict[str, Any]:
    """The metadata of the model's card; empty if it has none."""
    path = find_file(source, CARD, revision)
    return {} if path is None else _metadata(path)


def card_name(folder: Path) -> str:
    """The name of the card of a model that is saved in a folder, where a README.md may be the user's."""
    readme = folder / CARD
    return BESIDE_README if readme.is_file() and not is_card(readme) else CARD


def is_card(path: Path) -> bool:
    """Whether a file is a card as `write_card` wrote it; with changes of the user, it is theirs."""
    tags = _metadata(path).get("tags")
    if not isinstance(tags, list) or not all(tag in tags for tag in _TAGS):
        return False
    text, start, end = path.read_text(encoding="utf-8").partition(_SEAL)
    return not start or f"{start}{end}" == _seal(text)  # those of earlier versions have no seal


def _seal(text: str) -> str:
    """A comment with the hash of a card, by which changes are noticed."""
    return f"{_SEAL}{hashlib.sha256(text.encode()).hexdigest()[:40]} -->\n"


def _metadata(path: Path) -> dict[str, Any]:
    """The metadata of a card; empty if it cannot be read."""
    try:
        return dict(ModelCard.load(path, ignore_metadata_errors=True).data.to_dict())
    except (ValueError, OSError):  # a card that cannot be read is no reason to lose a model
        return {}


def _text(record: Record[Pruning], name: str) -> str:
    parts = record.parts
    removed = parts.removed_heads
    lines = [f"# {name} without {len(removed)} of its {parts.num_heads} attention heads", ""]
    version = record.signature.versions.get("headcount", "")
    lines += [f"Pruned by headcount {version}: {_way(parts)}.", ""]
    lines += [*_quality(parts), *_costs(parts.cost), *_loading(parts), "## Heads that were removed"]
    lines += [", ".join(f"`{head}`" for head in removed) or "none", ""]
    lines += ["`record.json` has every number with its signature: hashes of weights and data, settings, versions.", ""]
    return "\n".join(lines)


def _way(parts: Pruning) -> str:
    """All stages in words: how heads were chosen, the compensation, and the training."""
    words = ["heads chosen by hand" if parts.method == "given" else f"heads chosen by {parts.method}"]
    words += [f"compensated for by {parts.compensation.method}"] if parts.compensation else []
    stages = {"gates": "trained with gates", "tuning": "fine-tuned"}
    if parts.from_random:
        stage_words = {"gates": "trained with gates"} if "gates" in parts.training else {"tuning": "trained"}
        stages |= {name: f"{action} from new random weights" for name, action in stage_words.items()}
    words += [f"{stages[name]} for {stage.steps} steps ({stage.trained})" for name, stage in parts.training.items()]
    return ", ".join(words)


def _quality(parts: Pruning) -> list[str]:
    """Quality at each stage of pruning, with 95% intervals."""
    stages = parts.stages
    if not stages:
        return []
    rows = [f"| {name} | {_number(stage.value)} | {_interval(stage)} |" for name, stage in stages.items()]
    if parts.change is not None:
        change = parts.change.difference
        sign = "+" if change >= 0 else ""
        rows.append(f"| change, on the same examples | {sign}{_number(change)} | {_interval(parts.change)} |")
    metric = next(iter(stages.values())).metric
    caveat = parts.measured_on.caveat if parts.measured_on else ""
    note = ["", f"The table shows the {metric}{caveat}."] if caveat else []
    return ["## Quality", f"| | {metric} | 95% interval |", "|---|---|---|", *rows, *note, ""]


def _interval(quality: Quality | Comparison) -> str:
    return "none" if isnan(quality.low) else f"{_number(quality.low)} to {_number(quality.high)}"


def _number(value: float) -> str:
    """Four digits, and all before the point: a perplexity may be large."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"


def _costs(costs: Costs) -> list[str]:
    before, after = costs.before, costs.after
    measures = {
        "parameters": (before.parameters, after.parameters),
        "FLOPs of a forward pass": (before.flops, after.flops),
        "bytes of cache": (before.cache_bytes, after.cache_bytes),
    }
    rows = [
        f"| {words} | {original:,} | {small:,} | {small / original - 1:+.1%} |"
        for words, (original, small) in measures.items()
        if original and small is not None
    ]
    title = f"## Costs, one text of {before.length} tokens"
    return [title, "| | whole | pruned | |", "|---|---|---|---|", *rows, ""]


def _loading(parts: Pruning) -> list[str]:
    code = ["```python", "import headcount as hc", 'model = hc.load("this-folder")', "```"]
    runtimes = (
        "`headcount inspect this-folder` says which runtimes take it: llama.cpp, vLLM, ONNX Runtime, OpenVINO or "
        "CTranslate2. `headcount export this-folder --to onnx --out model.onnx` writes it for one."
    )
    return ["## Load it", *code, _LOADING.get(parts.loaded_by or "", ""), "", runtimes, ""]
