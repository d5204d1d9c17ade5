"""Options are written once: keywords, ranges, the command line and text forms all come from the fields."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise
from typing import Any

import click
import pytest
from click.testing import CliRunner

import headcount as hc
from headcount.cli.commands.prune import COMMAND
from headcount.cli.main import main
from headcount.errors import UnknownName, UsageError
from headcount.probes.gated import VARIANTS
from headcount.pruning.pipeline import Pipeline, chooser_names, chooser_of, choosers
from headcount.pruning.tuning import Tuning


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("greedy", {"candidates": 0}, "candidates must be a whole number, 1 or more; got 0"),
        ("gradient", {"step": 0.0}, "step must be a share, above 0 and at most 1; got 0"),
        ("greedy", {"candidates": 2.5}, "candidates must be a whole number, 1 or more; got 2.5"),
        ("gradient", {"step": "10%"}, "step must be a share, above 0 and at most 1; got '10%'"),
        ("gradient", {"recompute": 1}, "recompute must be True or False; got 1"),
        ("l0", {"variant": "papr"}, "Did you mean 'paper'"),
        ("fisher", {"recompute": True}, "Unknown option of fisher 'recompute'"),
        ("gradeint", {}, "Did you mean 'gradient'"),
    ],
)
def test_values_out_of_range_and_options_of_others_are_refused(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        chooser_of(name, options)


def test_every_option_of_every_chooser_is_on_the_command_line_with_its_help() -> None:
    shown = " ".join(CliRunner().invoke(main, ["prune", "--help"]).output.split())
    flags = {flag: option for option in COMMAND.params if isinstance(option, click.Option) for flag in option.opts}
    for stage in (Tuning, *(member for _, member in choosers.items())):
        for name, flag in stage.flags().items():
            assert flags[flag].help == stage.limits()[name].help
            assert stage.limits()[name].help.split(",")[0] in shown
    assert shown.index("Which heads go:") < shown.index("With --choose l0:") < shown.index("--penalty")


def test_no_option_of_a_chooser_has_the_name_of_a_setting_of_the_pipeline() -> None:
    """In the arguments of a record and the settings of a folder, one would overwrite the other."""
    options = {"given": {"keep": ("encoder.0.0",)}, "l0": {"penalty": 0.1}}
    settings = {"choose", "shape", "seed", "length", *(field.name for field in fields(Pipeline))}
    for name, member in choosers.items():
        chooser = member(**options.get(name, {}))
        assert not settings & set(chooser.to_plain())
        plain = Pipeline(chooser, None if name in options else hc.Budget(heads=1)).to_plain()
        assert plain | chooser.to_plain() == plain


def test_every_group_of_the_help_fits_on_a_screen() -> None:
    lines = CliRunner().invoke(main, ["prune", "--help"], terminal_width=80).output.splitlines()
    headings = [number for number, line in enumerate(lines) if line.endswith(":") and not line.startswith(" ")]
    assert len(headings) > 10
    assert max(end - start for start, end in pairwise([*headings, len(lines)])) <= 24


def test_variants_of_gates_are_those_that_there_are() -> None:
    assert set(choosers["l0"].limits()["variant"].choices) == set(VARIANTS)


@pytest.mark.parametrize("name", chooser_names())
def test_a_pipeline_is_written_as_the_arguments_that_make_it(name: str) -> None:
    """Typed on the command line, its arguments give the same pipeline again."""
    from headcount.cli.commands.prune import _Job

    chooser = chooser_of(name)
    tuning = Tuning(steps=7, distill=0.25, rate=1e-3)
    shape = hc.Shape(groups="even", multiple=2, at_least_first=1)
    pipeline = Pipeline(chooser, hc.Budget(share=0.5), ("encoder",), tuning=tuning, seed=3, shape=shape)
    data = ["--task", "classification", "--data", "folder", "--out", "small"]
    with COMMAND.make_context("prune", ["MODEL", *pipeline.to_arguments(), *data]) as context:
        values = {parameter.name: context.params.get(parameter.name) for parameter in COMMAND.params}
        assert _Job("MODEL", None, None, {**values, "work": object()}).pipelines() == {"": pipeline}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"choose": "greedy"}, "greedy"),
        ({"choose": "greedy", "compensate": "scale", "tune": hc.Tuning(steps=3)}, "greedy+scale/tuned"),
        ({"choose": "gradient", "compensate": "lstsq", "tune": hc.Tuning(3, 0.5)}, "rank-gradient+lstsq/distilled"),
        ({"choose": "l0"}, "l0"),
        ({"choose": "gradient"}, "rank-gradient/untuned"),
        ({"choose": "gradient", "tune": hc.Tuning(3, tuner="scratch")}, "rank-gradient/scratch"),
        ({"choose": "rank-fisher"}, "rank-fisher/untuned"),
    ],
)
def test_a_pipeline_has_a_name(options: dict[str, Any], name: str) -> None:
    chooser = chooser_of(options["choose"])
    pipeline = Pipeline(
        chooser, hc.Budget(heads=1), compensate=options.get("compensate", ""), tuning=options.get("tune")
    )
    assert pipeline.name == name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chooser": "l0", "compensate": "lstsq"}, "trains the weights"),
        (
            {"chooser": "gradient", "compensate": "lstsq", "tuning": Tuning(tuner="scratch")},
            "starts from random weights",
        ),
        ({"chooser": "greedy", "tuning": Tuning(tuner="scratch")}, "--compensate none"),
        ({"chooser": "gradient", "compensate": "glue"}, "Unknown compensation 'glue'"),
    ],
)
def test_combinations_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Pipeline(**{**settings, "chooser": chooser_of(settings["chooser"])}, keep=hc.Budget(heads=1))


def test_wrong_options_are_refused_before_the_model_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headcount.checkpoints.loading.Loading.load", lambda *_, **__: pytest.fail("loaded"))
    data = ["--task", "classification", "--data", "/no/such/folder", "--out", "small", "--keep", "5"]
    for arguments, message in (
        (["--choose", "fisher", "--group", "3"], "--group is not an option of --choose fisher"),
        (["--choose", "gradient", "--hot", "3"], "--hot is not an option of --choose gradient"),
        (["--choose", "gradient", "--rate", "0.1"], "--rate is for training: give --tune STEPS too"),
        (["--choose", "l0", "--compensate", "lstsq"], "l0 trains the weights"),
        (["--choose", "l0", "--penalty", "1"], "either a budget"),
    ):
        done = CliRunner().invoke(main, ["prune", "/no/such/model", *data, *arguments])
        assert done.exit_code == 2, done.output
        assert message in " ".join(done.output.split())


def test_a_tuner_that_there_is_not() -> None:
    with pytest.raises(UnknownName, match="scratch, weights"):
        Tuning(tuner="magic")
