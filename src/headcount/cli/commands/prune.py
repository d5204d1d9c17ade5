"""headcount prune: cut heads out of a model and save the smaller one."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from headcount.cli import options


@click.command("prune")
@options.loading
@click.option("--remove", metavar="HEADS", help="Heads to remove: encoder.0.3,decoder.1.* (a star is any).")
@click.option("--keep", metavar="HEADS", help="Heads to keep instead; all others go.")
@click.option(
    "--out",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the smaller model and record.json.",
)
@click.option("--overwrite", is_flag=True, help="Replace a checkpoint that is in the folder.")
@click.option("--standalone", is_flag=True, help="Add code that loads the model without headcount.")
@click.option(
    "--verify/--no-verify", default=True, show_default=True, help="Compare masked and pruned model on a small batch."
)
@click.option(
    "--length",
    default=128,
    show_default=True,
    type=click.IntRange(1),
    help="Tokens of the example for FLOPs and cache.",
)
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    remove: str | None,
    keep: str | None,
    out: Path,
    overwrite: bool,
    standalone: bool,
    verify: bool,
    length: int,
    as_json: bool,
    **how: Any,
) -> None:
    """Remove heads from MODEL physically and save a smaller model that does the same as the masked one."""
    if (remove is None) == (keep is None):
        raise click.UsageError("Give either --remove or --keep, a list of heads such as encoder.0.3,encoder.1.*")
    from headcount.checkpoints.companions import copy_companions
    from headcount.checkpoints.save import check_target, save
    from headcount.cli import show
    from headcount.record import Record, Signature
    from headcount.sites.fingerprint import weight_hash
    from headcount.sites.locate import locate
    from headcount.surgery.cost import cost
    from headcount.surgery.remove import remove as cut

    check_target(out, overwrite)  # before the work, not after it
    live = options.load_model(model, **how)
    sites = locate(live)
    mask = sites.mask(off=_names(remove)) if remove is not None else sites.mask(keep=_names(keep))
    gone = [str(head) for head in sites.heads if not mask[head]]
    arguments = {"remove": remove, "keep": keep, "verify": verify}
    signature = Signature(
        model=model, weights=weight_hash(live), arguments={k: v for k, v in arguments.items() if v is not None}
    )
    before = cost(live, length=length)
    small = cut(live, mask, inplace=True, verify=verify)
    after = cost(small, length=length)
    save(small, out, standalone=standalone, overwrite=overwrite)
    copy_companions(model, out, revision=how.get("revision"))
    costs = {"before": asdict(before), "after": asdict(after)}
    record = Record("prune", signature, {"removed": gone, "cost": costs, "verified": verify})
    record.save(out / "record.json")
    if as_json:
        click.echo(record.to_json())
        return
    console = show.console()
    console.print(
        f"[bold]{model}[/]  {len(gone)} of {len(sites.heads)} heads removed" + (", verified" if verify else "")
    )
    console.print()
    console.print(show.cost_table(costs))
    console.print(f"\nSaved in {out}. In Python: hc.load({str(out)!r})")
    console.print(f"Next: headcount inspect {out}", style="dim", soft_wrap=True)


def _names(heads: str | None) -> list[str]:
    return [name.strip() for name in (heads or "").split(",") if name.strip()]
