"""StudySubject: the model and data of a study, loaded on first use."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from headcount.checkpoints.loading import Loading
from headcount.errors import HeadcountError
from headcount.progress import Progress
from headcount.record import Record
from headcount.studies.study_settings import StudySettings
from headcount.studies.workload import Workload


@dataclass(frozen=True)
class StudySubject:
    """The model and data of the parts of a study."""

    settings: StudySettings
    loading: Loading
    folder: Path  # for unfinished work
    progress: Progress
    finished_parts: dict[str, Record] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)  # part -> why it is missing

    @cached_property
    def model(self) -> Any:
        return self.loading.load(self.settings.model, task=self.settings.task)

    @cached_property
    def sites(self) -> Any:
        from headcount.sites.locate import locate

        return locate(self.model)

    @cached_property
    def tokenizer(self) -> Any:
        return self.loading.tokenizer(self.settings.model)

    @cached_property
    def work(self) -> Workload:
        """The task on the split that heads are chosen on."""
        settings = self.settings
        return Workload(
            settings.task, settings.source, settings.measure_split or None, settings.batch_size, settings.max_length,
            settings.metric or None, {"beams": settings.beams},
        )  # fmt: skip

    @cached_property
    def workloads(self) -> tuple[Workload, Workload]:
        """Data to choose heads on, and to measure on."""
        return self.work.divide()

    def task(self, work: Workload) -> Any:
        return work.build(self.settings.model, self.loading)

    @cached_property
    def choosing(self) -> Any:
        return self.task(self.workloads[0])

    @cached_property
    def measuring(self) -> Any:
        return self.task(self.workloads[1])

    @cached_property
    def other(self) -> Any:
        """The task on a second split; None if none is named."""
        return self.task(self.work.on(self.settings.other_split)) if self.settings.other_split else None

    @cached_property
    def training(self) -> Any:
        """The task on the training data, limited by the settings."""
        return self.task(self.workloads[0].on("train").with_limit(self.settings.train_limit or None))

    def fingerprints(self) -> dict[str, str]:
        """Hashes of the weights and data that the settings only name."""
        from headcount.sites.fingerprint import weight_hash

        texts = {"choosing": self.choosing.fingerprint, "measuring": self.measuring.fingerprint}
        if self.other is not None:
            texts["other"] = self.other.fingerprint
        trees = Path(self.settings.trees)
        if trees.is_file():
            texts["trees"] = hashlib.sha256(trees.read_bytes()).hexdigest()[:40]
        return {"weights": weight_hash(self.model), **texts}

    def text_hash(self, name: str) -> str | None:
        """Hash of the training, sentences or frequencies that some parts read. None if the data does not have them."""
        try:
            texts = getattr(self, name)
        except HeadcountError:  # the part that needs them is skipped with this reason
            return None
        return "none" if texts is None else str(texts.fingerprint)

    @cached_property
    def sentences(self) -> Any:
        """Sentences to measure roles on: the split that heads are chosen on, or a treebank."""
        work = self.work.with_limit(self.settings.role_limit) if self.settings.role_limit else self.work
        return work.sentences(self.settings.trees or None)

    @cached_property
    def frequencies(self) -> Any:
        """Token frequencies in the training data; None if the data is not the model's, or has no training split."""
        if self.settings.trees:
            return None
        return self.work.frequencies(self.tokenizer, self.settings.train_limit or None)
