"""llama.cpp, run in this process by xllamacpp: what it predicts after a prompt, and how it splits text."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headcount.errors import VerificationError

_LIKELIEST = 20  # tokens whose log-probabilities are compared at each step
_CERTAIN = 1e6  # added to a logit


class LlamaCpp:
    """A GGUF file, loaded."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._letter: int | None = None

    def predict(self, ids: Sequence[int]) -> dict[int, float]:
        """Log-probabilities of the likeliest next tokens, likeliest first, as they are before sampling.

        The token that is sampled is a plain letter: the server holds back what it knows of tokens that are half a
        character.
        """
        if self._letter is None:
            self._letter = self.tokenize("a")[-1]
        answer = self._server.handle_completions(
            {
                "prompt": list(ids),
                "n_predict": 1,
                "n_probs": _LIKELIEST,
                "logit_bias": [[self._letter, _CERTAIN]],
                "temperature": 0.0,
                "cache_prompt": True,
            }
        )
        content = answer["choices"][0]["logprobs"]["content"]
        return {entry["id"]: entry["logprob"] for entry in content[0]["top_logprobs"]}

    def tokenize(self, text: str) -> list[int]:
        """Token ids of a text, with the tokens that frame it."""
        request = urllib.request.Request(
            f"{self._server.listening_address}/tokenize",
            data=json.dumps({"content": text, "add_special": True, "parse_special": True}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return list(json.loads(answer.read())["tokens"])


@contextmanager
def loaded(path: Path, *, context: int) -> Iterator[LlamaCpp]:
    """llama.cpp with one file, on one thread, exact: a float32 cache and no flash attention."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.n_ctx, params.n_parallel = context, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity, params.warmup = -1, False
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise VerificationError(f"llama.cpp {xllamacpp.__version__} does not load {path.name}: {error}") from error
    try:
        yield LlamaCpp(server)
    finally:
        del server
