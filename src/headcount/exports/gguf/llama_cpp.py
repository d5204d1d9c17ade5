"""Run llama.cpp in this process with xllamacpp: next-token predictions, generation and tokenization."""

from __future__ import annotations

import json
import signal
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xllamacpp import Server

from headcount.errors import UsageError, VerificationError

_LIKELIEST = 20  # most likely tokens whose log-probabilities are compared at each step
_LIKELY = 200  # most likely tokens among which the next token of a text is looked for first
_CERTAIN = 1e6  # logit bias that forces a token


class LlamaCpp:
    """A GGUF file loaded by llama.cpp."""

    def __init__(self, server: Server) -> None:
        self._server: Server | None = server
        self._letter: int | None = None

    def close(self) -> None:
        """Free the memory; the object cannot be used afterwards."""
        self._server = None

    @property
    def server(self) -> Server:
        if self._server is None:
            raise UsageError("This GGUF file was closed; load it again.")
        return self._server

    def write(self, ids: Sequence[int], tokens: int, *, remember: bool) -> None:
        """Generate tokens after a prompt.

        Args:
            ids: Token ids of the prompt.
            tokens: Number of tokens to generate.
            remember: Whether to reuse the cache of the previous prompt.
        """
        self._complete(ids, n_predict=tokens, ignore_eos=True, cache_prompt=remember)

    def _complete(self, ids: Sequence[int], **request: object) -> Any:
        """Return what llama.cpp answers to a prompt. It returns errors too, such as of a prompt beyond its context."""
        answer = self.server.handle_completions({"prompt": list(ids), "temperature": 0.0, **request})
        if "error" in answer:
            raise UsageError(
                f"llama.cpp does not read a text of {len(ids)} tokens: {answer['error']['message']}. Give shorter "
                "texts, or truncate them (--max-length)."
            )
        return answer

    def predict(self, ids: Sequence[int], likeliest: int = _LIKELIEST) -> dict[int, float]:
        """Return the log-probabilities of the most likely next tokens before sampling, most likely first.

        The sampled token is forced to be a letter, because the server returns no probabilities for a token that
        is an incomplete character.
        """
        if self._letter is None:
            self._letter = self.tokenize("a")[-1]
        answer = self._complete(
            ids, n_predict=1, n_probs=likeliest, logit_bias=[[self._letter, _CERTAIN]], cache_prompt=True
        )
        content = answer["choices"][0]["logprobs"]["content"]
        return {entry["id"]: entry["logprob"] for entry in content[0]["top_logprobs"]}

    def log_probabilities(self, ids: Sequence[int], vocabulary: int) -> list[float]:
        """Return the log-probability of each token of a text but the first, given those before it.

        Args:
            ids: Token ids of the text.
            vocabulary: Number of tokens of the model. All are asked for where the next token is an unlikely one.
        """
        values = []
        for index in range(1, len(ids)):
            likeliest = self.predict(ids[:index], min(_LIKELY, vocabulary))
            if ids[index] not in likeliest:
                likeliest = self.predict(ids[:index], vocabulary)
            values.append(likeliest[ids[index]])
        return values

    def tokenize(self, text: str) -> list[int]:
        """Return the token ids of a text, including special tokens."""
        request = urllib.request.Request(
            f"{self.server.listening_address}/tokenize",
            data=json.dumps({"content": text, "add_special": True, "parse_special": True}).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return list(json.loads(answer.read())["tokens"])


@contextmanager
def _signals_held() -> Iterator[None]:
    """Ctrl-C and SIGTERM arrive after the block, and never in threads that are started inside.

    A signal that interrupts a thread of the server before it is ready leaves the constructor waiting for ever.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def loaded(path: Path, *, context: int) -> Iterator[LlamaCpp]:
    """Load a GGUF file on one thread and free its memory on exit."""
    llama_cpp = load(path, context=context, threads=1)
    try:
        yield llama_cpp
    finally:
        llama_cpp.close()


def load(path: Path, *, context: int, threads: int) -> LlamaCpp:
    """Load a GGUF file with exact settings: a float32 cache and no flash attention."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.n_ctx, params.n_parallel = context, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.verbosity, params.warmup = -1, False
    try:
        with _signals_held():
            return LlamaCpp(xllamacpp.Server(params))
    except RuntimeError as error:
        raise VerificationError(f"llama.cpp {xllamacpp.__version__} does not load {path.name}: {error}") from error
