"""Reference readers: slow, from the descriptions of the formats, sharing no code with headcount's."""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_CLASSES = 100_000
LONGEST_PAIR = 250  # words


class Refused(Exception):
    """The file is wrong: at a line, or as a whole."""

    def __init__(self, line: int | None = None) -> None:
        super().__init__(line)
        self.line = line


def lines(path: Path) -> Iterator[tuple[int, str]]:
    data = path.read_bytes()
    rows = data.split(b"\n")
    if not rows[-1]:
        rows.pop()
    for number, row in enumerate(rows, start=1):
        if number == 1 and row.startswith(b"\xef\xbb\xbf"):
            row = row[3:]
        if number == 1 and b"\n" not in data and b"\r" in row.rstrip(b"\r"):
            raise Refused(1)  # lines that end in carriage returns only
        try:
            text = row.decode("utf-8")
        except UnicodeDecodeError:
            raise Refused(number) from None
        if "\0" in text:
            raise Refused(number)
        while text.endswith("\r"):
            text = text[:-1]
        yield number, text


def parsed(text: str, line: int | None) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        if any(names.count(name) > 1 for name in set(names)):
            raise Refused(line)
        return dict(pairs)

    try:
        return json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise Refused(line) from None


def rows(path: Path, header: list[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Of a table; an empty line is an empty row."""
    numbered = lines(path)
    if path.suffix == ".jsonl":
        for number, text in numbered:
            row = parsed(text, number) if text.strip() else {}
            if not isinstance(row, dict):
                raise Refused(number)
            yield number, row
        return
    names = header or next(numbered, (1, ""))[1].split("\t")
    if any(names.count(name) > 1 for name in set(names)):
        raise Refused(1)
    for number, text in numbered:
        cells = text.split("\t")
        if text and len(cells) != len(names):
            raise Refused(number)
        yield number, {name: cells[index] for index, name in enumerate(names)} if text else {}


def text_of(row: dict[str, Any], column: str, number: int) -> str:
    value = row.get(column)
    if not isinstance(value, str) or "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise Refused(number)
    return value


def plain(path: Path) -> tuple[list[str], Counter[str]]:
    if path.suffix == ".txt":
        texts = [text for _, text in lines(path)]
    else:
        texts = [text_of(row, "text", number) if row else "" for number, row in rows(path)]
    used = [text.strip() for text in texts if text.strip()]
    if not used:
        raise Refused
    return used, +Counter(empty=len(texts) - len(used))


def labelled(path: Path) -> tuple[list[str], list[int], list[str], Counter[str]]:
    texts: list[str] = []
    labels: list[str] = []
    skipped = 0
    columns: list[str] = []
    for number, row in rows(path):
        if not row:
            skipped += 1
            continue
        if not columns:
            for choices in (("text", "sentence", "content", "sentence1", "premise"), ("label", "labels", "class")):
                usual = [name for name in choices if name in row]
                if not usual:
                    raise Refused(number)
                columns.append(usual[0])
        text = text_of(row, columns[0], number)
        label = row.get(columns[1])
        if isinstance(label, bool) or not isinstance(label, int | str):
            raise Refused(number)
        label = text_of(row, columns[1], number) if isinstance(label, str) else _decimal(label)
        if not text.strip() or not label.strip():
            skipped += 1
            continue
        labels.append(_label(label.strip(), number))
        texts.append(text)
    if not texts:
        raise Refused
    is_number = [label.startswith("number ") for label in labels]
    if any(is_number) != all(is_number):
        raise Refused
    if is_number[0]:
        numbers = [int(label.split()[1]) for label in labels]
        return texts, numbers, [str(index) for index in range(max(numbers) + 1)], +Counter(empty=skipped)
    names = sorted(set(labels))
    return texts, [names.index(label) for label in labels], [name[5:] for name in names], +Counter(empty=skipped)


def _decimal(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # thousands of digits
        return "9" * 100


def _label(text: str, line: int) -> str:
    digits = text.removeprefix("LABEL_")
    if digits.isascii() and digits.isdigit():
        if len(digits.lstrip("0")) > 6 or int(digits.lstrip("0") or "0") >= MOST_CLASSES:
            raise Refused(line)
        return f"number {int(digits.lstrip('0') or '0')}"
    if not re.search("[_n]", text.lower()):
        try:
            float(text)
        except ValueError:
            pass
        else:
            raise Refused(line)
    return f"name {text}"


def pairs(paths: list[Path]) -> tuple[list[tuple[str, str]], Counter[str]]:
    """Of two files of lines, or of a table with the columns source and target."""
    both = _aligned(*paths) if len(paths) == 2 else _paired(paths[0])
    used, skipped = [], Counter[str]()
    for source, target in both:
        if not source.strip() or not target.strip():
            skipped["empty"] += 1
        elif len(source.split()) > LONGEST_PAIR or len(target.split()) > LONGEST_PAIR:
            skipped["too long"] += 1
        else:
            used.append((source.strip(), target.strip()))
    if not used:
        raise Refused
    return used, skipped


def _aligned(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    left, right = lines(source), lines(target)
    while True:
        ends = [next(side, None) for side in (left, right)]
        if ends == [None, None]:
            return
        if None in ends:
            raise Refused
        yield ends[0][1], ends[1][1]  # type: ignore[index]


def _paired(path: Path) -> Iterator[tuple[str, str]]:
    header = None
    if path.suffix == ".tsv":
        cells = next(lines(path), (1, ""))[1].split("\t")
        if len(cells) == 2 and set(cells) != {"source", "target"}:
            if {cell.strip().lower() for cell in cells} & {"source", "target"} or all(map(_is_column, cells)):
                raise Refused(1)
            header = ["source", "target"]
    for number, row in rows(path, header):
        if row:
            row = row["translation"] if isinstance(row.get("translation"), dict) else row
            yield text_of(row, "source", number), text_of(row, "target", number)
        else:
            yield "", ""


def _is_column(cell: str) -> bool:
    from headcount.corpora.pairs import _names_column

    return _names_column(cell.strip().lower())  # a list of words, not a way of reading


def treebank(path: Path) -> tuple[list[tuple[Any, ...]], int]:
    """(text, words, heads, relations, tags) of every sound sentence, and how many are not sound."""
    numbered = [*lines(path), (0, "")]
    blocks: list[list[str]] = [[]]
    for _, text in numbered:
        if text.strip():
            blocks[-1].append(text)
        else:
            blocks.append([])
    sound, unsound = [], 0
    for block in blocks:
        if block:
            try:
                sound.append(_sentence(block))
            except (ValueError, IndexError):
                unsound += 1
    if not sound:
        raise Refused
    return sound, unsound


def _sentence(block: list[str]) -> tuple[Any, ...]:
    words: list[list[str]] = []
    ranges: dict[int, tuple[int, str, bool]] = {}
    for line in block:
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if len(cells) != 10:
            raise ValueError
        if re.fullmatch("[0-9]+[.][0-9]+", cells[0]):
            continue
        if not cells[1].strip():
            raise ValueError
        if "-" in cells[0]:
            start, last = map(_word_number, cells[0].split("-", 1))
            if start != len(words) + 1 or any(start <= end for end, _, _ in ranges.values()) or last <= start:
                raise ValueError
            ranges[start] = last, cells[1], "SpaceAfter=No" not in cells[9].split("|")
            continue
        if _word_number(cells[0]) != len(words) + 1:
            raise ValueError
        _word_number(cells[6])
        words.append(cells)
    heads = [int(cells[6]) for cells in words]
    if not words or heads.count(0) != 1 or max(heads) > len(words):
        raise ValueError
    if any(end > len(words) for end, *_ in ranges.values()):
        raise ValueError
    for start in range(1, len(words) + 1):
        steps, word = 0, start
        while word:
            word, steps = heads[word - 1], steps + 1
            if steps > len(words):
                raise ValueError
    return _text(words, ranges), *(tuple(column) for column in _columns(words, heads))


def _columns(words: list[list[str]], heads: list[int]) -> Iterator[list[Any]]:
    yield [cells[1] for cells in words]
    yield [head - 1 for head in heads]
    yield [cells[7].split(":")[0] for cells in words]
    yield [cells[3] for cells in words]


def _text(words: list[list[str]], ranges: dict[int, tuple[int, str, bool]]) -> str:
    text, number, spaced = "", 1, False
    while number <= len(words):
        cells = words[number - 1]
        last, form, spaced = ranges.get(number, (number, cells[1], "SpaceAfter=No" not in cells[9].split("|")))
        text += form + (" " if spaced else "")
        number = last + 1
    return text[:-1] if spaced else text


def _word_number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise ValueError(text)
    return int(text)


def frequencies(path: Path, vocabulary: dict[str, int]) -> tuple[dict[int, float], Counter[str]]:
    counts: dict[str, float] = {}
    if path.suffix == ".json":
        content = parsed("\n".join(text for _, text in lines(path)), None)
        if not isinstance(content, dict):
            raise Refused
        counts = {token: _count(value, None) for token, value in content.items()}
    else:
        for number, text in lines(path):
            if not text.strip():
                continue
            cells = text.split("\t")
            if len(cells) != 2 or cells[0] in counts:
                raise Refused(number)
            counts[cells[0]] = _count(cells[1], number)
    used = {vocabulary[token]: count for token, count in counts.items() if token in vocabulary}
    if not used:
        raise Refused
    return used, +Counter({"not in the vocabulary": len(counts) - len(used)})


def _count(value: Any, line: int | None) -> float:
    try:
        count = float("none" if isinstance(value, bool) else value)
    except (TypeError, ValueError, OverflowError):
        raise Refused(line) from None
    if count - count != 0:  # NaN and infinity
        raise Refused(line)
    return count


def tensors(path: Path) -> dict[str, tuple[str, list[int], bytes]]:
    """What a safetensors file holds: type, shape and bytes by name."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    return {
        name: (entry["dtype"], entry["shape"], body[slice(*entry["data_offsets"])])
        for name, entry in header.items()
        if name != "__metadata__"
    }
