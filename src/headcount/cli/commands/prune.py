"""headcount prune: cut heads out of a model and save the smaller one."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from headcount.cli import options

_LOADED_BY = {
    "stock": "A plain checkpoint: any transformers loads it.",
    "standalone": "from_pretrained({out!r}, trust_remote_code=True) loads it, or hc.load({out!r}).",
    "headcount": "Its layers differ, so stock code refuses it; in Python: hc.load({out!r}).",
}


@click.command("prune")
@options.loading
@click.option("--remove", metavar="HEADS", help="Heads to remove: encoder.0.3,decoder.1.* (a star is any).")
@click.option("--keep", metavar="HEADS", help="Heads to keep instead; all others go.")
@click.option("--out", required=True, type=options.FOLDER, help="Folder for the smaller model and record.json.")
@click.option("--overwrite", is_flag=True, help="Replace a checkpoint that is in the folder.")
@click.option("--standalone", is_flag=True, help="Add code that loads the model without headcount.")
@click.option("--verify/--no-verify", default=True, show_default=True, help="Compare masked and pruned model.")
@options.length
@options.as_json
def COMMAND(  # noqa: N802
    model: str, remove: str | None, keep: str | None, out: Path, as_json: bool, how: options.Loading, **work: Any
) -> None:
    """Remove heads from MODEL physically and save a smaller model that does the same as the masked one."""
    if (remove is None) == (keep is None) or not _names(remove or keep):
        raise click.UsageError("Give either --remove or --keep, a list of heads such as encoder.0.3,encoder.1.*")
    from headcount.checkpoints.save import check_target
    from headcount.cli import show
    from headcount.methods.given import prune_given
    from headcount.sites.locate import locate

    check_target(out, work["overwrite"])  # a wrong folder is said before a large model is loaded
    with show.working(f"Loading {model}"):
        live = how.load(model)
    sites = locate(live)
    mask = sites.mask(off=_names(remove)) if remove is not None else sites.mask(keep=_names(keep))
    said = {"remove": remove} if remove is not None else {"keep": keep}
    with show.working("Removing heads"):
        record = prune_given(live, mask, out, source=model, revision=how.revision, arguments=said, **work)
    if as_json:
        click.echo(record.to_json())
    else:
        _show(model, out, record.parts)


def _show(name: str, out: Path, parts: dict[str, Any]) -> None:
    from headcount.cli import show

    console = show.console()
    verified = ", verified" if parts["verified"] else ""
    show.title(console, name, f"{len(parts['removed'])} of {parts['heads']} heads removed{verified}")
    console.print(show.cost_table(parts["cost"]))
    show.line(console, f"\nSaved in {out}. {_LOADED_BY[parts['loaded_by']].format(out=str(out))}")
    show.line(console, f"Next: headcount inspect {shlex.quote(str(out))}", dim=True)


def _names(heads: str | None) -> list[str]:
    return [name.strip() for name in (heads or "").split(",") if name.strip()]
