"""Mutations: what disks, editors, other systems and attackers do to a file. The same seed gives the same bytes."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

LARGEST = 200_000  # bytes of a mutated file
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_HUGE = (b"9" * 400, b"9" * 5000, b"1e999", b"-1e999", b"-1", b"0", b"1.5", b"NaN", b"Infinity", b"99999999999", b"1e5")
_BREAKS = ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r", "\u00a0", "\u200b", "\ufeff")
_INVALID = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\x80")
# fmt: off
_TOKENS = (
    b"\t", b"\n", b"\n\n", b"\r\n", b"\0", b" ", b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"#", b"-", b".",
    b"null", b"true", b"\\ud800", b'"label"', b'"text"', b"0", b"1-2", b"1.1", b"_", b"../../etc/passwd", b"<script>",
    "\u0663".encode(), "\U0001f600".encode(),
)
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2.5, 10**30, 10**400, 1e308, "", "text", "\ud800", "\0", "9" * 50, [], {}, [[]],
    {"a": 1}, [None], "__class__", "encoder.0.0", "encoder.99.99", ["encoder.0.0"] * 3, -(10**12), 1e-320,
)
# fmt: on
Mutation = Callable[[bytes, random.Random], bytes]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """One to three mutations after each other."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        data = draw.choice(MUTATIONS)(data, draw)[:LARGEST]
    return data


def flip_bytes(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8)) if data else 0):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randint(0, len(data))]


def cut_out(data: bytes, draw: random.Random) -> bytes:
    start = draw.randint(0, len(data))
    return data[:start] + data[start + draw.randint(1, 40) :]


def duplicate_line(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        row = draw.randrange(len(lines))
        lines[row:row] = [lines[row]] * draw.choice((1, 1, 50))
    return b"".join(lines)


def remove_line(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        del lines[draw.randrange(len(lines))]
    return b"".join(lines)


def shuffle_lines(data: bytes, draw: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    draw.shuffle(lines)
    return b"".join(lines)


def mark_byte_order(data: bytes, draw: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return draw.choice((b"\xef\xbb\xbf" + data, text.encode("utf-16"), text.encode("utf-16-be"), text.encode("utf-32")))


def end_lines_otherwise(data: bytes, draw: random.Random) -> bytes:
    return data.replace(b"\n", draw.choice((b"\r\n", b"\r", b"\n\n", b"\r\r\n", b"\n\r")))


def insert(data: bytes, draw: random.Random, *pieces: bytes) -> bytes:
    start = draw.randint(0, len(data))
    return data[:start] + draw.choice(pieces) + data[start:]


def insert_token(data: bytes, draw: random.Random) -> bytes:
    return insert(data, draw, *_TOKENS)


def insert_break(data: bytes, draw: random.Random) -> bytes:
    return insert(data, draw, *(text.encode() for text in _BREAKS))


def insert_invalid(data: bytes, draw: random.Random) -> bytes:
    return insert(data, draw, *_INVALID)


def nest_deeply(data: bytes, draw: random.Random) -> bytes:
    depth = draw.choice((50, 500, 5_000, 60_000))
    return insert(data, draw, b"[" * depth, b'{"a":' * depth, b"[" * depth + b"]" * depth)


def change_number(data: bytes, draw: random.Random) -> bytes:
    numbers = list(_NUMBER.finditer(data))
    if not numbers:
        return insert(data, draw, *_HUGE)
    number = draw.choice(numbers)
    return data[: number.start()] + draw.choice(_HUGE) + data[number.end() :]


def lengthen(data: bytes, draw: random.Random) -> bytes:
    return insert(data, draw, b"a" * 50_000, b"\t" * 10_000, b"\n" * 10_000, b"word " * 10_000, b"0" * 20_000)


def empty(data: bytes, draw: random.Random) -> bytes:
    return draw.choice((b"", b"\n", b" \n\t\n", b"\xef\xbb\xbf"))


def change_value(data: bytes, draw: random.Random) -> bytes:
    """Another value, a missing key or a new one somewhere in a JSON document, or in a line of JSON."""
    lines = data.split(b"\n")
    row = draw.randrange(len(lines))
    for part in (data, lines[row]):
        try:
            document = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict | list):
            _change(document, draw)
            changed = json.dumps(document, ensure_ascii=draw.random() < 0.9).encode("utf-8", "surrogatepass")
            return changed if part is data else b"\n".join([*lines[:row], changed, *lines[row + 1 :]])
    return change_number(data, draw)


def _change(document: Any, draw: random.Random) -> None:
    parents, keys = [document], [document]
    while keys:
        value = keys.pop()
        children = value.values() if isinstance(value, dict) else value
        inner = [child for child in children if isinstance(child, dict | list)]
        parents += inner
        keys += inner
    parent = draw.choice([parent for parent in parents if parent] or [document])
    if not parent:
        return
    key = draw.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
    action = draw.random()
    if action < 0.15:
        del parent[key]
    elif action < 0.25 and isinstance(parent, dict):
        parent[draw.choice(("", "note", "0", "a" * 3000, key + " "))] = parent[key]
    else:
        parent[key] = draw.choice(_VALUES)


MUTATIONS: tuple[Mutation, ...] = (
    flip_bytes, flip_bytes, truncate, cut_out, duplicate_line, remove_line, shuffle_lines, mark_byte_order,
    end_lines_otherwise, insert_token, insert_token, insert_break, insert_invalid, nest_deeply, change_number,
    change_number, lengthen, empty, change_value, change_value, change_value,
)  # fmt: skip
