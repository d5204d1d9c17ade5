"""Tables and maps for the terminal. Knows numbers of records, never a live model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from headcount.cli.headmap import HeadMap, colour
from headcount.report.fitted import FittedTable


def epoch_table(epochs: list[Mapping[str, Any]]) -> FittedTable:
    """What was measured after each epoch."""
    table = FittedTable()
    names = [name for name in epochs[0] if name not in ("epoch", "step")]
    for column in ("epoch", "step", *(name.replace("_", " ") for name in names)):
        table.add_column(column, justify="right", no_wrap=True)
    for epoch in epochs:
        table.add_row(str(epoch["epoch"]), str(epoch["step"]), *(f"{epoch[name]:.4g}" for name in names))
    return table


def head_map(heads: list[int], total: int, kind: str) -> Text:
    """One sign per original head: there (#) or removed (.)."""
    text = Text()
    for head in range(total):
        there = head in heads
        text.append("\u25a0" if there else "\u00b7", style=colour(kind) if there else "dim")
    return text


def number(value: float) -> str:
    """1234567 -> 1.23M, with three significant digits."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def site_table(sites: list[Mapping[str, Any]]) -> FittedTable:
    """One row per site."""
    table = FittedTable()
    table.add_column("site", no_wrap=True)
    table.add_column("heads", justify="right", no_wrap=True)
    table.add_column("map", min_width=8)
    for column in ("size", "k/v", "params/head"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("removable", no_wrap=True)
    for site in sites:
        count = str(len(site["heads"])) if len(site["heads"]) == site["of"] else f"{len(site['heads'])}/{site['of']}"
        sizes = (str(site["head_dim"]), str(site["kv_heads"]), number(site["parameters_per_head"]))
        heads = head_map(site["heads"], site["of"], site["kind"])
        table.add_row(Text(site["site"], style=colour(site["kind"])), count, heads, *sizes, _removable(site))
    return table


def _removable(site: Mapping[str, Any]) -> Text:
    if site["obstacle"]:
        return Text("masked only", style="red")
    return Text("yes", style="green") if site["heads"] else Text("empty", style="dim")


def head_table(values: Mapping[str, float]) -> HeadMap:
    """One row per site, one column per head; the largest values stand out."""
    return HeadMap(values)


def effect_table(effects: Mapping[str, Mapping[str, float]], alpha: float) -> HeadMap:
    """One row per site, one column per head: the change without it, a star where it is significant."""
    differences = {name: effect["difference"] for name, effect in effects.items()}
    significant = [name for name, effect in effects.items() if effect["corrected"] < alpha]
    return HeadMap(differences, signed=True, starred=significant)


def alone_table(parts: Mapping[str, Any]) -> FittedTable:
    """The best head of each site alone: chosen on the same data, and on other data where there is any."""
    table = FittedTable(keys=2)
    columns = {
        "all_but_one": "same data",
        "all_but_one_chosen_elsewhere": "chosen on the first, measured on the second",
    }
    for column in ("site", "head", *(said for name, said in columns.items() if name in parts)):
        table.add_column(column, justify="left" if column == "site" else "right")
    for site, effect in parts["all_but_one"].items():
        cells = [
            f"{parts[name][site]['difference']:+.2f}{'*' if parts[name][site]['corrected'] < parts['alpha'] else ' '}"
            for name in columns
            if name in parts
        ]
        table.add_row(Text(site, style=colour(site.rpartition(".")[0])), effect["head"].rpartition(".")[2], *cells)
    return table


def curve_table(parts: Mapping[str, Any]) -> FittedTable:
    """Quality after each step of pruning."""
    table = FittedTable()
    kinds = list(parts["curve"][0]["kept"])
    for column in ("removed", parts["metric"], "95% interval", *(f"{kind} left" for kind in kinds)):
        table.add_column(column, justify="right", no_wrap=True)
    for point in parts["curve"]:
        removed = f"{point['removed']} ({100 * point['share']:.0f}%)"
        interval = f"{point['low']:.2f} - {point['high']:.2f}"
        table.add_row(removed, f"{point['value']:.2f}", interval, *(str(point["kept"][kind]) for kind in kinds))
    return table


def curves_table(parts: Mapping[str, Any], step: float) -> FittedTable:
    """One column per order or kind, one row per step of so large a share of heads; random orders as their mean."""
    columns: dict[str, list[list[Mapping[str, Any]]]] = {}
    for line in parts["curves"]:
        columns.setdefault(line["order"], []).append(line["points"])
    columns |= {f"{line['kinds'][0]} only": [line["points"]] for line in parts.get("by_kind", ())}
    table = FittedTable()
    table.add_column("pruned", justify="right", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    every = [_mean_by_share(lines, step) for lines in columns.values()]
    for share in sorted({share for found in every for share in found}, key=int):
        table.add_row(f"{share}%", *(f"{found[share]:.2f}" if share in found else "" for found in every))
    return table


def _mean_by_share(lines: list[list[Mapping[str, Any]]], step: float) -> dict[str, float]:
    """The mean over several curves of the values at each share, named in percent, rounded to whole steps."""
    values: dict[str, list[float]] = {}
    for points in lines:
        for point in points:
            values.setdefault(f"{100 * step * round(point['share'] / step):.0f}", []).append(point["value"])
    return {share: sum(some) / len(some) for share, some in values.items()}


def dynamics_table(parts: Mapping[str, Any]) -> FittedTable:
    """One row per epoch, one column per share of heads gone."""
    table = FittedTable()
    for column in (
        "epoch",
        parts["metric"],
        *(f"{100 * point['share']:.0f}%" for point in parts["epochs"][0]["points"][1:]),
    ):
        table.add_column(column, justify="right", no_wrap=True)
    for line in parts["epochs"]:
        kept = ["-" if p["kept_share"] is None else f"{100 * p['kept_share']:.0f}" for p in line["points"][1:]]
        table.add_row(str(line["epoch"]), f"{line['value']:.2f}", *kept)
    return table


def speed_table(parts: Mapping[str, Any]) -> FittedTable:
    """One row per model and setting, with how much faster than the first model it is."""
    table = FittedTable()
    table.add_column("model")
    for column in ("", "length", "batch", "a second", "ms", "times as fast", "95% interval"):
        table.add_column(column, justify="right", no_wrap=True)
    base = parts["rows"][0]["model"]
    for row in parts["rows"]:
        compared: tuple[Text | str, str] = ("", "")
        if row["model"] != base:
            sure = "green" if row["low"] > 1 else "red" if row["high"] < 1 else ""
            compared = (Text(f"{row['faster']:.2f}", style=sure), f"{row['low']:.2f} - {row['high']:.2f}")
        numbers = (str(row["length"]), str(row["batch"]), number(row["per_second"]), f"{1000 * row['seconds']:.1f}")
        table.add_row(row["model"].rstrip("/").rpartition("/")[2], row["what"], *numbers, *compared)
    return table


def size_table(models: Mapping[str, Mapping[str, Any]]) -> FittedTable:
    """What models weigh, and what they hold in memory while writing."""
    table = FittedTable()
    table.add_column("\nmodel")
    for column in ("heads", "parameters", "weights", "k/v cache", "FLOPs"):
        table.add_column(f"\n{column}", justify="right", no_wrap=True)
    for name, size in models.items():
        flops = number(size["flops"]) if size["flops"] else "-"
        cells = (
            number(size["parameters"]),
            f"{number(size['weight_bytes'])}B",
            f"{number(size['cache_bytes'])}B",
            flops,
        )
        table.add_row(name.rstrip("/").rpartition("/")[2], str(size["heads"]), *cells)
    return table


def number_table(first: str, rows: Mapping[str, Mapping[str, float | None]], *, digits: str = ".2f") -> FittedTable:
    """One row per name, one column per number."""
    table = FittedTable()
    table.add_column(first)
    columns = list(next(iter(rows.values()), {}))
    for column in columns:
        table.add_column(Text(column, style=colour(column)), justify="right", no_wrap=True)
    for name, numbers in rows.items():
        table.add_row(name, *("-" if numbers[c] is None else format(numbers[c], digits) for c in columns))
    return table


def compensation_table(found: Mapping[str, Any]) -> FittedTable:
    """How well each site makes up for the heads it lost: shares of the full site's variance, on held-out rows."""
    table = FittedTable()
    table.add_column(f"{found['how']}, {found['rows']} tokens", no_wrap=True)
    for column in ("rho", "explained without", "explained"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, site in found["sites"].items():
        strength = "" if site["rho"] is None else f"{float(site['rho']):.3g}"
        table.add_row(name, strength, *(f"{float(site[key]):.3f}" for key in ("explained_without", "explained")))
    if "quality" in found:
        quality = found["quality"]
        interval = f"95% {quality['low']:.2f} - {quality['high']:.2f}"
        table.caption = f"{quality['metric']} with compensation: {quality['value']:.2f} ({interval})"
        table.caption_justify = "left"
    return table


def tradeoff_table(parts: Mapping[str, Any]) -> FittedTable:
    """One row for each way and number of heads: seconds of a run, what is lost, and against another way."""
    table = FittedTable(keys=2)
    spent: dict[tuple[str, int], list[float]] = {}
    for point in parts["tradeoff"]:
        if point.get("seconds"):
            spent.setdefault((point["way"], point["keep"]), []).append(point["seconds"]["total"])
    table.add_column("left", justify="right", no_wrap=True)
    table.add_column("way")
    shown = {"lost": "all heads", "lost_tuned": "all, tuned", "against": parts["against"]}
    shown = {name: said for name, said in shown.items() if any(name in row for row in parts["compared"])}
    between = "\n" if len(shown) > 2 else " "  # for a terminal of 80 columns
    for column in ("runs", "s", *(f"against\n{said}{between}(95%)" for said in shown.values())):
        table.add_column(column, justify="right", no_wrap=True)
    for row in parts["compared"]:
        cells = []
        for name in shown:
            found = row.get(name)
            cells.append(
                f"{found['difference']:+.2f}{between}({found['low']:+.2f} {found['high']:+.2f})" if found else ""
            )
        some = spent.get((row["way"], row["keep"]))
        seconds = sum(some) / len(some) if some else None
        said = "" if seconds is None else f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}"
        table.add_row(str(row["keep"]), row["way"], str(len(row["seeds"])), said, *cells)
    return table


def all_kinds_table(parts: Mapping[str, Any]) -> FittedTable:
    """One row per model by the heads of each kind: from the trained model, and from scratch with the same heads."""
    table = FittedTable(keys=2)
    shown = [name for name in ("trained", "scratch") if any(row[name] for row in parts["all_kinds"])]
    several = len({row["seed"] for row in parts["all_kinds"]}) > 1
    first = ("/".join(parts["of"]), "way", *(["seed"] if several else []))
    for column in (*first, *(f"from {name} (95%)" for name in shown)):
        table.add_column(f"\n{column}", justify="left" if column == "way" else "right", no_wrap=True)
    for row in parts["all_kinds"]:
        found = [row[name] for name in shown]
        cells = [f"{one['value']:.2f} ({one['low']:.2f} {one['high']:.2f})" if one else "" for one in found]
        seed = [str(row["seed"])] if several else []
        table.add_row("/".join(str(row["kept"].get(kind, 0)) for kind in parts["of"]), row["way"], *seed, *cells)
    return table


def drift_table(rows: Sequence[Mapping[str, Any]]) -> FittedTable:
    """What the heads that are left do: roles in the whole model and now, how many heads have others, what is left."""
    table = FittedTable(keys=2)
    table.add_column("\nleft", justify="right", no_wrap=True)
    table.add_column("\nway")
    table.add_column("\nroles in the whole model \u2192 now")
    for column in ("heads with\nothers", "functions\nleft"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        roles = ", ".join(f"{role} {n['whole']} \u2192 {n['left']}" for role, n in row["roles"].items())
        functions = f"{row['functions']['left']} of {row['functions']['whole']}"
        table.add_row(str(row["heads"]), row["way"], roles or "-", str(row["heads"] - row["same"]), functions)
    return table


def sweep_table(points: Mapping[str, Mapping[str, Any]]) -> FittedTable:
    """One row for each factor of the penalty: the heads it leaves and the quality."""
    table = FittedTable()
    kinds = list(next(iter(points.values()))["kept"]) if points else []
    for column in ("lambda", *(f"{kind} left" for kind in kinds), "settled", "cut", "after", "95% interval"):
        table.add_column(column, justify="right", no_wrap=True)
    for penalty, point in points.items():
        cut, after = point["quality"]["cut"], point["quality"]["after"]
        cells = ("", "", "")
        if after:
            cells = (f"{cut['value']:.2f}", f"{after['value']:.2f}", f"{after['low']:.2f} - {after['high']:.2f}")
        counts = [str(point["kept"][kind]) for kind in kinds]
        table.add_row(penalty, *counts, f"{100 * point['settled']:.0f}%", *cells)
    return table


def cost_table(costs: Mapping[str, Mapping[str, Any]]) -> FittedTable:
    """One column per model; with two, the change between them."""
    table = FittedTable()
    table.add_column("", no_wrap=True)
    for name in costs:
        table.add_column(name, justify="right", no_wrap=True)
    if len(costs) == 2:
        table.add_column("change", justify="right", no_wrap=True)
    first = next(iter(costs.values()))
    rows = {"parameters": "parameters", "flops": f"FLOPs ({first['length']} tokens)", "cache_bytes": "k/v cache bytes"}
    for key, label in rows.items():
        _cost_row(table, label, [cost[key] for cost in costs.values()])
    for kind in first["kinds"]:
        for key, label in (("heads", "heads"), ("parameters", "parameters"), ("flops", "FLOPs")):
            _cost_row(
                table,
                Text(f"{kind} {label}", style=colour(kind)),
                [cost["kinds"][kind][key] for cost in costs.values()],
            )
    return table


def _cost_row(table: FittedTable, label: str | Text, values: list[float | None]) -> None:
    cells = ["unknown" if value is None else number(value) for value in values]
    if len(values) == 2:
        first, second = values
        cells.append(f"{100 * (second / first - 1):+.1f}%" if first and second is not None else "")
    table.add_row(label, *cells)


def attention_table(queries: Sequence[str], keys: Sequence[str], weights: Sequence[Sequence[float]]) -> FittedTable:
    """One row per query, one shade per key, and the key that is looked at most."""
    table = FittedTable(keys=2, gaps=(0,))
    table.add_column("", justify="right", min_width=14)
    table.add_column("")
    for number_of_key in range(len(keys)):
        table.add_column("\n".join(str(number_of_key)), no_wrap=True)
    table.add_column("  most", no_wrap=True)
    for number_of_query, (query, row) in enumerate(zip(queries, weights, strict=True)):
        top = max(range(len(row)), key=row.__getitem__)
        most = Text(f"  {row[top]:.2f} {keys[top]}", style="dim")
        table.add_row(query, f" {number_of_query:>2}  ", *(Text(*_shade(weight)) for weight in row), most)
    return table


def _shade(weight: float) -> tuple[str, str]:
    """Two columns of the terminal for one attention weight, with their style."""
    signs = " \u00b7\u2591\u2592\u2593\u2588"
    step = next((number for number, most in enumerate((0.02, 0.06, 0.15, 0.3, 0.6)) if weight < most), 5)
    return signs[step] * 2, "magenta" if step > 2 else ""
