"""Loading: how MODEL of a command is loaded, and onto which devices. Heavy imports happen on use."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headcount.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Loading:
    """Options for loading a model."""

    dtype: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    device: str | None = None  # such as cuda or mps; by default the accelerator that `accelerate` finds, else cpu
    device_map: str | None = None  # of `accelerate`: auto, balanced, sequential, or JSON of module -> device

    def __post_init__(self) -> None:
        if self.device and self.device_map:
            raise UsageError(
                "device and device_map exclude each other: give device for one device, device_map for several."
            )

    def load(self, model: str, *, task: str | None = None, **options: Any) -> Any:
        from headcount.checkpoints.load import load

        quiet()
        if self.revision:
            options["revision"] = self.revision
        if self.device_map:
            options["device_map"] = _device_map(self.device_map)
        live = load(model, task=task, dtype=self.dtype, trust_remote_code=self.trust_remote_code, **options)
        return live if self.device_map else _moved(live, self.device or default_device())

    def tokenizer(self, model: str) -> Any:
        from headcount.checkpoints.companions import load_tokenizer

        quiet()
        return load_tokenizer(model, revision=self.revision, trust_remote_code=self.trust_remote_code)

    def text_limit(self, model: str, task: str) -> int | None:
        """Longest text of a model in tokens; None if there is no limit."""
        from headcount.checkpoints.load import text_limit

        return text_limit(model, task=task, revision=self.revision, trust_remote_code=self.trust_remote_code)

    def classes(self, model: str) -> tuple[str, ...] | None:
        """Class names of a model; None if they have only default names."""
        from headcount.checkpoints.companions import class_names

        return class_names(model, revision=self.revision, trust_remote_code=self.trust_remote_code)

    def objective(self, model: str) -> Any:
        """The task of a model according to its class."""
        from headcount.checkpoints.objective import objective

        quiet()
        return objective(model, revision=self.revision, trust_remote_code=self.trust_remote_code)


def default_device() -> str:
    """The accelerator that `accelerate` finds for this process, else the CPU."""
    from accelerate import PartialState
    from accelerate.utils import parse_flag_from_env

    return str(PartialState(cpu=parse_flag_from_env("ACCELERATE_USE_CPU")).device)


def _device_map(text: str) -> str | dict[str, Any]:
    if not text.startswith("{"):
        return text
    try:
        return dict(json.loads(text))
    except ValueError as error:
        raise UsageError(
            f'The device map {text} is not JSON ({error}); expected auto, or module -> device such as {{"": "cpu"}}.'
        ) from error


def _moved(model: PreTrainedModel, device: str) -> Any:
    try:
        return model.to(device)
    except (RuntimeError, AssertionError) as error:  # torch raises different errors for a missing device
        reason = str(error).splitlines()[0]
        raise UsageError(f"The model cannot be moved to the device {device!r}: {reason}") from error


def quiet() -> None:
    """Silence messages of transformers; the commands report what matters."""
    import datasets
    import transformers

    datasets.disable_progress_bars()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
