"""Classes: converts the labels of a data set into class numbers. Knows no files and no models."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

from headcount.errors import CorpusError

MAX_CLASSES = 100_000  # each costs a row of the classifier: a larger number is an id, not a class
_ALLOWED = "A label is a class number (0 to n - 1 for n classes) or a class name"
_CLASS_NUMBER = re.compile(r"(?:LABEL_)?([0-9]+)")  # LABEL_3: the default name of class 3 in transformers
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)  # one way to read each digit: linear


class Classes:
    """The labels of a data set, added one by one.

    known: class names by number, if the model has them. A label is then one of these names, or a class number unless
        the names are numbers that do not start at 0 (1 to 5).
    """

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self._known = tuple(names) if names else None
        self._numbers = {name: number for number, name in reversed(list(enumerate(names or ())))}
        self._names_count_otherwise = any(
            _class_number(name) not in (None, number) for number, name in enumerate(names or ())
        )
        self._labels: list[int | str] = []
        self._first: dict[type, str] = {}  # location of the first class number and the first class name

    def add(self, label: str | int, location: str) -> None:
        """Add a label. Raises with its location if it is neither a class number nor a class name."""
        text = str(label).strip()
        if text in self._numbers:
            self._labels.append(self._numbers[text])
            return
        number = _class_number(text)
        if self._known:
            if number is None or self._names_count_otherwise or number >= len(self._known):
                raise CorpusError(f"{location} has the label {text!r:.40}; the model knows {self._allowed()}.")
        elif number is None and _NUMBER.fullmatch(text):
            raise CorpusError(f"{location} has the label {text!r:.40}. {_ALLOWED}, not a negative or decimal number.")
        elif number is not None and number >= MAX_CLASSES:
            raise CorpusError(f"{location} has the label {text!r:.40}. {_ALLOWED}, and n is at most {MAX_CLASSES}.")
        self._labels.append(text if number is None else number)
        self._first.setdefault(type(self._labels[-1]), f"{location} has the label {text!r:.40}")

    def numbered(self) -> tuple[list[int], tuple[str, ...]]:
        """The class number of each label, and the name of each class. New names are numbered alphabetically."""
        if len(self._first) > 1:
            raise CorpusError(f"{', '.join(self._first.values())}: give either class numbers or class names.")
        if str in self._first:
            names = tuple(sorted({str(label) for label in self._labels}))
            numbers = {name: number for number, name in enumerate(names)}
            return [numbers[str(label)] for label in self._labels], names
        parsed = [int(label) for label in self._labels]
        if int in self._first and len(set(parsed)) > 1 and 0 not in parsed:
            warnings.warn(
                f"No text has the label 0: labels begin at {min(parsed)}. Class numbers are counted from 0. If these "
                "are counted from 1, all results are wrong.",
                stacklevel=3,
            )
        return parsed, self._known or tuple(map(str, range(max(parsed, default=-1) + 1)))

    def _allowed(self) -> str:
        names = self._known or ()
        listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        return listed if self._names_count_otherwise else f"{listed} (class numbers 0 to {len(names) - 1})"


def _class_number(text: str) -> int | None:
    """The class number in a label; the largest number if it has too many digits."""
    match = _CLASS_NUMBER.fullmatch(text)
    if match is None:
        return None
    digits = match[1].lstrip("0") or "0"
    return int(digits) if len(digits) <= len(str(MAX_CLASSES)) else MAX_CLASSES
