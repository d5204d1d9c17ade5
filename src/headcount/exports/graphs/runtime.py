"""Base class of the runtimes that run computation graphs; subclasses store and load a graph."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from transformers import PreTrainedModel

from headcount.errors import UsageError
from headcount.exports.agreement import Agreement
from headcount.exports.graphs import graph as graph_module
from headcount.exports.graphs.check import compare_graphs
from headcount.exports.graphs.graph import Graph, graph_names, graphs
from headcount.exports.graphs.measured import MeasuredGraphs
from headcount.exports.graphs.session import GraphModel, Session
from headcount.exports.measured import Measured
from headcount.exports.runtime import ExportedModel, Obstacle, Runtime

NAMES = ("model", "encoder_model", "decoder_model")


class GraphRuntime(Runtime):
    """A runtime that runs computation graphs.

    Attributes:
        graph_suffix: File suffix of a stored graph.
    """

    graph_suffix: str

    def obstacle(self, model: PreTrainedModel) -> Obstacle | None:
        return graph_module.obstacle(model)

    def costs(self, subject: ExportedModel) -> list[str]:
        return graph_module.costs(subject.model)

    def write(self, subject: ExportedModel, target: Path, *, dtype: str) -> None:
        for graph in graphs(subject.model):
            self.store(graph, self.file(target, graph.name), dtype=dtype)
        if target.is_dir():
            subject.model.config.save_pretrained(target)
            if subject.tokenizer is not None:
                subject.tokenizer.save_pretrained(target)

    def check(self, subject: ExportedModel, target: Path) -> Agreement:
        runtime = GraphModel({name: self.load(self.file(target, name)) for name in graph_names(subject.model)})
        return compare_graphs(subject, runtime, name=self.title, version=self.version())

    def model(self, target: Path, *, threads: int = 1) -> GraphModel:
        """Load the graphs of an export."""
        files = [(name, self.file(target, name)) for name in (NAMES if target.is_dir() else NAMES[:1])]
        return GraphModel({name: self.load(file, threads=threads) for name, file in files if file.is_file()})

    def open(self, path: Path, *, threads: int) -> Measured | None:
        files = (self.file(path, name) for name in NAMES)
        if not any(file.is_file() and file.suffix == self.graph_suffix for file in files):
            return None
        model = self.model(path, threads=threads)
        if model.foreign_inputs:
            raise UsageError(
                f"{path} cannot be measured: a graph of it takes {', '.join(model.foreign_inputs)}, as no model that "
                "headcount export wrote. Give a file, or a whole folder, that headcount export wrote."
            )
        return MeasuredGraphs(model, path)

    @abstractmethod
    def file(self, target: Path, name: str) -> Path:
        """Return the path of the graph with this name."""

    @abstractmethod
    def store(self, graph: Graph, path: Path, *, dtype: str) -> None:
        """Write a graph to a file."""

    @abstractmethod
    def load(self, path: Path, *, threads: int = 1) -> Session:
        """Load a stored graph."""

    @abstractmethod
    def version(self) -> str:
        """Return the version of the installed runtime."""
