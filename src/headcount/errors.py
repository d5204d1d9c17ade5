"""All exceptions that headcount raises. Independent of models, files and the command line.

HeadcountError
|-- UsageError            an invalid argument (also a ValueError)
|   |-- UnknownName       a name that is not registered; the message suggests similar ones
|   |-- UnknownHead       a head the model does not have
|   `-- MaskError         a mask that does not fit the model
|-- ModelError            a model that does not support the operation
|   |-- UnknownArchitecture   no attention module was recognised
|   |-- NotRemovable          heads can be masked but not cut out
|   `-- NotExportable         a runtime cannot take the model
|-- VerificationError     masked and removed model disagree
|-- CheckpointError       a folder that is not a valid checkpoint
|-- FolderError           a folder that cannot be written: in use, not writable, disk full
|   `-- FolderInUse           another process works in it
|-- CorpusError           text or trees that cannot be read
`-- RecordError           a file that is not a valid record
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

MOST_LISTED = 60  # known names that an error lists
LONGEST_MESSAGE = 2000  # characters; a damaged file may have a column name as long as the file


class HeadcountError(Exception):
    """Base class of all errors that headcount raises. Very long messages are shortened in the middle."""

    def __init__(self, message: str = "") -> None:
        if len(message) > LONGEST_MESSAGE:
            half = LONGEST_MESSAGE // 2 - 10  # the fault is named first, the fix last: keep both ends
            message = f"{message[:half]} [...] {message[-half:]}"
        super().__init__(message)


class UsageError(HeadcountError, ValueError):
    """An invalid argument."""


class UnknownName(UsageError, KeyError):
    """A name that is not among the known ones.

    The message suggests similar names. It lists all known names, or says how many there are if they are too many.
    """

    def __init__(self, what: str, name: str, allowed: Iterable[str]) -> None:
        names = sorted(allowed)
        listed = len(names) <= MOST_LISTED
        close = get_close_matches(name, names, n=3 if listed else 5)
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        known_names = f"Known: {', '.join(names) or 'none'}." if listed else f"{len(names):,} names are known."
        super().__init__(f"Unknown {what} {name!r}.{hint} {known_names}")

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return str(self.args[0])


def check_name(what: str, name: str, allowed: Collection[str]) -> None:
    """Raise UnknownName if a name is not among the allowed ones."""
    if name not in allowed:
        raise UnknownName(what, name, allowed)


def check_type(what: str, value: object, kind: Any, expected: str) -> None:
    """Raise UsageError if a value is of another type. kind: as in isinstance. expected: what is allowed, in words."""
    if not isinstance(value, kind):
        raise UsageError(f"{what} must be {expected}; got {type(value).__name__}.")


def check_list(what: str, values: object, of: str) -> None:
    """Raise UsageError if values are no list of such things. A table or mapping would be read as its names."""
    if isinstance(values, str | bytes):
        raise UsageError(f"{what} must be a list of {of}; got a single text.")
    if isinstance(values, Mapping) or hasattr(values, "columns"):
        raise UsageError(
            f"{what} must be a list of {of}; got {type(values).__name__}, whose names would be read instead. Give one "
            "of its columns or entries, such as data['text'], or a list with it."
        )
    check_type(what, values, Iterable, f"a list of {of}")


class UnknownHead(UsageError):
    """A head that the model does not have."""


class MaskError(UsageError):
    """A mask that does not fit the model."""


class ModelError(HeadcountError):
    """A model that does not support the requested operation."""


class UnknownArchitecture(ModelError):
    """No attention module of the model was recognised."""


class NotRemovable(ModelError):
    """The heads of this model can be masked but not physically removed."""


class NotExportable(ModelError):
    """The runtime does not support this model."""


class VerificationError(HeadcountError):
    """The pruned model and the masked model compute different outputs.

    Attributes:
        reason: What differs.
        model: The pruned model, so that no work is lost.
        result: The pruning result, if there is one.
    """

    def __init__(self, reason: str, advice: str = "", *, model: Any = None, result: object = None) -> None:
        super().__init__(f"{reason} {advice}".strip())
        self.reason, self.model, self.result = reason, model, result


class CheckpointError(HeadcountError):
    """A folder that is not a valid checkpoint, or cannot be written."""


class FolderError(HeadcountError):
    """A folder that cannot be written: in use by another process, not writable, or on a full disk."""


class FolderInUse(FolderError):
    """A folder that another process is using."""


class CorpusError(HeadcountError):
    """Text or trees that cannot be read. `reason`: a short label, used to count skipped rows."""

    def __init__(self, message: str, *, reason: str = "unreadable") -> None:
        super().__init__(message)
        self.reason = reason


class RecordError(HeadcountError):
    """A file that is not a valid record."""
