"""translation: a target sentence for each source sentence."""

from headcount.tasks.translation.pairs import Translation

TASK = Translation

__all__ = ["TASK", "Translation"]
