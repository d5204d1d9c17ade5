"""Invented words: a deterministic stem for every name, unique within a language."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from functools import cache


class Stems:
    """The vocabulary of one invented language."""

    def __init__(self, language: str, onsets: str, vowels: str, codas: str, *, reserved: Sequence[str] = ()) -> None:
        """onsets, vowels, codas: sounds of a syllable, separated by spaces; "-" is none. taken: words to avoid."""
        self._language = language
        self._sounds = [[sound.replace("-", "") for sound in sounds.split()] for sounds in (onsets, vowels, codas)]
        self._taken = set(reserved)
        self._found: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._found:
            raise KeyError(f"{self._language} has no word for {name!r}")
        return self._found[name]

    def add(self, names: Sequence[str]) -> None:
        """Invent words, in this order: later ones avoid earlier ones."""
        for name in names:
            if name in self._found:
                continue
            draw = random.Random(f"{self._language} {name}")
            stem = self._stem(draw)
            while stem in self._taken:
                stem = self._stem(draw)
            self._taken.add(stem)
            self._found[name] = stem

    def _stem(self, draw: random.Random) -> str:
        onsets, vowels, codas = self._sounds
        syllables = draw.choice((1, 2, 2, 2, 3))
        parts = [draw.choice(onsets) + draw.choice(vowels) for _ in range(syllables)]
        return "".join(parts) + draw.choice(codas)


@cache
def drawn(language: str, name: str, choices: tuple[str, ...]) -> str:
    """One of the choices, always the same for a name: a gender or class."""
    digest = hashlib.blake2b(f"{language} {name}".encode(), digest_size=4).digest()
    return choices[int.from_bytes(digest, "little") % len(choices)]


_SPELLING = {"ph": "f", "th": "t", "ck": "k", "qu": "kv", "x": "ks", "c": "k", "w": "v", "y": "i", "ll": "l"}


def respelled(name: str) -> str:
    """A name as the invented languages write it."""
    text = name.lower()
    for old, new in _SPELLING.items():
        text = text.replace(old, new)
    return text.capitalize()
