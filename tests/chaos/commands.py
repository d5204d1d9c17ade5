"""The commands under test, with minimal sizes and the models and data of `inputs`."""

from __future__ import annotations

from dataclasses import dataclass

_TASK = "--task classification --data data"
_PAIRS = "--data pairs --languages en,xx"
_TRANSLATION = f"--task translation {_PAIRS} --limit 4"
_FIGURES = "--format svg"
_SMALL = (
    "--preset tiny --encoder-layers 2 --decoder-layers 1 --width 16 --inner 16 --heads 2 --vocabulary 200 --batch 80 "
    "--warmup 4 --save-seconds 0.05"
)
_TUNED = "--rate 1e-3 --batch 80 --save-seconds 0.05"
_CURVES = f"{_TASK} --limit 8 {_FIGURES}"


@dataclass(frozen=True)
class Command:
    """A command line to run in a folder with the inputs; OUT is replaced by the output folder."""

    line: str
    out: str = "out"
    model: str = "bert"  # input whose folder is also tested as the output folder
    clock: bool = False  # whether its page shows values that depend on time
    before: str = ""  # command line that must run first

    def arguments(self, out: str | None = None) -> list[str]:
        return self.line.replace("OUT", out or self.out).split()


COMMANDS: dict[str, Command] = {
    "train translation": Command(f"train {_PAIRS} {_SMALL} --epochs 2 --average 2 --out OUT", model="marian"),
    "train like": Command(
        f"train {_PAIRS} --preset tiny --like marian --batch 80 --warmup 4 --epochs 1 --save-seconds 0.05 --out OUT",
        model="marian",
    ),
    "train classification": Command(f"train encoder {_TASK} --epochs 2 {_TUNED} --out OUT", model="encoder"),
    "train language-modelling": Command(
        f"train llama --task language-modelling --data texts --epochs 1 {_TUNED} --out OUT", model="llama"
    ),
    "prune given": Command("prune bert --remove encoder.0.1,encoder.1.* --out OUT"),
    "prune standalone": Command("prune bert --remove encoder.0.1 --standalone --out OUT"),
    "prune overwrite": Command(
        "prune bert --remove encoder.0.1 --overwrite --out OUT",
        before="prune bert --remove encoder.1.2 --out out",
        model="",
    ),
    "prune gradient": Command(f"prune bert --choose gradient --keep 50% {_TASK} --out OUT"),
    "prune random": Command(f"prune bert --choose random --keep 50% {_TASK} --out OUT"),
    "prune fisher": Command(f"prune bert --choose fisher --keep 50% {_TASK} --out OUT"),
    "prune greedy": Command(f"prune bert --choose greedy --keep 5 {_TASK} --limit 12 --out OUT"),
    "prune l0": Command(f"prune bert --choose l0 --keep 4 {_TASK} --steps 6 --tune 4 --save-seconds 0.05 --out OUT"),
    "prune l0 sweep": Command(
        f"prune bert --choose l0 --penalty 0.01,0.5 {_TASK} --steps 4 --tune 2 --save-seconds 0.05 --out OUT"
    ),
    "prune subset": Command(
        f"prune bert --choose subset --keep 4 {_TASK} --steps 6 --tune 4 --save-seconds 0.05 --out OUT"
    ),
    "prune tuned": Command(
        f"prune bert --choose greedy --keep 6 --tune 5 --distill 0.5 {_TASK} --limit 12 --save-seconds 0.05 --out OUT"
    ),
    "score gradient": Command(f"score bert {_TASK} {_FIGURES} --out OUT"),
    "score relevance": Command(f"score marian --method relevance {_TRANSLATION} {_FIGURES} --out OUT", model="marian"),
    "ablate": Command(f"ablate bert {_TASK} {_FIGURES} --out OUT"),
    "roles": Command(
        f"roles marian --data grammar --limit 20 --frequencies corpus --resamples 20 {_FIGURES} --out OUT",
        model="marian",
    ),
    "evaluate": Command(f"evaluate marian {_TRANSLATION} {_FIGURES} --out OUT", model="marian"),
    "explore": Command("explore bert --data data/test.tsv --limit 8 --one-out 4 --out OUT"),
    "bench": Command(f"bench bert --batches 1,2 --lengths 8 --repeats 3 {_FIGURES} --out OUT"),
    "study agreement": Command(f"study agreement bert {_CURVES} --out OUT"),
    "study compensation": Command(
        f"study compensation bert {_CURVES} --step 25 --most 50 --candidates 2 --calibrate-limit 8 --out OUT"
    ),
    "study curves": Command(f"study curves bert {_CURVES} --orders gradient --random 1 --step 25 --out OUT"),
    "study dynamics": Command(f"study dynamics marian {_TRANSLATION} --step 50 {_FIGURES} --out OUT", model="marian"),
    "study examples": Command(f"study examples marian --data grammar --count 2 {_FIGURES} --out OUT", model="marian"),
    "study rules": Command(f"study rules bert {_CURVES} --out OUT"),
    "study specialisation": Command(
        f"study specialisation marian {_TRANSLATION} --trees trees.conllu --steps 3 --tune 2 --choose-limit 4 "
        f"{_FIGURES} --out OUT",
        model="marian",
    ),
    "study tradeoff": Command(
        f"study tradeoff bert {_CURVES} --keep 4 --ways l0,rank-gradient,greedy,scratch --steps 3 --tune 2 "
        "--scratch-steps 3 --no-roles --save-models --out OUT"
    ),
    "study michel2019": Command(
        f"study michel2019 bert {_CURVES} --config small.toml --parts gradient,ablation,curves --out OUT"
    ),
    "study voita2019": Command(
        f"study voita2019 marian {_TRANSLATION} {_FIGURES} --config small.toml --parts relevance,tradeoff --out OUT",
        model="marian",
    ),
    "study all": Command(f"study all marian {_TRANSLATION} {_FIGURES} --config small.toml --out OUT", model="marian"),
    "demo": Command("demo --quick --out OUT", model="", clock=True),
    "export gguf": Command("export llama --to gguf --out OUT", out="half.gguf", model=""),
    "export vllm": Command("export llama --to vllm --no-check --out OUT", model="llama"),
    "export onnx": Command("export bert --to onnx --out OUT", out="half.onnx", model=""),
    "export openvino": Command("export bert --to openvino --out OUT"),
    "export ctranslate2": Command("export marian --to ctranslate2 --out OUT", model="marian"),
    "report": Command("report records/ablation.json --out OUT", out="report.html", model=""),
    "figure": Command("figure all records/ablation.json --out OUT", model=""),
}
