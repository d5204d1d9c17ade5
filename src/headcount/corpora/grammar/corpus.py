"""The embedded corpus as parallel text and treebank: generated splits that share no sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from headcount.corpora.grammar.english import english, tree
from headcount.corpora.grammar.generator import DOMAINS, Generator
from headcount.corpora.grammar.languages.language import Language, languages
from headcount.corpora.tree import Tree
from headcount.errors import UnknownName, check_name

# Generated in this order; each split avoids the sentences of those before it. test2 is reserved for results.
SIZES = {"test2": 1000, "test": 1000, "dev": 1000, "ood": 1000, "train": 40_000}
OTHER = {"written": "dialogue", "dialogue": "written"}
_LENGTHS = range(4, 15)  # words


@dataclass(frozen=True)
class Example:
    """One English sentence with its tree and its translation."""

    tree: Tree
    target: str


@dataclass(frozen=True)
class Grammar:
    """An embedded corpus: target language, domain and size."""

    language: str = "rich"
    domain: str = "written"
    train: int = SIZES["train"]

    @classmethod
    def named(cls, name: str) -> Grammar:
        """The corpus named by `grammar[:LANGUAGE[:DOMAIN]]`."""
        parts = name.split(":")[1:]
        language, domain = (*parts, *("rich", "written")[len(parts) :])[:2]
        check_name("language of the grammar", language, languages)
        if domain not in DOMAINS or len(parts) > 2:
            raise UnknownName("domain of the grammar", ":".join(parts[1:]), DOMAINS)
        return cls(language, domain)

    def splits(self) -> dict[str, list[Example]]:
        """Every split; `ood` is of the other domain."""
        return {name: list(examples) for name, examples in _splits(self.language, self.domain, self.train).items()}

    def split(self, name: str) -> list[Example]:
        """One split. The large training split is generated only if needed."""
        check_name("split", name, SIZES)
        train = self.train if name == "train" else 0
        return list(_splits(self.language, self.domain, train)[name])


@cache
def _splits(language: str, domain: str, train: int) -> dict[str, tuple[Example, ...]]:
    speaker, seen = languages[language](), set[str]()
    sizes = {**SIZES, "train": train}
    return {split: tuple(_new(speaker, domain, split, size, seen)) for split, size in sizes.items()}


def _new(speaker: Language, domain: str, split: str, size: int, seen: set[str]) -> Iterator[Example]:
    """Generate this many new sentences."""
    sentences = _sentences(speaker, OTHER[domain] if split == "ood" else domain, split)
    while size:
        example = next(sentences)
        if example.tree.text not in seen and len(example.tree) in _LENGTHS:
            seen.add(example.tree.text)
            size -= 1
            yield example


def _sentences(speaker: Language, domain: str, split: str) -> Iterator[Example]:
    generator = Generator(domain, f"{domain} {split}")
    while True:
        words = english(generator.sentence())
        yield Example(tree(words), speaker.translate(words))
