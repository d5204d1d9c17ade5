"""First look: a tiny translation model learns to turn sequences around, and shows which of its heads it needs.

Everything headcount can do so far on a model made on the spot: no download, two minutes on two cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor
from transformers import MarianConfig, MarianMTModel

from headcount.checkpoints.load import load
from headcount.checkpoints.save import save
from headcount.heads import HeadGrid
from headcount.probes.masks import masked
from headcount.record import Record, Signature
from headcount.sites.fingerprint import weight_hash
from headcount.sites.locate import locate
from headcount.surgery.cost import cost
from headcount.surgery.inspection import site_rows
from headcount.surgery.remove import remove
from headcount.surgery.verify import verify
from headcount.timing import interleave

PAD, START, WORDS, LENGTH = 0, 1, 24, 9  # ids 2 to WORDS + 1 are words; sentences have up to LENGTH of them
STEPS, BATCH = 600, 64
SHARE_LOST = 0.01  # heads go, least needed first, while at most this share of test tokens is lost

Batch = dict[str, Tensor]
Progress = Callable[[str, int, int], None]  # part, done, of


def first_look(folder: Path, *, seed: int = 0, steps: int = STEPS, progress: Progress = lambda *_: None) -> Record:
    """Train, mask every head alone, remove what is not needed, compare. Writes `model` and `pruned` into the folder."""
    model, test = _model(seed), _batch(torch.Generator().manual_seed(10_000 + seed), 500)
    for step in _train(model, seed, steps):
        progress("training", step, steps)
    whole = _accuracy(model, test)
    sites, alone = locate(model), {}
    for place, head in enumerate(sites.heads):
        alone[head] = whole - _accuracy(model, test, sites.mask(off=head))
        progress("masking each head alone", place + 1, len(sites.heads))
    lost = HeadGrid(alone)
    mask = _least_needed(model, test, lost, whole, progress)
    small = remove(model, mask)
    save(model, folder / "model", overwrite=True)
    save(small, folder / "pruned", overwrite=True)
    again = load(folder / "pruned")
    progress("timing", 0, 1)
    times = interleave({"whole": lambda: _accuracy(model, test), "pruned": lambda: _accuracy(again, test)}, repeats=20)
    progress("timing", 1, 1)
    signature = Signature("reversal, made on the spot", weight_hash(model), seed=seed, arguments={"steps": steps})
    parts = {
        "sites": site_rows(again),
        "accuracy": {"whole": whole, "masked": _accuracy(model, test, mask), "pruned": _accuracy(again, test)},
        "lost_alone": {str(head): value for head, value in lost.items()},
        "kept": [str(head) for head in mask.kept],
        "difference": verify(model, again, mask),
        "cost": {"whole": asdict(cost(model, length=LENGTH)), "pruned": asdict(cost(again, length=LENGTH))},
        "speedup": times.ratio("whole", "pruned")._asdict(),
    }
    return Record("first look", signature, parts)


def _model(seed: int) -> MarianMTModel:
    torch.manual_seed(seed)
    size = {"d_model": 64, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "encoder_layers": 2, "decoder_layers": 2}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    ids = {"pad_token_id": PAD, "eos_token_id": PAD, "bos_token_id": START, "decoder_start_token_id": START}
    # Words must be as loud as the sinusoids of their positions, or the model hears only those.
    config = MarianConfig(
        vocab_size=WORDS + 2, max_position_embeddings=32, dropout=0.0, init_std=0.1, **size, **heads, **ids
    )
    config.forced_eos_token_id = None
    return MarianMTModel(config)


def _batch(random: torch.Generator, rows: int) -> Batch:
    """Sentences and the same turned around, padded to one length."""
    words_BT = torch.randint(2, WORDS + 2, (rows, LENGTH), generator=random)
    lengths_B = torch.randint(3, LENGTH + 1, (rows,), generator=random)
    places_T = torch.arange(LENGTH)
    real_BT = places_T < lengths_B[:, None]
    back_BT = (lengths_B[:, None] - 1 - places_T).clamp_min(0)
    source_BT = words_BT.where(real_BT, PAD)
    target_BT = source_BT.gather(1, back_BT).where(real_BT, -100)
    return {"input_ids": source_BT, "attention_mask": real_BT.long(), "labels": target_BT}


def _train(model: MarianMTModel, seed: int, steps: int) -> Iterator[int]:
    random = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=steps, pct_start=0.1)
    model.train()
    for step in range(steps):
        loss = model(**_batch(random, BATCH)).loss
        loss.backward()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        yield step + 1
    model.eval()


@torch.no_grad()
def _accuracy(model: MarianMTModel, batch: Batch, mask: HeadGrid | None = None) -> float:
    """Share of target words that the model finds, given the words before them."""
    with masked(model, mask if mask is not None else locate(model).mask()):
        found_BT = model(**batch).logits.argmax(-1)
    real_BT = batch["labels"] != -100
    return float((found_BT == batch["labels"])[real_BT].double().mean())


def _least_needed(model: MarianMTModel, test: Batch, lost: HeadGrid, whole: float, progress: Progress) -> HeadGrid:
    """Switch heads off one after the other, least needed first, keeping each step that costs too little to matter."""
    mask = locate(model).mask()
    order = sorted(lost.heads, key=lambda head: lost[head])
    for place, head in enumerate(order):
        tried = mask.replace({head: 0})
        if whole - _accuracy(model, test, tried) <= SHARE_LOST:
            mask = tried
        progress("removing what is not needed", place + 1, len(order))
    return mask
