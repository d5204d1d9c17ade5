"""headcount push: upload a model folder to the hub."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("push")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("name")
@click.option("--private", is_flag=True, help="Create a new repository as private.")
def COMMAND(folder: Path, name: str, private: bool) -> None:
    """Upload the model in FOLDER to the Hugging Face Hub as NAME, which is user/name."""
    from headcount.checkpoints.push import push
    from headcount.cli import show

    with show.working(f"Uploading {folder}"):
        address = push(folder, name, private=private)
    click.echo(address)
