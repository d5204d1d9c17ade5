"""headcount study tradeoff: quality against the heads that are left, by learned pruning and its controls."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import click

from headcount.cli import data, options

DEFAULT = click.core.ParameterSource.DEFAULT

_WAYS = (
    "Ways of pruning, separated by commas: rank-SCORE, random, fisher, greedy, l0, subset, scratch. rank-SCORE and "
    "random are fine-tuned after; rank-SCORE/untuned is not, rank-SCORE+lstsq (+bias, +scale) is compensated instead. "
    "fisher and greedy do not train unless /tuned follows. /distilled: trained to predict what MODEL predicts, too. "
    "scratch: new weights under the heads of l0, or of the first way listed."
)


@click.command("tradeoff")
@options.loading
@data.tasked(split="dev", measured="test if not given")
@click.option(
    "--keep",
    required=True,
    help="Heads left: 12,8,3 or encoder=12,8,3; all of them: tuning alone.",
)
@click.option("--ways", default="l0,subset,rank-gradient,random", show_default=True, help=_WAYS)
@click.option("--seeds", default="0", show_default=True, help="One run for each: 0,1,2.")
@click.option("--against", default="rank-gradient", show_default=True, help="The way that others are compared with.")
@click.option("--steps", default=150, show_default=True, type=click.IntRange(1), help="Steps with gates.")
@click.option("--tune", default=1050, show_default=True, type=click.IntRange(0), help="Steps of fine-tuning after.")
@click.option(
    "--distill", metavar="SHARE", default=0.5, show_default=True, type=click.FloatRange(0, 1, min_open=True),
    help="Share of the loss that asks for what MODEL predicts, of ways with /distilled.",
)  # fmt: skip
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Learning rate of the weights (not of scratch).")
@click.option("--scratch-steps", default=2400, show_default=True, type=click.IntRange(1), help="From random weights.")
@click.option("--train-limit", type=click.IntRange(1), help="Train on so many texts at most.")
@click.option("--choose-limit", default=300, show_default=True, type=click.IntRange(1), help="Texts to score heads on.")
@click.option(
    "--roles/--no-roles",
    default=True,
    show_default=True,
    help="Look at what the heads that are left do, in the whole model and without the others.",
)
@click.option(
    "--trees", help="Sentences to look at: a treebank (.conllu) or a text file; those of --data if not given."
)
@options.shared_output
@options.as_json
def COMMAND(  # noqa: N802
    model: str,
    how: options.Loading,
    work: data.TaskText,
    keep: str,
    ways: str,
    seeds: str,
    against: str,
    train_limit: int | None,
    choose_limit: int,
    roles: bool,
    trees: str | None,
    output: options.Output,
    as_json: bool,
    **course: Any,
) -> None:
    """Prune MODEL to several sizes by several methods with the same training each (Voita et al. 2019, section 6)."""
    from headcount.cli import show
    from headcount.methods.course import Course
    from headcount.studies.tradeoff import Data, Plan, tradeoff

    kind, _, numbers = keep.rpartition("=")
    own = {name: course.pop(name) for name in ("scratch_steps", "distill")}
    if "/distilled" not in ways:
        options.refuse(["distill"], "is for ways with /distilled, and --ways has none")
    try:
        counts = tuple(int(part) for part in numbers.split(","))
        chosen = tuple(int(part) for part in seeds.split(","))
    except ValueError as error:
        raise click.UsageError(f"--keep and --seeds are whole numbers such as 12,8,3; got {keep}, {seeds}.") from error
    names = tuple(part.strip() for part in ways.split(",") if part.strip())
    if against not in names and click.get_current_context().get_parameter_source("against") is not DEFAULT:
        raise click.UsageError(f"--against {against} is none of --ways: {', '.join(names)}.")
    plan = Plan(counts, names, (kind,) if kind else None, chosen, Course(**course), against=against, **own)
    with show.working(f"Loading {model}"):
        looking, unlooked = _looking(model, how, replace(work, limit=choose_limit), roles, trees)
        measure = work.elsewhere(None, work.measured or "test").build(model, how)
        choose = replace(work, limit=choose_limit).build(model, how)
        train = replace(work, split="train", limit=train_limit).build(model, how)
        live = how.load(model, task=work.task)
    told: dict[str, Any] = {"looking": looking, "unlooked": unlooked, "folder": output.unfinished}
    with show.Bars() as bars:
        record = tradeoff(live, Data(train, choose, measure), plan, name=model, progress=bars.show, **told)
    fewest = f"{kind}={min(counts)}" if kind else str(min(counts))
    again = f"--method l0 --keep {fewest} {work.as_options()} --out DIR"
    if not record.parts["missing"]:
        output.present(record, as_json, f"headcount prune {shlex.quote(model)} {again}")
        return
    console = show.console()  # the process that measures the last point writes the record
    if as_json:
        show.json(console, record)
        return
    show.result(console, record, whole=output.whole)
    show.line(console, f"{record.parts['missing']} points are under way in other processes.")


def _looking(model: str, how: options.Loading, work: data.TaskText, roles: bool, trees: str | None) -> tuple[Any, str]:
    """What roles are looked for on; None with the reason where they are not."""
    if not roles:
        if trees:
            raise click.UsageError("--trees is for roles, and --no-roles was given.")
        return None, "not asked for (--no-roles)"
    from headcount.corpora.frequencies import counted
    from headcount.studies.kept import Looking

    tokenizer, frequencies = how.tokenizer(model), None
    if work.task == "translation":
        texts = work.text.read()["train"]["source"]
        frequencies = counted(texts, tokenizer, source=f"{work.text.data} train")
    sentences = work.sentences(trees)
    return Looking(sentences, tokenizer, frequencies), ""
