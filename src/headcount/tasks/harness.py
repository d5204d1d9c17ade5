"""Names of tasks of the lm-evaluation-harness: `lm-eval:TASK[,TASK]`. Imports no torch."""

from __future__ import annotations

from headcount.errors import UsageError

HARNESS = "lm-eval"  # the member of `tasks`
PREFIX = f"{HARNESS}:"


def is_harness(task: str | None) -> bool:
    """Whether a task name refers to the harness."""
    return task is not None and task.startswith(PREFIX)


def task_names(task: str) -> tuple[str, ...]:
    """The names in `lm-eval:TASK[,TASK]`."""
    names = tuple(name.strip() for name in task.removeprefix(PREFIX).split(",") if name.strip())
    if not is_harness(task) or not names or len(set(names)) < len(names):
        raise UsageError(f"{task!r}: expected lm-eval:TASK[,TASK], each task once, such as lm-eval:arc_easy,piqa.")
    return names
