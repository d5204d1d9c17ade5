"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]


def loading(function: Command) -> Command:
    """MODEL and how it is loaded."""
    for decorate in (
        click.option("--trust-remote-code", is_flag=True, help="Run code that comes with the model. Look at it first."),
        click.option("--revision", help="Branch, tag or commit of a hub model."),
        click.option(
            "--dtype", type=click.Choice(["float32", "float16", "bfloat16"]), help="Number format of the weights."
        ),
        click.argument("model"),
    ):
        function = decorate(function)
    return function


as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")


def quiet() -> None:
    """Silence what transformers says on its way: the commands show what matters themselves."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def load_model(model: str, *, dtype: str | None, revision: str | None, trust_remote_code: bool) -> Any:
    from headcount.checkpoints.load import load

    quiet()
    options = {"revision": revision} if revision else {}
    return load(model, dtype=dtype, trust_remote_code=trust_remote_code, **options)
