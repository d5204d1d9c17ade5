"""Overview: the first screen of the page. Four questions of a newcomer, answered from the records of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from headcount.heads import Head
from headcount.plural import plural
from headcount.record.result import MeasuredOn, Quality
from headcount.record.results.ablate import Ablation
from headcount.record.results.attention import AttentionMap
from headcount.record.results.bench import Speed
from headcount.record.results.curves import Curves
from headcount.record.results.evaluate import Evaluation
from headcount.record.results.examples import Examples
from headcount.record.results.explore import Setup
from headcount.record.results.inspect import Inspection
from headcount.record.results.prune import Pruning
from headcount.record.results.prune_sweep import Sweep
from headcount.record.results.roles import Evidence, RolesFound
from headcount.record.results.tradeoff import Tradeoff
from headcount.report.figure import OUT_OF_SHAPE, short_names
from headcount.report.joined import is_importance
from headcount.report.measured import ends_of, leading
from headcount.report.points import pruned_heads
from headcount.report.sections.curves import limit, orders, unharmed, unharmed_text
from headcount.report.subject import Subject
from headcount.report.table import best_of, count, digits_for, listed, was
from headcount.report.terms import ROLE_WORDS
from headcount.statistics import ENOUGH_FOR_A_TAIL

_PARTIAL = (RolesFound, Examples, AttentionMap)  # may lack heads, as without targets those of a decoder
_MOST_DIGITS = 6  # after the point, to show a small change
_MOST_ERROR = 0.2  # of a change, by the rounding of the numbers that it is between
_NAMED_HEADS = 3  # most heads that an answer names


@dataclass(frozen=True)
class Tile:
    """A question with its answer, empty if nothing was measured; command: what measures it."""

    question: str
    answer: str
    command: str


def overview(subject: Subject, heads: Sequence[str]) -> tuple[Tile, ...]:
    """What the model is, which heads matter, what they do, and what can be removed at which cost."""
    questions: tuple[tuple[str, Callable[[Subject, Sequence[str]], str], str], ...] = (
        ("What is this model?", _model, "headcount inspect MODEL --out DIR"),
        ("Which heads matter?", _important, "headcount ablate MODEL --task TASK --data DATA --out DIR"),
        ("What do the heads do?", _roles, "headcount roles MODEL --data DATA --out DIR"),
        ("What can go, and what does it cost?", _removable, _PRUNE),
    )
    return tuple(Tile(question, _attempt(answer, subject, heads), command) for question, answer, command in questions)


def _attempt(answer: Callable[[Subject, Sequence[str]], str], subject: Subject, heads: Sequence[str]) -> str:
    try:
        return answer(subject, heads)
    except OUT_OF_SHAPE as error:
        return f"This cannot be answered from the record: {error!r}."


_PRUNE = "headcount prune MODEL --keep 50% --task TASK --data DATA --out DIR"


def _model(subject: Subject, heads: Sequence[str]) -> str:
    if not heads:
        return ""
    setup, inspection = subject.first(Setup), subject.first(Inspection)
    architecture = (setup and setup.architecture) or (inspection and inspection.architecture)
    article = "an" if architecture and architecture.startswith(tuple("AEIO")) else "a"
    kind = f" is {article} {architecture} with" if architecture else " has"
    answer = f"{subject.label}{kind} {plural(len(heads), 'attention head')}{_layers(heads)}."
    if not architecture and all(isinstance(record.parts, _PARTIAL) for record in subject.records):
        answer = f"{plural(len(heads), 'attention head')} of {subject.label} were looked at{_layers(heads)}."
    parameters = _parameters(subject)
    if parameters:
        answer += f" It has {count(parameters)} parameters."
    quality = _quality(subject)
    return f"{answer} {quality}" if quality else answer


def _layers(heads: Sequence[str]) -> str:
    """How the heads are spread over layers, by kind of attention where there are several."""
    layers: dict[str, set[int]] = {}
    sizes: Counter[str] = Counter()
    for head in map(Head.parse, heads):
        layers.setdefault(head.kind, set()).add(head.layer)
        sizes[head.kind] += 1
    spelled = {kind: "cross-attention" if kind == "cross" else kind for kind in layers}
    if len(layers) == 1:
        ((kind, numbers),) = layers.items()
        return f" in {plural(len(numbers), f'{spelled[kind]} layer')}"
    return ": " + listed(
        [f"{sizes[kind]} in {plural(len(numbers), f'{spelled[kind]} layer')}" for kind, numbers in layers.items()]
    )


def _parameters(subject: Subject) -> int | None:
    inspection, pruning = subject.first(Inspection), subject.first(Pruning)
    if inspection and inspection.cost:
        return inspection.cost.parameters
    return pruning.cost.before.parameters if pruning else None


def _quality(subject: Subject) -> str:
    """Quality of the whole model, by the metric of its heads' importance."""
    ablation, curves, evaluation = subject.first(Ablation), subject.first(Curves), subject.first(Evaluation)
    if ablation and ablation.distance:
        return f"How much a head matters is measured by {ablation.metric}: how far the output moves without it."
    measured = ablation or curves
    if measured:
        return f"With all heads, {measured.metric} is {_number(measured.value)}."
    if evaluation:
        quality = evaluation.quality
        return f"Its {quality.metric} is {_number(quality.value)}{_caveat(evaluation.measured_on)}."
    return ""


def _important(subject: Subject, _: Sequence[str]) -> str:
    ablation = subject.first(Ablation)
    if ablation and ablation.one_out:
        return _moved(ablation) if ablation.distance else _needed(ablation)
    scoring = next((record.parts for record in subject.of("score") if is_importance(record.parts)), None)
    if scoring is None:
        return ""
    if len(scoring.scores) < 2:
        return ""
    ends = [
        f"{listed(heads)} {'matter' if len(heads) > 1 else 'matters'} {degree}"
        for heads, degree in zip(ends_of(scoring.scores), ("most", "least"), strict=True)
        if heads
    ]
    ranking = listed(ends) if ends else "no head matters more or less than the others"
    return f"By the {scoring.method} score, an estimate, {ranking}."


def _moved(ablation: Ablation) -> str:
    """For a model without a loss: the change of its output without a head."""
    moves = {head: effect.difference for head, effect in ablation.one_out.items()}
    ranked = sorted(moves, key=lambda head: -moves[head])
    typical = sorted(moves.values())[len(moves) // 2]
    verb = "moves" if ablation.harms_most(ranked[0], ablation.one_out) else "seems to move"
    return (
        f"Without {ranked[0]} the output {verb} most: {ablation.metric} {moves[ranked[0]]:.2g}, for a typical head "
        f"{typical:.1g}."
        + (f" Then come {listed(ranked[1 : 1 + _NAMED_HEADS])}." if len(ranked) > _NAMED_HEADS else "")
    )


def _needed(ablation: Ablation) -> str:
    effects, metric = ablation.one_out, ablation.metric
    ranked = sorted(effects, key=lambda head: -ablation.harm(effects[head]))
    surely = [head for head in ranked if effects[head].corrected < ablation.alpha and ablation.harm(effects[head]) > 0]
    spare = [head for head in ranked if effects[head].corrected < ablation.alpha and ablation.harm(effects[head]) < 0]
    verb = "falls" if ablation.higher_is_better else "rises"
    named_heads = (surely or ranked)[:_NAMED_HEADS]
    if ablation.stopped_early:  # the change alone: it is of fewer examples than the metric of the whole model
        changes = (abs(effects[head].difference) for head in named_heads)
        _, *ends = _apart(0.0, *changes, scale=ablation.value)
        start, preposition = "", "by"
    else:
        value, *ends = _apart(ablation.value, *(effects[head].value for head in named_heads))
        start, preposition = f"from {value} ", "to"
    values = [
        f"without {head} {f'{metric} {verb} {start}' if index == 0 else ''}{preposition} {end}"
        for index, (head, end) in enumerate(zip(named_heads, ends, strict=True))
    ]
    undecided = len(effects) - len(surely) - len(spare)
    other_heads = "the other one" if undecided == 1 else f"any one of the other {undecided}"
    unsure = f" No change is certain for {other_heads}." if undecided else ""
    better = "is" if all(effects[head].examples >= ENOUGH_FOR_A_TAIL for head in spare) else "seems"
    extra = f" Without {listed(spare[:_NAMED_HEADS])} it {better} even better." if spare else ""
    if ablation.harm(effects[ranked[0]]) <= 0:
        return (
            f"No single head was needed on the examples measured: switching off any one of {len(effects)} did not harm "
            f"{metric} there.{extra}"
        )
    if not surely:
        leader, seems = leading(ablation.worst(effects))
        return (
            f"No single head is needed for certain: switching off any one of {len(effects)} harms {metric} too "
            f"little to be sure. {leader} {seems} to matter most: {values[0]}.{extra}"
        )
    most = " Most:" if _lead(ablation, surely) else " These seem to matter most:"
    named = most if len(surely) > _NAMED_HEADS else ""
    certain = f"{len(surely)} of {len(effects)} heads {'matters' if len(surely) == 1 else 'matter'} for certain"
    return f"{certain}{'.' if named else ':'}{named} {listed(values)}.{unsure}{extra}"


def _lead(ablation: Ablation, ranked: Sequence[str]) -> bool:
    """Whether each of the named heads harms more than all others for certain: the first of many alike do not."""
    effects = ablation.one_out
    remaining = {head: effects[head] for head in effects if head not in ranked[:_NAMED_HEADS]}
    return all(ablation.harms_most(head, {**remaining, head: effects[head]}) for head in ranked[:_NAMED_HEADS])


def _roles(subject: Subject, heads: Sequence[str]) -> str:
    parts = subject.first(RolesFound)
    if parts is None or not parts.roles:
        return ""
    looked_at = plural(len(parts.roles), "head") + (" that were looked at" if len(parts.roles) < len(heads) else "")
    counts = Counter(role for held in parts.roles.values() for role in {item.role for item in held})
    playing = sum(bool(held) for held in parts.roles.values())
    if not playing:
        return f"No role was found for any of the {looked_at}."
    jobs = [
        f"{number} {_job(role, parts.roles.values())[number > 1]} ({role})" for role, number in counts.most_common()
    ]
    verb = "has" if playing == 1 else "have"
    without_role = len(parts.roles) - playing
    tail = f" For the other {without_role} no simple description was found." if without_role else ""
    twice = " A head can do several things." if sum(counts.values()) > playing else ""
    return f"{playing} of {looked_at} {verb} a role that can be named: {listed(jobs)}.{twice}{tail}"


def _job(role: str, roles_of_heads: Iterable[Sequence[Evidence]]) -> tuple[str, str]:
    """What heads with a role do, to follow a number of heads: singular and plural."""
    offsets = {item.label for roles in roles_of_heads for item in roles if item.role == role == "positional"}
    if offsets and offsets <= {"-1", "+1"}:
        return "looks at a neighbouring token", "look at a neighbouring token"
    return ROLE_WORDS.get(role, ("with the role", "with the role"))


def _removable(subject: Subject, _: Sequence[str]) -> str:
    sentences = (_spared(subject), _smallest(subject), _swept(subject), _smaller_model(subject), _speed(subject))
    return " ".join(sentence for sentence in sentences if sentence)


def _spared(subject: Subject) -> str:
    curves = subject.first(Curves)
    if curves is None or not curves.num_heads:
        return ""
    lines = {order: points for order, (points, *_) in orders(curves).items() if order != "random"}
    shares = {order: unharmed(points, curves.higher_is_better) for order, points in lines.items()}
    if not shares:
        return ""
    order = max(shares, key=lambda name: shares[name])
    beyond = f"{curves.metric} {limit(lines[order])}"
    if not shares[order]:
        return f"When heads are masked step by step, {beyond} from the first step."
    number, share = round(shares[order] * curves.num_heads), unharmed_text(lines[order], curves.higher_is_better)
    return (
        f"{number} of {curves.num_heads} heads ({share}) can be switched off, the least important by "
        f"{order} first, before {beyond}{_caveat(curves.measured_on)}"
        f"{best_of(len(shares))}."
    )


def _smallest(subject: Subject) -> str:
    """The smallest model of a trade-off, by the way and seed that are best at its size."""
    tradeoffs: Sequence[Tradeoff] = [record.parts for record in subject.of("tradeoff")]
    if not tradeoffs:
        return ""
    parts = next((parts for parts in tradeoffs if parts.pruned == "heads of all kinds"), tradeoffs[0])
    points = [point for point in parts.points if point.way != "scratch"]
    if not points:
        return ""
    keep = min(point.keep for point in points)
    sign, smallest = 1 if parts.higher_is_better else -1, [point for point in points if point.keep == keep]
    best = max(smallest, key=lambda point: sign * point.after.value)
    trained = " and trained further" if best.steps else ""
    return (
        f"Pruned to {keep} of {parts.gated} {pruned_heads(parts)}{trained}, the smallest model measured has "
        f"{_instead(parts.whole, best.after)}{_caveat(parts.measured_on)}{best_of(len(smallest))}."
    )


def _swept(subject: Subject) -> str:
    """The smallest model of a sweep of an option."""
    parts = subject.first(Sweep)
    if parts is None or not parts.sweep:
        return ""
    point = min(parts.sweep.values(), key=lambda point: len(point.heads))
    total = f" of {len(parts.known_heads)}" if parts.known_heads else ""
    original, pruned = point.quality.before, point.quality.after or point.quality.cut
    quality = f" and {_instead(original, pruned)}{_caveat(parts.measured_on)}" if original and pruned else ""
    models = plural(len(parts.sweep), "model")
    return f"Of {models} pruned by {parts.method}, the smallest has {len(point.heads)}{total} heads{quality}."


def _smaller_model(subject: Subject) -> str:
    prunings: Sequence[Pruning] = [record.parts for record in subject.of("prune")]
    if not prunings:
        return ""
    parts = max(prunings, key=lambda pruning: len(pruning.removed_heads))
    before, after = parts.cost.before.parameters, parts.cost.after.parameters
    removed = f"{len(parts.removed_heads)} of {parts.num_heads} heads {was(len(parts.removed_heads))} removed"
    answer = f"{removed}: {1 - after / before:.0%} fewer parameters"
    original, pruned = parts.quality.before, parts.quality.after
    quality = f" and {_instead(original, pruned)}{_caveat(parts.measured_on)}" if original and pruned else ""
    return f"{answer}{quality}."


def _speed(subject: Subject) -> str:
    speed = subject.first(Speed)
    if speed is None or not speed.others:
        return ""
    rows = speed.smaller or speed.others
    best = max(rows, key=lambda row: (row.low > 1, row.faster))
    at_best = f"at best {best.faster:.2f} times as fast"
    if not speed.smaller:
        names = short_names(speed.models)
        return f"{names[best.model]} is {at_best} as {names[speed.reference]}{best_of(len(rows))}."
    if len({row.model for row in rows}) > 1:
        if not best.low > 1:
            return "None of the smaller models that were timed is faster for certain in any setting."
        name = short_names(speed.models)[best.model]
        return f"Of the smaller models that were timed, {name} is {at_best}{best_of(len(rows))}."
    if not best.low > 1:
        return "The smaller model that was timed is not faster for certain in any setting."
    return f"The smaller model that was timed is {at_best}{best_of(len(rows))}."


def _caveat(measured_on: MeasuredOn | None) -> str:
    return measured_on.caveat if measured_on else ""


def _instead(before: Quality, after: Quality) -> str:
    before_text, after_text = _apart(before.value, after.value)
    return f"{after.metric} {after_text} instead of {before_text}"


def _apart(start: float, *ends: float, scale: float | None = None) -> list[str]:
    """Numbers with as many digits as show how far the ends are from the start: 0.76 and 0.74 may be .755 and .745.

    scale: a number that has one digit less than in tables, as these have at least; by default the start.
    """
    changes = [end - start for end in ends]
    largest, fewest = max(map(abs, changes)), _digits(start if scale is None else scale)

    def error(digits: int) -> float:
        return max(abs(round(start + change, digits) - round(start, digits) - change) for change in changes)

    enough = (digits for digits in range(fewest, _MOST_DIGITS) if error(digits) <= _MOST_ERROR * largest)
    digits = next(enough, _MOST_DIGITS) if largest >= 10.0**-_MOST_DIGITS else fewest
    return [f"{number:.{digits}f}" for number in (start, *ends)]


def _number(value: float) -> str:
    return f"{value:.{_digits(value)}f}"


def _digits(value: float) -> int:
    """One digit less than in tables."""
    return max(1, digits_for(value) - 1)
