"""Every reader with sound input to mutate, and a slow reader that says what comes out or that it is to be refused."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from fuzz import references
from fuzz.references import Refused

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Reader:
    """read, reference: of a folder. The reference raises Refused where the reader has to raise HeadcountError."""

    seeds: Callable[[], list[Files]]
    read: Callable[[Path], Any]
    reference: Callable[[Path], Any] | None = None  # None: any result or a clear error
    share: float = 1.0  # of the cases, against the others
    names_file: bool = True  # whether an error has to name the file
    strict: bool = True  # whether all that the reference reads has to be read


def _texts(name: str, *texts: str) -> Callable[[], list[Files]]:
    return lambda: [{name: text.encode()} for text in texts]


# ---- corpora

PLAIN = "The little girl saw a dog.\n\nÉté à Paris, 3.5 %.\r\n日本 🙂\nlast line"
LABELLED = "text\tlabel\nThe little girl.\t0\nA dog\t1\n\nÉté à Paris\t1\n"
NAMED = "sentence\tid\tlabel\nThe little girl.\t7\tgood\n\t8\tbad\nA dog\t9\tbad\n"
JSON_LABELLED = '{"text": "The girl.", "label": 0}\n{"text": "", "label": 1}\n\n{"label": "1", "text": "\\u00e9"}\n'
JSON_NAMED = '{"text": "a", "label": "good", "n": [1, {"x": null}]}\n{"text": "b", "label": "bad"}\n'
PAIRS = "source\ttarget\nThe girl\tDas Mädchen\n\t\nA dog\tEin Hund\n"
BARE_PAIRS = "The girl sees .\tDas Mädchen sieht .\nA dog runs .\tEin Hund läuft .\n"
JSON_PAIRS = (
    '{"source": "The girl", "target": "Das Mädchen"}\n{"translation": {"source": "A dog", "target": "Ein Hund"}}\n'
)
TREES = """# sent_id = 1
1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\tgirl\tgirl\tNOUN\t_\t_\t4\tnsubj:pass\t_\t_
3-4\tdidn't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
3\tdid\tdo\tAUX\t_\t_\t4\taux\t_\t_
4\tnot\tnot\tPART\t_\t_\t0\troot\t_\t_
4.1\tgo\tgo\tVERB\t_\t_\t_\t_\t_\t_
5\t.\t.\tPUNCT\t_\t_\t4\tpunct\t_\t_

1\tÉté\tété\tNOUN\t_\t_\t0\troot\t_\t_
2\t!\t!\tPUNCT\t_\t_\t1\tpunct\t_\tSpaceAfter=No|x=y

"""


def _read_plain(folder: Path) -> Any:
    from headcount.corpora.plain import read_plain

    texts = read_plain(_only(folder))
    return list(texts), +texts.skipped


def _read_labelled(folder: Path) -> Any:
    from headcount.corpora.labelled import read_labelled

    read = read_labelled(_only(folder))
    return read.texts, read.labels, list(read.classes), +read.skipped


def _read_pairs(folder: Path) -> Any:
    """Without the memory map of `datasets`, which takes a hundred times longer."""
    from headcount.corpora.pairs import PairFiles

    files = PairFiles(tuple(_pair_paths(folder)), ("source", "target"), references.LONGEST_PAIR)
    counts = files.skipped()
    return [(pair["source"], pair["target"]) for pair in files.usable()], counts


def _pair_paths(folder: Path) -> list[Path]:
    return sorted(folder.iterdir(), reverse=True) if (folder / "train.source").exists() else [_only(folder)]


def _read_trees(folder: Path) -> Any:
    from headcount.corpora.conllu import read_conllu
    from headcount.errors import CorpusError

    bank = read_conllu(_only(folder), on_error="skip")
    for tree in bank:
        for (start, end), form in zip(tree.spans, tree.words, strict=True):
            assert 0 <= start < end <= len(tree.text), (tree.text, form, start, end)
    if bank.skipped:
        with pytest.raises(CorpusError, match=re.escape(f"{_only(folder)}:")):
            read_conllu(_only(folder))
    sentences = [(tree.text, tree.words, tree.heads, tree.relations, tree.tags) for tree in bank]
    return sentences, sum(bank.skipped.values())


VOCABULARY = {"the": 3, "dog": 4, "été": 5, "a": 6}


class _Tokenizer:
    def get_vocab(self) -> dict[str, int]:
        return VOCABULARY


def _read_frequencies(folder: Path) -> Any:
    from headcount.corpora.frequencies import read_frequencies

    read: Any = read_frequencies(_only(folder), _Tokenizer())  # type: ignore[arg-type]
    table = read.table(8)
    assert table.shape == (2, 8)
    return {token: read.count(token) for token in VOCABULARY.values() if token in read}, +read.skipped


def _only(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


# ---- heads, records


@cache
def _grids() -> list[Files]:
    from headcount.heads import Head, HeadGrid

    values: list[list[Any]] = [[1, 0, 1], [0.5, float("nan"), -2.0], [True, False, True], ["a", None, (1, 2)]]
    return [
        {"grid.json": HeadGrid([(Head("encoder", 0, i), v) for i, v in enumerate(row)]).to_json().encode()}
        for row in values
    ]


def _read_grid(folder: Path) -> Any:
    from headcount.heads import HeadGrid

    text = _only(folder).read_bytes().decode("utf-8", "replace")
    grid = HeadGrid.from_json(text)
    again = HeadGrid.from_json(grid.to_json())
    assert again == grid
    repr(grid), grid._repr_html_(), grid.to_frame()
    return sorted(map(str, grid))


def _grid_heads(folder: Path) -> Any:
    text = _only(folder).read_bytes().decode("utf-8", "replace")
    content = references.parsed(text, None)
    kinds = {"bool", "object", "float64", "float32", "int64", "int32", "float16", "int8", "uint8", "int16"}
    if not isinstance(content, dict) or not isinstance(content.get("values"), dict):
        raise Refused
    if content.get("dtype") not in kinds:
        raise Refused
    return None  # what values may be is the reader's to say


@cache
def _records() -> list[Files]:
    import records

    written = [record.to_plain() for sample in records.SAMPLES.values() for record in sample]
    for record in written:
        record["signature"] |= {"time": "2026-01-01T00:00:00+00:00", "versions": {"headcount": "0.1.0"}}
    return [{"record.json": json.dumps(record, indent=2).encode()} for record in written]


def _read_record(folder: Path) -> Any:
    from headcount.record import Record

    record = Record.load(_only(folder))
    json.loads(record.to_json().encode("utf-8"))
    str(record.signature), record._repr_html_()
    return _canonical(record.to_plain())


def _record_content(folder: Path) -> Any:
    """What the file says; that defaults of missing keys are filled in is the reader's."""
    try:
        content = json.loads(_only(folder).read_bytes().decode("utf-8"))
    except (ValueError, RecursionError):
        raise Refused from None
    return _canonical(content)


def _canonical(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1e300 else value


def _same_record(read: Any, reference: Any) -> bool:
    """Every value of the file is in the record; keys that only the record has are defaults."""
    if isinstance(reference, dict) and isinstance(read, dict):
        return all(name in read and _same_record(read[name], value) for name, value in reference.items())
    if isinstance(reference, list) and isinstance(read, list):
        return len(read) == len(reference) and all(map(_same_record, read, reference))
    return bool(read == reference)


# ---- checkpoints


@cache
def _folders() -> list[Files]:
    import tempfile

    import torch
    import transformers

    import headcount as hc
    import zoo

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    folders = []
    for number, architecture in enumerate(("bert", "llama")):
        model = zoo.build(architecture)
        sites = hc.locate(model)
        pruned = hc.remove(model, sites.mask(off=[f"{sites.kinds[0]}.0.{index}" for index in (0, 1)]))
        for kind, made in (("plain", model), ("pruned", pruned)):
            with tempfile.TemporaryDirectory() as place:
                target = Path(place) / kind
                hc.save(made, target, **({"max_shard_size": "60KB"} if kind == "plain" and number else {}))
                folders.append({file.name: file.read_bytes() for file in target.iterdir() if file.is_file()})
    return folders


@cache
def _configs() -> list[Files]:
    return [{"config.json": folder["config.json"]} for folder in _folders()]


def _read_config(folder: Path) -> Any:
    from headcount.checkpoints.companions import class_names
    from headcount.checkpoints.objective import objective

    class_names(str(folder))
    return objective(str(folder))


@cache
def _manifests() -> list[Files]:
    configs = [json.loads(folder["config.json"]) for folder in _folders()]
    manifests = [config["head_pruning"] for config in configs if "head_pruning" in config]
    return [{"manifest.json": json.dumps(manifest).encode()} for manifest in manifests]


def _read_manifest(folder: Path) -> Any:
    from headcount.surgery.manifest import check

    try:
        content = json.loads(_only(folder).read_bytes().decode("utf-8"))
    except (ValueError, RecursionError):
        raise Refused from None
    return {name: entry["heads"] for name, entry in check(content).items()}


def _manifest_heads(folder: Path) -> Any:
    content = json.loads(_only(folder).read_bytes().decode("utf-8"))
    heads = {name: entry["heads"] for name, entry in content["sites"].items()}
    for name, entry in content["sites"].items():
        for numbers in (entry["heads"], entry["built"]):
            if any(later <= earlier for earlier, later in pairwise(numbers)):
                raise Refused
            if any(not 0 <= number < entry["of"] for number in numbers):
                raise Refused
        if name in heads and not set(entry["heads"]) <= set(entry["built"]):
            raise Refused
    return heads


def _read_model(folder: Path) -> Any:
    """Weights of the model, those of the files bit for bit; the files are the reference."""
    import torch

    import headcount as hc

    model = hc.load(folder)
    stored: dict[str, tuple[str, list[int], bytes]] = {}
    index = folder / "model.safetensors.index.json"
    names = set(json.loads(index.read_text())["weight_map"].values()) if index.exists() else {"model.safetensors"}
    for name in sorted(names):
        stored |= references.tensors(folder / name)
    kinds = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}
    for name, value in model.state_dict().items():
        if name not in stored and any(value.data_ptr() == other.data_ptr() for other in model.state_dict().values()):
            continue  # tied
        kind, shape, content = stored[name]
        tensor = torch.frombuffer(bytearray(content), dtype=kinds[kind]).reshape(shape).to(value.dtype)
        assert torch.equal(tensor.view(torch.uint8), value.cpu().contiguous().view(torch.uint8)), name
    return sorted(map(str, hc.locate(model).heads))


READERS: dict[str, Reader] = {
    "plain text": Reader(_texts("texts.txt", PLAIN), _read_plain, lambda folder: references.plain(_only(folder))),
    "plain text in JSON lines": Reader(
        _texts("texts.jsonl", JSON_LABELLED), _read_plain, lambda folder: references.plain(_only(folder))
    ),
    "labels in a table": Reader(
        _texts("train.tsv", LABELLED, NAMED), _read_labelled, lambda folder: references.labelled(_only(folder)), 2
    ),
    "labels in JSON lines": Reader(
        _texts("train.jsonl", JSON_LABELLED, JSON_NAMED),
        _read_labelled,
        lambda folder: references.labelled(_only(folder)),
        2,
    ),
    "parallel text in two files": Reader(
        lambda: [{"train.source": PLAIN.encode(), "train.target": PLAIN.replace("dog", "Hund").encode()}],
        _read_pairs,
        lambda folder: references.pairs(_pair_paths(folder)),
    ),
    "parallel text in a table": Reader(
        _texts("train.tsv", PAIRS, BARE_PAIRS), _read_pairs, lambda folder: references.pairs([_only(folder)])
    ),
    "parallel text in JSON lines": Reader(
        _texts("train.jsonl", JSON_PAIRS), _read_pairs, lambda folder: references.pairs([_only(folder)])
    ),
    "CoNLL-U": Reader(
        _texts("bank.conllu", TREES, TREES * 3), _read_trees, lambda folder: references.treebank(_only(folder)), 3
    ),
    "frequencies in a table": Reader(
        _texts("counts.tsv", "the\t30\ndog\t2.5\nété\t1\nother\t3\n"),
        _read_frequencies,
        lambda folder: references.frequencies(_only(folder), VOCABULARY),
    ),
    "frequencies in JSON": Reader(
        _texts("counts.json", '{"the": 30, "dog": 2.5, "été": "1", "other": 7}'),
        _read_frequencies,
        lambda folder: references.frequencies(_only(folder), VOCABULARY),
    ),
    "head grid": Reader(_grids, _read_grid, _grid_heads, names_file=False, strict=False),
    "record": Reader(_records, _read_record, _record_content, 1.5, strict=False),
    "manifest": Reader(_manifests, _read_manifest, _manifest_heads, names_file=False, strict=False),
    "config": Reader(_configs, _read_config, share=0.2),
    "checkpoint": Reader(_folders, _read_model, share=0.02),
}


def agrees(reader: str, read: Any, reference: Any) -> bool:
    if reader == "record":
        return _same_record(read, reference)
    if reader == "head grid":
        return True
    if isinstance(reference, tuple) and isinstance(reference[-1], Counter):
        return bool(tuple(read) == reference)
    return bool(read == reference)
