"""Whole studies: every experiment of a paper on one model, part by part, in one combined record.

A finished part is kept in the folder and not run again; the same command goes on where it was interrupted.
DIR/settings.json    what decides the numbers; a folder goes on only with the settings it was begun with
DIR/subject.json     and only on the weights, and the texts to choose and measure on, it was begun with
DIR/parts/NAME.json  the record of each part
DIR/record.json      all of them
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from headcount import journal
from headcount.errors import FolderError, HeadcountError, UnknownName, UsageError
from headcount.record import Record, Signature
from headcount.record.results.combined import Combined
from headcount.studies.source import Loading, ParallelText, TaskText

Progress = Callable[[str, int, int], None]  # part, done, of


@dataclass(frozen=True)
class Settings:
    """Every setting of a whole study; a TOML file may give any of them."""

    model: str
    data: str
    task: str = "translation"
    languages: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    text: str | None = None  # columns of labelled text
    label: str | None = None
    pair: str | None = None
    lowercase: bool = False
    choose_on: str = "dev"  # split that scores and masks come from
    measure_on: str = "test"  # split that quality is measured on
    other: str = ""  # a second split, for the question whether the same heads matter there; none if empty
    metric: str = ""  # the task's usual one if empty
    sentences: int = 0  # of each split at most; 0: all
    learned: int = (
        0  # sentences of the training data that the trade-off learns on and frequencies are counted in; 0: all
    )
    batch_size: int = 16
    max_length: int = 256
    followed: int = 200  # sentences that relevance is measured on: each of their predictions is followed back
    trees: str = (
        ""  # treebank for the roles (.conllu); the data itself if empty, which has trees where it is the grammar
    )
    orders: tuple[str, ...] = ("gradient", "ablation")
    random: int = 5  # random orders as control
    step: float = 0.1  # share of the heads that go at a time
    epochs: tuple[int, ...] = ()  # of the training run in the model's folder; all if empty
    batches: tuple[int, ...] = (1, 4, 16, 64)
    lengths: tuple[int, ...] = (32, 128)
    repeats: int = 7
    keep: tuple[int, ...] = ()  # heads left in the trade-off; a half, a third and an eighth if empty
    kinds: tuple[str, ...] = ("encoder",)  # that the trade-off prunes, where the model has them; all otherwise
    ways: tuple[str, ...] = ("l0", "rank-gradient", "random")  # of pruning, in the trade-off
    seeds: tuple[int, ...] = (0,)  # of the trade-off
    gate_steps: int = 150  # with gates
    tune_steps: int = 450  # of fine-tuning after; fewer than one model gets, as there are many
    all_kinds_keep: tuple[int, ...] = ()  # heads left where all kinds are pruned; a half and a third if empty
    all_kinds_ways: tuple[str, ...] = ("l0", "scratch")  # of pruning all kinds; not done if empty
    scratch_steps: int = 2400  # of models trained from random weights

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Settings:
        """Settings from a TOML file or a command line; names that are none are an error."""
        known = cls.__dataclass_fields__
        for name in given:
            if name not in known:
                raise UnknownName("setting", name, known)
        missing = [name for name in ("model", "data") if not given.get(name)]
        if missing:
            raise UsageError(f"A study needs a {missing[0]}: give --{missing[0]}, or {missing[0]} = ... in the file.")
        lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list | tuple)}
        return cls(**{**given, **lists})

    def to_toml(self) -> str:
        """All settings as a TOML file; what is not set is left out."""
        plain = {name: value for name, value in asdict(self).items() if value is not None}
        return "".join(f"{name} = {json.dumps(value)}\n" for name, value in plain.items())


@dataclass(frozen=True)
class Subject:
    """The model and data of a study, loaded when first asked for."""

    settings: Settings
    how: Loading
    folder: Path  # for unfinished work
    progress: Progress
    done: dict[str, Record] = field(default_factory=dict)  # parts that are finished
    missing: dict[str, str] = field(default_factory=dict)  # parts that cannot be, and why

    @cached_property
    def model(self) -> Any:
        return self.how.load(self.settings.model, task=self.settings.task)

    @cached_property
    def sites(self) -> Any:
        from headcount.sites.locate import locate

        return locate(self.model)

    def work(self, split: str, *, most: int | None = None) -> TaskText:
        """The task on a split; most: sentences of it, as many as the settings say if not given, 0 is all."""
        own = self.settings
        limit = (own.sentences if most is None else most) or None
        text = ParallelText(own.data, own.languages or None, own.columns or None, 250)
        fields = {"text": own.text, "label": own.label, "pair": own.pair}
        measured = {"beams": 1, "lowercase": own.lowercase, **({"metric": own.metric} if own.metric else {})}
        return TaskText(own.task, text, split, limit, own.batch_size, own.max_length, fields, measured)

    def task(self, split: str, *, most: int | None = None) -> Any:
        return self.work(split, most=most).build(self.settings.model, self.how)

    @cached_property
    def choosing(self) -> Any:
        return self.task(self.settings.choose_on)

    @cached_property
    def measuring(self) -> Any:
        return self.task(self.settings.measure_on)

    def fingerprints(self) -> dict[str, str]:
        """What the numbers depend on that the settings only name."""
        from headcount.sites.fingerprint import weight_hash

        texts = {"choosing": self.choosing.fingerprint, "measuring": self.measuring.fingerprint}
        if self.settings.other:
            texts["other"] = self.task(self.settings.other).fingerprint
        return {"weights": weight_hash(self.model), **texts}

    @cached_property
    def sentences(self) -> Any:
        """What roles are looked for on: what is read on the split that heads are chosen on, or a treebank."""
        return self.work(self.settings.choose_on).sentences(self.settings.trees or None)

    @cached_property
    def frequencies(self) -> Any:
        """Of tokens in the training data; None where those are not the model's, or there are none."""
        from headcount.corpora.frequencies import counted

        own = self.settings
        if own.task != "translation" or own.trees:
            return None
        splits = self.work("train").text.read().splits
        if "train" not in splits:
            return None
        texts = splits["train"]["source"][: own.learned or None]
        return counted(texts, self.how.tokenizer(own.model), source=f"{own.data} train")


Part = Callable[[Subject], Record]


def _relevance(subject: Subject) -> Record:
    from headcount.studies.scoring import scoring

    own = subject.settings
    task = subject.task(own.choose_on, most=min(own.followed, own.sentences or own.followed))
    return scoring(subject.model, task, method="relevance", name=own.model, progress=subject.progress)


def _roles(subject: Subject) -> Record:
    from headcount.studies.roles import look

    own, relevance = subject.settings, subject.done.get("relevance")
    return look(
        subject.model, subject.sentences, subject.how.tokenizer(own.model), name=own.model,
        data=f"{own.trees or own.data} {own.choose_on}", frequencies=subject.frequencies, relevance=relevance,
        progress=lambda done, of: subject.progress("looking at roles", done, of),
    )  # fmt: skip


def _tradeoff(subject: Subject) -> Record:
    """Heads of some kinds, the encoder's first of all (Voita et al. 2019, section 6.2)."""
    own = subject.settings
    kinds = own.kinds if set(own.kinds) <= set(subject.sites.kinds) else subject.sites.kinds
    heads = sum(head.kind in kinds for head in subject.sites.heads)
    keep = own.keep or _parts_of(heads, (2, 3, 8))
    return _traded(subject, "tradeoff", keep=keep, ways=own.ways, kinds=kinds)


def _all_kinds(subject: Subject) -> Record:
    """Heads of all kinds, from the trained model and from scratch (Voita et al. 2019, section 6.3)."""
    own, sites = subject.settings, subject.sites
    if not own.all_kinds_ways:
        raise UsageError("The settings leave it out: all_kinds_ways is empty.")
    if len(sites.kinds) < 2:
        raise UsageError(f"The model has {sites.kinds[0]} heads alone: the part tradeoff is about all of them.")
    keep = own.all_kinds_keep or _parts_of(len(sites.heads), (2, 3))
    return _traded(subject, "all-kinds", keep=keep, ways=own.all_kinds_ways, against=own.all_kinds_ways[0])


def _parts_of(heads: int, parts: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(max(1, heads // part) for part in parts))


def _traded(subject: Subject, part: str, **plan: Any) -> Record:
    from headcount.methods.course import Course
    from headcount.studies.tradeoff import Data, Plan, tradeoff

    own = subject.settings
    course = Course(steps=own.gate_steps, tune=own.tune_steps)
    looking, unlooked = _looking(subject)
    return tradeoff(
        subject.model, Data(subject.task("train", most=own.learned), subject.choosing, subject.measuring),
        Plan(seeds=own.seeds, course=course, scratch_steps=own.scratch_steps, **plan),
        name=own.model, looking=looking, unlooked=unlooked, folder=subject.folder / part,
        progress=lambda what, done, of: subject.progress(f"{part}: {what}", done, of),
    )  # fmt: skip


def _looking(subject: Subject) -> tuple[Any, str]:
    """What roles of the heads left are looked for on, or why they cannot be."""
    from headcount.studies.kept import Looking

    if "roles" in subject.missing:
        return None, subject.missing["roles"]
    try:
        return Looking(subject.sentences, subject.how.tokenizer(subject.settings.model), subject.frequencies), ""
    except HeadcountError as error:
        return None, str(error)


def _examples(subject: Subject) -> Record:
    from headcount.studies.examples import examples

    own, sentences = subject.settings, subject.sentences
    tokenizer = subject.how.tokenizer(own.model)
    return examples(
        subject.model, tokenizer, sentences, targets=sentences.targets, name=own.model, data=own.trees or own.data,
        progress=subject.progress,
    )  # fmt: skip


def _attention(subject: Subject) -> Record:
    """The head that looks most at rare tokens, on a sentence of middling length (Voita et al. 2019, Figure 5)."""
    from headcount.corpora.tree import Tree
    from headcount.studies.attention import attention_map

    roles = subject.done.get("roles")
    if roles is None:
        raise UsageError("The head to show is chosen by its role: the part roles is missing.")
    shares = {
        head: max((item.value for item in evidence if item.role == "rare"), default=-1.0)
        for head, evidence in roles.parts.evidence.items()
    }
    texts = [item.text if isinstance(item, Tree) else item for item in subject.sentences]
    text = min(texts, key=lambda text: abs(len(text.split()) - 12))
    tokenizer = subject.how.tokenizer(subject.settings.model)
    head = max(shares, key=lambda head: shares[head])
    if shares[head] < 0:
        raise UsageError("No sentence has a rare token: there is no head to show.")
    return attention_map(subject.model, tokenizer, text, head=head, name=subject.settings.model)


def _ablation(subject: Subject) -> Record:
    from headcount.studies.ablation import ablate

    other = subject.task(subject.settings.other) if subject.settings.other else None
    name = subject.settings.model
    return ablate(subject.model, subject.measuring, name=name, other=other, progress=subject.progress)


def _gradient(subject: Subject) -> Record:
    from headcount.studies.scoring import scoring

    name = subject.settings.model
    return scoring(subject.model, subject.choosing, method="gradient", name=name, progress=subject.progress)


def _curves(subject: Subject) -> Record:
    from headcount.studies.curves import Plan, pruning_curves

    own = subject.settings
    plan = Plan(orders=own.orders, random=own.random, step=own.step)
    return pruning_curves(
        subject.model, subject.choosing, measure_on=subject.measuring, plan=plan, name=own.model,
        progress=subject.progress,
    )  # fmt: skip


def _dynamics(subject: Subject) -> Record:
    from headcount.studies.dynamics import dynamics, epochs_of

    own = subject.settings
    checkpoints = epochs_of(Path(own.model), own.epochs or None)
    return dynamics(
        checkpoints, lambda folder: subject.how.load(str(folder), task=own.task), subject.choosing,
        measure_on=subject.measuring, step=own.step, name=own.model, progress=subject.progress,
    )  # fmt: skip


def _speed(subject: Subject) -> Record:
    """Half of the heads removed, those with the lowest gradient scores (Michel et al. 2019, Table 4)."""
    from headcount.scores.score import score
    from headcount.selection.budget import Budget
    from headcount.selection.select import select
    from headcount.studies.speed import Bench, speed
    from headcount.surgery.remove import remove

    own = subject.settings
    mask = select(score("gradient", subject.model, subject.choosing), Budget(share=0.5))
    models = {own.model: subject.model, f"{own.model}, half of its heads": remove(subject.model, mask)}
    return speed(models, bench=Bench(own.batches, own.lengths, repeats=own.repeats), progress=subject.progress)


PARTS: dict[str, Part] = {
    "gradient": _gradient,
    "ablation": _ablation,
    "curves": _curves,
    "dynamics": _dynamics,
    "speed": _speed,
    "relevance": _relevance,
    "roles": _roles,
    "attention": _attention,
    "examples": _examples,
    "tradeoff": _tradeoff,
    "all-kinds": _all_kinds,
}
PAPERS: dict[str, tuple[str, ...]] = {
    "voita2019": ("relevance", "roles", "attention", "examples", "tradeoff", "all-kinds"),
    "michel2019": ("gradient", "ablation", "curves", "dynamics", "speed"),
}
_LONGEST = ("tradeoff", "all-kinds")  # come last
PAPERS["all"] = (*(part for parts in PAPERS.values() for part in parts if part not in _LONGEST), *_LONGEST)


def whole_study(
    name: str,
    settings: Settings,
    out: Path,
    *,
    how: Loading | None = None,
    parts: Sequence[str] | None = None,
    progress: Progress = lambda *_: None,
    refresh: Callable[[Record[Combined]], None] = lambda _: None,
) -> Record[Combined]:
    """Run the parts of a study in order and keep each; refresh is called with what there is after each of them.

    A part that this model or data cannot give is left out with the reason.
    """
    wanted = _wanted(name, parts)
    subject = Subject(settings, how or Loading(None, None, trust_remote_code=False), out / "unfinished", progress)
    return run_parts(name, subject, {part: PARTS[part] for part in wanted}, out, refresh=refresh)


def run_parts(
    name: str,
    subject: Subject,
    makers: Mapping[str, Part],
    out: Path,
    *,
    refresh: Callable[[Record[Combined]], None] = lambda _: None,
) -> Record[Combined]:
    """Run parts in order and keep each in the folder."""
    if not (out / "settings.json").is_file() and journal.contents(out):
        raise UsageError(f"{out} holds something else already; give a new folder.")
    with journal.reserved(out, shared=True):  # processes begun alike share the points of the trade-off
        return _run(name, subject, makers, out, refresh)


def _run(
    name: str,
    subject: Subject,
    makers: Mapping[str, Part],
    out: Path,
    refresh: Callable[[Record[Combined]], None],
) -> Record[Combined]:
    settings = subject.settings
    unfinished = not all((out / "parts" / f"{part}.json").is_file() for part in makers)
    fingerprints = subject.fingerprints() if unfinished else {}  # wrong data is said at once, not for each part
    journal.claim(out, "settings.json", asdict(settings))
    if unfinished:
        journal.claim(out, "subject.json", fingerprints)
    signature = Signature(settings.model, arguments={"data": settings.data})
    parts = Combined(name, {}, {}, json.loads(json.dumps(asdict(settings))))
    for part, maker in makers.items():
        file = out / "parts" / f"{part}.json"
        try:
            made = Record.load(file) if file.is_file() else maker(subject)
        except FolderError:  # not this part alone cannot be written
            raise
        except HeadcountError as error:
            subject.missing[part] = str(error)
            parts = replace(parts, missing={**parts.missing, part: str(error)})
        else:
            if not file.is_file() and not _unfinished(made):
                made.save(file)
            subject.done[part] = made
            parts = replace(parts, records={**parts.records, part: made})
        record = Record("combined", signature, parts)
        record.save(out / "record.json")
        refresh(record)
    return Record("combined", signature, parts)


def _unfinished(record: Record) -> bool:
    """Whether other processes are at work on the rest of a trade-off."""
    return record.study == "tradeoff" and bool(record.parts["missing"])


def _wanted(name: str, parts: Sequence[str] | None) -> Sequence[str]:
    if name not in PAPERS:
        raise UnknownName("study", name, PAPERS)
    for part in parts or ():
        if part not in PAPERS[name]:
            raise UnknownName(f"part of {name}", part, PAPERS[name])
    return parts or PAPERS[name]
